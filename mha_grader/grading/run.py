"""Run a rebuilt notebook: its cells are executed in their order, and the run stops at each test cell."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mha_grader.course.assignment import Assignment
from mha_grader.grading import answers
from mha_grader.grading.rebuild import Rebuilt
from mha_grader.grading.session import OutOfBudget, Session
from mha_grader.testing.errors import CallError


class Executed(NamedTuple):
    """A cell that was executed."""

    label: str
    source: str  # "" if it hung or ended the process
    seconds: float  # that it may take


@dataclass(frozen=True)
class Stop:
    """A test cell that the run has come to: the item's own cell, and all others before it, have been executed."""

    item: str
    failure: CallError | None  # why the item's own cell failed, if it did
    executed: tuple[Executed, ...]


def run(session: Session, assignment: Assignment, rebuilt: Rebuilt) -> Iterator[Stop]:
    """Execute the cells of a notebook; yields at each test cell, and goes on behind it.

    Cells that the student added run in their place. They have a budget of their own, and their errors do not count.
    """
    budget = session.budget
    executed: list[Executed] = []
    failures: dict[str | None, CallError | None] = {}

    def execute(label: str, source: str, seconds: float) -> CallError | None:
        try:
            failure = session.execute(label, source, seconds)
        except OutOfBudget:
            failure = CallError("timeout")
        survived = failure is None or failure.kind == "error"
        executed.append(Executed(label, source if survived else "", seconds))
        return failure

    for number, source in enumerate(rebuilt.added.get(None, [])):
        execute(f"added 0.{number}", source, budget.added)
    for cell in assignment.cells:
        if cell.kind == "given":
            execute(cell.id, cell.released, budget.cell)
        elif cell.kind == "solution" and cell.item is not None:
            source = rebuilt.sources[cell.item]
            if answers.is_data(assignment, cell.item):
                within = functools.partial(execute, seconds=budget.cell)
                failures[cell.item] = answers.run_answers(within, assignment, cell, source, rebuilt)
            else:
                failures[cell.item] = execute(cell.item, source, budget.cell)
        elif cell.kind == "test" and cell.item is not None:
            yield Stop(cell.item, failures[cell.about or cell.item], tuple(executed))
        for number, source in enumerate(rebuilt.added.get(cell.id, [])):
            execute(f"added {cell.id}.{number}", source, budget.added)


def run_with_right_code(session: Session, stop: Stop, right: Mapping[str, str]) -> CallError | None:
    """Execute the cells before a test cell once more; right code follows the cells of some items.

    Args:
        session: where they are executed; nothing has been before.
        stop: the test cell that is run to.
        right: source by item that it takes the place of.

    Returns:
        Why the cell of the tested item failed, if it did.
    """
    failure = None
    try:
        for label, source, seconds in stop.executed:
            failed = session.execute(label, source, seconds)
            failure = failed if label == stop.item else failure
            if label in right:
                session.execute(f"right {label}", right[label], session.budget.cell)
    except OutOfBudget:
        return CallError("timeout")
    return failure


def run_item(session: Session, assignment: Assignment, item: str, source: str) -> Stop:
    """Execute the given cells before an item, then a source for the item itself.

    Raises:
        CourseError: if the assignment has no such item.
    """
    cell = assignment.cell("solution", item)
    for given in assignment.cells[: assignment.cells.index(cell)]:
        if given.kind == "given":
            session.execute(given.id, given.source, session.budget.cell)
    within = functools.partial(session.execute, seconds=session.budget.cell)
    if answers.is_data(assignment, item):
        return Stop(item, answers.run_answers(within, assignment, cell, source), ())
    return Stop(item, within(item, source), ())
