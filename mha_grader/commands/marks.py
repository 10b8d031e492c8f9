"""`mha-grade marks`: the hand-ins that wait for a person, shared among those who mark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from mha_grader.commands.arguments import add_assignment
from mha_grader.course.folders import Course
from mha_grader.course.records import SubmissionRecord
from mha_grader.instructor import gradebook, report, results
from mha_grader.instructor.entry import Entry
from mha_grader.sandbox.text import clean

DESCRIPTION = """\
List the hand-ins that a person should look at, and why: answers that nobody has marked yet or that have changed
since, and what the grader found odd. With --assistants each hand-in goes to one of them. It stays with the same one
while the roster and the assistants are the same, whatever was marked or handed in meanwhile.

Answers are marked in formgrader, under "Manual Grading". The rubric, comments to copy and a model answer stand
above each answer there."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "marks",
        help="list the hand-ins that a person should mark or look at",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
    )
    add_assignment(parser)
    parser.add_argument(
        "--assistants", nargs="+", metavar="NAME", default=[], help="those who share the work, in any order"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    course, name = Course.find(arguments.course), arguments.assignment
    records, entries = results.graded(course, name), gradebook.read(course, name)
    reasons = report.needs_a_person(records, entries=entries)
    print(f"{name}: {progress(records, entries)}")
    students = [each.student for each in results.results(course, name, records, entries)]
    for assistant, share in deal(students, arguments.assistants).items():
        theirs = [student for student in share if student in reasons]
        if assistant:
            print(f"\n{clean(assistant)} ({len(theirs)})")
        for student in theirs:
            print(f"  {clean(results.called(course, student))}")
            for reason in reasons[student]:
                print(f"    {clean(reason, 1000)}")
    return 0


def progress(records: Mapping[str, SubmissionRecord], entries: Mapping[str, Entry]) -> str:
    """How many answers a person has marked."""
    written = sum(answer.written for record in records.values() for answer in record.answers)
    waiting = [len(entries.get(student, Entry()).waiting(record)) for student, record in records.items()]
    return f"{sum(waiting)} of {written} answers wait for a person, in {sum(map(bool, waiting))} hand-ins"


def deal(students: Sequence[str], assistants: Sequence[str]) -> dict[str, list[str]]:
    """Share students among assistants, in turn and in the order of their ids."""
    names, ids = sorted(set(assistants)) or [""], sorted(set(students))
    return {name: ids[number :: len(names)] for number, name in enumerate(names)}
