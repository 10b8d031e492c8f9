"""From whatever was handed in to the sources that are graded, laid into the released notebook.

A submission is untrusted data. Only *sources* are taken from it: of the solution cells, by `grade_id` or, if
the metadata is damaged, by the name that a cell defines; and of code cells that the student added. Its test
cells, outputs, tags and all other metadata are ignored.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mha_grader.course.assignment import Assignment, Cell
from mha_grader.course.cells import assigned, python_of
from mha_grader.grading import marked, others
from mha_grader.grading.syntax import nodes_of, parsed

MAX_BYTES = 100 * 2**20
MAX_BRACKETS = 1_000_000  # lists and dicts in the file: each can take a hundred times its bytes in memory
MAX_CELLS = 1000  # that are looked at: reading one as Python takes up to hundredths of a second
MAX_SOURCE = 1_000_000  # characters of one cell
MAX_ADDED = 200  # cells
MAX_FILES = 10  # that are looked at, beside each other
ENDINGS = (".ipynb", ".ipynb.txt", ".ipynb.json")  # browsers add to a name when they save what they show
TOO_LARGE = "the file is larger than 100 MB: clear all outputs and hand it in again"
TOO_MANY = (
    f"the file holds more than {MAX_BRACKETS:,} lists and dicts: clear all outputs and hand it in again"
)


class Unusable(Exception):  # noqa: N818 - it is a status of a hand-in
    """Nothing can be graded. `status` is the hand-in's status, the text says what to do, to the student."""

    def __init__(self, status: str, text: str):
        super().__init__(text)
        self.status = status


@dataclass
class Rebuilt:
    """What is graded: for each item its source, and the added cells behind the cell they followed."""

    sources: dict[str, str]
    added: dict[str | None, list[str]] = field(default_factory=dict)  # by id of the released cell before them
    notes: list[str] = field(default_factory=list)  # for the student
    item_notes: dict[str, list[str]] = field(default_factory=dict)
    hints: dict[str, list[str]] = field(default_factory=dict)  # of each item, about what was taken as it is
    answers: dict[str, str] = field(default_factory=dict)  # what was written for a person to mark, by id
    changed: set[str] = field(default_factory=set)  # ids of demonstrations that the student changed

    @property
    def status(self) -> str:
        """`graded` if it was taken as handed in, `repaired` if something had to be put right."""
        return "repaired" if self.notes or self.item_notes else "graded"


class Found(NamedTuple):
    """The notebook that a student handed in."""

    data: bytes
    notes: tuple[str, ...] = ()  # for the student
    flags: tuple[str, ...] = ()  # for the instructor: what a person should look at


def find(folder: Path, assignment: Assignment) -> Found:
    """The notebook that a student handed in.

    A notebook under another name, in a folder of the folder or beside it is taken, if there is but one. Of several
    it is the one that was written in, if there is but one. Links are not followed: what is read is what this
    student handed in.

    Args:
        folder: the student's folder for the assignment.
        assignment: the assignment.

    Raises:
        Unusable: if there is no notebook, several under other names, or it cannot be read.
    """
    name = assignment.name
    if is_linked(folder):
        raise Unusable(
            "not-a-file", f"the folder {name} is a link to another place: hand in the notebook itself"
        )
    right = folder / f"{name}.ipynb"
    try:
        found = _notebooks(folder, right.name)
        chosen, versions = _choose(found, right, lambda path: _is_written(assignment, path))
        if chosen.stat().st_size > MAX_BYTES:
            raise Unusable("too-large", TOO_LARGE)
        data = chosen.read_bytes()
        written = [path for path in versions if _is_written(assignment, path)]
    except OSError as error:
        raise Unusable(
            "unreadable", f"the file cannot be read ({error.strerror}): hand it in again"
        ) from None
    notes = []
    if chosen != right:
        where = _printable(str(chosen.relative_to(folder.parent)))
        notes.append(f"the notebook was handed in as {where}; it should be {name}/{right.name}")
    if versions:
        beside = _names([path.name for path in versions])
        notes.append(f"{_printable(chosen.name)} was graded; {beside} beside it was not")
    flags = [f"{_names([path.name for path in written])} beside the graded file also contains work"]
    return Found(data, tuple(notes), tuple(flags if written else ()))


def _is_written(assignment: Assignment, path: Path) -> bool:
    """Whether a file is a notebook in which some item is no longer as it was released."""
    try:
        rebuilt = rebuild(assignment, path.read_bytes() if path.stat().st_size <= MAX_BYTES else b"")
    except Unusable:
        return False
    stubs = {cell.item: cell.released.strip() for cell in assignment.cells if cell.kind == "solution"}
    written = any(source.strip() not in ("", stubs[item]) for item, source in rebuilt.sources.items())
    return written or bool(rebuilt.answers)


