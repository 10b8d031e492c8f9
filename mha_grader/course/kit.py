"""The kits: released notebooks with what it takes to work on them, as a folder and as a zip.

`python -m mha_grader.course.kit multi_head` makes the kit of one assignment in `build/kit/`, for the students of a
class. It holds nothing of the grader, the reference or the solutions. All these kits unpack into one folder.

`python -m mha_grader.course.kit` makes the public kit, for those who learn alone: all assignments, and the course's
package with `mha-grade check`, which holds the hidden tests and the solutions. If the instructors have set
`self_study = false` in solutions/course.toml, it is the kit of the first assignment.

A zip has the same bytes whenever its files have.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from string import Template

from mha_grader.course import course_file
from mha_grader.course.assignment import CourseError, in_teaching_order

NAME = "attention-exercises"
TEMPLATES = Path(__file__).parent / "templates"
# There is no current PyTorch for Macs with an Intel processor; most assignments do without.
MARKERS = {"torch": ' ; sys_platform != "darwin" or platform_machine == "arm64"'}
OLDEST = "315532800"  # 1980, in seconds since 1970: the time of all files in the package
ENVIRONMENT = """\
name: attention
channels: [conda-forge]
dependencies:
  - python=3.12
  - pip
  - pip: [-r requirements.txt]
"""


def self_study(course_root: Path) -> bool:
    """Whether a course lets its readers check their own code with its hidden tests."""
    return course_file.read(course_root / "solutions" / "course.toml").self_study


def make_kit(course_root: Path, destination: Path, name: str) -> Path:
    """Make the kit of one assignment from `exercises/`, `pyproject.toml` and `constraints.txt`.

    Args:
        course_root: the folder that holds them.
        destination: gets the kit as a folder and as a zip; an older kit in it is replaced.
        name: the assignment's.

    Returns:
        The path of the zip.

    Raises:
        CourseError: if there is no such assignment.
    """
    folder = _lay_out(course_root, destination, [name], "student")
    return _zip(folder, destination / f"{NAME}-{name}.zip")


def make_public_kit(course_root: Path, destination: Path) -> Path:
    """Make the kit for those who learn alone, see the module; otherwise as `make_kit`."""
    names = _released(course_root)
    if not self_study(course_root):
        return _zip(_lay_out(course_root, destination, names[:1], "student"), destination / f"{NAME}.zip")
    folder = _lay_out(course_root, destination, names, "learn")
    wheel = make_wheel(course_root, folder)
    with (folder / "requirements.txt").open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"./{wheel.name}\n")
    return _zip(folder, destination / f"{NAME}.zip")


def make_wheel(course_root: Path, destination: Path) -> Path:
    """Build the course's package as a wheel, with what is installed here; returns its path."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    command += ["--disable-pip-version-check", "--wheel-dir", str(destination), str(course_root)]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": OLDEST})
    (wheel,) = destination.glob("*.whl")
    return wheel


def _released(course_root: Path) -> list[str]:
    return in_teaching_order(
        course_root, [path.stem for path in (course_root / "exercises").glob("*/*.ipynb")]
    )


def _lay_out(course_root: Path, destination: Path, names: Sequence[str], extra: str) -> Path:
    """A kit's folder: some assignments, and what installs the packages of an extra of pyproject.toml."""
    known = _released(course_root)
    for name in names:
        if name not in known:
            raise CourseError(
                f"there is no assignment {name!r} in exercises/; known assignments: {', '.join(known)}"
            )
    folder = destination / NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pins = pinned_packages(course_root, extra)
    requirements = "".join(f"{package}=={pins[package]}{MARKERS.get(package, '')}\n" for package in pins)
    _write(folder / "requirements.txt", requirements)
    _write(folder / "environment.yml", ENVIRONMENT)
    rows = []
    for name in names:
        released = course_root / "exercises" / name
        stamp = json.loads((released / f"{name}.ipynb").read_text("utf-8"))["metadata"]["mha"]
        rows.append(f"| `{name}/{name}.ipynb` | {stamp['version']} |")
        shutil.copytree(released, folder / name, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    end = {"student": "kit_hand_in.md", "learn": "kit_alone.md"}[extra]
    text = Template((TEMPLATES / "kit_readme.md").read_text("utf-8")).substitute(
        assignments="\n".join(rows), torch=pins["torch"], end=(TEMPLATES / end).read_text("utf-8").strip()
    )
    _write(folder / "README.md", text)
    return folder


def pinned_packages(course_root: Path, extra: str) -> dict[str, str]:
    """The packages that an extra of pyproject.toml names, with the versions that the course was tested with."""
    project = tomllib.loads((course_root / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"][extra]
    names = [re.split(r"[<>=!~ ;\[]", requirement)[0] for requirement in wanted]
    lines = (course_root / "constraints.txt").read_text("utf-8").splitlines()
    versions = dict(line.split("==") for line in lines if "==" in line)
    return {name: versions[name] for name in names}


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _zip(folder: Path, path: Path) -> Path:
    """Zip a folder, uncompressed and without dates, so that equal files give equal bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(folder.parent).as_posix())
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 if there is no such assignment, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m mha_grader.course.kit", description="Make a kit in build/kit/."
    )
    parser.add_argument(
        "assignment", nargs="?", help="for the students of a class; without it the public kit is made"
    )
    name = parser.parse_args(arguments).assignment
    destination = Path("build", "kit")
    try:
        made = make_kit(Path.cwd(), destination, name) if name else make_public_kit(Path.cwd(), destination)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
