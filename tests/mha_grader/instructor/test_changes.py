"""What a regrade tells: whose score changed, and in which part."""

from dataclasses import replace

from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor.changes import report


def record(*parts, submission="a", version="1"):
    return SubmissionRecord("toy", version, submission, "graded", (ItemRecord("double", tuple(parts)),))


PASSED, FAILED = PartRecord("values", 2, "pass"), PartRecord("values", 2, "fail")


def test_a_part_that_passes_now():
    lines = list(report({"ann": record(FAILED)}, {"ann": record(PASSED, version="2")}))
    assert lines == ["ann: 0 is now 2 (other tests)", "  double / values: 0 is now 2 (fail is now pass)"]


def test_other_points_new_parts_and_parts_that_are_gone():
    old = record(PASSED, replace(PASSED, name="shape", max_points=1))
    new = record(replace(PASSED, max_points=3), PartRecord("mask", 4, "error"), version="2")
    assert list(report({"ann": old}, {"ann": new}))[1:] == []
    new = record(replace(PASSED, max_points=5), PartRecord("mask", 4, "error"), version="2")
    assert list(report({"ann": old}, {"ann": new})) == [
        "ann: 3 is now 5 (other tests)",
        "  double / values: 2 is now 5 (other points)",
        "  double / mask: new, error, 0 of 4",
        "  double / shape: no longer there, had 1",
    ]


def test_another_hand_in_is_told_as_such_and_who_was_not_graded_before_is_not():
    after = {"ann": record(PASSED, submission="b"), "bob": record(PASSED), "cy": record(FAILED)}
    lines = list(report({"ann": record(FAILED), "cy": record(FAILED)}, after))
    assert lines[0] == "ann: 0 is now 2 (another hand-in)"
    assert len(lines) == 2
