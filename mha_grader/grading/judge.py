"""Judge an item: its hidden test is run part by part, and each part gets a verdict.

The hidden tests, the reference and the comparison run here, and no student code does.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_grader import testing
from mha_grader.course.assignment import Assignment
from mha_grader.course.records import Status
from mha_grader.grading import plain
from mha_grader.grading.messages import OTHER_KIND, TIME_USED_UP, describe_error, rests_on
from mha_grader.grading.session import OutOfBudget, Session
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.sandbox.text import clean
from mha_grader.testing.errors import CallError, Mismatch
from mha_grader.testing.parts import Part, check_parts
from mha_grader.testing.proxies import Recorder, Step


@dataclass(frozen=True)
class Verdict:
    """What came of one part."""

    part: Part
    status: Status
    reason: str = ""  # safe for students
    steps: tuple[Step, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Judged:
    """What came of an item."""

    item: str
    verdicts: tuple[Verdict, ...]  # of all parts, with all steps, also of those that passed
    tested: Any = None  # what the item's name stood for in its test; None if there was nothing to test

    @property
    def passed(self) -> bool:
        """Whether every part did."""
        return all(verdict.status == "pass" for verdict in self.verdicts)


def judge(
    session: Session, assignment: Assignment, item: str, failure: CallError | None, secret: bytes
) -> Judged:
    """Run an item's hidden test on what the session has executed.

    Args:
        session: where the cells ran, up to the test cell.
        assignment: the assignment.
        item: the item's name.
        failure: why the item's own cell failed, if it did.
        secret: the course's.
    """
    session.log.append(f"{item}: tested")
    session.start_item()
    recorder = Recorder(session.perform)
    if assignment.plain:
        return _judge_plain(session, recorder, assignment, item, failure)
    tested, failure = _bind(recorder, item, getattr(assignment.reference, item), failure)
    parts = load_parts(assignment.cell("test", item).hidden, {item: tested}, assignment.reference)
    if failure is not None:
        return Judged(item, _all_failed(parts, failure))
    version = f"{assignment.name} {assignment.version}"

    def generator(part: Part) -> np.random.Generator:
        return seed(secret, version, item, part.name, session.digest() if part.drawn_anew else b"")

    verdicts = run_parts(parts, recorder, generator)
    return Judged(item, tuple(verdicts), tested)


def parts_of(assignment: Assignment, item: str) -> list[Part]:
    """The parts of an item, to be looked at and not run."""
    if assignment.plain:
        return [plain.part_of(assignment, item)]
    return load_parts(assignment.cell("test", item).hidden, {}, assignment.reference)


def _judge_plain(
    session: Session, recorder: Recorder, assignment: Assignment, item: str, failure: CallError | None
) -> Judged:
    """Run a plain test. What a cell that failed has defined before is tested, and is enough if the test passes."""
    part = plain.part_of(assignment, item, recorder)
    if part.in_process:
        session.log.append(f"{item}: its test runs in the student's own process, where code can forge a pass")
    (verdict,) = run_parts([part], recorder, lambda part: np.random.default_rng(0))
    if failure is not None and verdict.status != "pass":
        verdict = Verdict(part, *describe_error(failure, show_text=True))
    return Judged(item, (verdict,))


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


def _all_failed(parts: Sequence[Part], failure: CallError) -> tuple[Verdict, ...]:
    """The cell itself gave nothing to test: parts that rest on others are not run, the others say why."""
    status, reason = describe_error(failure, show_text=True)
    return tuple(
        _not_run(part, part.needs[0]) if part.needs else Verdict(part, status, reason) for part in parts
    )


def _not_run(part: Part, need: str, steps: Sequence[Step] = ()) -> Verdict:
    return Verdict(part, "not-run", rests_on(need), tuple(steps))


def load_parts(source: str, tested: Mapping[str, Any], reference: types.SimpleNamespace) -> list[Part]:
    """Execute a hidden test's text with its names bound; returns its parts in order.

    Args:
        source: text of the hidden block.
        tested: what the item's name (and others) stand for.
        reference: the instructor's solutions by name.

    Raises:
        ValueError: if it defines no part, two of one name, or one that needs a part that is not before it.
    """
    names = {name: getattr(testing, name) for name in testing.__all__}
    namespace: dict[str, Any] = {
        "__name__": "hidden_test",
        "np": np,
        **names,
        "reference": reference,
        **tested,
    }
    exec(_compiled(source), namespace)
    values = [value if isinstance(value, list) else [value] for value in namespace.values()]
    parts = [part for value in values for part in value if isinstance(part, Part)]
    check_parts(parts)
    return parts


@functools.lru_cache(256)  # hidden tests are the same for all students
def _compiled(source: str) -> types.CodeType:
    return compile(source, "<hidden test>", "exec")


def seed(
    secret: bytes, assignment_version: str, item: str, part: str, own: bytes = b""
) -> np.random.Generator:
    """The part's random generator: the same at every grading of this version, and nobody's guess.

    With what stands for a hand-in as `own`, it is that hand-in's alone.
    """
    text = "\0".join((assignment_version, item, part)).encode() + own
    digest = hmac.new(secret, text, hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest))


def run_parts(
    parts: Sequence[Part], recorder: Recorder, generator: Callable[[Part], np.random.Generator]
) -> list[Verdict]:
    """Run each part whose needs are met, and give it a verdict.

    The others get the verdict `not-run`. Their steps are recorded all the same, unless the code hangs or
    devours memory: more inputs help to tell one mistake from another.

    Args:
        parts: as `load_parts` returns them.
        recorder: what their tested names are bound to.
        generator: makes a part's random generator.
    """
    verdicts: list[Verdict] = []
    passed: set[str] = set()
    safe = True
    for part in parts:
        unmet = [name for name in part.needs if name not in passed]
        recorder.start_part()
        if safe or not unmet:
            status, reason = _run(part, generator(part))
            safe = safe and status not in ("timeout", "memory")
        if unmet:
            verdicts.append(_not_run(part, unmet[0], recorder.steps))
            continue
        if status == "pass":
            passed.add(part.name)
        verdicts.append(Verdict(part, status, reason, tuple(recorder.steps)))
    return verdicts


def _run(part: Part, rng: np.random.Generator) -> tuple[Status, str]:
    try:
        with np.errstate(all="ignore"):
            part.run(rng)
    except Mismatch as mismatch:
        return "fail", clean(str(mismatch), 600)
    except CallError as error:
        return describe_error(error)
    except OutOfBudget:
        return "timeout", TIME_USED_UP
    except SandboxUnavailable:  # the machine's fault, not the student's
        raise
    except Exception:  # the test looks into a result that is not what it should be, and trips over it
        return "fail", OTHER_KIND
    return "pass", ""
