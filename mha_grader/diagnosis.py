"""Why an answer is wrong: which known mistake gives exactly these results on these inputs.

A failed part's steps are replayed on every wrong variant in the bank. A variant is recognised if it gives
what the student's code gave in each step of the part: the same numbers, the same error, the same arguments
changed. If several do, the steps of the item's other parts tell them apart as far as they can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mha_grader.runner import Verdict
from mha_grader.tested import Perform, Step, local
from mha_grader.testing import CallError, as_array

RELATIVE, ABSOLUTE = 1e-4, 1e-6  # float32 inside an answer is no other mistake


def recognise(item: str, verdicts: Sequence[Verdict], variants: Mapping[str, Any]) -> dict[str, str]:
    """Slugs of the recognised mistakes by the name of the failed part.

    Args:
        item: the item's name.
        verdicts: of the item's parts, with their steps.
        variants: wrong functions or classes of this item by slug.
    """
    judged = [verdict for verdict in verdicts if verdict.steps]
    matching = {
        verdict.part.name: {slug for slug, variant in variants.items() if gives(item, variant, verdict.steps)}
        for verdict in judged
    }
    found: dict[str, str] = {}
    for verdict in judged:
        candidates = matching[verdict.part.name]
        if verdict.status == "pass" or not candidates:
            continue
        agreement = {slug: sum(slug in matching[other.part.name] for other in judged) for slug in candidates}
        best = max(agreement.values())
        found[verdict.part.name] = next(slug for slug in variants if agreement.get(slug) == best)
    return found


def gives(item: str, variant: Any, steps: Sequence[Step]) -> bool:
    """Whether the variant under the item's name does in every step what the record says."""
    perform = local(**{item: variant})
    return all(_same_step(perform, step) for step in steps)


def _same_step(perform: Perform, step: Step) -> bool:
    try:
        with np.errstate(all="ignore"):
            value, changed = perform(step.request)
    except CallError as error:
        return step.error is not None and step.error.type_names == error.type_names
    return step.error is None and step.changed == changed and same_value(step.value, value)


def same_value(first: Any, second: Any) -> bool:
    """Whether two plain values are the same up to rounding; NaN is the same as NaN here."""
    if isinstance(first, tuple | list):
        return (
            isinstance(second, tuple | list)
            and len(first) == len(second)
            and all(map(same_value, first, second))
        )
    first, second = as_array(first), as_array(second)
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
            return False
        if first.shape != second.shape or (first.dtype.kind == "b") != (second.dtype.kind == "b"):
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
