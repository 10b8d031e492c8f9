"""The students' kit is complete, the same at every making, and without anything that is not theirs."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from mha_grader.course.authoring import assignments
from mha_grader.course.kit import NAME, make_kit, pinned_packages

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """The kit's folder."""
    return make_kit(ROOT, tmp_path_factory.mktemp("kit")).with_suffix("")


def test_the_kit_holds_each_assignment_with_its_helpers_and_the_set_up(kit):
    names = assignments(ROOT)
    assert names
    files = {path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file()}
    wanted = {"README.md", "requirements.txt", "environment.yml"}
    for name in names:
        beside = (ROOT / "exercises" / name).iterdir()
        wanted |= {f"{name}/{path.name}" for path in beside if path.is_file()}
        assert {f"{name}/{name}.ipynb", f"{name}/checks.py"} <= wanted
    assert files == wanted


def test_the_zip_holds_the_same_files_in_one_folder(kit):
    with zipfile.ZipFile(kit.with_suffix(".zip")) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    files = {path.relative_to(kit.parent).as_posix(): path for path in kit.rglob("*") if path.is_file()}
    assert found == {name: path.read_bytes() for name, path in files.items()}
    assert all(name.startswith(f"{NAME}/") for name in found)


def test_the_zip_has_the_same_bytes_when_made_again_over_an_old_kit(kit, tmp_path):
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "old.ipynb").write_text("{}")
    first = make_kit(ROOT, tmp_path).read_bytes()
    assert first == make_kit(ROOT, tmp_path).read_bytes() == kit.with_suffix(".zip").read_bytes()


def test_what_jupyter_and_python_leave_behind_stays_out(tmp_path):
    course = tmp_path / "course"
    shutil.copytree(ROOT / "exercises", course / "exercises")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copyfile(ROOT / name, course / name)
    for folder in (".ipynb_checkpoints", "__pycache__"):
        (course / "exercises" / "single_head" / folder).mkdir(exist_ok=True)
        (course / "exercises" / "single_head" / folder / "left.txt").write_text("behind")
    made = make_kit(course, tmp_path / "kit").with_suffix("")
    assert not list(made.rglob("left.txt"))


def test_the_packages_are_those_of_the_student_extra_at_the_tested_versions(kit):
    pins = pinned_packages(ROOT)
    assert set(pins) == {"numpy", "torch", "matplotlib", "notebook"}
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    lines = (kit / "requirements.txt").read_text().splitlines()
    assert len(lines) == len(pins)
    for name, line in zip(pins, lines, strict=True):
        assert line.split(" ;")[0] == f"{name}=={pins[name]}"
        assert f"{name}=={pins[name]}" in constraints


def test_the_readme_speaks_to_every_system_and_names_every_assignment_with_its_version(kit):
    text = (kit / "README.md").read_text()
    for word in ("Windows", "macOS", "Linux", "conda", "Restart Kernel and Run All Cells"):
        assert word in text
    for name in assignments(ROOT):
        stamp = json.loads((kit / name / f"{name}.ipynb").read_text())["metadata"]["mha"]
        assert f"| `{name}/{name}.ipynb` | {stamp['version']} |" in text
    assert not re.search(r"\$\w", text)
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    order = re.findall(r"exercises/(\w+)/", contents)
    assert re.findall(r"^\| `(\w+)/", text, re.MULTILINE) == order
    assert f"torch=={pinned_packages(ROOT)['torch']} " in text
