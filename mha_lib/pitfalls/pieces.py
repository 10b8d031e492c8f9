"""Pieces of a layer that are wrong: which piece it is, and what stands in its place."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mha_lib.pitfalls.code import variants

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
