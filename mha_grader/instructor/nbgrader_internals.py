"""All that reaches into nbgrader, in one place: look here first when a new version of it comes.

nbgrader 0.9 has no setting for any of these:

* whose hand-ins are entered, one by one and with or without a notebook: `EnterScores` replaces two of its methods;
* which folders and files of a hand-in are read: `take_over` replaces a converter's state while it runs, since every
  folder of the assignment counts, by whatever name its notebook was handed in, and no other file of a hand-in is
  opened or copied;
* one open gradebook for many hand-ins: `_kept_open` replaces `Gradebook` in the modules that use it;
* when a hand-in came, in formgrader: `submitted_timestamp` replaces a method of `NbGraderAPI`;
* whether a person's mark stands when a hand-in is graded again: `KeepMarks` is nbgrader's step that saves scores;
* what markdown in a hand-in may do to the browser of the person who marks it: `inert_markdown` is a filter of
  formgrader's template, which shows it as it is.

What stands for its `SaveCells`, which refuses that cells change after hand-ins were graded, is
`mha_grader.course.recorded_cells`.

Importing it takes a second or two, so it is imported where it is used.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import itertools
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import bleach  # type: ignore[import-untyped]
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde, autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveAutoGrades, saveautogrades
from sqlalchemy.exc import OperationalError, SAWarning

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course, hand_ins
from mha_grader.course.store import write_whole
from mha_grader.instructor import late
from mha_grader.instructor.roster import is_student_id
from mha_grader.instructor.timestamps import timestamp

ADDED = "added-"  # begins the id of a cell that the student added, in a graded notebook
# What markdown makes, and what our own texts use
TAGS = """a b blockquote br code del details div em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub summary sup
table tbody td th thead tr ul"""


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


class KeepMarks(SaveAutoGrades):
    """nbgrader's step that saves scores, and that lets a person's mark stand while the answer is the same.

    nbgrader itself asks for a second look at every mark when a hand-in is graded again, but never at a task's.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Save the scores of one hand-in; `grades/<assignment>/.answers` says which texts it had the last time."""
        names = resources["nbgrader"]
        course = Course(Path(self.config.CourseDirectory.get("root", ".")))
        path = course.grades(names["assignment"]) / ".answers"
        everybody = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self._before: dict[str, str] = everybody.get(names["student"], {})
        self._cells = [(cell.get("id", ""), cell.source) for cell in nb.cells]
        self._now: dict[str, str] = {}
        nb, resources = super().preprocess(nb, resources)
        if self._now != self._before:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(everybody | {names["student"]: self._now}))
        return nb, resources

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Save what nbgrader knows of a cell."""
        is_task = utils.is_task(cell)
        if not (is_task or (utils.is_grade(cell) and utils.is_solution(cell))):
            return super().preprocess_cell(cell, resources, cell_index)
        name = cell.metadata.nbgrader.grade_id
        self._now[name] = self._digest_of(None if is_task else cell_index)
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        marked = grade.manual_score is not None
        stands = not grade.needs_manual_grade and self._before.get(name) == self._now[name]
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if marked:
            grade.needs_manual_grade = not stands
            self.gradebook.db.commit()
        return cell, resources

    def _digest_of(self, answer: int | None) -> str:
        """A digest of an answer and the cells that the student added below it, or of all cells."""
        if answer is None:
            texts = [source for _, source in self._cells]
        else:
            below = itertools.takewhile(lambda cell: cell[0].startswith(ADDED), self._cells[answer + 1 :])
            texts = [self._cells[answer][1], *(source for _, source in below)]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def inert_markdown(source: str) -> str:
    """Markdown as HTML in which nothing runs, nothing is fetched, and nothing has a meaning for formgrader's page.

    Formgrader acts on classes: a click on anything of the class `full-credit` saves full marks.
    """
    made = MarkdownWithMath(renderer=_WithoutPictures(escape=False)).render(source)
    html: str = bleach.clean(made, tags=set(TAGS.split()), attributes=_is_harmless)
    return html


class _WithoutPictures(IPythonRenderer):
    """nbconvert's own fails on a pasted picture: no file of a hand-in is opened, and none is handed on."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """The words that stand for a picture."""
        return f"[picture: {text}]"


def _is_harmless(tag: str, name: str, value: str) -> bool:
    """Whether an attribute may stay: where a link leads, and the classes that colour code."""
    if name == "class":
        return (tag == "div" and value == "highlight") or (
            tag == "span" and re.fullmatch(r"[a-z]{1,2}\d?", value) is not None
        )
    return (tag, name) == ("a", "href")


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
