"""Mistakes in `bert_attention`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mha_lib import real_heads as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import mistake, variants
from mha_lib.pitfalls.pieces import PIECES

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]
Function = Callable[..., Any]


@mistake("stored-weights-not-transposed", "real_heads.bert_attention")
def bert_weights_not_transposed(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: `x @ W`, but the weights are stored as (out, in)."""
    Q, K, V = (
        split_heads(x @ weights[name]["weight"] + weights[name]["bias"], num_heads)
        for name in ("query", "key", "value")
    )  # (batch, heads, n, d_k) each
    heads, maps = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    W_O, b_O = weights["dense"]["weight"], weights["dense"]["bias"]
    return combine_heads(heads) @ W_O + b_O, maps


@mistake("dense-not-transposed", "real_heads.bert_attention")
def bert_dense_not_transposed(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the first three weights are transposed, the last one is not."""
    output, maps = heads_side_by_side(x, weights, num_heads, mask)
    return output @ weights["dense"]["weight"] + weights["dense"]["bias"], maps


@mistake("biases-forgotten", "real_heads.bert_attention")
def bert_biases_forgotten(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: no bias is added anywhere."""
    bare = {name: {**pair, "bias": np.zeros(1)} for name, pair in weights.items()}
    return right.bert_attention(x, bare, num_heads, mask)


@mistake("dense-bias-forgotten", "real_heads.bert_attention")
def bert_dense_bias_forgotten(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the last bias is not added."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return output - weights["dense"]["bias"], maps


@mistake("bias-before-weight", "real_heads.bert_attention")
def bert_bias_before_weight(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the bias is added to the input, before the weight."""
    moved = {
        name: {"weight": each["weight"], "bias": each["weight"] @ each["bias"]}
        for name, each in weights.items()
    }
    return right.bert_attention(x, moved, num_heads, mask)


@mistake("maps-averaged-over-heads", "real_heads.bert_attention")
def bert_one_map_for_all_heads(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the maps are averaged over the heads before they are returned."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return output, maps.mean(axis=1)


def heads_side_by_side(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """All heads side by side, `(batch, n, d_model)`, before `dense`; and the maps."""
    Q, K, V = (
        split_heads(x @ weights[name]["weight"].T + weights[name]["bias"], num_heads)
        for name in ("query", "key", "value")
    )
    heads, maps = attention(Q, K, V, mask)
    return combine_heads(heads), maps


def bert_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    names: Any = ("query", "key", "value"),
) -> Function:
    """`bert_attention` made of these pieces, of which one is wrong."""

    def bert_attention(
        x: Array, weights: Weights, num_heads: int, mask: Array | None = None
    ) -> tuple[Array, Array]:
        Q, K, V = (
            split(x @ weights[name]["weight"].T + weights[name]["bias"], num_heads) for name in names
        )  # (batch, heads, n, d_k) each
        heads, maps = attend(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
        return combine(heads) @ weights["dense"]["weight"].T + weights["dense"]["bias"], maps

    bert_attention.__doc__ = wrong.__doc__
    return bert_attention


@mistake("no-output-projection", "real_heads.bert_attention")
def bert_without_dense(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the heads, side by side, are the output."""
    d_model = x.shape[-1]
    same = {"weight": np.eye(d_model), "bias": np.zeros(d_model)}
    return right.bert_attention(x, {**weights, "dense": same}, num_heads, mask)


@mistake("residual-added", "real_heads.bert_attention")
def bert_with_residual(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: x is added to the output."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return x + output, maps


@mistake("only-output-returned", "real_heads.bert_attention")
def bert_output_only(x: Array, weights: Weights, num_heads: int, mask: Array | None = None) -> Array:
    """Wrong: the maps are not returned."""
    return right.bert_attention(x, weights, num_heads, mask)[0]


@mistake("tuple-order-swapped", "real_heads.bert_attention")
def bert_maps_first(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: first the maps, then the output."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return maps, output


@mistake("dense-bias-with-each-head", "real_heads.bert_attention", form="summed-heads")
def bert_dense_bias_with_each_head(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: outputs of single heads are summed, and each brings the bias of `dense` along."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return output + (num_heads - 1) * weights["dense"]["bias"], maps


def queries_and_keys_swapped() -> None:
    """Wrong: the weights of the keys make the queries, and those of the queries the keys."""


def keys_and_values_exchanged() -> None:
    """Wrong: the weights of the values make the keys, and those of the keys the values."""


def value_used_as_key() -> None:
    """Wrong: the weights of the values make the keys as well."""


@mistake("input-changed-in-place", "real_heads.bert_attention")
def bert_changes_its_input(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: x is centred in place, in the caller's array."""
    result = right.bert_attention(x, weights, num_heads, mask)
    x -= x.mean()
    return result


MADE_OF_PIECES = {
    **{
        slug: bert_from(wrong, **{piece: wrong})
        for slug, (piece, wrong) in PIECES.items()
        if piece != "project"
    },
    "queries-and-keys-swapped": bert_from(queries_and_keys_swapped, names=("key", "query", "value")),
    "keys-and-values-exchanged": bert_from(keys_and_values_exchanged, names=("query", "value", "key")),
    "value-used-as-key": bert_from(value_used_as_key, names=("query", "value", "value")),
}
for slug, bert in MADE_OF_PIECES.items():
    mistake(slug, "real_heads.bert_attention")(bert)

for slug in (
    "mask-no-effect",
    "mask-inverted",
    "mask-after-softmax",
    "masked-scores-zero",
    "mask-added-as-0-1",
    "mask-transposed",
    "first-mask-for-all-sequences",
    "none-not-handled",
    "mask-truth-value",
):
    wrong = variants("single_head", "attention")[slug]
    mistake(slug, "real_heads.bert_attention")(bert_from(wrong, attend=wrong))

# What the items built on `bert_attention` take over, so far as it shows there.
INHERITED = {
    **MADE_OF_PIECES,
    "stored-weights-not-transposed": bert_weights_not_transposed,
    "biases-forgotten": bert_biases_forgotten,
}
