"""Checking one's own code and grading it come to the same verdict: the same parts, mistakes and words.

A few are compared: example hand-ins, and known mistakes and right styles of one assignment, which are drawn anew
whenever an assignment changes. `make same-verdict` compares them all, which takes long.
"""

import random
import sys
import tempfile
from pathlib import Path

import pytest

from examples.handins import HANDINS, write
from mha_grader.course.assignment import load_assignment
from mha_grader.grading import diagnose, judge, rebuild
from mha_grader.grading.grade import grade_submission
from mha_grader.grading.session import Budget, Session
from mha_grader.grading.settings import Settings
from mha_grader.learn import process
from mha_grader.learn.material import Material
from mha_grader.learn.session import DRAWS, OwnSession, OwnSettings
from mha_grader.sandbox.fork_server import Layout
from mha_grader.testing.candidates import DEFINE
from mha_lib import pitfalls
from mha_lib.styles import styles
from tests.mha_grader.learn.forking import forks

ROOT = Path(__file__).parents[3]
SHORT = Budget(cell=4, added=3, call=4, item=15, submission=120)
DRAWN = 3  # of the assignment's known mistakes and right styles


def verdict(record):
    """All that a reader is told, and what a record says beside it."""
    return (
        record.status,
        record.notes,
        [(item.item, item.parts, item.notes, item.stood_in) for item in record.items],
    )


def verdicts_on_example(student, tmp_path, monkeypatch):
    """What grading and checking say of an example hand-in."""
    assignment = load_assignment(ROOT, "single_head")
    write(assignment, tmp_path)
    try:
        data = rebuild.find(tmp_path / student / "single_head", assignment).data
    except rebuild.Unusable:
        data = b"{"
    with tempfile.TemporaryDirectory() as short:  # sockets' names may not be longer
        inside = Path(short) / "a" / "b" / "c"  # some write above the folder that they find themselves in
        inside.mkdir(parents=True)
        monkeypatch.setattr(tempfile, "tempdir", str(inside))
        return [
            verdict(grade_submission(assignment, kind(secret=DRAWS, course=ROOT, budget=SHORT), data))
            for kind in (Settings, OwnSettings)
        ]


@pytest.mark.parametrize("student", list(HANDINS["single_head"])[::10])
def test_an_example_gets_the_same_verdict_both_ways(student, tmp_path, monkeypatch):
    graded, checked = verdicts_on_example(student, tmp_path, monkeypatch)
    assert graded == checked


def known(assignment):
    """The known mistakes and right styles of the assignment's items."""
    return [
        (item, kind, name)
        for item in assignment.items
        for kind, found in (("style", styles), ("pitfall", pitfalls.variants))
        for name in found(assignment.name, item)
    ]


def judged(session, assignment, item, kind, name):
    """The verdict on known code, which runs where a student's would."""
    for cell in assignment.cells[: assignment.cells.index(assignment.cell("solution", item))]:
        if cell.kind == "given":
            session.execute(cell.id, cell.source, 60.0)
    source = DEFINE.format(kind=kind, assignment=assignment.name, item=item, name=name)
    failure = session.execute(item, f"{source}{item} = candidate\n", 60.0)
    found = judge.judge(session, assignment, item, failure, DRAWS)
    parts = [(each.part.name, each.status, each.reason) for each in found.verdicts]
    return parts, diagnose.diagnose(assignment, found)


def differences(assignment, chosen):
    """Known code whose verdicts differ."""
    package = {"mha_lib": str(ROOT / "mha_lib")}
    layout = Layout.make(
        assignment.files, packages=package, imports=(*assignment.imports(), "mha_lib.pitfalls")
    )
    wrong = []
    with forks(layout):
        for one in chosen:
            with Session(layout) as sandboxed, OwnSession(layout) as own:
                both = [judged(session, assignment, *one) for session in (sandboxed, own)]
            if both[0] != both[1]:
                wrong.append((one, both))
    return wrong


def allow_the_bank(monkeypatch, folder):
    """Let plain processes import the bank, which only the course's own tests need."""
    (folder / "mha_lib").symlink_to(ROOT / "mha_lib")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    importable = process.importable
    monkeypatch.setattr(process, "importable", lambda layout: [*importable(layout), "mha_lib"])


def drawn():
    """An assignment, and some of its known mistakes and right styles."""
    material = Material()
    stamps = [material.released(name).notebook["metadata"]["mha"] for name in material.names]
    draw = random.Random(repr(stamps))
    assignment = load_assignment(ROOT, draw.choice(material.names))
    return assignment, draw.sample(known(assignment), DRAWN)


def test_known_mistakes_and_right_styles_get_the_same_verdict_both_ways(monkeypatch, tmp_path):
    allow_the_bank(monkeypatch, tmp_path)
    assert differences(*drawn()) == []


def main():
    """Compare all examples, known mistakes and right styles; returns 1 if some verdicts differ."""
    wrong = []
    for student in HANDINS["single_head"]:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
            both = verdicts_on_example(student, Path(folder), monkeypatch)
        wrong += [(student, both)] if both[0] != both[1] else []
    print("examples:", len(HANDINS["single_head"]), "compared,", len(wrong), "differ")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        allow_the_bank(monkeypatch, Path(folder))
        for name in Material().names:
            assignment = load_assignment(ROOT, name)
            found = differences(assignment, known(assignment))
            print(name, len(known(assignment)), "compared,", len(found), "differ")
            wrong += found
    for difference in wrong:
        print(difference)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
