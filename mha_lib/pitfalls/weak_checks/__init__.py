"""Checks that are too weak to show that code is right: many mistakes pass them, which is why they go unnoticed.

A check gets a function or class and says whether it passes. One module holds the checks of one assignment,
or the module of an item in `mha_lib.pitfalls.code` holds those of the item.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mha_lib.pitfalls.registry import MODULE_OF_ITEM, Registry

Code = Callable[..., Any]
Check = Callable[[Code], bool]
Arguments = tuple[Any, ...]

# The names of the checks, and what each of them looks at.
WEAK_CHECKS: Mapping[str, str] = {
    "shape": "the result has the right shape",
    "shape at n = m": "the result has the right shape with as many queries as keys",
    "boolean": "the mask is boolean",
    "finite": "nothing in the result is NaN or infinite",
    "rows sum to 1": "each row of weights sums to 1",
    "masked weights are 0": "a key that is masked gets no weight",
    "every row keeps a key": "no query is left with nothing to attend to",
    "small logits": "the result is right for logits of ordinary size",
    "last axis": "the result is right along the last axis",
    "one row": "the result is right for a single row of logits",
    "no mask": "the result is right without a mask",
    "all-True mask": "the result is right under a mask that hides nothing",
    "no batch": "the result is right for matrices, without leading dimensions",
    "one leading dimension": "the result is right for (batch, n, d_k)",
    "one sequence": "the result is right for a batch of one sequence",
    "n = m": "the result is right with as many queries as keys",
    "d_k = d_v": "the result is right when keys and values are equally wide",
    "no keep": "the result is right without `keep`",
    "no padding": "the result is right when no sequence is padded",
    "one head": "the result is right for a layer with one head",
    "one token": "the result is right for sequences of one token",
    "round trip": "cutting into heads can be undone by putting them together",
    "divides": "the result is right where d_model can be divided among the heads",
    "no sharing": "the count is right with as many heads of keys and values as of queries",
    "no biases": "the count is right without biases",
    "one key head": "the result is right with one head of keys and values",
    "as many key heads": "the result is right with as many heads of keys and values as of queries",
    "one chunk": "the result is right when the whole sequence comes at once",
    "two chunks": "the result is right when the sequence comes in two chunks",
    "token by token": "the result is right when the tokens come one at a time",
    "default size": "the count is right for values of two bytes",
    "full width": "the result is right when the heads together are as wide as the model",
    "number of heads": "the number of heads that are left is right",
    "one head removed": "the result is right when one head is removed",
    "weights": "the weights are right",
    "layer's output": "the output of the layer with these weights is right",
    "all biases 0": "the result is right when all biases are 0",
    "maps": "the attention weights are right",
    "offset 0": "the result is right for offset 0",
    "direction": "heads that look back and heads that look ahead are told apart",
    "one head kept": "the result is right when one head is kept",
    "all heads kept": "the result is right when all heads are kept",
    "order of heads": "the most important head is found",
    "right values": "the result is right on ordinary inputs",
}

CHECKS: Registry[Check] = Registry(__name__, MODULE_OF_ITEM)


def weak_check(name: str, item: str) -> Callable[[Check], Check]:
    """A decorator: this function checks, of code for the item `assignment.item`, what `name` says.

    Raises:
        ValueError: if the name is not in `WEAK_CHECKS`, or the item has a check of this name already.
    """
    if name not in WEAK_CHECKS:
        raise ValueError(f"no words for the weak check {name!r}: add them to WEAK_CHECKS")
    return CHECKS.register(name, item)


def weak_checks(assignment: str, item: str) -> Mapping[str, Check]:
    """The weak checks of one item by name; empty if there are none.

    >>> list(weak_checks("multi_head", "head_dim"))
    ['divides', 'one head']
    """
    return CHECKS.of(assignment, item)


def passes(check: Check, code: Code) -> bool:
    """Whether the code passes; an error that comes from a result of another kind or shape means no."""
    try:
        with np.errstate(all="ignore"):
            return bool(check(code))
    except (AttributeError, IndexError, TypeError, ValueError):
        return False


# --- what many checks are made of --------------------------------------------------------------------------


def results(code: Code, arguments: Arguments) -> tuple[Any, ...]:
    """What the code returns, as a tuple; the arguments are copied before."""
    returned = code(*copy.deepcopy(arguments))
    return returned if isinstance(returned, tuple) else (returned,)


def close(got: tuple[Any, ...], expected: tuple[Any, ...], atol: float) -> bool:
    """As many results, of the same shapes and kinds, and no entry off by more than `atol`."""
    return len(got) == len(expected) and all(
        np.shape(one) == np.shape(other)
        and np.asarray(one).dtype.kind == np.asarray(other).dtype.kind
        and np.allclose(one, other, rtol=0, atol=atol, equal_nan=True)
        for one, other in zip(got, expected, strict=True)
    )


def tolerance(arguments: Arguments) -> float:
    """How far a result may be off: more for arguments of 100 and above, as the contracts say."""
    large = any(np.max(np.abs(each)) >= 100 for each in arguments if isinstance(each, np.ndarray))
    return 1e-2 if large else 1e-6


def right_on(right: Code, *calls: Arguments) -> Check:
    """The check: the results are those of the right code for each of these tuples of arguments."""
    return lambda code: all(
        close(results(code, call), results(right, call), tolerance(call)) for call in calls
    )


def has_shapes(call: Arguments, *shapes: tuple[int, ...]) -> Check:
    """The check: the results of this call have these shapes."""
    return lambda code: [np.shape(each) for each in results(code, call)] == list(shapes)


def is_finite(call: Arguments) -> Check:
    """The check: no result of this call holds NaN or an infinity."""
    return lambda code: all(np.isfinite(each).all() for each in results(code, call))
