"""Mistakes in `bert_attention`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mha_lib import real_heads as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import mistake, variants
from mha_lib.pitfalls.pieces import (
    FURTHER_PIECES,
    MASKING,
    PARTLY_SPLIT,
    PIECES,
    first_head_for_all,
    register,
)

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]
Function = Callable[..., Any]


@mistake("padding-masks-queries-too", "real_heads.bert_attention")
def bert_padding_masks_queries_too(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: padding queries lose all their keys, so that their weights are all equal."""
    Q, K, V = (
        split_heads(x @ weights[name]["weight"].T + weights[name]["bias"], num_heads)
        for name in ("query", "key", "value")
    )  # (batch, heads, n, d_k) each
    if mask is not None and mask.ndim == 4 and mask.shape[2] == 1:
        real = np.swapaxes(mask, -1, -2)  # (batch, 1, n, 1)
        Q, mask = Q * real, mask | ~real  # without a key all scores are the fill value, and so equal
    heads, maps = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    return combine_heads(heads) @ weights["dense"]["weight"].T + weights["dense"]["bias"], maps


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

mistake("heads-interleaved", "real_heads.bert_attention", form="split-and-merged")(
    bert_from(
        variants("multi_head", "split_heads")["heads-interleaved"],
        split=variants("multi_head", "split_heads")["heads-interleaved"],
        combine=variants("multi_head", "combine_heads")["heads-interleaved"],
    )
)


mistake("split-without-transpose", "real_heads.bert_attention", form="and-merged-by-reshape")(
    bert_from(
        variants("multi_head", "split_heads")["split-without-transpose"],
        split=variants("multi_head", "split_heads")["split-without-transpose"],
        combine=variants("multi_head", "combine_heads")["merge-without-transpose"],
    )
)


