"""The hidden tests on the solutions themselves: a test that these do not pass must judge nobody.

`python -m mha_grader.grading.reference` tries all assignments in this process; so does `make exercises`. Before a
class is graded, its assignment's solutions are graded as a hand-in, with the draws that students will meet.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import Assignment, CourseError, assignment_names, load_assignment
from mha_grader.course.folders import Course
from mha_grader.course.mistakes import ENDING
from mha_grader.course.plain_nbgrader import IN_PROCESS
from mha_grader.course.records import PartRecord
from mha_grader.course.store import write_whole
from mha_grader.grading import grade, plain
from mha_grader.grading.diagnose import recognise
from mha_grader.grading.judge import Verdict, load_parts, run_parts, seed
from mha_grader.grading.settings import settings_of
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.testing.proxies import Recorder, local

PUBLIC_SECRET = b"reference"


def check_once(course: Course, assignment: Assignment) -> None:
    """See that the solutions pass where students are graded: once for each version, and for each list of packages.

    Raises:
        CourseError: if one does not.
        SandboxUnavailable: if this machine cannot grade.
    """
    seen = course.grades(assignment.name) / ".reference"
    stamp = " ".join((assignment.version, *settings_of(course).layout(assignment).allowed))
    if seen.exists() and seen.read_text("utf-8") == stamp:
        return
    if assignment.plain:  # this process sees more of what is wrong
        check(assignment, course.secret())
    check_as_a_hand_in(course, assignment)
    seen.parent.mkdir(parents=True, exist_ok=True)
    write_whole(seen, stamp)


def check(assignment: Assignment, secret: bytes) -> None:
    """See that the solutions pass their hidden tests in this process.

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
            _lost_part(item, verdict.part.name, verdict)
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


def check_as_a_hand_in(course: Course, assignment: Assignment) -> None:
    """See that the solutions pass every part when they are graded as a hand-in.

    Raises:
        CourseError: if not. If they pass in one process, they need what students lack, such as a package or more
            time, or share something with a test that data does not carry over.
        SandboxUnavailable: if this machine cannot grade.
    """
    name = assignment.name
    notebook = course.root / "solutions" / name / f"{name}.ipynb"
    try:
        record = grade.grade_submission(assignment, settings_of(course), notebook.read_bytes())
    except (OSError, MemoryError) as error:
        raise SandboxUnavailable(f"the solutions of {name} could not be graded: {error!r}") from None
    lost = [(item.item, part) for item in record.items for part in item.parts if part.status != "pass"]
    if not lost:
        return
    advice = ""
    if not record.usable:
        why = list(record.notes)
    elif assignment.plain:
        why = [f"{part.name} ({part.reason})" for _, part in lost]
        advice = f". If such a test looks at more than data, give its cell the tag {IN_PROCESS} in solutions/"
    else:
        why = [_lost_part(item, part.name, part) for item, part in lost]
    raise CourseError(
        f"the solutions of {name} lose points when they are graded as a hand-in, so nobody can be judged by them: "
        f"{'; '.join(why)}{advice}"
    )


def _lost_part(item: str, name: str, verdict: Verdict | PartRecord) -> str:
    return f"{item}, part “{name}” ({verdict.status}: {verdict.reason})"


def check_mistakes(assignment: Assignment, secret: bytes) -> None:
    """See that the hidden tests notice every mistake of the assignment's own file, and that each is named.

    Args:
        assignment: the assignment.
        secret: decides the draws.

    Raises:
        CourseError: if one keeps all points, or is not recognised; the text says which.
    """
    for known in assignment.mistakes:
        where = f"the mistake {known.slug!r} in {assignment.name}{ENDING}"
        if known.item not in assignment.items:
            raise CourseError(f"{where} is one of {known.item!r}, which is no item of {assignment.name}")
        verdicts = list(_verdicts(assignment, known.item, secret, known.code))
        if all(verdict.status == "pass" for verdict in verdicts):
            raise CourseError(f"{where} passes all hidden tests: add a part that it fails")
        variants = {other.slug: other.code for other in assignment.mistakes if other.item == known.item}
        reference, names = getattr(assignment.reference, known.item), vars(assignment.reference)
        found = set(recognise(known.item, verdicts, variants, reference, beside=names).values())
        if found != {known.slug}:
            named = (
                f"is taken for {' and '.join(sorted(found))}"
                if found
                else "is not recognised by what it gives"
            )
            raise CourseError(f"{where} {named}: add a part in which it gives other numbers")


def _verdicts(assignment: Assignment, item: str, secret: bytes, code: Any = None) -> Iterator[Verdict]:
    """The verdicts on the solution, or on other code for an item."""
    reference = getattr(assignment.reference, item)
    beside = vars(assignment.reference)  # a hidden test may build what it needs from another item
    recorder = Recorder(local(**{**beside, item: reference if code is None else code}))
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
    names = parser.parse_args(arguments).assignments or assignment_names(Path.cwd())
    wrong = 0
    for name in names:
        try:
            assignment = load_assignment(Path.cwd(), name)
            check(assignment, PUBLIC_SECRET)
            check_mistakes(assignment, PUBLIC_SECRET)
        except CourseError as error:
            print(error, file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
