"""Mistakes in `keep_heads`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mha_lib import real_heads as right
from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.code.real_heads.bert_attention import INHERITED, INHERITED_FORMS, heads_side_by_side

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


@mistake("kept-heads-out-of-order", "real_heads.keep_heads")
def kept_out_of_order(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the heads stand in the order of the list, their columns of `dense` in ascending order."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    listed = columns_of(keep, heads.shape[-1] // num_heads)
    W = weights["dense"]["weight"][:, sorted(listed)]
    return heads[..., listed] @ W.T + weights["dense"]["bias"]


def columns_of(heads: Sequence[int], d_k: int) -> list[int]:
    """The columns of these heads, in this order."""
    return [column for head in heads for column in range(head * d_k, (head + 1) * d_k)]


# --- forms -------------------------------------------------------------------------------------------------


def from_columns(heads_of: Function, dense_of: Function) -> Function:
    """`keep_heads` that takes the columns of some heads, and those of `dense` for some."""

    def keep_heads(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
        heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
        d_k = heads.shape[-1] // num_heads
        W = weights["dense"]["weight"][:, columns_of(dense_of(keep), d_k)]
        return heads[..., columns_of(heads_of(keep), d_k)] @ W.T + weights["dense"]["bias"]

    return keep_heads


def with_bias(change: Function) -> Function:
    """`keep_heads` that makes something else of what the heads add and of the bias of `dense`."""

    def keep_heads(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
        bias = weights["dense"]["bias"]
        return change(right.keep_heads(x, weights, num_heads, keep) - bias, bias, len(keep), num_heads)

    return keep_heads


def silenced(names: Sequence[str], biases: bool) -> Function:
    """`keep_heads` that silences features of other layers than `dense`, with or without their biases."""

    def keep_heads(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
        kept = np.repeat(np.isin(np.arange(num_heads), keep), x.shape[-1] // num_heads)
        wrong = {
            name: {
                "weight": weights[name]["weight"] * kept[:, None],
                "bias": weights[name]["bias"] * (kept if biases else 1),
            }
            for name in names
        }
        return right.bert_attention(x, {**weights, **wrong}, num_heads)[0]

    return keep_heads


def outputs_silenced(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: features of the output are silenced."""
    kept = np.repeat(np.isin(np.arange(num_heads), keep), x.shape[-1] // num_heads)
    return right.bert_attention(x, weights, num_heads)[0] * kept


def dense_not_transposed(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the weight of `dense` is used as it is stored."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    kept = np.repeat(np.isin(np.arange(num_heads), keep), heads.shape[-1] // num_heads)
    return heads * kept @ weights["dense"]["weight"] + weights["dense"]["bias"]


FORMS: dict[str, Function] = {
    "dense-not-transposed/heads-silenced": dense_not_transposed,
    "kept-heads-out-of-order/dense": from_columns(sorted, list),
    "kept-heads-out-of-order/first-columns": from_columns(list, lambda keep: range(len(keep))),
    "kept-first-listed-only/last": from_columns(lambda keep: keep[-1:], lambda keep: keep[-1:]),
    "dense-bias-with-each-head/mean": with_bias(lambda added, bias, kept, heads: added / kept + bias),
    "dense-bias-with-each-head/share": with_bias(
        lambda added, bias, kept, heads: added + bias * kept / heads
    ),
    "dense-bias-with-each-head/all": with_bias(lambda added, bias, kept, heads: added + bias * heads),
    "kept-heads-rescaled/and-bias": with_bias(lambda added, bias, kept, heads: (added + bias) * heads / kept),
    "queries-silenced/keys": silenced(["key"], biases=True),
    "queries-silenced/queries-and-keys": silenced(["query", "key"], biases=True),
    "queries-silenced/weights-alone": silenced(["query"], biases=False),
    "value-bias-left/all-three": silenced(["query", "key", "value"], biases=False),
    "rows-of-dense-silenced/outputs": outputs_silenced,
    **{name: keep_from(bert) for name, bert in INHERITED_FORMS.items()},
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "real_heads.keep_heads", form=form)(code)


@mistake("kept-heads-counted-from-one", "real_heads.keep_heads", form="one-too-far")
def kept_one_too_far(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the head behind each listed one contributes; behind the last there is none."""
    return right.keep_heads(x, weights, num_heads, [head + 1 for head in keep])
