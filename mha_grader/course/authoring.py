"""How assignments are written: one text source each, and everything else is generated from it.

`solutions/<assignment>.py` is a Python file in jupytext's percent format. Its head names the assignment and
its version, and perhaps files of `mha_lib` that students get beside the notebook; every cell says in its own
head what it is for:

    # %% [markdown] id="intro"                text; {points softmax} and {points} become numbers
    # %% role="given" id="imports"            code that the grader runs too
    # %% role="show" id="plot_weights"        plots and demonstrations, never run in grading
    # %% role="solution" item="softmax"       what the student writes
    # %% role="test" item="softmax"           visible checks, then the hidden tests between markers
    # %% role="author"                        imports that only the source needs; reaches no notebook

The body of a solution cell is one import, such as `from mha_lib.attention import softmax`: the generator puts
the source of that function or class in its place, with the bodies marked as solutions. So the code stands in
one place. In a given cell, imports from `mha_lib` are replaced in the same way, unmarked: that is how a piece
of an earlier assignment comes along. `import X as Y` brings X in under the name Y, and a wrong variant from
`mha_lib.pitfalls` without its docstring and decorators, which tell what is wrong. An item that the package does
not have (a dict of answers) is written out: first what the student starts from, then the solution between
unindented markers.

A test cell with `borrow="single_head.attention" share=0.25` has a short hidden block of its own. Behind it come
the hidden tests of that item of that assignment, made to be about this cell's item; they rest on the block's
first part, and their points are multiplied by `share`.

`python -m mha_grader.course.authoring` makes from each source the instructor's notebook, in
`solutions/<assignment>/`, and the student's, in `exercises/<assignment>/`; with `--check` it only tells whether
`exercises/` is up to date.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import inspect
import io
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, SaveCells
from traitlets.config import PyFileConfigLoader

import mha_lib
from mha_grader.testing import candidates

ROLES = ("given", "show", "solution", "test", "author")
HELPERS = ("checks.py",)  # lie in solutions/ and are copied beside every notebook
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_TESTS, END_TESTS = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
GO_ON = "raises-exception"  # a cell with this tag may fail, and "run all" goes on to the next item


class SourceError(Exception):
    """A text source is not what the generator can read; the message says which cell and why."""


def assignments(course_root: Path) -> list[str]:
    """The names of all assignments that have a source."""
    sources = (course_root / "solutions").glob("*.py")
    return sorted(path.stem for path in sources if path.name not in HELPERS)


def build(course_root: Path, assignment: str) -> Path:
    """Make the instructor's notebook and lay the helper files beside it.

    The folder is made anew: whatever else lay in it would reach the students.

    Returns:
        The path of the notebook.

    Raises:
        SourceError: if the source is not right.
    """
    sources = course_root / "solutions"
    notebook = instructor_notebook(sources / f"{assignment}.py")
    folder = sources / assignment
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in HELPERS:
        shutil.copyfile(sources / name, folder / name)
    for name in _read_source(sources / f"{assignment}.py").metadata["mha"].get("files", []):
        shutil.copyfile(Path(mha_lib.__path__[0]) / name, folder / Path(name).name)
    path = folder / f"{assignment}.ipynb"
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")
    return path


def release(course_root: Path, assignment: str) -> Path:
    """Build the instructor's notebook and let nbgrader make the student's and record it in the gradebook.

    Returns:
        The folder that goes to the students.

    Raises:
        SourceError: if the source is not right.
        NbGraderException: if nbgrader refuses, for example because items were added or removed after
            notebooks had been handed in.
    """
    return _release(course_root, assignment, record=True)


def _release(course_root: Path, assignment: str, record: bool) -> Path:
    build(course_root, assignment)
    root = str(course_root.resolve())
    config = PyFileConfigLoader("nbgrader_config.py", path=root).load_config()
    course = CourseDirectory(root=root, assignment_id=assignment, config=config)
    converter = GenerateAssignment(coursedir=course, config=config, force=True, no_database=not record)
    if not record:
        converter.preprocessors = [step for step in converter.preprocessors if step is not SaveCells]
    search_path = os.environ["PATH"]
    # nbgrader calls the command `alembic`, which lies beside the interpreter.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), search_path])
    try:
        converter.start()
    finally:
        os.environ["PATH"] = search_path
    return course_root / course.release_directory / assignment


def check(course_root: Path, names: Iterable[str] = ()) -> list[str]:
    """Tell where `exercises/` differs from what `solutions/` generates, without touching either.

    Args:
        course_root: the folder that holds both.
        names: the assignments to look at; all if there are none.

    Returns:
        One line for each file that differs, is missing or is left over.
    """
    names = list(names)
    with tempfile.TemporaryDirectory() as scratch_folder:
        scratch = Path(scratch_folder)
        (scratch / "solutions").mkdir()
        for path in [course_root / "nbgrader_config.py", *(course_root / "solutions").glob("*.py")]:
            shutil.copyfile(path, scratch / path.relative_to(course_root))
        for name in names or assignments(scratch):
            _release(scratch, name, record=False)
        expected = _files(scratch / "exercises", names)
        found = _files(course_root / "exercises", names)
    lines = []
    for file in sorted(expected.keys() | found.keys()):
        if file not in found:
            lines.append(f"exercises/{file} is missing")
        elif file not in expected:
            lines.append(f"exercises/{file} is not generated by anything in solutions/")
        elif expected[file] != found[file]:
            lines.append(f"exercises/{file} differs from what solutions/ generates")
    return lines


def _files(folder: Path, names: list[str]) -> dict[str, bytes]:
    """What lies in the folders of assignments, except what Jupyter and Python leave behind."""
    files = {}
    for path in folder.glob("*/**/*"):
        parts = path.relative_to(folder).parts
        left_behind = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if path.is_file() and not left_behind and (not names or parts[0] in names):
            files["/".join(parts)] = path.read_bytes()
    return files


def instructor_notebook(path: Path) -> Any:
    """The instructor's notebook of a text source: no outputs, the same at every call.

    Raises:
        SourceError: if the source is not right.
    """
    source = _read_source(path)
    stamp = source.metadata["mha"]
    cells = []
    for number, cell in enumerate(source.cells, start=1):
        try:
            made = _make_cell(cell, path.parent)
        except SourceError as error:
            label = " ".join(str(value) for value in cell.metadata.values())
            raise SourceError(f"{path.name}, cell {number} ({label}): {error}") from None
        cells += [made] if made else []
    try:
        _check_order(cells)
        _fill_in_points(cells)
    except SourceError as error:
        raise SourceError(f"{path.name}: {error}") from None
    content = [[cell.id, cell.cell_type, cell.source] for cell in cells]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    cells[0].source += f"\n\n*Assignment `{path.stem}`, version {stamp['version']} ({digest}).*"
    metadata = {
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
        "mha": {"assignment": path.stem, "version": stamp["version"], "digest": digest},
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _read_source(path: Path) -> Any:
    """The text source as a notebook whose metadata holds its stamp."""
    if not path.is_file():
        raise SourceError(f"there is no {path}")
    source = jupytext.read(path)
    stamp = source.metadata.get("mha", {})
    if stamp.get("assignment") != path.stem or not isinstance(stamp.get("version"), str):
        raise SourceError(f'{path.name}: its head should say mha: {{assignment: {path.stem}, version: "…"}}')
    return source


def _make_cell(cell: Any, sources: Path) -> Any:
    """The notebook's cell for a cell of the source, or None if it is for the author alone."""
    role, item = cell.metadata.get("role"), cell.metadata.get("item")
    if cell.cell_type == "code" and role not in ROLES:
        raise SourceError(f"role is {role!r}, but it should be one of {', '.join(ROLES)}")
    if role == "author":
        return None
    grade_id = {"solution": item, "test": f"test_{item}" if item else None}.get(role, cell.metadata.get("id"))
    if not re.fullmatch(r"[A-Za-z]\w*", grade_id or ""):
        wanted = "item" if role in ("solution", "test") else "id"
        raise SourceError(f'it needs {wanted}="…": letters, digits and underscores')
    points, text, tags = None, cell.source, []
    if role == "solution":
        text = solution_source(text, item)
    elif role == "test":
        if "borrow" in cell.metadata:
            visible, own = split_test(text)
            ground = read_parts(own)[0]
            borrowed = borrowed_tests(sources, item, **_borrow_options(cell.metadata))
            hidden = f"{own}\n\n\n{rest_on(borrowed, ground.name)}"
        else:
            visible, hidden = split_test(text)
        points, tags = sum(part.points for part in read_parts(hidden)), [GO_ON]
        text = "\n".join([visible, BEGIN_TESTS, hidden, END_TESTS])
    elif role is not None:
        text = given_source(text) if role == "given" else text
        tags = [role, GO_ON] if role == "show" else [role]
    nbgrader = {
        "schema_version": 3,
        "grade_id": grade_id,
        "grade": role == "test",
        "solution": role == "solution",
        "locked": role != "solution",
        "task": False,
    }
    if points is not None:
        nbgrader["points"] = points
    make = nbformat.v4.new_markdown_cell if cell.cell_type == "markdown" else nbformat.v4.new_code_cell
    return make(
        text.strip("\n"), id=grade_id, metadata={"nbgrader": nbgrader} | ({"tags": tags} if tags else {})
    )


