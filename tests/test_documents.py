"""Every file, module, target and command that the documents name exists."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTRUCTORS = [
    "instructors_guide",
    "how_grading_works",
    "changing_an_assignment",
    "writing_an_assignment",
    "index",
]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
DOCUMENTS += [path for name in INSTRUCTORS if (path := ROOT / "book" / f"{name}.md").exists()]
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
FOLDERS = {part.as_posix() for name in TRACKED for part in Path(name).parents}
# Folders of the repository: a path in one of them can be looked up. Others are made, or are a student's.
ROOMS = {
    "book",
    "solutions",
    "exercises",
    "mha_lib",
    "mha_grader",
    "tests",
    "benchmarks",
    "examples",
    ".github",
}


def named(document, pattern):
    """What a pattern finds in a document's code, once each."""
    text = document.read_text("utf-8")
    code = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    return sorted({found for piece in code for found in re.findall(pattern, piece)})


@pytest.fixture(scope="module")
def commands():
    """The words that may stand behind `mha-grade`."""
    command = [Path(sys.executable).with_name("mha-grade"), "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^    ([a-z][a-z-]*)\b", shown, re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_path_that_is_named_exists(document):
    paths = named(document, r"(?<![\w/.~-])((?:[\w.-]+/)+[\w.-]*\w/?|(?:[\w.-]+/)+)(?![\w<*{(])")
    new = named(document, r"mha-grade new (\w+)")  # a reader makes these
    ours = [path for path in paths if path.split("/")[0] in ROOMS and not any(name in path for name in new)]
    assert [path for path in ours if path.rstrip("/") not in {*TRACKED, *FOLDERS}] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_module_that_is_run_exists(document):
    modules = named(document, r"python -m ([\w.]+)")
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_target_of_make_exists(document):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(named(document, r"(?<![\w-])make ([a-z][a-z-]+)")) <= set(targets)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_command_of_ours_exists(document, commands):
    assert set(named(document, r"(?<![\w-])mha-grade ([a-z][a-z-]*)")) <= commands


def test_the_documents_name_paths_modules_targets_and_commands():
    """So that the patterns above find what they look for."""
    readme = ROOT / "README.md"
    assert "collect" in named(readme, r"mha-grade ([a-z]+)")
    assert "course" in named(readme, r"make ([a-z-]+)")
    assert "mha_lib/" in named(readme, r"(?<![\w/.~-])((?:[\w.-]+/)+)")
    assert "benchmarks.book" in named(readme, r"python -m ([\w.]+)")
