"""An assignment as the grader sees it: the released notebook, the hidden tests, the reference.

It is read from the instructor's notebook in `solutions/`, which `mha_grader.course.authoring` generates, and from
the released one in `exercises/`, which students were given.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import itertools
import json
import os
import re
import sys
import tomllib
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

Kind = Literal["markdown", "given", "show", "solution", "test"]
HELPERS = ("checks.py",)  # lie in solutions/ and are copied beside every notebook
HIDDEN_BEGIN, HIDDEN_END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


class CourseError(Exception):
    """The course's own files are not as they should be; the text says what to do."""


@dataclass(frozen=True)
class Cell:
    """A cell of the assignment. `released` is what students got, `source` what the instructor has."""

    id: str
    kind: Kind
    released: str
    source: str
    item: str | None = None
    points: float = 0.0
    # Of a solution cell: names out of `Assignment.library` that it should use, and others that it may use.
    asks_for: tuple[str, ...] = ()
    may_use: tuple[str, ...] = ()

    @property
    def hidden(self) -> str:
        """The hidden block of a test cell."""
        before, begin, rest = self.source.partition(HIDDEN_BEGIN)
        hidden, end, _ = rest.partition(HIDDEN_END)
        if not begin or not end:
            raise CourseError(f"the test cell {self.id} has no hidden block")
        # The lines keep their numbers, so that a traceback in the instructor's log can be followed.
        return "\n" * before.count("\n") + hidden


@dataclass(frozen=True)
class Released:
    """What students were given for another assignment."""

    name: str
    cells: Mapping[str, str]  # sources by id
    given: tuple[str, ...]  # sources of the given cells


@dataclass(frozen=True)
class Assignment:
    """One assignment, ready to grade."""

    name: str
    version: str  # with the digest of the instructor's notebook: "1.0+3f9a…"
    cells: tuple[Cell, ...]
    files: Path  # the folder whose other files lie beside the notebook
    metadata: dict[str, Any]  # of the released notebook
    library: tuple[str, ...] = ()  # patterns of names: a library's versions of what students build
    others: tuple[Released, ...] = ()  # the course's other assignments that have been released

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the graded items in the notebook's order."""
        return tuple(cell.item for cell in self.cells if cell.kind == "solution" and cell.item)

    def cell(self, kind: Kind, item: str) -> Cell:
        """The solution or test cell of an item.

        Raises:
            CourseError: if there is no such item; the text names those that there are.
        """
        for cell in self.cells:
            if cell.kind == kind and cell.item == item:
                return cell
        raise CourseError(f"assignment {self.name!r} has no item {item!r}; it has {', '.join(self.items)}")

    def tests_digest(self, item: str) -> str:
        """Stands for all that an item's verdict depends on, beside the hand-in and the grader itself.

        Those are its hidden test, the given cells and the reference up to it, and the files beside the notebook.
        """
        test = self.cell("test", item)
        before = self.cells[: self.cells.index(test)]
        parts = [cell.source for cell in before if cell.kind in ("given", "solution")]
        files = [path.read_text("utf-8") for path in sorted(self.files.glob("*.py"))]
        return hashlib.sha256(repr([parts, files, test.hidden]).encode()).hexdigest()

    def rests_on(self, item: str) -> set[str]:
        """The earlier items that an item's solution calls, and those that these call."""
        tree = ast.parse(self.cell("solution", item).source)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        called = names & set(self.items[: self.items.index(item)])
        return called.union(*map(self.rests_on, called))

    def imports(self) -> tuple[str, ...]:
        """Names of the modules that the given cells import."""
        given = [ast.walk(ast.parse(cell.released)) for cell in self.cells if cell.kind == "given"]
        names: set[str] = set()
        for node in itertools.chain.from_iterable(given):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
        return tuple(sorted(names))

    @cached_property
    def reference(self) -> types.SimpleNamespace:
        """The instructor's solutions by name, executed in this process: they are trusted."""
        namespace: dict[str, Any] = {"__name__": f"reference_{self.name}"}
        with _beside(self.files):
            for cell in self.cells:
                if cell.kind in ("given", "solution"):
                    exec(compile(cell.source, f"<reference {cell.id}>", "exec"), namespace)
        return types.SimpleNamespace(**namespace)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Make the assignment's helper files importable, and forget them afterwards."""
    names = {file.stem for file in folder.glob("*.py")}
    kept = {name: sys.modules.pop(name) for name in names & sys.modules.keys()}
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


