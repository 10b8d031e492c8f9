"""Mistakes in `softmax`."""

import numpy as np

from mha_lib.pitfalls.code import mistake

Array = np.ndarray


@mistake("no-max-subtraction", "single_head.softmax")
def softmax_no_max_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: exp overflows for logits above 709, and underflows to 0 / 0 below -745."""
    exponentials = np.exp(x)
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("min-subtraction", "single_head.softmax")
def softmax_min_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: the smallest logit is subtracted, which makes the others large."""
    exponentials = np.exp(x - np.min(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("mean-subtraction", "single_head.softmax")
def softmax_mean_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: the mean is subtracted, and a logit may still lie far above it."""
    exponentials = np.exp(x - np.mean(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("global-max-subtraction", "single_head.softmax")
def softmax_global_max_subtraction(x: Array, axis: int = -1) -> Array:
    """Wrong: one maximum for all rows; a row far below it becomes 0 / 0."""
    exponentials = np.exp(x - np.max(x))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("max-over-other-axis", "single_head.softmax")
def softmax_max_over_other_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: the maximum is taken along axis 0, the sum along `axis`."""
    exponentials = np.exp(x - np.max(x, axis=0, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("logits-clipped", "single_head.softmax")
def softmax_logits_clipped(x: Array, axis: int = -1) -> Array:
    """Wrong: logits beyond ±500 all become the same logit."""
    exponentials = np.exp(np.clip(x, -500, 500))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("nan-replaced-by-zero", "single_head.softmax")
def softmax_nan_replaced_by_zero(x: Array, axis: int = -1) -> Array:
    """Wrong: where exp overflows, the weights become 0 in place of NaN."""
    exponentials = np.exp(x)
    weights = exponentials / np.sum(exponentials, axis=axis, keepdims=True)
    return np.nan_to_num(weights)


@mistake("softmax-whole-matrix", "single_head.softmax")
def softmax_whole_matrix(x: Array, axis: int = -1) -> Array:
    """Wrong: the sum runs over all axes."""
    exponentials = np.exp(x - np.max(x))
    return exponentials / np.sum(exponentials)


@mistake("softmax-fixed-axis", "single_head.softmax")
def softmax_fixed_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: always along the last axis, whatever `axis` says."""
    exponentials = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


@mistake("softmax-first-axis", "single_head.softmax")
def softmax_first_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: always along the first axis, whatever `axis` says."""
    exponentials = np.exp(x - np.max(x, axis=0))
    return exponentials / np.sum(exponentials, axis=0)


@mistake("keepdims-forgotten", "single_head.softmax")
def softmax_keepdims_forgotten(x: Array, axis: int = -1) -> Array:
    """Wrong: without keepdims the sums of the rows line up with the columns."""
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis)


@mistake("normalised-without-exponential", "single_head.softmax")
def softmax_without_exponential(x: Array, axis: int = -1) -> Array:
    """Wrong: the logits themselves are divided by their sum."""
    return x / np.sum(x, axis=axis, keepdims=True)


@mistake("softmax-not-normalised", "single_head.softmax")
def softmax_not_normalised(x: Array, axis: int = -1) -> Array:
    """Wrong: the exponentials are not divided by their sum."""
    return np.exp(x - np.max(x, axis=axis, keepdims=True))


@mistake("sigmoid-instead-of-softmax", "single_head.softmax")
def softmax_sigmoid_instead(x: Array, axis: int = -1) -> Array:
    """Wrong: every logit becomes a weight on its own."""
    return 1 / (1 + np.exp(-x))


@mistake("log-weights-returned", "single_head.softmax")
def softmax_log_weights(x: Array, axis: int = -1) -> Array:
    """Wrong: the logarithms of the weights are returned."""
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@mistake("input-changed-in-place", "single_head.softmax")
def softmax_in_place(x: Array, axis: int = -1) -> Array:
    """Wrong: the caller's logits are overwritten."""
    x -= np.max(x, axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= np.sum(x, axis=axis, keepdims=True)
    return x


# --- other forms -------------------------------------------------------------------------------------------


@mistake("max-over-other-axis", "single_head.softmax", form="last-axis")
def softmax_max_over_last_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: the maximum is taken along the last axis, the sum along `axis`."""
    exponentials = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("softmax-fixed-axis", "single_head.softmax", form="in-the-sum")
def softmax_fixed_axis_in_the_sum(x: Array, axis: int = -1) -> Array:
    """Wrong: the maximum is taken along `axis`, the sum along the last axis."""
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)
