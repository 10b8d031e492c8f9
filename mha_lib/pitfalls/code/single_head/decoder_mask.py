"""Mistakes in `decoder_mask`."""

from typing import Any

import numpy as np

from mha_lib.masks import causal_mask, padding_mask
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import additive, none_is_an_error

Array = np.ndarray


@mistake("masks-or-combined", "single_head.decoder_mask")
def decoder_mask_or_combined(n: int, keep: Array | None = None) -> Array:
    """Wrong: `or` lets a key through that one of the two masks hides."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal | keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("padding-replaces-causal", "single_head.decoder_mask")
def decoder_mask_padding_replaces_causal(n: int, keep: Array | None = None) -> Array:
    """Wrong: with `keep`, only the padding is hidden."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else keep[:, None, None, :]  # (batch, 1, 1, n)


@mistake("causal-missing", "single_head.decoder_mask")
def decoder_mask_causal_missing(n: int, keep: Array | None = None) -> Array:
    """Wrong: the future is never hidden."""
    return np.ones((n, n), dtype=bool) if keep is None else keep[:, None, None, :]  # (batch, 1, 1, n)


@mistake("padding-missing", "single_head.decoder_mask")
def decoder_mask_padding_missing(n: int, keep: Array | None = None) -> Array:
    """Wrong: `keep` is not used."""
    return causal_mask(n)  # (n, n)


@mistake("padding-on-query-axis", "single_head.decoder_mask")
def decoder_mask_padding_on_query_axis(n: int, keep: Array | None = None) -> Array:
    """Wrong: padding hides queries in place of keys."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & keep[:, None, :, None]  # (batch, 1, n, n)


@mistake("padding-masks-queries-too", "single_head.decoder_mask")
def decoder_mask_of_queries_too(n: int, keep: Array | None = None) -> Array:
    """Wrong: padding queries are left with no key at all."""
    causal = causal_mask(n)  # (n, n)
    if keep is None:
        return causal
    return causal & keep[:, None, None, :] & keep[:, None, :, None]  # (batch, 1, n, n)


@mistake("mask-batch-on-head-axis", "single_head.decoder_mask")
def decoder_mask_batch_on_head_axis(n: int, keep: Array | None = None) -> Array:
    """Wrong: one axis too few, so that the batch lines up with the heads."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & keep[:, None, :]  # (batch, n, n)


@mistake("first-mask-for-all-sequences", "single_head.decoder_mask")
def decoder_mask_first_for_all_sequences(n: int, keep: Array | None = None) -> Array:
    """Wrong: every sequence gets the padding of the first one."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & keep[0]  # (n, n)


@mistake("keep-inverted", "single_head.decoder_mask")
def decoder_mask_keep_inverted(n: int, keep: Array | None = None) -> Array:
    """Wrong: `keep` is taken to mark the padding."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & ~keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("mask-inverted", "single_head.decoder_mask")
def decoder_mask_inverted(n: int, keep: Array | None = None) -> Array:
    """Wrong: True where a key is to be hidden."""
    causal = causal_mask(n)  # (n, n)
    return ~causal if keep is None else ~(causal & keep[:, None, None, :])  # (batch, 1, n, n)


@mistake("causal-transposed", "single_head.decoder_mask")
def decoder_mask_causal_transposed(n: int, keep: Array | None = None) -> Array:
    """Wrong: a query sees itself and what comes later."""
    later = causal_mask(n).T  # (n, n)
    return later if keep is None else later & keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("causal-hides-self", "single_head.decoder_mask")
def decoder_mask_causal_hides_self(n: int, keep: Array | None = None) -> Array:
    """Wrong: a query does not see its own position."""
    earlier = np.tril(np.ones((n, n), dtype=bool), k=-1)  # (n, n)
    return earlier if keep is None else earlier & keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("causal-sees-next", "single_head.decoder_mask")
