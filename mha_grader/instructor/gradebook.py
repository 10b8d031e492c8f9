"""nbgrader's gradebook: our scores go in through nbgrader itself, and what people added comes out.

Importing nbgrader takes seconds, so it is imported only where it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import Assignment, CourseError
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, SubmissionRecord
from mha_grader.course.store import write_whole

AT_ONCE = 20  # hand-ins that are entered before it is written down that they are


@dataclass(frozen=True)
class Entry:
    """What the gradebook knows about one hand-in beside the scores of the tests."""

    by_hand: Mapping[str, float] = field(default_factory=dict)  # scores that a person changed, by item
    comments: Mapping[str, str] = field(default_factory=dict)  # a person's, by item
    late_seconds: float = 0.0
    penalty: float = 0.0

    def item_score(self, item: ItemRecord) -> float:
        """An item's score, as a person left it."""
        return self.by_hand.get(item.item, item.score)

    def score(self, record: SubmissionRecord) -> float:
        """The score of the hand-in with what people changed and the penalty for being late."""
        return sum(map(self.item_score, record.items)) - self.penalty


def is_student_id(name: str) -> bool:
    """Whether a folder's name can be a student's id.

    nbgrader cannot read names of several lines, its database holds 128 characters, and a file with a longer name
    than the folder's is written for each.
    """
    if not name.isprintable() or name.startswith("."):
        return False
    return len(name) <= 128 and len(name.encode()) <= 200


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
    expected = {cell.id: cell.points for cell in assignment.cells if cell.kind == "test"}
    found: dict[str, float] = {}
    if _exists(db_url):
        with _opened(db_url) as book:
            try:
                cells = book.find_notebook(name, name).grade_cells
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
        CourseError: if the database cannot be reached.
    """
    from nbgrader.api import Gradebook
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import OperationalError

    try:
        book = Gradebook(db_url)
    except OperationalError as error:
        place = make_url(db_url).render_as_string(hide_password=True)
        raise CourseError(f"the gradebook {place} cannot be opened: {error.orig}") from None
    with book:
        yield book


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
    coursedir = course_directory(
        course, assignment_id=assignment.name, submitted_directory=str(submitted.resolve())
    )
    check(coursedir.db_url, assignment)
    due = _due_dates(coursedir.db_url, assignment.name)
    keys = {
        student: _key(record, submitted / student / assignment.name, due.get(student, due[None]))
        for student, record in records.items()
    }
    log = course.grades(assignment.name) / ".entered"
    entered = json.loads(log.read_text()) if log.exists() else {}
    autograded = course.root / coursedir.autograded_directory
    students = [
        student
        for student, key in keys.items()
        if force
        or entered.get(student) != key
        or student not in due
        or not (autograded / student / assignment.name).exists()
    ]
    for start in range(0, len(students), AT_ONCE):
        some = students[start : start + AT_ONCE]
        _run_nbgrader(course, coursedir, some)
        entered |= {student: keys[student] for student in some}
        write_whole(log, json.dumps(entered))


def _due_dates(db_url: str, assignment: str) -> dict[str | None, Any]:
    """When the hand-ins in the gradebook are due, by student; under None, when those not yet in it are."""
    with _opened(db_url) as book:
        found = book.find_assignment(assignment)
        return {None: found.duedate} | {each.student_id: each.duedate for each in found.submissions}


def _key(record: SubmissionRecord, handed_in: Path, due: Any) -> str:
    """Stands for all that nbgrader computes a hand-in's scores and penalty from."""
    from mha_grader.instructor.plugin import timestamp

    parts = (dataclasses.replace(record, log=()), timestamp(handed_in), due)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _run_nbgrader(course: Course, coursedir: Any, students: Sequence[str]) -> None:
    from nbgrader.converters.base import NbGraderException
    from sqlalchemy.exc import SAWarning

    from mha_grader.instructor.plugin import EnterScores

    if not students:
        return
    log = logging.getLogger("mha_grader.nbgrader")
    log.setLevel(logging.ERROR)
    converter = EnterScores(coursedir=coursedir, config=_config(course), force=True, log=log)
    converter.students = tuple(students)
    with warnings.catch_warnings(), _kept_open():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own
        try:
            converter.start()
        except NbGraderException as error:
            raise CourseError(str(error)) from None


@contextlib.contextmanager
def _kept_open() -> Iterator[None]:
    """Let nbgrader enter hand-ins through one open gradebook, where it would open one seven times for each.

    Every closing still ends the session. What stays is the connection and what SQLAlchemy compiled for it.
    """
    from nbgrader.api import Gradebook
    from nbgrader.converters import autograde
    from nbgrader.preprocessors import latesubmissions, saveautogrades

    class KeptOpen(Gradebook):
        def close(self) -> None:
            self.db.remove()

    books: dict[tuple[str, ...], Any] = {}

    def opened(*place: str) -> Any:
        if place not in books:
            books[place] = KeptOpen(*place)
        return books[place]

    users = (autograde, saveautogrades, latesubmissions)
    for module in users:
        module.Gradebook = opened
    try:
        yield
    finally:
        for module in users:
            module.Gradebook = Gradebook
        for book in books.values():
            Gradebook.close(book)


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

    db_url = course_directory(course).db_url
    if not _exists(db_url):
        return {}
    with _opened(db_url) as book:
        try:
            submissions = book.find_assignment(assignment).submissions
        except MissingEntry:
            return {}
        return {each.student_id: _entry(each) for each in submissions if student in (None, each.student_id)}


def _entry(submission: Any) -> Entry:
    notebook = submission.notebooks[0]
    changed = [g for g in notebook.grades if g.manual_score is not None or g.extra_credit is not None]
    return Entry(
        by_hand={grade.name.removeprefix("test_"): float(grade.score) for grade in changed},
        comments={c.name: c.manual_comment for c in notebook.comments if c.manual_comment},
        late_seconds=float(submission.total_seconds_late),
        penalty=float(notebook.late_submission_penalty or 0.0),
    )
