"""All that reaches into nbgrader, in one place: look here first when a new version of it comes.

nbgrader 0.9 has no setting for any of these:

* whose hand-ins are entered, one by one and with or without a notebook: `EnterScores` replaces two of its methods;
* which folders and files of a hand-in are read: `take_over` replaces a converter's state while it runs, since every
  folder of the assignment counts, by whatever name its notebook was handed in, and no other file of a hand-in is
  opened or copied;
* one open gradebook for many hand-ins: `_kept_open` replaces `Gradebook` in the modules that use it;
* cells that change after hand-ins were graded: `record_cells` stands for its `SaveCells`, which refuses that;
* when a hand-in came, in formgrader: `submitted_timestamp` replaces a method of `NbGraderAPI`.

Importing it takes a second or two, so it is imported where it is used.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import logging
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader import utils
from nbgrader.api import Comment, Grade, Gradebook, GradeCell, MissingEntry, SolutionCell, SourceCell
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde, autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import saveautogrades
from sqlalchemy.exc import OperationalError, SAWarning

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import hand_ins
from mha_grader.instructor import late
from mha_grader.instructor.roster import is_student_id
from mha_grader.instructor.timestamps import timestamp


class HandIns(CourseDirectory):
    """nbgrader's course directory, with no trust in the files that lie beside a hand-in."""

    def format_path(
        self, nbgrader_step: str, student_id: str, assignment_id: str, escape: bool = False
    ) -> str:
        """A path or, with `escape`, a regular expression of one; the folder may be an absolute path."""
        if escape and os.path.isabs(nbgrader_step):
            nbgrader_step = re.escape(nbgrader_step)
        path: str = super().format_path(nbgrader_step, student_id, assignment_id, escape)
        return path

    def get_existing_timestamp(self, dest_path: str) -> datetime | None:
        """When a hand-in came."""
        return timestamp(Path(dest_path))


def submitted_timestamp(api: NbGraderAPI, assignment_id: str, student_id: str) -> datetime | None:
    """Stands in for `NbGraderAPI.get_submitted_timestamp`: one odd file fails formgrader's whole list there."""
    coursedir = api.coursedir
    return timestamp(Path(coursedir.format_path(coursedir.submitted_directory, student_id, assignment_id)))


class EnterScores(Autograde):
    """`nbgrader autograde` for students who are named one by one, with or without a notebook."""

    students: tuple[str, ...] = ()

    def init_notebooks(self) -> None:
        """Take the folders of `students`, where nbgrader would look for notebooks."""
        self.assignments: dict[str, list[str]] = {
            self._format_source(self.coursedir.assignment_id, student): [] for student in self.students
        }

    def convert_single_notebook(self, notebook_filename: str) -> None:
        """Convert once: what nbgrader would write, read and write again is ours already, and clean."""
        self._sanitizing = False
        self._init_preprocessors()
        self._sanitizing = True
        super(Autograde, self).convert_single_notebook(notebook_filename)


def take_over(converter: Any, assignment: str) -> None:
    """Have a converter read every folder of the assignment, and no file in it but the notebook.

    It has looked for hand-ins by then and has not read the first one.

    Args:
        converter: nbgrader's, which has just made its exporter.
        assignment: the assignment's name.
    """
    theirs = converter.coursedir
    traits = {name: getattr(theirs, name) for name in theirs.trait_names(config=True)}
    folders = list(converter.assignments)
    if not isinstance(converter, EnterScores):
        found = hand_ins(Path(theirs.root, theirs.submitted_directory), assignment)
        folders = [
            str(folder)
            for folder in found
            if fnmatch.fnmatchcase(folder.parent.name, theirs.student_id)
            and is_student_id(folder.parent.name)
        ]
    converter.assignments = {folder: [os.path.join(folder, f"{assignment}.ipynb")] for folder in folders}
    traits["ignore"] = [*theirs.ignore, *map(glob.escape, folders)]
    converter.coursedir = HandIns(parent=theirs.parent, **traits)


def enter(coursedir: Any, config: Any, students: Sequence[str]) -> None:
    """Have nbgrader enter hand-ins in its gradebook and write autograded/.

    Raises:
        CourseError: if it failed for a student.
        OperationalError: if the database cannot be reached.
    """
    log = logging.getLogger("mha_grader.nbgrader")
    log.setLevel(logging.ERROR)
    log.addFilter(_is_not_about_the_database)
    converter = EnterScores(coursedir=coursedir, config=config, force=True, log=log)
    converter.students = tuple(students)
    with warnings.catch_warnings(), _kept_open():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own
        try:
            converter.start()
        except NbGraderException as error:
            if isinstance(
                error.__context__, OperationalError
            ):  # nbgrader says then that it is too new or too old
                raise error.__context__ from None
            raise CourseError(str(error)) from None


