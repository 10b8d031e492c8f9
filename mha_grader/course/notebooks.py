"""Making the instructor's notebook from a text source."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import nbformat

from mha_grader.course import rubric
from mha_grader.course.assignment import HIDDEN_BEGIN, HIDDEN_END
from mha_grader.course.given_file import given_cell, given_code
from mha_grader.course.rubric import Rubric
from mha_grader.course.sources import (
    SourceError,
    borrowed_tests,
    read_parts,
    read_source,
    rest_on,
    solution_source,
    split_test,
)
from mha_grader.course.visible_checks import VisibleChecks, visible_checks

ROLES = ("given", "show", "solution", "test", "check", "author")  # of code
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
GO_ON = "raises-exception"  # a cell with this tag may fail, and "run all" goes on to the next item


def instructor_notebook(path: Path) -> Any:
    """The instructor's notebook of a text source: no outputs, the same at every call.

    Raises:
        SourceError: if the source is not right.
    """
    source = read_source(path)
    stamp = source.metadata["mha"]
    checks = visible_checks(source, path.parent)
    rubrics = rubric.read(path.parent, path.stem)
    cells = []
    for number, cell in enumerate(source.cells, start=1):
        try:
            made = (
                _answer_cell(cell, rubrics)
                if cell.metadata.get("role") == "answer"
                else _make_cell(cell, path.parent, checks)
            )
        except SourceError as error:
            label = " ".join(str(value) for value in cell.metadata.values())
            raise SourceError(f"{path.name}, cell {number} ({label}): {error}") from None
        cells += [made] if made else []
    try:
        _check_order(cells)
        for item in rubrics.keys() - {cell.id for cell in cells if _is_answer(cell)}:
            raise SourceError(
                f"{path.stem}{rubric.ENDING} has a rubric of {item!r}, but there is no such answer"
            )
        _fill_in(cells, rubrics)
        given = given_code(source)
    except SourceError as error:
        raise SourceError(f"{path.name}: {error}") from None
    content = [[cell.id, cell.cell_type, cell.source] for cell in cells]
    digest = hashlib.sha256((json.dumps(content) + given).encode()).hexdigest()[:12]
    cells[0].source += f"\n\n*Assignment `{path.stem}`, version {stamp['version']} ({digest}).*"
    metadata = {
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
        "mha": {"assignment": path.stem, "version": stamp["version"], "digest": digest},
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _make_cell(cell: Any, sources: Path, checks: VisibleChecks | None) -> Any:
    """The notebook's cell for a cell of the source, or None if it reaches no notebook."""
    role, item = cell.metadata.get("role"), cell.metadata.get("item")
    if cell.cell_type == "code" and role not in ROLES:
        raise SourceError(f"role is {role!r}, but it should be one of {', '.join(ROLES)}")
    if role in ("author", "check"):
        return None
    grade_id = {"solution": item, "test": f"test_{item}" if item else None}.get(role, cell.metadata.get("id"))
    if not re.fullmatch(r"[A-Za-z]\w*", grade_id or ""):
        wanted = "item" if role in ("solution", "test") else "id"
        raise SourceError(f'it needs {wanted}="…": letters, digits and underscores')
    points, text, tags = None, cell.source, []
    if role == "solution":
        text = solution_source(text, item)
    elif role == "test":
        if "borrow" in cell.metadata:
            visible, own = split_test(text)
            (ground, *_), options = read_parts(own), _borrow_options(cell.metadata)
            hidden = f"{own}\n\n\n{rest_on(borrowed_tests(sources, item, **options), ground.name)}"
        else:
            visible, hidden = split_test(text)
        points, tags = sum(part.points for part in read_parts(hidden)), [GO_ON]
        text = "\n".join([checks.call(cell) if checks else visible, HIDDEN_BEGIN, hidden, HIDDEN_END])
    elif role is not None:
        text = given_cell(text) if role == "given" else text
        tags = [role, GO_ON] if role == "show" else [role]
    nbgrader = _nbgrader(grade_id, points, solution=role == "solution")
    metadata: dict[str, Any] = {"nbgrader": nbgrader, **({"tags": tags} if tags else {})}
    if role == "solution" and (libraries := _library_options(cell.metadata)):
        metadata["mha"] = libraries
    make = nbformat.v4.new_markdown_cell if cell.cell_type == "markdown" else nbformat.v4.new_code_cell
    return make(text.strip("\n"), id=grade_id, metadata=metadata)