def assignments(course: Path) -> list[str]:
    """The names of all assignments that have a source."""
    sources = (course / "solutions").glob("*.py")
    return sorted(path.stem for path in sources if path.name not in HELPERS)


def in_teaching_order(course: Path, names: Iterable[str]) -> list[str]:
    """These assignments in the order of `_toc.yml`, then in alphabetical order those that are not in it."""
    contents = course / "_toc.yml"
    text = contents.read_text("utf-8") if contents.exists() else ""
    places = {name: text.find(f"exercises/{name}/") for name in names}
    return sorted(places, key=lambda name: (places[name] < 0, places[name], name))


def load(course: Path, name: str, instructor: Mapping[str, Any] | None = None) -> Assignment:
    """Read an assignment.

    Args:
        course: the course's root folder.
        name: the assignment's name.
        instructor: the instructor's notebook, if it does not lie in `solutions/`.

    Raises:
        CourseError: if it does not exist, has not been generated, or does not fit what was released.
    """
    known = assignments(course)
    if name not in known:
        raise CourseError(
            f"there is no assignment {name!r} in {course}; there is {', '.join(known) or 'none'}"
        )
    instructor = instructor or _read(course / "solutions" / name / f"{name}.ipynb")
    released = _read(course / "exercises" / name / f"{name}.ipynb")
    stamps = [notebook["metadata"].get("mha", {}) for notebook in (instructor, released)]
    if stamps[0] != stamps[1]:
        raise CourseError(
            f"exercises/{name} was released from another version than solutions/{name}: "
            "run `make exercises`, or check out the version that was handed out"
        )
    sources = {cell["id"]: _text(cell) for cell in released["cells"]}
    cells = tuple(_cell(cell, sources[cell["id"]]) for cell in instructor["cells"])
    return Assignment(
        name=name,
        version=f"{stamps[0]['version']}+{stamps[0]['digest']}",
        cells=cells,
        files=course / "exercises" / name,
        metadata=released["metadata"],
        library=_library(course / "solutions" / "course.toml"),
        others=tuple(_others(course, [other for other in known if other != name])),
    )


def _others(course: Path, names: Iterable[str]) -> Iterator[Released]:
    for name in names:
        path = course / "exercises" / name / f"{name}.ipynb"
        if path.exists():
            cells = _read(path)["cells"]
            given = [_text(cell) for cell in cells if "given" in cell["metadata"].get("tags", [])]
            yield Released(name, {cell["id"]: _text(cell) for cell in cells}, tuple(given))


def _library(path: Path) -> tuple[str, ...]:
    """What the course says are libraries' versions of what students build; a course need not say any."""
    if not path.exists():
        return ()
    try:
        patterns = tomllib.loads(path.read_text("utf-8"))["library"]
        re.compile("|".join(patterns))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, re.error) as error:
        raise CourseError(
            f'{os.path.relpath(path)} should hold library = ["…"], a list of regular expressions: {error}'
        ) from None
    return tuple(patterns)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise CourseError(f"{os.path.relpath(path)} is missing: run `make exercises`")
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _cell(cell: dict[str, Any], released: str) -> Cell:
    nbgrader = cell["metadata"].get("nbgrader", {})
    tags = cell["metadata"].get("tags", [])
    grade_id = nbgrader.get("grade_id", cell["id"])
    kind: Kind
    item = None
    if cell["cell_type"] != "code":
        kind = "markdown"
    elif nbgrader.get("solution"):
        kind, item = "solution", grade_id
    elif nbgrader.get("grade"):
        kind, item = "test", grade_id.removeprefix("test_")
    else:
        kind = "given" if "given" in tags else "show"
    own = cell["metadata"].get("mha", {})
    return Cell(
        id=cell["id"],
        kind=kind,
        released=released,
        source=_text(cell),
        item=item,
        points=float(nbgrader.get("points", 0.0)),
        asks_for=tuple(own.get("asks_for", ())),
        may_use=tuple(own.get("may_use", ())),
    )
