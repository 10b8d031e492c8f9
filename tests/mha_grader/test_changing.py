"""An assignment changes while it is being graded: nothing is lost, and nobody is surprised."""

import csv
import os
import random
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.course import authoring
from tests.mha_grader.small_course import NAME, ROOT, SOURCE, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own
TEXT = '# %% [markdown] id="more"\n# A text that was not there.\n\n'
NO_HALF = SOURCE[: SOURCE.index('# %% role="solution" item="half"')]
OTHER_POINTS = SOURCE.replace("@part(points=3)", "@part(points=0)")


@pytest.fixture
def graded(tmp_path):
    """A course in which two are graded; one has a comment and a score by a person."""
    course = make(tmp_path / "course")
    hand_in(course, "anna")
    hand_in(course, "bo", double="def double(x):\n    return x\n")
    assert grade(course) == 0
    with book(course) as gradebook:
        entry = gradebook.find_grade("test_double", NAME, NAME, "bo")
        entry.manual_score = 0.15
        gradebook.db.commit()
    return course


def grade(course):
    return cli.main(["--course", str(course), "grade", NAME, "--quiet"])


def book(course):
    return Gradebook(f"sqlite:///{course}/gradebook.db")


def scores(course):
    """What each student has for each item."""
    with book(course) as gradebook:
        return {
            submission.student_id: {
                entry.name: round(entry.score, 6) for entry in submission.notebooks[0].grades
            }
            for submission in gradebook.assignment_submissions(NAME)
        }


def write(course, source):
    (course / "solutions" / f"{NAME}.py").write_text(source)


def released(course):
    return {path.name: path.read_bytes() for path in (course / "exercises" / NAME).iterdir()}


ALL = {"anna": {"test_double": 0.3, "test_half": 3.0}, "bo": {"test_double": 0.15, "test_half": 3.0}}


def test_text_comes_and_goes_at_any_time(graded):
    assert scores(graded) == ALL
    for source in (SOURCE.replace("# %% role=", TEXT + "# %% role=", 1), SOURCE):
        write(graded, source)
        authoring.release(graded, NAME)
        assert (b"A text that was not there." in released(graded)[f"{NAME}.ipynb"]) is (source != SOURCE)
        assert grade(graded) == 0
        assert scores(graded) == ALL


@pytest.mark.parametrize(
    ("source", "change"),
    [(NO_HALF, "half is dropped (3 points)"), (OTHER_POINTS, "half has 0 points instead of 3")],
)
def test_items_change_only_when_told_to_and_the_class_is_graded_again(
    graded, monkeypatch, capsys, source, change
):
    before = released(graded)
    write(graded, source)
    monkeypatch.chdir(graded)
    assert authoring.main([NAME]) == 1
    said = capsys.readouterr().err
    assert change in said
    assert f"mha-grade change {NAME} --yes" in said
    assert cli.main(["change", NAME]) == 0
    assert change in capsys.readouterr().out
    assert (released(graded), scores(graded)) == (before, ALL)  # so far nothing has changed

    assert cli.main(["change", NAME, "--yes"]) == 0
    assert f"mha-grade grade {NAME}" in capsys.readouterr().out
    assert grade(graded) == 0
    half = {} if source == NO_HALF else {"test_half": 0.0}
    assert scores(graded) == {"anna": {"test_double": 0.3} | half, "bo": {"test_double": 0.15} | half}
    if source == NO_HALF:
        with (graded / "grades" / f"{NAME}-dropped.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert {(row["student"], row["item"], float(row["auto_score"])) for row in rows} == {
            ("anna", "test_half", 3.0),
            ("bo", "test_half", 3.0),
        }

    write(graded, SOURCE)  # and back: the item is new, and all that was handed in earns its points
    assert cli.main(["change", NAME, "--yes"]) == 0
    assert grade(graded) == 0
    assert scores(graded) == ALL


def test_a_source_with_a_mistake_changes_nothing(graded, monkeypatch, capsys):
    before = released(graded)
    monkeypatch.chdir(graded)
    for broken in (
        SOURCE.replace("### END HIDDEN TESTS", ""),
        SOURCE.replace('item="half"', 'item="haalf"', 1),
    ):
        write(graded, broken)
        assert authoring.main([NAME]) == 1
        assert f"{NAME}.py" in capsys.readouterr().err
        assert cli.main(["change", NAME, "--yes"]) == 1
        capsys.readouterr()
        assert released(graded) == before
    assert grade(graded) == 0
    assert scores(graded) == ALL


def test_a_release_that_is_killed_loses_nothing_and_the_next_one_completes_it(graded):
    old = released(graded)
    write(graded, SOURCE.replace("# %% role=", TEXT + "# %% role=", 1))
    command = [sys.executable, "-m", "mha_grader.course.authoring", NAME]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    rng, killed = random.Random(0), 0
    while killed < 5:
        release = subprocess.Popen(command, cwd=graded, env={**os.environ, "PYTHONPATH": path})
        try:
            release.wait(timeout=rng.uniform(1.0, 4.0))
            break  # this machine is quicker than the kills
        except subprocess.TimeoutExpired:
            release.kill()
            release.wait()
            killed += 1
        assert released(graded).keys() == old.keys()
        assert scores(graded) == ALL
    subprocess.run(command, cwd=graded, env={**os.environ, "PYTHONPATH": path}, check=True)
    assert b"A text that was not there." in released(graded)[f"{NAME}.ipynb"]
    assert list(graded.glob(".release-*")) == []
    assert grade(graded) == 0
    assert scores(graded) == ALL
