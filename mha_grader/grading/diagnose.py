"""Diagnose why an answer is wrong: which known mistake gives exactly these results on these inputs.

Every step that was recorded is evidence: those of parts that passed and of parts that were not run as well. Each
wrong variant in the bank is replayed, step by step. In a step it gives what the student's code gave, or what right
code gives (the mistake has no effect there), or something else. The rules:

1. A variant that gives something else in any step of any part is contradicted, and its mistake is not named. The
   replay stops there. So no mistake is named that would fail a part which passed, and none that would fail another
   part with other numbers than the student's code. This leaves two mistakes in one code unnamed where both have an
   effect on one step, unless the bank knows the two together.
2. Three kinds of step contradict nothing: code that hung, used up the memory or raised an error tells no number,
   so that another mistake may stand behind the error; results that rest on random draws; and parts that a law
   (rule 5) explains.
3. A variant explains a failed part if it gives what the student's code gave in every step of it, and in some step
   this is wrong. Errors are the same if their types are; they explain a part only if their texts are the same too,
   up to numbers.
4. If several variants explain a part, the one that explains most failed parts is named, then the one that is the
   student's in most parts, then the one with the same texts of errors. If still several are left, none is named,
   unless they are forms of one mistake, or are the student's in every step of all parts. If the first part failed
   and nothing has explained it, only a variant that is the student's there is named: code that is wrong from the
   ground up fails others for other reasons.
5. A law recognises a mistake by what it violates, not by its numbers: it looks at the steps of a failed part, and
   may try the student's code on inputs of its own. Laws come first, also for parts too long to be replayed.
6. What nothing has explained may still be told by where it differs from right code. If all results of a part are
   right and an argument is changed, this is the mistake. If only gradients are wrong, in this part and in all other
   parts that failed, and no argument is changed, the graph is cut somewhere. Both are named only in items that the
   bank has them for.

Numbers in place of booleans, another dtype of a tensor, a mask with axes that broadcasting would give it, and an
argument that is changed are mistakes of their own, which may come on top of another one. They are overlooked in a
second round, for the parts that nothing has explained.
"""

from __future__ import annotations

import functools
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_grader.course.assignment import Assignment
from mha_grader.grading.judge import Judged, Verdict
from mha_grader.grading.replay import Memory, Replay
from mha_grader.grading.session import OutOfBudget
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.sandbox.wire import Opaque
from mha_grader.testing.errors import CallError
from mha_grader.testing.modules import SEED
from mha_grader.testing.proxies import Step
from mha_grader.testing.values import as_array, is_tensor
from mha_lib import pitfalls

RELATIVE, ABSOLUTE = 1e-4, 1e-6  # float32 inside an answer is no other mistake
HALF, HALVES = 200.0, ("torch.float16", "torch.bfloat16")  # times as much is rounding in 16 bits
MAX_REPLAYED = 200  # steps of a part: a training is not repeated for every known mistake
PASSED = 10.0  # times as much may be rounding in what passed
RIGHT = ""  # how the right code is called where what came of known code is remembered
IN_PLACE, CUT_OFF = "input-changed-in-place", "gradient-cut-off"
Law = Callable[[Any, Sequence[Step]], bool]


def diagnose(assignment: Assignment, judged: Judged) -> dict[str, str]:
    """Slugs of the known mistakes that an item was recognised to have, by the name of the failed part.

    The student's code must still be there, so that laws can try it.
    """
    if assignment.plain:
        return {}
    own = {known.slug: known.code for known in assignment.mistakes if known.item == judged.item}
    return recognise(
        judged.item,
        judged.verdicts,
        pitfalls.forms(assignment.name, judged.item) | own,
        getattr(assignment.reference, judged.item),
        beside=vars(assignment.reference),
        laws=pitfalls.laws(assignment.name, judged.item),
        tested=judged.tested,
        memory=_memory_of(assignment.name, assignment.version, judged.item),
    )


