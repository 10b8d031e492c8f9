"""The page on writing an assignment, followed step by step in an empty folder."""

import json
import re
import shlex
import shutil
import warnings
from pathlib import Path

import pytest
from traitlets.config import PyFileConfigLoader

from mha_grader import cli
from mha_grader.course import authoring, store
from mha_grader.course.assignment import load_assignment
from mha_grader.grading import reference

PAGE = Path(__file__).parents[2] / "book" / "writing_an_assignment.md"
BLOCK = re.compile(
    r"^```(\{code-block\} python\n:caption: (?P<file>\S+)|console)\n(?P<text>.*?)^```$", re.M | re.S
)
COMMANDS = {
    "mha-grade": cli.main,
    "python -m mha_grader.course.authoring": authoring.main,
    "python -m mha_grader.grading.reference": reference.main,
}


def run(line):
    """Run a command of the page as it stands there."""
    (program,) = (name for name in COMMANDS if line.startswith(name + " "))
    return COMMANDS[program](shlex.split(line.removeprefix(program)))


def commands(text):
    """The commands of a block, each with the lines that the page shows of its output."""
    for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, *shown = step.splitlines()
        yield line, shown


def hand_in(folder, student):
    """Hand in the notebook with the code of a file of the page."""
    notebook = json.loads((folder / "exercises" / "layer_norm" / "layer_norm.ipynb").read_text())
    for cell in notebook["cells"]:
        if cell["id"] == "layer_norm":
            cell["source"] = (folder / f"{student}.py").read_text()
    place = folder / "submitted" / student / "layer_norm"
    place.mkdir(parents=True)
    (place / "layer_norm.ipynb").write_text(json.dumps(notebook))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")  # of nbgrader
    return tmp_path


def test_the_page_works_as_it_is_written(folder, capsys):
    steps = 0
    for block in BLOCK.finditer(PAGE.read_text("utf-8").partition("(author-packages)=")[0]):
        if block["file"]:
            Path(block["file"]).write_text(block["text"])
            continue
        for line, shown in commands(block["text"]):
            if line.startswith("mha-grade grade"):
                for student in ("right", "known", "wrong"):
                    hand_in(folder, student)
            assert run(line) == 0, (line, capsys.readouterr())
            out, _ = capsys.readouterr()
            printed = {" ".join(row.split()) for row in out.splitlines()}
            for row in shown:
                assert any(each.startswith(" ".join(row.split())) for each in printed), (line, row, out)
            if not shown:
                assert out == ""
            steps += 1
    assert steps == 7

    records = store.load_all(folder / "grades" / "layer_norm")
    parts = {student: record.items[0].parts for student, record in records.items()}
    assert {student: record.score for student, record in records.items()} == {
        "right": 5,
        "known": 4,
        "wrong": 0,
    }
    assert [part.pitfall for part in parts["known"]] == [None, "no-epsilon", None]
    assert "Add epsilon to the variance" in parts["known"][1].message
    assert {part.pitfall for part in parts["wrong"]} == {None}
    assert "expected -1, got -3.5" in parts["wrong"][0].message


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A course with an assignment as `mha-grade new` writes it. Only to be looked at."""
    course = tmp_path_factory.mktemp("template") / "course"
    course.mkdir()
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbgrader
        patched.chdir(course)
        assert run("mha-grade new moving_average") == 0
        assert run("python -m mha_grader.course.authoring moving_average") == 0
    return course


@pytest.fixture
def course(template, folder):
    shutil.copytree(template, folder, dirs_exist_ok=True)
    return folder


def test_a_template_is_a_working_assignment_whose_mistake_is_named(course, capsys):
    assert run("python -m mha_grader.grading.reference moving_average") == 0
    capsys.readouterr()
    (course / "columns.py").write_text("def moving_average(x):\n    return x - sum(x) / len(x)\n")
    assert run("mha-grade try moving_average moving_average columns.py --json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["score"], found["max_score"]) == (0, 4)
    assert found["parts"][0]["pitfall"] == "mean-of-columns"


def test_a_course_of_ones_own_is_configured_as_this_one(folder):
    def settings(root):
        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        config.CourseDirectory.pop("course_id", None)
        return {section: {name: str(value) for name, value in config[section].items()} for section in config}

    assert run("mha-grade new one") == 0
    assert settings(folder) == settings(PAGE.parents[1])


def test_nothing_is_written_over(folder, capsys):
    assert run("mha-grade new one") == 0
    (folder / "solutions" / "one.py").write_text("mine")
    for line, words in (
        ("mha-grade new one", "is there already"),
        ("mha-grade new One", "cannot be an assignment's name"),
        ("mha-grade new two --notebook nothing.ipynb", "is not a notebook"),
    ):
        assert run(line) == 1
        assert words in capsys.readouterr().err
    assert (folder / "solutions" / "one.py").read_text() == "mine"
    assert run("mha-grade new two") == 0
    assert "nbgrader_config.py" not in capsys.readouterr().out  # the folder is a course now


MISTAKE = """
from mha_grader.course.mistakes import mistake
words = dict(title="T", reason="R.", fix="F.")
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "@mistake('moving_average', 'right', **words)\ndef a(x): return x - x.mean(1)[:, None]",
            "passes all hidden tests",
        ),
        ("@mistake('two', 'other', **words)\ndef a(x): return x", "is no item of moving_average"),
        (
            "@mistake('moving_average', 'a', **words)\n@mistake('moving_average', 'b', **words)\n"
            "def a(x): return x + 0",
            "'a' in moving_average_mistakes.py is taken for b",
        ),
        (
            "@mistake('moving_average', 'a', **words)\n@mistake('moving_average', 'a', **words)\n"
            "def a(x): return x",
            "two mistakes 'a'",
        ),
        ("import nothing_of_that_name", "cannot be executed: ModuleNotFoundError"),
    ],
)
def test_a_mistake_that_teaches_nothing_is_refused(course, capsys, code, words):
    (course / "solutions" / "moving_average_mistakes.py").write_text(MISTAKE + code)
    assert run("python -m mha_grader.grading.reference moving_average") == 1
    assert words in capsys.readouterr().err


def test_an_nbgrader_notebook_is_taken_with_the_files_beside_it(folder):
    import nbformat

    from tests.mha_grader import plain_assignments

    old = folder / "old" / "source" / "week1"
    old.mkdir(parents=True)
    nbformat.write(plain_assignments.PS1, old / "problem1.ipynb")
    (old / "data.csv").write_text("1,2\n")
    assert run("mha-grade new ps1 --notebook old/source/week1/problem1.ipynb") == 0
    assert sorted(path.name for path in (folder / "solutions" / "ps1").iterdir()) == ["data.csv", "ps1.ipynb"]
    assert run("python -m mha_grader.course.authoring ps1") == 0
    assert run("python -m mha_grader.grading.reference ps1") == 0
    assert (folder / "exercises" / "ps1" / "data.csv").exists()
    assert load_assignment(folder, "ps1").plain
