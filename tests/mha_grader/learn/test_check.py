"""`mha-grade check` and `mha-grade progress`, as somebody who learns alone uses them."""

import json
import re
import shutil
from pathlib import Path

import pytest

from mha_grader.__main__ import main
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord
from mha_grader.grading import grade as grading
from mha_grader.grading.rebuild import Unusable
from mha_grader.grading.session import Session
from mha_grader.grading.settings import settings_of
from mha_grader.learn.material import Material
from mha_grader.learn.progress import Progress
from mha_grader.learn.session import OwnSession

ROOT = Path(__file__).parents[3]
WRONG_AXIS = """\
def softmax(x, axis=-1):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
"""
RIGHT = WRONG_AXIS.replace("-1, keepdims", "axis, keepdims")


@pytest.fixture
def notebook(tmp_path):
    """Writes a notebook with code in some cells."""

    def write(name="single_head", **code):
        content = json.loads((ROOT / f"exercises/{name}/{name}.ipynb").read_text("utf-8"))
        for cell in content["cells"]:
            cell["source"] = code.get(cell["id"], cell["source"])
        path = tmp_path / "mine.ipynb"
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def test_what_a_notebook_says_of_itself_does_nothing_to_the_terminal(notebook, capsys):
    path = Path(notebook(softmax=RIGHT))
    content = json.loads(path.read_text("utf-8"))
    content["metadata"]["mha"]["version"] = "\x1b[2J\x1b]0;owned\x07"
    path.write_text(json.dumps(content), "utf-8")
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr()
    assert "the notebook is of version" in said.out
    assert not {"\x1b", "\x07"} & set(said.out + said.err)


def test_from_a_mistake_that_is_named_to_the_solution(notebook, capsys):
    assert main(["check", notebook(softmax=WRONG_AXIS)]) == 0
    said = capsys.readouterr().out
    assert "only for you" in said
    assert "(softmax-fixed-axis)" in said
    assert "softmax: 9 of 11 points" in said
    assert "attention: 0 of" in said

    assert main(["check", "single_head", "--solution", "softmax"]) == 0
    assert "ask once more" in capsys.readouterr().out
    assert main(["progress"]) == 0
    said = capsys.readouterr().out
    assert "9 of 11" in said
    assert "Next: softmax of single_head. Read in the book: One head, section Softmax" in said

    assert main(["check", notebook(softmax=RIGHT)]) == 0
    assert "softmax: 11 of 11 points" in capsys.readouterr().out
    assert main(["check", "single_head", "--solution", "softmax"]) == 0
    said = capsys.readouterr().out
    assert "np.max(x, axis=axis, keepdims=True)" in said
    assert "### " not in said
    assert "The book explains it: One head, section Softmax" in said
    assert main(["progress"]) == 0
    assert "Next: attention of single_head." in capsys.readouterr().out


def test_what_a_person_marks_is_named_and_has_a_model_answer(notebook, capsys, monkeypatch):
    nothing = grading.unusable_record(Material().assignment("real_heads"), Unusable("graded", ""), b"")
    monkeypatch.setattr(grading, "grade_submission", lambda *arguments: nothing)
    assert main(["check", notebook("real_heads")]) == 0
    said = capsys.readouterr().out
    assert "evidence: a person marks this one" in said
    assert "Together 0 of 49 points" in said
    for wanted in (False, True):
        assert main(["check", "real_heads", "--solution", "evidence"]) == 0
        said = capsys.readouterr().out
        assert ("One map shows one sentence." in said) == wanted
        assert ("* 1 point: a baseline" in said) == wanted
    assert main(["progress"]) == 0
    assert "real_heads: 0 of 49 points" in capsys.readouterr().out


def test_a_file_is_checked_and_the_best_result_stays(tmp_path, capsys):
    path = tmp_path / "mine.py"
    for code, points in ((RIGHT, 11), (WRONG_AXIS, 9)):
        path.write_text(code)
        assert main(["check", "single_head", "softmax", str(path)]) == 0
        assert f"softmax: {points} of 11 points" in capsys.readouterr().out
    assert main(["progress"]) == 0
    assert "11 of 11" in capsys.readouterr().out


