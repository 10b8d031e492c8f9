"""Grading that is killed goes on where it was, and what people entered stays."""

import json
import random
import time

import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.course import authoring, store
from mha_grader.grading import grade
from tests.mha_grader.killing import check, grade_under_fire, make_class, stamps
from tests.mha_grader.small_course import NAME, SOURCE, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's and distributed's own


def run(course, *arguments):
    return cli.main(["--course", str(course), *arguments])


def when_another_is_graded(course, of):
    """A wait until there is one more record than now, or there are all."""

    def wait():
        goal = min(len(stamps(course)) + 1, of)
        while len(stamps(course)) < goal:
            time.sleep(0.02)
        return 0.0

    return wait


def test_twelve_hand_ins_under_fire(tmp_path):
    course, chance = make(tmp_path / "course"), random.Random(28)  # which hits the command first
    scores = make_class(course, 12)
    assert run(course, "grade", NAME, "--student", "c0000") == 0
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        grade = book.find_grade("test_half", NAME, NAME, "c0000")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        book.find_comment("half", NAME, NAME, "c0000").manual_comment = "seen"
        book.db.commit()
    hit = grade_under_fire(course, 3, chance, when_another_is_graded(course, 12))
    assert hit[0] == "command"
    check(course, scores)
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        assert book.find_grade("test_half", NAME, NAME, "c0000").manual_score == 2.5
        assert book.find_comment("half", NAME, NAME, "c0000").manual_comment == "seen"
    before = stamps(course)
    assert run(course, "grade", NAME, "--quiet") == 0
    assert stamps(course) == before


def test_a_new_version_regrades_what_it_affects_and_says_whose_score_changed(tmp_path, capsys):
    course = make(tmp_path / "course")
    hand_in(course, "ann")
    hand_in(course, "bob", double="def double(x):\n    return 2.0 * x if x.dtype == float else x\n")
    assert run(course, "grade", NAME) == 0
    old = store.load_all(course / "grades" / NAME)
    source = course / "solutions" / f"{NAME}.py"
    source.write_text(
        SOURCE.replace("2 * np.arange(5)", "2 * np.arange(5.0)").replace("np.arange(5))", "np.arange(5.0))")
    )
    authoring.release(course, NAME)
    capsys.readouterr()
    assert run(course, "grade", NAME) == 0
    out = capsys.readouterr().out
    assert "1 of 2 scores changed (other tests: 1): 1 higher, 0 lower" in out
    assert "double / integers, more points: 1" in out
    assert run(course, "grade", NAME) == 0
    assert "scores changed" not in capsys.readouterr().out
    assert run(course, "log", NAME, "bob") == 0
    out = capsys.readouterr().out
    assert "3.1 became 3.3 with version 1.0+" in out
    assert "double / integers: 0 is now 0.2 (fail is now pass)" in out
    assert run(course, "log", NAME, "ann") == 0
    assert "changed by regrading" not in capsys.readouterr().out
    new = store.load_all(course / "grades" / NAME)
    for student in ("ann", "bob"):
        assert new[student].version != old[student].version
        assert new[student].items[1] == old[student].items[1]  # `half` was not tested again
        assert not any(line == "half: tested" for line in new[student].log)
        assert any(line == "double: tested" for line in new[student].log)


def test_an_appeal_shows_an_instructor_everything(tmp_path, capsys):
    course = make(tmp_path / "course")
    hand_in(
        course,
        "ann",
        double="import mha_lib\ndef double(x):\n    return x\n",
        half="def half(x):\n    return 1 / 0\n",
    )
    assert run(course, "grade", NAME) == 0
    assert run(course, "grade", NAME, "--student", "ann", "--force") == 0
    capsys.readouterr()
    assert run(course, "log", NAME, "ann") == 0
    out = capsys.readouterr().out
    assert "look at: line 1 uses a library's mha_lib: import mha_lib" in out
    assert "ZeroDivisionError" in out
    assert "error    0/0.1 numbers" in out
    assert run(course, "log", NAME, "bob") == 1
    assert "no hand-in of 'bob'" in capsys.readouterr().err


def test_quiet_says_nothing_and_json_a_line_for_each_hand_in(tmp_path, capsys):
    course = make(tmp_path / "course")
    hand_in(course, "ann")
    hand_in(course, "bob", half="def half(x):\n    return x\n")
    assert run(course, "grade", NAME, "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert run(course, "grade", NAME, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["student"], round(line["score"], 6)) for line in lines] == [("ann", 3.3), ("bob", 0.3)]


def test_a_hand_in_that_cannot_be_graded_stops_no_other(tmp_path, capsys, monkeypatch):
    course = make(tmp_path / "course")
    hand_in(course, "ann")
    hand_in(course, "bob")
    real = grade.grade_submission

    def sometimes(assignment, settings, data, old=None):
        sometimes.calls += 1
        if sometimes.calls == 2:  # the solutions are graded first
            raise OSError("no space left on the device")
        return real(assignment, settings, data, old)

    sometimes.calls = 0
    monkeypatch.setattr(grade, "grade_submission", sometimes)
    assert run(course, "grade", NAME) == 3
    assert "ann could not be graded: no space left on the device" in capsys.readouterr().err
    assert set(store.load_all(course / "grades" / NAME)) == {"bob"}
    assert run(course, "grade", NAME) == 0
    assert set(store.load_all(course / "grades" / NAME)) == {"ann", "bob"}
