"""What a check prints about an item."""

import pytest

from mha_grader.course.records import ItemRecord, PartRecord
from mha_grader.grading.messages import rests_on
from mha_grader.learn import show

BROKEN = "Your code raised SyntaxError on line 1 of your cell: expected ':'."
NOT_RUN = rests_on("values")  # "not run, since …"


def part(name, status, message="", reason=""):
    return PartRecord(name, 2.0, status, f"It proves {name}.", None, message, reason)


def told(*parts):
    return list(show.item_lines(ItemRecord("softmax", parts)))


def test_an_error_that_stops_all_parts_is_told_once():
    lines = told(
        part("values", "error", BROKEN), part("axis", "error", BROKEN), part("scale", "not-run", "", NOT_RUN)
    )
    assert lines == ["softmax: 0 of 6 points", "  error   0/6  all parts", f"{show.INDENT}{BROKEN}"]


@pytest.mark.parametrize(
    "parts",
    [
        (part("values", "error", BROKEN),),
        (part("values", "pass"), part("axis", "error", BROKEN), part("scale", "error", BROKEN)),
        (part("values", "fail", "It is 3."), part("axis", "fail", "It is 3.")),
        (part("values", "error", BROKEN), part("axis", "error", "Your code raised TypeError.")),
    ],
)
def test_else_each_part_is_told(parts):
    lines = told(*parts)
    assert not [line for line in lines if "all parts" in line]
    assert all(
        any(f"It proves {each.name}." in line for line in lines) for each in parts if each.status != "pass"
    )


def test_a_part_that_was_not_run_says_what_it_rests_on():
    assert told(part("values", "fail", "It is 3."), part("axis", "not-run", "", NOT_RUN))[-1] == (
        "  not-run 0/2  axis (since it rests on the part “values”)"
    )


@pytest.mark.parametrize("columns", range(60, 100))
def test_addresses_and_names_with_hyphens_stay_whole(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    address = "pitfalls_mask.html#padding-without-broadcast-axes."
    lines = told(
        part("shape", "fail", f"You return (batch, max_len). The book runs it: Pitfalls: mask, {address}")
    )
    assert [line for line in lines if line.endswith(address)]
    assert max(map(len, lines)) <= columns