def test_a_solution_is_shown_when_it_is_asked_for_twice(capsys):
    for wanted in (False, True):
        assert main(["check", "single_head", "--solution", "answers"]) == 0
        assert ("one_head_share" in capsys.readouterr().out) == wanted


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["check", "nothing.ipynb"], "cannot read nothing.ipynb"),
        (["check", "single_head", "softmax", "nothing.py"], "cannot read nothing.py"),
        (
            ["check", "single_head", "--solution", "sotfmax"],
            "has no item 'sotfmax'; it has softmax, attention",
        ),
        (
            ["check", "singel_head", "softmax", "x.py"],
            "no assignment 'singel_head'; known assignments: single_head, multi_head",
        ),
        (["check", "pyproject.toml"], "pyproject.toml cannot be checked: the file is not a notebook"),
        (
            ["check", "single_head"],
            "is a folder, and not a file. Did you mean single_head/single_head.ipynb?",
        ),
        (
            ["check", "single_head.ipynb"],
            "single_head.ipynb: No such file or directory. Did you mean single_head/",
        ),
        (["check", "empty"], "empty is a folder, and not a file\n"),
        (["check", "single_head", "softmax", "empty"], "empty is a folder, and not a file\n"),
        (["check", "mine.py"], "is a Python file: name its assignment and its item"),
        (["check", "single_head", "softmax", "wide.py"], "wide.py is not text in UTF-8"),
        (
            ["check", "single_head", "softmax", "single_head/single_head.ipynb"],
            "is a notebook: check it whole, with mha-grade check single_head/single_head.ipynb",
        ),
        (["check", "multi_head.ipynb"], "multi_head.ipynb cannot be checked: the notebook has no cells"),
    ],
)
def test_what_cannot_be_checked_is_named(words, why, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "exercises" / "single_head", "single_head")
    shutil.copyfile(ROOT / "pyproject.toml", "pyproject.toml")
    Path("empty").mkdir()
    Path("mine.py").write_text(RIGHT, "utf-8")
    Path("wide.py").write_text(RIGHT, "utf-16")
    Path("multi_head.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert main(words) == 1
    said = capsys.readouterr().err
    assert why in said
    assert "hand" not in said  # there is nobody to hand it in to


def test_two_words_are_one_too_many_or_too_few(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["check", "single_head", "softmax"])
    assert "name a notebook, or an assignment, an item and a file" in capsys.readouterr().err


def test_damaged_progress_is_named_and_kept(home, capsys):
    path = home / ".mha-grade" / "progress.json"
    path.parent.mkdir()
    for damaged in ("{", "[]", '{"items": 3}', '{"items": {"single_head.softmax": {"points": "many"}}}'):
        path.write_text(damaged)
        assert main(["progress"]) == 1
        assert str(path) in capsys.readouterr().err
        assert path.read_text() == damaged


def test_a_home_that_cannot_be_written_costs_no_verdict(home, tmp_path, capsys):
    (home / ".mha-grade").write_text("a file where the folder should be")
    path = tmp_path / "mine.py"
    path.write_text(WRONG_AXIS)
    assert main(["check", "single_head", "softmax", str(path)]) == 0
    said = capsys.readouterr()
    assert "softmax: 9 of 11 points" in said.out
    assert "these points are not kept" in said.err
    assert str(home) in said.err
    assert main(["progress"]) == 0
    assert main(["check", "single_head", "--solution", "softmax"]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_a_file_of_progress_that_cannot_be_read_is_named(home, capsys):
    (home / ".mha-grade" / "progress.json").mkdir(parents=True)
    assert main(["progress"]) == 1
    assert "progress.json, where your progress is kept" in capsys.readouterr().err


def test_two_checks_at_the_same_time_keep_the_points_of_both():
    one, other = Progress(), Progress()
    for progress, item in ((one, "softmax"), (other, "attention")):
        progress.enter("single_head", (ItemRecord(item, (PartRecord("values", 2.0, "pass", ""),)),))
    assert [Progress().points("single_head", item) for item in ("softmax", "attention")] == [2.0, 2.0]


def test_whose_solution_was_asked_for_is_not_yet_checked(capsys):
    assert main(["check", "single_head", "--solution", "softmax"]) == 0
    capsys.readouterr()
    assert main(["progress"]) == 0
    assert "0 of 11" not in capsys.readouterr().out


def test_grading_has_no_way_round_the_sandbox(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("")
    assignment = Material().assignment("single_head")
    session = settings_of(Course(tmp_path)).session(assignment)
    assert type(session) is Session
    assert not isinstance(session, OwnSession)
    for path in (ROOT / "mha_grader").rglob("*.py"):
        alone = path.parent.name in ("learn",) or path.name in ("check.py", "progress.py", "__main__.py")
        assert alone or not re.search(r"(from|import) mha_grader\.learn", path.read_text("utf-8")), path


def test_instructors_switch_it_off_with_one_line(tmp_path):
    (tmp_path / "solutions").mkdir()
    for line in ("self_study = false\n", ""):
        (tmp_path / "solutions" / "course.toml").write_text(f"{line}library = []\n")
        with pytest.raises(Exception, match="self_study = false"):
            Material(tmp_path)


@pytest.mark.parametrize("name", Material().names)
def test_every_item_says_where_to_read_and_begins_with_a_page_of_the_book(name, monkeypatch):
    material = Material(ROOT)
    monkeypatch.setattr(Material, "_book", "https://example.org")
    released = material.released(name)
    assert released.points
    assert all(material.page(released.reading(item)) for item in released.points)


def test_progress_gives_the_address_of_the_page_where_the_book_is_on_the_web(tmp_path, capsys, monkeypatch):
    course = tmp_path / "course"
    files = ("solutions/course.toml", "solutions/single_head.py", "exercises/single_head/single_head.ipynb")
    for name in (*files, "book/one_head.md", "_toc.yml"):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, course / name)
    monkeypatch.setattr("mha_grader.learn.material.PACKED", course)
    said = []
    for address in ("", "https://example.org/attention/book/"):
        (course / "nbgrader_config.py").write_text(f'c.FeedbackExporter.book_url = "{address}"\n')
        assert main(["progress"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0].endswith("Next: softmax of single_head. Read in the book: One head, section Softmax\n")
    assert said[1] == f"{said[0]}https://example.org/attention/book/one_head.html\n"


def graded(source, grade_id, **marks):
    """A cell as nbgrader's toolbar makes it."""
    marks = {"grade_id": grade_id, "grade": False, "solution": False, "locked": False, **marks}
    metadata = {"nbgrader": {"schema_version": 3, **marks}}
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def test_an_assignment_with_plain_asserts_is_checked_like_others(tmp_path, capsys, monkeypatch):
    solved, stub, mine = (
        [
            graded(f"def double(x):\n    {code}", "double", solution=True),
            graded("assert double(4) == 8", "small", grade=True, points=1),
            graded("assert double('ab') == 'abab', 'texts, too'", "test_texts", grade=True, points=2),
        ]
        for code in (
            "### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION",
            "...",
            "return 1.0 * x + x",
        )
    )
    monkeypatch.setattr("mha_grader.learn.material.PACKED", tmp_path)
    for folder, cells in (("solutions/twice", solved), ("exercises/twice", stub), (".", mine)):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
        (tmp_path / folder / "twice.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "solutions" / "course.toml").write_text("self_study = true\n")
    assert main(["check", str(tmp_path / "twice.ipynb")]) == 0
    said = capsys.readouterr().out
    assert "small: 1 of 1 points" in said
    assert "texts: 0 of 2 points" in said
    assert main(["progress"]) == 0
    assert "twice: 1 of 3 points" in capsys.readouterr().out
    for _ in range(2):
        assert main(["check", "twice", "--solution", "texts"]) == 0
    assert "return 2 * x" in capsys.readouterr().out
