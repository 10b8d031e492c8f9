"""The kits are complete, the same at every making, and without anything that is not their readers'."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from mha_grader.course.assignment import CourseError
from mha_grader.course.authoring import assignment_names
from mha_grader.course.kit import NAME, make_kit, make_public_kit, pinned_packages

ROOT = Path(__file__).parents[3]
SET_UP = {"README.md", "requirements.txt", "environment.yml"}


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    """The zip of the public kit; its folder lies beside it."""
    return make_public_kit(ROOT, tmp_path_factory.mktemp("public"))


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """The zip of the kit of one assignment."""
    return make_kit(ROOT, tmp_path_factory.mktemp("kit"), "real_heads")


@pytest.fixture(scope="module")
def without_self_study(tmp_path_factory):
    """A copy of what the kit is made from, whose instructors have switched self-study off."""
    course = tmp_path_factory.mktemp("course")
    for name in ("exercises", "solutions", "mha_lib", "mha_grader"):
        shutil.copytree(
            ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__", "*.ipynb_checkpoints")
        )
    for name in (
        "pyproject.toml",
        "constraints.txt",
        "_toc.yml",
        "setup.py",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
    ):
        shutil.copyfile(ROOT / name, course / name)
    settings = course / "solutions" / "course.toml"
    text = settings.read_text("utf-8")
    assert "self_study = true\n" in text
    settings.write_text(text.replace("self_study = true\n", "self_study = false\n"), encoding="utf-8")
    return course


def files_of(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def beside(name):
    """Files that belong to an assignment, without what Jupyter and Python leave behind."""
    found = (ROOT / "exercises" / name).iterdir()
    return {f"{name}/{path.name}" for path in found if path.is_file() and path.name[0] != "."}


def test_the_public_kit_holds_all_assignments_with_their_helpers_the_set_up_and_the_package(public):
    names = assignment_names(ROOT)
    assert names
    wanted = set(SET_UP).union(*map(beside, names))
    assert {f"{name}/{name}.ipynb" for name in names} | {f"{name}/checks.py" for name in names} <= wanted
    found = files_of(public.parent / NAME)
    (wheel,) = found - wanted
    assert re.fullmatch(r"multi_head_attention_course-[\d.]+-py3-none-any\.whl", wheel)
    assert found == {*wanted, wheel}
    requirements = (public.parent / NAME / "requirements.txt").read_text()
    assert requirements.endswith(f"\n./{wheel}\n")


def test_the_kit_of_an_assignment_holds_that_one_and_nothing_of_the_grader(kit):
    assert kit.name == f"{NAME}-real_heads.zip"
    assert files_of(kit.parent / NAME) == SET_UP | beside("real_heads")
    assert "mha-grade" not in (kit.parent / NAME / "README.md").read_text()


def test_an_assignment_that_there_is_not_is_named(tmp_path):
    with pytest.raises(
        CourseError,
        match="no assignment 'reel_heads' in exercises/; known assignments: single_head, multi_head",
    ):
        make_kit(ROOT, tmp_path, "reel_heads")


def test_a_zip_holds_the_same_files_in_one_folder(public, kit):
    for made in (public, kit):
        with zipfile.ZipFile(made) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        folder = made.parent / NAME
        assert found == {f"{NAME}/{name}": (folder / name).read_bytes() for name in files_of(folder)}


def test_a_zip_has_the_same_bytes_when_made_again_over_an_old_kit(public, kit, tmp_path):
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "old.ipynb").write_text("{}")
    assert make_public_kit(ROOT, tmp_path).read_bytes() == public.read_bytes()
    assert make_kit(ROOT, tmp_path, "real_heads").read_bytes() == kit.read_bytes()


def test_what_jupyter_and_python_leave_behind_stays_out(without_self_study, tmp_path):
    for folder in (".ipynb_checkpoints", "__pycache__"):
        (without_self_study / "exercises" / "single_head" / folder).mkdir(exist_ok=True)
        (without_self_study / "exercises" / "single_head" / folder / "left.txt").write_text("behind")
    make_kit(without_self_study, tmp_path, "single_head")
    assert not list(tmp_path.rglob("left.txt"))


def test_without_self_study_the_public_kit_is_the_first_assignment_alone(without_self_study, tmp_path):
    made = make_public_kit(without_self_study, tmp_path)
    assert made.name == f"{NAME}.zip"
    assert files_of(tmp_path / NAME) == SET_UP | beside("single_head")


@pytest.mark.parametrize("extra", ["student", "learn"])
def test_the_packages_are_those_of_the_extra_at_the_tested_versions(public, kit, extra):
    pins = pinned_packages(ROOT, extra)
    assert {"numpy", "torch", "matplotlib", "notebook"} <= set(pins)
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    folder = {"student": kit, "learn": public}[extra].parent / NAME
    lines = (folder / "requirements.txt").read_text().splitlines()
    for name, line in zip(pins, lines, strict=False):
        assert line.split(" ;")[0] == f"{name}=={pins[name]}"
        assert f"{name}=={pins[name]}" in constraints
    assert len(lines) == len(pins) + (extra == "learn")


def test_the_readme_speaks_to_every_system_and_names_every_assignment_with_its_version(public, kit):
    text = (public.parent / NAME / "README.md").read_text()
    assert "mha-grade check single_head" in text
    for name in assignment_names(ROOT):
        stamp = json.loads((ROOT / "exercises" / name / f"{name}.ipynb").read_text())["metadata"]["mha"]
        assert f"| `{name}/{name}.ipynb` | {stamp['version']} |" in text
    other = (kit.parent / NAME / "README.md").read_text()
    assert "Restart Kernel and Run All Cells" in other
    for readme in (text, other):
        assert all(word in readme for word in ("Windows", "macOS", "Linux", "conda"))
        assert not re.search(r"\$\w", readme)
        assert f"torch=={pinned_packages(ROOT, 'student')['torch']} " in readme
