"""Grade one hand-in, or one item in a plain file: pure tasks that return records.

The student's cells run in a sandboxed process, in the notebook's order; each item is tested right where its
test cell stands. The hidden tests, the reference and the comparison run here, and no student code does.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mha_grader.course import store
from mha_grader.course.assignment import Assignment, Cell
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.grading import diagnosis, rebuild
from mha_grader.grading import library_use as policy
from mha_grader.grading.explain import Example, explain, revised
from mha_grader.grading.runner import Verdict, describe_error, load_parts, run_parts, seed
from mha_grader.grading.session import Budget, OutOfBudget, Session
from mha_grader.sandbox.fork_server import Layout, Limits, ServerGone
from mha_grader.testing.proxies import Recorder
from mha_grader.testing.testing import CallError
from mha_lib import pitfalls


@dataclass(frozen=True)
class Settings:
    """What grading depends on beside the assignment and the hand-in."""

    secret: bytes  # the course's; hidden inputs are drawn from it
    course: Path
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)

    def session(self, assignment: Assignment) -> Session:
        """A new session for one student."""
        layout = Layout.make(assignment.files, imports=assignment.imports(), hidden=self.course)
        return Session(layout, self.limits, self.budget)


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
    items, log = _run(_Grader(assignment, settings, old), rebuilt)
    return SubmissionRecord(
        assignment=assignment.name,
        version=assignment.version,
        submission=hashlib.sha256(data).hexdigest(),
        status=rebuilt.status,
        items=tuple(items),
        notes=tuple(rebuilt.notes),
        log=log,
    )


def _run(grader: _Grader, rebuilt: rebuild.Rebuilt) -> tuple[list[ItemRecord], tuple[str, ...]]:
    """The items of a hand-in and the session's log."""

    def once() -> tuple[list[ItemRecord], tuple[str, ...]]:
        with grader.settings.session(grader.assignment) as session:
            records = grader.run(session, rebuilt)
        return grader.run_again(session, records), tuple(session.log)

    try:
        return once()
    except ServerGone:  # the machine broke it off, not the student
        return once()


def settings(course: Course) -> Settings:
    """The settings of a course."""
    return Settings(secret=course.secret(), course=course.root)


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
    try:
        data, notes = rebuild.find(folder, assignment.name)
    except rebuild.Unusable as unusable:
        record = unusable_record(assignment, unusable, b"")
    else:
        old = store.load(course.grades(assignment.name), student)
        if force or (old is not None and old.submission != hashlib.sha256(data).hexdigest()):
            old = None
        if old is not None and old.version == assignment.version:
            return old
        record = grade_submission(assignment, settings(course), data, old)
        if notes:
            status = "repaired" if record.status == "graded" else record.status
            record = dataclasses.replace(record, status=status, notes=(*notes, *record.notes))
    store.save(course.grades(assignment.name), student, record)
    return record


def unusable_record(assignment: Assignment, unusable: rebuild.Unusable, data: bytes) -> SubmissionRecord:
    """The record of a hand-in in which nothing can be graded: every part is not run."""
    items = []
    for item in assignment.items:
        parts = load_parts(assignment.cell("test", item).hidden, {}, assignment.reference)
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
    )


def grade_item(assignment: Assignment, settings: Settings, item: str, source: str) -> ItemRecord:
    """Grade one item whose code stands in a text of its own; the notebook's given names are there as well.

    Raises:
        CourseError: if the assignment has no such item.
        SandboxUnavailable: if this machine cannot run students' code safely.
    """
    cell = assignment.cell("solution", item)
    grader = _Grader(assignment, settings)
    with settings.session(assignment) as session:
        for given in assignment.cells:
            if given.kind == "given":
                session.execute(given.id, given.source, settings.budget.cell)
            if given is cell:
                break
        failure = session.execute(item, source, settings.budget.cell)
        return grader.item(session, item, source, failure, ())