def decoder_mask_causal_sees_next(n: int, keep: Array | None = None) -> Array:
    """Wrong: a query sees one position too many."""
    causal = np.tril(np.ones((n, n), dtype=bool), k=1)  # (n, n)
    return causal if keep is None else causal & keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("none-not-handled", "single_head.decoder_mask")
def decoder_mask_none_not_handled(n: int, keep: Any = None) -> Array:
    """Wrong: None has no axes to add."""
    return causal_mask(n) & keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("mask-not-boolean", "single_head.decoder_mask")
def decoder_mask_not_boolean(n: int, keep: Array | None = None) -> Array:
    """Wrong: numbers 0.0 and 1.0."""
    causal = np.tril(np.ones((n, n)))  # (n, n)
    return causal if keep is None else causal * keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("additive-mask", "single_head.decoder_mask")
def decoder_mask_additive(n: int, keep: Array | None = None) -> Array:
    """Wrong: 0 where a key is kept and −inf where it is hidden."""
    allowed = causal_mask(n)  # (n, n)
    if keep is not None:
        allowed = allowed & keep[:, None, None, :]  # (batch, 1, n, n)
    return np.where(allowed, 0.0, -np.inf)


@mistake("padding-at-the-end-assumed", "single_head.decoder_mask")
def decoder_mask_padding_at_the_end_assumed(n: int, keep: Array | None = None) -> Array:
    """Wrong: real tokens are counted, as if all of them came before the padding."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & padding_mask(keep.sum(axis=1), n)  # (batch, 1, n, n)


# --- other forms -------------------------------------------------------------------------------------------


@mistake("masks-or-combined", "single_head.decoder_mask", form="sum")
def decoder_mask_sum(n: int, keep: Array | None = None) -> Array:
    """Wrong: the two masks are added, so that one is enough."""
    causal = causal_mask(n).astype(float)  # (n, n)
    return causal if keep is None else causal + keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("padding-replaces-causal", "single_head.decoder_mask", form="queries-too")
def decoder_mask_padding_alone_of_queries_too(n: int, keep: Array | None = None) -> Array:
    """Wrong: with `keep`, only the padding is hidden, as queries as well."""
    return causal_mask(n) if keep is None else keep[:, None, None, :] & keep[:, None, :, None]


@mistake("padding-without-broadcast-axes", "single_head.decoder_mask", form="two-axes")
def decoder_mask_padding_without_axes(n: int, keep: Array | None = None) -> Array:
    """Wrong: `keep` has no axes for heads and queries."""
    return causal_mask(n) if keep is None else causal_mask(n) & keep


@mistake("mask-inverted", "single_head.decoder_mask", form="causal-only")
def decoder_mask_future_and_keep(n: int, keep: Array | None = None) -> Array:
    """Wrong: the causal mask is True where a key is to be hidden."""
    later = ~causal_mask(n)  # (n, n)
    return later if keep is None else later & keep[:, None, None, :]  # (batch, 1, n, n)


@mistake("first-mask-for-all-sequences", "single_head.decoder_mask", form="all")
def decoder_mask_kept_by_all(n: int, keep: Array | None = None) -> Array:
    """Wrong: a key is seen if it is no padding in any sequence."""
    return causal_mask(n) if keep is None else causal_mask(n) & keep.all(axis=0)


@mistake("causal-missing", "single_head.decoder_mask", form="without-keep")
def decoder_mask_nothing_without_keep(n: int, keep: Array | None = None) -> Array:
    """Wrong: without `keep` nothing is hidden."""
    everything = np.ones((n, n), dtype=bool)
    return everything if keep is None else causal_mask(n) & keep[:, None, None, :]


@mistake("mask-not-boolean", "single_head.decoder_mask", form="without-keep")
def decoder_mask_not_boolean_without_keep(n: int, keep: Array | None = None) -> Array:
    """Wrong: without `keep`, numbers 0.0 and 1.0."""
    return np.tri(n) if keep is None else causal_mask(n) & keep[:, None, None, :]


law("additive-mask", "single_head.decoder_mask")(additive)
law("none-not-handled", "single_head.decoder_mask")(none_is_an_error)
