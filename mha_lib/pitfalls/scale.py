"""Mistakes in the scaling of the scores.

Not here, since no input tells them from `scale-by-dk`: dividing both Q and K by √d_k, or dividing the scores
by √d_k twice.
"""

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.derived import causal_around, cross_around, multi_head_around
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray


def attention_no_scale(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are not divided by √d_k."""
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_scale_by_dk(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are divided by d_k, without the root."""
    scores = Q @ np.swapaxes(K, -2, -1) / Q.shape[-1]  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_scale_multiplied(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the scores are multiplied by √d_k."""
    scores = Q @ np.swapaxes(K, -2, -1) * np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_scale_by_value_dim(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the width is that of the values, d_v."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(V.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_scale_by_sequence_length(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the number of keys stands in the place of their width."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(K.shape[-2])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_scale_by_axis_one(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: axis 1 holds d_k only in a matrix."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_scale_after_softmax(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the weights are divided by √d_k in place of the scores."""
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores) / np.sqrt(Q.shape[-1])  # (..., n, m)
    return weights @ V, weights


def attention_cosine_scores(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: queries and keys are scaled to length 1."""
    Q = Q / np.linalg.norm(Q, axis=-1, keepdims=True)
    K = K / np.linalg.norm(K, axis=-1, keepdims=True)
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def multi_head_attention_scale_by_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the scores are divided by √d_model, the width of the layer and not of a head."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    d_k, d_model = Q.shape[-1], X.shape[-1]
    heads, _ = attention(Q * np.sqrt(d_k / d_model), K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_scale_by_d_model(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the scores are divided by √d_model, the width of the layer and not of a head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    d_k, d_model = Q.shape[-1], X.shape[-1]
    heads, _ = attention(Q * np.sqrt(d_k / d_model), K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


PITFALLS = (
    Pitfall(
        slug="no-scale",
        title="No division by √d_k",
        symptom="Weights close to 0 and 1, the more so the larger d_k is, and small gradients.",
        reason="The spread of a dot product grows with √d_k, and without the division your softmax puts nearly "
        "all weight on one key.",
        fix="Divide the scores by √d_k before the softmax.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
        variants={
            "single_head.attention": attention_no_scale,
            "multi_head.multi_head_attention": multi_head_around(attention_no_scale),
            "multi_head.causal_multi_head_attention": causal_around(multi_head_around(attention_no_scale)),
            "multi_head.cross_attention": cross_around(attention_no_scale),
        },
    ),
    Pitfall(
        slug="scale-by-dk",
        title="Divided by d_k in place of √d_k",
        symptom="Weights close to uniform, the more so the larger d_k is.",
        reason="The spread of a dot product grows with √d_k, so dividing by d_k makes the scores too small.",
        fix="Divide by the square root of d_k.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
        variants={
            "single_head.attention": attention_scale_by_dk,
            "multi_head.multi_head_attention": multi_head_around(attention_scale_by_dk),
            "multi_head.causal_multi_head_attention": causal_around(multi_head_around(attention_scale_by_dk)),
            "multi_head.cross_attention": cross_around(attention_scale_by_dk),
        },
    ),
    Pitfall(
        slug="scale-by-d-model",
        title="Divided by √d_model in place of √d_k",
        symptom="Right with one head; with several, weights too close to uniform, by a factor √heads in the "
        "scores.",
        reason="You divide by the root of the layer's width, but a score is a dot product of d_k numbers, so its "
        "spread comes from d_k and you make it too small.",
        fix="Divide by √d_k, the width of one head.",
        passes=("shape", "finite", "one head"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_scale_by_d_model,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_scale_by_d_model),
            "multi_head.cross_attention": cross_attention_scale_by_d_model,
        },
    ),
    Pitfall(
        slug="scale-multiplied",
        title="Multiplied by √d_k",
        symptom="Weights of almost exactly 0 and 1.",
        reason="You multiply where the formula divides, so the scores are d_k times too large.",
        fix="Divide the scores by √d_k.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
        variants={
            "single_head.attention": attention_scale_multiplied,
            "multi_head.multi_head_attention": multi_head_around(attention_scale_multiplied),
        },
    ),
    Pitfall(
        slug="scale-by-value-dim",
        title="Divided by √d_v",
        symptom="Right when values are as wide as keys, wrong otherwise.",
        reason="The spread of the scores comes from the width of queries and keys; how wide the values are has no "
        "part in it.",
        fix="Take the width from the queries: `d_k = Q.shape[-1]`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "d_k = d_v"),
        variants={"single_head.attention": attention_scale_by_value_dim},
    ),
    Pitfall(
        slug="scale-by-sequence-length",
        title="Divided by √m",
        symptom="The weights change with the number of keys; short and long sequences behave differently.",
        reason="You divide by the root of the number of keys, while the spread of the scores comes from the width "
        "of a key.",
        fix="Take the last axis: `d_k = Q.shape[-1]`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
        variants={
            "single_head.attention": attention_scale_by_sequence_length,
            "multi_head.multi_head_attention": multi_head_around(attention_scale_by_sequence_length),
        },
    ),
    Pitfall(
        slug="scale-by-axis-one",
        title="d_k read from axis 1",
        symptom="Right for matrices; wrong as soon as there is a batch.",
        reason="Axis 1 holds the width of a query only in a matrix; with a batch it holds queries or heads.",
        fix="Count from the end: `d_k = Q.shape[-1]`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "no batch"),
        variants={
            "single_head.attention": attention_scale_by_axis_one,
            "multi_head.multi_head_attention": multi_head_around(attention_scale_by_axis_one),
        },
    ),
    Pitfall(
        slug="scale-after-softmax",
        title="The weights are divided by √d_k",
        symptom="The weights of each query sum to 1 / √d_k.",
        reason="You scale after the softmax, so the weights shrink and stay as sharp as without scaling.",
        fix="Divide the scores, before the softmax.",
        passes=("shape", "finite", "masked weights are 0"),
        variants={
            "single_head.attention": attention_scale_after_softmax,
            "multi_head.multi_head_attention": multi_head_around(attention_scale_after_softmax),
        },
    ),
    Pitfall(
        slug="cosine-scores",
        title="Cosine in place of the dot product",
        symptom="Weights close to uniform: the scores never leave the range from −1 to 1.",
        reason="You divide each query and key by its length, but a long key is meant to count for more, and scores "
        "within ±1 cannot single out a key.",
        fix="Take the plain dot product and divide it by √d_k.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
        variants={
            "single_head.attention": attention_cosine_scores,
            "multi_head.multi_head_attention": multi_head_around(attention_cosine_scores),
        },
    ),
)
