"""Grade one hand-in, or one item in a plain file: pure tasks that return records.

The path goes through the modules beside this one: `rebuild` what is graded, `run` its cells, `judge` each item
right where its test cell stands, `diagnose` what is wrong, `explain` it, and record it. The student's cells run in
a sandboxed process; the hidden tests, the reference and the comparison run here.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mha_grader.course import store
from mha_grader.course.assignment import Assignment
from mha_grader.course.folders import Course
from mha_grader.course.records import AnswerRecord, ItemRecord, PartRecord, SubmissionRecord
from mha_grader.grading import changes, diagnose, explain, judge, library_use, others, plain, rebuild, run
from mha_grader.grading.session import Session
from mha_grader.grading.settings import Settings, settings_of
from mha_grader.sandbox.fork_server import ServerGone

TRIES = 4  # to grade a hand-in whose sandboxes are ended from outside


def grade_student(
    course: Course, assignment: Assignment, folder: Path, *, force: bool = False
) -> SubmissionRecord:
    """Grade the notebook in `<student>/<assignment>/` and store the record.

    If the same bytes were graded before by the same version of the assignment, the stored record is returned
    as it is; if by another version, only items whose tests have changed are tested. With `force` all are.

    Raises:
        SandboxUnavailable: if this machine cannot run students' code safely.
    """
    student = folder.parent.name
    before = store.load(course.grades(assignment.name), student)
    try:
        data, notes, flags = rebuild.find(folder, assignment)
    except rebuild.Unusable as unusable:
        record = unusable_record(assignment, unusable, b"")
    else:
        old = before
        if force or (old is not None and old.submission != hashlib.sha256(data).hexdigest()):
            old = None
        if old is not None and old.version == assignment.version:
            return old
        record = grade_submission(assignment, settings_of(course), data, old)
        if notes:
            status = "repaired" if record.status == "graded" else record.status
            record = dataclasses.replace(record, status=status, notes=(*notes, *record.notes), flags=flags)
    if before is not None:
        record = dataclasses.replace(record, changes=(*before.changes, *changes.details(before, record)))
    store.save(course.grades(assignment.name), student, record)
    return record


def grade_submission(
    assignment: Assignment, settings: Settings, data: bytes, old: SubmissionRecord | None = None
) -> SubmissionRecord:
    """Grade the bytes of one hand-in. Whatever they are, the result is a record.

    Args:
        assignment: the assignment that it was handed in for.
        settings: the course's secret and limits.
        data: the file's content.
        old: what came of the same bytes under another version of the assignment; items whose tests have not
            changed since keep their verdict.

    Raises:
        SandboxUnavailable: if this machine cannot run students' code safely.
    """
    try:
        rebuilt = rebuild.rebuild(assignment, data)
    except rebuild.Unusable as unusable:
        return unusable_record(assignment, unusable, data)
    for left in reversed(range(TRIES)):
        try:
            items, log = _grade_items(assignment, settings, rebuilt, old)
            break
        except ServerGone:  # the machine broke it off, not the student
            if not left:
                raise
    return SubmissionRecord(
        assignment=assignment.name,
        version=assignment.version,
        submission=hashlib.sha256(data).hexdigest(),
        status=rebuilt.status,
        items=items,
        notes=tuple(rebuilt.notes),
        answers=_answers(assignment, rebuilt),
        log=log,
    )


def _answers(assignment: Assignment, rebuilt: rebuild.Rebuilt | None) -> tuple[AnswerRecord, ...]:
    """What a person marks; of an unusable hand-in nothing is written."""
    return tuple(
        AnswerRecord(
            item=cell.id,
            max_score=cell.points,
            text=rebuilt.answers.get(cell.id, "") if rebuilt else "",
            written=rebuilt is not None and (cell.kind == "task" or cell.id in rebuilt.answers),
        )
        for cell in assignment.marked
    )


def unusable_record(assignment: Assignment, unusable: rebuild.Unusable, data: bytes) -> SubmissionRecord:
    """The record of a hand-in in which nothing can be graded: every part is not run."""
    items = []
    for item in assignment.items:
        parts = judge.parts_of(assignment, item)
        items.append(
            ItemRecord(item, tuple(PartRecord(p.name, p.points, "not-run", p.proves) for p in parts))
        )
    return SubmissionRecord(
        assignment=assignment.name,
        version=assignment.version,
        submission=hashlib.sha256(data).hexdigest() if data else "",
        status=unusable.status,
        items=tuple(items),
        notes=(str(unusable),),
        answers=_answers(assignment, None),
    )


def grade_item(assignment: Assignment, settings: Settings, item: str, source: str) -> ItemRecord:
    """Grade one item whose code stands in a text of its own; the notebook's given names are there as well.

    Raises:
        CourseError: if the assignment has no such item.
        SandboxUnavailable: if this machine cannot run students' code safely.
    """
    with settings.session(assignment) as session:
        stop = run.run_item(session, assignment, item, source)
        return _grade_item(assignment, settings, session, stop, Attempt(source))


@dataclass(frozen=True)
class Attempt:
    """What a student wrote for an item."""

    source: str
    notes: tuple[str, ...] = ()  # for the student
    helpers: tuple[library_use.Helper, ...] = ()  # in cells that the student added
    added: tuple[str, ...] = ()  # the sources of these cells
    wrong_basis: tuple[str, ...] = ()  # earlier items that it rests on and that lost points


def _grade_items(
    assignment: Assignment, settings: Settings, rebuilt: rebuild.Rebuilt, old: SubmissionRecord | None
) -> tuple[tuple[ItemRecord, ...], tuple[str, ...]]:
    """The records of all items in the notebook's order, and the session's log.

    An item may call earlier ones of the same notebook. Where the solution does so too, and one of those lost
    points, the item is tested a second time, with right code in its place: what is wrong there costs its own points
    and not those of the items that rest on it. Where the solution does not, right code would give the answer away:
    some items ask for the same function in two forms.
    """
    added = [source for cells in rebuilt.added.values() for source in cells]
    helpers = tuple(library_use.helpers(added, assignment.library))
    before = {item.item: item for item in old.items} if old is not None and old.usable else {}
    records: dict[str, ItemRecord] = {}
    again: list[run.Stop] = []
    beside: list[tuple[run.Stop, Attempt]] = []  # whose tests the student's process will be able to read
    with settings.session(assignment) as session:
        for stop in run.run(session, assignment, rebuilt):
            item, written = stop.item, assignment.cell("solution", stop.item).item
            source = rebuilt.sources[written or item]
            lost = [record.item for record in records.values() if not record.earned_alone]
            wrong_basis = _wrong_basis(assignment, item, (source, *added), lost)
            record = before.get(item)
            if record is None or not _still_holds(assignment, record, wrong_basis):
                notes = (*rebuilt.item_notes.get(written or item, ()), *rebuilt.hints.get(item, ()))
                attempt = Attempt(source, notes, helpers, tuple(added), wrong_basis)
                if assignment.plain and not plain.tests_of(assignment)[item].apart:
                    record = ItemRecord(item, ())
                    beside.append((stop, attempt))
                else:
                    record = _grade_item(assignment, settings, session, stop, attempt)
                again += [stop] if record.stood_in else []
            records[item] = record
    # Only now, when no code of the student will run any more without right code beside it: two processes one
    # after the other can leave each other signs, in what the machine keeps of files in its memory.
    for stop in again:
        records[stop.item] = _grade_again(assignment, settings, session, stop, records[stop.item])
    for stop, attempt in beside:
        records[stop.item] = _grade_beside(assignment, settings, session, stop, attempt)
    return tuple(records.values()), tuple(session.log)


def _wrong_basis(
    assignment: Assignment, item: str, sources: Sequence[str], lost: Sequence[str]
) -> tuple[str, ...]:
    """Items that lost points, and that this one rests on if it calls any that its solution is made from."""
    basis = assignment.rests_on(item)
    # Megabytes can stand in a hand-in: its words are not listed. A name inside another one does no harm.
    called = any(name in source for name in basis for source in sources)
    return tuple(name for name in lost if name in basis) if called else ()


def _still_holds(assignment: Assignment, record: ItemRecord, wrong_basis: tuple[str, ...]) -> bool:
    """Whether a verdict on the same code stands: it was given by the same tests, beside the same right code."""
    same_tests = record.tests == assignment.tests_digest(record.item)
    return same_tests and (record.earned_alone or record.stood_in == wrong_basis)


def _grade_item(
    assignment: Assignment, settings: Settings, session: Session, stop: run.Stop, attempt: Attempt
) -> ItemRecord:
    """Judge an item with the student's own code before it, say what is wrong, and record it."""
    item = stop.item
    judged = judge.judge(session, assignment, item, stop.failure, settings.secret)
    stood_in = () if judged.passed else attempt.wrong_basis
    # What is wrong in an earlier item can look like a mistake in this one: the second time says which it is.
    found = {} if stood_in else diagnose.diagnose(assignment, judged)
    parts = explain.explain_parts(assignment, judged, found)
    solution = assignment.cell("solution", item)
    flags = library_use.flags(attempt.source, solution, assignment.library, attempt.helpers)
    flags += others.given_elsewhere(assignment, item, attempt.source)
    if any(part.in_process for part in parts):
        flags += library_use.reaches_out(attempt.source)
    else:
        flags += library_use.reaches_in(attempt.source, solution, attempt.added)
    tests = assignment.tests_digest(item)
    return ItemRecord(item, parts, attempt.source, attempt.notes, flags, tests, stood_in)


