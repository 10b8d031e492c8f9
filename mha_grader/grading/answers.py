"""Run a cell of answers: names of the whole notebook are there, and an answer that fails costs no other one."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

from mha_grader.course.assignment import Assignment, Cell
from mha_grader.grading.rebuild import Rebuilt
from mha_grader.grading.syntax import parsed
from mha_grader.testing.errors import CallError

Execute = Callable[[str, str], CallError | None]  # a cell's label and source; returns why it failed


def is_data(assignment: Assignment, item: str) -> bool:
    """Whether an item is plain data, such as a dict of answers, and neither a function nor a class."""
    return not assignment.plain and not callable(getattr(assignment.reference, item))


def run_answers(
    execute: Execute, assignment: Assignment, cell: Cell, source: str, rebuilt: Rebuilt | None = None
) -> CallError | None:
    """Execute a cell of answers; returns why nothing came of it, if so.

    If it raises, the demonstrations and visible checks before it are run as well, as in a notebook, since
    answers may be computed from their names; then the cell once more. If it raises still, it is run statement by
    statement and answer by answer: each that raises has the error's words in place of a value.

    Args:
        execute: executes a cell in the student's process.
        assignment: the assignment.
        cell: the item's solution cell.
        source: what the student wrote there.
        rebuilt: the hand-in; demonstrations that the student changed have run in their place.
    """
    label = cell.item or cell.id
    failure = execute(label, source)
    if failure is None or failure.kind != "error":
        return failure
    changed = rebuilt.changed if rebuilt is not None else set()
    for earlier in assignment.cells[: assignment.cells.index(cell)]:
        if earlier.kind in ("show", "test") and earlier.id not in changed:
            execute(f"shown {earlier.id}", earlier.released)
    failure = execute(label, source)
    if failure is None or failure.kind != "error":
        return failure
    apart = one_by_one(source)
    return failure if apart is None else execute(label, apart)


def one_by_one(source: str) -> str | None:
    """The cell with each statement, and each value of a dict that is assigned to a name, run by itself; None if it
    is not Python."""
    tree = parsed(source)
    try:
        return None if tree is None else "\n".join(_pieces(tree))
    except RecursionError:  # it is nested too deeply to be written anew
        return None


def _pieces(tree: ast.Module) -> list[str]:
    pieces = []
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
                pieces.append(f"{name} = {{}}")
                for key, value in zip(keys, values, strict=True):
                    if key is None:
                        pieces.append(_tried(f"{name}.update({ast.unparse(value)})"))
                    else:
                        place = f"{name}[{ast.unparse(key)}]"
                        words = "'(' + type(_error).__name__ + ': ' + str(_error) + ')'"
                        pieces.append(_tried(f"{place} = {ast.unparse(value)}", f"{place} = {words}"))
            case _:
                pieces.append(_tried(ast.unparse(statement)))
    return pieces


def _tried(code: str, otherwise: str = "pass") -> str:
    return f"try:\n{textwrap.indent(code, '    ')}\nexcept Exception as _error:\n    {otherwise}"
