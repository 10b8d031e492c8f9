"""nbgrader around the grader: the same scores by every way in, and nothing of a hand-in but its sources."""

import json
import os
import shutil
from datetime import datetime

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI

from mha_grader import cli
from mha_grader.course import store
from mha_grader.course.folders import Course
from mha_grader.grading import schedule
from mha_grader.instructor import gradebook
from tests.mha_grader.small_course import DOUBLE, NAME, SECRET_WORD, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own, of many kinds

HALF_RIGHT = "def double(x):\n    return 2.0 * x if x.dtype == float else x\n"
WRONG = "def double(x):\n    return x\n"
NO_HALF = "def half(x):\n    return x\n"
LATE_IS_ZERO = '\nc.LateSubmissionPlugin.penalty_method = "zero"\n'


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr(schedule, "FEW", 1000)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return make(tmp_path_factory.mktemp("released") / "course", LATE_IS_ZERO)


@pytest.fixture
def course(released, tmp_path):
    return shutil.copytree(released, tmp_path / "course")


def run(course, *arguments):
    return cli.main(["--course", str(course), *arguments])


def formgrader(course):
    """nbgrader's own programming interface, which formgrader's buttons call."""
    coursedir = gradebook.course_directory(Course(course))
    return NbGraderAPI(coursedir, config=coursedir.config)


def autograde(course, student):
    result = formgrader(course).autograde(NAME, student)
    assert result["success"], result
    return result


def database(course):
    return Gradebook(f"sqlite:///{course}/gradebook.db")


def scores(course, student):
    """What the gradebook has from the tests, by item."""
    with database(course) as book:
        grades = book.find_submission(NAME, student).notebooks[0].grades
        return {grade.name.removeprefix("test_"): grade.auto_score for grade in grades}


def autograded(course, student):
    return nbformat.read(course / "autograded" / student / NAME / f"{NAME}.ipynb", as_version=4)


