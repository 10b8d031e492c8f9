"""`mha-grade feedback`: a page for each student."""

from __future__ import annotations

import argparse
from typing import Any

from mha_grader.commands.arguments import add_assignment, add_only_student
from mha_grader.course.assignment import load_assignment
from mha_grader.course.folders import Course
from mha_grader.instructor import feedback, results


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "feedback",
        help="write a page for each student",
        description="Write feedback/STUDENT/ASSIGNMENT/ASSIGNMENT.html for hand-ins that have been graded. "
        "Scores and comments that people gave in formgrader are in it.",
    )
    add_assignment(parser)
    add_only_student(parser)
    parser.add_argument(
        "--zip",
        action="store_true",
        help="also write feedback/ASSIGNMENT.zip with STUDENT/ASSIGNMENT.html; what was collected from a platform "
        'has the names that it asks for: Moodle\'s "Upload multiple feedback files in a zip", Canvas\' "Upload '
        'submissions", Brightspace\'s "Add feedback files", Sakai\'s "Upload all"',
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the pages; returns the exit code."""
    course = Course.find(arguments.course)
    assignment = load_assignment(course.root, arguments.assignment)
    only = results.student_id(course, arguments.student) if arguments.student else None
    records, entries = results.shared(course, assignment.name, only)
    pages = feedback.write(course, assignment, records, entries)
    print(f"{len(pages)} written: {course.root}/feedback/<student>/{assignment.name}/{assignment.name}.html")
    if arguments.zip:
        print(feedback.write_zip(course, assignment.name, dict(zip(records, pages, strict=True))))
    return 0
