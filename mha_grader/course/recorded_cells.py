"""Recording a notebook's cells in nbgrader's gradebook, also after hand-ins have been graded.

nbgrader refuses any cell more or less then. Here text may come and go at any time, and so may items;
`changed_items` tells which would, so that nobody changes them without knowing. What was entered for an item that
goes is kept in a file.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    Notebook,
    SolutionCell,
    SourceCell,
)
from nbgrader.preprocessors import SaveCells
from traitlets import Unicode

KEPT = ("student", "item", "auto_score", "manual_score", "extra_credit")


def changed_items(db_url: str, assignment: str, points: Mapping[str, float]) -> list[str]:
    """How items differ from those that graded hand-ins have, a line for each; none if there are no hand-ins.

    Args:
        db_url: the gradebook's.
        assignment: the assignment's name, which is its notebook's as well.
        points: what each item would be worth.
    """
    with Gradebook(db_url) as book:
        try:
            notebook = book.find_notebook(assignment, assignment)
        except MissingEntry:
            return []
        if not notebook.submissions:
            return []
        old = {cell.name.removeprefix("test_"): cell.max_score for cell in notebook.grade_cells}
    lines = [f"{item} is dropped ({old[item]:g} points)" for item in old.keys() - points.keys()]
    lines += [f"{item} is new ({points[item]:g} points)" for item in points.keys() - old.keys()]
    lines += [
        f"{item} has {points[item]:g} points instead of {old[item]:g}"
        for item in old.keys() & points.keys()
        if old[item] != points[item]
    ]
    return sorted(lines)


class RecordCells(SaveCells):  # type: ignore[misc, unused-ignore]  # nbgrader has no types
    """nbgrader's step that records cells, without its refusal."""

    dropped = Unicode("", help="the CSV file that keeps the scores of items that go").tag(config=True)

    def _create_notebook(self, nb: Any) -> None:
        try:
            notebook = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        except MissingEntry:
            notebook = None
        if notebook is not None and notebook.submissions:
            self._adapt(notebook)
        super()._create_notebook(nb)

    def _adapt(self, notebook: Notebook) -> None:
        """Drop cells that are gone, and give the hand-ins an entry for each cell that is new; all or nothing."""
        session = self.gradebook.db
        gone = [cell for cell in notebook.grade_cells if cell.name not in self.new_grade_cells]
        self._keep_scores(gone)
        gone += [cell for cell in notebook.solution_cells if cell.name not in self.new_solution_cells]
        for cell in gone:
            for entry in cell.grades or cell.comments or []:
                session.delete(entry)
            session.delete(cell)
        for cell in notebook.source_cells:
            if cell.name not in self.new_source_cells:
                session.delete(cell)
        self._add(notebook, GradeCell, Grade, notebook.grade_cells, self.new_grade_cells)
        self._add(notebook, SolutionCell, Comment, notebook.solution_cells, self.new_solution_cells)
        self._add(notebook, SourceCell, None, notebook.source_cells, self.new_source_cells)
        session.commit()

    def _add(self, notebook: Notebook, kind: Any, entry: Any, old: Any, new: Mapping[str, Any]) -> None:
        session = self.gradebook.db
        for name in new.keys() - {cell.name for cell in old}:
            cell = kind(name=name, notebook=notebook, **new[name])
            session.add(cell)
            session.flush()  # gives it its id
            for submitted in notebook.submissions if entry else ():
                session.add(entry(cell_id=cell.id, notebook=submitted))

    def _keep_scores(self, gone: list[Any]) -> None:
        """Write the scores of items that go to the end of a file, before they go."""
        rows = [
            [grade.student.id, cell.name, grade.auto_score, grade.manual_score, grade.extra_credit]
            for cell in gone
            for grade in cell.grades
        ]
        if rows:
            path = Path(self.dropped)
            path.parent.mkdir(parents=True, exist_ok=True)
            heading = [] if path.exists() else [KEPT]
            with path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([*heading, *rows])
