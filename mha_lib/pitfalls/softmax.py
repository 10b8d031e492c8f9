"""Mistakes in turning logits into weights.

Not here, since no allowed input shows it: a small number added to the denominator (1e-9, say). After the
largest logit was subtracted the denominator is at least 1. (After a mask it may be tiny: see `mask`.)
"""

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.derived import causal_around, cross_around, multi_head_around
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray


def softmax_no_max_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: exp overflows for logits above 709, and underflows to 0 / 0 below -745."""
    exponentials = np.exp(x)
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def attention_no_max_subtraction(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: exp overflows for scores above 709, and underflows to 0 / 0 below -745."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores)
    weights = exponentials / np.sum(exponentials, axis=-1, keepdims=True)  # (..., n, m)
    return weights @ V, weights


def softmax_min_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: the smallest logit is subtracted, which makes the others large."""
    exponentials = np.exp(x - np.min(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def attention_min_subtraction(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the smallest score is subtracted, which makes the others large."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    exponentials = np.exp(scores - np.min(scores, axis=-1, keepdims=True))
    if mask is not None:
        exponentials = np.where(mask, exponentials, 0.0)
    weights = exponentials / np.sum(exponentials, axis=-1, keepdims=True)  # (..., n, m)
    return weights @ V, weights


def softmax_mean_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: the mean is subtracted, and a logit may still lie far above it."""
    exponentials = np.exp(x - np.mean(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def softmax_global_max_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: one maximum for all rows; a row far below it becomes 0 / 0."""
    exponentials = np.exp(x - np.max(x))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def attention_global_max_subtraction(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: one maximum for all queries; a query whose scores lie far below it gets 0 / 0."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - np.max(scores))
    weights = exponentials / np.sum(exponentials, axis=-1, keepdims=True)  # (..., n, m)
    return weights @ V, weights


def softmax_max_over_other_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: the maximum is taken along axis 0, the sum along `axis`."""
    exponentials = np.exp(x - np.max(x, axis=0, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def softmax_logits_clipped(x: Array, axis: int = -1) -> Array:
    """Wrong: logits beyond ±500 all become the same logit."""
    exponentials = np.exp(np.clip(x, -500, 500))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def softmax_nan_replaced_by_zero(x: Array, axis: int = -1) -> Array:
    """Wrong: where exp overflows, the weights become 0 in place of NaN."""
    exponentials = np.exp(x)
    weights = exponentials / np.sum(exponentials, axis=axis, keepdims=True)
    return np.nan_to_num(weights)


def softmax_whole_matrix(x: Array, axis: int = -1) -> Array:
    """Wrong: the sum runs over all axes."""
    exponentials = np.exp(x - np.max(x))
    return exponentials / np.sum(exponentials)


def attention_softmax_whole_matrix(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the weights of all queries together sum to 1."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - np.max(scores))
    weights = exponentials / np.sum(exponentials, axis=(-2, -1), keepdims=True)  # (..., n, m)
    return weights @ V, weights


def softmax_fixed_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: always along the last axis, whatever `axis` says."""
    exponentials = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


def softmax_first_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: always along the first axis, whatever `axis` says."""
    exponentials = np.exp(x - np.max(x, axis=0))
    return exponentials / np.sum(exponentials, axis=0)


def attention_softmax_over_queries(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: softmax along the queries; the weights of each key sum to 1."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=-2)  # (..., n, m)
    return weights @ V, weights


def attention_softmax_over_heads(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: softmax along axis 1, which holds the heads in `(batch, heads, n, m)`."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=1)  # (..., n, m)
    return weights @ V, weights


def softmax_keepdims_forgotten(x: Array, axis: int = -1) -> Array:
    """Wrong: without keepdims the sums of the rows line up with the columns."""
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis)


def attention_keepdims_forgotten(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: without keepdims the sums of the queries line up with the keys."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = exponentials / np.sum(exponentials, axis=-1)  # (..., n, m) only if n = m and nothing leads
    return weights @ V, weights


def softmax_without_exponential(x: Array, axis: int = -1) -> Array:
    """Wrong: the logits themselves are divided by their sum."""
    return x / np.sum(x, axis=axis, keepdims=True)


def attention_without_exponential(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the scores themselves are divided by their sum."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, 0.0)
    weights = scores / np.sum(scores, axis=-1, keepdims=True)  # (..., n, m)
    return weights @ V, weights


def softmax_not_normalised(x: Array, axis: int = -1) -> Array:
    """Wrong: the exponentials are not divided by their sum."""
    return np.exp(x - np.max(x, axis=axis, keepdims=True))


def attention_not_normalised(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the exponentials are not divided by their sum."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))  # (..., n, m)
    return weights @ V, weights


def softmax_sigmoid_instead(x: Array, axis: int = -1) -> Array:
    """Wrong: every logit becomes a weight on its own."""
    return 1 / (1 + np.exp(-x))


def attention_sigmoid_instead(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: every score becomes a weight on its own."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = 1 / (1 + np.exp(-scores))  # (..., n, m)
    return weights @ V, weights


def softmax_log_weights(x: Array, axis: int = -1) -> Array:
    """Wrong: the logarithms of the weights are returned."""
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def attention_softmax_twice(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the weights go through softmax again."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(softmax(scores))  # (..., n, m)
    return weights @ V, weights


def softmax_in_place(x: Array, axis: int = -1) -> Array:
    """Wrong: the caller's logits are overwritten."""
    x -= np.max(x, axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= np.sum(x, axis=axis, keepdims=True)
    return x


def attention_in_place(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the caller's queries are divided by √d_k."""
    Q /= np.sqrt(Q.shape[-1])
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def multi_head_attention_in_place(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the caller's W_Q is changed."""
    d_k = X.shape[-1] // num_heads
    W_Q /= np.sqrt(d_k)  # so that the scores need no division
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q * np.sqrt(d_k), K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_in_place(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the caller's W_Q is changed."""
    d_k = X.shape[-1] // num_heads
    W_Q /= np.sqrt(d_k)  # so that the scores need no division
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q * np.sqrt(d_k), K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


PITFALLS = (
    Pitfall(
        slug="no-max-subtraction",
        title="Exponentials of raw logits",
        symptom="NaN as soon as a logit passes 709, or when all logits of a row lie below −745.",
        reason="You take the exponential of the logits as they are, and exp(710) is already infinite in float64.",
        fix="Subtract the largest logit of the row first; the quotient stays the same.",
        passes=("shape", "rows sum to 1", "small logits"),
        variants={
            "single_head.softmax": softmax_no_max_subtraction,
            "single_head.attention": attention_no_max_subtraction,
            "multi_head.multi_head_attention": multi_head_around(attention_no_max_subtraction),
        },
    ),
    Pitfall(
        slug="min-subtraction",
        title="The smallest logit is subtracted",
        symptom="NaN in rows that hold one logit some 710 above another one.",
        reason="You subtract the smallest logit of a row, so the largest one may still be far above 709, where its "
        "exponential is infinite.",
        fix="Subtract the largest logit of each row: then no exponential exceeds 1.",
        passes=("shape", "rows sum to 1", "small logits"),
        variants={
            "single_head.softmax": softmax_min_subtraction,
            "single_head.attention": attention_min_subtraction,
        },
    ),
    Pitfall(
        slug="mean-subtraction",
        title="The mean of the logits is subtracted",
        symptom="NaN in rows that hold one logit some 710 above the mean.",
        reason="You subtract the mean of a row, so its largest logit may still be far above 709, where its "
        "exponential is infinite.",
        fix="Subtract the largest logit of each row: then no exponential exceeds 1.",
        passes=("shape", "rows sum to 1", "small logits"),
        variants={"single_head.softmax": softmax_mean_subtraction},
    ),
    Pitfall(
        slug="global-max-subtraction",
        title="One maximum for all rows",
        symptom="NaN in the rows whose logits lie far below those of another row.",
        reason="You subtract the largest logit of the whole array, so a row that lies 1e4 lower becomes all zeros "
        "and then 0 / 0.",
        fix="Take the maximum along the axis that is normalised, with keepdims=True.",
        passes=("shape", "rows sum to 1", "small logits", "one row"),
        variants={
            "single_head.softmax": softmax_global_max_subtraction,
            "single_head.attention": attention_global_max_subtraction,
            "multi_head.multi_head_attention": multi_head_around(attention_global_max_subtraction),
        },
    ),
    Pitfall(
        slug="max-over-other-axis",
        title="Maximum along one axis, sum along another",
        symptom="The weights sum to 1, yet are wrong, unless there is a single row.",
        reason="You subtract different numbers within one row, and only the same number for the whole row cancels "
        "in the quotient.",
        fix="Use the same axis for the maximum and for the sum.",
        passes=("shape", "rows sum to 1", "one row"),
        variants={"single_head.softmax": softmax_max_over_other_axis},
    ),
    Pitfall(
        slug="logits-clipped",
        title="Logits clipped against overflow",
        symptom="Large logits that differ get equal weights.",
        reason="You clip the logits to avoid an overflow, so that 1000 and 2000 become the same logit.",
        fix="Do not clip: subtract the largest logit of the row, which avoids the overflow and changes nothing.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "one row"),
        variants={"single_head.softmax": softmax_logits_clipped},
    ),
    Pitfall(
        slug="nan-replaced-by-zero",
        title="NaN painted over with zeros",
        symptom="With large logits the weights do not sum to 1; some rows are all zeros.",
        reason="You turn the NaN of an overflow into 0, which hides the error and throws the largest logits away.",
        fix="Remove the cause: subtract the largest logit of the row before the exponential.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "one row"),
        variants={"single_head.softmax": softmax_nan_replaced_by_zero},
    ),
    Pitfall(
        slug="softmax-whole-matrix",
        title="Softmax over the whole matrix",
        symptom="All weights together sum to 1, so the output shrinks as the number of queries grows.",
        reason="You divide by the sum over all rows, but each query has its own weights, which sum to 1 on their "
        "own.",
        fix="Sum along the axis of the keys only, with keepdims=True.",
        passes=("shape", "finite", "one row", "masked weights are 0"),
        variants={
            "single_head.softmax": softmax_whole_matrix,
            "single_head.attention": attention_softmax_whole_matrix,
            "multi_head.multi_head_attention": multi_head_around(attention_softmax_whole_matrix),
        },
    ),
    Pitfall(
        slug="softmax-fixed-axis",
        title="The axis is ignored",
        symptom="Right for the default axis, wrong for every other.",
        reason="You wrote the last axis into the code, so the argument `axis` has no effect.",
        fix="Pass `axis` on to the maximum and to the sum.",
        passes=("shape", "finite", "rows sum to 1", "last axis", "one row"),
        variants={"single_head.softmax": softmax_fixed_axis},
    ),
    Pitfall(
        slug="softmax-first-axis",
        title="Always the first axis",
        symptom="The columns sum to 1, the rows do not.",
        reason="You normalise along axis 0, which is the axis of the weights only when the array has no other.",
        fix="Pass `axis` on to the maximum and to the sum.",
        passes=("shape", "finite", "one row"),
        variants={"single_head.softmax": softmax_first_axis},
    ),
    Pitfall(
        slug="softmax-over-queries",
        title="Softmax along the queries",
        symptom="The weights of each key sum to 1; those of each query do not.",
        reason="You normalise along the queries, so the queries compete for each key; it is the keys that must "
        "compete for each query.",
        fix="Apply softmax along the last axis of the scores (..., n, m).",
        passes=("shape",),
        variants={
            "single_head.attention": attention_softmax_over_queries,
            "multi_head.multi_head_attention": multi_head_around(attention_softmax_over_queries),
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_around(attention_softmax_over_queries)
            ),
            "multi_head.cross_attention": cross_around(attention_softmax_over_queries),
        },
    ),
    Pitfall(
        slug="softmax-over-heads",
        title="Softmax along axis 1",
        symptom="Right for matrices; with (batch, heads, n, m) the weights of the heads sum to 1 at each place.",
        reason="You normalise along axis 1, which holds the keys of a matrix but the heads of a batch of heads.",
        fix="Count the axis from the end: axis=-1 is the axis of the keys, however many dimensions lead.",
        passes=("shape", "no batch"),
        variants={
            "single_head.attention": attention_softmax_over_heads,
            "multi_head.multi_head_attention": multi_head_around(attention_softmax_over_heads),
            "multi_head.cross_attention": cross_around(attention_softmax_over_heads),
        },
    ),
    Pitfall(
        slug="keepdims-forgotten",
        title="Row sums that line up with columns",
        symptom="An error about shapes, or, for a square matrix, weights that do not sum to 1.",
        reason="Without keepdims the sums have shape (n,), and NumPy lines them up with the last axis instead of "
        "with the rows.",
        fix="Sum with keepdims=True, so that the sums have shape (..., n, 1).",
        passes=("one row",),
        variants={
            "single_head.softmax": softmax_keepdims_forgotten,
            "single_head.attention": attention_keepdims_forgotten,
            "multi_head.multi_head_attention": multi_head_around(attention_keepdims_forgotten),
        },
    ),
    Pitfall(
        slug="normalised-without-exponential",
        title="Divided by the sum, without the exponential",
        symptom="The weights sum to 1, but some are negative or larger than 1.",
        reason="You divide the logits by their sum, and logits of both signs do not make weights between 0 and 1.",
        fix="Take the exponential first, so that every number is positive.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
        variants={
            "single_head.softmax": softmax_without_exponential,
            "single_head.attention": attention_without_exponential,
            "multi_head.multi_head_attention": multi_head_around(attention_without_exponential),
        },
    ),
    Pitfall(
        slug="softmax-not-normalised",
        title="Exponentials without the sum",
        symptom="The largest weight of every row is exactly 1, and the rows sum to more.",
        reason="You stop after the exponential, so the weights do not sum to 1 and the output is no average of the "
        "values.",
        fix="Divide the exponentials by their sum along the axis of the keys.",
        passes=("shape", "finite", "masked weights are 0"),
        variants={
            "single_head.softmax": softmax_not_normalised,
            "single_head.attention": attention_not_normalised,
            "multi_head.multi_head_attention": multi_head_around(attention_not_normalised),
        },
    ),
    Pitfall(
        slug="sigmoid-instead-of-softmax",
        title="Sigmoid in place of softmax",
        symptom="Each weight lies between 0 and 1, but the rows do not sum to 1.",
        reason="You judge each logit on its own, while softmax compares the logits of a row with one another.",
        fix="Divide the exponential of each logit by the sum of the exponentials of its row.",
        passes=("shape", "finite", "masked weights are 0"),
        variants={
            "single_head.softmax": softmax_sigmoid_instead,
            "single_head.attention": attention_sigmoid_instead,
            "multi_head.multi_head_attention": multi_head_around(attention_sigmoid_instead),
        },
    ),
    Pitfall(
        slug="log-weights-returned",
        title="Logarithms of the weights",
        symptom="All results are negative or 0.",
        reason="You return the logarithms of the weights, which is what a loss function wants, not attention.",
        fix="Return the exponentials divided by their sum.",
        passes=("shape", "finite"),
        variants={"single_head.softmax": softmax_log_weights},
    ),
    Pitfall(
        slug="softmax-twice",
        title="Softmax applied twice",
        symptom="The weights sum to 1, but are nearly uniform, and masked keys get weight again.",
        reason="You apply softmax to weights that lie between 0 and 1, so the second softmax makes them nearly "
        "equal and gives exp(0) to the masked ones.",
        fix="Apply softmax once, to the scores.",
        passes=("shape", "finite", "rows sum to 1"),
        variants={
            "single_head.attention": attention_softmax_twice,
            "multi_head.multi_head_attention": multi_head_around(attention_softmax_twice),
        },
    ),
    Pitfall(
        slug="input-changed-in-place",
        title="The caller's array is overwritten",
        symptom="The result is right, but a second call with the same arrays gives something else.",
        reason="You write into an array that belongs to the caller, who may still need it.",
        fix="Write `x = x - …` in place of `x -= …`: it makes a new array.",
        passes=("shape", "finite", "rows sum to 1", "right values"),
        variants={
            "single_head.softmax": softmax_in_place,
            "single_head.attention": attention_in_place,
            "multi_head.multi_head_attention": multi_head_attention_in_place,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_in_place),
            "multi_head.cross_attention": cross_attention_in_place,
        },
    ),
)
