"""Why an answer is wrong: which known mistake gives exactly these results on these inputs.

A failed part's steps are replayed on every wrong variant in the bank. A variant is recognised if it gives
what the student's code gave in each step of the part: the same numbers, the same error, the same arguments
changed. If several do, the steps of the item's other parts tell them apart, then the texts of errors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mha_grader.runner import Verdict
from mha_grader.tested import Step, local
from mha_grader.testing import CallError, as_array
from mha_grader.wire import Opaque

RELATIVE, ABSOLUTE = 1e-4, 1e-6  # float32 inside an answer is no other mistake


def recognise(item: str, verdicts: Sequence[Verdict], variants: Mapping[str, Any]) -> dict[str, str]:
    """Slugs of the recognised mistakes by the name of the failed part.

    Args:
        item: the item's name.
        verdicts: of the item's parts, with their steps.
        variants: wrong functions or classes of this item by slug.
    """
    judged = [verdict for verdict in verdicts if verdict.steps]

    @functools.cache
    def likeness(part: int, slug: str, kinds: bool) -> int | None:
        return compare(item, variants[slug], judged[part].steps, kinds)

    def agreement(slug: str, kinds: bool) -> tuple[int, int]:
        alike = [degree for part in range(len(judged)) if (degree := likeness(part, slug, kinds)) is not None]
        return len(alike), sum(alike)

    found: dict[str, str] = {}
    for part, verdict in enumerate(judged):
        if verdict.status in ("pass", "not-run"):
            continue
        # Numbers in place of booleans are a mistake of their own, which may come on top of another one.
        for kinds in (True, False):
            # In the first part as well: code that is wrong from the ground up fails other parts for other reasons.
            candidates = [
                slug
                for slug in variants
                if None not in (likeness(0, slug, kinds), likeness(part, slug, kinds))
            ]
            if candidates:  # the first in the bank's order, if several agree equally well
                found[verdict.part.name] = max(candidates, key=lambda slug: agreement(slug, kinds))
                break
    return found


def compare(item: str, variant: Any, steps: Sequence[Step], kinds: bool = True) -> int | None:
    """Whether the variant under the item's name does in every step what the record says.

    Args:
        item: the item's name.
        variant: a wrong function or class.
        steps: what the student's code did.
        kinds: whether booleans and numbers are different, also where True is 1.

    Returns:
        None if it does not; else in how many steps it raised an error with even the same text. Errors of one
        type alone, with other texts, are no likeness.
    """
    perform = local(**{item: variant})
    same_texts, results = 0, 0
    for step in steps:
        try:
            with np.errstate(all="ignore"):
                value, changed = perform(step.request)
        except CallError as error:
            if step.error is None or step.error.type_names != error.type_names:
                return None
            same_texts += step.error.text == error.text
        else:
            if step.error is not None or step.changed != changed or not same_value(step.value, value, kinds):
                return None
            results += 1
    # Much fails with a ValueError: if nothing else is known, its text has to be the same.
    return same_texts if results or same_texts else None


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