@mistake("heads-interleaved", "real_heads.bert_attention", form="bias-of-values")
def bert_bias_interleaved(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the bias of the values is cut as (d_k, heads)."""
    value = weights["value"]
    bias = value["bias"].reshape(-1, num_heads).T.ravel()  # (d_model,)
    return right.bert_attention(x, {**weights, "value": {**value, "bias": bias}}, num_heads, mask)


# What the items built on `bert_attention` take over, so far as it shows there.
INHERITED = {
    **MADE_OF_PIECES,
    "stored-weights-not-transposed": bert_weights_not_transposed,
    "biases-forgotten": bert_biases_forgotten,
}


# --- forms -------------------------------------------------------------------------------------------------


def with_linear(names: Sequence[str], change: Function) -> Function:
    """`bert_attention` that changes weight and bias of the linear layers of these names before it uses them."""

    def bert_attention(
        x: Array, weights: Weights, num_heads: int, mask: Array | None = None
    ) -> tuple[Array, Array]:
        wrong = {
            name: change(each["weight"], each["bias"]) if name in names else each
            for name, each in weights.items()
        }
        return right.bert_attention(x, wrong, num_heads, mask)

    return bert_attention


def transposed(W: Array, b: Array) -> dict[str, Array]:
    """A weight that is used as it is stored."""
    return {"weight": W.T, "bias": b}


def without_bias(W: Array, b: Array) -> dict[str, Array]:
    """A layer whose bias is forgotten."""
    return {"weight": W, "bias": 0 * b}


def with_bias_before(W: Array, b: Array) -> dict[str, Array]:
    """A layer that adds its bias to what goes in."""
    return {"weight": W, "bias": W @ b}


QKV = ("query", "key", "value")
LINEAR: dict[str, Function] = {
    **{
        f"stored-weights-not-transposed/{'-'.join(names)}": with_linear(names, transposed)
        for names in (QKV, ("query", "key"), ("query",), ("key",), ("value",))
    },
    **{
        f"biases-forgotten/{'-'.join(names)}": with_linear(names, without_bias)
        for names in (QKV, ("query", "key"), ("query",), ("value",))
    },
    **{
        f"bias-before-weight/{'-'.join(names)}": with_linear(names, with_bias_before)
        for names in (QKV, ("value",), ("dense",))
    },
}
for name, bert in LINEAR.items():
    slug, _, form = name.partition("/")
    mistake(slug, "real_heads.bert_attention", form=form)(bert)


def with_result(change: Function) -> Function:
    """`bert_attention` that changes its two results before it returns them."""

    def bert_attention(x: Array, weights: Weights, num_heads: int, mask: Array | None = None) -> Any:
        return change(*right.bert_attention(x, weights, num_heads, mask))

    return bert_attention


for form, change in {
    "axis-kept": lambda output, maps: (output, maps.mean(axis=1, keepdims=True)),
    "repeated": lambda output, maps: (output, maps.mean(axis=1, keepdims=True).repeat(maps.shape[1], axis=1)),
    "first": lambda output, maps: (output, maps[:, 0]),
    "summed": lambda output, maps: (output, maps.sum(axis=1)),
}.items():
    mistake("maps-averaged-over-heads", "real_heads.bert_attention", form=form)(with_result(change))


def masked_for_the_output_only(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: masked after the softmax, and the weights that are returned are those before."""
    _, weights = attention(Q, K, V)
    return (weights if mask is None else weights * mask) @ V, weights


def with_mask(change: Function) -> Function:
    """`attention` under another mask than the one that is given."""
    return lambda Q, K, V, mask=None: attention(Q, K, V, None if mask is None else change(mask))


def no_other(mask: Array) -> Array:
    """No mask for one sequence each."""
    return mask if mask.ndim == 2 else np.ones_like(mask)


def no_square(mask: Array) -> Array:
    """No mask for all sequences."""
    return mask if mask.ndim != 2 else np.ones_like(mask)


def on_head_axis(mask: Array) -> Array:
    """The masks of the sequences on the axis of the heads."""
    return mask if mask.ndim == 2 else mask[:, 0]


def for_first_head(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: only the first head is masked."""
    first = np.arange(Q.shape[1])[:, None, None] == 0  # (heads, 1, 1)
    return attention(Q, K, V, None if mask is None else mask | ~first)


FURTHER = {name: piece for name, piece in FURTHER_PIECES.items() if piece[0] != "project"} | {
    **PARTLY_SPLIT,
    **{
        f"same-columns-for-every-head/{form}": ("attend", first_head_for_all(places))
        for form, places in {"all-three": (0, 1, 2), "keys": (1,), "keys-and-values": (1, 2)}.items()
    },
    "always-causal": ("attend", variants("single_head", "attention")["always-causal"]),
}
register(
    {
        **FURTHER,
        **MASKING,
        "mask-after-softmax/output-only": ("attend", masked_for_the_output_only),
        "mask-no-effect/of-one-sequence": ("attend", with_mask(no_other)),
        "mask-no-effect/of-all-sequences": ("attend", with_mask(no_square)),
        "mask-batch-on-head-axis/squeezed": ("attend", with_mask(on_head_axis)),
        "mask-for-first-head-only/all": ("attend", for_first_head),
        "weights-returned-before-softmax": (
            "attend",
            variants("single_head", "attention")["weights-returned-before-softmax"],
        ),
    },
    "real_heads.bert_attention",
    bert_from,
)


@mistake("residual-added", "real_heads.bert_attention", form="before-dense")
def bert_residual_before_dense(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: x is added to the heads, before `dense`."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return output + x @ weights["dense"]["weight"].T, maps


@mistake("residual-added", "real_heads.bert_attention", form="and-norm")
def bert_residual_and_norm(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: x is added to the output, and the sum is normalised."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    total = x + output  # (batch, n, d_model)
    mean, variance = total.mean(axis=-1, keepdims=True), total.var(axis=-1, keepdims=True)
    return (total - mean) / np.sqrt(variance + 1e-12), maps


@mistake("num-heads-ignored", "real_heads.bert_attention", form="one-wide-head")
def bert_one_wide_head(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: all heads in one."""
    return right.bert_attention(x, weights, 1, mask)


def shared_projection() -> None:
    """Wrong: the weights of the queries make keys and values as well."""


mistake("shared-projection", "real_heads.bert_attention", form="queries")(
    bert_from(shared_projection, names=("query", "query", "query"))
)

# By slug and form, what the items built on `bert_attention` take over of these.
INHERITED_FORMS: dict[str, Function] = {
    **{name: bert for name, bert in LINEAR.items() if not name.startswith("bias-before")},
    **{
        name if "/" in name else f"{name}/pieces": bert_from(wrong, **{piece: wrong})
        for name, (piece, wrong) in FURTHER.items()
        if name not in INHERITED
    },
    "dense-not-transposed/inherited": bert_dense_not_transposed,
    "bias-before-weight/inherited": bert_bias_before_weight,
    "num-heads-ignored/one-wide-head": bert_one_wide_head,
}
