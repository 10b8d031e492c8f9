"""How assignments are written: one text source each, and everything else is generated from it.

`solutions/<assignment>.py` is a Python file in jupytext's percent format. Its head names the assignment and
its version, and perhaps files of `mha_lib` that students get beside the notebook; every cell says in its own
head what it is for:

    # %% [markdown] id="intro"                text; {points softmax} and {points} become numbers
    # %% role="given" id="imports"            code that the grader runs too
    # %% role="show" id="plot_weights"        plots and demonstrations, never run in grading
    # %% role="solution" item="softmax"       what the student writes
    # %% role="test" item="softmax"           visible checks, then the hidden tests between markers
    # %% role="check"                         what visible checks share; it goes to checks.py with them
    # %% role="author"                        imports that only the source needs; reaches no notebook

The visible checks of a test cell become a function in `checks.py` beside the notebook, and the notebook calls it in
one line, such as `check_softmax(softmax)`.

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

`solutions/course.toml` lists names of libraries' versions of what students build. Code that uses one is shown to
the instructor, unless the item's solution cell has `asks_for="NAME"` (then its lack is shown) or `may_use="NAME"`.

Known mistakes of an assignment outside of this course stand beside its source: see `mha_grader.course.mistakes`. An
nbgrader notebook `solutions/<assignment>/<assignment>.ipynb` without a text is its own source: see
`mha_grader.course.plain_nbgrader`.

`python -m mha_grader.course.authoring` makes from each source the instructor's notebook, in
`solutions/<assignment>/`, and the student's, in `exercises/<assignment>/`; with `--check` it only tells whether
`exercises/` is up to date.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, SaveCells
from traitlets.config import PyFileConfigLoader

import mha_lib
from mha_grader.course.assignment import assignments, is_plain
from mha_grader.course.errors import CourseError
from mha_grader.course.notebooks import instructor_notebook
from mha_grader.course.recorded_cells import RecordCells, changed_items
from mha_grader.course.sources import BEGIN_SOLUTION, SourceError, read_source
from mha_grader.course.visible_checks import HELPERS, visible_checks


class ItemsWouldChangeError(CourseError):
    """Items of an assignment with graded hand-ins would change."""

    def __init__(self, assignment: str, changes: list[str]):
        super().__init__(
            "\n  ".join([f"hand-ins of {assignment} are graded, and its items would change:", *changes])
            + f"\nTo change them for everybody, run: mha-grade change {assignment} --yes"
        )


def build(course_root: Path, assignment: str) -> Path:
    """Make the instructor's notebook and lay the helper files beside it.

    Whatever else lay in its folder is removed: it would reach the students.

    Returns:
        The path of the notebook.

    Raises:
        SourceError: if the source is not right.
    """
    folder = course_root / "solutions" / assignment
    if not is_plain(course_root, assignment):  # else it is its own source
        with _staged(course_root) as staged:
            _lay_out(course_root, assignment, staged)
            _put(staged / "solutions" / assignment, folder)
    return folder / f"{assignment}.ipynb"


def release(course_root: Path, assignment: str, *, items_may_change: bool = False) -> Path:
    """Make the instructor's notebook and the student's, and record the student's in the gradebook.

    All is made beside the course's files first. They are replaced when nothing can go wrong any more, each at once,
    so that a release that fails or is killed loses nothing; the next one completes it.

    Args:
        course_root: the course's folder.
        assignment: its name.
        items_may_change: whether items may come, go or change their points although hand-ins have been graded.

    Returns:
        The folder that goes to the students.

    Raises:
        SourceError: if the source is not right.
        ItemsWouldChangeError: if items would change that may not.
        NbGraderException: if nbgrader refuses for another reason.
    """
    with _staged(course_root) as staged:
        _lay_out(course_root, assignment, staged)
        changes = [] if items_may_change else _changed_items(course_root, assignment, staged)
        if changes:
            raise ItemsWouldChangeError(assignment, changes)
        made = _generate(course_root, assignment, staged, record=True)
        if not is_plain(course_root, assignment):
            _put(staged / "solutions" / assignment, course_root / "solutions" / assignment)
        folder = course_root / made.relative_to(staged)
        _put(made, folder)
    return folder


@contextlib.contextmanager
def _staged(course_root: Path) -> Iterator[Path]:
    """A folder for what is being made, on the course's own disk; what a killed release left behind is removed."""
    for left in course_root.glob(".release-*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".release-", dir=course_root) as folder:
        yield Path(folder)


def _put(made: Path, folder: Path) -> None:
    """Move files into a folder, each in the place of the one of its name; the notebook last. Others are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [path.relative_to(made) for path in made.rglob("*") if path.is_file()]
    for name in sorted(names, key=lambda name: (name.suffix == ".ipynb", name)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(made / name, folder / name)
    for path in sorted(folder.rglob("*"), reverse=True):  # files before their folders
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder) not in names:
            path.unlink()


def _lay_out(course_root: Path, assignment: str, staged: Path) -> None:
    """Make the folder of the instructor's notebook in `staged`."""
    sources, folder = course_root / "solutions", staged / "solutions" / assignment
    if is_plain(course_root, assignment):
        shutil.copytree(sources / assignment, folder)
        return
    notebook = instructor_notebook(sources / f"{assignment}.py")
    folder.mkdir(parents=True)
    source = read_source(sources / f"{assignment}.py")
    if checks := visible_checks(source, sources):
        (folder / HELPERS).write_text(checks.file(), encoding="utf-8", newline="\n")
    for name in source.metadata["mha"].get("files", []):
        shutil.copyfile(Path(mha_lib.__path__[0]) / name, folder / Path(name).name)
    text = nbformat.writes(notebook) + "\n"
    (folder / f"{assignment}.ipynb").write_text(text, encoding="utf-8", newline="\n")


def item_changes(course_root: Path, assignment: str) -> list[str]:
    """How the source's items differ from those of hand-ins that are in the gradebook, a line for each.

    Raises:
        SourceError: if the source is not right.
    """
    with _staged(course_root) as staged:
        _lay_out(course_root, assignment, staged)
        return _changed_items(course_root, assignment, staged)


def _changed_items(course_root: Path, assignment: str, staged: Path) -> list[str]:
    notebook = nbformat.read(staged / "solutions" / assignment / f"{assignment}.ipynb", as_version=4)
    found = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    points = {cell["grade_id"].removeprefix("test_"): cell["points"] for cell in found if cell.get("grade")}
    with _alembic_on_the_path():
        return changed_items(_config(course_root)[1], assignment, points)


def _config(course_root: Path) -> tuple[Any, str]:
    """nbgrader's configuration of a course, and its gradebook's address."""
    root = str(course_root.resolve())
    config = PyFileConfigLoader("nbgrader_config.py", path=root).load_config()
    return config, CourseDirectory(root=root, config=config).db_url


@contextlib.contextmanager
def _alembic_on_the_path() -> Iterator[None]:
    """nbgrader calls the command `alembic`, which lies beside the interpreter."""
    search_path = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), search_path])
    try:
        yield
    finally:
        os.environ["PATH"] = search_path


