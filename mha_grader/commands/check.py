"""`mha-grade check`: the hidden tests and the diagnosis on one's own code."""

from __future__ import annotations

import argparse
import json
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import CourseError
from mha_grader.course.records import ItemRecord
from mha_grader.grading.grade import grade_item, grade_submission
from mha_grader.grading.rebuild import MAX_BYTES, Unusable, parse
from mha_grader.learn import show
from mha_grader.learn.material import Material
from mha_grader.learn.process import CannotStart
from mha_grader.learn.progress import Progress
from mha_grader.learn.session import OwnSettings
from mha_grader.sandbox.text import clean

DESCRIPTION = """\
Run the hidden tests of an assignment on your own code and say what is wrong, on any system:

  mha-grade check single_head.ipynb                  every item of a notebook, as it was last saved
  mha-grade check single_head softmax my_softmax.py  one item in a plain file
  mha-grade check single_head --solution softmax     the course's solution: once you have all points, or at the
                                                     second time that you ask

This is only for you. Your code runs in a plain process of this machine; hand-ins are graded in a sandbox, by
`mha-grade grade`. The best result of each item is kept: see `mha-grade progress`."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check",
        help="test your own code: for those who learn alone",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        nargs="+",
        metavar="WHAT",
        help="a notebook; or ASSIGNMENT ITEM FILE.py; with --solution a notebook or an assignment's name",
    )
    parser.add_argument("--solution", metavar="ITEM", help="show the course's solution of an item")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    what: list[str] = arguments.what
    material, progress = Material(), Progress()
    try:
        if len(what) == 1 and arguments.solution:
            name = what[0] if what[0] in material.names else assignment_of(Path(what[0]), material)
            show_solution(material, progress, name, arguments.solution)
        elif len(what) == 1:
            check_notebook(material, progress, Path(what[0]))
        elif len(what) == 3 and not arguments.solution:
            check_file(material, progress, what[0], what[1], Path(what[2]))
        else:
            arguments.usage_error("name a notebook, or an assignment, an item and a file")
    except CannotStart as error:
        raise CourseError(str(error)) from None
    return 0


def check_notebook(material: Material, progress: Progress, path: Path) -> None:
    """Check all items of a notebook, and print what comes of it.

    Raises:
        CourseError: if the file is no notebook of an assignment, or cannot be read.
        CannotStart: if no process can be started.
    """
    name = assignment_of(path, material)
    assignment = material.assignment(name)
    _say(show.opening_lines(f"{path}, as it was last saved"))
    record = grade_submission(assignment, OwnSettings.of(material.root), read(path))
    if not record.usable:
        raise CourseError("; ".join(without_advice(path, note) for note in record.notes))
    stamp = stamp_of(read(path))
    if stamp and f"{stamp.get('version')}+{stamp.get('digest')}" != assignment.version:
        theirs = clean(str(stamp.get("version")))
        print(f"note: the notebook is of version {theirs}; the tests are those of {assignment.version}")
    for note in record.notes:
        print(f"note: {clean(note)}")
    _tell(name, record.items)
    for answer in record.answers:
        print(f"\n{answer.item}: a person marks this one")
        print(f"  A model answer, to compare with: mha-grade check {name} --solution {answer.item}")
    print(
        f"\nTogether {record.score:g} of {record.max_by_tests:g} points. What to read next: mha-grade progress"
    )
    _keep(progress, name, record.items)


def check_file(material: Material, progress: Progress, name: str, item: str, path: Path) -> None:
    """Check one item in a plain file, and print what comes of it.

    Raises:
        CourseError: if there is no such assignment, item or file.
        CannotStart: if no process can be started.
    """
    assignment = material.assignment(name)
    assignment.cell("solution", item)  # complains if there is no such item
    if path.suffix == ".ipynb":
        raise CourseError(f"{path} is a notebook: check it whole, with mha-grade check {path}")
    read(path)  # complains if it cannot be read
    try:
        with tokenize.open(path) as file:
            source = file.read()
    except (UnicodeDecodeError, SyntaxError):
        raise CourseError(f"{path} is not text in UTF-8, as Python files are: save it as such") from None
    _say(show.opening_lines(f"{item} in {path}"))
    record = grade_item(assignment, OwnSettings.of(material.root), item, source)
    _tell(name, (record,))
    _keep(progress, name, (record,))


def _say(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


def _keep(progress: Progress, name: str, records: tuple[ItemRecord, ...]) -> None:
    """Keep the points, if that can be; the verdict is worth something without it."""
    try:
        progress.enter(name, records)
    except CourseError as error:
        print(f"note: these points are not kept: {error}", file=sys.stderr)


def _tell(name: str, records: tuple[ItemRecord, ...]) -> None:
    for record in records:
        print("\n" + "\n".join(show.item_lines(record)))
        if record.score < record.max_score:
            continue
        print(f"  The course's solution, to compare with: mha-grade check {name} --solution {record.item}")


def show_solution(material: Material, progress: Progress, name: str, item: str) -> None:
    """Print the course's solution of an item; at the first time only to those who have all its points.

    Raises:
        CourseError: if there is no such assignment or item.
    """
    released = material.released(name)
    if item not in (known := (*released.points, *released.marked)):
        raise CourseError(f"assignment {name!r} has no item {item!r}; it has {', '.join(known)}")
    solved = item in released.points and (progress.points(name, item) or 0.0) >= released.points[item]
    if not solved and not progress.asked(name, item):
        progress.ask(name, item)
        first = (
            f"You do not have all points of {item} yet."
            if item in released.points
            else "Write your own first."
        )
        print(
            f"{first} To see the solution all the same, ask once more. What else "
            f"may help: {released.reading(item) or 'the hints in the notebook'}."
        )
        return
    if item in released.marked:
        print("\n".join(show.answer_lines(material.assignment(name), item)))
        return
    print("\n".join(show.solution_lines(material.assignment(name), item, released.reading(item))))


def assignment_of(path: Path, material: Material) -> str:
    """The name of the assignment that a notebook belongs to: by its stamp, else by the file's name.

    Raises:
        CourseError: if there is no such file, it is not a notebook, or it belongs to none.
    """
    data = read(path)
    if path.suffix == ".py":
        raise CourseError(
            f"{path} is a Python file: name its assignment and its item, as in "
            f"mha-grade check single_head softmax {path}"
        )
    try:
        parse(data)
    except Unusable as error:
        raise CourseError(without_advice(path, str(error))) from None
    for name in (stamp_of(data).get("assignment"), path.stem):
        if name in material.names:
            return str(name)
    raise CourseError(
        f"{path} is not a notebook of this course: its assignments are {', '.join(material.names)}"
    )


def read(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        CourseError: if it cannot be read.
    """
    try:
        if path.is_dir():
            raise CourseError(f"{path} is a folder, and not a file{meant(path)}")
        if path.stat().st_size > MAX_BYTES:
            raise CourseError(f"{path} is larger than 100 MB: clear all outputs and save it")
        return path.read_bytes()
    except OSError as error:
        raise CourseError(f"cannot read {path}: {error.strerror}{meant(path)}") from None


def meant(path: Path) -> str:
    """A question that names the notebook that was probably meant by the path of none; "" if none is near."""
    for near in (path / f"{path.name}.ipynb", path.with_suffix("") / f"{path.stem}.ipynb"):
        if near.is_file():
            return f". Did you mean {near}?"
    return ""


def without_advice(path: Path, text: str) -> str:
    """What is wrong with a file, without the advice for those who hand in."""
    return f"{path} cannot be checked: {text.partition(': ')[0]}"


def stamp_of(data: bytes) -> dict[str, Any]:
    """What a notebook says about its assignment; nothing if it says nothing."""
    try:
        stamp = json.loads(data)["metadata"]["mha"]
    except (ValueError, KeyError, TypeError):
        return {}
    return stamp if isinstance(stamp, dict) else {}
