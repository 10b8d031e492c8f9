"""Grades a class while its processes are killed at random moments: nothing may be lost, nothing done twice.

`make soak` runs this with a thousand hand-ins; the tests with twelve.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import psutil

from mha_grader.course import store
from mha_grader.course.assignment import load_assignment
from tests.mha_grader import plain_nbgrader
from tests.mha_grader.small_course import DOUBLE, NAME, ROOT, hand_in, make

WRONG = "def double(x):\n    return x\n"
MISREAD = "def double(x):\n    return 2.0 * x if x.dtype == float else x\n"
EXPECTED = {DOUBLE: 3.3, MISREAD: 3.1, WRONG: 3.0}
TEMPORARY = (
    tempfile.TemporaryDirectory()
)  # where these commands have their fork servers, apart from all others


def make_class(course: Path, size: int) -> dict[str, float]:
    """Hand-ins that differ; returns the score that each should get."""
    scores = {}
    for number, source in zip(range(size), sorted(EXPECTED) * size, strict=False):
        hand_in(course, f"c{number:04}", double=f"{source}# {number}\n")
        scores[f"c{number:04}"] = EXPECTED[source]
    return scores


def start(course: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command that grades the class."""
    command = [sys.executable, "-m", "mha_grader", "--course", str(course), "grade", NAME, *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": TEMPORARY.name}
    return subprocess.Popen(command, env=environment, **pipes)


def workers_of(command: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that grade: they are forked from one that Python's multiprocessing has started."""
    children = psutil.Process(command.pid).children(recursive=True)
    forking = [child for child in children if "multiprocessing.forkserver" in " ".join(child.cmdline())]
    return [worker for worker in forking if worker.parent() in forking]


def fork_servers() -> list[psutil.Process]:
    """The first process in the namespace of each fork server that these commands have started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            log = os.readlink(f"/proc/{process.pid}/fd/2")
            parent = process.parent()
            if log.startswith(TEMPORARY.name) and process.name() == "bwrap" == (parent and parent.name()):
                found.append(process)
    return found


def kill_something(command: subprocess.Popen[str], chance: random.Random) -> str | None:
    """Kill the command, one of its workers or a fork server, at once and without a word.

    Returns what it was; None if it had ended before.
    """
    try:
        workers, servers = workers_of(command), fork_servers()
        kinds = {"command": [psutil.Process(command.pid)], "worker": workers, "fork server": servers}
        what = chance.choice(
            [kind for kind, some in kinds.items() if some] + ["fork server"] * 2 * bool(servers)
        )
        chance.choice(kinds[what]).kill()
    except psutil.NoSuchProcess:
        return None
    return what


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
            what = kill_something(command, chance)
            hit += [what] if what else []
            if what == "command":
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


class Memory:
    """The memory of all that this process starts, at most, in GiB; what several share counts once."""

    def __init__(self) -> None:
        self.peak, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            processes = psutil.Process().children(recursive=True)
            self.peak = max(self.peak, sum(map(share_of_memory, processes)) / 2**20)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()


def share_of_memory(process: psutil.Process) -> int:
    """A process's memory in KiB, with its share of what it has in common with others; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def grade_plainly(course: Path, folder: Path, scores: dict[str, float]) -> str:
    """Let plain nbgrader grade the same hand-ins of some students; returns what came of it."""
    plain_nbgrader.make_plain(folder, load_assignment(course, NAME), course / "solutions" / NAME)
    for student in scores:
        shutil.copytree(course / "submitted" / student, folder / "submitted" / student)
    begin = time.monotonic()
    found = plain_nbgrader.sandboxed(folder, NAME, list(scores))
    seconds = (time.monotonic() - begin) / len(scores)
    right = sum(math.isclose(found[student]["score"] or 0, score) for student, score in scores.items())
    return (
        f"{len(scores)} of them by plain nbgrader, undisturbed: {seconds:.1f} s each, {right} scores the same"
    )


def main() -> None:
    """The soak: many hand-ins, many kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--handins", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--plain", type=int, default=20, help="hand-ins for plain nbgrader as well")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        course = make(Path(folder) / "course")
        scores = make_class(course, arguments.handins)
        begin = time.monotonic()
        with Memory() as memory:
            hit = grade_under_fire(course, arguments.kills, chance, lambda: chance.uniform(0.2, 4))
        minutes = (time.monotonic() - begin) / 60
        check(course, scores)
        counts = {what: hit.count(what) for what in sorted(set(hit))}
        print(
            f"{len(scores)} hand-ins, killed {counts}: {minutes:.1f} minutes, lost 0, none graded twice, every"
        )
        print(f"score as it should be; {memory.peak:.1f} GiB of memory at most", flush=True)
        some = dict(list(scores.items())[: arguments.plain])
        print(grade_plainly(course, Path(folder) / "plain", some))


if __name__ == "__main__":
    main()
