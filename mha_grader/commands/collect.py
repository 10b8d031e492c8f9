"""`mha-grade collect`: hand-ins out of the zip file of a platform."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mha_grader.commands.arguments import add_assignment
from mha_grader.course.assignment import load_assignment
from mha_grader.course.folders import Course
from mha_grader.instructor import collect, terminal
from mha_grader.instructor.origins import SCHEMES
from mha_grader.sandbox.text import clean

DESCRIPTION = """\
Take the notebooks out of the zip file in which a platform gives all hand-ins, and put each into
submitted/STUDENT/ASSIGNMENT/. What a student handed in before is replaced.

  moodle       Full Name_1234567_assignsubmission_file_/notebook.ipynb, or with the file's name behind the last _
  canvas       lastnamefirstname_LATE_12345_678901_notebook-2.ipynb
  brightspace  12345-678 - Full Name - Nov 1, 2026 1133 PM/notebook.ipynb
  blackboard   Homework 1_login_attempt_2026-11-01-23-33-00_notebook.ipynb, and Blackboard's own .txt file
  gradescope   assignment_1_export/submission_12345/notebook.ipynb, and submission_metadata.yml
  sakai        ASSIGNMENT/Last, First(login)/Submission attachment(s)/notebook.ipynb
  plain        STUDENT/notebook.ipynb or STUDENT/ASSIGNMENT/notebook.ipynb, also in a folder submitted

With a roster.csv (see `mha-grade roster import --help`), STUDENT is the id there. A student is found by what the
platform guarantees: Canvas' number, the login of Blackboard and Sakai, Gradescope's student ID and address, and for
Moodle with --worksheet the ID number and the address. Moodle without it, and Brightspace, tell only a name: it
counts if one student in the roster has it. Who is not found is listed, and nothing of theirs is taken. Without a
roster, STUDENT is the name or the number that the platform tells.

A student's zip file is opened for the notebooks in it; other archives are not. Only notebooks are read, none larger
than grading takes, and nothing is written outside the student's own folder. What does not fit the scheme is named
and not taken, and what somebody else handed in is never replaced.

A timestamp.txt is written where a time is told: by --times, by Brightspace and Blackboard (in the time zone of this
machine), by Sakai and Gradescope, and by Moodle's worksheet. Canvas only marks hand-ins as late: they count as at
least a second late until --times tells more."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "collect",
        help="put the hand-ins of a platform's zip file into submitted/",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
    )
    add_assignment(parser)
    parser.add_argument("archive", type=Path, metavar="ARCHIVE.zip", help="as it was downloaded")
    parser.add_argument("--scheme", choices=SCHEMES, help="how its files are named (default: guessed)")
    parser.add_argument(
        "--worksheet", type=Path, metavar="FILE.csv", help="Moodle's grading worksheet of the assignment"
    )
    parser.add_argument(
        "--times", type=Path, metavar="FILE.csv", help="a table with the columns student and time"
    )
    parser.add_argument(
        "--groups",
        action="store_true",
        help="a hand-in counts for all students who have the same group in the roster",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Collect; returns the exit code."""
    course = Course.find(arguments.course)
    assignment = load_assignment(course.root, arguments.assignment)
    extra = collect.Extra(arguments.scheme, arguments.worksheet, arguments.times, arguments.groups)
    found = collect.collect(course, assignment.name, arguments.archive, extra)
    terminal.print_collected(found)
    for student, why in found.refused.items():
        print(f"mha-grade: {clean(student)} was not collected: {clean(why, 1000)}", file=sys.stderr)
    for who, why in found.unknown.items():
        print(f"mha-grade: {clean(who)} was not collected: {clean(why, 1000)}", file=sys.stderr)
    return 3 if found.refused or found.unknown else 0