def _answer_cell(cell: Any, rubrics: dict[str, Rubric]) -> Any:
    """A text that a person marks."""
    item = cell.metadata.get("item")
    if cell.cell_type != "markdown" or not re.fullmatch(r"[A-Za-z]\w*", item or ""):
        raise SourceError('an answer is a [markdown] cell with item="…": letters, digits and underscores')
    if item not in rubrics:
        raise SourceError(f"the answer {item} has no rubric")
    metadata = {"nbgrader": _nbgrader(item, rubrics[item].points, solution=True)}
    return nbformat.v4.new_markdown_cell(cell.source.strip("\n"), id=item, metadata=metadata)


def _nbgrader(grade_id: str, points: float | None, *, solution: bool) -> dict[str, Any]:
    """nbgrader's metadata of a cell; what is worth points is graded."""
    metadata = {
        "schema_version": 3,
        "grade_id": grade_id,
        "grade": points is not None,
        "solution": solution,
        "locked": not solution,
        "task": False,
    }
    return metadata if points is None else metadata | {"points": points}


def _is_answer(cell: Any) -> bool:
    return bool(cell.metadata.nbgrader.solution and cell.metadata.nbgrader.grade)


def _library_options(metadata: Any) -> dict[str, list[str]]:
    """The names that a solution cell asks for or may use, which its head gives with spaces between them."""
    return {key: str(metadata[key]).split() for key in ("asks_for", "may_use") if key in metadata}


def _borrow_options(metadata: Any) -> dict[str, Any]:
    borrow, share = str(metadata["borrow"]), metadata.get("share", 1.0)
    if not re.fullmatch(r"\w+\.\w+", borrow) or not isinstance(share, int | float) or share <= 0:
        raise SourceError('it should say borrow="assignment.item" and share=, a positive number')
    return {"borrow": borrow, "share": float(share)}


def _check_order(cells: list[Any]) -> None:
    """The notebook starts with text, has no id twice, and every item is written first and tested later."""
    if not cells or cells[0].cell_type != "markdown":
        raise SourceError("the first cell should be text")
    ids = [cell.id for cell in cells]
    for grade_id in ids:
        if ids.count(grade_id) > 1:
            raise SourceError(f"two cells have the id {grade_id!r}")
    tested = [cell for cell in cells if not _is_answer(cell)]
    items = [cell.id for cell in tested if cell.metadata.nbgrader.solution]
    tests = [cell.id.removeprefix("test_") for cell in tested if cell.metadata.nbgrader.grade]
    for item in items:
        if item not in tests:
            raise SourceError(f"item {item!r} has no test")
    for item in tests:
        if item not in items:
            raise SourceError(f"the test of {item!r} has no solution cell")
        if ids.index(item) > ids.index(f"test_{item}"):
            raise SourceError(f"the test of {item!r} stands before its solution cell")


def _fill_in(cells: list[Any], rubrics: dict[str, Rubric]) -> None:
    """Replace {points ITEM} and {points} in text by what the item and all items are worth, {criteria ITEM} too."""
    points = {
        cell.id.removeprefix("test_"): cell.metadata.nbgrader.points
        for cell in cells
        if cell.metadata.nbgrader.grade
    }
    points[""] = sum(points.values())

    def number(match: re.Match[str]) -> str:
        if match[1] not in points:
            raise SourceError(f"{match[0]} stands in the text, but there is no item {match[1]!r}")
        return f"{points[match[1]]:g}"

    def criteria(match: re.Match[str]) -> str:
        if match[1] not in rubrics:
            raise SourceError(f"{match[0]} stands in the text, but there is no rubric of {match[1]!r}")
        return rubrics[match[1]].in_markdown()

    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\{points ?(\w*)\}", number, cell.source)
            cell.source = re.sub(r"\{criteria (\w+)\}", criteria, cell.source)