@functools.lru_cache(maxsize=32)
def _memory_of(name: str, version: str, item: str) -> Memory:
    """What a grading process remembers of an item's known code, which is the same for all hand-ins of a version."""
    return Memory()


def recognise(
    item: str,
    verdicts: Sequence[Verdict],
    variants: Mapping[str, Any],
    reference: Any,
    *,
    beside: Mapping[str, Any] = types.MappingProxyType({}),
    laws: Mapping[str, Law] | None = None,
    tested: Any = None,
    memory: Memory | None = None,
) -> dict[str, str]:
    """Slugs of the recognised mistakes by the name of the failed part.

    Args:
        item: the item's name.
        verdicts: of the item's parts, with their steps.
        variants: wrong functions or classes of this item by slug; further forms of a mistake as `slug/form`.
        reference: the right one.
        beside: the reference's other names, which a test may use as it uses the student's.
        laws: of this item, by slug.
        tested: what the item's name stands for in its test, for laws to try.
        memory: what came of the same variants and the same reference before.
    """
    known = Memory() if memory is None else memory
    judged = [verdict for verdict in verdicts if 0 < len(verdict.steps) <= MAX_REPLAYED]
    told: dict[str, bool] = {}
    found = {
        verdict.part.name: slug
        for verdict in verdicts
        if verdict.steps and _has_failed(verdict)
        for slug in _violated(laws or {}, tested, verdict, told)
    }
    evidence = [
        Evidence(verdict, Replay(known, RIGHT, {**beside, item: reference}, verdict.steps))
        for verdict in judged
        if verdict.part.name not in found
    ]

    @functools.cache
    def replayed(name: str, part: int) -> Replay:
        return evidence[part].right.on(name, {**beside, item: variants[name]})

    ground = judged[0].part.name if judged and _has_failed(judged[0]) else None
    for strict in (True, False):
        open_parts = [each.name for each in evidence if each.failed and each.name not in found]
        if not open_parts:
            break
        alike = {}
        for name in variants:
            account = _account(evidence, functools.partial(replayed, name), strict)
            if account is not None:
                alike[name] = account
        if ground is not None and ground not in found:
            alike = {name: account for name, account in alike.items() if account[ground].alike}
        found |= {part: slug for part in open_parts for slug in _best(part, alike, len(evidence))}
    open_evidence = [each for each in evidence if each.failed and each.name not in found]
    changes = any(step.changed for each in evidence for step in each.steps)  # which reaches gradients too
    cut_off = (
        CUT_OFF in variants
        and not changes
        and all(_are_gradients(each.wrong) for each in evidence if each.wrong)
    )
    for each in open_evidence:
        if IN_PLACE in variants and each.changes_arguments:
            found[each.name] = IN_PLACE
        elif cut_off and each.wrong:
            found[each.name] = CUT_OFF
    return {verdict.part.name: found[verdict.part.name] for verdict in verdicts if verdict.part.name in found}


@dataclass(frozen=True)
class Evidence:
    """What one part tells: what the student's code did, and what right code does."""

    verdict: Verdict
    right: Replay = field(repr=False)

    @property
    def name(self) -> str:
        """The part's."""
        return self.verdict.part.name

    @property
    def steps(self) -> Sequence[Step]:
        """The student's."""
        return self.verdict.steps

    @property
    def failed(self) -> bool:
        """Whether a mistake is looked for here."""
        return _has_failed(self.verdict)

    @functools.cached_property
    def wrong(self) -> Sequence[Step]:
        """Of a part that failed, the steps in which something else comes than of right code."""
        pairs = zip(self.right, self.steps, strict=True) if self.failed else ()
        return [step for proper, step in pairs if not _same_result(proper, step)]

    @property
    def changes_arguments(self) -> bool:
        """Whether all results are right, and some arguments are not as they were."""
        return not self.wrong and any(
            step.changed and not proper.changed for proper, step in zip(self.right, self.steps, strict=True)
        )

    @functools.cached_property
    def drawn(self) -> bool:
        """Whether results rest on random draws, which other code makes in another order."""
        return any(step.request["target"] == SEED for step in self.steps)


