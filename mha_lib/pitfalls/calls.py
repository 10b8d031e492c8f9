"""What a checker may call its candidates with: the contracts of checked items, as far as types and shapes go.

Outside of its contract each way of writing a function does something else, whether it is right or wrong. So such a
call raises one and the same error, whatever the candidate. Nothing is refused here that a contract allows.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

MAX_SIZE = 4_000_000  # numbers in all arrays of a call: a layer of a real model has fewer
MAX_HEADS = 10_000  # a mistake may go through them all, and time is short


def attention(Q: Any, K: Any, V: Any, mask: Any = None) -> bool:
    """Whether `single_head.attention` may be called with this."""
    if not (are_arrays(Q, K, V) and Q.ndim == K.ndim == V.ndim >= 2):
        return False
    *lead, n, d_k = Q.shape
    m = V.shape[-2]
    fit = K.shape == (*lead, m, d_k) and V.shape[:-2] == Q.shape[:-2]
    return fit and are_finite(Q, K) and (mask is None or is_mask(mask, (*lead, n, m)))


def split_heads(x: Any, num_heads: Any) -> bool:
    """Whether `multi_head.split_heads` may be called with this; the heads need not divide the features."""
    return are_arrays(x) and x.ndim == 3 and is_count(num_heads)


def multi_head_attention(
    X: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, num_heads: Any, mask: Any = None
) -> bool:
    """Whether `multi_head.multi_head_attention` may be called with this."""
    weights = (W_Q, W_K, W_V, W_O)
    if not (are_arrays(X, *weights) and X.ndim == 3 and is_count(num_heads)):
        return False
    batch, n, d_model = X.shape
    fit = all(weight.shape == (d_model, d_model) for weight in weights) and d_model % num_heads == 0
    if not fit:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        Q, K = X @ W_Q, X @ W_K  # (batch, n, d_model)
    return are_finite(Q, K) and (mask is None or is_mask(mask, (batch, num_heads, n, n)))


CALLS: dict[str, Callable[..., bool]] = {
    "single_head.attention": attention,
    "multi_head.split_heads": split_heads,
    "multi_head.multi_head_attention": multi_head_attention,
}


def are_arrays(*values: Any) -> bool:
    """Whether all are arrays of finite numbers, none of them empty."""
    return all(
        isinstance(value, np.ndarray) and value.dtype == float and value.size > 0 and np.isfinite(value).all()
        for value in values
    )


def are_finite(Q: np.ndarray, K: np.ndarray) -> bool:
    """Whether all scores are finite, those of each head too, whatever the order in which they are added up."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.abs(Q) @ np.abs(K).swapaxes(-2, -1)).all())


def is_count(value: Any) -> bool:
    """Whether it is a whole number of at least 1, and not a huge one."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_HEADS


def is_mask(mask: Any, scores: tuple[int, ...]) -> bool:
    """Whether it is a mask for scores of this shape: of two axes, or of four for four; it may be broadcast."""
    axes = (2, 4) if len(scores) == 4 else (2,)
    if not (isinstance(mask, np.ndarray) and mask.dtype == bool and mask.ndim in axes):
        return False
    broadcast = all(have in (1, want) for have, want in zip(mask.shape[::-1], scores[::-1], strict=False))
    return len(scores) <= 4 and broadcast and mask.shape[-1] == scores[-1] and bool(mask.any(axis=-1).all())


def allowed(item: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call, numbers in float64; None if the contract of `assignment.item` has no such call.

    An item without a contract here may be called with anything.

    >>> allowed("multi_head.split_heads", [np.ones(4), 2], {}) is None
    True
    """
    if item not in CALLS:
        return args, kwargs
    if sum(value.size for value in (*args, *kwargs.values()) if isinstance(value, np.ndarray)) > MAX_SIZE:
        return None
    args = [plain(value) for value in args]
    kwargs = {name: plain(value) for name, value in kwargs.items()}
    try:
        call = inspect.signature(CALLS[item]).bind(*args, **kwargs)
    except TypeError:
        return None
    return (args, kwargs) if CALLS[item](*call.args, **call.kwargs) else None


def plain(value: Any) -> Any:
    """An array of numbers in float64, since contracts ask for no other dtype; NumPy's whole number as an int."""
    if not isinstance(value, np.ndarray | np.integer) or value.dtype.kind not in "iuf":
        return value
    return int(value) if value.ndim == 0 and value.dtype.kind in "iu" else value.astype(np.float64)
