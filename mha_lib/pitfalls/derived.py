"""From a mistake in one head to the same mistake in a layer of several.

The layers made here are right but for the function that they are made of, whose docstring they take over.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.masks import causal_mask

Array = np.ndarray
Function = Callable[..., Any]


def for_one_head(mask: Array | None) -> Array | None:
    """A layer's mask without the axis of the heads: `(n, m)` or `(batch, n, m)`."""
    return mask[:, 0] if mask is not None and mask.ndim == 4 else mask


def multi_head_around(wrong: Function) -> Function:
    """`multi_head_attention` around another `attention`."""

    def multi_head_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
    ) -> Array:
        Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
        heads, _ = wrong(Q, K, V, mask)  # (batch, heads, n, d_k)
        return combine_heads(heads) @ W_O  # (batch, n, d_model)

    multi_head_attention.__doc__ = wrong.__doc__
    return multi_head_attention


def causal_around(wrong: Function) -> Function:
    """`causal_multi_head_attention` around another `multi_head_attention`."""

    def causal_multi_head_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
    ) -> Any:
        return wrong(X, W_Q, W_K, W_V, W_O, num_heads, causal_mask(X.shape[1]))  # (batch, n, d_model)

    causal_multi_head_attention.__doc__ = wrong.__doc__
    return causal_multi_head_attention


def causal_under(make_mask: Function) -> Function:
    """`causal_multi_head_attention` under another mask than `causal_mask`."""

    def causal_multi_head_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
    ) -> Array:
        Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
        heads, _ = attention(Q, K, V, make_mask(X.shape[1]))  # (batch, heads, n, d_k)
        return combine_heads(heads) @ W_O  # (batch, n, d_model)

    causal_multi_head_attention.__doc__ = make_mask.__doc__
    return causal_multi_head_attention


def cross_around(wrong: Function) -> Function:
    """`cross_attention` around another `attention`."""

    def cross_attention(
        X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
    ) -> Array:
        Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
        K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
        heads, _ = wrong(Q, K, V)  # (batch, heads, n, d_k)
        return combine_heads(heads) @ W_O  # (batch, n, d_model)

    cross_attention.__doc__ = wrong.__doc__
    return cross_attention