@dataclass(frozen=True)
class Likeness:
    """How known code is like the student's in a part that does not contradict it."""

    alike: bool  # the same in every step
    tells: bool  # the same wrong thing in some step; errors of one type alone are none
    same_texts: int  # steps in which even the text of the error was the same


def _has_failed(verdict: Verdict) -> bool:
    return verdict.status not in ("pass", "not-run")


def _are_gradients(steps: Sequence[Step]) -> bool:
    """Whether all of these are gradients, which do not arrive or are other numbers."""
    return all(step.request["op"] == "gradients" and _is_finite(step) for step in steps)


def _is_finite(step: Step) -> bool:
    """Whether numbers came, or the error that there is no graph."""
    if step.error is not None:
        return "does not require grad" in step.error.text
    return all(np.isfinite(as_array(gradient)).all() for gradient in step.value if gradient is not None)


class _Steps(Sequence[Step]):
    """The steps of a part, and whether somebody has looked at them."""

    def __init__(self, steps: Sequence[Step]):
        self.steps, self.seen = steps, False

    def __len__(self) -> int:
        self.seen = True
        return len(self.steps)

    def __getitem__(self, place: Any) -> Any:
        self.seen = True
        return self.steps[place]


def _violated(laws: Mapping[str, Law], tested: Any, verdict: Verdict, told: dict[str, bool]) -> list[str]:
    """The mistake whose law, and no other one's, tells it from this failed part.

    `told` keeps what laws say that have not looked at the part: it holds for the other parts.
    """
    found = []
    for slug, law in laws.items():
        steps = _Steps(verdict.steps)
        holds = told[slug] if slug in told else _holds(law, tested, steps)
        if not steps.seen:
            told[slug] = holds
        if holds:
            found.append(slug)
    return found if len(found) == 1 else []


def _holds(law: Law, tested: Any, steps: Sequence[Step]) -> bool:
    try:
        with np.errstate(all="ignore"):
            return bool(law(tested, steps))
    except (CallError, OutOfBudget):
        return False
    except SandboxUnavailable:  # the machine's fault, not the student's
        raise
    except Exception:  # the law looks into a result that is not what it should be
        return False


def _account(
    evidence: Sequence[Evidence], replayed: Callable[[int], Replay], strict: bool
) -> dict[str, Likeness] | None:
    """The likeness of known code by part; None if some part contradicts it, or it explains none.

    What failed is looked at first: most variants end there.
    """
    found: dict[str, Likeness] = {}
    for failed in (True, False):
        for number, part in enumerate(evidence):
            if part.failed == failed:
                likeness = compare(replayed(number), part, strict)
                if likeness is None:
                    return None
                found[part.name] = likeness
        if not any(map(_explains, found.values())):
            return None
    return found


def _best(part: str, alike: Mapping[str, Mapping[str, Likeness]], parts: int) -> list[str]:
    """The slug of the mistake that explains a failed part, if there is one."""
    degrees = {}
    for name, account in alike.items():
        if _explains(account[part]):
            same = [likeness for likeness in account.values() if likeness.alike]
            explained = sum(map(_explains, same))
            degrees[name] = (explained, len(same), sum(likeness.same_texts for likeness in same))
    best = [name for name, degree in degrees.items() if degree == max(degrees.values())]
    slugs = list(dict.fromkeys(name.partition("/")[0] for name in best))
    return slugs[:1] if len(slugs) == 1 or (slugs and degrees[best[0]][1] == parts) else []


def _explains(likeness: Likeness) -> bool:
    return likeness.alike and likeness.tells


