"""`mha-grade extend`: a later due date for one student."""

from __future__ import annotations

import argparse
from typing import Any

from mha_grader.commands.arguments import STUDENT, add_assignment
from mha_grader.course.assignment import CourseError, load_assignment
from mha_grader.course.folders import Course
from mha_grader.instructor import extensions, gradebook, roster
from mha_grader.sandbox.text import clean

DESCRIPTION = """\
Give a student a later due date for an assignment. It is written into extensions.csv in the course's folder, and
counts at once, also for a hand-in that has been graded. To take it back, delete its line there and run
`mha-grade grade ASSIGNMENT`."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "extend",
        help="give a student a later due date",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("student", metavar="STUDENT", help=STUDENT)
    add_assignment(parser)
    parser.add_argument(
        "due",
        metavar="DATE",
        help="2026-11-05 (to the end of that day) or '2026-11-05 18:00', in this machine's time zone",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Enter the extension; returns the exit code."""
    course = Course.find(arguments.course)
    assignment = load_assignment(course.root, arguments.assignment).name
    student = _student(course, arguments.student)
    due = extensions.end_of(arguments.due)
    if due is None:
        raise CourseError(f"{arguments.due!r} is no date as in 2026-11-05 or '2026-11-05 18:00'")
    regular = gradebook.due_date(course, assignment)
    if regular is None:
        raise CourseError(
            f"{assignment} has no due date, so nobody needs a later one. Set it in formgrader, or by "
            f'`nbgrader db assignment add {assignment} --duedate="2026-11-01 23:59:59 CET"`'
        )
    if due < regular:
        raise CourseError(
            f"{due:%Y-%m-%d %H:%M} is before {regular.astimezone():%Y-%m-%d %H:%M}, when it is due anyway"
        )
    extensions.grant(course, student, assignment, due)
    gradebook.settle(course, assignment)
    print(f"{clean(student)}: {assignment} is due {due.astimezone():%Y-%m-%d %H:%M %Z}")
    return 0


def _student(course: Course, text: str) -> str:
    """The id of the student who is meant.

    Raises:
        CourseError: if nobody is known by that name.
    """
    people = roster.load(course)
    if people is not None:
        return people.named(text).id
    if not roster.is_student_id(text) or not (course.submitted / text).is_dir():
        raise CourseError(
            f"there is no {roster.NAME}, and {text!r} has handed in nothing yet: make the roster first "
            "(`mha-grade roster import`), or check the name"
        )
    return text
