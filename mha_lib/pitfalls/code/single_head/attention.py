"""Mistakes in `attention`."""

from typing import Any

import numpy as np

from mha_lib import attention as right
from mha_lib.attention import softmax
from mha_lib.pitfalls import one_head
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import given

Array = np.ndarray


# --- softmax -----------------------------------------------------------------------------------------------


@mistake("no-max-subtraction", "single_head.attention")
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


@mistake("min-subtraction", "single_head.attention")
def attention_min_subtraction(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the smallest score is subtracted, which makes the others large."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    exponentials = np.exp(scores - np.min(scores, axis=-1, keepdims=True))
    if mask is not None:
        exponentials = np.where(mask, exponentials, 0.0)
    weights = exponentials / np.sum(exponentials, axis=-1, keepdims=True)  # (..., n, m)
    return weights @ V, weights


@mistake("global-max-subtraction", "single_head.attention")
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


@mistake("softmax-whole-matrix", "single_head.attention")
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


@mistake("softmax-over-queries", "single_head.attention")
def attention_softmax_over_queries(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: softmax along the queries; the weights of each key sum to 1."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=-2)  # (..., n, m)
    return weights @ V, weights


@mistake("softmax-over-heads", "single_head.attention")
def attention_softmax_over_heads(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: softmax along axis 1, which holds the heads in `(batch, heads, n, m)`."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=1)  # (..., n, m)
    return weights @ V, weights


@mistake("keepdims-forgotten", "single_head.attention")
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


@mistake("normalised-without-exponential", "single_head.attention")
def attention_without_exponential(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the scores themselves are divided by their sum."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, 0.0)
    weights = scores / np.sum(scores, axis=-1, keepdims=True)  # (..., n, m)
    return weights @ V, weights


@mistake("softmax-not-normalised", "single_head.attention")
def attention_not_normalised(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the exponentials are not divided by their sum."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))  # (..., n, m)
    return weights @ V, weights


@mistake("sigmoid-instead-of-softmax", "single_head.attention")
def attention_sigmoid_instead(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: every score becomes a weight on its own."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = 1 / (1 + np.exp(-scores))  # (..., n, m)
    return weights @ V, weights


@mistake("softmax-twice", "single_head.attention")
def attention_softmax_twice(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the weights go through softmax again."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(softmax(scores))  # (..., n, m)
    return weights @ V, weights


@mistake("input-changed-in-place", "single_head.attention")
def attention_mask_in_place(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the caller's mask is turned round."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        np.logical_not(mask, out=mask)  # now True is what to hide
        scores = np.where(mask, -np.inf, scores)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("axes-of-one-dropped", "single_head.attention")
def attention_squeezed(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: `squeeze` drops every axis of size 1."""
    output, weights = right.attention(Q, K, V, mask)
    return np.squeeze(output), np.squeeze(weights)


@mistake("input-changed-in-place", "single_head.attention", form="queries")
def attention_in_place(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the caller's queries are divided by √d_k."""
    Q /= np.sqrt(Q.shape[-1])
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


# --- attention ---------------------------------------------------------------------------------------------


@mistake("transpose-all-axes", "single_head.attention")
def attention_transpose_all_axes(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: `.T` turns all axes around, not only the last two."""
    scores = Q @ K.T / np.sqrt(Q.shape[-1])  # (n, m), only for matrices
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (n, m)
    return weights @ V, weights


@mistake("batch-axis-assumed", "single_head.attention")
def attention_batch_axis_assumed(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the transposition takes exactly one leading dimension for granted."""
    scores = Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[-1])  # (batch, n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (batch, n, m)
    return weights @ V, weights


@mistake("scores-transposed", "single_head.attention")
def attention_scores_transposed(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: K Qᵀ, so that the rows belong to keys and the softmax runs over queries."""
    scores = K @ np.swapaxes(Q, -2, -1) / np.sqrt(Q.shape[-1])  # (..., m, n)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., m, n)
    return weights @ V, weights


@mistake("weights-transposed", "single_head.attention")
def attention_weights_transposed(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the weights are transposed before they meet the values."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return np.swapaxes(weights, -2, -1) @ V, weights


@mistake("keys-used-as-values", "single_head.attention")
def attention_keys_used_as_values(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the keys are averaged; the values are never used."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ K, weights


@mistake("scores-applied-to-values", "single_head.attention")
def attention_scores_applied_to_values(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the scores, not the weights, multiply the values."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return scores @ V, weights


@mistake("values-not-mixed", "single_head.attention")
def attention_values_not_mixed(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the weights are returned as the output."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights, weights


@mistake("weights-returned-before-softmax", "single_head.attention")
def attention_weights_returned_before_softmax(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the scores are returned as the weights."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores) @ V, scores


@mistake("only-output-returned", "single_head.attention")
def attention_only_output_returned(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Array:
    """Wrong: the weights are not returned."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores) @ V


@mistake("tuple-order-swapped", "single_head.attention")
def attention_returned_in_wrong_order(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the weights come first."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights, weights @ V


# --- scale -------------------------------------------------------------------------------------------------


@mistake("no-scale", "single_head.attention")
def attention_no_scale(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are not divided by √d_k."""
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("scale-by-dk", "single_head.attention")
def attention_scale_by_dk(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are divided by d_k, without the root."""
    scores = Q @ np.swapaxes(K, -2, -1) / Q.shape[-1]  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("scale-multiplied", "single_head.attention")
def attention_scale_multiplied(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the scores are multiplied by √d_k."""
    scores = Q @ np.swapaxes(K, -2, -1) * np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("scale-by-value-dim", "single_head.attention")
def attention_scale_by_value_dim(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the width is that of the values, d_v."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(V.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("scale-by-sequence-length", "single_head.attention")
def attention_scale_by_sequence_length(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the number of keys stands in the place of their width."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(K.shape[-2])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("scale-by-axis-one", "single_head.attention")
def attention_scale_by_axis_one(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: axis 1 holds d_k only in a matrix."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("scale-after-softmax", "single_head.attention")
def attention_scale_after_softmax(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the weights are divided by √d_k in place of the scores."""
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores) / np.sqrt(Q.shape[-1])  # (..., n, m)
    return weights @ V, weights


@mistake("cosine-scores", "single_head.attention")
def attention_cosine_scores(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: queries and keys are scaled to length 1."""
    Q = Q / np.linalg.norm(Q, axis=-1, keepdims=True)
    K = K / np.linalg.norm(K, axis=-1, keepdims=True)
    scores = Q @ np.swapaxes(K, -2, -1)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


# --- mask --------------------------------------------------------------------------------------------------


@mistake("mask-no-effect", "single_head.attention")
def attention_mask_no_effect(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: `np.where` returns a new array, which nobody keeps."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-inverted", "single_head.attention")
def attention_mask_inverted(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: True is taken to mean "hide"."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("epsilon-in-denominator", "single_head.attention")
def attention_epsilon_in_denominator(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: masked weights are removed and the rest is renormalised, with 1e-9 added to a sum that may be less."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    weights = softmax(scores)  # (..., n, m)
    if mask is not None:
        weights = np.where(mask, weights, 0.0)
        weights = weights / (np.sum(weights, axis=-1, keepdims=True) + 1e-9)
    return weights @ V, weights


@mistake("mask-after-softmax", "single_head.attention")
def attention_mask_after_softmax(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: weights are removed after the softmax, so the rest sums to less than 1."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    weights = softmax(scores)  # (..., n, m)
    if mask is not None:
        weights = weights * mask
    return weights @ V, weights


@mistake("masked-scores-zero", "single_head.attention")
def attention_masked_scores_zero(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: masked scores become 0, and exp(0) = 1 is a weight like any other."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = scores * mask
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-fill-tiny", "single_head.attention")
def attention_mask_fill_tiny(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: −1e-9 is a tiny number, not a large negative one."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -1e-9)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-fill-with-smallest-score", "single_head.attention")
def attention_mask_fill_with_smallest_score(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the smallest score is still a score."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, np.min(scores))
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-fill-not-negative-enough", "single_head.attention")
def attention_mask_fill_not_negative_enough(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: a row of kept scores may lie below −1e4."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -1e4)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-added-as-0-1", "single_head.attention")
def attention_mask_added_as_0_1(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the mask is added as 0 and 1, which moves a score by 1 only."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = scores + mask
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("zero-times-infinity", "single_head.attention")
def attention_zero_times_infinity(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: for kept scores this adds 0 · (−inf), which is NaN."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = scores + (1 - mask) * -np.inf
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("none-not-handled", "single_head.attention")
def attention_none_not_handled(Q: Array, K: Array, V: Array, mask: Any = None) -> tuple[Array, Array]:
    """Wrong: for `np.where`, None is as good as False."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-truth-value", "single_head.attention")
def attention_mask_truth_value(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: an array with more than one entry is neither true nor false."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("mask-transposed", "single_head.attention")
def attention_mask_transposed(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the mask's queries and keys are exchanged."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(np.swapaxes(mask, -2, -1), scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("first-mask-for-all-sequences", "single_head.attention")
def attention_first_mask_for_all_sequences(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: every sequence gets the mask of the first one."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None and mask.ndim == 4:
        mask = mask[0, 0]  # (n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


@mistake("always-causal", "single_head.attention")
def attention_always_causal(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: without a mask, later keys are hidden all the same."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is None:
        mask = np.tril(np.ones(scores.shape[-2:], dtype=bool))  # (n, m)
    scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


# --- other forms: mistakes that another item has under its own name -----------------------------------------


@mistake("value-used-as-key", "single_head.attention", form="one-head")
def attention_value_used_as_key(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the queries are compared with the values, which raises an error if these are not d_k wide."""
    return right.attention(Q, V, V, mask)


@mistake("value-used-as-key", "single_head.attention", form="if-widths-agree")
def attention_value_used_as_key_if_widths_agree(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the queries are compared with the values wherever that is possible."""
    return right.attention(Q, V if K.shape == V.shape else K, V, mask)


@mistake("scale-by-sequence-length", "single_head.attention", form="queries")
def attention_scale_by_number_of_queries(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the number of queries stands in the place of their width."""
    return right.attention(Q * np.sqrt(Q.shape[-1] / Q.shape[-2]), K, V, mask)


@mistake("value-used-as-key", "single_head.attention", form="exchanged")
def attention_keys_and_values_exchanged(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the queries are compared with the values, and the keys are averaged."""
    return right.attention(Q, V, K, mask)


@mistake("mask-after-softmax", "single_head.attention", form="filled")
def attention_weights_filled(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: weights, not scores, are set to −inf."""
    _, weights = right.attention(Q, K, V)  # (..., n, m)
    if mask is not None:
        weights = np.where(mask, weights, -np.inf)
    return weights @ V, weights


@mistake("first-mask-for-all-sequences", "single_head.attention", form="padding")
def attention_first_padding_for_all(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: every sequence gets the padding of the first one."""
    padding = mask is not None and mask.ndim == 4 and mask.shape[2] == 1
    return right.attention(Q, K, V, mask[0, 0] if mask is not None and padding else mask)


@mistake("no-scale", "single_head.attention", form="under-a-mask")
def attention_no_scale_under_a_mask(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: with a mask the scores are not divided by √d_k."""
    return right.attention(Q if mask is None else Q * np.sqrt(Q.shape[-1]), K, V, mask)


@mistake("epsilon-in-denominator", "single_head.attention", form="of-the-machine")
def attention_machine_epsilon_in_denominator(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the rest is renormalised, with the machine's epsilon added to a sum that may be as small."""
    _, weights = right.attention(Q, K, V)  # (..., n, m)
    if mask is not None:
        weights = np.where(mask, weights, 0.0)
        weights = weights / (np.sum(weights, axis=-1, keepdims=True) + np.finfo(float).eps)
    return weights @ V, weights


@mistake("maps-averaged-over-heads", "single_head.attention", form="returned")
def attention_maps_averaged(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: of several heads, the mean of the weights is returned."""
    output, weights = right.attention(Q, K, V, mask)
    return output, np.mean(weights, axis=1) if weights.ndim == 4 else weights


@mistake("axes-of-one-dropped", "single_head.attention", form="weights")
def attention_weights_squeezed(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: `squeeze` drops every axis of size 1 of the weights."""
    output, weights = right.attention(Q, K, V, mask)
    return output, np.squeeze(weights)


@mistake("axes-of-one-dropped", "single_head.attention", form="output")
def attention_output_squeezed(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: `squeeze` drops every axis of size 1 of the output."""
    output, weights = right.attention(Q, K, V, mask)
    return np.squeeze(output), weights


# --- laws --------------------------------------------------------------------------------------------------


def scores_of(step: Any) -> Array | None:
    """The scores of a recorded call."""
    Q, K = given(step, 0, "Q"), given(step, 1, "K")
    return None if Q is None or K is None else Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])


HEAD = one_head.Head(attend=lambda tested, *arguments: tested(*arguments)[0], scores=scores_of)
ITEM = "single_head.attention"
one_head.tell_all(ITEM, HEAD)
law("keepdims-forgotten", ITEM)(one_head.sums_without_axis)
law("weights-returned-before-softmax", ITEM)(one_head.returns_before_softmax)
law("only-output-returned", ITEM)(one_head.returns_no_weights)
law("input-changed-in-place", ITEM)(one_head.changes_only(right.attention))
