"""Mistakes in `offset_score`."""

import numpy as np

from mha_lib.pitfalls.code import mistake

Array = np.ndarray


@mistake("offset-sign-turned", "real_heads.offset_score")
def offset_sign_turned(attention_weights: Array, offset: int) -> Array:
    """Wrong: what is read is the weight of key i − offset: maps transposed, or the sign turned round."""
    return np.diagonal(attention_weights, -offset, axis1=1, axis2=2).mean(axis=1)


@mistake("offset-ignored", "real_heads.offset_score")
def offset_ignored(attention_weights: Array, offset: int) -> Array:
    """Wrong: the weight of a token on itself, whatever the offset."""
    return np.diagonal(attention_weights, axis1=1, axis2=2).mean(axis=1)


@mistake("offset-divided-by-n", "real_heads.offset_score")
def offset_divided_by_n(attention_weights: Array, offset: int) -> Array:
    """Wrong: the sum is divided by the number of all queries."""
    diagonal = np.diagonal(attention_weights, offset, axis1=1, axis2=2)  # (heads, n - |offset|)
    return diagonal.sum(axis=1) / attention_weights.shape[-1]


@mistake("offset-summed", "real_heads.offset_score")
def offset_summed(attention_weights: Array, offset: int) -> Array:
    """Wrong: the sum, not the mean."""
    return np.diagonal(attention_weights, offset, axis1=1, axis2=2).sum(axis=1)


@mistake("offset-wraps-around", "real_heads.offset_score")
def offset_wraps_around(attention_weights: Array, offset: int) -> Array:
    """Wrong: the first token is taken to have the last one before it."""
    n = attention_weights.shape[-1]
    i = np.arange(n)
    return attention_weights[:, i, (i + offset) % n].mean(axis=1)


@mistake("offset-negative-index", "real_heads.offset_score")
def offset_negative_index(attention_weights: Array, offset: int) -> Array:
    """Wrong: keys beyond the end are left out, but a negative index counts from the end."""
    n = attention_weights.shape[-1]
    i = np.array([i for i in range(n) if i + offset < n])
    return attention_weights[:, i, i + offset].mean(axis=1)


@mistake("offset-averaged-over-heads", "real_heads.offset_score")
def offset_averaged_over_heads(attention_weights: Array, offset: int) -> Array:
    """Wrong: the heads are averaged, and one number for each token is left."""
    return np.diagonal(attention_weights, offset, axis1=1, axis2=2).mean(axis=0)  # (n - |offset|,)


@mistake("offset-first-axes", "real_heads.offset_score")
def offset_first_axes(attention_weights: Array, offset: int) -> Array:
    """Wrong: the diagonal of the axes 0 and 1, heads and queries, which is NumPy's default."""
    return np.diagonal(attention_weights, offset).mean(axis=-1)


@mistake("offset-by-largest-weight", "real_heads.offset_score")
def offset_by_largest_weight(attention_weights: Array, offset: int) -> Array:
    """Wrong: the share of queries that look there most, not how much they look."""
    n = attention_weights.shape[-1]
    hits = attention_weights.argmax(axis=-1) == np.arange(n) + offset  # (heads, n)
    return hits.sum(axis=1) / (n - abs(offset))


@mistake("input-changed-in-place", "real_heads.offset_score")
def offset_changes_its_input(attention_weights: Array, offset: int) -> Array:
    """Wrong: everything but the diagonal becomes 0 in the caller's array."""
    n = attention_weights.shape[-1]
    attention_weights *= np.eye(n, k=offset)
    return attention_weights.sum(axis=(1, 2)) / (n - abs(offset))
