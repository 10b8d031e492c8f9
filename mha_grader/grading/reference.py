"""The hidden tests on the solutions themselves: a test that these do not pass must judge nobody.

`python -m mha_grader.grading.reference` tries all assignments; so does `make exercises`. `mha-grade grade` tries
the one that it grades, with the draws that its students will meet.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from mha_grader.course import assignment as assignments
from mha_grader.course.assignment import Assignment, CourseError
from mha_grader.course.folders import Course
from mha_grader.course.store import write_whole
from mha_grader.grading import plain
from mha_grader.grading.judge import Verdict, load_parts, run_parts, seed
from mha_grader.testing.proxies import Recorder, local

PUBLIC_SECRET = b"reference"


def check_once(course: Course, assignment: Assignment) -> None:
    """See that the solutions pass their hidden tests, once for each version of an assignment.

    Raises:
        CourseError: if one does not.
    """
    seen = course.grades(assignment.name) / ".reference"
    if seen.exists() and seen.read_text("utf-8") == assignment.version:
        return
    check(assignment, course.secret())
    seen.parent.mkdir(parents=True, exist_ok=True)
    write_whole(seen, assignment.version)


def check(assignment: Assignment, secret: bytes) -> None:
    """See that the solutions pass their hidden tests.

    Args:
        assignment: the assignment.
        secret: decides the draws.

    Raises:
        CourseError: if one does not; the text names the part and says what it found.
    """
    failed = (
        plain.failures(assignment)
        if assignment.plain
        else [
            f"{item}, part “{verdict.part.name}” ({verdict.status}: {verdict.reason})"
            for item in assignment.items
            for verdict in _verdicts(assignment, item, secret)
            if verdict.status != "pass"
        ]
    )
    if failed:
        raise CourseError(
            f"the solutions of {assignment.name} fail their own hidden tests, so nobody can be judged by them: "
            f"{'; '.join(failed)}"
        )


def _verdicts(assignment: Assignment, item: str, secret: bytes) -> Iterator[Verdict]:
    reference = getattr(assignment.reference, item)
    recorder = Recorder(local(**{item: reference}))
    tested = recorder.bind(item, reference)
    parts = load_parts(assignment.cell("test", item).hidden, {item: tested}, assignment.reference)
    version = f"{assignment.name} {assignment.version}"
    yield from run_parts(parts, recorder, lambda part: seed(secret, version, item, part.name))


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 1 if the solutions of an assignment fail its tests, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m mha_grader.grading.reference", description="Try the hidden tests on the solutions."
    )
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="all if none is named")
    names = parser.parse_args(arguments).assignments or assignments.assignments(Path.cwd())
    wrong = 0
    for name in names:
        try:
            check(assignments.load(Path.cwd(), name), PUBLIC_SECRET)
        except CourseError as error:
            print(error, file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
