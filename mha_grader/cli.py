"""The command `mha-grade`."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mha_grader.commands import change, check, collect, export, extend, marks, new, roster
from mha_grader.commands import progress as progress_command
from mha_grader.course import assignment as assignments
from mha_grader.course import store
from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course, hand_ins
from mha_grader.course.records import ItemRecord, SubmissionRecord, to_json
from mha_grader.grading import changes, reference, schedule
from mha_grader.grading import grade as grading
from mha_grader.instructor import feedback, gradebook, report, results, timestamps
from mha_grader.instructor import terminal as output
from mha_grader.instructor.roster import is_student_id
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.sandbox.sandbox import probe
from mha_grader.sandbox.text import clean

DESCRIPTION = """\
Grade hand-ins of the multi-head attention course in a sandbox, and say why.

A week of an instructor:
  mha-grade collect single_head submissions.zip    unpack what Moodle or Canvas gives, into submitted/
  mha-grade grade single_head        grade all that lies in submitted/<student>/single_head/
  mha-grade feedback single_head     write a page for each student into feedback/
  mha-grade export single_head       write the scores to grades/single_head.csv and .json
  mha-grade report single_head       write a page about the class, grades/single_head-report.html

Test a piece of code without a notebook (it defines one item, see the assignment):
  mha-grade try single_head attention my_attention.py
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0: done. 1: the machine or the course is not ready. 2: wrong usage. 3: some hand-ins could not be graded, all
    others are.
    """
    arguments = _parser().parse_args(argv)
    try:
        result: int = arguments.run(arguments)
        sys.stdout.flush()
        return result
    except BrokenPipeError:  # as in `mha-grade log … | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return 1
    except (CourseError, SandboxUnavailable) as error:
        print(f"mha-grade: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mha-grade", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--course", type=Path, metavar="DIR", help="the course's folder (default: this one)")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    assignment = argparse.ArgumentParser(add_help=False)
    assignment.add_argument("assignment", metavar="ASSIGNMENT", help="its name, for instance single_head")
    student = argparse.ArgumentParser(add_help=False, parents=[assignment])
    student.add_argument("--student", metavar="ID", help="only this student")

    collect.add(commands, assignment)
    grade = commands.add_parser(
        "grade",
        parents=[student],
        help="grade hand-ins and enter the scores in the gradebook",
        description="Grade every hand-in of an assignment, enter the scores in nbgrader's gradebook, and show a "
        "table. Hand-ins that were graded before and have not changed are not run again.",
    )
    grade.add_argument(
        "--submitted", type=Path, metavar="DIR", help="where the hand-ins lie (default: submitted/)"
    )
    grade.add_argument("--force", action="store_true", help="run unchanged hand-ins again")
    grade.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster whose workers see the same files, for instance tcp://host:8786 (default: the cores "
        "of this machine)",
    )
    grade.add_argument(
        "--workers", type=int, metavar="N", help="processes on this machine (default: its cores)"
    )
    shown = grade.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print nothing but errors")
    shown.add_argument(
        "--json", action="store_true", help="print one JSON object a hand-in instead of a table"
    )
    grade.set_defaults(run=_grade)

    page = commands.add_parser(
        "feedback",
        parents=[student],
        help="write a page for each student",
        description="Write feedback/STUDENT/ASSIGNMENT/ASSIGNMENT.html for hand-ins that have been graded. "
        "Scores and comments that people gave in formgrader are in it.",
    )
    page.add_argument(
        "--zip",
        action="store_true",
        help="also write feedback/ASSIGNMENT.zip with STUDENT/ASSIGNMENT.html; what was collected from a platform "
        'has the names that it asks for: Moodle\'s "Upload multiple feedback files in a zip", Canvas\' "Upload '
        'submissions", Brightspace\'s "Add feedback files", Sakai\'s "Upload all"',
    )
    page.set_defaults(run=_feedback)

    export.add(commands, assignment)
    _add_report(commands, assignment)
    new.add(commands)
    change.add(commands)
    log = commands.add_parser(
        "log",
        parents=[assignment],
        help="tell an instructor all that is known about one hand-in",
        description="Print what was found in one hand-in: its status, notes, every part's verdict, lines that a "
        "person should look at, scores that people changed, and what happened in the sandbox. For an appeal run "
        "`mha-grade grade ASSIGNMENT --student ID --force` before.",
    )
    log.add_argument("student", metavar="ID", help="the student")
    log.set_defaults(run=_log)

    attempt = commands.add_parser(
        "try",
        parents=[assignment],
        help="grade plain files that define one item",
        description="Grade Python files, each of which defines one item of an assignment (and whatever it needs), "
        "through the same sandbox and the same hidden tests as hand-ins.",
    )
    attempt.add_argument(
        "item", metavar="ITEM", help="the name that each file defines, for instance attention"
    )
    attempt.add_argument("files", type=Path, nargs="+", metavar="FILE.py", help="graded one by one")
    attempt.add_argument("--json", action="store_true", help="one JSON object a file instead of a table")
    attempt.set_defaults(run=_try)
    check.add(commands)
    marks.add(commands, assignment)
    progress_command.add(commands)
    roster.add(commands)
    extend.add(commands)
    return parser


@functools.cache  # once a process, since a worker grades many
def _load(course: Path, name: str, version: str) -> assignments.Assignment:
    """The assignment in the version that the command has seen: workers may be older than it."""
    assignment = assignments.load(course, name)
    if assignment.version != version:
        raise CourseError(f"{name} has changed from {version} to {assignment.version}: run the command again")
    return assignment


# --- grade ------------------------------------------------------------------------------------------------


def _grade(arguments: argparse.Namespace) -> int:
    course = Course.find(arguments.course)
    assignment = assignments.load(course.root, arguments.assignment)
    submitted = (arguments.submitted or course.submitted).resolve()
    students = _students(submitted, arguments.assignment, arguments.student)
    for student in students:
        if timestamps.is_unreadable(submitted / student / assignment.name):
            print(
                f"mha-grade: {clean(student)} counts as in time: {timestamps.NAME} tells no date and time",
                file=sys.stderr,
            )
    layout = grading.settings(course).layout(assignment)
    probe(layout)  # the workers' sandboxes come from the same fork server
    gradebook.check(gradebook.course_directory(course).db_url, assignment)
    reference.check_once(course, assignment)
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
            output.print_scores(records, entries, course)
        if not arguments.json and not arguments.quiet:
            for line in changes.summary(before, records):
                print(clean(line, 1000))
            if arguments.student is None:
                output.print_missing(results.without_hand_in(course, assignment.name))
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
    assignment: assignments.Assignment,
    submitted: Path,
    students: list[str],
    imports: Sequence[str],
    arguments: argparse.Namespace,
) -> tuple[dict[str, SubmissionRecord], dict[str, BaseException]]:
    """The records by student, and why the others have none."""
    folders = [submitted / student / assignment.name for student in students]
    task = functools.partial(_run_grade, course, assignment.name, assignment.version, arguments.force)
    records: dict[str, SubmissionRecord] = {}
    failed: dict[str, BaseException] = {}
    with output.progress(quiet=arguments.quiet) as progress:
        bar = progress.add_task("", total=len(students))
        for index, result in schedule.run_all(
            task, folders, scheduler=arguments.scheduler, workers=arguments.workers, imports=imports
        ):
            if isinstance(result, schedule.Failed):
                failed[students[index]] = result.error
            else:
                records[students[index]] = result
            progress.advance(bar)
    return dict(sorted(records.items())), dict(sorted(failed.items()))


def _run_grade(course: Course, name: str, version: str, force: bool, folder: Path) -> SubmissionRecord:
    return grading.grade_student(course, _load(course.root, name, version), folder, force=force)


# --- feedback --------------------------------------------------------------------------------------------


def _feedback(arguments: argparse.Namespace) -> int:
    course = Course.find(arguments.course)
    assignment = assignments.load(course.root, arguments.assignment)
    records, entries = results.shared(course, assignment.name, arguments.student)
    pages = feedback.write(course, assignment, records, entries)
    print(f"{len(pages)} written: {course.root}/feedback/<student>/{assignment.name}/{assignment.name}.html")
    if arguments.zip:
        print(feedback.write_zip(course, assignment.name, dict(zip(records, pages, strict=True))))
    return 0


# --- report -----------------------------------------------------------------------------------------------


def _add_report(commands: Any, assignment: argparse.ArgumentParser) -> None:
    whole = commands.add_parser(
        "report",
        parents=[assignment],
        help="write a page about the class",
        description="Write grades/ASSIGNMENT-report.html: scores, items and parts, the misconceptions of the "
        "class, items that tell students apart badly, hand-ins that need a person, and hand-ins that are nearly "
        "the same.",
    )
    whole.add_argument(
        "--pseudonyms",
        action="store_true",
        help="put pseudonyms for the students' ids (the same in every report of the course) and leave out lines of "
        "their code, so that the page can be shown to others",
    )
    whole.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    course = Course.find(arguments.course)
    assignment = assignments.load(course.root, arguments.assignment)
    records = results.graded(course, assignment.name, None)
    gradebook.settle(course, assignment.name)
    entries = gradebook.read(course, assignment.name)
    print(report.write(course, assignment, records, entries, pseudonyms=arguments.pseudonyms))
    return 0


# --- log ---------------------------------------------------------------------------------------------------


def _log(arguments: argparse.Namespace) -> int:
    course = Course.find(arguments.course)
    record = results.graded(course, arguments.assignment, arguments.student)[arguments.student]
    gradebook.settle(course, arguments.assignment)
    entry = gradebook.read(course, arguments.assignment, arguments.student).get(arguments.student)
    output.print_log(arguments.student, record, entry)
    return 0


# --- try --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _TryTask:
    course: Course
    assignment: str
    version: str
    item: str
    source: str


def _try(arguments: argparse.Namespace) -> int:
    course = Course.find(arguments.course)
    assignment = assignments.load(course.root, arguments.assignment)
    assignment.cell("solution", arguments.item)  # complains if there is no such item
    sources, unreadable = _read_sources(arguments.files)
    probe()
    tasks = [
        _TryTask(course, assignment.name, assignment.version, arguments.item, source)
        for source in sources.values()
    ]
    results: dict[int, ItemRecord] = {}
    for index, result in schedule.run_all(_run_try, tasks) if tasks else ():
        if isinstance(result, schedule.Failed):
            raise result.error
        results[index] = result
    for index, path in enumerate(sources):
        if arguments.json:
            print(json.dumps(output.as_json(path, assignment.name, results[index]), ensure_ascii=False))
        else:
            output.print_item(path, results[index])
    for path, why in unreadable.items():
        print(f"mha-grade: cannot read {path}: {why}", file=sys.stderr)
    return 3 if sources and unreadable else 1 if unreadable else 0


def _read_sources(paths: Sequence[Path]) -> tuple[dict[Path, str], dict[Path, Exception]]:
    """The texts of Python files, in the encoding that each declares (PEP 263), and why the others have none."""
    sources: dict[Path, str] = {}
    unreadable: dict[Path, Exception] = {}
    for path in paths:
        try:
            with tokenize.open(path) as file:
                sources[path] = file.read()
        except (
            OSError,
            UnicodeDecodeError,
            SyntaxError,
        ) as error:  # SyntaxError: an encoding that nobody knows
            unreadable[path] = error
    return sources, unreadable


def _run_try(task: _TryTask) -> ItemRecord:
    assignment = _load(task.course.root, task.assignment, task.version)
    return grading.grade_item(assignment, grading.settings(task.course), task.item, task.source)


if __name__ == "__main__":
    # As `python -m` this module is called `__main__`, where worker processes could not find its functions.
    from mha_grader.cli import main as main_of_the_package

    sys.exit(main_of_the_package())
