"""Mistakes of other families as they look in the items of `real_heads`: by item and slug.

The functions made here are right but for the piece that they are made of.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mha_lib import real_heads as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls import reading_heads
from mha_lib.pitfalls.attention import attention_keys_used_as_values
from mha_lib.pitfalls.heads import combine_heads_without_transpose, split_heads_without_transpose
from mha_lib.pitfalls.mask import (
    attention_first_mask_for_all_sequences,
    attention_mask_added_as_0_1,
    attention_mask_after_softmax,
    attention_mask_inverted,
    attention_mask_no_effect,
    attention_mask_transposed,
    attention_mask_truth_value,
    attention_masked_scores_zero,
    attention_none_not_handled,
)
from mha_lib.pitfalls.scale import attention_no_scale, attention_scale_by_dk
from mha_lib.pitfalls.softmax import attention_softmax_over_queries

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]
Function = Callable[..., Any]


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


def bert_without_dense(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the heads, side by side, are the output."""
    d_model = x.shape[-1]
    same = {"weight": np.eye(d_model), "bias": np.zeros(d_model)}
    return right.bert_attention(x, {**weights, "dense": same}, num_heads, mask)


def bert_with_residual(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: x is added to the output."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return x + output, maps


def bert_output_only(x: Array, weights: Weights, num_heads: int, mask: Array | None = None) -> Array:
    """Wrong: the maps are not returned."""
    return right.bert_attention(x, weights, num_heads, mask)[0]


def bert_maps_first(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: first the maps, then the output."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return maps, output


def queries_and_keys_swapped() -> None:
    """Wrong: the weights of the keys make the queries, and those of the queries the keys."""


def keys_and_values_exchanged() -> None:
    """Wrong: the weights of the values make the keys, and those of the keys the values."""


def value_used_as_key() -> None:
    """Wrong: the weights of the values make the keys as well."""


def bert_changes_its_input(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: x is centred in place, in the caller's array."""
    result = right.bert_attention(x, weights, num_heads, mask)
    x -= x.mean()
    return result


def offset_changes_its_input(attention_weights: Array, offset: int) -> Array:
    """Wrong: everything but the diagonal becomes 0 in the caller's array."""
    n = attention_weights.shape[-1]
    attention_weights *= np.eye(n, k=offset)
    return attention_weights.sum(axis=(1, 2)) / (n - abs(offset))


def keep_changes_its_input(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the columns of the silent heads become 0 in the caller's weights."""
    W = weights["dense"]["weight"]
    W *= np.repeat(np.isin(np.arange(num_heads), keep), W.shape[1] // num_heads)
    return right.bert_attention(x, weights, num_heads)[0]


def importance_changes_its_input(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the columns of each head are set to 0 in the caller's weights, and only the last ones restored."""
    importance = right.head_importance(x, weights, num_heads)
    W = weights["dense"]["weight"]
    W[:, : W.shape[1] - W.shape[1] // num_heads] = 0.0
    return importance


def keep_from(bert: Function) -> Function:
    """`keep_heads` around another `bert_attention`."""

    def keep_heads(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Any:
        W = weights["dense"]["weight"]
        kept = np.repeat(np.isin(np.arange(num_heads), keep), W.shape[1] // num_heads)
        dense = {"weight": W * kept, "bias": weights["dense"]["bias"]}
        return bert(x, {**weights, "dense": dense}, num_heads)[0]

    keep_heads.__doc__ = bert.__doc__
    return keep_heads


def importance_from(keep: Function) -> Function:
    """`head_importance` around another `keep_heads`."""

    def head_importance(x: Array, weights: Weights, num_heads: int) -> Array:
        full = keep(x, weights, num_heads, range(num_heads))
        rest = [[i for i in range(num_heads) if i != head] for head in range(num_heads)]
        changes = [full - keep(x, weights, num_heads, others) for others in rest]
        return np.array([np.linalg.norm(change, axis=-1).mean() for change in changes])

    head_importance.__doc__ = keep.__doc__
    return head_importance


# Pieces of `bert_attention` that are wrong, by the slug of their mistake.
PIECES: Mapping[str, tuple[str, Function]] = {
    "softmax-over-queries": ("attend", attention_softmax_over_queries),
    "keys-used-as-values": ("attend", attention_keys_used_as_values),
    "no-scale": ("attend", attention_no_scale),
    "scale-by-dk": ("attend", attention_scale_by_dk),
    "split-without-transpose": ("split", split_heads_without_transpose),
    "merge-without-transpose": ("combine", combine_heads_without_transpose),
}
MASKS: Mapping[str, Function] = {
    "mask-no-effect": attention_mask_no_effect,
    "mask-inverted": attention_mask_inverted,
    "mask-after-softmax": attention_mask_after_softmax,
    "masked-scores-zero": attention_masked_scores_zero,
    "mask-added-as-0-1": attention_mask_added_as_0_1,
    "mask-transposed": attention_mask_transposed,
    "first-mask-for-all-sequences": attention_first_mask_for_all_sequences,
    "none-not-handled": attention_none_not_handled,
    "mask-truth-value": attention_mask_truth_value,
}
BERT: Mapping[str, Function] = {
    **{slug: bert_from(wrong, **{piece: wrong}) for slug, (piece, wrong) in PIECES.items()},
    "queries-and-keys-swapped": bert_from(queries_and_keys_swapped, names=("key", "query", "value")),
    "keys-and-values-exchanged": bert_from(keys_and_values_exchanged, names=("query", "value", "key")),
    "value-used-as-key": bert_from(value_used_as_key, names=("query", "value", "value")),
}
# Mistakes in `bert_attention` that the items built on it take over, so far as they show there.
INHERITED = {
    **BERT,
    "stored-weights-not-transposed": reading_heads.bert_weights_not_transposed,
    "biases-forgotten": reading_heads.bert_biases_forgotten,
}

VARIANTS: Mapping[str, Mapping[str, Function]] = {
    "bert_attention": {
        **BERT,
        **{slug: bert_from(wrong, attend=wrong) for slug, wrong in MASKS.items()},
        "no-output-projection": bert_without_dense,
        "residual-added": bert_with_residual,
        "only-output-returned": bert_output_only,
        "tuple-order-swapped": bert_maps_first,
        "input-changed-in-place": bert_changes_its_input,
    },
    "offset_score": {"input-changed-in-place": offset_changes_its_input},
    "keep_heads": {
        **{slug: keep_from(wrong) for slug, wrong in INHERITED.items()},
        "input-changed-in-place": keep_changes_its_input,
    },
    "head_importance": {
        **{slug: importance_from(keep_from(wrong)) for slug, wrong in INHERITED.items()},
        "input-changed-in-place": importance_changes_its_input,
    },
}
