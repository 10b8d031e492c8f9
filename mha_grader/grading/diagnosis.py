"""Why an answer is wrong: which known mistake gives exactly these results on these inputs.

A failed part's steps are replayed on every wrong variant in the bank. A variant is recognised if it gives
what the student's code gave in each step of the part: the same numbers, the same error, the same arguments
changed; and in a step where that is not what right code gives. If several do, the other failed parts tell them
apart, then all parts, then the texts of errors. If nothing does, none is named, unless they do the same in every
step of all parts.
"""

from __future__ import annotations

import functools
import math
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_grader.grading.runner import Verdict
from mha_grader.sandbox.wire import Opaque
from mha_grader.testing.proxies import Perform, Step, local
from mha_grader.testing.testing import CallError, as_array, is_tensor

MAX_REPLAYED = 200  # steps of a part; a training is not repeated for every known mistake
RELATIVE, ABSOLUTE = 1e-4, 1e-6  # float32 inside an answer is no other mistake


def recognise(
    item: str,
    verdicts: Sequence[Verdict],
    variants: Mapping[str, Any],
    reference: Any,
    beside: Mapping[str, Any] = types.MappingProxyType({}),
) -> dict[str, str]:
    """Slugs of the recognised mistakes by the name of the failed part.

    Args:
        item: the item's name.
        verdicts: of the item's parts, with their steps.
        variants: wrong functions or classes of this item by slug.
        reference: the right one.
        beside: the reference's other names, which a test may use as it uses the student's.
    """
    judged = [verdict for verdict in verdicts if 0 < len(verdict.steps) <= MAX_REPLAYED]
    failed = {part for part, verdict in enumerate(judged) if verdict.status not in ("pass", "not-run")}

    @functools.cache
    def right(part: int) -> list[Step]:
        return replay(local(**{**beside, item: reference}), judged[part].steps)

    @functools.cache
    def likeness(part: int, slug: str, kinds: bool) -> Likeness | None:
        steps = judged[part].steps
        return compare(replay(local(**{**beside, item: variants[slug]}), steps), steps, right(part), kinds)

    def agreement(slug: str, kinds: bool) -> tuple[int, int, int]:
        degrees = {part: likeness(part, slug, kinds) for part in range(len(judged))}
        alike = {part: degree for part, degree in degrees.items() if degree is not None}
        return len(alike.keys() & failed), len(alike), sum(degree.same_texts for degree in alike.values())

    found: dict[str, str] = {}
    for part in sorted(failed):
        # Numbers in place of booleans are a mistake of their own, which may come on top of another one.
        for kinds in (True, False):
            candidates = {}
            for slug in variants:
                # In the first part as well: code that is wrong from the ground up fails others for other reasons.
                degree = likeness(part, slug, kinds)
                if degree is not None and degree.tells and likeness(0, slug, kinds) is not None:
                    candidates[slug] = agreement(slug, kinds)
            best = [slug for slug, degree in candidates.items() if degree == max(candidates.values())]
            if len(best) == 1 or (best and candidates[best[0]][1] == len(judged)):
                found[judged[part].part.name] = best[0]
            if best:
                break
    return found


@dataclass(frozen=True)
class Likeness:
    """That one piece of code did what another did."""

    same_texts: int  # steps in which even the text of the error was the same
    tells: bool  # whether they did the same wrong thing in some step; errors of one type alone are none


def replay(perform: Perform, steps: Sequence[Step]) -> list[Step]:
    """The same requests, with what comes of them when they are carried out by `perform`."""
    done = []
    for step in steps:
        try:
            with np.errstate(all="ignore"):
                value, changed = perform(step.request)
        except CallError as error:
            done.append(Step(step.request, error=error))
        else:
            done.append(Step(step.request, value, changed=changed))
    return done


def compare(
    known: Sequence[Step], steps: Sequence[Step], right: Sequence[Step], kinds: bool = True
) -> Likeness | None:
    """How code is like a known mistake in these steps; None if it does something else in one of them.

    Args:
        known: what the mistake does.
        steps: what the code did.
        right: what right code does.
        kinds: whether booleans and numbers are different, also where True is 1.
    """
    same_texts, tells = 0, False
    for wanted, step, proper in zip(known, steps, right, strict=True):
        if not _same_outcome(wanted, step, kinds):
            return None
        if step.error is None:
            same_dtypes = _dtypes(proper.value) == _dtypes(step.value)
            tells |= not (same_dtypes and _same_outcome(proper, step, kinds))
        else:
            assert wanted.error is not None
            same_texts += step.error.text == wanted.error.text
            tells |= _form(step.error) == _form(wanted.error) != _form(proper.error)
    return Likeness(same_texts, tells)


def _same_outcome(one: Step, other: Step, kinds: bool) -> bool:
    errors = [None if step.error is None else step.error.type_names for step in (one, other)]
    if errors != [None, None]:
        return errors[0] == errors[1]
    return one.changed == other.changed and same_value(one.value, other.value, kinds)


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


def same_value(first: Any, second: Any, kinds: bool = True) -> bool:
    """Whether two plain values are the same up to rounding; NaN is the same as NaN here.

    Args:
        first, second: the values.
        kinds: whether an array of booleans is different from one of numbers, also where True is 1.
    """
    if isinstance(first, tuple | list):
        return (
            isinstance(second, tuple | list)
            and len(first) == len(second)
            and all(same_value(one, other, kinds) for one, other in zip(first, second, strict=True))
        )
    if isinstance(first, dict):
        return (
            isinstance(second, dict)
            and first.keys() == second.keys()
            and all(same_value(value, second[key], kinds) for key, value in first.items())
        )
    if isinstance(first, Opaque) and isinstance(second, Opaque):
        return True  # such as a module that returns itself: the name of its class is the student's own
    first, second = as_array(first), as_array(second)
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
            return False
        if first.shape != second.shape:
            return False
        if kinds and (first.dtype.kind == "b") != (second.dtype.kind == "b"):
            return False
        return gap(first, second) <= 1.0
    return bool(type(first) is type(second) and first == second)


def gap(first: np.ndarray, second: np.ndarray) -> float:
    """Largest difference of two arrays of one shape, in units of what rounding may explain."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(all="ignore"):
        allowed = ABSOLUTE + RELATIVE * np.abs(second)
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        ratio = np.where(same, 0.0, np.abs(first - second) / allowed)
    return float(np.where(np.isnan(ratio), math.inf, ratio).max(initial=0.0))
