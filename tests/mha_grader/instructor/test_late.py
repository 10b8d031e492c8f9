"""Penalties, extensions and late days take effect without grading again."""

from datetime import datetime

import pytest

from mha_grader import cli
from mha_grader.course.folders import Course
from mha_grader.grading import schedule
from mha_grader.instructor import gradebook, origins
from mha_grader.instructor.origins import Origin
from tests.mha_grader.small_course import NAME, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own

LATE10 = """
from nbgrader.plugins import BasePlugin
class OnePoint(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 1.0
"""


def test_a_plugin_of_the_course_an_extension_and_late_days(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "FEW", 1000)
    root = make(tmp_path / "course", '\nc.AssignLatePenalties.plugin_class = "late10_of_test.OnePoint"\n')
    (root / "late10_of_test.py").write_text(LATE10)
    (hand_in(root, "ann") / "timestamp.txt").write_text("2026-03-02 12:00:00 UTC")
    with gradebook._opened(gradebook.course_directory(Course(root)).db_url) as book:
        book.find_assignment(NAME).duedate = datetime(2026, 3, 1, 12)
        book.db.commit()

    def penalty():
        gradebook.settle(Course(root), NAME)
        return gradebook.read(Course(root), NAME)["ann"].penalty

    assert cli.main(["--course", str(root), "grade", NAME]) == 0
    assert penalty() == 1.0
    config = (root / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text(f"{config}\nc.LatePenalties.late_days = 1\n")
    assert penalty() == 0.0
    (root / "nbgrader_config.py").write_text(config)
    assert penalty() == 1.0
    assert cli.main(["--course", str(root), "extend", "ann", NAME, "2026-03-03"]) == 0
    assert penalty() == 0.0


def test_a_hand_in_that_canvas_marked_is_late_in_the_log_and_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(schedule, "FEW", 1000)
    root = make(tmp_path / "course", '\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    hand_in(root, "ann")
    origins.save(Course(root), NAME, {"ann": Origin("canvas", "leeann", "11", late=True)})
    assert cli.main(["--course", str(root), "grade", NAME]) == 0
    assert "less than a minute late" in capsys.readouterr().out
    assert cli.main(["--course", str(root), "log", NAME, "ann"]) == 0
    assert "penalty 3.3, less than a minute late" in capsys.readouterr().out
    assert gradebook.read(Course(root), NAME)["ann"].late_seconds == 1.0


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-03-01 12:00:01 UTC", "less than a minute late"),
        ("2026-03-01 12:33:00 UTC", "33.0 minutes late"),
        ("2026-03-01 15:30:00 UTC", "3.5 hours late"),
        ("2026-03-04 00:00:00 UTC", "2.5 days late"),
    ],
)
def test_the_table_says_how_late_in_a_unit_that_fits(tmp_path, monkeypatch, capsys, time, words):
    monkeypatch.setattr(schedule, "FEW", 1000)
    root = make(tmp_path / "course", '\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    (hand_in(root, "ann") / "timestamp.txt").write_text(time)
    with gradebook._opened(gradebook.course_directory(Course(root)).db_url) as book:
        book.find_assignment(NAME).duedate = datetime(2026, 3, 1, 12)
        book.db.commit()
    assert cli.main(["--course", str(root), "grade", NAME]) == 0
    assert words in capsys.readouterr().out