def cell(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


# --- scores -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["mha-grade", "formgrader"])
def test_scores_full_partial_and_none(course, by):
    hand_in(course, "full")
    hand_in(course, "part", double=HALF_RIGHT)
    hand_in(course, "none", double=WRONG, half=NO_HALF)
    if by == "mha-grade":
        assert run(course, "grade", NAME) == 0
    else:
        for student in ("full", "part", "none"):
            autograde(course, student)
    assert scores(course, "full") == {"double": pytest.approx(0.3), "half": 3.0}
    assert scores(course, "part") == {"double": pytest.approx(0.1), "half": 3.0}
    assert scores(course, "none") == {"double": 0.0, "half": 0.0}
    submissions = formgrader(course).get_submissions(NAME)
    assert {s["student"]: s["score"] for s in submissions} == {
        "full": pytest.approx(3.3),
        "part": pytest.approx(3.1),
        "none": 0.0,
    }
    assert all(s["autograded"] and not s["needs_manual_grade"] for s in submissions)


def test_the_graded_notebook_is_the_released_one_with_the_students_code_and_our_words(course):
    folder = hand_in(course, "ann", double=HALF_RIGHT, extra="helper = 'her own cell'")
    notebook = json.loads((folder / f"{NAME}.ipynb").read_text())
    for each in notebook["cells"]:
        if each["id"].startswith("test_"):
            each["source"] = "pass  # no test any more"
            each["metadata"]["tags"] = ["skip-execution"]
    (folder / f"{NAME}.ipynb").write_text(json.dumps(notebook))
    assert run(course, "grade", NAME) == 0
    graded = autograded(course, "ann")
    released = nbformat.read(course / "exercises" / NAME / f"{NAME}.ipynb", as_version=4)
    assert cell(graded, "test_double").source == cell(released, "test_double").source
    assert cell(graded, "test_double").metadata == cell(released, "test_double").metadata
    assert cell(graded, "double").source == HALF_RIGHT
    sources = [each.source for each in graded.cells]
    assert sources.index("helper = 'her own cell'") == sources.index("import numpy as np") + 1
    words, score = cell(graded, "test_double").outputs
    assert "Integers are doubled as well." in words["data"]["text/html"]
    assert "not passed" in words["data"]["text/plain"]
    assert float(score["data"]["text/plain"]) == pytest.approx(0.1)
    whole = nbformat.writes(graded)
    assert SECRET_WORD not in whole
    assert "HIDDEN" not in whole


def test_what_a_student_wrote_is_no_markup_anywhere(course):
    attack = "<script>document.title = 1</script>"
    hand_in(course, "eve", double=f'def double(x):\n    raise ValueError("{attack}\\x1b[31m")\n')
    os.rename(
        course / "submitted/eve" / NAME / f"{NAME}.ipynb", course / "submitted/eve" / NAME / "<b>.ipynb"
    )
    assert run(course, "grade", NAME) == 0
    assert run(course, "feedback", NAME) == 0
    page = (course / "feedback" / "eve" / NAME / f"{NAME}.html").read_text()
    graded = autograded(course, "eve")
    htmls = [
        o["data"]["text/html"] for c in graded.cells for o in c.get("outputs", []) if "text/html" in o["data"]
    ]
    about = graded.cells[0].source
    assert "&lt;b&gt;.ipynb" in about
    for text in (page, about, *htmls):
        assert "<script" not in text
        assert "<b>" not in text
        assert "\x1b" not in text
    assert "&lt;script&gt;" in page
    assert any("&lt;script&gt;" in html for html in htmls)


# --- malformed hand-ins -----------------------------------------------------------------------------------


def test_malformed_hand_ins_get_a_status_from_nbgraders_own_command_too(course):
    hand_in(course, "ann")
    renamed = hand_in(course, "bob")
    os.rename(renamed / f"{NAME}.ipynb", renamed / f"{NAME} (2).ipynb")
    (hand_in(course, "cyd") / f"{NAME}.ipynb").write_text("<!DOCTYPE html>")
    (hand_in(course, "dan") / f"{NAME}.ipynb").unlink()
    shutil.rmtree(hand_in(course, "eve"))
    (course / "submitted" / "ann" / NAME / "submission_secret.txt").write_text("of ann")
    (course / "submitted" / "eve" / NAME).symlink_to(f"../ann/{NAME}")
    beside = hand_in(course, "fay")
    os.rename(beside / f"{NAME}.ipynb", beside.parent / f"{NAME}.ipynb")
    beside.rmdir()
    coursedir = gradebook.course_directory(Course(course), assignment_id=NAME)
    result = NbGraderAPI(coursedir, config=coursedir.config).autograde(NAME, "*")
    assert result["success"], result
    records = store.load_all(course / "grades" / NAME)
    statuses = {student: record.status for student, record in records.items()}
    assert statuses == {
        "ann": "graded",
        "bob": "repaired",
        "cyd": "not-json",
        "dan": "missing",
        "eve": "not-a-file",
        "fay": "repaired",
    }
    for student in ("ann", "bob", "fay"):
        assert scores(course, student) == {"double": pytest.approx(0.3), "half": 3.0}
    for student in ("cyd", "dan", "eve"):
        assert scores(course, student) == {"double": 0.0, "half": 0.0}
        assert statuses[student] in autograded(course, student).cells[0].source
    assert not (course / "autograded" / "eve" / NAME / "submission_secret.txt").exists()


def test_files_beside_a_notebook_are_not_opened_and_not_copied(course):
    folder = hand_in(course, "eve")
    hand_in(course, "ann")
    (folder / "numpy.py").write_text("raise SystemExit")
    (folder / "secret").symlink_to(course / ".course_secret")
    (folder / "everything").symlink_to("/")
    (folder / ".hidden").write_text("x")
    (folder / "sub").mkdir()
    (folder / "sub" / "more.txt").write_text("x")
    os.mkfifo(folder / "pipe")  # who opens it waits for ever
    os.mkfifo(folder / "submission_secret.txt")
    (folder / "timestamp.txt").write_text("yesterday, I think")
    assert run(course, "grade", NAME) == 0
    autograde(course, "eve")
    assert {path.name for path in (course / "autograded/eve" / NAME).iterdir()} == {
        f"{NAME}.ipynb",
        "checks.py",
    }
    assert scores(course, "eve")["half"] == 3.0
    assert [s["student"] for s in formgrader(course).get_submissions(NAME)] == ["ann", "eve"]


def test_a_folder_that_is_no_students_is_left_out_and_named(course, capsys):
    hand_in(course, "two\nlines")
    hand_in(course, ".ipynb_checkpoints")
    hand_in(course, "ann")
    assert run(course, "grade", NAME) == 0
    assert r"'two\nlines'" in capsys.readouterr().err
    assert list(store.load_all(course / "grades" / NAME)) == ["ann"]


def test_hand_ins_may_lie_elsewhere(course, tmp_path):
    hand_in(course, "ann", submitted=tmp_path / "hand-ins (1) [new] +")
    assert run(course, "grade", NAME, "--submitted", str(tmp_path / "hand-ins (1) [new] +")) == 0
    assert scores(course, "ann")["half"] == 3.0


# --- what people add --------------------------------------------------------------------------------------


def change_by_hand(course, student):
    with database(course) as book:
        book.find_grade("test_double", NAME, NAME, student).manual_score = 0.25
        book.find_grade("test_double", NAME, NAME, student).needs_manual_grade = False
        book.find_comment("double", NAME, NAME, student).manual_comment = "Nearly <there>."
        book.db.commit()


def test_scores_and_comments_of_people_survive_and_reach_the_student(course):
    hand_in(course, "ann", double=HALF_RIGHT)
    hand_in(course, "bob", double=HALF_RIGHT)
    assert run(course, "grade", NAME) == 0
    for student in ("ann", "bob"):
        change_by_hand(course, student)
    hand_in(course, "bob", double=DOUBLE)
    assert run(course, "grade", NAME, "--student", "bob", "--force") == 0
    assert run(course, "grade", NAME) == 0
    with database(course) as book:
        ann, bob = (book.find_grade("test_double", NAME, NAME, student) for student in ("ann", "bob"))
        assert (ann.auto_score, ann.manual_score, ann.needs_manual_grade) == (pytest.approx(0.1), 0.25, False)
        # What is new is entered, and nbgrader asks to look at the score that a person gave.
        assert (bob.auto_score, bob.manual_score, bob.needs_manual_grade) == (pytest.approx(0.3), 0.25, True)
    entry = gradebook.read(Course(course), NAME)["ann"]
    assert (entry.by_hand, entry.comments) == ({"double": 0.25}, {"double": "Nearly <there>."})
    assert run(course, "feedback", NAME, "--student", "ann") == 0
    page = (course / "feedback" / "ann" / NAME / f"{NAME}.html").read_text()
    assert "3.25 of 3.3 points" in page
    assert "Nearly &lt;there&gt;." in page
    assert not (course / "feedback" / "bob").exists()


def test_a_late_hand_in_is_told_so(course):
    (hand_in(course, "ann") / "timestamp.txt").write_text("2026-03-02 00:00:10 UTC")
    hand_in(course, "bob")
    assert run(course, "grade", NAME) == 0
    with database(course) as book:
        book.find_assignment(NAME).duedate = datetime(2026, 3, 2)
        book.db.commit()
    assert run(course, "grade", NAME) == 0  # nothing is run again, but the penalty is new
    entries = gradebook.read(Course(course), NAME)
    assert (entries["ann"].late_seconds, entries["ann"].penalty) == (10.0, pytest.approx(3.3))
    assert (entries["bob"].late_seconds, entries["bob"].penalty) == (0.0, 0.0)
    assert run(course, "feedback", NAME) == 0
    page = (course / "feedback" / "ann" / NAME / f"{NAME}.html").read_text()
    assert "0 of 3.3 points" in page
    assert "came late: 3.3 points were taken off" in page


def test_nbgraders_own_feedback_is_our_page(course):
    hand_in(course, "ann", double=HALF_RIGHT)
    assert run(course, "grade", NAME) == 0
    result = formgrader(course).generate_feedback(NAME, "ann")
    assert result["success"], result
    path = course / "feedback" / "ann" / NAME / f"{NAME}.html"
    theirs = path.read_text()
    path.unlink()
    assert run(course, "feedback", NAME) == 0
    assert theirs == path.read_text()
    assert "Integers are doubled as well." in theirs
    assert SECRET_WORD not in theirs


def test_feedback_goes_out_through_the_exchange(course, tmp_path):
    folder = hand_in(course, "ann")
    (folder / "timestamp.txt").write_text("2026-03-02 00:00:10 UTC")
    (folder / "submission_secret.txt").write_text("of ann")
    assert run(course, "grade", NAME) == 0
    assert run(course, "feedback", NAME) == 0
    config = gradebook.course_directory(Course(course)).config
    config.Exchange.root = str(tmp_path / "exchange")
    (tmp_path / "exchange").mkdir(mode=0o777)
    (tmp_path / "exchange").chmod(0o777)
    coursedir = gradebook.course_directory(Course(course), course_id="course")
    result = NbGraderAPI(coursedir, config=config).release_feedback(NAME, "ann")
    assert result["success"], result
    (out,) = (tmp_path / "exchange").glob("course/feedback/*.html")
    assert out.read_text() == (course / "feedback" / "ann" / NAME / f"{NAME}.html").read_text()


# --- what is missing is named -----------------------------------------------------------------------------


def test_a_gradebook_that_does_not_know_the_assignment(course, capsys):
    hand_in(course, "ann")
    (course / "gradebook.db").unlink()
    assert run(course, "grade", NAME) == 1
    assert "run `make exercises`" in capsys.readouterr().err
    assert not (course / "gradebook.db").exists()
    result = formgrader(course).autograde(NAME, "ann")
    assert not result["success"]
    assert "run `make exercises`" in result["log"]


def test_feedback_and_export_need_graded_hand_ins(course, capsys):
    for command in ("feedback", "export"):
        assert run(course, command, NAME) == 1
        assert f"run `mha-grade grade {NAME}`" in capsys.readouterr().err
