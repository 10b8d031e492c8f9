"""The hidden tests, tested: nothing right loses a point, nothing wrong keeps all, every known mistake is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from mha_grader.course.assignment import in_teaching_order
from mha_grader.quality.kill_table import PUBLIC_SECRET, Row, page
from mha_lib.pitfalls.same_items import original

from .conftest import ITEMS, LOADED

COURSE = Path(__file__).parents[2]
# No draw may decide whether points are lost; names are tried under the first.
SECRETS = [
    PUBLIC_SECRET,
    *(pytest.param(secret, marks=pytest.mark.soak) for secret in (b"two", b"three", b"four")),
]

# Mistakes of an item that no input tells apart: recognising one of them is recognising the other.
SAME = {
    ("single_head", "attention"): [{"mask-fill-tiny", "masked-scores-zero"}],
    ("multi_head", "multi_head_attention"): [{"mask-fill-tiny", "masked-scores-zero"}],
}


@pytest.fixture(params=SECRETS, ids=bytes.decode, scope="module")
def secret(request):
    return request.param


@pytest.fixture(params=ITEMS, ids=".".join, scope="module")
def case(request):
    return request.param


@pytest.fixture(scope="module")
def rows(case, secret, rows_of):
    """The rows of a kind."""
    found = rows_of(*case, secret, secret == PUBLIC_SECRET)
    return lambda kind: [row for row in found if row.kind == kind]


def failed(row):
    return {part: (status, row.reasons[part]) for part, status in row.statuses.items() if status != "pass"}


def test_the_reference_gets_everything(rows):
    (row,) = rows("reference")
    assert row.score == row.max_score, failed(row)


def test_the_stub_gets_nothing(rows):
    (row,) = rows("stub")
    assert row.score == 0, row.statuses


def test_every_right_style_gets_everything(rows):
    assert {row.name: failed(row) for row in rows("style") if row.score != row.max_score} == {}


def test_every_known_mistake_loses_points_and_is_named(case, secret, rows):
    same = SAME.get(original(*case), [])
    wrong = {}
    for row in rows("pitfall"):
        twins = next((group for group in same if row.name in group), {row.name})
        if row.score == row.max_score:
            wrong[row.name] = "survives"
        elif secret != PUBLIC_SECRET:
            continue
        elif not twins & set(row.slugs.values()):
            wrong[row.name] = f"taken for {set(row.slugs.values()) or 'nothing'}"
        elif stray := set(row.slugs.values()) - twins:
            wrong[row.name] = f"also taken for {stray}"
    assert not wrong


def test_the_page_links_a_mistake_to_its_section_and_keeps_its_points_on_one_line():
    parts = {"values": "fail", "scale": "pass", "unchanged": "not-run"}
    row = Row("pitfall", "no-scale", parts, {"values": "no-scale"}, {}, score=1.5, max_score=4.0)
    text = page({("demo", "attention"): [replace(row, kind="reference", score=4.0), row]})
    assert (
        "| [`no-scale`](#no-scale) | 1.5\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}4 | values | unchanged |" in text
    )


def test_the_published_table_is_the_one_of_today(rows_of):
    published = (COURSE / "book" / "kill_table.md").read_text("utf-8")
    items = [(name, item) for name in in_teaching_order(COURSE, LOADED) for item in LOADED[name].items]
    rows = {(name, item): rows_of(name, item, PUBLIC_SECRET, True) for name, item in items}
    assert published == page(rows), "run `make kill-table`"
