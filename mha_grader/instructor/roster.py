"""The roster: roster.csv in the course's folder says who the students are and what each platform calls them.

With a roster, one person is one student in all assignments, whatever an archive calls them. A person is found by
what a platform guarantees to be theirs (a number, a login name, an e-mail address), or by a full name that nobody
else has. Nothing is guessed: who is not found, or could be two people, is listed and not taken.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.course.store import write_whole
from mha_grader.instructor.origins import Origin, Scheme

NAME = "roster.csv"
MAX_BYTES = 20 * 2**20
# What spreadsheets take for the start of a formula: those of some languages take the wide signs as well, and some
# leave out what cannot be seen.
FORMULA = re.compile(r"^[\s\"\x00\u200b-\u200f\u2060\ufeff]*[=+@\uff1d\uff0b\uff0d\uff20-]")
OWN_NUMBERS = ("gradescope",)  # where students enter their number themselves
# Which field of a student is what a platform tells in its archives beside a name.
NUMBERS: Mapping[Scheme, tuple[str, ...]] = {
    "moodle": ("moodle", "id"),
    "canvas": ("canvas",),
    "brightspace": ("brightspace",),
    "blackboard": ("login", "id"),
    "sakai": ("login", "id"),
    "gradescope": ("id", "login"),
    "plain": ("id", "login", "email"),
}
BY_NAME = ("moodle", "brightspace", "gradescope")  # platforms that tell a full name


def is_student_id(name: str) -> bool:
    """Whether a folder's name can be a student's id.

    nbgrader cannot read names of several lines, its database holds 128 characters, and a file with a longer name
    than the folder's is written for each.
    """
    if not name.isprintable() or name.startswith(".") or not name or set("/\\") & set(name):
        return False
    return len(name) <= 128 and len(name.encode()) <= 200


@dataclass(frozen=True)
class Student:
    """A line of roster.csv."""

    id: str  # the name of the student's folders
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    login: str = ""
    moodle: str = ""  # Moodle's ID number of the user
    canvas: str = ""  # Canvas' number of the user
    brightspace: str = ""  # the first number in the folders of Brightspace's archives
    brightspace_org: str = ""  # Brightspace's OrgDefinedId
    group: str = ""

    @property
    def name(self) -> str:
        """The full name, or the id if there is none."""
        return " ".join(filter(None, (self.first_name, self.last_name))) or self.id


COLUMNS = tuple(field.name for field in dataclasses.fields(Student))
UNIQUE = ("id", "email", "login", "moodle", "canvas", "brightspace", "brightspace_org")


def same(text: str) -> str:
    """What two ways of writing a login, a number or an address have in common: spaces around it, and capitals.

    No other sign stands for one of these, such as a long s for an s, which somebody else could sign up with.
    """
    return unicodedata.normalize("NFC", text.strip()).lower()


def same_name(text: str) -> str:
    """What two ways of writing a name have in common: platforms take some signs out of file names."""
    return " ".join(re.sub(r"[&<>\"`'’|:\\/,]", "", same(text.replace("_", " "))).split())


@dataclass(frozen=True)
class Roster:
    """The students of a course, in the order of the file."""

    students: tuple[Student, ...]

    @cached_property
    def by_id(self) -> dict[str, Student]:
        """The students by id."""
        return {student.id: student for student in self.students}

    @cached_property
    def _by_name(self) -> dict[str, list[Student]]:
        found: defaultdict[str, list[Student]] = defaultdict(list)
        for student in self.students:
            first, last = student.first_name, student.last_name
            for name in {same_name(f"{first} {last}"), same_name(f"{last} {first}")} - {""}:
                found[name].append(student)
        return dict(found)

    def _holders(self, fields: Iterable[str], value: str) -> list[Student]:
        return (
            [s for s in self.students for f in fields if same(getattr(s, f)) == same(value)] if value else []
        )

    def _called(self, fields: Sequence[str], value: str) -> list[Student]:
        """The students whom a platform calls so: by the first of some fields that they have, since it is theirs."""
        first = {s: next(filter(None, (getattr(s, f) for f in fields)), "") for s in self.students}
        return [s for s, name in first.items() if value and same(name) == same(value)]

    def named(self, text: str) -> Student:
        """The student whom an instructor names by id, login, e-mail address or full name.

        Raises:
            CourseError: if there is none, or more than one.
        """
        found = set(self._holders(("id", "login", "email"), text)) or set(
            self._by_name.get(same_name(text), ())
        )
        if len(found) != 1:
            who = f"{len(found)} students in {NAME} are" if found else f"nobody in {NAME} is"
            raise CourseError(f"{who} called {text!r}: give an id, a login, an e-mail address or a full name")
        return found.pop()

    def find(self, origin: Origin) -> Student | str:
        """The student who is meant by what a platform says, or why nobody is.

        Numbers, logins and addresses decide. The name decides only where the platform gave nothing else that the
        roster knows.
        """
        column = NUMBERS[origin.scheme]
        by_address = set(self._holders(("email",), origin.email))
        find = self._holders if origin.scheme == "plain" else self._called
        known = set(find(column, origin.user)) | by_address
        if len(known) == 1:
            (student,) = known
            if origin.scheme in OWN_NUMBERS and student.email and origin.email and not by_address:
                return f"its number is that of {student.id}, but its address is not"
            return student
        if known:
            return f"its number and its address belong to different students: {_ids(known)}"
        if origin.scheme in BY_NAME and not origin.email:
            namesakes = self._by_name.get(same_name(origin.name), [])
            if len(namesakes) > 1:
                return f"{len(namesakes)} students have this name: {_ids(namesakes)}"
            if namesakes and not self._contradicts(namesakes[0], origin):
                return namesakes[0]
        return f"nobody in {NAME} is {_described(origin, column)}"

    @staticmethod
    def _contradicts(student: Student, origin: Origin) -> bool:
        """Whether the roster has another number for the student than the platform has."""
        return bool(origin.user) and any(getattr(student, field) for field in NUMBERS[origin.scheme])

    def group_of(self, student: Student) -> tuple[Student, ...]:
        """All members of a student's group, in the roster's order; only the student if there is no group."""
        members = tuple(s for s in self.students if s.group and s.group.strip() == student.group.strip())
        return members or (student,)


def _ids(students: Iterable[Student]) -> str:
    return ", ".join(sorted(student.id for student in students))


def _described(origin: Origin, column: Sequence[str]) -> str:
    by_user = f"{origin.user!r} by {' or '.join(column)}" if origin.user else ""
    by_name = f"{origin.name!r} by name" if origin.scheme in BY_NAME and not origin.email else ""
    by_email = f"{origin.email!r} by e-mail address" if origin.email else ""
    return " or ".join(filter(None, (by_user, by_name, by_email)))


# --- the file ---------------------------------------------------------------------------------------------


def load(course: Course) -> Roster | None:
    """The roster of the course; None if it has no roster.csv.

    Raises:
        CourseError: if the file cannot be read, or two lines give one id, login, address or number.
    """
    path = course.root / NAME
    if not path.exists():
        return None
    return Roster(tuple(_checked(path, read_table(path))))


def _checked(path: Path, rows: Sequence[Mapping[str, str]]) -> Iterator[Student]:
    unknown = set(rows[0]) - set(COLUMNS) if rows else set()
    if rows and (unknown or "id" not in rows[0]):
        wrong = f"has a column {min(unknown)!r}" if unknown else "has no column 'id'"
        raise CourseError(f"{path} {wrong}; its columns are {', '.join(COLUMNS)}, and only id must be there")
    seen: dict[tuple[str, str], int] = {}
    for line, row in enumerate(rows, 2):
        student = Student(**row)
        if not is_student_id(student.id):
            raise CourseError(
                f"{path}, line {line}: {student.id!r} cannot be a student's id, which is the name of folders: one "
                "line, no slash, no dot at its start, 128 characters at most"
            )
        for field in UNIQUE:
            value = same(getattr(student, field))
            if value and (before := seen.setdefault((field, value), line)) != line:
                raise CourseError(f"{path}: lines {before} and {line} have the same {field}, {value!r}")
        yield student


def save(course: Course, students: Iterable[Student]) -> Path:
    """Write roster.csv, whole or not at all; no cell of it is a formula for a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for student in students:
        row = dataclasses.asdict(student)
        writer.writerow({name: f"'{value}" if FORMULA.match(value) else value for name, value in row.items()})
    write_whole(course.root / NAME, text.getvalue())
    return course.root / NAME


