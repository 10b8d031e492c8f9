"""What checking one's own code needs of the course: sources with hidden tests, and the released notebooks.

In an installed wheel they lie in the folder `material` beside this file, where `setup.py` puts them; in a copy of
the repository, in its `solutions/` and `exercises/`. The instructors switch checking off with the line
`self_study = false` in `solutions/course.toml`; a wheel that is made then is without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mha_grader.course import assignment as assignments
from mha_grader.course.assignment import Assignment, CourseError
from mha_grader.course.kit import self_study
from mha_grader.course.notebooks import instructor_notebook

PACKED = Path(__file__).with_name("material")
REPOSITORY = Path(__file__).parents[2]
BOOK_LINE = re.compile(r"\*\*Book\*\*\s+(.+?)(?:\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Released:
    """An assignment's notebook as readers have it."""

    name: str
    notebook: Mapping[str, Any]

    @property
    def version(self) -> str:
        """The version with its digest."""
        stamp = self.notebook["metadata"]["mha"]
        return f"{stamp['version']}+{stamp['digest']}"

    @cached_property
    def points(self) -> dict[str, float]:
        """What each item that is tested is worth, in the notebook's order."""
        marks = [cell["metadata"].get("nbgrader", {}) for cell in self.notebook["cells"]]
        marks = [mark for mark in marks if mark.get("grade_id") not in self.marked]
        worth = {mark["grade_id"]: float(mark["points"]) for mark in marks if mark.get("grade")}
        return {mark["grade_id"]: worth[f"test_{mark['grade_id']}"] for mark in marks if mark.get("solution")}

    @property
    def marked(self) -> tuple[str, ...]:
        """What a person marks."""
        marks = [cell["metadata"].get("nbgrader", {}) for cell in self.notebook["cells"]]
        return tuple(mark["grade_id"] for mark in marks if mark.get("grade") and mark.get("solution"))

    def reading(self, item: str) -> str:
        """Where the book explains an item, as its statement says; "" if it does not."""
        cells = self.notebook["cells"]
        place = [cell["id"] for cell in cells].index(item)
        for cell in reversed(cells[:place]):
            found = cell["cell_type"] == "markdown" and BOOK_LINE.search("".join(cell["source"]))
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
                "this copy of the course checks nobody's own code: it is without the hidden tests, or its "
                "instructors have set self_study = false in solutions/course.toml"
            )
        self.names = assignments.in_teaching_order(self.root, assignments.assignments(self.root))

    def released(self, name: str) -> Released:
        """An assignment's notebook as readers have it.

        Raises:
            CourseError: if there is no such assignment.
        """
        if name not in self.names:
            raise CourseError(f"there is no assignment {name!r}; there is {', '.join(self.names)}")
        text = (self.root / "exercises" / name / f"{name}.ipynb").read_text("utf-8")
        return Released(name, json.loads(text))

    def assignment(self, name: str) -> Assignment:
        """An assignment with its hidden tests.

        Raises:
            CourseError: if there is no such assignment.
        """
        self.released(name)  # complains if there is none
        made = instructor_notebook(self.root / "solutions" / f"{name}.py")
        return assignments.load(self.root, name, made)
