"""Who has which result in an assignment: all students of the roster, also those without a hand-in of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mha_grader.course import store
from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course, hand_ins
from mha_grader.course.records import SubmissionRecord
from mha_grader.instructor import gradebook, origins, roster
from mha_grader.instructor.entry import Entry
from mha_grader.instructor.roster import Student, is_student_id


@dataclass(frozen=True)
class Result:
    """What one student has in one assignment."""

    student: str
    record: SubmissionRecord | None  # None if nothing was handed in, or nothing graded
    entry: Entry = Entry()  # noqa: RUF009 - nothing changes it
    person: Student | None = None  # None if the roster does not know the student
    handed_in_by: str = ""  # the member of a group in whose folder the hand-in lies, if that is another


def results(
    course: Course, assignment: str, records: Mapping[str, SubmissionRecord], entries: Mapping[str, Entry]
) -> list[Result]:
    """The results of all students in the roster's order, and behind them of those who are not in it."""
    people = roster.load(course)
    known = people.by_id if people else {}
    groups = origins.representatives(course, assignment)
    ids = dict.fromkeys([*known, *records, *sorted(groups)])
    return [_result(student, records, entries, known, groups) for student in ids]


def _result(
    student: str,
    records: Mapping[str, SubmissionRecord],
    entries: Mapping[str, Entry],
    known: Mapping[str, Student],
    groups: Mapping[str, str],
) -> Result:
    by = student if student in records else groups.get(student, student)
    other = by if by != student else ""
    return Result(student, records.get(by), entries.get(by, Entry()), known.get(student), other)


def without_hand_in(course: Course, assignment: str) -> list[str]:
    """Ids of the students in the roster who have handed in nothing, nor has their group."""
    people = roster.load(course)
    there = {folder.parent.name for folder in hand_ins(course.submitted, assignment)}
    groups = origins.representatives(course, assignment)
    return [s.id for s in (people.students if people else ()) if {s.id, groups.get(s.id)}.isdisjoint(there)]


def student_id(course: Course, text: str, submitted: Path | None = None) -> str:
    """The id of the student whom an instructor names: by it, or as the roster has them (`Roster.named`).

    Somebody who handed in but is not in the roster is named by the id.

    Args:
        course: the course; without a roster, the text is the id.
        text: what the instructor says.
        submitted: where the hand-ins lie, if not in the course.

    Raises:
        CourseError: if there is a roster, and nobody or more than one student is called so.
    """
    people = roster.load(course)
    if people is None or (is_student_id(text) and ((submitted or course.submitted) / text).is_dir()):
        return text
    return people.named(text).id


def called(course: Course, student: str) -> str:
    """A student's id, and beside it the full name if the roster has one: formgrader shows names."""
    people = roster.load(course)
    person = people.by_id.get(student) if people else None
    return f"{student} ({person.name})" if person and person.name != student else student


def strangers(course: Course, students: Mapping[str, object]) -> Iterator[str]:
    """Those of some ids that the roster does not know; none if there is no roster."""
    people = roster.load(course)
    yield from (student for student in students if people and student not in people.by_id)


def graded(course: Course, assignment: str, only: str | None = None) -> dict[str, SubmissionRecord]:
    """The stored records by student, or only one student's.

    Raises:
        CourseError: if there is none.
    """
    records = store.load_all(course.grades(assignment))
    if only is not None:
        records = {student: record for student, record in records.items() if student == only}
    if not records:
        whose = "hand-in" if only is None else f"hand-in of {only!r}"
        raise CourseError(f"no {whose} for {assignment} has been graded: run `mha-grade grade {assignment}`")
    return records


def shared(
    course: Course, assignment: str, only: str | None = None
) -> tuple[dict[str, SubmissionRecord], dict[str, Entry]]:
    """Records, and what the gradebook has beside them, by student: a group's hand-in is that of all its members.

    Raises:
        CourseError: if there is none.
    """
    gradebook.settle(course, assignment)
    records, entries = store.load_all(course.grades(assignment)), gradebook.read(course, assignment)
    for member, student in origins.representatives(course, assignment).items():
        if member not in records and student in records:
            records[member], entries[member] = records[student], entries.get(student, Entry())
    if only in records:
        records = {only: records[only]}
    elif only is not None or not records:
        graded(course, assignment, only)  # says what is missing
    return records, entries
