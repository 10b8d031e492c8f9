"""Grades the example hand-ins in a course of their own: `python -m examples.grade`.

The copy of the course lies in build/examples and is made anew, so that the course's own gradebook knows
nothing of it. Afterwards its feedback pages and the report on the class can be looked at, and formgrader can be
opened there.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from examples import handins
from mha_grader import cli
from mha_grader.course import authoring
from mha_grader.course.assignment import load_assignment
from mha_grader.course.folders import config_of_a_copy


def make_course(destination: Path, name: str) -> None:
    """Copy what makes the course, release the assignment there, and hand in the examples.

    Args:
        destination: the copy's folder; it should not exist.
        name: the assignment.
    """
    (destination / "solutions").mkdir(parents=True)
    (destination / "nbgrader_config.py").write_text(config_of_a_copy(handins.COURSE))
    for source in (handins.COURSE / "solutions").glob("*.*"):
        shutil.copyfile(source, destination / "solutions" / source.name)
    authoring.release(destination, name)
    handins.write(load_assignment(destination, name), destination / "submitted")


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.grade", description="Grade the example hand-ins, away from the gradebook."
    )
    parser.add_argument("--assignment", choices=list(handins.HANDINS), default="single_head")
    options = parser.parse_args(arguments)
    destination = handins.COURSE / "build" / "examples"
    shutil.rmtree(destination, ignore_errors=True)
    make_course(destination, options.assignment)
    for command in ("grade", "feedback", "export", "report"):
        if code := cli.main(["--course", str(destination), command, options.assignment]):
            return code
    for student, handin in handins.HANDINS[options.assignment].items():
        print(f"{student}  {handin.what}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
