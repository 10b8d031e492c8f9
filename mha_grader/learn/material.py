"""What checking one's own code needs of the course: sources with hidden tests, and the released notebooks.

In an installed wheel they lie in the folder `material` beside this file, where `setup.py` puts them; in a copy of
the repository, in its `solutions/` and `exercises/`. The instructors switch checking off with the line
`self_study = false` in `solutions/course.toml`; a wheel that is made then is without them.

Where the book lies on the web is what `nbgrader_config.py` says; of the book's pages a wheel has the titles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import (
    Assignment,
    CourseError,
    assignment_names,
    in_teaching_order,
    is_plain,
    load_assignment,
)
from mha_grader.course.cells import id_of, text_of
from mha_grader.course.kit import self_study

PACKED = Path(__file__).with_name("material")
REPOSITORY = Path(__file__).parents[2]
BOOK_URL = re.compile(r'^c\.FeedbackExporter\.book_url = "(.*)"', re.MULTILINE)
BOOK_LINE = re.compile(r"\*\*Book\*\*\s+(.+?)(?:\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Released:
    """An assignment's notebook as readers have it."""

    name: str
    notebook: Mapping[str, Any]

    @cached_property
    def points(self) -> dict[str, float]:
        """What each item that is tested is worth, in the notebook's order."""
        cells = [cell for cell in self.notebook["cells"] if cell["cell_type"] == "code"]
        marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
        tests = [mark for mark in marks if mark.get("grade") and not mark.get("solution")]
        return {mark["grade_id"].removeprefix("test_"): float(mark["points"]) for mark in tests}

    @property
    def marked(self) -> tuple[str, ...]:
        """What a person marks."""
        marks = [cell["metadata"].get("nbgrader", {}) for cell in self.notebook["cells"]]
        return tuple(mark["grade_id"] for mark in marks if mark.get("grade") and mark.get("solution"))

    def reading(self, item: str) -> str:
        """Where the book explains an item, as its statement says; "" if it does not."""
        cells = self.notebook["cells"]
        places = [n for n, cell in enumerate(cells) if id_of(cell, n) in (item, f"test_{item}")]
        for cell in reversed(cells[: places[0]]):
            found = cell["cell_type"] == "markdown" and BOOK_LINE.search(text_of(cell))
            if found:
                return " ".join(found[1].replace("*", "").split())
        return ""


class Material:
    """The course's material at one place."""

    def __init__(self, root: Path | None = None):
        """Take a course's folder; by default what is installed.

        Raises:
            CourseError: if checking is switched off, or nothing is there.
        """
        self.root = root or (PACKED if PACKED.is_dir() else REPOSITORY)
        if not self_study(self.root):
            raise CourseError(
                "this copy of the course cannot check your code: it lacks the hidden tests, or its "
                "instructors have set self_study = false in solutions/course.toml"
            )
        self.names = in_teaching_order(self.root, assignment_names(self.root))

    def released(self, name: str) -> Released:
        """An assignment's notebook as readers have it.

        Raises:
            CourseError: if there is no such assignment.
        """
        if name not in self.names:
            raise CourseError(f"there is no assignment {name!r}; known assignments: {', '.join(self.names)}")
        text = (self.root / "exercises" / name / f"{name}.ipynb").read_text("utf-8")
        return Released(name, json.loads(text))

    def assignment(self, name: str) -> Assignment:
        """An assignment with its hidden tests.

        Raises:
            CourseError: if there is no such assignment.
        """
        self.released(name)  # complains if there is none
        if is_plain(self.root, name):
            return load_assignment(self.root, name)
        from mha_grader.course.notebooks import instructor_notebook  # takes seconds: jupytext imports much

        made = instructor_notebook(self.root / "solutions" / f"{name}.py")
        return load_assignment(self.root, name, made)

    def page(self, reading: str) -> str:
        """The address of the page that a reading names first; "" if the book has none or is not on the web."""
        title = re.split(r", |; ", reading)[0]
        for path in sorted((self.root / "book").glob("*.md")):
            if self._book and f"\n# {title}\n" in f"\n{path.read_text('utf-8')}":
                return f"{self._book.rstrip('/')}/{path.stem}.html"
        return ""

    @cached_property
    def _book(self) -> str:
        """Where readers have the book: what nbgrader_config.py says."""
        config = self.root / "nbgrader_config.py"
        said = BOOK_URL.findall(config.read_text("utf-8")) if config.exists() else []
        return str(said[-1]) if said else ""
