"""Mistakes in `offset_score`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import given

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


@mistake("offset-zeros-left-out", "real_heads.offset_score")
def offset_zeros_left_out(attention_weights: Array, offset: int) -> Array:
    """Wrong: the mean over the weights that are not 0."""
    diagonal = np.diagonal(attention_weights, offset, axis1=1, axis2=2)  # (heads, n - |offset|)
    return diagonal.sum(axis=1) / np.maximum(np.count_nonzero(diagonal, axis=1), 1)


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


@mistake("axes-of-one-dropped", "real_heads.offset_score")
def offset_squeezed(attention_weights: Array, offset: int) -> Array:
    """Wrong: of a single head comes a number without axes."""
    diagonals = np.diagonal(attention_weights, offset, axis1=1, axis2=2)  # (heads, n - |offset|)
    return diagonals.mean(axis=1).squeeze()


@mistake("offset-zero-empty", "real_heads.offset_score")
def offset_slice_to_minus_zero(attention_weights: Array, offset: int) -> Array:
    """Wrong: for offset 0 the slice `[:-0]` is empty, and so is what is left."""
    if offset >= 0:  # noqa: SIM108 - too wide for a line of the book
        shifted = attention_weights[:, :-offset, offset:]  # (heads, n - offset, n - offset)
    else:
        shifted = attention_weights[:, -offset:, :offset]  # (heads, n + offset, n + offset)
    diagonal = np.diagonal(shifted, axis1=1, axis2=2)
    return diagonal.sum(axis=1) / np.float64(diagonal.shape[1])  # NaN if nothing is left


# --- forms -------------------------------------------------------------------------------------------------


def diagonal(maps: Array, offset: int) -> Array:
    """The weights at this offset, `(heads, n - |offset|)`."""
    return np.diagonal(maps, offset, axis1=1, axis2=2)


def hits(maps: Array, offset: int) -> Array:
    """Whether the largest weight of each query is there, `(heads, n)`."""
    return maps.argmax(axis=-1) == np.arange(maps.shape[-1]) + offset


def rows(maps: Array, offset: int) -> Array:
    """The weight of key i + offset for all queries; an error if there is no such key."""
    i = np.arange(maps.shape[-1])
    return maps[:, i, i + offset]


def first_rows(maps: Array, offset: int) -> Array:
    """The weight of key i + offset for the first n - |offset| queries; negative indices count from the end."""
    i = np.arange(maps.shape[-1] - abs(offset))
    return maps[:, i, i + offset]


def rows_but_the_first(maps: Array, offset: int) -> Array:
    """The weight of key i + offset for all queries but the first; negative indices count from the end."""
    i = np.arange(1, maps.shape[-1])
    return maps[:, i, i + offset]


FORMS: dict[str, Callable[[Array, int], Any]] = {
    "offset-ignored/sign": lambda maps, offset: diagonal(maps, abs(offset)).mean(axis=1),
    "offset-ignored/sign-backwards": lambda maps, offset: diagonal(maps, -abs(offset)).mean(axis=1),
    "offset-ignored/the-one-before": lambda maps, offset: diagonal(maps, -1).mean(axis=1),
    "offset-divided-by-n/less-offset": lambda maps, offset: (
        diagonal(maps, offset).sum(axis=1) / np.float64(maps.shape[-1] - offset)
    ),
    "offset-divided-by-n/and-offset": lambda maps, offset: (
        diagonal(maps, offset).sum(axis=1) / np.float64(maps.shape[-1] + offset)
    ),
    "offset-divided-by-n/less-one": lambda maps, offset: (
        diagonal(maps, offset).sum(axis=1) / np.float64(maps.shape[-1] - 1)
    ),
    "offset-divided-by-n/squared": lambda maps, offset: diagonal(maps, offset).sum(axis=1) / maps[0].size,
    "offset-wraps-around/turned": lambda maps, offset: diagonal(np.roll(maps, offset, axis=2), 0).mean(
        axis=1
    ),
    "offset-negative-index/error": lambda maps, offset: rows(maps, offset).mean(axis=1),
    "offset-negative-index/but-the-first-query": lambda maps, offset: (
        rows_but_the_first(maps, offset) if offset < 0 else diagonal(maps, offset)
    ).mean(axis=1),
    "offset-negative-index/first-queries": lambda maps, offset: first_rows(maps, offset).mean(axis=1),
    "offset-averaged-over-heads/too": lambda maps, offset: diagonal(maps, offset).mean(),
    "offset-averaged-over-heads/the-same": lambda maps, offset: np.full(
        len(maps), diagonal(maps, offset).mean()
    ),
    "offset-first-axes/other-mean": lambda maps, offset: np.diagonal(maps, offset).mean(axis=0),
    "offset-first-axes/heads-and-keys": lambda maps, offset: np.diagonal(maps, offset, axis1=0, axis2=2).mean(
        axis=-1
    ),
    "offset-by-largest-weight/of-all": lambda maps, offset: hits(maps, offset).mean(axis=1),
    "offset-by-largest-weight/counted": lambda maps, offset: hits(maps, offset).sum(axis=1),
}
for name, score in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "real_heads.offset_score", form=form)(score)


@law("offset-zero-empty", "real_heads.offset_score")
def right_but_at_zero(tested: Any, steps: Sequence[Any]) -> bool:
    """Neighbours are right on both sides, and of the token itself nothing comes: NaN, 0 or an error."""
    maps = np.arange(32.0).reshape(2, 4, 4) ** 2
    nothing = all(step.error is not None or not np.nan_to_num(step.value).any() for step in steps)
    return (
        nothing
        and all(given(step, 1, "offset") == 0 for step in steps)
        and all(
            np.allclose(tested(maps, offset), diagonal(maps, offset).mean(axis=1))
            for offset in (-2, -1, 1, 2)
        )
    )
