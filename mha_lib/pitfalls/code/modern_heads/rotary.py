"""Mistakes in `rotary`."""

from collections.abc import Callable

import torch
from torch import Tensor

from mha_lib.pitfalls.code import mistake


def frequencies(d_k: int, base: float) -> Tensor:
    """How fast each pair turns: base^(-2i/d_k), `(d_k / 2,)`; an error if d_k is odd."""
    if d_k % 2:
        raise ValueError(f"d_k={d_k} is odd")
    return base ** (-2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k)


def angles(positions: Tensor, d_k: int, base: float) -> Tensor:
    """By how much each pair of each token is turned, `(n, d_k / 2)` or `(batch, n, d_k / 2)`."""
    return positions[..., None] * frequencies(d_k, base)


def turned(x: Tensor, by: Tensor) -> Tensor:
    """The features i and i + d_k/2 of each token turned by its angles `(..., n, d_k / 2)`."""
    by = by.unsqueeze(-3)  # (..., 1, n, d_k / 2)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


@mistake("rotary-pairs-interleaved", "modern_heads.rotary")
def rotary_interleaved(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: neighbours are a pair, features 2i and 2i + 1."""
    halves = torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)
    halves = turned(halves, angles(positions, x.shape[-1], base))
    first, second = halves.chunk(2, dim=-1)
    return torch.stack([first, second], dim=-1).flatten(-2)  # (batch, heads, n, d_k)


@mistake("rotary-angle-reversed", "modern_heads.rotary")
def rotary_backwards(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the angle has the other sign."""
    return turned(x, angles(-positions, x.shape[-1], base))


@mistake("rotary-cos-sin-swapped", "modern_heads.rotary")
def rotary_cos_sin_swapped(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: cosine and sine are exchanged."""
    return turned(x, torch.pi / 2 - angles(positions, x.shape[-1], base))


@mistake("rotary-minus-missing", "modern_heads.rotary")
def rotary_minus_missing(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the halves are exchanged without a minus, so that lengths change."""
    by = angles(positions, x.shape[-1], base).unsqueeze(-3)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    pair = [first * cos + second * sin, first * sin + second * cos]
    return torch.cat(pair, dim=-1)


@mistake("rotary-first-half-only", "modern_heads.rotary")
def rotary_first_half_only(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the second half of the features stays as it is."""
    first, _ = turned(x, angles(positions, x.shape[-1], base)).chunk(2, dim=-1)
    return torch.cat([first, x.chunk(2, dim=-1)[1]], dim=-1)


@mistake("rotary-exponent-halved", "modern_heads.rotary")
def rotary_exponent_halved(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the exponent is -i/d_k."""
    speeds = frequencies(x.shape[-1], base).sqrt()
    return turned(x, positions[..., None] * speeds)


@mistake("rotary-exponent-doubled", "modern_heads.rotary")
def rotary_exponent_doubled(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the exponent is -4i/d_k, since the 2 is counted twice."""
    speeds = frequencies(x.shape[-1], base).square()
    return turned(x, positions[..., None] * speeds)


@mistake("rotary-exponent-positive", "modern_heads.rotary")
def rotary_exponent_positive(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the exponent is +2i/d_k, so that later pairs turn faster."""
    return turned(x, positions[..., None] / frequencies(x.shape[-1], base))


@mistake("rotary-one-frequency", "modern_heads.rotary")
def rotary_one_frequency(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: all pairs turn by the same angle."""
    return turned(x, positions[..., None] * frequencies(x.shape[-1], base) ** 0)


@mistake("rotary-base-ignored", "modern_heads.rotary")
def rotary_base_ignored(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the base is 10,000 whatever is asked for."""
    return turned(x, angles(positions, x.shape[-1], 10000.0))


@mistake("rotary-positions-ignored", "modern_heads.rotary")
def rotary_positions_ignored(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: tokens are counted from 0, whatever their positions are."""
    return turned(x, angles(torch.arange(x.shape[-2]), x.shape[-1], base))


@mistake("rotary-offset-lost", "modern_heads.rotary")
def rotary_offset_lost(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the first token that comes is taken for position 0."""
    return turned(x, angles(positions - positions[..., :1], x.shape[-1], base))


@mistake("rotary-positions-from-one", "modern_heads.rotary")
def rotary_positions_from_one(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: positions are counted from 1."""
    return turned(x, angles(positions + 1, x.shape[-1], base))


@mistake("rotary-first-positions-for-all", "modern_heads.rotary")
def rotary_first_positions_for_all(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the first sequence's positions are used for all sequences."""
    first = positions if positions.ndim == 1 else positions[0]  # (n,)
    return turned(x, angles(first, x.shape[-1], base))


@mistake("rotary-positions-told-by-size", "modern_heads.rotary")
def rotary_positions_told_by_size(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: positions `(n,)` are taken for those of sequences if there are as many sequences as tokens."""
    by = angles(positions, x.shape[-1], base)  # (n, d_k / 2) or (batch, n, d_k / 2)
    if len(positions) == len(x):
        by = by.unsqueeze(1)  # (batch, 1, n, d_k / 2), but it may be (n, 1, d_k / 2)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


@mistake("rotary-positions-told-by-size", "modern_heads.rotary", form="one-each")
def rotary_position_for_each_sequence(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: if there are as many sequences as tokens, each sequence gets one of the positions `(n,)`."""
    by = angles(positions, x.shape[-1], base)  # (n, d_k / 2) or (batch, n, d_k / 2)
    if len(positions) == len(x) > 1:
        by = by.reshape(
            len(x), 1, -1, x.shape[-1] // 2
        )  # (batch, 1, n, d_k / 2), but it may be (n, 1, 1, d_k / 2)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


@mistake("rotary-positions-on-head-axis", "modern_heads.rotary")
def rotary_positions_on_head_axis(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: positions `(batch, n)` meet the heads, since no axis is put in for them."""
    by = angles(positions, x.shape[-1], base)  # (n, d_k / 2) or (batch, n, d_k / 2)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


@mistake("rotary-width-unchecked", "modern_heads.rotary")
def rotary_width_unchecked(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: an odd width is cut into halves of which one is wider, without a word of it."""
    d_k = x.shape[-1]
    exponents = -2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k
    return turned(x, positions[..., None] * base**exponents)


@mistake("rotary-in-float64", "modern_heads.rotary")
def rotary_in_float64(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the angles' float64 reaches the result."""
    return turned(x.double(), angles(positions, x.shape[-1], base))


@mistake("input-changed-in-place", "modern_heads.rotary")
def rotary_in_place(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the caller's features are overwritten."""
    with torch.no_grad():
        x.copy_(turned(x, angles(positions, x.shape[-1], base)))
    return x


@mistake("gradient-cut-off", "modern_heads.rotary")
def rotary_cut_off(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the result is taken out of the graph."""
    return turned(x, angles(positions, x.shape[-1], base)).detach()


@mistake("input-changed-in-place", "modern_heads.rotary", form="in-the-graph")
def rotary_in_place_in_the_graph(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the caller's features are overwritten, where autograd sees it."""
    x[:] = turned(x, angles(positions, x.shape[-1], base))
    return x


@mistake("rotary-half-overwritten", "modern_heads.rotary")
def rotary_half_overwritten(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the second half is computed from the new first half."""
    by = angles(positions, x.shape[-1], base).unsqueeze(-3)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    first = first * cos - second * sin
    second = first * sin + second * cos
    return torch.cat([first, second], dim=-1)


@mistake("rotary-pairs-shifted", "modern_heads.rotary")
def rotary_pairs_from_one(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the pairs are counted from 1."""
    d_k = x.shape[-1]
    return turned(x, angles(positions, d_k, base) * base ** (-2 / d_k))


# --- forms -------------------------------------------------------------------------------------------------


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the second half of the features."""
    first, second = x.chunk(2, dim=-1)
    return first, second


def twice(by: Tensor, interleaved: bool) -> tuple[Tensor, Tensor]:
    """Cosine and sine for each feature, `(..., 1, n, d_k)`; those of a pair side by side, or half a width apart."""
    by = (by.repeat_interleave(2, dim=-1) if interleaved else torch.cat([by, by], dim=-1)).unsqueeze(-3)
    return by.cos(), by.sin()


def rotary_angles_interleaved(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the partner is half a width away, and its angle is that of the neighbour."""
    cos, sin = (each.to(x.dtype) for each in twice(angles(positions, x.shape[-1], base), interleaved=True))
    first, second = halves(x)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def rotary_partners_interleaved(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the partner is the neighbour, and its angle is that of the feature half a width away."""
    cos, sin = (each.to(x.dtype) for each in twice(angles(positions, x.shape[-1], base), interleaved=False))
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * cos + partner * sin


def rotary_interleaved_into_halves(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: neighbours are a pair, and come out half a width apart."""
    return turned(torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1), angles(positions, x.shape[-1], base))


def rotary_minus_twice(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the products are subtracted in both halves."""
    by = angles(positions, x.shape[-1], base).unsqueeze(-3)
    cos, sin = by.cos().to(x.dtype), by.sin().to(x.dtype)
    first, second = halves(x)
    return torch.cat([first * cos - second * sin, second * cos - first * sin], dim=-1)


def rotary_second_half_only(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the first half of the features stays as it is."""
    return torch.cat([halves(x)[0], halves(turned(x, angles(positions, x.shape[-1], base)))[1]], dim=-1)


def rotary_odd_feature_dropped(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: of an odd width the last feature is dropped."""
    d_k = x.shape[-1]
    exponents = -2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k
    return turned(x[..., : d_k // 2 * 2], positions[..., None] * base**exponents)


def rotary_in_float32(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: float32 comes out, whatever comes in."""
    return turned(x.float(), angles(positions, x.shape[-1], base))


def with_angles(angles_of: Callable[[Tensor, int, float], Tensor]) -> Callable[..., Tensor]:
    """`rotary` with other angles, from positions, d_k and base."""

    def rotary(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
        frequencies(x.shape[-1], base)  # an odd width is an error
        return turned(x, angles_of(positions, x.shape[-1], base))

    return rotary


def spread_to_the_end(positions: Tensor, d_k: int, base: float) -> Tensor:
    """The last of several pairs has the speed 1/base."""
    pairs = torch.arange(d_k // 2, dtype=torch.float64)
    return positions[..., None] * base ** (-pairs / max(1, d_k // 2 - 1))


FORMS: dict[str, Callable[..., Tensor]] = {
    "rotary-pairs-interleaved/angles": rotary_angles_interleaved,
    "rotary-pairs-interleaved/partners": rotary_partners_interleaved,
    "rotary-pairs-interleaved/into-halves": rotary_interleaved_into_halves,
    "rotary-minus-missing/twice": rotary_minus_twice,
    "rotary-first-half-only/second": rotary_second_half_only,
    "rotary-width-unchecked/dropped": rotary_odd_feature_dropped,
    "rotary-in-float64/float32": rotary_in_float32,
    "rotary-pairs-shifted/to-the-end": with_angles(spread_to_the_end),
    "rotary-one-frequency/of-the-base": with_angles(
        lambda positions, d_k, base: (positions[..., None] / base).expand(*positions.shape, d_k // 2)
    ),
    "rotary-base-ignored/e": with_angles(lambda positions, d_k, base: angles(positions, d_k, torch.e)),
    "rotary-base-ignored/1000": with_angles(lambda positions, d_k, base: angles(positions, d_k, 1000.0)),
    "rotary-offset-lost/of-the-batch": with_angles(
        lambda positions, d_k, base: angles(positions - positions.min(), d_k, base)
    ),
    "rotary-offset-lost/gaps": with_angles(
        lambda positions, d_k, base: angles(positions[..., :1] + torch.arange(positions.shape[-1]), d_k, base)
    ),
    "rotary-positions-from-one/back": with_angles(
        lambda positions, d_k, base: angles(positions - 1, d_k, base)
    ),
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "modern_heads.rotary", form=form)(code)
