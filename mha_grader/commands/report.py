"""`mha-grade report`: a page about the class."""

from __future__ import annotations

import argparse
from typing import Any

from mha_grader.commands.arguments import add_assignment
from mha_grader.course.assignment import load_assignment
from mha_grader.course.folders import Course
from mha_grader.instructor import gradebook, report, results


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="write a page about the class",
        description="Write grades/ASSIGNMENT-report.html: scores, items and parts, the misconceptions of the "
        "class, items that discriminate poorly between students, hand-ins that need a person, and hand-ins that "
        "are nearly the same.",
    )
    add_assignment(parser)
    parser.add_argument(
        "--pseudonyms",
        action="store_true",
        help="put pseudonyms for the students' ids (the same in every report of the course) and leave out lines of "
        "their code, so that the page can be shown to others",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; returns the exit code."""
    course = Course.find(arguments.course)
    assignment = load_assignment(course.root, arguments.assignment)
    records = results.graded(course, assignment.name, None)
    gradebook.settle(course, assignment.name)
    entries = gradebook.read(course, assignment.name)
    print(report.write(course, assignment, records, entries, pseudonyms=arguments.pseudonyms))
    return 0
