"""Pieces of a layer that are wrong: which piece it is, and what stands in its place."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads
from mha_lib.pitfalls.code import MISTAKES, mistake, variants

Array = np.ndarray


def projected(heads: Array, W_O: Array) -> Array:
    """The heads, side by side, through W_O."""
    return heads @ W_O


def not_projected(heads: Array, W_O: Array) -> Array:
    """Wrong: the heads, side by side, are the output."""
    return heads


# By the slug of the mistake.
PIECES: Mapping[str, tuple[str, Callable[..., Any]]] = {
    **{
        slug: ("attend", variants("single_head", "attention")[slug])
        for slug in ("softmax-over-queries", "keys-used-as-values", "no-scale", "scale-by-dk")
    },
    "no-output-projection": ("project", not_projected),
    "split-without-transpose": ("split", variants("multi_head", "split_heads")["split-without-transpose"]),
    "merge-without-transpose": (
        "combine",
        variants("multi_head", "combine_heads")["merge-without-transpose"],
    ),
}


# --- further pieces, which the book does not show: the grader knows layers that are made of them -------------


def projected_transposed(heads: Array, W_O: Array) -> Array:
    """Wrong: W_O is transposed."""
    return heads @ W_O.T


def queries_and_keys_swapped(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
    """Wrong: the queries are taken for the keys, and the keys for the queries."""
    return attention(K, Q, V, mask)


def keys_and_values_exchanged(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
    """Wrong: the values are taken for the keys, and the keys for the values."""
    return attention(Q, V, K, mask)


def value_used_as_key(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
    """Wrong: the values are the keys as well."""
    return attention(Q, V, V, mask)


def scaled_by_d_model(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
    """Wrong: the scores are divided by the root of the width of all heads together."""
    return attention(Q / np.sqrt(Q.shape[1]), K, V, mask)


def some_split(wrong: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    """`attention`, in which only some of queries, keys and values (0, 1, 2) are split wrongly."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
        split = [
            wrong(combine_heads(heads), heads.shape[1]) if place in places else heads
            for place, heads in enumerate((Q, K, V))
        ]  # (batch, heads, n, d_k) each
        return attention(split[0], split[1], split[2], mask)

    return attend


def first_head_for_all(places: tuple[int, ...]) -> Callable[..., Any]:
    """`attention`, in which all heads have the first one's queries, keys or values (0, 1, 2)."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
        """Wrong: some columns are those of the first head."""
        taken = [
            np.repeat(heads[:, :1], heads.shape[1], axis=1) if place in places else heads
            for place, heads in enumerate((Q, K, V))
        ]  # (batch, heads, n, d_k) each
        return attention(taken[0], taken[1], taken[2], mask)

    return attend


def register(
    pieces: Mapping[str, tuple[str, Callable[..., Any]]], item: str, made_of: Callable[..., Any]
) -> None:
    """Forms of an item that are made of these pieces, except for mistakes that the item has already.

    Args:
        pieces: by the slug of the mistake, and its form if there is one.
        item: `assignment.item`.
        made_of: makes the item's code of the wrong function, for its docstring, and of the piece.
    """
    for name, (piece, wrong) in pieces.items():
        slug, _, form = name.partition("/")
        if form or not MISTAKES.has(slug, item):
            mistake(slug, item, form=form or "pieces")(made_of(wrong, **{piece: wrong}))


_ATTEND, _SPLIT = variants("single_head", "attention"), variants("multi_head", "split_heads")

# By the slug of the mistake, and its form if there is one.
FURTHER_PIECES: Mapping[str, tuple[str, Callable[..., Any]]] = {
    **{
        slug: ("attend", _ATTEND[slug])
        for slug in (
            "softmax-over-heads",
            "softmax-whole-matrix",
            "normalised-without-exponential",
            "softmax-not-normalised",
            "sigmoid-instead-of-softmax",
            "softmax-twice",
            "weights-transposed",
            "scores-applied-to-values",
            "scale-multiplied",
            "scale-by-sequence-length",
            "scale-by-axis-one",
            "scale-after-softmax",
            "cosine-scores",
        )
    },
    "scale-by-d-model": ("attend", scaled_by_d_model),
    "queries-and-keys-swapped": ("attend", queries_and_keys_swapped),
    "keys-and-values-exchanged": ("attend", keys_and_values_exchanged),
    "value-used-as-key": ("attend", value_used_as_key),
    "projection-transposed": ("project", projected_transposed),
    "heads-interleaved": ("split", _SPLIT["heads-interleaved"]),
    "heads-interleaved/merged": ("combine", variants("multi_head", "combine_heads")["heads-interleaved"]),
}
MASKING: Mapping[str, tuple[str, Callable[..., Any]]] = {
    slug: ("attend", _ATTEND[slug])
    for slug in (
        "mask-after-softmax",
        "masked-scores-zero",
        "mask-fill-with-smallest-score",
        "mask-added-as-0-1",
        "zero-times-infinity",
    )
}
# Where queries, keys and values are as many heads and tokens.
PARTLY_SPLIT: Mapping[str, tuple[str, Callable[..., Any]]] = {
    f"{slug}/{form}": ("attend", some_split(_SPLIT[slug], places))
    for slug in ("split-without-transpose", "heads-interleaved")
    for form, places in {"queries": (0,), "keys": (1,), "values": (2,), "keys-and-values": (1, 2)}.items()
}
