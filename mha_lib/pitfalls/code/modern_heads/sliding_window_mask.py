"""Mistakes in `sliding_window_mask`."""

import torch
from torch import Tensor

from mha_lib.pitfalls.code import mistake


def positive(window: int) -> int:
    """The window, if it is 1 or more; else an error."""
    if window < 1:
        raise ValueError(f"window={window} should be 1 or more")
    return window


def how_far_back(n: int, m: int) -> Tensor:
    """How far before each query each key stands, `(n, m)`; the last query lines up with the last key."""
    return torch.arange(m - n, m)[:, None] - torch.arange(m)


@mistake("window-one-too-wide", "modern_heads.sliding_window_mask")
def window_one_too_wide(n: int, m: int, window: int) -> Tensor:
    """Wrong: `window` keys and the query's own."""
    back = how_far_back(n, m)  # (n, m)
    return (back >= 0) & (back <= positive(window))


@mistake("window-one-too-narrow", "modern_heads.sliding_window_mask")
def window_one_too_narrow(n: int, m: int, window: int) -> Tensor:
    """Wrong: one key less than asked for."""
    back = how_far_back(n, m)  # (n, m)
    return (back >= 0) & (back < positive(window) - 1)


@mistake("window-on-both-sides", "modern_heads.sliding_window_mask")
def window_on_both_sides(n: int, m: int, window: int) -> Tensor:
    """Wrong: keys that come later are seen as well."""
    back = how_far_back(n, m)  # (n, m)
    return back.abs() < positive(window)


@mistake("window-ahead", "modern_heads.sliding_window_mask")
def window_ahead(n: int, m: int, window: int) -> Tensor:
    """Wrong: a query sees what comes after it."""
    back = how_far_back(n, m)  # (n, m)
    return (back <= 0) & (back > -positive(window))


@mistake("causal-hides-self", "modern_heads.sliding_window_mask")
def window_without_self(n: int, m: int, window: int) -> Tensor:
    """Wrong: the window ends before the query's own key."""
    back = how_far_back(n, m)  # (n, m)
    return (back >= 1) & (back <= positive(window))


@mistake("causal-sees-next", "modern_heads.sliding_window_mask")
def window_with_next(n: int, m: int, window: int) -> Tensor:
    """Wrong: the window reaches one key too far to the right."""
    back = how_far_back(n, m)  # (n, m)
    return (back >= -1) & (back < positive(window))


@mistake("causal-top-left", "modern_heads.sliding_window_mask")
def window_top_left(n: int, m: int, window: int) -> Tensor:
    """Wrong: the first query lines up with the first key."""
    back = torch.arange(n)[:, None] - torch.arange(m)  # (n, m)
    return (back >= 0) & (back < positive(window))


@mistake("window-ignored", "modern_heads.sliding_window_mask")
def window_ignored(n: int, m: int, window: int) -> Tensor:
    """Wrong: the plain causal mask."""
    positive(window)
    return how_far_back(n, m) >= 0


@mistake("window-in-blocks", "modern_heads.sliding_window_mask")
def window_not_causal_blocks(n: int, m: int, window: int) -> Tensor:
    """Wrong: the sequence is cut into blocks; a query sees those of its own block."""
    block = torch.arange(m) // positive(window)  # (m,)
    return (how_far_back(n, m) >= 0) & (block[m - n :, None] == block)


@mistake("mask-inverted", "modern_heads.sliding_window_mask")
def window_inverted(n: int, m: int, window: int) -> Tensor:
    """Wrong: True means "hide"."""
    back = how_far_back(n, m)  # (n, m)
    return (back < 0) | (back >= positive(window))


@mistake("mask-not-boolean", "modern_heads.sliding_window_mask")
def window_of_numbers(n: int, m: int, window: int) -> Tensor:
    """Wrong: 0 and 1 in place of False and True."""
    back = how_far_back(n, m)  # (n, m)
    return ((back >= 0) & (back < positive(window))).float()


@mistake("window-unchecked", "modern_heads.sliding_window_mask")
def window_unchecked(n: int, m: int, window: int) -> Tensor:
    """Wrong: a window of 0 is taken, and hides everything."""
    back = how_far_back(n, m)
    return (back >= 0) & (back < window)