def _grade_beside(
    assignment: Assignment, settings: Settings, first: Session, stop: run.Stop, attempt: Attempt
) -> ItemRecord:
    """The record of an item whose test runs in the student's process, a fresh one that ends with the test."""
    with settings.session(assignment) as session:
        session.deadline = first.deadline  # what is left of the hand-in's time
        run.run_with_right_code(session, stop, {})
        record = _grade_item(assignment, settings, session, stop, attempt)
        first.log.extend(session.log)
    return record


def _grade_again(
    assignment: Assignment, settings: Settings, first: Session, stop: run.Stop, record: ItemRecord
) -> ItemRecord:
    """The record of an item, judged a second time in a process where right code stands in for earlier items.

    The second time only says which parts pass and which known mistake there is, since in that process the student's
    code can read a solution: no other word or number of it reaches the record.
    """
    first.log.append(f"{record.item}: tested again, with right {' and '.join(record.stood_in)}")
    right = {item: assignment.cell("solution", item).source for item in record.stood_in}
    with settings.session(assignment) as session:
        session.deadline = first.deadline  # what is left of the hand-in's time
        failure = run.run_with_right_code(session, stop, right)
        judged = judge.judge(session, assignment, record.item, failure, settings.secret)
        found = diagnose.diagnose(assignment, judged)
    return dataclasses.replace(record, parts=explain.revised_parts(assignment, record, judged, found))
