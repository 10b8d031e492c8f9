"""`mha-grade log`: all that is known about one hand-in."""

from __future__ import annotations

import argparse
from typing import Any

from mha_grader.commands.arguments import STUDENT, add_assignment
from mha_grader.course.folders import Course
from mha_grader.instructor import results, terminal


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "log",
        help="tell an instructor all that is known about one hand-in",
        description="Print what was found in one hand-in: its status, notes, every part's verdict, lines that a "
        "person should look at, scores that people changed, and what happened in the sandbox. For an appeal run "
        "`mha-grade grade ASSIGNMENT --student ID --force` before.",
    )
    add_assignment(parser)
    parser.add_argument("student", metavar="STUDENT", help=STUDENT)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what is known; returns the exit code."""
    course = Course.find(arguments.course)
    student = results.student_id(course, arguments.student)
    records, entries = results.shared(course, arguments.assignment, student)
    terminal.print_log(results.called(course, student), records[student], entries.get(student))
    return 0
