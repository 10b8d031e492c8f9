"""Recording a notebook's cells in nbgrader's gradebook, also after hand-ins have been graded.

This stands for nbgrader's `SaveCells`, which refuses any cell more or less once there are hand-ins, and commits
each cell by itself.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from nbgrader import utils
from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    SolutionCell,
    SourceCell,
    TaskCell,
)
from sqlalchemy.exc import SAWarning

from mha_grader.course.errors import CourseError

# Kinds of cells, which cells are of the kind, and what a hand-in has for each
KINDS = (
    (GradeCell, utils.is_grade, (Grade,)),
    (SolutionCell, utils.is_solution, (Comment,)),
    (TaskCell, utils.is_task, (Grade, Comment)),
)
KEPT = ("student", "item", "auto_score", "manual_score", "extra_credit")


def graded_points(coursedir: Any, assignment: str) -> tuple[dict[str, float], int]:
    """The points of each graded cell in the gradebook, and how many hand-ins are in it."""
    with Gradebook(coursedir.db_url, coursedir.course_id) as book:
        try:
            notebook = book.find_notebook(assignment, assignment)
        except MissingEntry:
            return {}, 0
        graded = [*notebook.grade_cells, *notebook.task_cells]
        return {cell.name: cell.max_score for cell in graded}, len(notebook.submissions)


def points_of(notebook: Any) -> dict[str, float]:
    """What each graded cell of a notebook is worth, by its name."""
    graded = [cell for cell in notebook.cells if utils.is_grade(cell) or utils.is_task(cell)]
    return {cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points) for cell in graded}


def record_cells(coursedir: Any, assignment: str, made: Any, *, change_items: bool) -> None:
    """Make the gradebook know the cells of a notebook and no others, all in one transaction.

    Scores and comments of cells that stay are kept. Those of cells that are dropped go with them; the scores are
    kept in `grades/<assignment>-dropped.csv`.

    Args:
        coursedir: nbgrader's.
        assignment: the assignment's name.
        made: the notebook, whose cells have nbgrader's metadata.
        change_items: whether test cells may come, go or get other points if hand-ins are in the gradebook.

    Raises:
        CourseError: if they would, and `change_items` is not set; nothing has changed then.
    """
    found, hand_in_count = graded_points(coursedir, assignment)
    wanted = points_of(made)
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
                gone = [
                    cell for cell in (*notebook.grade_cells, *notebook.task_cells) if cell.name not in wanted
                ]
                _keep_scores(Path(coursedir.root, "grades", f"{assignment}-dropped.csv"), gone)
                for kind, chosen, places in KINDS:
                    _record_kind(book.db, notebook, kind, chosen, places, made.cells)
                _record_sources(book.db, notebook, made.cells)
                notebook.kernelspec = json.dumps(made.metadata.get("kernelspec", {}))
            book.db.commit()
        except BaseException:
            book.db.rollback()
            raise


def _keep_scores(kept: Path, gone: Iterable[Any]) -> None:
    """Write the scores of cells that go to the end of a file."""
    rows = [
        [entry.student.id, cell.name, entry.auto_score, entry.manual_score, entry.extra_credit]
        for cell in gone
        for entry in cell.grades
    ]
    if rows:
        kept.parent.mkdir(parents=True, exist_ok=True)
        heading = [] if kept.exists() else [KEPT]
        with kept.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([*heading, *rows])


def _record_kind(
    db: Any,
    notebook: Any,
    kind: type,
    chosen: Callable[[Any], bool],
    places: Sequence[type],
    cells: Sequence[Any],
) -> None:
    """Record the cells of one kind, and the places of each hand-in for what is entered about them."""
    wanted = {cell.metadata.nbgrader.grade_id: cell for cell in cells if chosen(cell)}
    found = {cell.name: cell for cell in db.query(kind).filter_by(notebook_id=notebook.id)}
    for name in found.keys() - wanted.keys():
        for each in (*(found[name].grades or ()), *(found[name].comments or ())):
            db.delete(each)
        db.delete(found[name])
    for name, cell in wanted.items():
        if name in found:
            recorded = found[name]
        else:
            recorded = kind(name=name, notebook=notebook)
            db.add(recorded)
            for place in places:
                for hand_in in notebook.submissions:
                    db.add(place(cell=recorded, notebook=hand_in))
        if kind is not SolutionCell:
            recorded.max_score = float(cell.metadata.nbgrader.points)
            recorded.cell_type = cell.cell_type


def _record_sources(db: Any, notebook: Any, cells: Sequence[Any]) -> None:
    wanted = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in cells
        if utils.is_grade(cell) or utils.is_solution(cell) or utils.is_locked(cell) or utils.is_task(cell)
    }
    found = {cell.name: cell for cell in db.query(SourceCell).filter_by(notebook_id=notebook.id)}
    for name in found.keys() - wanted.keys():
        db.delete(found[name])
    for name, cell in wanted.items():
        recorded = found.get(name) or SourceCell(name=name, notebook=notebook)
        db.add(recorded)
        recorded.cell_type, recorded.locked = cell.cell_type, utils.is_locked(cell)
        recorded.source, recorded.checksum = cell.source, cell.metadata.nbgrader.get("checksum")
