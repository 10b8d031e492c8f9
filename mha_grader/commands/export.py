"""`mha-grade export`: grades for other programs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mha_grader.commands.arguments import add_assignment
from mha_grader.course.folders import Course
from mha_grader.instructor import export, gradebook, results
from mha_grader.sandbox.text import clean

DESCRIPTION = """\
Write the grades of an assignment, with what people changed and with penalties:

  grades/ASSIGNMENT.csv, .json        all that is known; look_at has the lines that a person should look at
  grades/ASSIGNMENT-moodle.csv        for "Upload grading worksheet" of the assignment (English Moodle with offline
                                      grading worksheets; the maximum grade must be the same), and, by ID number or
                                      e-mail address, for the import of the gradebook
  grades/ASSIGNMENT-canvas.csv        for "Import" of the gradebook; Canvas asks if the assignment is not called so
  grades/ASSIGNMENT-brightspace.csv   for "Import" of the grades, for a grade item of the assignment's name
  grades/ASSIGNMENT-blackboard.csv    for "Work Offline", "Upload" of the Grade Center, as a new column of text; to
                                      fill one that is there, copy its heading from Blackboard's own download

Gradescope takes no grades back, and Sakai only in the zip file of its own download: copy from ASSIGNMENT.csv.
While a person has yet to mark an answer, the final score and the grade for a platform are empty, and not_marked
names the answer.

With a roster.csv, all its students are in every file. Which files for platforms are written depends on where the
hand-ins were collected from; if that was nowhere, it is all of them."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "export",
        help="write the grades as CSV and JSON, and for Moodle, Canvas, Brightspace and Blackboard",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
    )
    add_assignment(parser)
    parser.add_argument(
        "--missing",
        choices=("empty", "zero"),
        default="empty",
        help="what those in the roster get who handed in nothing (default: an empty cell)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export; returns the exit code."""
    course, name = Course.find(arguments.course), arguments.assignment
    records = results.graded(course, name)
    gradebook.settle(course, name)
    everyone = results.results(course, name, records, gradebook.read(course, name))
    nothing = 0.0 if arguments.missing == "zero" else None
    written = (
        *export.write(course, name, everyone, nothing),
        *export.write_for_platforms(course, name, everyone, nothing),
    )
    for path in written:
        print(path)
    if waiting := export.not_final(everyone):
        print(
            f"mha-grade: {len(waiting)} of {len(records)} are not fully marked, and have no final score yet: "
            f"{', '.join(map(clean, waiting))} (see mha-grade marks {name})",
            file=sys.stderr,
        )
    return 0
