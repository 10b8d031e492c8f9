"""The page beside plain nbgrader is about the hand-ins of today, and five of its rows are run again."""

import pytest

from examples.handins import HANDINS
from mha_grader.course.assignment import load_assignment
from tests.mha_grader.grading.test_malformed import FORMS
from tests.mha_grader.plain_nbgrader import (
    EXAMPLES,
    MALFORMED,
    PAGE,
    ROOT,
    deserved,
    examples,
    line,
    malformed,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own, of many kinds


@pytest.fixture(scope="module")
def published():
    """The fields of each line of the page's tables by the hand-in."""
    lines = PAGE.read_text("utf-8").splitlines()
    fields = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    return {name.strip(): tuple(map(str.strip, rest)) for name, *rest in fields if name.strip() != "hand-in"}


def test_the_pages_rows_are_the_hand_ins_of_today_and_ours_get_what_they_deserve(published):
    assignment = load_assignment(ROOT, EXAMPLES)
    expected = [
        (handin.what, deserved(assignment, handin), handin.status) for handin in HANDINS[EXAMPLES].values()
    ]
    expected += [
        (name.replace("%", "\\%"), FORMS[name].double + FORMS[name].half, FORMS[name].status)
        for name in MALFORMED
    ]
    found = [(name, points, status) for name, (points, _, _, status, _) in published.items()]
    assert found == [(name, f"{points:g}", status) for name, points, status in expected], (
        "run `make plain-nbgrader`"
    )
    assert all(points == ours for points, _, ours, _, _ in published.values())


def plain_part(fields):
    points, plain, _, _, remark = fields
    return points, plain, remark


@pytest.mark.parametrize(
    ("write", "only"),
    [
        (examples, ("s01", "s20", "s26")),
        (malformed, ("a solution deleted", "renamed by a browser")),
    ],
)
def test_five_rows_come_out_again(published, tmp_path, write, only):
    for row in write(tmp_path, only, ours=False):
        name, *fields = map(str.strip, line(row).strip("|").split("|"))
        if row.remark.startswith("the scores of"):  # of two others here, of all in the page
            assert row.remark == "the scores of 2 others change"
            fields[-1] = published[name][-1]
        assert plain_part(fields) == plain_part(published[name])