def is_linked(folder: Path) -> bool:
    """Whether a folder <student>/<assignment> is only a link, or lies in one."""
    return folder.is_symlink() or folder.parent.is_symlink()


def _notebooks(folder: Path, right: str) -> list[Path]:
    """The notebooks in a folder; if it has none, those in its folders; if it is not there, the one beside it."""
    if not os.path.lexists(folder):
        return [path for path in (folder.parent / right,) if _is_plain(path)]
    if not folder.is_dir():
        return []
    entries = sorted(folder.iterdir())
    inner = [path for path in entries if path.is_dir() and not path.is_symlink() and path.name[0] not in "._"]
    found = [path for path in entries if _is_notebook(path)]
    return found or [path for place in inner[:100] for path in sorted(place.iterdir()) if _is_notebook(path)]


def _is_notebook(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS) and _is_plain(path)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _choose(found: list[Path], right: Path, is_written: Callable[[Path], bool]) -> tuple[Path, list[Path]]:
    """The notebook that is graded, and its other versions: those whose name begins with the right one."""
    if os.path.lexists(right) and not _is_plain(right):
        raise Unusable(
            "not-a-file", f"{right.name} is not a file (perhaps a link): hand in the notebook itself"
        )
    if not found:
        raise Unusable("missing", f"no notebook was found: hand in the file {right.name}")
    named = [path for path in found if path.name == right.name]
    if len(named) != 1 and len(found) > 1:
        written = [path for path in found[:MAX_FILES] if is_written(path)]
        if named or len(written) != 1:
            names = _names([path.name for path in found])
            raise Unusable(
                "missing", f"there is no {right.name} among {names}: hand in one file of that name"
            )
        return written[0], [path for path in found if path != written[0]]
    chosen = (named or found)[0]
    versions = [path for path in found if path != chosen and path.name.lower().startswith(right.stem.lower())]
    if versions and not is_written(chosen):
        written = [path for path in versions[:MAX_FILES] if is_written(path)]
        if len(written) == 1:
            return written[0], [chosen, *(path for path in versions if path != written[0])]
    return chosen, versions


def _names(names: list[str]) -> str:
    return ", ".join(_printable(name)[:100] for name in names[:10])


def _printable(name: str) -> str:
    """A file's name, which may hold any bytes, as it can be shown and stored."""
    return "".join(c if c.isprintable() else "?" for c in name)


