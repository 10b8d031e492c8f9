"""`mha-grade change`: change an assignment whose hand-ins have been graded."""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha_grader.commands.arguments import add_assignment
from mha_grader.course.assignment import CourseError
from mha_grader.course.cells import id_of, python_of, text_of
from mha_grader.course.folders import Course
from mha_grader.course.sources import SourceError
from mha_grader.instructor import gradebook


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "change",
        help="change an assignment whose hand-ins have been graded",
        description="Show how the released notebook and the gradebook differ from what the source generates now: "
        "items, their points, cells. With --yes, release the new state. The scores of dropped items leave the "
        "gradebook for grades/ASSIGNMENT-dropped.csv; everything else that is in it stays.",
    )
    add_assignment(parser)
    parser.add_argument("--yes", action="store_true", help="carry it out")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the differences and, if that is wanted, carry them out."""
    from nbgrader.converters.base import NbGraderException  # takes a second

    from mha_grader.course import authoring

    course, name = Course.find(arguments.course), arguments.assignment
    try:
        lines, hand_in_count = differences(course, name)
        print("\n".join(lines) if lines else f"{name} is as its source generates it")
        if arguments.yes and lines:
            authoring.release(course.root, name, change_items=True)
    except (SourceError, NbGraderException) as error:
        raise CourseError(str(error)) from None
    if lines and not arguments.yes:
        print(f"\nNothing was changed. To carry it out: mha-grade change {name} --yes")
    elif lines and hand_in_count:
        print(f"\nDone. Grade the class again ({hand_in_count} hand-ins), and tell it:")
        print(f"  mha-grade grade {name}\n  mha-grade feedback {name}\n  mha-grade export {name}")
    return 0


def differences(course: Course, name: str) -> tuple[list[str], int]:
    """What would change, a line each, and how many hand-ins are in the gradebook.

    Raises:
        SourceError: if the source is not right.
    """
    from mha_grader.course import authoring
    from mha_grader.course.recorded_cells import graded_points, points_of

    coursedir = gradebook.course_directory(course)
    with authoring.staged(course.root, name) as (made, notebook):
        folder = Path(coursedir.release_directory, name)
        old, new = _files(course.root / folder), _files(made / folder)
    wanted = points_of(notebook)
    with authoring.commands_beside_python():
        known, hand_in_count = graded_points(coursedir, name)
    lines = _compare_points(known, wanted)
    file = f"{name}.ipynb"
    lines += _compare("cell", _cells(old.get(file)), _cells(new.get(file)))
    lines += _left_over([_item(name) for name in known if name not in wanted], new.get(file))
    if not lines and old.get(file) != new.get(file):
        lines.append("the notebook's version changes: its hidden tests or its solutions have changed")
    old.pop(file, None), new.pop(file)
    return lines + _compare("file", old, new), hand_in_count


def _compare_points(old: dict[str, float], new: dict[str, float]) -> list[str]:
    lines = [f"item {_item(name)} ({old[name]:g} points) is dropped" for name in old if name not in new]
    lines += [f"item {_item(name)} ({new[name]:g} points) is added" for name in new if name not in old]
    both = [name for name in new if name in old and old[name] != new[name]]
    return lines + [f"item {_item(name)}: {old[name]:g} points become {new[name]:g}" for name in both]


def _left_over(dropped: Sequence[str], notebook: bytes | None) -> list[str]:
    """Where the new notebook still names a dropped item, or its check: such code fails, such text misleads."""
    return [
        f"cell {id_of(cell, number)} still names {item}: change it, too"
        for item in dropped
        for number, cell in enumerate(_all_cells(notebook))
        if _names(cell, item)
    ]


def _names(cell: dict[str, Any], item: str) -> bool:
    if cell["cell_type"] != "code":
        return f"`{item}`" in text_of(cell)
    try:
        nodes = list(ast.walk(ast.parse(python_of(text_of(cell)))))
    except SyntaxError:  # of another kernel, or not code
        return False
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.name for node in nodes if isinstance(node, ast.alias)}
    return not found.isdisjoint({item, f"check_{item}"})


def _item(grade_id: str) -> str:
    return grade_id.removeprefix("test_")


def _compare(what: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    lines = [f"{what} {name} is dropped" for name in old if name not in new]
    lines += [f"{what} {name} is added" for name in new if name not in old]
    return lines + [f"{what} {name} changes" for name in new if name in old and old[name] != new[name]]


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()}


def _cells(notebook: bytes | None) -> dict[str, str]:
    return {id_of(cell, number): text_of(cell) for number, cell in enumerate(_all_cells(notebook))}


def _all_cells(notebook: bytes | None) -> list[dict[str, Any]]:
    return json.loads(notebook)["cells"] if notebook else []
