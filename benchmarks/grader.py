"""The grader against plain `nbgrader autograde`, on the same right hand-ins, in one run.

    python -m benchmarks.grader                      5 hand-ins of each assignment, about two minutes
    python -m benchmarks.grader --handins 100        as many as a small class

Seconds are those of the whole command, start-up included; processor seconds are those of the whole machine, less
what it did before: nothing else should run.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import ROOT, command_line, write
from mha_grader.course import authoring
from mha_grader.course.assignment import Assignment, load_assignment
from mha_grader.course.folders import config_of_a_copy

ASSIGNMENTS = ("single_head", "batched_torch")
PLAIN = (
    'c = get_config()\nc.CourseDirectory.source_directory = "solutions"\nc.ExecutePreprocessor.timeout = 60\n'
)


def right_handin(assignment: Assignment) -> bytes:
    """The released notebook with the reference's code in it."""
    folder = assignment.files
    assert folder is not None
    notebook = json.loads(
        (ROOT / "exercises" / assignment.name / f"{assignment.name}.ipynb").read_text("utf-8")
    )
    for cell in notebook["cells"]:
        item = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if item in assignment.items:
            cell["source"] = assignment.cell("solution", item).source
    return json.dumps(notebook).encode()


def make_course(folder: Path, name: str, config: str, handins: int) -> None:
    """A course with one assignment and a class that handed in the same."""
    (folder / "solutions").mkdir(parents=True)
    (folder / "nbgrader_config.py").write_text(config_of_a_copy(ROOT))
    for source in (ROOT / "solutions").glob("*.py"):
        shutil.copyfile(source, folder / "solutions" / source.name)
    authoring.release(folder, name)
    data = right_handin(load_assignment(folder, name))
    for number in range(handins):
        place = folder / "submitted" / f"c{number:04}" / name
        place.mkdir(parents=True)
        (place / f"{name}.ipynb").write_bytes(data)
    (folder / "nbgrader_config.py").write_text(config)


def busy_seconds() -> float:
    """Processor seconds that this machine has worked since it started, on all cores."""
    used = psutil.cpu_times()
    return used.user + used.nice + used.system


def background() -> float:
    """Processor seconds a second that the machine works while we do nothing."""
    before = busy_seconds()
    time.sleep(5)
    return (busy_seconds() - before) / 5


def timed(command: list[str], folder: Path) -> dict[str, float]:
    """Wall and processor seconds of a command and of all that it starts.

    A sandbox is killed, not waited for, so its seconds are charged to nobody: the whole machine's are read, less
    what it did before.
    """
    idle = background()
    before, start = busy_seconds(), time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {"wall_s": wall, "processor_s": busy_seconds() - before - idle * wall, "background": idle}


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a while."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def measure(name: str, handins: int, plain_handins: int) -> dict[str, Any]:
    """Both commands on one assignment; the same bytes for all students."""
    scripts = Path(sys.executable).parent
    commands = {
        "mha-grade": (
            handins,
            config_of_a_copy(ROOT),
            [sys.executable, "-m", "mha_grader"],
        ),
        "nbgrader": (plain_handins, PLAIN, [str(scripts / "nbgrader"), "autograde"]),
    }
    found: dict[str, Any] = {"assignment": name}
    for way, (count, config, command) in commands.items():
        with scratch() as folder:
            make_course(folder, name, config, count)
            arguments = ["grade", name] if way == "mha-grade" else [name]
            taken = timed([*command, *arguments], folder)
        found[way] = {"handins": count, **taken}
        found[way] |= {f"{key}_each": taken[key] / count for key in ("wall_s", "processor_s")}
        each = found[way]
        print(
            f"{name:16} {way:10} {count:4} hand-ins  {taken['wall_s']:7.1f} s wall  {taken['processor_s']:7.1f} s"
            f" processor  each {each['wall_s_each']:6.2f} and {each['processor_s_each']:6.2f}",
            flush=True,
        )
    found["processor_ratio"] = found["nbgrader"]["processor_s_each"] / found["mha-grade"]["processor_s_each"]
    print(
        f"{name:16} plain nbgrader takes {found['processor_ratio']:.1f} times the processor time of a hand-in"
    )
    return found


def main() -> None:
    """Measure, print, store."""
    parser = command_line(__doc__)
    parser.add_argument("--handins", type=int, default=5, help="for each assignment (default: 5)")
    parser.add_argument("--plain", type=int, help="for plain nbgrader, if fewer than those")
    arguments = parser.parse_args()
    plain = arguments.plain or arguments.handins
    measured = [measure(name, arguments.handins, plain) for name in ASSIGNMENTS]
    print("written:", write(arguments.results, "grader", {"measured": measured}))


if __name__ == "__main__":
    main()
