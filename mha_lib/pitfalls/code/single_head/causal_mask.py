"""Mistakes in `causal_mask`."""

import numpy as np

from mha_lib.pitfalls.code import mistake

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
