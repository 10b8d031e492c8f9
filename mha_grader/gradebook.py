"""nbgrader's gradebook: our scores go in through nbgrader itself, and what people added comes out.

Importing nbgrader takes seconds, so it is imported only where it is used.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mha_grader.assignment import Assignment, CourseError
from mha_grader.course import Course
from mha_grader.records import ItemRecord, SubmissionRecord


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


def course_directory(course: Course, **traits: Any) -> Any:
    """nbgrader's view of the course, as nbgrader_config.py has it."""
    from nbgrader.coursedir import CourseDirectory

    return CourseDirectory(config=_config(course), root=str(course.root), **traits)


def _config(course: Course) -> Any:
    from traitlets.config import PyFileConfigLoader

    return PyFileConfigLoader("nbgrader_config.py", path=str(course.root)).load_config()


def check(db_url: str, assignment: Assignment) -> None:
    """See that the gradebook knows the assignment as it is now.

    Raises:
        CourseError: if it does not; the text says what to do.
    """
    from nbgrader.api import Gradebook, MissingEntry

    name = assignment.name
    expected = {cell.id: cell.points for cell in assignment.cells if cell.kind == "test"}
    found: dict[str, float] = {}
    if _exists(db_url):
        with Gradebook(db_url) as book:
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


def _exists(db_url: str) -> bool:
    """Whether there is a database, as far as that can be told without making one."""
    path = db_url.removeprefix("sqlite:///")
    return path == db_url or Path(path).exists()


def enter(course: Course, assignment: Assignment, submitted: Path, students: Sequence[str]) -> None:
    """Let nbgrader take the stored records of graded hand-ins into its gradebook, and write autograded/.

    Scores and comments that a person gave stay as they are.

    Args:
        course: the course.
        assignment: the assignment, graded.
        submitted: the folder with the students' folders.
        students: whose scores are entered.

    Raises:
        CourseError: if the gradebook does not know the assignment, or nbgrader failed for a student.
    """
    from nbgrader.converters.base import NbGraderException
    from sqlalchemy.exc import SAWarning

    from mha_grader.nbgrader_plugin import EnterScores

    coursedir = course_directory(
        course, assignment_id=assignment.name, submitted_directory=str(submitted.resolve())
    )
    log = logging.getLogger("mha_grader.nbgrader")
    log.setLevel(logging.ERROR)
    converter = EnterScores(coursedir=coursedir, config=_config(course), force=True, log=log)
    converter.students = tuple(students)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own
        try:
            converter.start()
        except NbGraderException as error:
            raise CourseError(str(error)) from None


def read(course: Course, assignment: str) -> dict[str, Entry]:
    """What the gradebook has on the hand-ins for an assignment, by student; empty if there is no gradebook."""
    from nbgrader.api import Gradebook, MissingEntry

    db_url = course_directory(course).db_url
    if not _exists(db_url):
        return {}
    with Gradebook(db_url) as book:
        try:
            submissions = book.find_assignment(assignment).submissions
        except MissingEntry:
            return {}
        return {submission.student_id: _entry(submission) for submission in submissions}


def _entry(submission: Any) -> Entry:
    notebook = submission.notebooks[0]
    changed = [g for g in notebook.grades if g.manual_score is not None or g.extra_credit is not None]
    return Entry(
        by_hand={grade.name.removeprefix("test_"): float(grade.score) for grade in changed},
        comments={c.name: c.manual_comment for c in notebook.comments if c.manual_comment},
        late_seconds=float(submission.total_seconds_late),
        penalty=float(notebook.late_submission_penalty or 0.0),
    )
