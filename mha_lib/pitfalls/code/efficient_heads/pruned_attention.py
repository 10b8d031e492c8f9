"""Mistakes in `pruned_attention`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import mistake, variants
from mha_lib.pitfalls.pieces import PIECES, projected

Array = np.ndarray
Function = Callable[..., Any]


@mistake("prune-width-from-d-model", "efficient_heads.pruned_attention")
def pruned_width_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: d_model / num_heads is the width of a head in a full layer only."""
    batch, n, d_model = X.shape
    d_k = d_model // num_heads
    shape = (batch, n, num_heads, d_k)
    Q, K, V = (
        (X @ W).reshape(shape).transpose(0, 2, 1, 3) for W in (W_Q, W_K, W_V)
    )  # (batch, heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("prune-scale-from-d-model", "efficient_heads.pruned_attention")
def pruned_scale_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are split rightly, but scaled as if they were d_model / num_heads wide."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(X.shape[-1] / num_heads)  # (batch, heads, n, n)
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


@mistake("prune-scale-from-all-heads", "efficient_heads.pruned_attention")
def pruned_scale_from_all_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the scores are scaled by the width of all heads together."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(W_Q.shape[1])  # (batch, heads, n, n)
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


@mistake("prune-output-padded", "efficient_heads.pruned_attention")
def pruned_output_padded(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: the heads' outputs are filled up with zeros to d_model, and W_O is not applied."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads = combine_heads(attention(Q, K, V)[0])[:, :, : X.shape[-1]]  # (batch, n, heads * d_k)
    missing = X.shape[-1] - heads.shape[-1]
    return np.pad(heads, ((0, 0), (0, 0), (0, missing)))  # (batch, n, d_model)


def pruned_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
) -> Function:
    """`pruned_attention` made of these pieces, of which one is wrong."""

    def pruned_attention(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Any:
        Q, K, V = (split(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
        return project(combine(attend(Q, K, V)[0]), W_O)  # (batch, n, d_model)

    pruned_attention.__doc__ = wrong.__doc__
    return pruned_attention


@mistake("input-changed-in-place", "efficient_heads.pruned_attention")
def pruned_changes_its_input(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_Q is scaled in place, in the caller's array."""
    d_k = W_Q.shape[1] // num_heads
    W_Q /= np.sqrt(d_k)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    return combine_heads(attention(Q * np.sqrt(d_k), K, V)[0]) @ W_O  # (batch, n, d_model)


wrong = variants("single_head", "attention")["always-causal"]
mistake("always-causal", "efficient_heads.pruned_attention")(pruned_from(wrong, attend=wrong))

for slug, (piece, wrong) in PIECES.items():
    mistake(slug, "efficient_heads.pruned_attention")(pruned_from(wrong, **{piece: wrong}))
