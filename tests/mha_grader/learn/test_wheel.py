"""The wheel alone, with nothing of the repository around, on a system without what only Linux has."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mha_grader.course.kit import make_wheel

ROOT = Path(__file__).parents[3]
# Read by every Python that is started there: what Windows, or somebody who learns alone, does not have.
ELSEWHERE = """\
import os, signal, socket, sys
sys.modules.update(dict.fromkeys(["fcntl", "resource", "grp", "nbgrader", "distributed", "jinja2", "rich"]))
for module, names in (
    (os, ("fork", "pidfd_open", "sched_getaffinity", "geteuid", "setsid")),
    (signal, ("pidfd_send_signal", "setitimer", "alarm")),
    (socket, ("send_fds", "recv_fds")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel's files on a path of their own, and a home for whoever uses them."""
    folder = tmp_path_factory.mktemp("alone")
    with zipfile.ZipFile(make_wheel(ROOT, folder)) as archive:
        archive.extractall(folder / "packages")
    (folder / "packages" / "sitecustomize.py").write_text(ELSEWHERE)
    (folder / "home").mkdir()
    shutil.copytree(ROOT / "exercises" / "single_head", folder / "single_head")
    return folder


def run(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(folder / "packages")}
    environment |= {"HOME": str(folder / "home"), "USERPROFILE": str(folder / "home")}
    environment |= {"PYTHONIOENCODING": "ascii"}  # as on a console that cannot show a √
    command = [sys.executable, "-P", "-m", "mha_grader", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_notebook_is_checked_where_there_is_no_fork_and_nothing_of_the_repository(unpacked):
    path = unpacked / "single_head" / "single_head.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["id"] == "softmax":
            cell["source"] = (
                "def softmax(x, axis=-1):\n    e = np.exp(x)\n    return e / e.sum(axis, keepdims=True)\n"
            )
    path.write_text(json.dumps(notebook), encoding="utf-8")
    done = run(unpacked, "check", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "(no-max-subtraction)" in done.stdout
    done = run(unpacked, "progress")
    assert (done.returncode, done.stderr) == (0, "")
    assert "softmax" in done.stdout
    done = run(unpacked, "check", "single_head", "--solution", "attention")
    assert (done.returncode, done.stderr) == (0, "")


def test_grading_says_what_it_needs(unpacked):
    done = run(unpacked, "grade", "single_head")
    assert done.returncode == 1
    assert "the packages of the extra `grade` are needed" in done.stderr


def test_the_material_is_all_that_the_repository_has(unpacked):
    material = unpacked / "packages" / "mha_grader" / "learn" / "material"
    for pattern in (
        "solutions/*.py",
        "solutions/*.toml",
        "exercises/*/*.ipynb",
        "exercises/*/*.py",
        "exercises/*/*.npz",
    ):
        wanted = {path.relative_to(ROOT) for path in ROOT.glob(pattern)}
        assert wanted
        assert {path.relative_to(material) for path in material.glob(pattern)} == wanted


def test_switched_off_a_wheel_is_without_hidden_tests_even_where_one_was_built_with_them(tmp_path):
    course = tmp_path / "course"
    course.mkdir()
    for name in ("exercises", "solutions", "mha_lib", "mha_grader"):
        shutil.copytree(ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    for name in ("pyproject.toml", "_toc.yml", "setup.py", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, course / name)
    settings = course / "solutions" / "course.toml"
    text = settings.read_text("utf-8")
    found = []
    for word in ("true", "false"):
        settings.write_text(text.replace("self_study = true", f"self_study = {word}"), encoding="utf-8")
        with zipfile.ZipFile(make_wheel(course, tmp_path / word)) as archive:
            found.append([name for name in archive.namelist() if "learn/material/" in name])
    assert found[0]
    assert not found[1]
