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
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mha_grader.course import course_file, mistakes, plain_nbgrader, rubric
from mha_grader.course.cells import HIDDEN_BEGIN, HIDDEN_END, Cell, Kind, id_of, python_of, text_of
from mha_grader.course.errors import CourseError
from mha_grader.course.mistakes import Mistake
from mha_grader.course.rubric import Rubric

__all__ = [
    "HIDDEN_BEGIN",
    "HIDDEN_END",
    "Assignment",
    "Cell",
    "CourseError",
    "Kind",
    "assignment_names",
    "load_assignment",
]
HELPERS = ("checks.py",)  # lie in solutions/ and are no assignments


@dataclass(frozen=True)
class Released:
    """What students were given for another assignment."""

    name: str
    cells: Mapping[str, str]  # sources by id
    given: tuple[str, ...]  # sources of the given cells, and of the files beside the notebook


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
    packages: tuple[str, ...] | None = None  # that students of the course may import; None: the grader's list
    besides: tuple[str, ...] = ()  # packages that they may import in this assignment
    mistakes: tuple[Mistake, ...] = ()  # known ones, beside those of `mha_lib.pitfalls`
    rubrics: Mapping[str, Rubric] = field(default_factory=dict)  # of what a person marks, by the cell's id
    plain: bool = False  # an nbgrader notebook whose tests are plain asserts: see `grading.plain`

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the graded items, each of which has a test cell, in the notebook's order."""
        return tuple(cell.item for cell in self.cells if cell.kind == "test" and cell.item)

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the cells that students write in. In an assignment with parts, these are the items."""
        return tuple(cell.item for cell in self.cells if cell.kind == "solution" and cell.item)

    @property
    def marked(self) -> tuple[Cell, ...]:
        """The cells that a person marks: answers, and what an nbgrader notebook asks for beside them."""
        return tuple(cell for cell in self.cells if cell.by_person)

    def cell(self, kind: Kind, item: str) -> Cell:
        """The test cell of an item, or the solution cell that it is about.

        Raises:
            CourseError: if there is no such item; the text names those that there are.
        """
        if kind == "solution":
            item = next((test.about for test in self.cells if test.item == item and test.about), item)
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
        kinds = ("given", "solution", "test") if self.plain else ("given", "solution")
        parts = [
            cell.source for cell in before if cell.kind in kinds
        ]  # a plain test may use names of earlier ones
        files = [path.read_text("utf-8") for path in sorted(self.files.glob("*.py"))]
        hidden = f"{test.in_process} {test.source}" if self.plain else test.hidden
        return hashlib.sha256(repr([parts, files, hidden]).encode()).hexdigest()

    def rests_on(self, item: str) -> set[str]:
        """The earlier items that an item's solution calls, and those that these call; none if tests are plain."""
        return self._basis.get(item, set())

    @cached_property
    def _basis(self) -> dict[str, set[str]]:
        """`rests_on` of all items, which is asked for each hand-in."""
        found: dict[str, set[str]] = {}
        for item in () if self.plain else self.items:
            tree = ast.parse(self.cell("solution", item).source)
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            called = names & found.keys()
            found[item] = called.union(*(found[name] for name in called))
        return found

    def imports(self) -> tuple[str, ...]:
        """Names of the modules that the given cells import."""
        given = [ast.walk(ast.parse(python_of(c.released))) for c in self.cells if c.kind == "given"]
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
        with beside(self.files):
            for cell in self.cells:
                if cell.kind in ("given", "solution"):
                    exec(compile(cell.source, f"<reference {cell.id}>", "exec"), namespace)
        return types.SimpleNamespace(**namespace)


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[None]:
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


def assignment_names(course: Path) -> list[str]:
    """The names of all assignments that have a source: a text, or a notebook that nobody generated."""
    folder = course / "solutions"
    texts = {path.stem for path in folder.glob("*.py") if path.name not in HELPERS}
    texts = {name for name in texts if not f"{name}.py".endswith(mistakes.ENDING)}
    notebooks = {path.stem for path in folder.glob("*/*.ipynb") if path.stem == path.parent.name}
    return sorted(texts | {name for name in notebooks - texts if is_plain(course, name)})


def is_plain(course: Path, name: str) -> bool:
    """Whether the source of an assignment is an nbgrader notebook as people have them."""
    path = course / "solutions" / name / f"{name}.ipynb"
    written = not (course / "solutions" / f"{name}.py").exists() and path.exists()
    return written and "digest" not in _read(path)["metadata"].get("mha", {})


