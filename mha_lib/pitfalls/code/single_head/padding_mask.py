"""Mistakes in `padding_mask`."""

import numpy as np

from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import additive

Array = np.ndarray


@mistake("mask-inverted", "single_head.padding_mask")
def padding_mask_inverted(lengths: Array, max_len: int) -> Array:
    """Wrong: True for padding."""
    return np.arange(max_len) >= np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)


@mistake("padding-off-by-one", "single_head.padding_mask")
def padding_mask_off_by_one(lengths: Array, max_len: int) -> Array:
    """Wrong: `<=` keeps the first padding token."""
    return np.arange(max_len) <= np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)


@mistake("padding-hides-last-token", "single_head.padding_mask")
def padding_mask_hides_last_token(lengths: Array, max_len: int) -> Array:
    """Wrong: the last real token is hidden."""
    return np.arange(max_len) < np.asarray(lengths)[:, None, None, None] - 1  # (batch, 1, 1, max_len)


@mistake("padding-on-the-left", "single_head.padding_mask")
def padding_mask_on_the_left(lengths: Array, max_len: int) -> Array:
    """Wrong: the padding is taken to come first."""
    padding = max_len - np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, 1)
    return np.arange(max_len) >= padding  # (batch, 1, 1, max_len)


@mistake("padding-without-broadcast-axes", "single_head.padding_mask")
def padding_mask_without_broadcast_axes(lengths: Array, max_len: int) -> Array:
    """Wrong: no axes for heads and queries."""
    return np.arange(max_len) < np.asarray(lengths)[:, None]  # (batch, max_len)


@mistake("mask-batch-on-head-axis", "single_head.padding_mask")
def padding_mask_batch_on_head_axis(lengths: Array, max_len: int) -> Array:
    """Wrong: one axis too few, so that the batch lines up with the heads."""
    return np.arange(max_len) < np.asarray(lengths)[:, None, None]  # (batch, 1, max_len)


@mistake("padding-on-query-axis", "single_head.padding_mask")
def padding_mask_on_query_axis(lengths: Array, max_len: int) -> Array:
    """Wrong: the queries are masked, not the keys."""
    return np.arange(max_len)[:, None] < np.asarray(lengths)[:, None, None, None]  # (batch, 1, max_len, 1)


@mistake("padding-masks-queries-too", "single_head.padding_mask")
def padding_mask_of_queries_too(lengths: Array, max_len: int) -> Array:
    """Wrong: padding queries are left with no key at all."""
    keep = np.arange(max_len) < np.asarray(lengths)[:, None]  # (batch, max_len)
    return keep[:, None, :, None] & keep[:, None, None, :]  # (batch, 1, max_len, max_len)


@mistake("max-len-ignored", "single_head.padding_mask")
def padding_mask_max_len_ignored(lengths: Array, max_len: int) -> Array:
    """Wrong: as wide as the longest sequence, whatever `max_len` says."""
    longest = np.max(lengths)
    return np.arange(longest) < np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, longest)


@mistake("mask-not-boolean", "single_head.padding_mask")
def padding_mask_not_boolean(lengths: Array, max_len: int) -> Array:
    """Wrong: numbers 0.0 and 1.0."""
    keep = np.arange(max_len) < np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)
    return keep.astype(float)


@mistake("additive-mask", "single_head.padding_mask")
def padding_mask_additive(lengths: Array, max_len: int) -> Array:
    """Wrong: 0 where a key is kept and −inf where it is hidden."""
    keep = np.arange(max_len) < np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)
    return np.where(keep, 0.0, -np.inf)


@mistake("axes-of-one-dropped", "single_head.padding_mask")
def padding_mask_squeezed(lengths: Array, max_len: int) -> Array:
    """Wrong: `squeeze` drops every axis of size 1, of which one may be the sequences."""
    keep = np.squeeze(np.arange(max_len) < np.asarray(lengths)[:, None])  # (batch, max_len)
    return np.expand_dims(keep, (-3, -2))


@mistake("input-changed-in-place", "single_head.padding_mask")
def padding_mask_in_place(lengths: Array, max_len: int) -> Array:
    """Wrong: the caller's lengths are counted down."""
    lengths -= 1  # to the places of the last tokens
    return np.arange(max_len) <= lengths[:, None, None, None]  # (batch, 1, 1, max_len)


# --- other forms -------------------------------------------------------------------------------------------


@mistake("first-mask-for-all-sequences", "single_head.padding_mask", form="first-length")
def padding_mask_first_length(lengths: Array, max_len: int) -> Array:
    """Wrong: every sequence gets the length of the first one."""
    keep = np.arange(max_len) < lengths[0]  # (max_len,)
    return np.broadcast_to(keep, (len(lengths), 1, 1, max_len))


law("additive-mask", "single_head.padding_mask")(additive)
