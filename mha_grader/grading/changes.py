"""What a new version of the tests, or a hand-in that came again, changed in the scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from mha_grader.course.records import ItemRecord, SubmissionRecord


def details(old: SubmissionRecord, new: SubmissionRecord) -> Iterator[str]:
    """What changed in one student's score, and below it in which parts; nothing if the score is the same."""
    if old.score == new.score:
        return
    yield f"{old.score:g} became {new.score:g} with version {new.version} ({_why(old, new)})"
    old_items = {item.item: item for item in old.items}
    for item in new.items:
        yield from _item(old_items.pop(item.item, None), item)
    for name, gone in old_items.items():
        yield f"  {name}: dropped, had {gone.score:g}"


def summary(
    before: Mapping[str, SubmissionRecord], after: Mapping[str, SubmissionRecord], most: int = 10
) -> Iterator[str]:
    """What changed for a class in a few lines: how many scores, why, and in which parts.

    Args:
        before: the stored records, by student, before grading.
        after: those of the students who were graded.
        most: lines about parts, of those that changed for most students.
    """
    changed = {
        student: (before[student], new)
        for student, new in after.items()
        if student in before and before[student].score != new.score
    }
    if not changed:
        return
    reasons = Counter(_why(old, new) for old, new in changed.values())
    higher = sum(new.score > old.score for old, new in changed.values())
    why = ", ".join(f"{reason}: {count}" for reason, count in reasons.items())
    yield (
        f"{len(changed)} of {len(after)} scores changed ({why}): {higher} higher, {len(changed) - higher} lower; "
        "`mha-grade log` tells what changed for one student"
    )
    parts = Counter(line for old, new in changed.values() for line in _outcomes(old, new))
    for line, count in parts.most_common(most):
        yield f"  {line}: {count}"
    if len(parts) > most:
        yield f"  and {len(parts) - most} more changes of parts"


def _why(old: SubmissionRecord, new: SubmissionRecord) -> str:
    return "other tests" if old.submission == new.submission else "another hand-in"


def _outcomes(old: SubmissionRecord, new: SubmissionRecord) -> Iterator[str]:
    """The items of a student that are gone, and the parts whose points changed, each with the direction."""
    kept = {item.item for item in new.items}
    yield from (f"{item.item}, dropped" for item in old.items if item.item not in kept)
    before = {
        (item.item, part.name): part.points for item in old.items if item.item in kept for part in item.parts
    }
    after = {(item.item, part.name): part.points for item in new.items for part in item.parts}
    for item, name in dict.fromkeys((*after, *before)):
        gain = after.get((item, name), 0.0) - before.get((item, name), 0.0)
        if gain:
            yield f"{item} / {name}, {'more' if gain > 0 else 'fewer'} points"


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
