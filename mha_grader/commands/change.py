"""`mha-grade change`: other items, or other points, in an assignment that is being graded."""

from __future__ import annotations

import argparse
from typing import Any

from mha_grader.course.assignment import CourseError, assignments
from mha_grader.course.folders import Course

DESCRIPTION = """\
Show which items of an assignment the source would drop, add or give other points, compared with what hand-ins were
graded for; with --yes, do it. Texts, visible checks and hidden tests need no such step: `make exercises` is enough.

Scores of an item that is dropped leave the gradebook; they are kept in grades/ASSIGNMENT-dropped.csv. A new item
has 0 points for everybody until the hand-ins are graded again. Nobody's other scores or
comments change."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "change",
        help="drop items of a graded assignment, or change their points",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="its name, for instance single_head")
    parser.add_argument(
        "--yes", action="store_true", help="change it; without this, only show what would change"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show or make the changes; returns the exit code."""
    from nbgrader.converters.base import NbGraderException  # takes a second

    from mha_grader.course import authoring
    from mha_grader.course.sources import SourceError

    course, name = Course.find(arguments.course), arguments.assignment
    if name not in assignments(course.root):
        raise CourseError(f"there is no assignment {name!r} in {course.root}")
    try:
        changes = authoring.item_changes(course.root, name)
        if arguments.yes:
            authoring.release(course.root, name, items_may_change=True)
    except (SourceError, NbGraderException) as error:
        raise CourseError(str(error)) from None
    if not changes:
        print(f"{name}: no graded item changes" + ("; it is released" if arguments.yes else ""))
        return 0
    print(*changes, sep="\n")
    if arguments.yes:
        print(f"\n{name} is released so. Now grade the class again and tell it:")
        print(f"  mha-grade grade {name}\n  mha-grade feedback {name}")
    else:
        print(f"\nNothing has been changed. To change it for everybody, run: mha-grade change {name} --yes")
    return 0