class _Grader:
    """Grades the items of one hand-in in the notebook's order.

    An item may call earlier ones of the same notebook. Where the solution does so too, and one of those lost
    points, the item is tested a second time, with right code in its place: what is wrong there costs its own points
    and not those of the items that rest on it. Where the solution does not, right code would give the answer away:
    some items ask for the same function in two forms.

    The second time only says which parts pass and which known mistake there is, since in that process the student's
    code can read a solution: no other word or number of it reaches the record. It comes when no code of the student
    will run any more without: two processes one after the other can leave each other signs, in what the machine
    keeps of files in its memory.
    """

    def __init__(self, assignment: Assignment, settings: Settings, old: SubmissionRecord | None = None):
        self.assignment, self.settings = assignment, settings
        self.old = {item.item: item for item in old.items} if old is not None and old.usable else {}
        self.helpers: list[policy.Helper] = []  # in cells that the student added
        self.added: list[str] = []  # these cells
        self.executed: list[tuple[str, str, float]] = []  # label, source ("" if it hung or crashed), seconds
        self.lost: list[str] = []  # items that lost points with the student's own code
        self.again: dict[str, int] = {}  # items to be tested again: how many cells ran before their test

    def run(self, session: Session, rebuilt: rebuild.Rebuilt) -> list[ItemRecord]:
        failures: dict[str, CallError | None] = {}
        records: list[ItemRecord] = []
        self.added = [source for cells in rebuilt.added.values() for source in cells]
        self.helpers = policy.helpers(self.added)
        self.executed, self.lost, self.again = [], [], {}
        for number, source in enumerate(rebuilt.added.get(None, [])):
            self._execute(session, f"added 0.{number}", source, self.settings.budget.added)
        for cell in self.assignment.cells:
            if cell.kind == "given":
                self._execute(session, cell.id, cell.released, self.settings.budget.cell)
            elif cell.kind == "solution":
                assert cell.item is not None
                source = rebuilt.sources[cell.item]
                failures[cell.item] = self._execute(session, cell.item, source, self.settings.budget.cell)
            elif cell.kind == "test":
                records.append(self._tested(session, cell, rebuilt, failures))
            for number, source in enumerate(rebuilt.added.get(cell.id, [])):
                self._execute(session, f"added {cell.id}.{number}", source, self.settings.budget.added)
        return records

    def _execute(self, session: Session, label: str, source: str, seconds: float) -> CallError | None:
        try:
            failure = session.execute(label, source, seconds)
        except OutOfBudget:
            failure = CallError("timeout")
        survived = failure is None or failure.kind == "error"
        self.executed.append((label, source if survived else "", seconds))
        return failure

    def _tested(
        self, session: Session, cell: Cell, rebuilt: rebuild.Rebuilt, failures: dict[str, CallError | None]
    ) -> ItemRecord:
        assert cell.item is not None
        source = rebuilt.sources[cell.item]
        earlier = self._earlier(cell.item, source)
        record = self.old.get(cell.item)
        if (
            record is None
            or record.tests != self.assignment.tests_digest(cell.item)
            or not (record.earned_alone or record.stood_in == earlier)
        ):
            notes = [*rebuilt.item_notes.get(cell.item, ()), *rebuilt.hints.get(cell.item, ())]
            record = self.item(session, cell.item, source, failures[cell.item], notes, earlier)
            if record.stood_in:
                self.again[cell.item] = len(self.executed)
        if not record.earned_alone:
            self.lost.append(cell.item)
        return record

    def _earlier(self, item: str, source: str) -> tuple[str, ...]:
        """Items that lost points, and that this one rests on if it calls any that its solution is made from."""
        basis = self.assignment.rests_on(item)
        # Megabytes can stand in a hand-in: its words are not listed. A name inside another one does no harm.
        called = any(name in text for name in basis for text in (source, *self.added))
        return tuple(lost for lost in self.lost if lost in basis) if called else ()

    def item(
        self,
        session: Session,
        item: str,
        source: str,
        failure: CallError | None,
        notes: Sequence[str] = (),
        earlier: tuple[str, ...] = (),
    ) -> ItemRecord:
        """Run an item's hidden test on what the session has executed.

        Args:
            session: where the cells ran.
            item: the item's name.
            source: the student's cell.
            failure: why that cell failed, if it did.
            notes: for the student.
            earlier: items that lost points, with right code for which this one is to be tested again.
        """
        verdicts, tested = self._judge(session, item, failure)
        if all(verdict.status == "pass" for verdict in verdicts):
            earlier = ()
        # What is wrong in an earlier item can look like a mistake in this one: the second time says which it is.
        found = {} if earlier else self._recognised(item, verdicts)
        reference = getattr(self.assignment.reference, item)
        example = Example(item, tested, reference) if callable(reference) and tested is not None else None
        records = tuple(explain(verdict, found.get(verdict.part.name), example) for verdict in verdicts)
        flags, tests = policy.flags(item, source, self.helpers), self.assignment.tests_digest(item)
        return ItemRecord(item, records, source, tuple(notes), flags, tests, earlier)

    def _recognised(self, item: str, verdicts: Sequence[Verdict]) -> dict[str, str]:
        known = pitfalls.variants(self.assignment.name, item)
        return diagnosis.recognise(
            item, verdicts, known, getattr(self.assignment.reference, item), vars(self.assignment.reference)
        )

    def run_again(self, session: Session, records: Sequence[ItemRecord]) -> list[ItemRecord]:
        """The records, with items that rest on wrong ones tested again, in what is left of the session's time."""
        return [self._again(session, record) if record.item in self.again else record for record in records]

    def _again(self, session: Session, record: ItemRecord) -> ItemRecord:
        session.log.append(f"{record.item}: tested again, with right {' and '.join(record.stood_in)}")
        verdicts = self._judge_beside(record.item, record.stood_in, session.deadline)
        found = self._recognised(record.item, verdicts)
        parts = [
            revised(part, verdict.status == "pass", found.get(part.name))
            for part, verdict in zip(record.parts, verdicts, strict=True)
        ]
        return dataclasses.replace(record, parts=tuple(parts))

    def _judge(self, session: Session, item: str, failure: CallError | None) -> tuple[list[Verdict], Any]:
        """Verdicts on an item's parts, and what its name stood for: None if there was nothing to test."""
        session.log.append(f"{item}: tested")
        session.start_item()
        hidden = self.assignment.cell("test", item).hidden
        recorder = Recorder(session.perform)
        tested, failure = self._bind(recorder, item, getattr(self.assignment.reference, item), failure)
        parts = load_parts(hidden, {item: tested}, self.assignment.reference)
        if failure is not None:
            verdicts = self._all_failed(parts, failure)
        else:
            verdicts = run_parts(parts, recorder, lambda part: self._seed(item, part.name))
        return verdicts, tested if failure is None else None

    def _judge_beside(self, item: str, earlier: Sequence[str], deadline: float) -> list[Verdict]:
        """Verdicts on an item's parts in a process of its own, where right code stands in for earlier items."""
        failure = None
        with self.settings.session(self.assignment) as session:
            session.deadline = deadline
            try:
                for label, source, seconds in self.executed[: self.again[item]]:
                    failed = session.execute(label, source, seconds)
                    failure = failed if label == item else failure
                    if label in earlier:
                        right = self.assignment.cell("solution", label).source
                        session.execute(f"right {label}", right, self.settings.budget.cell)
            except OutOfBudget:
                failure = CallError("timeout")
            return self._judge(session, item, failure)[0]

    def _seed(self, item: str, part: str) -> Any:
        return seed(self.settings.secret, f"{self.assignment.name} {self.assignment.version}", item, part)

    @staticmethod
    def _bind(
        recorder: Recorder, item: str, reference: Any, failure: CallError | None
    ) -> tuple[Any, CallError | None]:
        """What the name stands for. A cell that raised may have defined it before: then it is tested."""
        if failure is not None and failure.kind != "error":
            return None, failure
        try:
            recorder.request("get", item)  # whether it is there at all
            return recorder.bind(item, reference), None
        except CallError as error:
            return None, failure or error
        except OutOfBudget:
            return None, CallError("timeout")

    @staticmethod
    def _all_failed(parts: Sequence[Any], failure: CallError) -> list[Verdict]:
        """The cell itself gave nothing to test: parts that rest on others are not run, the others say why."""
        status, reason = describe_error(failure, show_text=True)
        verdicts = []
        for part in parts:
            if part.needs:
                verdicts.append(
                    Verdict(part, "not-run", f"not run, since it rests on the part “{part.needs[0]}”")
                )
            else:
                verdicts.append(Verdict(part, status, reason))
        return verdicts
