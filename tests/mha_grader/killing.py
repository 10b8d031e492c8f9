"""Grades a class while its processes are killed at random moments: nothing may be lost, nothing done twice.

`make soak` runs this with a thousand hand-ins; the tests with sixty.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import psutil

from mha_grader import store
from tests.mha_grader.small_course import DOUBLE, NAME, ROOT, hand_in, make

WRONG = "def double(x):\n    return x\n"
MISREAD = "def double(x):\n    return 2.0 * x if x.dtype == float else x\n"
EXPECTED = {DOUBLE: 3.3, MISREAD: 3.1, WRONG: 3.0}


def make_class(course: Path, size: int) -> dict[str, float]:
    """Hand-ins that differ; returns the score that each should get."""
    scores = {}
    for number, source in zip(range(size), sorted(EXPECTED) * size, strict=False):
        hand_in(course, f"c{number:04}", double=f"{source}# {number}\n")
        scores[f"c{number:04}"] = EXPECTED[source]
    return scores


def start(course: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command that grades the class."""
    command = [sys.executable, "-m", "mha_grader.cli", "--course", str(course), "grade", NAME, *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes)


def kill_something(command: subprocess.Popen[str], chance: random.Random) -> str:
    """Kill the command or one of its workers, at once and without a word."""
    try:
        workers = [
            child
            for child in psutil.Process(command.pid).children(recursive=True)
            if "spawn_main" in " ".join(child.cmdline())
        ]
    except psutil.NoSuchProcess:
        return "too late"
    if workers and chance.random() < 0.5:
        try:
            chance.choice(workers).kill()
        except psutil.NoSuchProcess:
            return "too late"
        return "worker"
    os.kill(command.pid, signal.SIGKILL)
    return "command"


def stamps(course: Path) -> dict[str, int]:
    """When each record was written."""
    return {path.stem: path.stat().st_mtime_ns for path in (course / "grades" / NAME).glob("*.json")}


def grade_under_fire(
    course: Path, kills: int, chance: random.Random, seconds: Callable[[], float]
) -> list[str]:
    """Grade until the command comes to its end; it is shot at `kills` times. Returns what was hit.

    A record that was there before a kill must not be written again.
    """
    hit: list[str] = []
    while True:
        before = stamps(course)
        command = start(course)
        while len(hit) < kills and command.poll() is None:
            time.sleep(seconds())
            hit.append(kill_something(command, chance))
            if hit[-1] == "command":
                break
        output = command.communicate()[0]
        after = stamps(course)
        assert {student: after[student] for student in before} == before, "a record was written twice"
        if command.returncode >= 0:
            assert command.returncode == 0, output
            return hit


def check(course: Path, scores: dict[str, float]) -> None:
    """Exactly one record and one entry in the gradebook for everybody, with the right score."""
    from nbgrader.api import Gradebook

    records = store.load_all(course / "grades" / NAME)
    assert {student: round(record.score, 6) for student, record in records.items()} == scores
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        entered = [(each.student_id, round(sum(g.auto_score for g in each.notebooks[0].grades), 6))
                   for each in book.find_assignment(NAME).submissions]  # fmt: skip
    assert sorted(entered) == sorted(scores.items())


def main() -> None:
    """The soak: many hand-ins, many kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--handins", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=30)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        course = make(Path(folder) / "course")
        scores = make_class(course, arguments.handins)
        begin = time.monotonic()
        hit = grade_under_fire(course, arguments.kills, chance, lambda: chance.uniform(2, 20))
        minutes = (time.monotonic() - begin) / 60
        check(course, scores)
    counts = {what: hit.count(what) for what in sorted(set(hit))}
    print(f"{arguments.handins} hand-ins, killed {counts}: {minutes:.1f} minutes, lost 0, none graded twice")


if __name__ == "__main__":
    main()
