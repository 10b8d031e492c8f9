"""What a new version of the tests, or a hand-in that came again, changed in the scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mha_grader.course.records import ItemRecord, SubmissionRecord


def report(before: Mapping[str, SubmissionRecord], after: Mapping[str, SubmissionRecord]) -> Iterator[str]:
    """One line for each student whose score changed, and below it why.

    Args:
        before: the stored records, by student, before grading.
        after: those of the students who were graded.
    """
    for student, new in after.items():
        old = before.get(student)
        if old is None or old.score == new.score:
            continue
        why = "other tests" if old.submission == new.submission else "another hand-in"
        yield f"{student}: {old.score:g} is now {new.score:g} ({why})"
        old_items = {item.item: item for item in old.items}
        for item in new.items:
            yield from _item(old_items.get(item.item), item)


def _item(old: ItemRecord | None, new: ItemRecord) -> Iterator[str]:
    before = {part.name: part for part in old.parts} if old is not None else {}
    for part in new.parts:
        was = before.pop(part.name, None)
        if was is None:
            yield f"  {new.item} / {part.name}: new, {part.status}, {part.points:g} of {part.max_points:g}"
        elif was.points != part.points:
            why = f"{was.status} is now {part.status}" if was.status != part.status else "other points"
            yield f"  {new.item} / {part.name}: {was.points:g} is now {part.points:g} ({why})"
    for name, gone in before.items():
        yield f"  {new.item} / {name}: no longer there, had {gone.points:g}"
