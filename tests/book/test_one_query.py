"""The page of one query: its numbers are those of the library, and pointer, keyboard and screen reader suffice."""

import re

import numpy as np
import pytest

from mha_lib.attention import attention

KEYS = np.array([[2, 1], [-1, 2], [-2, -1], [1, -1.5]])
VALUES = np.array([[2.5, 2], [-2, 2.5], [-2.5, -1.5], [1.5, -2.5]])


@pytest.fixture
def plane(page, addresses):
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.goto(f"{addresses['file']}/book/one_query.html")
    box = page.locator(".one-query")
    box.locator("table").wait_for()
    box.scroll_into_view_if_needed()
    yield box
    assert page.troubles == []


def said(plane):
    """What the live text says: query, weights by name (None: masked), answer."""
    text = plane.get_by_role("status").inner_text().replace("−", "-")
    query, answer = (np.array(pair.split(", "), float) for pair in re.findall(r"= \(([^)]*)\)", text))
    weights = re.search(r"Weights: (.*?)\. Answer", text)[1].split(", ")
    numbers = [weight.split(" ")[1] for weight in weights]
    return query, [None if number == "masked" else float(number) for number in numbers], answer


def expected(query, mask, scaled=True):
    """The library's weights and answer. Scores that are not divided come from a query √2 times as long."""
    longer = query if scaled else query * np.sqrt(2)
    answer, weights = attention(longer[None], KEYS, VALUES, np.array([mask]))
    return weights[0], answer[0]


def agrees(plane, mask, scaled=True):
    query, weights, answer = said(plane)
    right, right_answer = expected(query, mask, scaled)
    assert [weight is not None for weight in weights] == mask
    assert [weight or 0 for weight in weights] == pytest.approx(right, abs=0.0051)
    assert answer == pytest.approx(right_answer, abs=0.051)
    cells = plane.locator("td.weight > span:first-child").all_inner_texts()
    assert [float(cell) for cell in cells] == pytest.approx(right, abs=0.0051)
    return query


def test_arrow_keys_move_the_query(plane, page):
    start = agrees(plane, [True] * 4)
    plane.get_by_role("application", name=re.compile("Query q")).focus()
    moves = {
        "ArrowRight": (0.1, 0),
        "ArrowUp": (0, 0.1),
        "Shift+ArrowLeft": (-0.5, 0),
        "Shift+ArrowDown": (0, -0.5),
    }
    for key, step in moves.items():
        page.keyboard.press(key)
        start = start + step
        assert agrees(plane, [True] * 4) == pytest.approx(start)
    for _ in range(12):
        page.keyboard.press("Shift+ArrowLeft")
    assert agrees(plane, [True] * 4)[0] == -3  # it stays in the plane


def test_the_pointer_drags_the_query(plane, page):
    box = plane.locator("svg").first.bounding_box()
    unit = box["width"] * 50 / 330
    centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*centre)
    page.mouse.down()
    page.mouse.move(centre[0] - 2 * unit, centre[1] + 1.5 * unit, steps=3)
    page.mouse.up()
    assert agrees(plane, [True] * 4) == pytest.approx([-2, -1.5], abs=0.1)
    page.mouse.move(*centre)  # it was let go
    assert said(plane)[0] == pytest.approx([-2, -1.5], abs=0.1)


def test_masks_and_the_root_are_as_in_the_library(plane):
    plane.get_by_label("divide the scores").uncheck()
    agrees(plane, [True] * 4, scaled=False)
    plane.get_by_label("cat").uncheck()
    agrees(plane, [False, True, True, True], scaled=False)
    plane.get_by_label("divide the scores").check()
    for name in ("was", "mat"):
        plane.get_by_label(name).uncheck()
    _, weights, answer = said(plane)
    assert weights == [None, 1.0, None, None]
    assert answer == pytest.approx(VALUES[1])
    assert plane.get_by_label("sat").is_disabled()  # a query must have somewhere to look


@pytest.mark.parametrize("width", [320, 360])
def test_it_fits_a_telephone(plane, page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert plane.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_without_scripts_the_reader_is_told_so(chromium, addresses):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{addresses['file']}/book/one_query.html")
    assert "needs JavaScript" in page.locator(".one-query noscript").inner_text()
    context.close()
