"""Mistakes in `multi_head_attention`."""

from typing import Any

import numpy as np

from mha_lib import multi_head as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls import layers, one_head
from mha_lib.pitfalls.code import forms, law, mistake, variants
from mha_lib.pitfalls.code.multi_head.combine_heads import (
    combine_heads_interleaved,
    combine_heads_without_transpose,
)
from mha_lib.pitfalls.code.multi_head.split_heads import (
    split_heads_axis_not_moved,
    split_heads_batch_and_heads_swapped,
    split_heads_interleaved,
    split_heads_without_transpose,
)
from mha_lib.pitfalls.derived import for_one_head, multi_head_around
from mha_lib.pitfalls.evidence import POOLS, given, pooled

Array = np.ndarray


# --- softmax -----------------------------------------------------------------------------------------------


@mistake("input-changed-in-place", "multi_head.multi_head_attention")
def multi_head_attention_mask_in_place(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the caller's mask is turned round."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    if mask is not None:
        np.logical_not(mask, out=mask)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("axes-of-one-dropped", "multi_head.multi_head_attention")
def multi_head_attention_squeezed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: `squeeze` drops every axis of size 1."""
    return np.squeeze(right.multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads, mask))


@mistake("input-changed-in-place", "multi_head.multi_head_attention", form="weights")
def multi_head_attention_in_place(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the caller's W_Q is changed."""
    d_k = X.shape[-1] // num_heads
    W_Q /= np.sqrt(d_k)  # so that the scores need no division
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q * np.sqrt(d_k), K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


# --- scale -------------------------------------------------------------------------------------------------


@mistake("scale-by-d-model", "multi_head.multi_head_attention")
def multi_head_attention_scale_by_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the scores are divided by √d_model, the width of the layer and not of a head."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    d_k, d_model = Q.shape[-1], X.shape[-1]
    heads, _ = attention(Q * np.sqrt(d_k / d_model), K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


# --- mask --------------------------------------------------------------------------------------------------


@mistake("mask-repeated-in-wrong-order", "multi_head.multi_head_attention")
def multi_head_attention_mask_repeated_in_wrong_order(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: heads are folded into the batch sequence by sequence, but the masks are repeated head by head."""
    batch, n, d_model = X.shape
    fold = (batch * num_heads, n, d_model // num_heads)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    Q, K, V = (x.reshape(fold) for x in (Q, K, V))  # (batch * heads, n, d_k)
    if mask is not None and mask.ndim == 4:
        mask = np.tile(mask[:, 0], (num_heads, 1, 1))  # (heads * batch, n, n)
    heads, _ = attention(Q, K, V, mask)  # (batch * heads, n, d_k)
    heads = heads.reshape(batch, num_heads, n, d_model // num_heads)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("mask-batch-on-head-axis", "multi_head.multi_head_attention")
def multi_head_attention_mask_batch_on_head_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: without its axis of size 1, the mask's batch lines up with the heads."""
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]  # (batch, n, n)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("mask-axis-kept-in-loop", "multi_head.multi_head_attention")
def multi_head_attention_mask_axis_kept_in_loop(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the loop over heads has no axis of heads, but the mask still has."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads = []
    for i in range(num_heads):
        head, _ = attention(Q[:, i], K[:, i], V[:, i], mask)
        heads.append(head)  # (batch, batch, n, d_k), if each sequence has a mask
    return np.concatenate(heads, axis=-1) @ W_O


@mistake("mask-for-first-head-only", "multi_head.multi_head_attention")
def multi_head_attention_mask_for_first_head(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: only head 0 is masked."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    if mask is not None:
        first = np.arange(num_heads)[:, None, None] == 0  # (heads, 1, 1)
        mask = mask | ~first  # (heads, n, n) or (batch, heads, n, n)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


# --- projections -------------------------------------------------------------------------------------------


@mistake("weights-applied-transposed", "multi_head.multi_head_attention")
def multi_head_attention_weights_transposed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_Q, W_K and W_V are transposed, as if they were stored as (d_out, d_in)."""
    Q, K, V = (split_heads(X @ W.T, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("projection-transposed", "multi_head.multi_head_attention")
def multi_head_attention_output_transposed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_O is transposed."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O.T  # (batch, n, d_model)


@mistake("value-used-as-key", "multi_head.multi_head_attention")
def multi_head_attention_value_used_as_key(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_V makes the keys as well; W_K is not used."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_V, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("queries-and-keys-swapped", "multi_head.multi_head_attention")
def multi_head_attention_queries_and_keys_swapped(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_K makes the queries and W_Q the keys."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_K, W_Q, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("keys-and-values-exchanged", "multi_head.multi_head_attention")
def multi_head_attention_keys_and_values_exchanged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_V makes the keys and W_K the values."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_V, W_K))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("shared-projection", "multi_head.multi_head_attention")
def multi_head_attention_shared_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_Q makes queries, keys and values."""
    Q = K = V = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("no-projection", "multi_head.multi_head_attention")
def multi_head_attention_no_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the tokens themselves are queries, keys and values."""
    Q = K = V = split_heads(X, num_heads)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("nonlinear-projection", "multi_head.multi_head_attention")
def multi_head_attention_nonlinear_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: negative entries of queries, keys and values are cut off."""
    projected = (np.maximum(X @ W, 0) for W in (W_Q, W_K, W_V))  # (batch, n, d_model)
    Q, K, V = (split_heads(features, num_heads) for features in projected)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("no-output-projection", "multi_head.multi_head_attention")
def multi_head_attention_no_output_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the heads are returned side by side, without W_O."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads)  # (batch, n, d_model)


@mistake("input-sliced-per-head", "multi_head.multi_head_attention")
def multi_head_attention_input_sliced(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: a head sees only its own slice of the features of `X`."""
    d_k = X.shape[-1] // num_heads
    heads = []
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (X[..., own] @ W[own, own] for W in (W_Q, W_K, W_V))  # (batch, n, d_k)
        head, _ = attention(Q, K, V, for_one_head(mask))  # (batch, n, d_k)
        heads.append(head)
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)


@mistake("same-columns-for-every-head", "multi_head.multi_head_attention")
def multi_head_attention_same_columns(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: every head takes the first d_k columns of the weights."""
    d_k = X.shape[-1] // num_heads
    Q, K, V = (X @ W[:, :d_k] for W in (W_Q, W_K, W_V))  # (batch, n, d_k)
    heads = []
    for _ in range(num_heads):
        head, _ = attention(Q, K, V, for_one_head(mask))  # (batch, n, d_k)
        heads.append(head)
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)


@mistake("weights-reshaped-without-transpose", "multi_head.multi_head_attention")
def multi_head_attention_weights_reshaped(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: reshaping to (heads, d_model, d_k) cuts the weights into blocks of rows, not of columns."""
    d_model = X.shape[-1]
    parts = (num_heads, d_model, d_model // num_heads)
    Q, K, V = (X[:, None] @ W.reshape(parts) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("fused-qkv-misread", "multi_head.multi_head_attention")
def multi_head_attention_fused_qkv_misread(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: [W_Q W_K W_V] lies side by side, but is read as if each head had its own three in a row."""
    batch, n, d_model = X.shape
    QKV = X @ np.concatenate([W_Q, W_K, W_V], axis=1)  # (batch, n, 3 * d_model)
    QKV = QKV.reshape(batch, n, num_heads, 3, d_model // num_heads)
    Q, K, V = QKV.transpose(3, 0, 2, 1, 4)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("residual-added", "multi_head.multi_head_attention")
def multi_head_attention_residual_added(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the tokens are added to the output."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return X + combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("weights-returned-too", "multi_head.multi_head_attention")
def multi_head_attention_weights_returned_too(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: a pair is returned in place of the output alone."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, weights = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    return combine_heads(heads) @ W_O, weights  # (batch, n, d_model), (batch, heads, n, n)


# --- heads -------------------------------------------------------------------------------------------------


@mistake("split-without-transpose", "multi_head.multi_head_attention")
def multi_head_attention_split_without_transpose(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: queries, keys and values are reshaped into heads at once, without moving an axis."""
    Q, K, V = (X @ W for W in (W_Q, W_K, W_V))  # (batch, n, d_model)
    Q, K, V = (split_heads_without_transpose(x, num_heads) for x in (Q, K, V))
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("merge-without-transpose", "multi_head.multi_head_attention")
def multi_head_attention_merge_without_transpose(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the heads are reshaped into features at once, without moving an axis back."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


@mistake("heads-fold-by-reshape", "multi_head.multi_head_attention")
def multi_head_attention_fold_by_reshape(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: heads are cut and put together by reshapes that undo each other, but tokens are mixed in between."""
    Q, K, V = (X @ W for W in (W_Q, W_K, W_V))  # (batch, n, d_model)
    Q, K, V = (split_heads_without_transpose(x, num_heads) for x in (Q, K, V))
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


@mistake("heads-interleaved", "multi_head.multi_head_attention")
def multi_head_attention_interleaved(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: head i works on the columns i, i + heads, …, and writes into them."""
    Q, K, V = (split_heads_interleaved(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads_interleaved(heads) @ W_O  # (batch, n, d_model)


@mistake("batch-and-heads-swapped", "multi_head.multi_head_attention")
def multi_head_attention_batch_and_heads_swapped(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: heads come first, and are put together as if the batch did."""
    batch, n, d_model = X.shape
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]  # (batch, n, n), beside scores (heads, batch, n, n)
    Q, K, V = (split_heads_batch_and_heads_swapped(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    heads, _ = attention(Q, K, V, mask)  # (heads, batch, n, d_k)
    heads = heads.reshape(batch, num_heads, n, d_model // num_heads)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("attention-between-heads", "multi_head.multi_head_attention")
def multi_head_attention_between_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: within each token, the heads attend to one another."""
    Q, K, V = (
        split_heads_axis_not_moved(X @ W, num_heads) for W in (W_Q, W_K, W_V)
    )  # (batch, n, heads, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, n, heads, d_k)
    return heads.reshape(X.shape) @ W_O  # (batch, n, d_model)


@mistake("heads-averaged", "multi_head.multi_head_attention")
def multi_head_attention_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: what the heads contribute is averaged, not added up."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    blocks = W_O.reshape(num_heads, -1, W_O.shape[1])  # (heads, d_k, d_model)
    return np.mean(heads @ blocks, axis=1)  # (batch, n, d_model)


@mistake("heads-max-pooled", "multi_head.multi_head_attention")
def multi_head_attention_max_pooled(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: of what the heads contribute, the largest is taken, entry by entry."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    blocks = W_O.reshape(num_heads, -1, W_O.shape[1])  # (heads, d_k, d_model)
    return np.max(heads @ blocks, axis=1)  # (batch, n, d_model)


@mistake("heads-summed", "multi_head.multi_head_attention")
def multi_head_attention_summed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the heads are added before W_O, so they share one block of its rows."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return np.sum(heads, axis=1) @ W_O[: heads.shape[-1]]  # (batch, n, d_model)


@mistake("weights-averaged-over-heads", "multi_head.multi_head_attention")
def multi_head_attention_weights_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the weights are averaged over the heads, and all heads use the average."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    _, weights = attention(Q, K, V, mask)  # (batch, heads, n, n)
    heads = np.mean(weights, axis=1, keepdims=True) @ V  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("num-heads-ignored", "multi_head.multi_head_attention")
def multi_head_attention_one_wide_head(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: one head over all features; `num_heads` has no effect."""
    heads, _ = attention(X @ W_Q, X @ W_K, X @ W_V, for_one_head(mask))  # (batch, n, d_model)
    return heads @ W_O  # (batch, n, d_model)


@mistake("mask-batch-on-head-axis", "multi_head.multi_head_attention", form="squeezed")
def multi_head_attention_mask_batch_on_head_axis_squeezed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: a mask loses all axes of size 1, which it needs to line up with the scores."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    if mask is not None:
        mask = np.squeeze(mask)
    return combine_heads(attention(Q, K, V, mask)[0]) @ W_O  # (batch, n, d_model)


# --- mistakes in one head, in a layer of such heads --------------------------------------------------------

for slug in (
    "no-max-subtraction",
    "global-max-subtraction",
    "softmax-whole-matrix",
    "softmax-over-queries",
    "softmax-over-heads",
    "keepdims-forgotten",
    "normalised-without-exponential",
    "softmax-not-normalised",
    "sigmoid-instead-of-softmax",
    "softmax-twice",
    "transpose-all-axes",
    "weights-transposed",
    "keys-used-as-values",
    "scores-applied-to-values",
    "no-scale",
    "scale-by-dk",
    "scale-multiplied",
    "scale-by-sequence-length",
    "scale-by-axis-one",
    "scale-after-softmax",
    "cosine-scores",
    "mask-no-effect",
    "mask-inverted",
    "mask-after-softmax",
    "masked-scores-zero",
    "mask-fill-tiny",
    "mask-fill-with-smallest-score",
    "mask-fill-not-negative-enough",
    "mask-added-as-0-1",
    "epsilon-in-denominator",
    "zero-times-infinity",
    "none-not-handled",
    "mask-truth-value",
    "mask-transposed",
    "first-mask-for-all-sequences",
    "always-causal",
):
    mistake(slug, "multi_head.multi_head_attention")(
        multi_head_around(variants("single_head", "attention")[slug])
    )

for slug, pool in POOLS.items():
    law(slug, "multi_head.multi_head_attention")(pooled(pool, 5))


# --- other forms -------------------------------------------------------------------------------------------


@mistake("no-output-projection", "multi_head.multi_head_attention", form="one-head")
def multi_head_attention_one_head_as_it_is(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: a single head is returned without W_O."""
    if num_heads == 1:
        W_O = np.eye(X.shape[-1])
    return right.multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads, mask)


@mistake("weights-applied-transposed", "multi_head.multi_head_attention", form="all-four")
def multi_head_attention_all_weights_transposed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: all four weights are transposed."""
    return right.multi_head_attention(X, W_Q.T, W_K.T, W_V.T, W_O.T, num_heads, mask)


@mistake("weights-applied-transposed", "multi_head.multi_head_attention", form="queries-and-keys")
def multi_head_attention_queries_and_keys_transposed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_Q and W_K are transposed."""
    return right.multi_head_attention(X, W_Q.T, W_K.T, W_V, W_O, num_heads, mask)


@mistake("input-sliced-per-head", "multi_head.multi_head_attention", form="shared-block")
def multi_head_attention_shared_block(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: a head sees only its own slice of `X`, and all heads share the first block of the weights."""
    d_k = X.shape[-1] // num_heads
    slices = split_heads(X, num_heads)  # (batch, heads, n, d_k)
    Q, K, V = (slices @ W[:d_k, :d_k] for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    return combine_heads(attention(Q, K, V, mask)[0]) @ W_O  # (batch, n, d_model)


@mistake("same-columns-for-every-head", "multi_head.multi_head_attention", form="keys")
def multi_head_attention_same_key_columns(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: every head takes the first d_k columns of W_K."""
    K = np.tile(X @ W_K[:, : X.shape[-1] // num_heads], num_heads)  # (batch, n, d_model)
    Q, K, V = (split_heads(features, num_heads) for features in (X @ W_Q, K, X @ W_V))
    return combine_heads(attention(Q, K, V, mask)[0]) @ W_O  # (batch, n, d_model)


@mistake("first-mask-for-all-sequences", "multi_head.multi_head_attention", form="padding")
def multi_head_attention_first_padding_for_all(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: every sequence gets the padding of the first one."""
    first = mask[0, 0] if mask is not None and mask.ndim == 4 and mask.shape[2] == 1 else mask
    return right.multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads, first)


mistake("no-scale", "multi_head.multi_head_attention", form="under-a-mask")(
    multi_head_around(forms("single_head", "attention")["no-scale/under-a-mask"])
)


# --- laws of one head --------------------------------------------------------------------------------------

ITEM = "multi_head.multi_head_attention"


def scores_of(step: Any) -> Array | None:
    """The scores of a recorded call."""
    X, W_Q, W_K, num_heads = (given(step, place, name) for place, name in HOLD_SCORES)
    if X is None:
        return None
    Q, K = (split_heads(X @ W, num_heads) for W in (W_Q, W_K))  # (batch, heads, n, d_k)
    return Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])


HOLD_SCORES = ((0, "X"), (1, "W_Q"), (2, "W_K"), (5, "num_heads"))
HEAD = one_head.Head(one_head.in_layer, scores_of, lambda step: given(step, 6, "mask"))
one_head.tell(ITEM, HEAD, one_head.SOFTMAX | one_head.OF_A_LAYER, one_head.anything)
one_head.tell(ITEM, HEAD, one_head.SEVERAL_ROWS, one_head.rows)
one_head.tell(ITEM, HEAD, one_head.LARGE, one_head.large)
one_head.tell(ITEM, HEAD, one_head.SCALE_OF_A_LAYER, one_head.anything)
one_head.tell(ITEM, HEAD, one_head.MASK_OF_A_LAYER, one_head.masked)
one_head.tell(ITEM, HEAD, one_head.NO_MASK, one_head.unmasked)
law("keepdims-forgotten", ITEM)(one_head.sums_without_axis)
law("input-changed-in-place", ITEM)(one_head.changes_only(right.multi_head_attention))


def spread(X: Array, *rest: Any, **named: Any) -> list[Any]:
    """The arguments of a layer that remembers what it asks with; only the mask may be named."""
    return [X, X, *rest, *named.values()]


layers.tell(ITEM, right.multi_head_attention, spread, layers.wrong_layers())
