"""`mha-grade try`: the hidden tests on plain files. The module cannot be called `try`, a word of Python's."""

from __future__ import annotations

import argparse
import json
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mha_grader.commands.arguments import add_assignment
from mha_grader.course.assignment import load_assignment, load_version
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord
from mha_grader.grading import schedule
from mha_grader.grading.grade import grade_item
from mha_grader.grading.settings import settings_of
from mha_grader.instructor import terminal
from mha_grader.sandbox.sandbox import probe


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "try",
        help="grade plain files that define one item",
        description="Grade Python files, each of which defines one item of an assignment (and whatever it needs), "
        "through the same sandbox and the same hidden tests as hand-ins.",
    )
    add_assignment(parser)
    parser.add_argument(
        "item", metavar="ITEM", help="the name that each file defines, for instance attention"
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.py", help="graded one by one")
    parser.add_argument("--json", action="store_true", help="one JSON object a file instead of a table")
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class _Task:
    course: Course
    assignment: str
    version: str
    item: str
    source: str


def run(arguments: argparse.Namespace) -> int:
    """Grade the files; returns the exit code."""
    course = Course.find(arguments.course)
    assignment = load_assignment(course.root, arguments.assignment)
    assignment.cell("solution", arguments.item)  # complains if there is no such item
    sources, unreadable = _read_sources(arguments.files)
    probe()
    tasks = [
        _Task(course, assignment.name, assignment.version, arguments.item, source)
        for source in sources.values()
    ]
    records: dict[int, ItemRecord] = {}
    for index, result in schedule.run_all(_grade_one, tasks) if tasks else ():
        if isinstance(result, schedule.Failed):
            raise result.error
        records[index] = result
    for index, path in enumerate(sources):
        if arguments.json:
            print(json.dumps(terminal.as_json(path, assignment.name, records[index]), ensure_ascii=False))
        else:
            terminal.print_item(path, records[index])
    for path, why in unreadable.items():
        print(f"mha-grade: cannot read {path}: {why}", file=sys.stderr)
    return 3 if sources and unreadable else 1 if unreadable else 0


def _read_sources(paths: Sequence[Path]) -> tuple[dict[Path, str], dict[Path, Exception]]:
    """The texts of Python files, in the encoding that each declares (PEP 263), and why the others have none."""
    sources: dict[Path, str] = {}
    unreadable: dict[Path, Exception] = {}
    for path in paths:
        try:
            with tokenize.open(path) as file:
                sources[path] = file.read()
        except (
            OSError,
            UnicodeDecodeError,
            SyntaxError,
        ) as error:  # SyntaxError: an encoding that nobody knows
            unreadable[path] = error
    return sources, unreadable


def _grade_one(task: _Task) -> ItemRecord:
    assignment = load_version(task.course.root, task.assignment, task.version)
    return grade_item(assignment, settings_of(task.course), task.item, task.source)
