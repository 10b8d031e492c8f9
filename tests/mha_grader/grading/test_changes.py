"""What a regrade tells: for how many the score changed, and for one student in which part."""

from dataclasses import replace

from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.grading.changes import details, summary


def record(*parts, submission="a", version="1"):
    return SubmissionRecord("toy", version, submission, "graded", (ItemRecord("double", tuple(parts)),))


PASSED, FAILED = PartRecord("values", 2, "pass"), PartRecord("values", 2, "fail")


def test_a_part_that_passes_now():
    assert list(details(record(FAILED), record(PASSED, version="2"))) == [
        "0 became 2 with version 2 (other tests)",
        "  double / values: 0 is now 2 (fail is now pass)",
    ]


def test_other_points_new_parts_and_parts_that_are_gone():
    old = record(PASSED, replace(PASSED, name="shape", max_points=1))
    new = record(replace(PASSED, max_points=3), PartRecord("mask", 4, "error"), version="2")
    assert list(details(old, new)) == []
    new = record(replace(PASSED, max_points=5), PartRecord("mask", 4, "error"), version="2")
    assert list(details(old, new)) == [
        "3 became 5 with version 2 (other tests)",
        "  double / values: 2 is now 5 (other points)",
        "  double / mask: new, error, 0 of 4",
        "  double / shape: no longer there, had 1",
    ]


def test_a_class_is_told_in_a_few_lines():
    before = {f"s{i}": record(FAILED if i else PASSED) for i in range(41)}
    after = {f"s{i}": record(PASSED if i else FAILED, version="2") for i in range(41)}
    after |= {"s1": record(PASSED, submission="b"), "s2": record(FAILED), "new": record(PASSED)}
    assert list(summary(before, after)) == [
        "40 of 42 scores changed (other tests: 39, another hand-in: 1): 39 higher, 1 lower; `mha-grade log` tells "
        "what changed for one student",
        "  double / values, more points: 39",
        "  double / values, fewer points: 1",
    ]
    assert list(summary(before, before)) == list(summary({}, after)) == []


def test_a_dropped_item_is_one_line_and_not_one_for_each_of_its_parts():
    answers = ItemRecord("answers", (replace(PASSED, name="first"), replace(PASSED, name="second")))
    old, new = record(PASSED), record(PASSED, version="2")
    old = replace(old, items=(*old.items, answers))
    assert list(details(old, new)) == [
        "6 became 2 with version 2 (other tests)",
        "  answers: dropped, had 4",
    ]
    assert list(summary({"ann": old}, {"ann": new}))[1:] == ["  answers, dropped: 1"]


def test_of_many_parts_those_are_told_that_changed_for_most():
    names = [f"p{i}" for i in range(30)]
    before = {"ann": record(*(PartRecord(name, 1, "fail") for name in names))}
    after = {"ann": record(*(PartRecord(name, 1, "pass") for name in names), version="2")}
    lines = list(summary(before, after))
    assert len(lines) == 12
    assert lines[-1] == "  and 20 more changes of parts"