def _check_order(cells: list[Any]) -> None:
    """The notebook starts with text, has no id twice, and every item is written first and tested later."""
    if not cells or cells[0].cell_type != "markdown":
        raise SourceError("the first cell should be text")
    ids = [cell.id for cell in cells]
    for grade_id in ids:
        if ids.count(grade_id) > 1:
            raise SourceError(f"two cells have the id {grade_id!r}")
    items = [cell.id for cell in cells if cell.metadata.nbgrader.solution]
    tests = [cell.id.removeprefix("test_") for cell in cells if cell.metadata.nbgrader.grade]
    for item in items:
        if item not in tests:
            raise SourceError(f"item {item!r} has no test")
    for item in tests:
        if item not in items:
            raise SourceError(f"the test of {item!r} has no solution cell")
        if ids.index(item) > ids.index(f"test_{item}"):
            raise SourceError(f"the test of {item!r} stands before its solution cell")


def _fill_in_points(cells: list[Any]) -> None:
    """Replace {points ITEM} and {points} in text by what the item and all items are worth."""
    points = {
        cell.id.removeprefix("test_"): cell.metadata.nbgrader.points
        for cell in cells
        if cell.metadata.nbgrader.grade
    }
    points[""] = sum(points.values())

    def number(match: re.Match[str]) -> str:
        if match[1] not in points:
            raise SourceError(f"{match[0]} stands in the text, but there is no item {match[1]!r}")
        return f"{points[match[1]]:g}"

    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\{points ?(\w*)\}", number, cell.source)


