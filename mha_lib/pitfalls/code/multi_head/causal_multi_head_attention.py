"""Mistakes in `causal_multi_head_attention`."""

from typing import Any

import numpy as np

from mha_lib import multi_head as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.masks import causal_mask
from mha_lib.pitfalls import layers, one_head
from mha_lib.pitfalls.code import forms, law, mistake, variants
from mha_lib.pitfalls.derived import causal_around, causal_under
from mha_lib.pitfalls.evidence import POOLS, pooled

Array = np.ndarray


@mistake("causal-missing", "multi_head.causal_multi_head_attention")
def causal_multi_head_attention_missing(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: nothing is hidden."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("causal-size-from-batch", "multi_head.causal_multi_head_attention")
def causal_multi_head_attention_size_from_batch(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: `len(X)` counts sequences, not tokens."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, causal_mask(len(X)))  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


# --- mistakes in the layer, and in the mask, under a causal mask -------------------------------------------

for slug in (
    "softmax-over-queries",
    "input-changed-in-place",
    "no-scale",
    "scale-by-dk",
    "scale-by-d-model",
    "mask-after-softmax",
    "masked-scores-zero",
    "mask-added-as-0-1",
    "weights-applied-transposed",
    "keys-and-values-exchanged",
    "no-output-projection",
    "input-sliced-per-head",
    "residual-added",
    "weights-returned-too",
    "split-without-transpose",
    "merge-without-transpose",
    "heads-fold-by-reshape",
    "num-heads-ignored",
):
    wrong = variants("multi_head", "multi_head_attention")[slug]
    mistake(slug, "multi_head.causal_multi_head_attention")(causal_around(wrong))

for slug in ("mask-inverted", "causal-transposed", "causal-hides-self", "causal-sees-next"):
    wrong = variants("single_head", "causal_mask")[slug]
    mistake(slug, "multi_head.causal_multi_head_attention")(causal_under(wrong))

for slug, pool in POOLS.items():
    law(slug, "multi_head.causal_multi_head_attention")(pooled(pool, 5))

law("keepdims-forgotten", "multi_head.causal_multi_head_attention")(one_head.sums_without_axis)
law("input-changed-in-place", "multi_head.causal_multi_head_attention")(
    one_head.changes_only(right.causal_multi_head_attention)
)


def masked(X: Array, *rest: Any) -> list[Any]:
    """The arguments of a layer under a causal mask."""
    return [X, X, *rest, causal_mask(X.shape[1])]


def wrong_heads() -> dict[str, list[Any]]:
    """Layers under a causal mask whose heads have a mistake of one head, in any form."""
    found: dict[str, list[Any]] = {}
    for name, attend in forms("single_head", "attention").items():
        found.setdefault(name.partition("/")[0], []).append(layers.layer(attend=attend))
    return found


WRONG = layers.wrong_layers()
for slug, wrong_ones in wrong_heads().items():
    if slug in ("keepdims-forgotten", "input-changed-in-place"):
        continue  # these have a law already
    WRONG.setdefault(slug, []).extend(wrong_ones)
layers.tell("multi_head.causal_multi_head_attention", right.causal_multi_head_attention, masked, WRONG)
