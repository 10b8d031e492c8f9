"""Mistakes in `keep_heads`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mha_lib import real_heads as right
from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.code.real_heads.bert_attention import INHERITED, heads_side_by_side

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]
Function = Callable[..., Any]


@mistake("kept-heads-removed", "real_heads.keep_heads")
def kept_heads_removed(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the listed heads are the ones that are silent."""
    others = [head for head in range(num_heads) if head not in keep]
    return right.keep_heads(x, weights, num_heads, others)


@mistake("kept-heads-counted-from-one", "real_heads.keep_heads")
def kept_heads_counted_from_one(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the first head is taken to be number 1."""
    return right.keep_heads(x, weights, num_heads, [head - 1 for head in keep])


@mistake("kept-first-listed-only", "real_heads.keep_heads")
def kept_first_listed_only(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: one head contributes, however many are listed."""
    return right.keep_heads(x, weights, num_heads, keep[:1])


@mistake("kept-interleaved", "real_heads.keep_heads")
def kept_interleaved(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: head i is taken to own every num_heads-th column."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    kept = np.isin(np.arange(heads.shape[-1]) % num_heads, keep)
    return heads * kept @ weights["dense"]["weight"].T + weights["dense"]["bias"]


@mistake("rows-of-dense-silenced", "real_heads.keep_heads")
def kept_rows_of_dense(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: rows of `dense` are silenced, but these belong to the features of the output."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    d_k = heads.shape[-1] // num_heads
    kept = np.repeat(np.isin(np.arange(num_heads), keep), d_k)
    W = weights["dense"]["weight"] * kept[:, None]
    return heads @ W.T + weights["dense"]["bias"]


@mistake("dense-bias-with-each-head", "real_heads.keep_heads")
def kept_dense_bias_with_each_head(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: outputs of single heads are summed, and each brings the bias of `dense` along."""
    outputs = [right.keep_heads(x, weights, num_heads, [head]) for head in keep]
    return np.sum(outputs, axis=0)


@mistake("dense-bias-forgotten", "real_heads.keep_heads")
def kept_without_dense_bias(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the bias of `dense` is left out."""
    return right.keep_heads(x, weights, num_heads, keep) - weights["dense"]["bias"]


@mistake("value-bias-left", "real_heads.keep_heads")
def kept_value_bias_left(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the weights of the values are silenced, but not their bias, so that silent heads still add it."""
    W = weights["value"]["weight"]
    kept = np.repeat(np.isin(np.arange(num_heads), keep), len(W) // num_heads)
    value = {"weight": W * kept[:, None], "bias": weights["value"]["bias"]}
    return right.bert_attention(x, {**weights, "value": value}, num_heads)[0]


@mistake("queries-silenced", "real_heads.keep_heads")
def kept_queries_silenced(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the queries are silenced, and a head without a question takes the mean of all values."""
    W = weights["query"]["weight"]
    kept = np.repeat(np.isin(np.arange(num_heads), keep), len(W) // num_heads)
    query = {"weight": W * kept[:, None], "bias": weights["query"]["bias"] * kept}
    return right.bert_attention(x, {**weights, "query": query}, num_heads)[0]


@mistake("kept-heads-rescaled", "real_heads.keep_heads")
def kept_rescaled(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: what is left is enlarged to make up for what is gone, as dropout does."""
    bias = weights["dense"]["bias"]
    kept = right.keep_heads(x, weights, num_heads, keep) - bias
    return kept * num_heads / len(keep) + bias


@mistake("input-changed-in-place", "real_heads.keep_heads")
def keep_changes_its_input(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the columns of the silent heads become 0 in the caller's weights."""
    W = weights["dense"]["weight"]
    W *= np.repeat(np.isin(np.arange(num_heads), keep), W.shape[1] // num_heads)
    return right.bert_attention(x, weights, num_heads)[0]


def keep_from(bert: Function) -> Function:
    """`keep_heads` around another `bert_attention`."""

    def keep_heads(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Any:
        W = weights["dense"]["weight"]
        kept = np.repeat(np.isin(np.arange(num_heads), keep), W.shape[1] // num_heads)
        dense = {"weight": W * kept, "bias": weights["dense"]["bias"]}
        return bert(x, {**weights, "dense": dense}, num_heads)[0]

    keep_heads.__doc__ = bert.__doc__
    return keep_heads


for slug, bert in INHERITED.items():
    mistake(slug, "real_heads.keep_heads")(keep_from(bert))