def read_table(path: Path) -> list[dict[str, str]]:
    """The lines of a table with a head, as platforms and spreadsheets write them.

    The text is UTF-8 or UTF-16; cells are separated by commas, semicolons or tabs; a ' before a formula, which
    spreadsheets need, is no part of a cell.

    Raises:
        CourseError: if it is no such table.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CourseError(f"cannot read {path}: {error}") from None
    if len(data) > MAX_BYTES:
        raise CourseError(f"{path} has {len(data)} bytes, and {MAX_BYTES} are allowed")
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        head = text.partition("\n")[0]
        delimiter = max(",;\t", key=head.count)
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{path} is no table: save it as CSV in UTF-8 ({error})") from None
    lines = [line for line in lines if any(cell.strip() for cell in line)]
    if not lines:
        raise CourseError(f"{path} is empty")
    columns = [cell.strip() for cell in lines[0]]
    if len(set(columns)) < len(columns):
        columns = [
            name if name not in columns[:place] else f"{name}#{place}" for place, name in enumerate(columns)
        ]
    return [
        dict(zip(columns, map(_plain, [*line, *[""] * len(columns)]), strict=False)) for line in lines[1:]
    ]


def _plain(cell: str) -> str:
    cell = unicodedata.normalize("NFC", cell.strip())
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell[1:]) else cell
