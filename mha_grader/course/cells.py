"""A cell of an assignment, as the grader sees it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, Literal

from mha_grader.course.errors import CourseError

Kind = Literal["markdown", "given", "show", "solution", "test", "task"]
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
HIDDEN_BEGIN, HIDDEN_END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


@dataclass(frozen=True)
class Cell:
    """A cell of the assignment. `released` is what students got, `source` what the instructor has."""

    id: str
    kind: Kind
    released: str
    source: str
    item: str | None = None
    points: float = 0.0
    about: str | None = None  # of a test cell: the solution cell that it tests, if that has another name
    by_person: bool = False  # a person marks it: a text, or in an nbgrader notebook also code or a task
    in_process: bool = False  # of a plain test: its author says that it must run in the student's process
    # Of a solution cell: names out of `Assignment.library` that it should use, and others that it may use.
    asks_for: tuple[str, ...] = ()
    may_use: tuple[str, ...] = ()

    @property
    def hidden(self) -> str:
        """The hidden block of a test cell."""
        before, begin, rest = self.source.partition(HIDDEN_BEGIN)
        hidden, end, _ = rest.partition(HIDDEN_END)
        if not begin or not end:
            raise CourseError(f"the test cell {self.id} has no hidden block")
        # The lines keep their numbers, so that a traceback in the instructor's log can be followed.
        return "\n" * before.count("\n") + hidden


def text_of(cell: dict[str, Any]) -> str:
    """The source of a notebook's cell, which may stand there as a list of lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def id_of(cell: dict[str, Any], number: int) -> str:
    """What a cell is known by: its grade_id, its id, or its place where an old notebook has neither."""
    nbgrader = cell["metadata"].get("nbgrader", {})
    return str(nbgrader.get("grade_id") or cell.get("id") or f"cell {number}")


def python_of(source: str) -> str:
    """A cell's text without the lines that only IPython reads, such as `%matplotlib inline` and `!ls`.

    Of a cell in another language, such as one that begins with `%%bash`, nothing is left.
    """
    if re.match(r"\s*%%(?!time|capture)", source):
        return "pass"
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)


def assigned(statement: ast.stmt) -> set[str]:
    """Names that a statement gives to something: to what it computes, imports or defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names
