"""One class in which everybody hands in something odd: each gets the status and the score that it deserves.

All forms are graded in one run of the command; each is a neighbour of all others.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.course import store
from mha_grader.course.assignment import load_assignment
from mha_grader.course.folders import Course
from mha_grader.grading import rebuild
from mha_grader.grading.grade import grade_submission
from mha_grader.grading.settings import settings_of
from mha_grader.instructor import roster
from tests.mha_grader.grading.malformed_forms import FILE, FORMS, LONG, right
from tests.mha_grader.small_course import NAME, ROOT, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own, of many kinds
STUDENTS = {name: form.student or f"f{number:03}" for number, (name, form) in enumerate(FORMS.items())}
RIGHT = ("first", "f050 right", "zz last")  # neighbours, graded before, among and after the others
NO_IDS = (".hidden", "two\nlines", LONG + "x", "李" * 80)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The course with its class graded by one run of the command, and what the command said."""
    course = make(tmp_path_factory.mktemp("malformed") / "course")
    for student in (*RIGHT, *NO_IDS):
        folder = hand_in(course, student)
    data = right(folder)
    for name, form in FORMS.items():
        folder = course / "submitted" / STUDENTS[name] / NAME
        folder.mkdir(parents=True)
        form.write(folder, data)
    command = [sys.executable, "-m", "mha_grader", "--course", str(course), "grade", NAME]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    yield course, done.stderr
    shutil.rmtree(course)


@pytest.fixture(scope="module")
def records(graded):
    return store.load_all(graded[0] / "grades" / NAME)


@pytest.fixture(scope="module")
def entered(graded):
    """The scores in the gradebook, by student."""
    with Gradebook(f"sqlite:///{graded[0]}/gradebook.db") as book:
        return {
            each.student_id: {grade.name: grade.auto_score for grade in each.notebooks[0].grades}
            for each in book.find_assignment(NAME).submissions
        }


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gets_the_status_and_the_score_that_it_deserves(records, entered, name):
    form, record = FORMS[name], records[STUDENTS[name]]
    scores = {item.item: item.score for item in record.items}
    assert (record.status, scores) == (
        form.status,
        {"double": pytest.approx(form.double), "half": form.half},
    ), (record.notes, record.items, record.log)
    assert entered[STUDENTS[name]] == {
        "test_double": pytest.approx(form.double),
        "test_half": form.half,
    }
    notes = [*record.notes, *(note for item in record.items for note in item.notes)]
    assert all(note.isprintable() and len(note) < 1000 for note in notes)
    assert bool(notes) == (record.status != "graded")  # who lost something or was helped is told so
    if not record.usable:
        assert "hand" in record.notes[0]  # what to do


def test_nobody_is_missing_and_nobody_is_there_twice(records, entered):
    assert sorted(records) == sorted(entered) == sorted([*RIGHT, *STUDENTS.values()])
    assert len(FORMS) >= 60


def test_right_neighbours_get_what_they_would_get_alone(graded, records):
    course = Course(graded[0])
    assignment = load_assignment(course.root, NAME)
    data = (course.submitted / "first" / NAME / FILE).read_bytes()
    alone = grade_submission(assignment, settings_of(course), data)
    assert alone.score == pytest.approx(3.3)
    assert {student: records[student] for student in RIGHT} == dict.fromkeys(RIGHT, alone)


def test_what_is_no_students_id_is_named(graded):
    for name in NO_IDS:
        assert repr(name) in graded[1]


def test_nothing_is_left_behind_and_links_lead_nowhere(graded):
    course = graded[0]
    for folder in (course / "grades" / NAME, *course.glob(f"autograded/*/{NAME}")):
        assert not [path for path in folder.iterdir() if path.name.endswith(".part") or path.is_symlink()]
    for name in FORMS:
        if name.startswith("a link"):
            (written,) = course.glob(f"autograded/{STUDENTS[name]}/{NAME}/{FILE}")
            assert "x + x" not in written.read_text("utf-8")


def test_everybody_gets_a_page_and_a_line(graded, records):
    course = graded[0]
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(["--course", str(course), "feedback", NAME]) == 0
        assert cli.main(["--course", str(course), "export", NAME]) == 0
    exported = json.loads((course / "grades" / f"{NAME}.json").read_text("utf-8"))
    assert [row["student"] for row in exported] == list(records)
    for student, record in records.items():
        page = (course / "feedback" / student / NAME / f"{NAME}.html").read_text("utf-8")
        assert f"{record.score:g} of 3.3 points" in page


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    (tmp_path / FILE).write_bytes(b"{}")
    for name in ("read_bytes", "iterdir"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, name, refuse)
            with pytest.raises(rebuild.Unusable, match="Permission denied") as caught:
                rebuild.find(tmp_path, types.SimpleNamespace(name=NAME))
        assert caught.value.status == "unreadable"


def test_a_long_name_for_an_id_is_refused():
    assert roster.is_student_id(LONG)
    assert not roster.is_student_id(LONG + "x")
    assert not roster.is_student_id("李" * 80)
