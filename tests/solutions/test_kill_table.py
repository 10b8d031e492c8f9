"""The hidden tests, tested: nothing right loses a point, nothing wrong keeps all, every known mistake is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from mha_grader.course.assignment import in_teaching_order
from mha_grader.quality.kill_table import PUBLIC_SECRET, Row, page
from mha_lib.pitfalls.same_items import original

from .conftest import ITEMS, LOADED

COURSE = Path(__file__).parents[2]
SECRETS = [PUBLIC_SECRET, b"two"]  # no draw may decide what is lost; names are tried under the first
MORE_SECRETS = [pytest.param([secret], marks=pytest.mark.soak) for secret in (b"three", b"four", b"five")]

# Mistakes of an item that no input tells apart: recognising one of them is recognising the other.
SAME = {
    ("single_head", "attention"): [{"mask-fill-tiny", "masked-scores-zero"}],
    ("multi_head", "multi_head_attention"): [{"mask-fill-tiny", "masked-scores-zero"}],
}


@pytest.fixture(
    params=[SECRETS, *MORE_SECRETS], ids=lambda secrets: b"-".join(secrets).decode(), scope="module"
)
def secrets(request):
    return request.param


@pytest.fixture(params=ITEMS, ids=lambda pair: ".".join(pair), scope="module")
def case(request, rows_of, secrets):
    name, item = request.param
    return name, item, {secret: rows_of(name, item, secret, secret == PUBLIC_SECRET) for secret in secrets}


def rows(case, kind):
    return [(secret, row) for secret, found in case[2].items() for row in found if row.kind == kind]


def failed(row):
    return {part: (status, row.reasons[part]) for part, status in row.statuses.items() if status != "pass"}


def test_the_reference_gets_everything(case):
    for _, row in rows(case, "reference"):
        assert row.score == row.max_score, failed(row)


def test_the_stub_gets_nothing(case):
    for _, row in rows(case, "stub"):
        assert row.score == 0, row.statuses


def test_every_right_style_gets_everything(case):
    lost = {row.name: failed(row) for _, row in rows(case, "style") if row.score != row.max_score}
    assert not lost


def test_every_known_mistake_loses_points_and_is_named(case):
    name, item, _ = case
    same = SAME.get(original(name, item), [])
    wrong = {}
    for secret, row in rows(case, "pitfall"):
        twins = next((group for group in same if row.name in group), {row.name})
        if row.score == row.max_score:
            wrong[row.name, secret] = "survives"
        elif secret != PUBLIC_SECRET:
            continue
        elif not twins & set(row.slugs.values()):
            wrong[row.name, secret] = f"taken for {set(row.slugs.values()) or 'nothing'}"
        elif stray := set(row.slugs.values()) - twins:
            wrong[row.name, secret] = f"also taken for {stray}"
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
