"""Late hand-ins: extensions, late days, and penalties by nbgrader's own plugins.

The gradebook has a due date for each assignment and a time for each hand-in. extensions.csv in the course's folder
has the later due dates of single students. `LatePenalties.late_days` in nbgrader_config.py is the number of days of
a term by which a student may be late without a penalty; they are used up in the order of the due dates, each by a
whole day or a part of it. What is left is given to the penalty plugin that nbgrader_config.py names.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Integer, TraitError

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.instructor import extensions, origins

DAY = 86400  # seconds


class LatePenalties(AssignLatePenalties):
    """nbgrader's step that assigns penalties, with late days and extensions."""

    late_days = Integer(0, min=0, help="Days of a term that a student may be late without a penalty.").tag(
        config=True
    )

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Assign the penalty of one hand-in that nbgrader grades."""
        names = resources["nbgrader"]
        course = Course(Path(self.config.CourseDirectory.get("root", ".")))
        with Gradebook(names["db_url"]) as book:
            settle(book, course, names["assignment"], self, only=names["student"])
        return nb, resources

    def penalty(self, student: str, notebook: Any, seconds: float) -> float | None:
        """The points that a notebook loses for being late, as the plugin says, between 0 and its score."""
        found = (
            self.plugin_inst.late_submission_penalty(student, notebook.score, seconds) if seconds else None
        )
        return None if found is None else float(self._check_late_penalty(notebook, found))


def penalties(course: Course, config: Any) -> LatePenalties:
    """The step as nbgrader_config.py sets it, with a plugin that may lie in the course's folder.

    Raises:
        CourseError: if the plugin cannot be imported, or is none.
    """
    allow_plugins(course)
    try:
        step = LatePenalties(config=config)
        step.init_plugin()
    except (ImportError, TraitError) as error:
        raise CourseError(
            f"the penalty plugin that nbgrader_config.py names cannot be used: {error}. Wanted is "
            'c.AssignLatePenalties.plugin_class = "FILE.CLASS" for a class in FILE.py in the course\'s folder, '
            "derived from nbgrader.plugins.BasePlugin"
        ) from None
    return step


def allow_plugins(course: Course) -> None:
    """Let Python find modules in the course's folder, as nbgrader's own commands do."""
    if str(course.root) not in sys.path:
        sys.path.append(str(course.root))


def settle(book: Any, course: Course, assignment: str, step: LatePenalties, only: str | None = None) -> None:
    """Enter the extensions and penalties of an assignment's hand-ins as they are by now.

    Args:
        book: nbgrader's gradebook, which knows the assignment.
        course: the course.
        assignment: the assignment's name.
        step: what computes a penalty.
        only: this student alone.

    Raises:
        CourseError: if the penalty plugin fails.
    """
    step.init_plugin()
    _enter_extensions(book, course, assignment)
    free = _free_days(book, course, assignment, step.late_days)
    marked = marked_late(course, assignment)
    for submission in book.find_assignment(assignment).submissions:
        student = submission.student_id
        if only not in (None, student):
            continue
        seconds = seconds_late(submission, marked)
        charged = max(0.0, seconds - DAY * free.get(student, step.late_days))
        for notebook in submission.notebooks:
            try:
                found = step.penalty(student, notebook, charged)
            except Exception as error:
                raise CourseError(
                    f"the penalty plugin {type(step.plugin_inst).__name__} failed for {student}: {error!r}"
                ) from error
            if (found or 0.0) != (notebook.late_submission_penalty or 0.0):
                notebook.late_submission_penalty = found
    book.db.commit()


def seconds_late(submission: Any, marked: Set[str]) -> float:
    """How late a hand-in is: at least a second if only the platform says that it is late, and not how much.

    Args:
        submission: the gradebook's entry.
        marked: see `marked_late`.
    """
    if submission.student_id in marked and submission.timestamp is None and submission.extension is None:
        return 1.0
    return float(submission.total_seconds_late)


def marked_late(course: Course, assignment: str) -> set[str]:
    """Ids of the students whose hand-ins the platform marked as late."""
    return {student for student, origin in origins.origins(course, assignment).items() if origin.late}


def _enter_extensions(book: Any, course: Course, assignment: str) -> None:
    """Give the hand-ins the extensions of extensions.csv, if there is one; then it has all that there are."""
    table = extensions.load(course)
    if table is None:
        return
    representatives = origins.representatives(course, assignment)
    until: dict[str, datetime] = {}
    for (student, name), due in table.items():
        if name == assignment:
            student = representatives.get(student, student)
            until[student] = max(due, until.get(student, due))
    for submission in book.find_assignment(assignment).submissions:
        due = submission.assignment.duedate  # in UTC, without a zone
        later = until.get(submission.student_id)
        extension = None
        if due is not None and later is not None:
            extension = max(timedelta(0), later.astimezone(UTC).replace(tzinfo=None) - due)
        if submission.extension != extension:
            submission.extension = extension


def _free_days(book: Any, course: Course, assignment: str, late_days: int) -> dict[str, int]:
    """The late days that each student has left for an assignment, after those that are due earlier."""
    found: defaultdict[str, int] = defaultdict(lambda: late_days)
    if not late_days:
        return found
    this = book.find_assignment(assignment)
    earlier = [each for each in book.assignments if _order(each) < _order(this)]
    for each in sorted(earlier, key=_order):
        marked = marked_late(course, each.name)
        for submission in each.submissions:
            student = submission.student_id
            used = days(seconds_late(submission, marked))
            found[student] = max(0, found[student] - used)
    return found


def _order(assignment: Any) -> tuple[datetime, str]:
    return assignment.duedate or datetime.max, assignment.name


def days(seconds: float) -> int:
    """Days that were begun."""
    return math.ceil(seconds / DAY)
