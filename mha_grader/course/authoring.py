"""How assignments are written: one text source each, and everything else is generated from it.

`solutions/<assignment>.py` is a Python file in jupytext's percent format. Its head names the assignment and
its version, and perhaps files of `mha_lib` that students get beside the notebook; every cell says in its own
head what it is for:

    # %% [markdown] id="intro"                text; {points softmax} and {points} become numbers
    # %% role="given" id="imports"            code that the grader runs too
    # %% role="show" id="plot_weights"        plots and demonstrations, never run in grading
    # %% role="solution" item="softmax"       what the student writes
    # %% role="test" item="softmax"           visible checks, then the hidden tests between markers
    # %% [markdown] role="answer" item="why"  a text that a person marks: the cell contains a model answer
    # %% role="check"                         what visible checks share; it goes to checks.py with them
    # %% role="author"                        imports that only the source needs; reaches no notebook

The visible checks of a test cell become a function in `checks.py` beside the notebook, and the notebook calls it in
one line, such as `check_softmax(softmax)`.

The body of a solution cell is one import, such as `from mha_lib.attention import softmax`: the generator puts
the source of that function or class in its place, with the bodies marked as solutions. So the code stands in
one place. In a given cell, imports from `mha_lib` become imports from `given.py` beside the notebook, which
holds their code: that is how a piece of an earlier assignment comes along. `import X as Y` brings X in under the
name Y. What comes from `mha_lib.pitfalls` stands in the cell itself, a wrong variant without its docstring and
decorators, which tell what is wrong. An item that the package does not have (a dict of answers) is written out:
first what the student starts from, then the solution between unindented markers.

A test cell with `borrow="single_head.attention" share=0.25` has a short hidden block of its own. Behind it come
the hidden tests of that item of that assignment, made to be about this cell's item; they rest on the block's
first part, and their points are multiplied by `share`.

`solutions/course.toml` lists names of libraries' versions of what students build. Code that uses one is shown to
the instructor, unless the item's solution cell has `asks_for="NAME"` (then its lack is shown) or `may_use="NAME"`.

What a person marks is worth the points of its rubric, in a file beside the source: see `mha_grader.course.rubric`.
A text cell above the answer asks the question; {criteria why} in it becomes the list of what earns points.

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
import copy
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
from nbgrader.preprocessors import ClearSolutions, NbGraderPreprocessor, SaveCells
from traitlets.config import PyFileConfigLoader

from mha_grader.course import rubric
from mha_grader.course.assignment import assignment_names, is_plain
from mha_grader.course.cells import BEGIN_SOLUTION
from mha_grader.course.errors import CourseError
from mha_grader.course.exchange import put_in_place
from mha_grader.course.helper_files import helper_files
from mha_grader.course.notebooks import instructor_notebook
from mha_grader.course.recorded_cells import record_cells
from mha_grader.course.sources import SourceError, read_source


def build(course_root: Path, assignment: str) -> Path:
    """Make the instructor's notebook and lay the helper files beside it.

    The folder is made anew: whatever else lay in it would reach the students. It is made beside and then put in
    its place, so that another process that builds or reads it at this moment finds a whole one.

    Returns:
        The path of the notebook.

    Raises:
        SourceError: if the source is not right.
    """
    sources = course_root / "solutions"
    if is_plain(course_root, assignment):  # it is its own source
        return sources / assignment / f"{assignment}.ipynb"
    notebook = instructor_notebook(sources / f"{assignment}.py")
    source = read_source(sources / f"{assignment}.py")
    with tempfile.TemporaryDirectory(dir=sources, prefix=f".{assignment}-") as made:
        folder = Path(made, assignment)
        folder.mkdir()
        for name, content in helper_files(source, sources).items():
            (folder / name).write_bytes(content)
        text = nbformat.writes(notebook) + "\n"
        (folder / f"{assignment}.ipynb").write_text(text, encoding="utf-8", newline="\n")
        put_in_place(folder, sources / assignment)
    return sources / assignment / f"{assignment}.ipynb"


def release(course_root: Path, assignment: str, *, change_items: bool = False) -> Path:
    """Make both notebooks, record the released one in the gradebook, and put the files in their places.

    All is made in a folder beside. The gradebook changes in one transaction, and each folder is exchanged for the
    new one at once. So whatever fails, `exercises/<assignment>/` is the old folder or the new one, and a release
    that was broken off is finished by the next.

    Args:
        course_root: the course's folder.
        assignment: the assignment's name.
        change_items: whether items may be added, dropped or given other points although hand-ins are in the
            gradebook.

    Returns:
        The folder that goes to the students.

    Raises:
        SourceError: if the source is not right.
        NbGraderException: if nbgrader cannot convert the notebook.
        CourseError: if items differ from those that hand-ins were graded on, and `change_items` is not set.
    """
    with staged(course_root, assignment) as (made, notebook):
        course = _course_directory(course_root, assignment)
        with commands_beside_python():
            record_cells(course, assignment, notebook, change_items=change_items)
        if not is_plain(course_root, assignment):
            put_in_place(made / "solutions" / assignment, course_root / "solutions" / assignment)
        folder = Path(course.release_directory, assignment)
        put_in_place(made / folder, course_root / folder)
    return course_root / folder


@contextlib.contextmanager
def staged(course_root: Path, assignment: str) -> Iterator[tuple[Path, Any]]:
    """A release in a folder of its own, which goes away afterwards.

    Yields:
        The folder, with `solutions/<assignment>/` and the release directory in it, and the notebook as nbgrader's
        gradebook knows it: with the hidden tests, without the solutions.
    """
    for left in course_root.glob(f".release-{assignment}-*"):  # by a release that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=course_root, prefix=f".release-{assignment}-") as folder:
        made = Path(folder)
        _copy_sources(course_root, made)
        yield made, _generate(made, assignment)


def _copy_sources(course_root: Path, folder: Path) -> None:
    (folder / "solutions").mkdir()
    beside = [
        path for ending in ("*.py", f"*{rubric.ENDING}") for path in (course_root / "solutions").glob(ending)
    ]
    for path in [course_root / "nbgrader_config.py", *beside]:
        shutil.copyfile(path, folder / path.relative_to(course_root))
    for name in assignment_names(course_root):
        if is_plain(course_root, name):
            shutil.copytree(course_root / "solutions" / name, folder / "solutions" / name)


def _course_directory(course_root: Path, assignment: str) -> Any:
    root = str(course_root.resolve())
    config = PyFileConfigLoader("nbgrader_config.py", path=root).load_config()
    return CourseDirectory(root=root, assignment_id=assignment, config=config)


def _generate(course_root: Path, assignment: str) -> Any:
    """Make both notebooks in a folder that holds nothing else. Returns the one that the gradebook should know."""
    build(course_root, assignment)
    course = _course_directory(course_root, assignment)
    converter = GenerateAssignment(coursedir=course, config=course.config, force=True, no_database=True)
    kept: list[Any] = []

    class KeepNotebook(NbGraderPreprocessor):
        """Stands where nbgrader saves the cells."""

        def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
            kept.append(copy.deepcopy(nb))
            return nb, resources

    steps = converter.preprocessors
    converter.preprocessors = [KeepNotebook if step is SaveCells else step for step in steps]
    converter.start()
    return kept[0]


@contextlib.contextmanager
def commands_beside_python() -> Iterator[None]:
    """nbgrader calls the command `alembic`, which lies beside the interpreter."""
    search_path = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), search_path])
    try:
        yield
    finally:
        os.environ["PATH"] = search_path


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
        _copy_sources(course_root, scratch)
        for name in names or assignment_names(scratch):
            _generate(scratch, name)
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
        for name in options.assignments or assignment_names(course_root):
            print(release(course_root, name).relative_to(course_root))
    except (SourceError, CourseError, NbGraderException) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
