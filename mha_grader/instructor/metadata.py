"""What a platform says of hand-ins beside their files' names: who handed in, and when.

Blackboard puts a text file of its own beside each attempt, which names the user. Gradescope names the students of
each hand-in, and the time, in submission_metadata.yml. Sakai writes a timestamp.txt. Moodle tells the users and the
times in the grading worksheet of the assignment. For all others a table of students and times can be given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import CourseError
from mha_grader.instructor import roster
from mha_grader.instructor.origins import Origin

GRADESCOPES = "submission_metadata.yml"
MAX_GRADESCOPES = 20 * 2**20  # bytes
BLACKBOARDS_USER = re.compile(
    r"Name: [^\n]*\(([^()\n]+)\)\s*(?:\n|$)"
)  # the first line: students write below it
DIGITS_ONLY = re.compile(r"\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b")  # is 3/4 in March or in April?
A_DAY_AND_AN_HOUR = re.compile(r"\d{4}.*\d:\d\d|\d{4}-\d\d-\d\dT\d\d", re.DOTALL)


@dataclass(frozen=True)
class Submission:
    """One hand-in of Gradescope: all who handed it in, and when."""

    people: tuple[Origin, ...]
    time: datetime | None


def gradescope(data: bytes) -> dict[str, Submission]:
    """What Gradescope's submission_metadata.yml says of each folder submission_….

    It is the file in the archive of "Export submissions": by folder, `:submitters:` with `:name:`, `:sid:` and
    `:email:`, and `:created_at:`.

    Raises:
        CourseError: if it cannot be read.
    """
    import yaml  # type: ignore[import-untyped]

    try:
        found = yaml.load(data, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # 007 stays 007
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CourseError(f"cannot read {GRADESCOPES} of the archive: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict):
        raise CourseError(f"{GRADESCOPES} of the archive names no hand-ins")
    return {str(folder): _submission(about) for folder, about in found.items() if isinstance(about, dict)}


def _submission(about: Mapping[str, Any]) -> Submission:
    submitters = about.get(":submitters")
    people = tuple(_person(each) for each in submitters or () if isinstance(each, dict))
    return Submission(people, _time(about.get(":created_at")))


def _time(text: Any) -> datetime | None:
    """The time that YAML takes a text for; UTC if it names no zone."""
    import yaml

    try:
        time = yaml.safe_load(text) if isinstance(text, str) else None
    except (yaml.YAMLError, ValueError):
        return None
    if not isinstance(time, datetime) or not 2000 <= time.year < 2100:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _person(about: Mapping[str, Any]) -> Origin:
    found = (about.get(key) for key in (":name", ":sid", ":email"))
    name, number, email = (value.strip() if isinstance(value, str) else "" for value in found)
    return Origin("gradescope", name, number or email, email=email)


def blackboards_user(text: str, before: str) -> str:
    """The login that Blackboard's own file names, if the file's name has it as well; else ""."""
    match = BLACKBOARDS_USER.match(text)
    return match[1] if match and before.endswith(f"_{match[1]}") else ""


def sakai_time(text: str) -> datetime | None:
    """The time in Sakai's timestamp.txt, which is written as 20261101233000000, in UTC."""
    digits = text.strip()[:14]
    try:
        is_time = digits.isdecimal() and digits.startswith("20")
        return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC) if is_time else None
    except ValueError:
        return None


def parse_time(text: str) -> datetime | None:
    """A day and an hour as people and Moodle write them, in this machine's time zone if they name none.

    None for anything else, also for days that are written in digits in an order that is not said, as 3/4/2026,
    and for a zone that the machine does not know.
    """
    from dateutil import parser  # type: ignore[import-untyped]

    if len(text) > 100 or DIGITS_ONLY.search(text) or not A_DAY_AND_AN_HOUR.search(text):
        return None
    try:
        found = parser.parse(text, tzinfos=_zone)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _zone(name: str | None, offset: int | None) -> tzinfo | None:
    """The zone of a name such as CET, or of an offset in seconds; None if the text has neither.

    Raises:
        ValueError: if the name is unknown. By itself, dateutil would take the time for this machine's.
    """
    from dateutil import tz

    if offset is not None:
        return timezone(timedelta(seconds=offset))
    zone: tzinfo | None = tz.gettz(name) if name else None
    if name and zone is None:
        raise ValueError(name)
    return zone


def times_table(path: Path) -> dict[str, datetime]:
    """When students handed in, from a table with the columns student and time.

    Raises:
        CourseError: if a column is missing, or a time is none.
    """
    rows = roster.read_table(path)
    if not rows or not {"student", "time"} <= set(rows[0]):
        raise CourseError(f"{path} needs the columns student and time, for instance ann,2026-11-05 18:00")
    found = {}
    for line, row in enumerate(rows, 2):
        time = parse_time(row["time"])
        if time is None:
            raise CourseError(
                f"{path}, line {line}: {row['time']!r} is no day and hour as in 2026-11-05 18:00"
            )
        found[row["student"]] = time
    return found
