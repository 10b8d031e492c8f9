"""The wheel alone, with nothing of the repository around, on a system without what only Linux has."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from myst_nb.core.read import read_myst_markdown_notebook

from book.notebooks import Book, notebook, write
from mha_grader.course.kit import make_wheel

ROOT = Path(__file__).parents[3]
# Read by every Python that is started there: what Windows, or somebody who learns alone, does not have.
ELSEWHERE = """\
import os, select, signal, socket, sys
gone = ["fcntl", "resource", "grp", "pwd", "termios", "tty", "pty", "readline", "curses", "syslog"]
sys.modules.update(dict.fromkeys([*gone, "nbgrader", "distributed", "jinja2", "rich"]))
for module, names in (
    (os, ("fork", "forkpty", "posix_spawn", "posix_spawnp", "wait3", "wait4", "pidfd_open", "mkfifo", "statvfs")),
    (os, ("sched_getaffinity", "geteuid", "getuid", "getgid", "setsid", "getpgid", "setpgid", "killpg", "chown")),
    (signal, ("pidfd_send_signal", "setitimer", "alarm", "SIGALRM", "SIGHUP", "SIGCHLD", "pthread_sigmask")),
    (socket, ("send_fds", "recv_fds", "AF_UNIX")),
    (select, ("poll", "epoll")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""


# Several commands in one process: what they import takes longer than they do.
COMMANDS = """\
import json, sys
from mha_grader.__main__ import main
for words in json.loads(sys.argv[1]):
    print("exit", main(words), flush=True)
"""


RUN = """\
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
os.environ["MPLBACKEND"] = "agg"
os.chdir(os.path.dirname(sys.argv[1]))
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        shell.run_cell(cell["source"]).raise_error()
print(ascii(sys.modules["mha_lib"].__file__))
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of what a wheel is made from, so that nobody else builds in the same folder."""
    course = tmp_path_factory.mktemp("repository")
    for name in ("exercises", "solutions", "mha_lib", "mha_grader", "book"):
        shutil.copytree(ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "_toc.yml", "setup.py", "README.md", "LICENSE", "nbgrader_config.py"):
        shutil.copyfile(ROOT / name, course / name)
    return course


@pytest.fixture(scope="module")
def unpacked(course, tmp_path_factory):
    """The wheel's files on a path of their own, and a home for whoever uses them."""
    folder = tmp_path_factory.mktemp("für mich allein")
    with zipfile.ZipFile(make_wheel(course, folder)) as archive:
        archive.extractall(folder / "packages")
    (folder / "packages" / "sitecustomize.py").write_text(ELSEWHERE)
    (folder / "home").mkdir()
    shutil.copytree(ROOT / "exercises" / "single_head", folder / "single_head")
    return folder


def python(folder, *words):
    """Run Python with what is unpacked, and nothing else of the course."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "packages")}
    environment |= {"HOME": str(folder / "home"), "USERPROFILE": str(folder / "home")}
    environment |= {"PYTHONIOENCODING": "ascii"}  # as on a console that cannot show a √
    command = [sys.executable, "-P", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_notebook_is_checked_where_there_is_no_fork_and_nothing_of_the_repository(unpacked):
    path = unpacked / "single_head" / "single_head.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["id"] == "softmax":
            cell["source"] = (
                "def softmax(x, axis=-1):\n    e = np.exp(x)\n    return e / e.sum(axis, keepdims=True)\n"
            )
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8", newline="\r\n")
    commands = [
        ["check", str(path)],
        ["progress"],
        ["check", "single_head", "--solution", "attention"],
        ["grade", "single_head"],
    ]
    done = python(unpacked, "-c", COMMANDS, json.dumps(commands))
    checked, progress, solution, graded = re.split(r"^exit (?=\d)", done.stdout, flags=re.MULTILINE)[:4]
    assert "(no-max-subtraction)" in checked
    assert progress.startswith("0\n")
    assert "softmax" in progress
    assert solution.startswith("0\n")
    assert "ask once more" in solution
    assert graded == "0\n"
    assert done.stdout.endswith("exit 1\n")
    assert "all commands but check and progress need the packages of the extra `grade`" in done.stderr
    assert done.stderr.count("\n") == 1  # nothing else was complained about


def test_the_notebook_of_a_page_runs_with_nothing_else_of_the_course(unpacked, tmp_path):
    """As on Colab: the package is there, the notebook in a folder of its own."""
    page = read_myst_markdown_notebook((ROOT / "book" / "several_heads.md").read_text("utf-8"))
    write(notebook(page, Book.read(ROOT)), tmp_path / "several_heads.ipynb")
    done = python(unpacked, "-c", RUN, str(tmp_path / "several_heads.ipynb"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == ascii(str(unpacked / "packages" / "mha_lib" / "__init__.py"))


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


def test_switched_off_a_wheel_is_without_hidden_tests_even_where_one_was_built_with_them(
    course, unpacked, tmp_path
):
    assert (unpacked / "packages" / "mha_grader" / "learn" / "material").is_dir()
    settings = course / "solutions" / "course.toml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace("self_study = true", "self_study = false"), encoding="utf-8")
    with zipfile.ZipFile(make_wheel(course, tmp_path)) as archive:
        assert not [name for name in archive.namelist() if "learn/material/" in name]
