"""Later due dates of single students: extensions.csv in the course's folder, with student, assignment and due."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, time
from pathlib import Path

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.course.store import write_whole
from mha_grader.instructor import roster
from mha_grader.instructor.metadata import parse_time

COLUMNS = ("student", "assignment", "due")
Extensions = dict[tuple[str, str], datetime]  # by student and assignment


def _path(course: Course) -> Path:
    return course.root / "extensions.csv"


def load(course: Course) -> Extensions | None:
    """The extensions; None if there is no extensions.csv.

    Raises:
        CourseError: if the file cannot be read.
    """
    path = _path(course)
    if not path.exists():
        return None
    found: Extensions = {}
    for line, row in enumerate(roster.read_table(path), 2):
        if set(row) != set(COLUMNS):
            raise CourseError(f"{path} needs the columns {', '.join(COLUMNS)}, and has {', '.join(row)}")
        due = end_of(row["due"])
        if due is None:
            raise CourseError(
                f"{path}, line {line}: {row['due']!r} is no day as in 2026-11-05 or 2026-11-05 18:00"
            )
        found[row["student"], row["assignment"]] = due
    return found


def grant(course: Course, student: str, assignment: str, due: datetime) -> None:
    """Write an extension into extensions.csv; it replaces one of the same student and assignment."""
    table = (load(course) or {}) | {(student, assignment): due}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (who, what), until in sorted(table.items()):
        cell = f"'{who}" if roster.FORMULA.match(who) else who
        writer.writerow([cell, what, f"{until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"])
    write_whole(_path(course), text.getvalue())


def end_of(text: str) -> datetime | None:
    """A due date as people write it: a day means its last second; without a zone it is this machine's time."""
    try:
        day = datetime.strptime(text.strip(), "%Y-%m-%d")
    except ValueError:
        return parse_time(text)
    return datetime.combine(day, time(23, 59, 59)).astimezone()
