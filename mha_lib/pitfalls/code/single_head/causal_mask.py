"""Mistakes in `causal_mask`."""

import numpy as np

from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import additive, none_is_an_error

Array = np.ndarray


@mistake("mask-inverted", "single_head.causal_mask")
def causal_mask_inverted(n: int, m: int | None = None) -> Array:
    """Wrong: True where a key is to be hidden."""
    m = n if m is None else m
    return np.arange(m) > np.arange(n)[:, None] + (m - n)  # (n, m)


@mistake("causal-transposed", "single_head.causal_mask")
def causal_mask_transposed(n: int, m: int | None = None) -> Array:
    """Wrong: a query sees itself and what comes later."""
    m = n if m is None else m
    return np.arange(m) >= np.arange(n)[:, None] + (m - n)  # (n, m)


@mistake("causal-hides-self", "single_head.causal_mask")
def causal_mask_hides_self(n: int, m: int | None = None) -> Array:
    """Wrong: a query does not see its own position."""
    m = n if m is None else m
    return np.arange(m) < np.arange(n)[:, None] + (m - n)  # (n, m)


@mistake("causal-sees-next", "single_head.causal_mask")
def causal_mask_sees_next(n: int, m: int | None = None) -> Array:
    """Wrong: a query sees one position too many."""
    m = n if m is None else m
    return np.arange(m) <= np.arange(n)[:, None] + (m - n) + 1  # (n, m)


@mistake("causal-top-left", "single_head.causal_mask")
def causal_mask_top_left(n: int, m: int | None = None) -> Array:
    """Wrong: the first query is lined up with the first key."""
    m = n if m is None else m
    return np.tril(np.ones((n, m), dtype=bool))  # (n, m)


@mistake("causal-top-left", "single_head.causal_mask", form="but-one-query")
def causal_mask_top_left_but_one_query(n: int, m: int | None = None) -> Array:
    """Wrong: only a single query is lined up with the last key."""
    return causal_mask_top_left(n, m) | (n == 1)  # (n, m)


@mistake("causal-offset-reversed", "single_head.causal_mask")
def causal_mask_offset_reversed(n: int, m: int | None = None) -> Array:
    """Wrong: the sign of the offset m − n is turned around."""
    m = n if m is None else m
    return np.arange(m) <= np.arange(n)[:, None] - (m - n)  # (n, m)


@mistake("square-mask-assumed", "single_head.causal_mask")
def causal_mask_square_assumed(n: int, m: int | None = None) -> Array:
    """Wrong: `m` is not used."""
    return np.tril(np.ones((n, n), dtype=bool))  # (n, n)


@mistake("mask-shape-transposed", "single_head.causal_mask")
def causal_mask_shape_transposed(n: int, m: int | None = None) -> Array:
    """Wrong: keys in the rows, queries in the columns."""
    m = n if m is None else m
    return np.arange(m)[:, None] <= np.arange(n) + (m - n)  # (m, n)


@mistake("mask-with-extra-axes", "single_head.causal_mask")
def causal_mask_with_extra_axes(n: int, m: int | None = None) -> Array:
    """Wrong: axes for a batch and for heads are added."""
    m = n if m is None else m
    return np.tril(np.ones((1, 1, n, m), dtype=bool), k=m - n)  # (1, 1, n, m)


@mistake("mask-not-boolean", "single_head.causal_mask")
def causal_mask_not_boolean(n: int, m: int | None = None) -> Array:
    """Wrong: numbers 0.0 and 1.0."""
    m = n if m is None else m
    return np.tril(np.ones((n, m)), k=m - n)  # (n, m)


@mistake("additive-mask", "single_head.causal_mask")
def causal_mask_additive(n: int, m: int | None = None) -> Array:
    """Wrong: 0 where a key is kept and −inf where it is hidden."""
    m = n if m is None else m
    keep = np.tril(np.ones((n, m), dtype=bool), k=m - n)  # (n, m)
    return np.where(keep, 0.0, -np.inf)


# --- other forms -------------------------------------------------------------------------------------------


@mistake("causal-transposed", "single_head.causal_mask", form="top-left")
def causal_mask_future_top_left(n: int, m: int | None = None) -> Array:
    """Wrong: what comes later is seen, with the first query lined up with the first key."""
    m = n if m is None else m
    return np.triu(np.ones((n, m), dtype=bool))


@mistake("causal-transposed", "single_head.causal_mask", form="offset-reversed")
def causal_mask_future_offset_reversed(n: int, m: int | None = None) -> Array:
    """Wrong: what comes later is seen, and the offset is turned around as well."""
    m = n if m is None else m
    return np.triu(np.ones((n, m), dtype=bool), k=n - m)


@mistake("mask-inverted", "single_head.causal_mask", form="top-left")
def causal_mask_inverted_top_left(n: int, m: int | None = None) -> Array:
    """Wrong: True where a key is to be hidden, lined up at the first key."""
    m = n if m is None else m
    return np.triu(np.ones((n, m), dtype=bool), k=1)


@mistake("causal-hides-self", "single_head.causal_mask", form="top-left")
def causal_mask_hides_self_top_left(n: int, m: int | None = None) -> Array:
    """Wrong: a query does not see its own position, lined up at the first key."""
    m = n if m is None else m
    return np.tri(n, m, -1, dtype=bool)


@mistake("square-mask-assumed", "single_head.causal_mask", form="of-keys")
def causal_mask_square_of_keys(n: int, m: int | None = None) -> Array:
    """Wrong: as many rows as keys."""
    return np.tri(n if m is None else m, dtype=bool)


@mistake("mask-shape-transposed", "single_head.causal_mask", form="top-left")
def causal_mask_shape_transposed_top_left(n: int, m: int | None = None) -> Array:
    """Wrong: keys in the rows, lined up at the first key."""
    m = n if m is None else m
    return np.tri(m, n, dtype=bool)


@mistake("mask-shape-transposed", "single_head.causal_mask", form="exchanged")
def causal_mask_sizes_exchanged(n: int, m: int | None = None) -> Array:
    """Wrong: n and m are exchanged."""
    m = n if m is None else m
    return np.tri(m, n, n - m, dtype=bool)


@mistake("mask-with-extra-axes", "single_head.causal_mask", form="one")
def causal_mask_with_one_extra_axis(n: int, m: int | None = None) -> Array:
    """Wrong: an axis for a batch is added."""
    m = n if m is None else m
    return np.tri(n, m, m - n, dtype=bool)[None]


@mistake("causal-missing", "single_head.causal_mask", form="all-true")
def causal_mask_missing(n: int, m: int | None = None) -> Array:
    """Wrong: nothing is hidden."""
    return np.ones((n, n if m is None else m), dtype=bool)


law("additive-mask", "single_head.causal_mask")(additive)
law("none-not-handled", "single_head.causal_mask")(none_is_an_error)