def _generate(course_root: Path, assignment: str, staged: Path, *, record: bool) -> Path:
    """Make the folder that goes to the students from the instructor's, both in `staged`."""
    root = course_root.resolve()
    config, db_url = _config(course_root)
    config.RecordCells.dropped = str(root / "grades" / f"{assignment}-dropped.csv")
    course = CourseDirectory(
        root=str(staged.resolve()),
        db_url=db_url,
        assignment_id=assignment,
        config=config,
    )
    converter = GenerateAssignment(coursedir=course, config=config, no_database=not record)
    steps = [RecordCells if step is SaveCells else step for step in converter.preprocessors]
    converter.preprocessors = [step for step in steps if record or step is not RecordCells]
    with _alembic_on_the_path():
        converter.start()
    return staged / course.release_directory / assignment


def check(course_root: Path, names: Iterable[str] = ()) -> list[str]:
    """Tell where `exercises/` differs from what `solutions/` generates, without touching either.

    Args:
        course_root: the folder that holds both.
        names: the assignments to look at; all if there are none.

    Returns:
        One line for each file that differs, is missing or is left over.
    """
    names = list(names)
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or assignments(course_root):
            _lay_out(course_root, name, Path(scratch))
            _generate(course_root, name, Path(scratch), record=False)
        expected = _files(Path(scratch) / "exercises", names)
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


class ClearSolutionsKeepTemplates(ClearSolutions):
    """nbgrader's step that puts a stub where a solution was, except where the student has a template already.

    A solution that stands unindented follows what the student starts from, for example a dict of answers
    without values. It is removed without a stub: a stub raises, and then the cells below could not run.

    What only the grader reads of a cell is removed as well.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Clear a notebook; one that nbgrader's users have written is cleared as they are used to."""
        if "mha" not in nb.metadata:
            for number, cell in enumerate(nb.cells, start=1):
                cell.id = f"cell-{number}"  # an old notebook has none, and would get other ones each time
            return ClearSolutions(parent=self.parent).preprocess(nb, resources)
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Clear one cell."""
        cell.metadata.pop("mha", None)
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
    except (SourceError, CourseError, NbGraderException) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