def solution_source(text: str, item: str) -> str:
    """The text of a solution cell of the instructor's notebook, solutions between nbgrader's markers.

    Args:
        text: the cell of the source: one import of the item, or the item written out with markers.
        item: the item's name.

    Raises:
        SourceError: if it is neither.
    """
    statements = _parse(text)
    if len(statements) == 1 and isinstance(statements[0], ast.ImportFrom):
        imported = statements[0]
        if [alias.asname or alias.name for alias in imported.names] != [item]:
            raise SourceError(
                f"its import should be: from {imported.module} import {item}, or … import … as {item}"
            )
        return mark_bodies(_source_of(imported, imported.names[0]))
    markers = re.findall(rf"^\s*({BEGIN_SOLUTION}|{END_SOLUTION})$", text, flags=re.MULTILINE)
    if not markers or markers != [BEGIN_SOLUTION, END_SOLUTION] * (len(markers) // 2):
        raise SourceError(f"it should be one import, or hold {BEGIN_SOLUTION} and {END_SOLUTION}")
    assigned = {name.id for s in statements for name in ast.walk(s) if isinstance(name, ast.Name)}
    defined = {s.name for s in statements if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    if item not in assigned | defined:
        raise SourceError(f"it does not define {item}")
    return text


def given_source(text: str) -> str:
    """The text of a given cell: where it imports from `mha_lib`, the sources of what it imports.

    Raises:
        SourceError: if it does other things beside such imports.
    """
    statements = _parse(text)
    imports = [
        statement
        for statement in statements
        if isinstance(statement, ast.ImportFrom) and str(statement.module).split(".")[0] == "mha_lib"
    ]
    if imports and len(imports) < len(statements):
        raise SourceError("a given cell with imports from mha_lib should hold nothing else")
    sources = [_source_of(imported, alias) for imported in imports for alias in imported.names]
    return "\n\n\n".join(sources) or text


def _source_of(imported: ast.ImportFrom, alias: ast.alias) -> str:
    """The source of what is imported, under the name that it is imported as."""
    module = importlib.import_module(str(imported.module))
    if not hasattr(module, alias.name):
        raise SourceError(f"{imported.module} has no {alias.name}")
    source = inspect.getsource(getattr(module, alias.name)).rstrip()
    if module.__name__.startswith("mha_lib.pitfalls."):
        source = _definition_alone(source)
    return rename(source, alias.name, alias.asname or alias.name)


def _definition_alone(source: str) -> str:
    """A function without its decorators, which name the mistake, and without its docstring, which tells it."""
    function = _parse(source)[0]
    docstring = function.body[0]  # type: ignore[attr-defined]
    lines = source.splitlines()
    return "\n".join(lines[function.lineno - 1 : docstring.lineno - 1] + lines[docstring.end_lineno :])


def rename(source: str, old: str, new: str) -> str:
    """The source with a name replaced: where it stands as a name, and where text shows a call of it."""
    lines = source.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type == tokenize.NAME:
            text = new if token.string == old else token.string
        elif token.type == tokenize.STRING:
            text = re.sub(rf"\b{old}\(", f"{new}(", token.string)
        else:
            continue
        (row, column), (end_row, end_column) = token.start, token.end
        lines[row - 1 : end_row] = [lines[row - 1][:column] + text + lines[end_row - 1][end_column:]]
    return "".join(lines)


def _borrow_options(metadata: Any) -> dict[str, Any]:
    borrow, share = str(metadata["borrow"]), metadata.get("share", 1.0)
    if not re.fullmatch(r"\w+\.\w+", borrow) or not isinstance(share, int | float) or share <= 0:
        raise SourceError('it should say borrow="assignment.item" and share=, a positive number')
    return {"borrow": borrow, "share": float(share)}


def borrowed_tests(sources: Path, item: str, borrow: str, share: float) -> str:
    """The hidden tests of another assignment's item, made to be about `item`.

    Args:
        sources: the folder of the text sources.
        item: whose tests they become.
        borrow: "assignment.item" whose tests they are.
        share: what their points are multiplied with.

    Raises:
        SourceError: if there is no such item.
    """
    assignment, other = borrow.split(".")
    path = sources / f"{assignment}.py"
    cells = jupytext.read(path).cells if path.is_file() else []
    for cell in cells:
        if cell.metadata.get("role") == "test" and cell.metadata.get("item") == other:
            hidden = rename(split_test(cell.source)[1], other, item)
            return re.sub(r"\bpoints=([\d.]+)", lambda match: f"points={float(match[1]) * share:g}", hidden)
    raise SourceError(f"there is no item {borrow} whose tests could be borrowed")


def mark_bodies(source: str) -> str:
    """Mark the body of a function, or of each method of a class, as a solution: all below its docstring.

    Raises:
        SourceError: if there is a body that stands on the line of its `def` or is a docstring alone.
    """
    lines = source.rstrip().splitlines()
    definition = _parse(source)[0]
    nodes = definition.body if isinstance(definition, ast.ClassDef) else [definition]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    for function in reversed(functions):  # from the end, so that line numbers stay right
        first = function.body[0]
        indent = " " * first.col_offset
        end = function.end_lineno or 0
        while end < len(lines) and lines[end].startswith(f"{indent}#"):
            end += 1  # a comment below the last statement belongs to the solution
        if ast.get_docstring(function) is not None:
            if len(function.body) == 1:
                raise SourceError(f"{function.name} has no body below its docstring")
            start = first.end_lineno or 0
        else:
            decorators = getattr(first, "decorator_list", [])
            start = min(node.lineno for node in [first, *decorators]) - 1
            while lines[start - 1].strip() == "" or lines[start - 1].lstrip().startswith("#"):
                start -= 1  # a comment above the first statement belongs to the solution
        if start < function.lineno:
            raise SourceError(f"the body of {function.name} should start on a line of its own")
        lines[end:end] = [indent + END_SOLUTION]
        lines[start:start] = [indent + BEGIN_SOLUTION]
    return "\n".join(lines)


def split_test(text: str) -> tuple[str, str]:
    """The visible and the hidden part of a test cell.

    Raises:
        SourceError: unless visible checks come first and one hidden block ends the cell.
    """
    lines = text.rstrip().splitlines()
    if lines.count(BEGIN_TESTS) != 1 or lines.count(END_TESTS) != 1 or lines[-1] != END_TESTS:
        raise SourceError(f"it should end in one hidden block, from {BEGIN_TESTS} to {END_TESTS}")
    begin = lines.index(BEGIN_TESTS)
    visible, hidden = "\n".join(lines[:begin]).strip(), "\n".join(lines[begin + 1 : -1]).strip()
    if not _parse(visible):
        raise SourceError("it has no visible checks before the hidden ones")
    return visible, hidden


@dataclass(frozen=True)
class PartHead:
    """What a part of a hidden test says about itself, read from its text."""

    name: str
    points: float


def read_parts(hidden: str) -> list[PartHead]:
    """The parts that the text of a hidden block defines, without running it.

    Raises:
        SourceError: if there is none, or one is not written as `mha_grader.testing.testing` says.
    """
    parts: list[PartHead] = []
    for function in _parse(hidden):
        parts += _made_parts(function)
        if not isinstance(function, ast.FunctionDef):
            continue
        calls = [d for d in function.decorator_list if isinstance(d, ast.Call)]
        calls = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "part"]
        if not calls:
            continue  # a helper of the parts
        options = {keyword.arg: keyword.value for keyword in calls[0].keywords}
        names = [part.name for part in parts]
        if function.name in names:
            raise SourceError(f"two parts are called {function.name!r}")
        if ast.get_docstring(function) is None:
            raise SourceError(f"part {function.name!r} has no docstring: say in one sentence what it proves")
        points = _literal(options.get("points"))
        if type(points) not in (int, float) or points <= 0:
            raise SourceError(f"part {function.name!r} needs points=… with a literal positive number")
        needs = _literal(options["needs"]) if "needs" in options else []
        for need in needs if isinstance(needs, list | tuple) else [needs]:
            if need not in names:
                raise SourceError(f"part {function.name!r} needs {need!r}, which is no part before it")
        parts.append(PartHead(function.name, float(points)))
    if not parts:
        raise SourceError("its hidden block has no part")
    return parts


def _made_parts(statement: ast.stmt) -> list[PartHead]:
    """The parts that `name = checker_parts(…)` or `name = part_for_each(…)` makes."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return []
    options = {keyword.arg: _literal(keyword.value) for keyword in call.keywords}

    def numbers(*names: str) -> bool:
        return all(type(options.get(name)) in (int, float) and options[name] > 0 for name in names)

    if call.func.id == "checker_parts":
        item = _literal(call.args[1]) if len(call.args) == 2 else None
        if not isinstance(item, str) or not numbers("right", "each"):
            raise SourceError(
                "checker_parts needs a checker, an item as text, and right=…, each=… as numbers"
            )
        caught = [PartHead(spec, float(options["each"])) for spec in candidates.wrong(item)]
        return [PartHead("accepts_what_is_right", float(options["right"])), *caught]
    if call.func.id == "part_for_each":
        proves = options.get("proves")
        if not isinstance(proves, dict) or not numbers("points"):
            raise SourceError(
                "part_for_each needs a check, points=… as a number, and proves=… as a dict of texts"
            )
        return [PartHead(question, float(options["points"])) for question in proves]
    return []


def rest_on(hidden: str, ground: str) -> str:
    """The hidden tests, in which every part that needs no other one needs the part `ground`."""
    needy = {
        function.name
        for function in _parse(hidden)
        if isinstance(function, ast.FunctionDef)
        for call in function.decorator_list
        if isinstance(call, ast.Call) and any(keyword.arg == "needs" for keyword in call.keywords)
    }

    def add(match: re.Match[str]) -> str:
        return match[0] if match[3] in needy else f'{match[1]}, needs="{ground}"{match[2]}def {match[3]}('

    return re.sub(r"(@part\(\s*points=[\d.]+)((?:(?!@part).)*?)def (\w+)\(", add, hidden, flags=re.DOTALL)


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None


def _parse(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        raise SourceError(f"line {error.lineno}: {error.msg}") from None


class ClearSolutionsKeepTemplates(ClearSolutions):
    """nbgrader's step that puts a stub where a solution was, except where the student has a template already.

    A solution that stands unindented follows what the student starts from, for example a dict of answers
    without values. It is removed without a stub: a stub raises, and then the cells below could not run.
    """

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Clear one cell."""
        template, marker, _ = f"\n{cell.source}".partition(f"\n{BEGIN_SOLUTION}\n")
        if marker and cell.metadata.nbgrader.solution:
            cell.source = template.strip()
            return cell, resources
        return super().preprocess_cell(cell, resources, cell_index)


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 1 if something is wrong or not up to date, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m mha_grader.course.authoring",
        description="Generate the instructor's and the students' notebooks from the sources in solutions/.",
    )
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="all if none is named")
    parser.add_argument("--check", action="store_true", help="only tell whether exercises/ is up to date")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.ERROR, format="%(message)s")  # so that nbgrader's errors are seen
    course_root = Path.cwd()
    try:
        if options.check:
            lines = check(course_root, options.assignments)
            print("\n".join(lines) if lines else "exercises/ is up to date")
            return 1 if lines else 0
        for name in options.assignments or assignments(course_root):
            print(release(course_root, name).relative_to(course_root))
    except (SourceError, NbGraderException) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
