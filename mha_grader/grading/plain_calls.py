"""What plain asserts do not see of a call: an empty result, and arguments that are changed."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_grader.sandbox import wire
from mha_grader.testing.errors import Mismatch


@dataclass(frozen=True)
class Call:
    """A call that a test makes of a solution's function."""

    name: str
    given: Any  # the arguments, as they were before
    result: Any
    changes: bool  # whether it changes its arguments


def refuse_empty(calls: Iterable[Call], solutions: Iterable[Call]) -> None:
    """Compare results with the solution's for the same arguments.

    Raises:
        Mismatch: if something is empty that is not empty there.
    """
    for made in calls:
        for right in solutions:
            same = made.name == right.name and _about_same(made.given, right.given)
            if same and _is_emptied(made.result, right.result):
                raise Mismatch(f"{made.name} returned an empty result, but the right result is not empty")


def changing(calls: Iterable[Call]) -> set[str]:
    """The functions that change their arguments."""
    return {call.name for call in calls if call.changes}


def is_changed(given: Any, now: Any) -> bool:
    """Whether an argument is another one after a call."""
    return type(given) is type(now) and not wire.same_bits(given, now)


def _about_same(one: Any, other: Any) -> bool:
    """Whether two values are the same up to rounding."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_about_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_about_same(one[key], other[key]) for key in one)
    if isinstance(one, float) or (isinstance(one, np.ndarray) and one.dtype.kind in "fc"):
        return np.shape(one) == np.shape(other) and np.allclose(one, other, equal_nan=True)
    return wire.same_bits(one, other)


def _is_emptied(result: Any, right: Any) -> bool:
    """Whether something in a result is empty that is not empty in the right one."""
    if _length(result) == 0:
        return _length(right) != 0
    if isinstance(result, list | tuple) and isinstance(right, list | tuple) and len(result) == len(right):
        return any(map(_is_emptied, result, right))
    if isinstance(result, dict) and isinstance(right, dict):
        return any(_is_emptied(result[key], right[key]) for key in result.keys() & right.keys())
    return False


def _length(value: Any) -> int:
    """How much there is in a value; a number is one thing."""
    if hasattr(value, "numel"):  # a tensor
        return int(value.numel())
    return value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, Sized) else 1
