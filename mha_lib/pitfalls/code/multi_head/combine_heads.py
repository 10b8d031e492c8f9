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


@mistake("heads-in-reverse", "multi_head.combine_heads")
def combine_heads_in_reverse(x: Array) -> Array:
    """Wrong: the last head comes first."""
    return np.concatenate([x[:, i] for i in reversed(range(x.shape[1]))], axis=-1)  # (batch, n, d_model)


@mistake("axes-of-one-dropped", "multi_head.combine_heads")
def combine_heads_squeezed(x: Array) -> Array:
    """Wrong: `squeeze` drops every axis of size 1."""
    return np.squeeze(np.concatenate(list(np.moveaxis(x, 1, 0)), axis=-1))


@mistake("input-changed-in-place", "multi_head.combine_heads")
def combine_heads_in_place(x: Array) -> Array:
    """Wrong: the features are written into the caller's memory."""
    features = np.concatenate(list(np.moveaxis(x, 1, 0)), axis=-1)  # (batch, n, d_model)
    result = x.reshape(features.shape)  # another view of x
    result[...] = features
    return result


# --- other forms -------------------------------------------------------------------------------------------


@mistake("merge-without-transpose", "multi_head.combine_heads", form="features-first")
def combine_heads_features_first(x: Array) -> Array:
    """Wrong: another two axes are exchanged before the reshape."""
    batch, num_heads, n, d_k = x.shape
    return np.swapaxes(x, -2, -1).reshape(batch, n, num_heads * d_k)


@mistake("merge-without-transpose", "multi_head.combine_heads", form="exchanged-afterwards")
def combine_heads_exchanged_afterwards(x: Array) -> Array:
    """Wrong: the axes are exchanged after the reshape."""
    batch, num_heads, n, d_k = x.shape
    return np.swapaxes(x.reshape(batch, num_heads * d_k, n), 1, 2)


@mistake("merge-without-transpose", "multi_head.combine_heads", form="tokens-first")
def combine_heads_tokens_first(x: Array) -> Array:
    """Wrong: the tokens come first, and then the reshape puts them elsewhere."""
    batch, num_heads, n, d_k = x.shape
    return x.transpose(2, 0, 1, 3).reshape(batch, n, num_heads * d_k)


@mistake("batch-and-heads-swapped", "multi_head.combine_heads", form="reshaped")
def combine_heads_reshaped_heads_first(x: Array) -> Array:
    """Wrong: batch and heads are exchanged before the reshape."""
    batch, num_heads, n, d_k = x.shape
    return np.swapaxes(x, 0, 1).reshape(batch, n, num_heads * d_k)


@mistake("heads-not-merged", "multi_head.combine_heads", form="list")
def combine_heads_as_list(x: Array) -> list[Array]:
    """Wrong: the heads are returned one by one."""
    return [x[:, i] for i in range(x.shape[1])]


@mistake("heads-averaged", "multi_head.combine_heads", form="repeated")
def combine_heads_averaged_and_repeated(x: Array) -> Array:
    """Wrong: the mean over the heads, once for each head."""
    return np.tile(np.mean(x, axis=1), x.shape[1])  # (batch, n, d_model)


@mistake("heads-summed", "multi_head.combine_heads", form="repeated")
def combine_heads_summed_and_repeated(x: Array) -> Array:
    """Wrong: the sum over the heads, once for each head."""
    return np.tile(np.sum(x, axis=1), x.shape[1])  # (batch, n, d_model)


@mistake("input-changed-in-place", "multi_head.combine_heads", form="shape")
def combine_heads_shape_in_place(x: Array) -> Array:
    """Wrong: the caller's array gets another shape."""
    batch, num_heads, n, d_k = x.shape
    heads = np.concatenate(list(np.moveaxis(x, 1, 0)), axis=-1)  # (batch, n, d_model)
    x.shape = (batch, num_heads * n, d_k)
    return heads
