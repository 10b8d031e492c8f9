"""What a check prints."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator

from mha_grader.course.assignment import Assignment
from mha_grader.course.cells import BEGIN_SOLUTION, END_SOLUTION
from mha_grader.course.records import ItemRecord, PartRecord
from mha_grader.grading.explain import repeats
from mha_grader.grading.judge import parts_of
from mha_grader.grading.messages import NOT_RUN
from mha_grader.sandbox.text import clean

FOR_ONESELF = (
    "This is only for you: your code runs in a plain process of this machine, and not in the sandbox in which "
    "hand-ins are graded."
)
INDENT = " " * 10


def opening_lines(what: str) -> Iterator[str]:
    """What stands above the verdicts."""
    yield f"Checking {what}."
    yield from wrapped(FOR_ONESELF)


def item_lines(record: ItemRecord) -> Iterator[str]:
    """An item's points, and below them each part with its verdict and why."""
    yield f"{record.item}: {record.score:g} of {record.max_score:g} points"
    yield from (f"  note: {clean(note)}" for note in record.notes)
    repeated = repeats(record)
    if part := stopped_by_one_error(record):
        yield f"  {part.status:8}0/{record.max_score:g}  all parts"
        for line in part.message.splitlines():
            yield from wrapped(line, INDENT)
        return
    for part in record.parts:
        beside = f" (with right {' and '.join(record.stood_in)})" if part.carried else ""
        if part.status == "not-run" and part.reason:
            beside = f" ({part.reason.removeprefix(NOT_RUN)})"
        yield f"  {part.status:8}{part.points:g}/{part.max_points:g}  {part.name}{beside}"
        if part.status in ("pass", "not-run"):
            continue
        first = repeated.get(part.name)
        why = part.message.splitlines() if first is None else [f"for the same reason as “{first}” above"]
        for line in (part.proves, *why):
            yield from wrapped(line, INDENT)


def stopped_by_one_error(record: ItemRecord) -> PartRecord | None:
    """The first part, if one error stopped all parts that ran: nothing is written, or the cell does not run."""
    ran = [part for part in record.parts if part.status != "not-run"]
    told = {"pass", "fail"} & {part.status for part in ran}
    return ran[0] if len(ran) > 1 and not told and len(repeats(record)) == len(ran) - 1 else None


def wrapped(line: str, indent: str = "") -> list[str]:
    """A line in several; code in it, addresses and names with hyphens stay as they are."""
    width = max(shutil.get_terminal_size().columns, 60)
    if line.startswith("Try it yourself: ") or len(indent + line) <= width:
        return [indent + line]
    return textwrap.wrap(
        line,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def solution_lines(assignment: Assignment, item: str, reading: str) -> Iterator[str]:
    """The reference of an item, with what its tests ask of it and where the book explains it."""
    yield f"The course's solution of {item}:"
    yield ""
    yield from _solution(assignment.cell("solution", item).source).splitlines()
    yield ""
    yield "It does what the tests ask for:"
    for part in parts_of(assignment, item):
        yield from wrapped(f"{part.name}: {part.proves}", "  ")
    if reading:
        yield f"The book explains it: {reading}"


def answer_lines(assignment: Assignment, item: str) -> Iterator[str]:
    """A model answer, with what earns points."""
    (answer,) = (cell for cell in assignment.marked if cell.id == item)
    yield f"A model answer to {item}:"
    yield ""
    yield from answer.source.splitlines()
    yield ""
    yield "What earns points:"
    yield from assignment.rubrics[item].in_markdown().splitlines()


def _solution(source: str) -> str:
    """A solution cell without nbgrader's markers; where they stand unindented, what stands between them is all."""
    _, marker, rest = f"\n{source}".partition(f"\n{BEGIN_SOLUTION}\n")
    if marker:
        return rest.partition(f"\n{END_SOLUTION}")[0].strip()
    return re.sub(rf"^ *(?:{BEGIN_SOLUTION}|{END_SOLUTION})\n?", "", source, flags=re.MULTILINE).strip()
