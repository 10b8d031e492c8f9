"""nbgrader's gradebook: our scores go in through nbgrader itself, and what people added comes out.

Importing nbgrader takes seconds, so it is imported only where it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import Assignment, CourseError
from mha_grader.course.folders import Course
from mha_grader.course.records import SubmissionRecord
from mha_grader.course.store import write_whole
from mha_grader.instructor import roster
from mha_grader.instructor.entry import Entry
from mha_grader.instructor.timestamps import timestamp

# jsonschema builds a grammar of web addresses when it is imported, if it can: that takes a second of every command,
# and no notebook needs it. It does without what is not installed.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
AT_ONCE = 20  # hand-ins that are entered before it is written down that they are


def course_directory(course: Course, **traits: Any) -> Any:
    """nbgrader's view of the course, as nbgrader_config.py has it."""
    from nbgrader.coursedir import CourseDirectory

    return CourseDirectory(config=_config(course), root=str(course.root), **traits)


def _config(course: Course) -> Any:
    from traitlets.config import PyFileConfigLoader

    return PyFileConfigLoader("nbgrader_config.py", path=str(course.root)).load_config()


def book_url(course: Course) -> str:
    """Where the students of the course read the book, from nbgrader_config.py; "" if that does not say.

    Raises:
        CourseError: if it is no address of the web.
    """
    url = str(_config(course).FeedbackExporter.get("book_url", ""))
    if url and not url.startswith(("https://", "http://")):
        raise CourseError(
            f"c.FeedbackExporter.book_url in nbgrader_config.py is {url!r}; it should be the address of the folder "
            'with the book\'s pages, such as https://example.org/attention/book/, or "" for no links'
        )
    return url


def check(db_url: str, assignment: Assignment) -> None:
    """See that the gradebook knows the assignment as it is now.

    Raises:
        CourseError: if it does not; the text says what to do.
    """
    from nbgrader.api import MissingEntry

    name = assignment.name
    expected = {cell.id: cell.points for cell in assignment.cells if cell.kind == "test" or cell.by_person}
    found: dict[str, float] = {}
    if _exists(db_url):
        with _opened(db_url) as book:
            try:
                notebook = book.find_notebook(name, name)
                cells = [*notebook.grade_cells, *notebook.task_cells]
                found = {cell.name: float(cell.max_score) for cell in cells}
            except MissingEntry:
                pass
    if found != expected:
        raise CourseError(
            f"the gradebook does not know {name} as it stands in solutions/: run `make exercises`, "
            "which enters it"
        )


@contextlib.contextmanager
def _opened(db_url: str) -> Iterator[Any]:
    """nbgrader's gradebook.

    Raises:
        CourseError: if the database cannot be reached, or no longer.
    """
    from nbgrader.api import Gradebook

    with _one_sentence(db_url, "cannot be opened"):
        book = Gradebook(db_url)
    with _one_sentence(db_url, "can no longer be reached"), book:
        yield book


