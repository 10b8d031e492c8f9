"""`mha-grade new`: an assignment to start from, in this course or in a course of one's own."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from string import Template
from typing import Any

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.course.mistakes import ENDING

TEMPLATES = Path(__file__).parent / "templates"


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "new",
        help="make an assignment to start from",
        description="Write solutions/NAME.py, a working assignment with one item, its test and one named mistake, "
        "which you change into your own. In a folder that is no course, the course's files are written as well.",
    )
    parser.add_argument(
        "name", metavar="NAME", help="letters, digits and underscores, for instance layer_norm"
    )
    parser.add_argument(
        "--notebook",
        type=Path,
        metavar="FILE.ipynb",
        help="take this nbgrader notebook, with its solutions and tests, and the files beside it, instead",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the files and say what comes next."""
    name = arguments.name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise CourseError(
            f"{name!r} cannot be an assignment's name: use small letters, digits and _, such as layer_norm"
        )
    root, files = _course_files(arguments.course or Path.cwd())
    sources = root / "solutions"
    if arguments.notebook is None:
        files |= {
            sources / f"{name}.py": _filled("assignment", name=name, title=_title(name)),
            sources / f"{name}{ENDING}": _filled("mistakes", name=name),
        }
    there = [path for path in (*files, sources / f"{name}.py", sources / name) if path.exists()]
    if there:
        raise CourseError(f"{there[0]} is there already: nothing was written")
    if arguments.notebook is not None:
        _take(arguments.notebook, sources / name)
    sources.mkdir(exist_ok=True, parents=True)
    for path, text in files.items():
        path.write_text(text, "utf-8")
        print(path.relative_to(root))
    print(f"\nChange it, then make the notebooks:\n  python -m mha_grader.course.authoring {name}")
    print(f"and see that the solutions pass their tests:\n  python -m mha_grader.grading.reference {name}")
    return 0


def _course_files(folder: Path) -> tuple[Path, dict[Path, str]]:
    """The course's folder, and the files that make one of a folder that is none."""
    try:
        return Course.find(folder).root, {}
    except CourseError:
        root = folder.resolve()
    return root, {
        root / "nbgrader_config.py": _filled("nbgrader_config", course=root.name),
        root / "solutions" / "course.toml": _filled("course"),
    }


def _take(notebook: Path, folder: Path) -> None:
    """Copy a notebook and what lies beside it, under the names that an assignment has."""
    if notebook.suffix != ".ipynb" or not notebook.is_file():
        raise CourseError(f"{notebook} is not a notebook")
    others = [path.name for path in notebook.parent.glob("*.ipynb") if path != notebook]
    shutil.copytree(notebook.parent, folder, ignore=lambda *_: {*others, ".ipynb_checkpoints"})
    (folder / notebook.name).rename(folder / f"{folder.name}.ipynb")
    print(folder.relative_to(folder.parents[1]))


def _filled(template: str, **names: str) -> str:
    return Template((TEMPLATES / f"{template}.txt").read_text("utf-8")).substitute(names)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
