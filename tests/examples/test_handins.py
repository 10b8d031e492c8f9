"""All example hand-ins, graded by `mha-grade grade` and by `nbgrader autograde`: each gets its verdict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from examples import handins
from examples.grade import make_course
from examples.handins import HANDINS
from mha_grader.course import store
from mha_grader.instructor import export

NAME = "single_head"
pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own, while the course is made
SLOW = ("s07", "s08")  # they use up a time limit: once is enough
STUDENTS = list(HANDINS[NAME])


def run(course, *command):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(command, cwd=course, env=os.environ | {"PATH": path}, check=True, timeout=300)


def entered(course):
    """The scores in the gradebook, by student and item."""
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        return {
            submission.student_id: {
                grade.name.removeprefix("test_"): grade.auto_score for grade in submission.notebooks[0].grades
            }
            for submission in book.assignment_submissions(NAME)
        }


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """The course's folder, and what came of each of the two ways: scores in the gradebook, and records."""
    course = tmp_path_factory.mktemp("examples") / "course"
    make_course(course, NAME)
    records = course / "grades" / NAME
    run(course, "mha-grade", "grade", NAME)
    ours = entered(course), store.load_all(records)
    for student in STUDENTS[::5]:
        if student not in SLOW:
            (records / f"{student}.json").unlink()  # so that nbgrader has it graded again
    run(course, "nbgrader", "autograde", NAME, "--force")
    theirs = entered(course), store.load_all(records)
    return course, ours, theirs


def test_every_example_gets_its_verdict_by_both_ways(graded):
    _, ours, theirs = graded
    assert list(ours[1]) == STUDENTS
    for scores, records in (ours, theirs):
        found = {student: _verdict(record) for student, record in records.items()}
        assert found == {student: _expected(HANDINS[NAME][student], records[student]) for student in STUDENTS}
        assert scores == {
            student: {item.item: pytest.approx(item.score) for item in record.items}
            for student, record in records.items()
        }


def _verdict(record):
    lost = {i.item: tuple(p.name for p in i.parts if p.status != "pass") for i in record.items}
    return record.status, {item: parts for item, parts in lost.items() if parts}, export.recognised(record)


def _expected(handin, record):
    lost = {i.item: tuple(p.name for p in i.parts if handin.loses(i.item, p.name)) for i in record.items}
    return handin.status, {item: parts for item, parts in lost.items() if parts}, handin.slugs


def test_right_hand_ins_lose_nothing_and_there_are_several(graded):
    right = [student for student, handin in HANDINS[NAME].items() if not handin.lost]
    records = graded[1][1]
    assert len(right) >= 6
    assert all(records[student].score == records[student].max_score > 0 for student in right)


def test_nothing_of_the_hidden_tests_is_in_what_students_can_see(graded):
    course = graded[0]
    run(course, "mha-grade", "feedback", NAME)
    pages = list(course.glob(f"feedback/*/{NAME}/{NAME}.html"))
    notebooks = list(course.glob(f"autograded/*/{NAME}/{NAME}.ipynb"))
    assert len(pages) == len(notebooks) == len(STUDENTS)
    for path in (*pages, *notebooks):
        text = path.read_text("utf-8")
        assert not [t for t in ("HIDDEN TESTS", "@part(", "expect_close", "(rng)") if t in text], path


def test_the_examples_stay_out_of_a_gradebook_that_the_course_has_on_a_server(tmp_path, monkeypatch):
    course = tmp_path / "course"
    course.mkdir()
    (course / "solutions").symlink_to(handins.COURSE / "solutions")
    config = (handins.COURSE / "nbgrader_config.py").read_text()
    nowhere = 'c.CourseDirectory.db_url = "postgresql://grader@127.0.0.1:1/term"'
    (course / "nbgrader_config.py").write_text(f"{config}\n{nowhere}\n")
    monkeypatch.setattr(handins, "COURSE", course)
    make_course(tmp_path / "examples", NAME)
    assert (tmp_path / "examples" / "gradebook.db").is_file()
