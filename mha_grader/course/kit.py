"""The students' kit: the released notebooks with what it takes to work on them, as a folder and as a zip.

`python -m mha_grader.course.kit` makes it in `build/kit/`. It holds nothing of the grader, the reference or the
solutions. The zip has the same bytes whenever its files have.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path
from string import Template

from mha_grader.course.assignment import in_teaching_order

NAME = "attention-exercises"
README = Path(__file__).parent / "templates" / "kit_readme.md"
# There is no current PyTorch for Macs with an Intel processor; most assignments do without.
MARKERS = {"torch": ' ; sys_platform != "darwin" or platform_machine == "arm64"'}
ENVIRONMENT = """\
name: attention
channels: [conda-forge]
dependencies:
  - python=3.12
  - pip
  - pip: [-r requirements.txt]
"""


def make_kit(course_root: Path, destination: Path) -> Path:
    """Make the kit from `exercises/`, `pyproject.toml` and `constraints.txt`.

    Args:
        course_root: the folder that holds them.
        destination: gets the kit as a folder and as a zip; an older kit in it is replaced.

    Returns:
        The path of the zip.
    """
    folder = destination / NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pins = pinned_packages(course_root)
    requirements = "".join(f"{name}=={pins[name]}{MARKERS.get(name, '')}\n" for name in pins)
    _write(folder / "requirements.txt", requirements)
    _write(folder / "environment.yml", ENVIRONMENT)
    rows = []
    names = [path.stem for path in (course_root / "exercises").glob("*/*.ipynb")]
    for name in in_teaching_order(course_root, names):
        notebook = course_root / "exercises" / name / f"{name}.ipynb"
        stamp = json.loads(notebook.read_text("utf-8"))["metadata"]["mha"]
        rows.append(f"| `{name}/{name}.ipynb` | {stamp['version']} |")
        left_behind = shutil.ignore_patterns(".*", "__pycache__")
        shutil.copytree(notebook.parent, folder / name, ignore=left_behind)
    text = Template(README.read_text("utf-8")).substitute(assignments="\n".join(rows), torch=pins["torch"])
    _write(folder / "README.md", text)
    return _zip(folder)


def pinned_packages(course_root: Path) -> dict[str, str]:
    """The packages that a student installs, with the versions that the course was tested with."""
    project = tomllib.loads((course_root / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["student"]
    names = [re.split(r"[<>=!~ ;\[]", requirement)[0] for requirement in wanted]
    lines = (course_root / "constraints.txt").read_text("utf-8").splitlines()
    versions = dict(line.split("==") for line in lines if "==" in line)
    return {name: versions[name] for name in names}


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _zip(folder: Path) -> Path:
    """Zip a folder beside itself, uncompressed and without dates, so that equal files give equal bytes."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(folder.parent).as_posix())
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    return path


if __name__ == "__main__":
    print(make_kit(Path.cwd(), Path("build/kit")))
    sys.exit(0)
