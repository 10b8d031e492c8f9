"""`mha-grade grade`: grade hand-ins."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha_grader.commands.arguments import add_assignment, add_only_student
from mha_grader.course import store
from mha_grader.course.assignment import Assignment, CourseError, load_assignment, load_version
from mha_grader.course.folders import Course, hand_ins
from mha_grader.course.records import SubmissionRecord, to_json
from mha_grader.grading import changes, reference, schedule
from mha_grader.grading.grade import grade_student
from mha_grader.grading.settings import settings_of
from mha_grader.instructor import gradebook, results, terminal, timestamps
from mha_grader.instructor.roster import is_student_id
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.sandbox.sandbox import probe
from mha_grader.sandbox.text import clean


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "grade",
        help="grade hand-ins and enter the scores in the gradebook",
        description="Grade every hand-in of an assignment, enter the scores in nbgrader's gradebook, and show a "
        "table. Hand-ins that were graded before and have not changed are not run again.",
    )
    add_assignment(parser)
    add_only_student(parser)
    parser.add_argument(
        "--submitted", type=Path, metavar="DIR", help="where the hand-ins lie (default: submitted/)"
    )
    parser.add_argument("--force", action="store_true", help="run unchanged hand-ins again")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster whose workers see the same files, for instance tcp://host:8786 (default: the cores "
        "of this machine)",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes on this machine (default: its cores)"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print nothing but errors")
    shown.add_argument(
        "--json", action="store_true", help="print one JSON object a hand-in instead of a table"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Grade; returns the exit code."""
    course = Course.find(arguments.course)
    assignment = load_assignment(course.root, arguments.assignment)
    submitted = (arguments.submitted or course.submitted).resolve()
    only = results.student_id(course, arguments.student, submitted) if arguments.student else None
    students = _students(submitted, arguments.assignment, only)
    for student in students:
        if timestamps.is_unreadable(submitted / student / assignment.name):
            print(
                f"mha-grade: {clean(student)} counts as in time: {timestamps.NAME} tells no date and time",
                file=sys.stderr,
            )
    layout = settings_of(course).layout(assignment)
    probe(layout)  # the workers' sandboxes come from the same fork server
    gradebook.check(gradebook.course_directory(course).db_url, assignment)
    before = store.load_all(course.grades(assignment.name))
    records, failed = _grade_all(course, assignment, submitted, students, layout.imports, arguments)
    try:
        gradebook.enter(course, assignment, submitted, records, force=arguments.force)
    finally:
        entries = gradebook.read(course, assignment.name) if records else {}
        if arguments.json:
            for student, record in records.items():
                print(json.dumps({"student": student, **to_json(record)}, ensure_ascii=False))
        elif not arguments.quiet and records:
            terminal.print_scores(records, entries, course)
        if not arguments.json and not arguments.quiet:
            for line in changes.summary(before, records):
                print(clean(line, 1000))
            if arguments.student is None:
                missing = results.without_hand_in(course, assignment.name)
                terminal.print_missing([results.called(course, student) for student in missing])
    for student in results.strangers(course, records):
        print(f"mha-grade: {clean(student)} is not in roster.csv", file=sys.stderr)
    for student, why in failed.items():
        print(f"mha-grade: {clean(student)} could not be graded: {why}", file=sys.stderr)
    if failed and isinstance(next(iter(failed.values())), SandboxUnavailable) and not records:
        return 1
    return 3 if failed else 0


def _students(submitted: Path, assignment: str, only: str | None) -> list[str]:
    """Ids of the students who handed something in for the assignment.

    Raises:
        CourseError: if there is none.
    """
    if only is not None and not (submitted / only).is_dir():
        raise CourseError(f"there is no folder of student {only!r} in {submitted}")
    students = [folder.parent.name for folder in hand_ins(submitted, assignment)]
    students = [student for student in students if only in (None, student)]
    for student in students:
        if not is_student_id(student):
            print(f"mha-grade: left out, since no student's id looks like this: {student!r}", file=sys.stderr)
    students = [student for student in students if is_student_id(student)]
    if not students:
        raise CourseError(
            f"there is nothing to grade: no {submitted}/<student>/{assignment}/{assignment}.ipynb"
        )
    return students


def _grade_all(
    course: Course,
    assignment: Assignment,
    submitted: Path,
    students: list[str],
    imports: Sequence[str],
    arguments: argparse.Namespace,
) -> tuple[dict[str, SubmissionRecord], dict[str, BaseException]]:
    """The records by student, and why the others have none."""
    folders = [submitted / student / assignment.name for student in students]
    # In a worker: the command itself has not imported what hidden tests need.
    first = functools.partial(_check_one, course, assignment.name, assignment.version)
    task = functools.partial(_grade_one, course, assignment.name, assignment.version, arguments.force)
    records: dict[str, SubmissionRecord] = {}
    failed: dict[str, BaseException] = {}
    with terminal.progress(quiet=arguments.quiet) as progress:
        bar = progress.add_task("", total=len(students))
        for index, result in schedule.run_all(
            task,
            folders,
            scheduler=arguments.scheduler,
            workers=arguments.workers,
            imports=imports,
            first=first,
        ):
            if isinstance(result, schedule.Failed):
                failed[students[index]] = result.error
            else:
                records[students[index]] = result
            progress.advance(bar)
    return dict(sorted(records.items())), dict(sorted(failed.items()))


def _check_one(course: Course, name: str, version: str) -> None:
    reference.check_once(course, load_version(course.root, name, version))


def _grade_one(course: Course, name: str, version: str, force: bool, folder: Path) -> SubmissionRecord:
    return grade_student(course, load_version(course.root, name, version), folder, force=force)
