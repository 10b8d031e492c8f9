"""Mistakes in `grouped_query_attention`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import mistake, variants
from mha_lib.pitfalls.pieces import PIECES, projected

Array = np.ndarray
Function = Callable[..., Any]


@mistake("kv-tiled", "efficient_heads.grouped_query_attention")
def grouped_kv_tiled(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the heads come in the order 0, 1, 2, 0, 1, 2; it should be 0, 0, 1, 1, 2, 2."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = np.tile(K, (1, group, 1, 1))  # (batch, num_heads, n, d_k)
    V = np.tile(V, (1, group, 1, 1))  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-not-repeated", "efficient_heads.grouped_query_attention")
def grouped_kv_not_repeated(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: NumPy stretches one key head over all query heads, but not two or three."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("kv-repeated-on-sequence-axis", "efficient_heads.grouped_query_attention")
def grouped_kv_repeated_on_sequence_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: every token is repeated, not every head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = np.repeat(K, group, axis=2)  # (batch, num_kv_heads, n * group, d_k)
    V = np.repeat(V, group, axis=2)  # (batch, num_kv_heads, n * group, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("kv-repeated-on-feature-axis", "efficient_heads.grouped_query_attention")
def grouped_kv_repeated_on_feature_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: every single feature is repeated before the heads are split."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = split_heads(np.repeat(X @ W_K, group, axis=-1), num_heads)  # (batch, num_heads, n, d_k)
    V = split_heads(np.repeat(X @ W_V, group, axis=-1), num_heads)  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-repeated-too-often", "efficient_heads.grouped_query_attention")
def grouped_kv_repeated_too_often(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: each head is repeated `num_kv_heads` times, but a group has `num_heads // num_kv_heads`."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    K = np.repeat(K, num_kv_heads, axis=1)  # (batch, num_kv_heads², n, d_k)
    V = np.repeat(V, num_kv_heads, axis=1)  # (batch, num_kv_heads², n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("kv-first-head-for-all", "efficient_heads.grouped_query_attention")
def grouped_kv_first_head_for_all(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all query heads use key head 0."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)[:, :1]  # (batch, 1, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)[:, :1]  # (batch, 1, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-index-by-number-of-heads", "efficient_heads.grouped_query_attention")
def grouped_kv_index_by_number_of_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: query head i uses key head i // num_kv_heads, and there may be no such head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    shared = np.arange(num_heads) // num_kv_heads  # (num_heads,)
    K = split_heads(X @ W_K, num_kv_heads)[:, shared]  # (batch, num_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)[:, shared]  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-averaged", "efficient_heads.grouped_query_attention")
def grouped_kv_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all query heads use the mean of the key heads."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads).mean(axis=1, keepdims=True)  # (batch, 1, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads).mean(axis=1, keepdims=True)  # (batch, 1, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-split-into-query-heads", "efficient_heads.grouped_query_attention")
def grouped_kv_split_into_query_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the few keys are cut into as many heads as there are queries, so that they are too narrow."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_heads)  # (batch, num_heads, n, less than d_k)
    V = split_heads(X @ W_V, num_heads)  # (batch, num_heads, n, less than d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("kv-values-not-repeated", "efficient_heads.grouped_query_attention")
def grouped_kv_values_not_repeated(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the keys are repeated, the values are not."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    K = np.repeat(K, num_heads // num_kv_heads, axis=1)  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("scale-by-kv-width", "efficient_heads.grouped_query_attention")
def grouped_scale_by_kv_width(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the scale takes the features to be shared among the key heads; it is right if none is shared."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads
    K, V = np.repeat(K, group, axis=1), np.repeat(V, group, axis=1)  # (batch, num_heads, n, d_k)
    Q = Q / np.sqrt(group)  # attention divides by √d_k, and together that is √(d_model / num_kv_heads)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def grouped_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
) -> Function:
    """`grouped_query_attention` made of these pieces, of which one is wrong."""

    def grouped_query_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
    ) -> Any:
        Q = split(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
        K, V = (split(X @ W, num_kv_heads) for W in (W_K, W_V))  # (batch, num_kv_heads, n, d_k)
        K, V = (np.repeat(x, num_heads // num_kv_heads, axis=1) for x in (K, V))  # (batch, num_heads, n, d_k)
        return project(combine(attend(Q, K, V)[0]), W_O)  # (batch, n, d_model)

    grouped_query_attention.__doc__ = wrong.__doc__
    return grouped_query_attention


@mistake("input-changed-in-place", "efficient_heads.grouped_query_attention")
def grouped_changes_its_input(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: W_Q is scaled in place, in the caller's array."""
    W_Q /= np.sqrt(W_Q.shape[1] // num_heads)
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K, V = (split_heads(X @ W, num_kv_heads) for W in (W_K, W_V))  # (batch, num_kv_heads, n, d_k)
    K, V = (np.repeat(x, num_heads // num_kv_heads, axis=1) for x in (K, V))  # (batch, num_heads, n, d_k)
    Q = Q * np.sqrt(Q.shape[-1])  # `attention` divides once more
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


wrong = variants("single_head", "attention")["always-causal"]
mistake("always-causal", "efficient_heads.grouped_query_attention")(grouped_from(wrong, attend=wrong))

for slug, (piece, wrong) in PIECES.items():
    mistake(slug, "efficient_heads.grouped_query_attention")(grouped_from(wrong, **{piece: wrong}))
