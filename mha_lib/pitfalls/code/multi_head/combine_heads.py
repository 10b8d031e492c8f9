"""Mistakes in `combine_heads`."""

import numpy as np

from mha_lib.pitfalls.code import mistake

Array = np.ndarray


@mistake("merge-without-transpose", "multi_head.combine_heads")
def combine_heads_without_transpose(x: Array) -> Array:
    """Wrong: reshaped to the right shape at once, so that a row holds several tokens of one head."""
    batch, num_heads, n, d_k = x.shape
    return x.reshape(batch, n, num_heads * d_k)  # (batch, n, d_model)


@mistake("heads-interleaved", "multi_head.combine_heads")
def combine_heads_interleaved(x: Array) -> Array:
    """Wrong: the heads take turns, feature by feature."""
    batch, num_heads, n, d_k = x.shape
    x = x.transpose(0, 2, 3, 1)  # (batch, n, d_k, heads)
    return x.reshape(batch, n, d_k * num_heads)  # (batch, n, d_model)


@mistake("heads-not-merged", "multi_head.combine_heads")
def combine_heads_axis_not_merged(x: Array) -> Array:
    """Wrong: the heads still have an axis of their own."""
    return x.transpose(0, 2, 1, 3)  # (batch, n, heads, d_k)


@mistake("batch-and-heads-swapped", "multi_head.combine_heads")
def combine_heads_batch_and_heads_swapped(x: Array) -> Array:
    """Wrong: the first axis is taken for the heads."""
    return np.concatenate(list(x), axis=-1)  # (heads, n, batch * d_k)


@mistake("heads-on-token-axis", "multi_head.combine_heads")
def combine_heads_tokens_appended(x: Array) -> Array:
    """Wrong: the heads are laid end to end along the tokens."""
    batch, num_heads, n, d_k = x.shape
    return x.reshape(batch, num_heads * n, d_k)  # (batch, heads * n, d_k)


@mistake("heads-averaged", "multi_head.combine_heads")
def combine_heads_averaged(x: Array) -> Array:
    """Wrong: the mean over the heads."""
    return np.mean(x, axis=1)  # (batch, n, d_k)


@mistake("heads-summed", "multi_head.combine_heads")
def combine_heads_summed(x: Array) -> Array:
    """Wrong: the sum over the heads."""
    return np.sum(x, axis=1)  # (batch, n, d_k)


@mistake("heads-max-pooled", "multi_head.combine_heads")
def combine_heads_max_pooled(x: Array) -> Array:
    """Wrong: the largest entry over the heads."""
    return np.max(x, axis=1)  # (batch, n, d_k)