def compare(known: Iterable[Step], part: Evidence, strict: bool = True) -> Likeness | None:
    """How a known mistake is like the student's code in a part; None if a step contradicts it.

    Args:
        known: what the mistake does.
        part: what the student's code did, and what right code does.
        strict: whether the differences count that the second round overlooks (see the module).
    """
    alike, tells, same_texts = True, False, 0
    right: Iterable[Step] = part.right
    if part.drawn:  # one after the other: both draw from one generator
        known, right = list(known), list(right)
    for wanted, step, proper in zip(known, part.steps, right, strict=True):
        if not _same_outcome(wanted, step, strict):
            if not _may_be_there(wanted, step, proper, part, strict):
                return None
            alike = False
        elif step.error is None:
            tells |= not _same_outcome(proper, step, strict)
        else:
            assert wanted.error is not None
            same_texts += step.error.text == wanted.error.text
            tells |= _form(step.error) == _form(wanted.error) != _form(proper.error)
    return Likeness(alike, alike and tells, same_texts)


def _may_be_there(wanted: Step, step: Step, proper: Step, part: Evidence, strict: bool) -> bool:
    """Whether code may have a mistake that gives something else than the code in this step."""
    if part.drawn:
        return True
    if part.verdict.status == "pass":
        if wanted.error is not None and step.error is not None:
            return True  # an error is asked for, and any type is right
        return any(_same_result(wanted, other, slack=PASSED) for other in (step, proper))
    return step.error is not None or _same_outcome(wanted, proper, strict)


def _same_outcome(one: Step, other: Step, strict: bool) -> bool:
    return _same_result(one, other, strict) and (one.changed == other.changed or not strict)


def _same_result(one: Step, other: Step, strict: bool = True, slack: float = 1.0) -> bool:
    errors = [None if step.error is None else step.error.type_names for step in (one, other)]
    if errors != [None, None]:
        return errors[0] == errors[1]
    if strict and _dtypes(one.value) != _dtypes(other.value):
        return False
    return same_value(one.value, other.value, strict, slack)


def _dtypes(value: Any) -> list[str]:
    """The dtypes of the tensors in a value; those of arrays are up to the student."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [dtype for part in value for dtype in _dtypes(part)]
    return [str(value.dtype)] if is_tensor(value) else []


def _form(error: CallError | None) -> str | None:
    """An error's text without its numbers, such as sizes."""
    return None if error is None else re.sub(r"\d+", "#", error.text)


def same_value(first: Any, second: Any, strict: bool = True, slack: float = 1.0) -> bool:
    """Whether two plain values are the same up to rounding; NaN is the same as NaN here.

    Args:
        first, second: the values.
        strict: whether an array of booleans is different from one of numbers, also where True is 1, and from one
            that broadcasting makes the same.
        slack: how many times as much may be rounding.
    """
    if isinstance(first, tuple | list):
        return (
            isinstance(second, tuple | list)
            and len(first) == len(second)
            and all(same_value(one, other, strict, slack) for one, other in zip(first, second, strict=True))
        )
    if isinstance(first, dict):
        return (
            isinstance(second, dict)
            and first.keys() == second.keys()
            and all(same_value(value, second[key], strict, slack) for key, value in first.items())
        )
    if isinstance(first, Opaque) and isinstance(second, Opaque):
        return True  # such as a module that returns itself: the name of its class is the student's own
    if any(str(getattr(value, "dtype", "")) in HALVES for value in (first, second)):
        slack = max(slack, HALF)
    first, second = as_array(first), as_array(second)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return _same_arrays(first, second, strict, slack)
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return False
    return bool(type(first) is type(second) and first == second)


def _same_arrays(first: np.ndarray, second: np.ndarray, strict: bool, slack: float) -> bool:
    booleans = [array.dtype.kind == "b" for array in (first, second)]
    if strict and booleans[0] != booleans[1]:
        return False
    if first.shape != second.shape:
        if strict or not any(booleans):
            return False
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            return False
    return gap(first, second) <= slack


def gap(first: np.ndarray, second: np.ndarray) -> float:
    """Largest difference of two arrays of one shape, in units of what rounding may explain."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(all="ignore"):
        allowed = ABSOLUTE + RELATIVE * np.abs(second)
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        ratio = np.where(same, 0.0, np.abs(first - second) / allowed)
    return float(np.where(np.isnan(ratio), math.inf, ratio).max(initial=0.0))
