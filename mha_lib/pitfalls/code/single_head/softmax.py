"""Mistakes in `softmax`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_lib import attention as right
from mha_lib.pitfalls import one_head
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import given

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


@mistake("axis-not-moved-back", "single_head.softmax")
def softmax_axis_not_moved_back(x: Array, axis: int = -1) -> Array:
    """Wrong: the axis is moved to the end, and stays there."""
    rows = np.moveaxis(x, axis, -1)
    exponentials = np.exp(rows - np.max(rows, axis=-1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


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


@mistake("axes-of-one-dropped", "single_head.softmax")
def softmax_squeezed(x: Array, axis: int = -1) -> Array:
    """Wrong: `squeeze` drops every axis of size 1."""
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))
    weights = exponentials / np.sum(exponentials, axis=axis, keepdims=True)
    return np.squeeze(weights)


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


@mistake("softmax-fixed-axis", "single_head.softmax", form="new-axis-at-the-end")
def softmax_new_axis_at_the_end(x: Array, axis: int = -1) -> Array:
    """Wrong: the maxima and sums get their axis back at the end, wherever it was."""
    exponentials = np.exp(x - np.max(x, axis=axis)[..., None])
    return exponentials / np.sum(exponentials, axis=axis)[..., None]


@mistake("axis-not-moved-back", "single_head.softmax", form="moved-again")
def softmax_axis_moved_again(x: Array, axis: int = -1) -> Array:
    """Wrong: the axis that is last is not moved to its place; another one is moved to the end."""
    return np.moveaxis(softmax_axis_not_moved_back(x, axis), axis, -1)


@mistake("global-max-subtraction", "single_head.softmax", form="zeros")
def softmax_global_max_subtraction_zeros(x: Array, axis: int = -1) -> Array:
    """Wrong: one maximum for all rows; a row far below it becomes all zeros."""
    exponentials = np.exp(x - np.max(x))
    return exponentials / (np.sum(exponentials, axis=axis, keepdims=True) + 1e-12)


@mistake("global-max-subtraction", "single_head.softmax", form="but-the-last-axis")
def softmax_global_max_but_the_last_axis(x: Array, axis: int = -1) -> Array:
    """Wrong: one maximum for all columns, if the axis is not the last one."""
    if axis in (-1, x.ndim - 1):
        return right.softmax(x)
    exponentials = np.exp(x - np.max(x))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("vector-made-a-row", "single_head.softmax")
def softmax_vector_as_a_row(x: Array, axis: int = -1) -> Array:
    """Wrong: a vector becomes a row of a matrix, whose axis 0 is another one."""
    return right.softmax(np.atleast_2d(x), axis).reshape(x.shape)


@mistake("logits-clipped", "single_head.softmax", form="below-the-maximum")
def softmax_clipped_below_the_maximum(x: Array, axis: int = -1) -> Array:
    """Wrong: logits that lie more than 10 below the largest one all become the same logit."""
    exponentials = np.exp(np.maximum(x - np.max(x, axis=axis, keepdims=True), -10))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@mistake("input-changed-in-place", "single_head.softmax", form="but-the-last-axis")
def softmax_in_place_along_other_axes(x: Array, axis: int = -1) -> Array:
    """Wrong: the caller's logits are overwritten if the axis is not the last one."""
    return right.softmax(x) if axis in (-1, x.ndim - 1) else softmax_in_place(x, axis)


# --- laws --------------------------------------------------------------------------------------------------

HEAD = one_head.Head(
    attend=lambda tested, Q, K, V, mask: tested(Q @ np.swapaxes(K, -2, -1)) @ V,
    scores=lambda step: given(step, 0, "x"),
)
ITEM = "single_head.softmax"
one_head.tell(ITEM, HEAD, one_head.SOFTMAX | {"log-weights-returned": one_head.logarithms}, one_head.anything)
one_head.tell(ITEM, HEAD, one_head.SEVERAL_ROWS, one_head.rows)
one_head.tell(ITEM, HEAD, one_head.LARGE, one_head.large)
law("input-changed-in-place", ITEM)(one_head.changes_only(right.softmax))


def axis_of(tested: Any, axis: int) -> int | None:
    """Along which axis of three the weights of different logits sum to 1."""
    x = np.log(np.arange(1.0, 25.0).reshape(2, 3, 4) % 7 + 1)
    weights = tested(x, axis)  # (2, 3, 4)
    if weights.shape != x.shape:
        return None
    return next((number for number in range(3) if np.allclose(weights.sum(axis=number), 1)), None)


@law("softmax-first-axis", "single_head.softmax")
def always_first(tested: Any, steps: Sequence[Any]) -> bool:
    """The weights sum to 1 along axis 0, whatever is asked for."""
    return all(axis_of(tested, axis) == 0 for axis in (0, 1, -1))


@law("softmax-fixed-axis", "single_head.softmax")
def always_another(tested: Any, steps: Sequence[Any]) -> bool:
    """The weights sum to 1 along axis 1 or 2, whatever is asked for; and something else is asked for."""
    axes = {axis_of(tested, axis) for axis in (0, 1, -1)}
    if axes not in ({1}, {2}):
        return False
    asked = [
        (np.ndim(given(step, 0, "x", np.zeros((1, 1, 1)))), given(step, 1, "axis", -1)) for step in steps
    ]
    last = axes == {2}
    return any((axis % ndim if ndim else 0) != (ndim - 1 if last else 1) for ndim, axis in asked)