@contextlib.contextmanager
def _one_sentence(db_url: str, what: str) -> Iterator[None]:
    """Say what happened to the gradebook, and the database's own first line, for any of its errors.

    Raises:
        CourseError: if there is one.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        place = make_url(db_url).render_as_string(hide_password=True)
        why = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
        raise CourseError(f"the gradebook {place} {what}: {why}") from None


def _exists(db_url: str) -> bool:
    """Whether there is a database, as far as that can be told without making one."""
    path = db_url.removeprefix("sqlite:///")
    return path == db_url or Path(path).exists()


def enter(
    course: Course,
    assignment: Assignment,
    submitted: Path,
    records: Mapping[str, SubmissionRecord],
    *,
    force: bool = False,
) -> None:
    """Let nbgrader take the stored records of graded hand-ins into its gradebook, and write autograded/.

    Scores and comments that a person gave stay as they are. What has been entered before and has not changed
    is left alone unless `force` is set, since nbgrader asks people to look at their own scores again.

    Args:
        course: the course.
        assignment: the assignment, graded.
        submitted: the folder with the students' folders.
        records: what was found, by student; it is in the store as well.

    Raises:
        CourseError: if the gradebook does not know the assignment, or nbgrader failed for a student.
    """
    from mha_grader.instructor import late, nbgrader_internals

    config = _config(course)
    late.penalties(course, config)  # complains before anything is entered
    coursedir = course_directory(
        course, assignment_id=assignment.name, submitted_directory=str(submitted.resolve())
    )
    check(coursedir.db_url, assignment)
    with _opened(coursedir.db_url) as book:
        there = {each.student_id for each in book.find_assignment(assignment.name).submissions}
    _forget_others(course.grades(assignment.name), there)
    keys = {
        student: _key(record, submitted / student / assignment.name) for student, record in records.items()
    }
    log = course.grades(assignment.name) / ".entered"
    entered = json.loads(log.read_text()) if log.exists() else {}
    autograded = course.root / coursedir.autograded_directory
    students = [
        student
        for student, key in keys.items()
        if force
        or entered.get(student) != key
        or student not in there
        or not (autograded / student / assignment.name).exists()
    ]
    for start in range(0, len(students), AT_ONCE):
        some = students[start : start + AT_ONCE]
        with _one_sentence(coursedir.db_url, "can no longer be reached"):
            nbgrader_internals.enter(coursedir, config, some)
        entered |= {student: keys[student] for student in some}
        write_whole(log, json.dumps(entered))
    settle(course, assignment.name)


def _forget_others(grades: Path, students: Set[str]) -> None:
    """Take out of .entered and .answers who is not in the gradebook (any more): who is deleted leaves no trace."""
    for path in (grades / ".entered", grades / ".answers"):
        found = json.loads(path.read_text("utf-8")) if path.exists() else {}
        if not students >= found.keys():
            write_whole(path, json.dumps({name: value for name, value in found.items() if name in students}))


def settle(course: Course, assignment: str) -> None:
    """Enter extensions, penalties and names as they are by now, without grading anything again.

    A due date, an extension, a penalty or a roster may have changed since the hand-ins were graded.

    Raises:
        CourseError: if a file of the course has a mistake, or the penalty plugin fails.
    """
    from nbgrader.api import MissingEntry

    from mha_grader.instructor import late

    db_url = course_directory(course).db_url
    if not _exists(db_url):
        return
    step = late.penalties(course, _config(course))
    people = roster.load(course)
    with _opened(db_url) as book, contextlib.suppress(MissingEntry):
        for submission in book.find_assignment(assignment).submissions if people else ():
            student = people.by_id.get(submission.student_id) if people else None
            if student is not None:
                theirs = submission.student
                theirs.first_name, theirs.last_name = student.first_name or None, student.last_name or None
                theirs.email = student.email or None
        late.settle(book, course, assignment, step)


def due_date(course: Course, assignment: str) -> datetime | None:
    """When an assignment is due, in UTC; None if the gradebook has no date for it."""
    from nbgrader.api import MissingEntry

    db_url = course_directory(course).db_url
    if not _exists(db_url):
        return None
    with _opened(db_url) as book:
        try:
            due = book.find_assignment(assignment).duedate
        except MissingEntry:
            return None
    return due.replace(tzinfo=UTC) if due else None


def _key(record: SubmissionRecord, handed_in: Path) -> str:
    """Stands for all that nbgrader computes a hand-in's scores from, and the time at which it came."""
    parts = (dataclasses.replace(record, log=(), changes=()), timestamp(handed_in))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def read(course: Course, assignment: str, student: str | None = None) -> dict[str, Entry]:
    """What the gradebook has on the hand-ins for an assignment, by student.

    Args:
        course: the course.
        assignment: the assignment's name.
        student: only this student's.

    Returns:
        Empty if there is no gradebook, or it does not know the assignment.
    """
    from nbgrader.api import MissingEntry

    from mha_grader.instructor import late

    db_url = course_directory(course).db_url
    if not _exists(db_url):
        return {}
    marked = late.marked_late(course, assignment)
    with _opened(db_url) as book:
        try:
            submissions = book.find_assignment(assignment).submissions
        except MissingEntry:
            return {}
        return {
            each.student_id: _entry(each, late.seconds_late(each, marked))
            for each in submissions
            if student in (None, each.student_id)
        }


def _entry(submission: Any, late_seconds: float) -> Entry:
    notebook = submission.notebooks[0]
    changed = [g for g in notebook.grades if g.manual_score is not None or g.extra_credit is not None]
    return Entry(
        by_hand={grade.name.removeprefix("test_"): float(grade.score) for grade in changed},
        changed=frozenset(grade.name.removeprefix("test_") for grade in changed if grade.needs_manual_grade),
        comments={c.name: c.manual_comment for c in notebook.comments if c.manual_comment},
        late_seconds=late_seconds,
        penalty=float(notebook.late_submission_penalty or 0.0),
    )
