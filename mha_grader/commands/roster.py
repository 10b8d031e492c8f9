"""`mha-grade roster`: who the students are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mha_grader.course.folders import Course
from mha_grader.instructor import roster_import
from mha_grader.instructor.roster import COLUMNS, NAME
from mha_grader.sandbox.text import clean

DESCRIPTION = f"""\
roster.csv in the course's folder says who the students are. It has the columns
  {", ".join(COLUMNS)}
and only id must be filled in: it is the name of the student's folders, and stays the same for the whole term. With
a roster, collect takes hand-ins of its students only, and every table and export has all of them.

`roster import` adds the students of a table that a platform exports, or what it says of those who are there:

  Moodle       Participants, or the gradebook: "Download table data as" CSV, in English
  Canvas       Grades, "Export"
  Brightspace  Grades, "Export": key field "Both", and under user details the names and the e-mail address

Students are found again by the platform's number, the e-mail address, the login, or the id. Whoever is missing in
the file stays in the roster and is named. You may edit roster.csv with a spreadsheet."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("roster", help="import who the students are")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    imports = actions.add_parser(
        "import",
        help="from a table that Moodle, Canvas or Brightspace exports",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    imports.add_argument("file", type=Path, metavar="FILE.csv", help="as it was downloaded")
    imports.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Import a table; returns the exit code."""
    course = Course.find(arguments.course)
    found = roster_import.import_table(course, arguments.file)
    print(f"{NAME}: {len(found.new)} new, {len(found.changed)} changed, {len(found.unchanged)} as before")
    if found.not_in_file and (found.new or found.changed or found.unchanged):
        print(f"in the roster and not in this file: {', '.join(map(clean, found.not_in_file))}")
    for line, why in found.refused.items():
        print(f"mha-grade: {clean(line)} was not imported: {clean(why)}", file=sys.stderr)
    return 3 if found.refused else 0