def parse(data: bytes) -> list[dict[str, Any]]:
    """The cells of a notebook in any format since version 3, each with `cell_type`, `source` and `metadata`.

    Raises:
        Unusable: if it is not JSON or not a notebook.
    """
    if len(data) > MAX_BYTES:
        raise Unusable("too-large", TOO_LARGE)
    if data.count(b"[") + data.count(b"{") > MAX_BRACKETS:
        raise Unusable("too-large", TOO_MANY)
    text, is_unicode = _decode(data)
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        if not is_unicode and text.lstrip().startswith("{"):
            raise Unusable(
                "not-utf-8",
                "the file is not UTF-8, the encoding of notebooks: save it in Jupyter and hand that file in",
            ) from None
        raise Unusable(
            "not-json", "the file is not a notebook (not JSON): save it in Jupyter and hand that file in"
        ) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict) and isinstance(notebook.get("worksheets"), list):
        sheets = [sheet for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        inside = [sheet.get("cells") for sheet in sheets]
        cells = [cell for found in inside if isinstance(found, list) for cell in found]
    if not isinstance(cells, list):
        raise Unusable("not-a-notebook", "the file is JSON, but it has no cells: hand in the notebook itself")
    return [_normal(cell) for cell in cells if isinstance(cell, dict)]


def _decode(data: bytes) -> tuple[str, bool]:
    """The text, and whether it is Unicode. If not, ASCII is read right in it, and other letters perhaps not."""
    try:
        return data.decode(json.detect_encoding(data)), True
    except UnicodeDecodeError:
        return data.decode("latin-1"), False


def _normal(cell: dict[str, Any]) -> dict[str, Any]:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = cell.get("metadata")
    return {
        "cell_type": cell.get("cell_type"),
        "source": _newlines(source) if isinstance(source, str) else "",
        "metadata": metadata if isinstance(metadata, dict) else {},
        "id": cell.get("id"),
    }


def _newlines(text: str) -> str:
    # A lone surrogate cannot be sent anywhere; it can stand in JSON, though.
    return text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode("utf-8")


def rebuild(assignment: Assignment, data: bytes) -> Rebuilt:
    """Take the sources from a submission.

    Raises:
        Unusable: if there is nothing to be taken.
    """
    everything = parse(data)
    cells = everything[:MAX_CELLS]
    if not cells:
        raise Unusable("not-a-notebook", "the notebook has no cells: hand in the notebook that you worked in")
    if (other := others.belongs_to(assignment, cells)) is not None:
        raise Unusable(
            "another-assignment",
            f"this is the notebook of {other}, and not of {assignment.name}: hand in {assignment.name}.ipynb",
        )
    places = {cell.id: cell for cell in assignment.cells}
    texts = {
        cell.released.strip(): cell
        for cell in assignment.cells
        if cell.kind != "solution" and not cell.by_person  # stubs are all the same
    }
    candidates: dict[str, list[str]] = {item: [] for item in assignment.written}
    loose: list[
        tuple[str | None, str]
    ] = []  # code cells without a place, behind the released cell before them
    split = _split_cells(cells, places, texts)
    present = {place.id for cell in cells if (place := _place(cell, places, texts)) is not None}
    # A given cell that was changed, and that only the names it defines still tell: it keeps its place.
    changed = {
        frozenset(names): cell
        for cell in assignment.cells
        if cell.kind == "given" and cell.id not in present and (names := defined_names(cell.released))
    }
    in_tests: list[str] = []  # test cells that were changed
    demonstrations: set[str] = set()  # that were changed
    cut: dict[str, None] = {}  # items whose cell is too long
    anchor: str | None = None
    for number, cell in enumerate(cells):
        place = None if number in split else _place(cell, places, texts)
        if place is None and number not in split and cell["cell_type"] == "code":
            place = changed.pop(frozenset(defined_names(cell["source"])), None)
        if place is not None:
            anchor = place.id
        if cell["cell_type"] != "code" and not (place is not None and place.kind == "solution"):
            continue
        source = cell["source"][:MAX_SOURCE]
        if place is not None and place.kind == "solution":
            assert place.item is not None
            candidates[place.item].append(source)
            if source != cell["source"]:
                cut[place.item] = None
        elif place is not None and place.kind == "test" and source.strip() != place.released.strip():
            in_tests.append(source)
        elif place is None or (place.kind in ("given", "show") and source.strip() != place.released.strip()):
            loose.append((anchor, source))
            demonstrations |= {place.id} if place is not None else set()
    rebuilt = _assemble(assignment, candidates, loose, in_tests)
    rebuilt.changed = demonstrations
    placed = [(_place(cell, places, texts), cell["cell_type"], cell["source"][:MAX_SOURCE]) for cell in cells]
    rebuilt.answers, missing = marked.written(assignment, placed, rebuilt.sources)
    rebuilt.notes += [
        f"the cell for {name} is missing from your notebook: copy it from a fresh one" for name in missing
    ]
    rebuilt.notes += [
        f"pictures in {name} are not passed on: the person who marks it sees only your words"
        for name, text in rebuilt.answers.items()
        if "attachment:" in text
    ]
    if not _decode(data)[1]:
        rebuilt.notes.append(
            "the file is not UTF-8, the encoding of notebooks: letters other than a to z may be wrong in it"
        )
    if len(everything) > MAX_CELLS:
        rebuilt.notes.append(
            f"only the first {MAX_CELLS} of the notebook's {len(everything)} cells were read"
        )
    for item in cut:
        rebuilt.item_notes.setdefault(item, []).append(
            f"the cell for {item} is very long: only its first {MAX_SOURCE:,} characters were run"
        )
    return rebuilt


def _place(cell: dict[str, Any], places: dict[str, Cell], texts: dict[str, Cell]) -> Cell | None:
    """The released cell that this one is, by grade_id, by text, or by id."""
    nbgrader = cell["metadata"].get("nbgrader")
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    if isinstance(grade_id, str) and grade_id in places:
        return places[grade_id]
    if cell["source"].strip() in texts:
        return texts[cell["source"].strip()]
    if isinstance(cell["id"], str) and cell["id"] in places:
        place = places[cell["id"]]
        return place if cell["cell_type"] == "code" or place.by_person else None
    return None


def _split_cells(cells: list[dict[str, Any]], places: dict[str, Cell], texts: dict[str, Cell]) -> set[int]:
    """Numbers of the cells that bear a solution cell's name only since it was split, copied or mixed up.

    Jupyter gives every piece of a split cell the metadata of the whole. If one of the solution cells defines the
    item, one that bears its name and does not, such as a helper function, is a cell that the student added; so is
    one that defines another item instead.
    """
    own: dict[str, list[int]] = {}
    for number, cell in enumerate(cells):
        place = _place(cell, places, texts)
        if place is not None and place.kind == "solution" and place.item is not None:
            own.setdefault(place.item, []).append(number)
    names = {number: defined_names(cells[number]["source"]) for numbers in own.values() for number in numbers}
    everything: set[str] = set().union(*names.values())
    split: set[int] = set()
    for item, numbers in own.items():
        without = {number for number in numbers if item not in names[number]}
        if len(without) < len(numbers):
            split |= without
        elif item in everything:
            split |= {number for number in without if names[number] & own.keys()}
    return {
        number for number in split if cells[number]["cell_type"] == "code" and cells[number]["source"].strip()
    }


def _assemble(
    assignment: Assignment,
    candidates: dict[str, list[str]],
    loose: list[tuple[str | None, str]],
    in_tests: list[str],
) -> Rebuilt:
    rebuilt = Rebuilt(sources={})
    if len(loose) > MAX_ADDED:
        rebuilt.notes.append(f"only the first {MAX_ADDED} of {len(loose)} cells that you added were run")
        loose = loose[:MAX_ADDED]
    names = {source: defined_names(source) for _, source in loose}
    for item in assignment.written:
        cell = assignment.cell("solution", item)
        stub = cell.released.strip()
        own = candidates[item]
        written = [source for source in own if source.strip() not in ("", stub)]
        elsewhere = [pair for pair in loose if item in names[pair[1]]]
        if not written and not elsewhere:  # in a check, which is not run otherwise, or with another item
            others = [source for other in assignment.written if other != item for source in candidates[other]]
            found = [source for source in (*others, *in_tests)[:MAX_ADDED] if item in defined_names(source)]
            elsewhere = [(None, source) for source in found]
        notes = rebuilt.item_notes.setdefault(item, [])
        if len(own) > 1:
            which = "the last one that was written in" if written else "the first one"
            notes.append(f"the cell for {item} occurs {len(own)} times in your notebook; {which} was graded")
        if written:
            rebuilt.sources[item] = written[-1]
        elif elsewhere:
            # Written in a cell of its own, or the metadata is gone: it is graded at the item's place.
            rebuilt.sources[item] = elsewhere[-1][1]
            loose = [pair for pair in loose if pair is not elsewhere[-1]]
            where = "its own cell is as it was released" if own else "its own cell is missing"
            notes.append(f"{item} was found in another cell, since {where}")
        else:
            rebuilt.sources[item] = own[0] if own else ""
            if not own:
                notes.append(f"the cell for {item} is missing from your notebook: copy it from a fresh one")
        if not notes:
            del rebuilt.item_notes[item]
    for anchor, source in loose:
        rebuilt.added.setdefault(anchor, []).append(source)
    _find_late(assignment, rebuilt)
    return rebuilt


def _find_late(assignment: Assignment, rebuilt: Rebuilt) -> None:
    """Give a hint for each item that uses what is first defined behind its check."""
    known: set[str] = set().union(*(defined_names(source) for source in rebuilt.added.get(None, ())))
    waiting: dict[str, set[str]] = {}  # names that an item uses and that are not known yet
    checked: set[str] = set()
    for cell in assignment.cells:
        if cell.kind == "test" and cell.item is not None:
            checked.add(cell.item)
        elif cell.kind == "solution" and cell.item is not None:
            source = rebuilt.sources[cell.item]
            known |= defined_names(source) | {cell.item}
            waiting[cell.item] = _used_names(source) - known
        elif cell.kind == "given":
            known |= _given_names(cell.released)
        elif cell.kind == "show":
            known |= _shown_names(cell.released)
        for source in rebuilt.added.get(cell.id, ()):
            names = defined_names(source) - known
            for item in checked:
                rebuilt.hints.setdefault(item, []).extend(
                    f"{name} is defined only in a cell after the check of {item}, and cells run from top to "
                    "bottom: move that cell up"
                    for name in sorted(names & waiting.get(item, set()))
                )
            known |= names
    rebuilt.hints = {item: hints for item, hints in rebuilt.hints.items() if hints}


@functools.cache  # what is released is the same for all students
def _given_names(source: str) -> frozenset[str]:
    return frozenset().union(*map(assigned, ast.parse(python_of(source)).body))


@functools.cache
def _shown_names(source: str) -> frozenset[str]:
    return frozenset(defined_names(source))


def _used_names(source: str) -> set[str]:
    """Names that a cell's text reads and does not assign anywhere."""
    nodes = nodes_of(source)
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    inner = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return (
        read
        - {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        - arguments
        - inner
        - imported
    )


def defined_names(source: str) -> set[str]:
    """What a cell's text defines at its top level, as functions, classes or variables."""
    tree = parsed(source)
    if tree is None:
        found = re.findall(r"^(?:async +def|def|class) +(\w+)|^(\w+) *=[^=]", source, re.M)
        return {function or variable for function, variable in found}
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names
