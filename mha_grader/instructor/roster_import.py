"""Rosters out of the tables that Moodle, Canvas and Brightspace export.

Moodle: the table of Participants ("Download table data as … CSV"), the gradebook's export, or the grading worksheet
of an assignment, each in English: First name, Last name, Email address, ID number, Username, Groups
(https://docs.moodle.org/en/Grade_export).
Canvas: the gradebook's export: Student ("Last, First"), ID, SIS User ID, SIS Login ID, Section; lines without an ID
are no students (https://community.canvaslms.com, "How do I export grades in the Gradebook?").
Brightspace: the grades' export with both key fields and user details: OrgDefinedId (with a # before it), Username,
Last Name, First Name, Email, End-of-Line Indicator (https://community.d2l.com/brightspace/kb/articles/3538).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.instructor import roster
from mha_grader.instructor.roster import Student, is_student_id, same

WANTED = (
    'Moodle\'s participants or gradebook (a column "Email address", "ID number" or "Username"), Canvas\' '
    'gradebook ("SIS Login ID") or Brightspace\'s grades ("OrgDefinedId" or "Username" and "End-of-Line '
    'Indicator"), in English'
)
KEYS = ("canvas", "brightspace_org", "moodle", "email", "login")  # by which a known student is found again


@dataclass
class Imported:
    """What became of a platform's table: ids, and lines that could not be used."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    not_in_file: list[str] = field(default_factory=list)  # students of the roster; they stay
    refused: dict[str, str] = field(default_factory=dict)  # a line of the file, and why


def import_table(course: Course, path: Path) -> Imported:
    """Add the students of a platform's table to roster.csv, or what it says of those who are there already.

    What the table does not say stays as it is: other platforms' numbers, the group, and the id.

    Raises:
        CourseError: if the table is none of those that are known, or the roster has a mistake.
    """
    known = roster.load(course)
    students = {student.id: student for student in known.students} if known else {}
    result, touched = Imported(), set()
    for line, row in enumerate(roster.read_table(path), 2):
        fresh = _student(row)
        if fresh is None:
            continue
        name = f"line {line} ({fresh.name})"
        old = _match(students, fresh)
        if len(old) > 1:
            result.refused[name] = f"its columns name different students: {', '.join(sorted(old))}"
        elif not is_student_id(fresh.id):
            result.refused[name] = f"it has no id, or one that cannot be a folder's name: {fresh.id!r}"
        elif not old and fresh.id in students:
            result.refused[name] = f"another student has the id {fresh.id!r} in {roster.NAME}"
        elif (student := min(old, default=fresh.id)) in touched:
            result.refused[name] = f"an earlier line is the same student, {student!r}"
        else:
            touched.add(student)
            merged = _merged(students[student], fresh) if old else fresh
            kind = (
                result.new if not old else result.unchanged if merged == students[student] else result.changed
            )
            kind.append(student)
            students[student] = merged
    result.not_in_file = [student for student in students if student not in touched]
    if touched:
        roster.save(course, students.values())
    return result


def _match(students: Mapping[str, Student], fresh: Student) -> set[str]:
    """Ids of the students whom the keys of a line name; the id itself counts if no key contradicts it."""
    found = {
        student.id
        for student in students.values()
        for key in KEYS
        if getattr(fresh, key) and same(getattr(fresh, key)) == same(getattr(student, key))
    }
    by_id = students.get(fresh.id)
    if by_id is not None and not found and not _contradict(by_id, fresh):
        found = {by_id.id}
    return found


def _contradict(one: Student, other: Student) -> bool:
    return any(
        getattr(one, key) and getattr(other, key) and same(getattr(one, key)) != same(getattr(other, key))
        for key in KEYS
    )


def _merged(old: Student, fresh: Student) -> Student:
    said = {name: value for name, value in dataclasses.asdict(fresh).items() if value and name != "id"}
    return dataclasses.replace(old, **said)


# --- the tables -------------------------------------------------------------------------------------------


def _student(row: Mapping[str, str]) -> Student | None:
    """The student in a line of a platform's table; None if the line is no student's.

    Raises:
        CourseError: if it is no table of a platform that is known.
    """
    columns = set(row)
    if {"ID", "SIS Login ID"} <= columns:
        return _of_canvas(row)
    if "End-of-Line Indicator" in columns and columns & {"OrgDefinedId", "Username"}:
        return _of_brightspace(row)
    if columns & {"Email address", "ID number", "Username"}:
        return _of_moodle(row)
    if set(roster.COLUMNS) & columns == columns and "id" in columns:
        return Student(**row)
    raise CourseError(f"its columns are {', '.join(map(repr, row))}; wanted is a table of {WANTED}")


def _first(*values: str) -> str:
    return next(filter(None, values), "")


def _of_moodle(row: Mapping[str, str]) -> Student:
    first, last = row.get("First name", ""), _first(row.get("Last name", ""), row.get("Surname", ""))
    if not (first or last):
        first, _, last = row.get("Full name", "").rpartition(" ")
    number, login, email = (row.get(name, "") for name in ("ID number", "Username", "Email address"))
    groups = _first(row.get("Groups", ""), row.get("Group", ""))
    return Student(
        id=_first(number, login, email),
        first_name=first,
        last_name=last,
        email=email,
        login=login,
        moodle=number,
        group="" if groups in ("No groups", "-") else groups,
    )


def _of_canvas(row: Mapping[str, str]) -> Student | None:
    """Canvas writes its points and its test student in lines of their own."""
    if not row["ID"].isdecimal() or _is_test_student(row):
        return None
    last, _, first = row.get("Student", "").partition(",")
    if "LastName" in row:  # a setting of the gradebook
        last, first = row["LastName"], row.get("FirstName", "")
    elif not first:
        first, _, last = last.rpartition(" ")
    login = row["SIS Login ID"]
    return Student(
        id=_first(row.get("SIS User ID", ""), login, row["ID"]),
        first_name=first.strip(),
        last_name=last.strip(),
        email=login if "@" in login else "",
        login=login,
        canvas=row["ID"],
    )


def _is_test_student(row: Mapping[str, str]) -> bool:
    """Whether a line is that of Canvas' test student."""
    return row.get("Student", "") in ("Student, Test", "Test Student") and not row.get("SIS User ID")


def _of_brightspace(row: Mapping[str, str]) -> Student:
    number, login = row.get("OrgDefinedId", "").lstrip("#"), row.get("Username", "").lstrip("#")
    return Student(
        id=_first(number, login),
        first_name=row.get("First Name", ""),
        last_name=row.get("Last Name", ""),
        email=row.get("Email", ""),
        login=login,
        brightspace_org=number,
    )


def moodles_worksheet(path: Path) -> dict[str, Mapping[str, str]]:
    """The lines of Moodle's grading worksheet by the number of the participant.

    Raises:
        CourseError: if it is no grading worksheet in English.
    """
    rows: Sequence[Mapping[str, str]] = roster.read_table(path)
    if not rows or "Identifier" not in rows[0]:
        raise CourseError(
            f"{path} is no grading worksheet of Moodle in English: it has no column 'Identifier'. Set Moodle to "
            'English, and choose "Download grading worksheet" on the page of the assignment\'s submissions'
        )
    return {row["Identifier"].removeprefix("Participant").strip(): row for row in rows}
