"""Weak checks of the items of `modern_heads`: shapes, finite numbers, and right results on harmless inputs."""

import torch
from torch import Tensor

from mha_lib import modern_heads, positions
from mha_lib.pitfalls.weak_checks import Code, weak_check
from mha_lib.pitfalls.weak_checks.batched_torch import (
    as_tuple,
    check_finite,
    check_shape,
    inputs,
    right_under,
)


def turned(rotary: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """A whole sequence from position 0 on, with the default base."""
    return as_tuple(rotary(*inputs((2, 3, 5, 4)), torch.arange(5)))


def window(sliding_window_mask: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """As many keys as queries."""
    return as_tuple(sliding_window_mask(5, 5, 3))


def latent(attention: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """Two heads that are together as wide as the model."""
    return as_tuple(attention(*inputs((2, 5, 8), (8, 8), (8, 4), (4, 8), (4, 8), (8, 8)), 2, mask))


def normed(qk_norm_attention: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """Three heads with the same g."""
    return as_tuple(qk_norm_attention(*inputs(*[(2, 3, 5, 4)] * 3), torch.full((3, 1, 1), 2.0), mask))


for item, right, run in (
    ("rotary", positions.rotary, turned),
    ("sliding_window_mask", positions.sliding_window_mask, window),
    ("latent_attention", modern_heads.latent_attention, latent),
    ("latent_attention_absorbed", modern_heads.latent_attention_absorbed, latent),
    ("qk_norm_attention", modern_heads.qk_norm_attention, normed),
):
    check_shape(f"modern_heads.{item}", right, run)
    if item != "sliding_window_mask":
        check_finite(f"modern_heads.{item}", run)
        weak_check("right values", f"modern_heads.{item}")(right_under(right, run))
