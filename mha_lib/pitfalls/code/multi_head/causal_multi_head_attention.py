"""Mistakes in `causal_multi_head_attention`."""

from typing import Any

import numpy as np

from mha_lib import multi_head as right
from mha_lib.attention import attention, softmax
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


@mistake("zero-scores-masked", "multi_head.causal_multi_head_attention")
def causal_multi_head_attention_zero_scores_masked(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: a score may be 0 without being masked."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = np.tril(Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1]))  # (batch, heads, n, n)
    scores[scores == 0] = -1e9
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


# --- mistakes in the layer, and in the mask, under a causal mask -------------------------------------------

for slug in (
    "softmax-over-queries",
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

# Nobody hands a mask in, so that only another argument can be changed.
wrong = forms("multi_head", "multi_head_attention")["input-changed-in-place/weights"]
mistake("input-changed-in-place", "multi_head.causal_multi_head_attention")(causal_around(wrong))
wrong = variants("multi_head", "multi_head_attention")["axes-of-one-dropped"]
mistake("axes-of-one-dropped", "multi_head.causal_multi_head_attention")(causal_around(wrong))

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


# Under this mask, a head's mistake is known by another name, or tells nothing.
RENAMED = {"mask-no-effect": "causal-missing", "mask-transposed": "causal-transposed"}
LEFT_OUT = (
    "keepdims-forgotten",
    "input-changed-in-place",
    "scores-transposed",
    "epsilon-in-denominator",
    "first-mask-for-all-sequences",
    "none-not-handled",
    "always-causal",
)
# On some inputs the results are those of another mistake.
UNSURE = ("value-used-as-key", "mask-fill-not-negative-enough", "mask-fill-tiny")
FILLS = (-1.0, -5.0, -10.0, -20.0, -30.0, -50.0, -100.0, -1e3)


def turned_round(Q: Array, K: Array, V: Array, mask: Array) -> Any:
    """Wrong: later keys alone are seen; the last query, which has none, sees all alike."""
    return layers.filled(layers.finite)(Q, K, V, ~mask)


def hides_self(Q: Array, K: Array, V: Array, mask: Array) -> Any:
    """Wrong: earlier keys alone are seen; the first query, which has none, sees all alike."""
    return layers.filled(layers.finite)(Q, K, V, np.tril(mask, -1))


def hides_self_but_for_the_first(Q: Array, K: Array, V: Array, mask: Array) -> Any:
    """Wrong: earlier keys alone are seen; the first query, which has none, sees itself."""
    first = np.arange(mask.shape[-2]) == 0  # (n,)
    return layers.filled(layers.finite)(Q, K, V, np.tril(mask, -1) | (first[:, None] & mask))


def row_by_row(scores: Array, mask: Array) -> Array:
    """Exponentials, of which the largest of each row is 1."""
    hidden = np.where(mask, scores, -np.inf)
    return np.exp(hidden - hidden.max(axis=-1, keepdims=True))


def over_both(scores: Array, mask: Array) -> Array:
    """Wrong: the weights of a head sum to 1."""
    return row_by_row(scores, mask) / row_by_row(scores, mask).sum(axis=(-2, -1), keepdims=True)


def over_everything(scores: Array, mask: Array) -> Array:
    """Wrong: all weights together sum to 1."""
    return row_by_row(scores, mask) / row_by_row(scores, mask).sum()


def only_head(number: int) -> Any:
    """Wrong: an attention that masks this head only."""

    def attend(Q: Array, K: Array, V: Array, mask: Array) -> Any:
        masked_here = np.arange(Q.shape[1])[:, None, None] == number % Q.shape[1]  # (heads, 1, 1)
        return attention(Q, K, V, mask | ~masked_here)

    return attend


def wrong_layers() -> dict[str, list[Any]]:
    """Layers under a causal mask with a mistake of a layer, of one head or of the mask."""
    found = layers.wrong_layers()
    heads = {
        "mask-inverted": [turned_round],
        "causal-hides-self": [hides_self, hides_self_but_for_the_first],
        "mask-for-first-head-only": [only_head(0), only_head(-1)],
        "softmax-whole-matrix": [layers.weighing(over_both), layers.weighing(over_everything)],
        "softmax-not-normalised": [layers.weighing(lambda scores, mask: np.exp(scores) * mask)],
        "scores-applied-to-values": [layers.weighing(lambda scores, mask: scores * mask)],
        "softmax-over-queries": [layers.filled(layers.finite, axis=-2)],
        "mask-fill-not-negative-enough": [
            layers.filled(fill)
            for number in FILLS
            for fill in (lambda scores, low=number: low, lambda scores, low=number: scores + low)
        ],
    }
    for name, attend in forms("single_head", "attention").items():
        slug = name.partition("/")[0]
        if slug not in LEFT_OUT:
            heads.setdefault(RENAMED.get(slug, slug), []).append(attend)
    for slug, attends in heads.items():
        found.setdefault(slug, []).extend(layers.layer(attend=attend) for attend in attends)
    for slug in ("fused-qkv-misread", "batch-and-heads-swapped"):
        wrong = variants("multi_head", "multi_head_attention")[slug]
        found[slug] = [lambda X, memory, *rest, wrong=wrong: wrong(X, *rest)]
    return {slug: wrong for slug, wrong in found.items() if slug not in UNSURE}


layers.tell(
    "multi_head.causal_multi_head_attention", right.causal_multi_head_attention, masked, wrong_layers()
)
