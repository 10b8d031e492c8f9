"""What `solutions/course.toml` says: all that the grader cannot know of a course's subject.

    self_study = true                        # whether readers may check their own code with the hidden tests
    library = ["softmax", '\\w+_entropy']     # regular expressions: libraries' versions of what students build
    packages = ["numpy", "scipy"]            # what students may import, as `pip install` calls it

    [assignments.tables]
    packages = ["pandas"]                    # and in this assignment, besides

The file and each of its entries may be absent. Packages bring along what they need, and NumPy is always there.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mha_grader.course.errors import CourseError

FORM = (
    'should hold self_study = true, library = ["…"], packages = ["…"] and tables '
    '[assignments.NAME] with packages = ["…"], each of them or none'
)


@dataclass(frozen=True)
class CourseFile:
    """The file's entries."""

    self_study: bool = False
    library: tuple[str, ...] = ()
    packages: tuple[str, ...] | None = None  # None: the grader's own list
    besides: tuple[tuple[str, tuple[str, ...]], ...] = ()  # packages by assignment

    def assignments(self) -> set[str]:
        """The names of the assignments that the file names packages for."""
        return set(dict(self.besides))

    def packages_of(self, assignment: str) -> tuple[str, ...]:
        """The packages that the file names for one assignment alone."""
        return dict(self.besides).get(assignment, ())


def read(path: Path) -> CourseFile:
    """Read the file; all is empty if it is not there.

    Raises:
        CourseError: if it has something else in it, or a pattern that is no regular expression.
    """
    if not path.exists():
        return CourseFile()
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        _only(data, {"self_study", "library", "packages", "assignments"})
        tables = data.get("assignments", {})
        for table in tables.values():
            _only(table, {"packages"})
        self_study = data.get("self_study", False)
        if not isinstance(self_study, bool):
            raise ValueError(f"self_study is {self_study!r}, neither true nor false")
        library = _texts(data.get("library", []))
        re.compile("|".join(library))
        packages = _texts(data["packages"]) if "packages" in data else None
        besides = tuple((name, _texts(table.get("packages", []))) for name, table in tables.items())
    except (ValueError, AttributeError, re.error) as error:
        raise CourseError(f"{os.path.relpath(path)} {FORM}: {error}") from None
    return CourseFile(self_study, library, packages, besides)


def _only(table: dict[str, Any], known: set[str]) -> None:
    if unknown := table.keys() - known:
        raise ValueError(f"it has {', '.join(sorted(unknown))}")


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{value!r} is not a list of texts")
    return tuple(value)