def _is_not_about_the_database(record: logging.LogRecord) -> bool:
    """Whether nbgrader does not tell, at length, what is raised as well."""
    text = record.getMessage()
    return "sqlalchemy.exc.OperationalError" not in text and "accessing the nbgrader database" not in text


@contextlib.contextmanager
def _kept_open() -> Iterator[None]:
    """Let nbgrader enter hand-ins through one open gradebook, where it would open one seven times for each.

    Every closing still ends the session. What stays is the connection and what SQLAlchemy compiled for it.
    """

    class KeptOpen(Gradebook):
        def close(self) -> None:
            self.db.remove()

    books: dict[tuple[str, ...], Any] = {}

    def opened(*place: str) -> Any:
        if place not in books:
            books[place] = KeptOpen(*place)
        return books[place]

    users: tuple[Any, ...] = (autograde, saveautogrades, late)
    for module in users:
        module.Gradebook = opened
    try:
        yield
    finally:
        for module in users:
            module.Gradebook = Gradebook
        for book in books.values():
            Gradebook.close(book)


def graded_points(coursedir: Any, assignment: str) -> tuple[dict[str, float], int]:
    """The points of each test cell in the gradebook, and how many hand-ins are in it."""
    with Gradebook(coursedir.db_url, coursedir.course_id) as book:
        try:
            notebook = book.find_notebook(assignment, assignment)
        except MissingEntry:
            return {}, 0
        return {cell.name: cell.max_score for cell in notebook.grade_cells}, len(notebook.submissions)


def record_cells(coursedir: Any, assignment: str, cells: Sequence[Any], *, change_items: bool) -> None:
    """Make the gradebook know these cells of the assignment and no others, all in one transaction.

    Scores and comments of cells that stay are kept. Those of cells that are dropped go with them.

    Args:
        coursedir: nbgrader's.
        assignment: the assignment's name.
        cells: of the notebook, with nbgrader's metadata.
        change_items: whether test cells may come, go or get other points if hand-ins are in the gradebook.

    Raises:
        CourseError: if they would, and `change_items` is not set; nothing has changed then.
    """
    found, hand_in_count = graded_points(coursedir, assignment)
    wanted = {
        c.metadata.nbgrader.grade_id: float(c.metadata.nbgrader.points) for c in cells if utils.is_grade(c)
    }
    if hand_in_count and found != wanted and not change_items:
        raise CourseError(
            f"items of {assignment} were added, dropped or given other points, and hand-ins ({hand_in_count}) are "
            f"in the gradebook: nothing was changed. `mha-grade change {assignment}` shows the differences"
        )
    with Gradebook(coursedir.db_url, coursedir.course_id) as book, warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own
        book.update_or_create_assignment(assignment)
        book.update_or_create_notebook(assignment, assignment)
        notebook = book.find_notebook(assignment, assignment)
        try:
            with book.db.no_autoflush:
                for kind in (GradeCell, SolutionCell):
                    _record_graded(book.db, notebook, kind, cells)
                _record_sources(book.db, notebook, cells)
            book.db.commit()
        except BaseException:
            book.db.rollback()
            raise


def _record_graded(db: Any, notebook: Any, kind: type, cells: Sequence[Any]) -> None:
    """Record the cells of one kind, and a place for the score or comment of each hand-in."""
    chosen = utils.is_grade if kind is GradeCell else utils.is_solution
    place = Grade if kind is GradeCell else Comment
    wanted = {cell.metadata.nbgrader.grade_id: cell for cell in cells if chosen(cell)}
    found = {cell.name: cell for cell in db.query(kind).filter_by(notebook_id=notebook.id)}
    for name in found.keys() - wanted.keys():
        for each in (*found[name].grades, *found[name].comments):
            db.delete(each)
        db.delete(found[name])
    for name, cell in wanted.items():
        if name in found:
            recorded = found[name]
        else:
            recorded = kind(name=name, notebook=notebook)
            db.add(recorded)
            for hand_in in notebook.submissions:
                db.add(place(cell=recorded, notebook=hand_in))
        if kind is GradeCell:
            recorded.max_score = float(cell.metadata.nbgrader.points)
            recorded.cell_type = cell.cell_type


def _record_sources(db: Any, notebook: Any, cells: Sequence[Any]) -> None:
    wanted = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in cells
        if utils.is_grade(cell) or utils.is_solution(cell) or utils.is_locked(cell)
    }
    found = {cell.name: cell for cell in db.query(SourceCell).filter_by(notebook_id=notebook.id)}
    for name in found.keys() - wanted.keys():
        db.delete(found[name])
    for name, cell in wanted.items():
        recorded = found.get(name) or SourceCell(name=name, notebook=notebook)
        db.add(recorded)
        recorded.cell_type, recorded.locked = cell.cell_type, utils.is_locked(cell)
        recorded.source, recorded.checksum = cell.source, cell.metadata.nbgrader.get("checksum")