def in_teaching_order(course: Path, names: Iterable[str]) -> list[str]:
    """These assignments in the order of `_toc.yml`, then in alphabetical order those that are not in it."""
    contents = course / "_toc.yml"
    text = contents.read_text("utf-8") if contents.exists() else ""
    places = {name: text.find(f"exercises/{name}/") for name in names}
    return sorted(places, key=lambda name: (places[name] < 0, places[name], name))


def load_assignment(course: Path, name: str, instructor: dict[str, Any] | None = None) -> Assignment:
    """Read an assignment.

    Args:
        course: the course's root folder.
        name: the assignment's name.
        instructor: the instructor's notebook, if it does not lie in `solutions/`.

    Raises:
        CourseError: if it does not exist, has not been generated, or does not fit what was released; or if
            `course.toml` has packages for an assignment that does not exist.
    """
    known = assignment_names(course)
    if name not in known:
        raise CourseError(
            f"there is no assignment {name!r} in {course}; known assignments: {', '.join(known) or 'none'}"
        )
    instructor = instructor or _read(course / "solutions" / name / f"{name}.ipynb")
    released = _read(course / "exercises" / name / f"{name}.ipynb")
    plain = is_plain(course, name)
    version, cells = (plain_nbgrader.read if plain else _stamped)(name, instructor, released)
    said = course_file.read(course / "solutions" / "course.toml")
    if unknown := said.assignments() - set(known):
        raise CourseError(
            f"solutions/course.toml has a table [assignments.{min(unknown)}], but there is no such assignment; "
            f"known assignments: {', '.join(known)}"
        )
    return Assignment(
        name=name,
        version=version,
        cells=cells,
        files=course / "exercises" / name,
        metadata=released["metadata"],
        library=said.library,
        others=tuple(_others(course, [other for other in known if other != name])),
        packages=said.packages,
        besides=said.packages_of(name),
        mistakes=mistakes.read(course / "solutions" / f"{name}{mistakes.ENDING}"),
        rubrics=_rubrics(course, name, cells),
        plain=plain,
    )


@cache  # once a process, since a worker grades many
def load_version(course: Path, name: str, version: str) -> Assignment:
    """The assignment in the version that the command has seen: its workers may read it later.

    Raises:
        CourseError: if it has changed since.
    """
    assignment = load_assignment(course, name)
    if assignment.version != version:
        raise CourseError(f"{name} has changed from {version} to {assignment.version}: run the command again")
    return assignment


def _rubrics(course: Path, name: str, cells: Iterable[Cell]) -> dict[str, Rubric]:
    """The rubrics of an assignment, which fit its cells.

    Raises:
        CourseError: if they do not.
    """
    found = rubric.read(course / "solutions", name)
    points = {cell.id: cell.points for cell in cells if cell.by_person}
    for item, each in found.items():
        if points.get(item) != each.points:
            raise CourseError(
                f"{name}{rubric.ENDING} gives {item} {each.points:g} points, and the notebook "
                f"{points.get(item, 0.0):g}: run `make exercises`, or correct the rubric"
            )
    return found


def _stamped(name: str, instructor: dict[str, Any], released: dict[str, Any]) -> tuple[str, tuple[Cell, ...]]:
    """The version and the cells of an assignment that was generated from a text."""
    stamps = [notebook["metadata"].get("mha", {}) for notebook in (instructor, released)]
    if stamps[0] != stamps[1]:
        raise CourseError(
            f"exercises/{name} was released from another version than solutions/{name}: "
            "run `make exercises`, or check out the version that was handed out"
        )
    sources = {cell["id"]: text_of(cell) for cell in released["cells"]}
    cells = tuple(_cell(cell, sources[cell["id"]]) for cell in instructor["cells"])
    return f"{stamps[0]['version']}+{stamps[0]['digest']}", cells


def _others(course: Path, names: Iterable[str]) -> Iterator[Released]:
    for name in names:
        path = course / "exercises" / name / f"{name}.ipynb"
        if path.exists():
            cells = _read(path)["cells"]
            given = [text_of(cell) for cell in cells if "given" in cell["metadata"].get("tags", [])]
            given += [file.read_text("utf-8") for file in sorted(path.parent.glob("*.py"))]
            sources = {id_of(cell, number): text_of(cell) for number, cell in enumerate(cells)}
            yield Released(name, sources, tuple(given))


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise CourseError(f"{os.path.relpath(path)} is missing: run `make exercises`")
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


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
        source=text_of(cell),
        item=item,
        points=float(nbgrader.get("points", 0.0)),
        asks_for=tuple(own.get("asks_for", ())),
        may_use=tuple(own.get("may_use", ())),
        by_person=bool(nbgrader.get("solution") and nbgrader.get("grade")),
    )
