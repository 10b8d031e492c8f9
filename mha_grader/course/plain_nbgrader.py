"""An assignment as nbgrader's users have it: a notebook whose test cells hold plain asserts.

Its source is `solutions/<assignment>/<assignment>.ipynb`; there is no text that generates it. A test cell is an
item of its own, worth the points that nbgrader's metadata gives it. It is about the last solution cell before it
that defines a name which the test uses, or else about the last one before it.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import re
from typing import Any

from mha_grader.course.cells import Cell, Kind, assigned, id_of, python_of, text_of
from mha_grader.course.errors import CourseError

IN_PROCESS = "in-process"  # tag of a test cell


def read(name: str, instructor: dict[str, Any], released: dict[str, Any]) -> tuple[str, tuple[Cell, ...]]:
    """The version and the cells of an assignment.

    Args:
        name: the assignment's.
        instructor: the notebook with solutions and hidden tests.
        released: what students were given.

    Raises:
        CourseError: if the two do not belong together, or a test cannot be graded here; the text says why.
    """
    sources = {
        id_of(cell, n): text_of(cell) for n, cell in enumerate(instructor["cells"]) if _is_graded(cell)
    }
    given = [id_of(cell, 0) for cell in released["cells"] if _is_graded(cell)]
    if given != list(sources):
        raise CourseError(
            f"exercises/{name} was released from another notebook than solutions/{name} is now: run "
            f"`python -m mha_grader.course.authoring {name}`"
        )
    cells: list[Cell] = []
    for number, cell in enumerate(released["cells"]):
        cells.append(_cell(cell, number, sources, cells))
    tagged = {
        id_of(cell, 0) for cell in instructor["cells"] if IN_PROCESS in cell["metadata"].get("tags", [])
    }
    cells = [dataclasses.replace(cell, in_process=cell.id in tagged) for cell in cells]
    said = [[cell.id, cell.source, cell.in_process] for cell in cells]
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    return f"plain+{digest[:12]}", tuple(cells)


def _is_graded(cell: dict[str, Any]) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get("grade_id"))


def _cell(cell: dict[str, Any], number: int, sources: dict[str, str], before: list[Cell]) -> Cell:
    nbgrader = cell["metadata"].get("nbgrader", {})
    name, text = id_of(cell, number), text_of(cell)
    source = sources.get(name, text) if _is_graded(cell) else text
    if cell["cell_type"] == "code":
        _body(name, source)
    points, by_person = float(nbgrader.get("points") or 0.0), False
    kind: Kind = "given" if cell["cell_type"] == "code" else "markdown"
    item = about = None
    if nbgrader.get("task"):
        kind, by_person = "task", True
    elif nbgrader.get("solution") and nbgrader.get("grade"):
        by_person = True
    if nbgrader.get("solution") and cell["cell_type"] == "code":
        kind, item = "solution", name
    elif nbgrader.get("grade") and cell["cell_type"] == "code":
        kind, item, about = "test", name.removeprefix("test_"), _about(name, source, before)
        _see_that_it_passes_or_fails(name, source)
    return Cell(name, kind, text, source, item, points, about, by_person)


def _about(name: str, source: str, before: list[Cell]) -> str:
    """The solution cell that a test is about."""
    solutions = [cell for cell in before if cell.kind == "solution"]
    if not solutions:
        raise CourseError(f"the test cell {name} has no solution cell before it")
    words = set(re.findall(r"\w+", source))
    close = [cell for cell in solutions if words & set().union(*map(assigned, _body(cell.id, cell.source)))]
    return (close or solutions)[-1].id


def _see_that_it_passes_or_fails(name: str, source: str) -> None:
    """Refuse what nbgrader takes for partial credit: a number at the end of a test cell."""
    body = _body(name, source)
    if body and isinstance(body[-1], ast.Expr) and isinstance(body[-1].value, ast.Name | ast.BinOp):
        raise CourseError(
            f"the test cell {name} ends with a value, for partial credit. Here a test cell passes or fails: make "
            "several test cells of it, each with its points"
        )


def _body(name: str, source: str) -> list[ast.stmt]:
    try:
        return ast.parse(python_of(source)).body
    except SyntaxError as error:
        raise CourseError(f"the cell {name} is not Python, line {error.lineno}: {error.msg}") from None
