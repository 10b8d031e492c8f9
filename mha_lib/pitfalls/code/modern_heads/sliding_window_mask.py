"""Mistakes in `sliding_window_mask`."""

from collections.abc import Callable

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


@mistake("window-start-top-left", "modern_heads.sliding_window_mask")
def window_start_top_left(n: int, m: int, window: int) -> Tensor:
    """Wrong: the window ends at the query, and starts as if the first query lined up with the first key."""
    first = torch.arange(n)[:, None] - positive(window) + 1  # (n, 1)
    return (how_far_back(n, m) >= 0) & (torch.arange(m) >= first)


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


@mistake("window-negative-index", "modern_heads.sliding_window_mask")
def window_from_negative_index(n: int, m: int, window: int) -> Tensor:
    """Wrong: slices of the first rows start below 0, which counts from the end."""
    mask = torch.zeros(n, m, dtype=torch.bool)
    for row, own in enumerate(range(m - n, m)):
        mask[row, own - positive(window) + 1 : own + 1] = True
    return mask


# --- forms -------------------------------------------------------------------------------------------------


def by_distance(sees: Callable[[Tensor, int, int], Tensor]) -> Callable[..., Tensor]:
    """`sliding_window_mask` by another rule of how far before a query a key stands, of the window and m - n."""

    def sliding_window_mask(n: int, m: int, window: int) -> Tensor:
        return sees(how_far_back(n, m), positive(window), m - n)

    return sliding_window_mask


def window_transposed(n: int, m: int, window: int) -> Tensor:
    """Wrong: one row for each key."""
    back = torch.arange(m)[:, None] - torch.arange(n)  # (m, n)
    return (back >= 0) & (back < positive(window))


def window_clamped(n: int, m: int, window: int) -> Tensor:
    """Wrong: a window below 1 is taken for 1."""
    back = how_far_back(n, m)
    return (back >= 0) & (back < max(window, 1))


def window_of_zero_is_no_limit(n: int, m: int, window: int) -> Tensor:
    """Wrong: a window of 0 hides nothing but later keys."""
    if window < 0:
        raise ValueError(f"window={window} should not be negative")
    back = how_far_back(n, m)
    return (back >= 0) & (back < window) if window else back >= 0


def window_unchecked_below_zero(n: int, m: int, window: int) -> Tensor:
    """Wrong: a negative window is taken, and hides everything."""
    if window == 0:
        raise ValueError(f"window={window} should be 1 or more")
    return window_unchecked(n, m, window)


def right(back: Tensor, window: int) -> Tensor:
    """What the mask should be."""
    return (back >= 0) & (back < window)


FORMS: dict[str, Callable[..., Tensor]] = {
    "window-one-too-narrow/but-one": by_distance(
        lambda back, window, ahead: (back >= 0) & (back < max(1, window - 1))
    ),
    "window-on-both-sides/and-wider": by_distance(lambda back, window, ahead: back.abs() <= window),
    "window-on-both-sides/half": by_distance(lambda back, window, ahead: back.abs() <= window // 2),
    "causal-hides-self/one-less": by_distance(lambda back, window, ahead: (back >= 1) & (back < window)),
    "causal-sees-next/moved": by_distance(lambda back, window, ahead: (back >= -1) & (back < window - 1)),
    "causal-missing/lower-edge-alone": by_distance(lambda back, window, ahead: back < window),
    "causal-top-left/right-edge": by_distance(
        lambda back, window, ahead: (back - ahead >= 0) & (back < window)
    ),
    "causal-offset-reversed/both-edges": by_distance(
        lambda back, window, ahead: right(back - 2 * ahead, window)
    ),
    "window-in-blocks/of-queries": by_distance(
        lambda back, window, ahead: (
            (back >= 0)
            & (
                torch.arange(len(back))[:, None] // window
                == (torch.arange(back.shape[1]) - ahead).div(window, rounding_mode="floor")
            )
        )
    ),
    "window-in-blocks/first-keys": by_distance(
        lambda back, window, ahead: (back >= 0) & (torch.arange(back.shape[1]) < window)
    ),
    "window-in-blocks/last-keys": by_distance(
        lambda back, window, ahead: (back >= 0) & (torch.arange(back.shape[1]) >= back.shape[1] - window)
    ),
    "mask-not-boolean/int32": by_distance(lambda back, window, ahead: right(back, window).int()),
    "mask-not-boolean/int64": by_distance(lambda back, window, ahead: right(back, window).long()),
    "mask-not-boolean/uint8": by_distance(lambda back, window, ahead: right(back, window).byte()),
    "mask-transposed/keys-first": window_transposed,
    "window-unchecked/clamped": window_clamped,
    "window-unchecked/below-zero": window_unchecked_below_zero,
    "window-unchecked/zero-is-no-limit": window_of_zero_is_no_limit,
    "additive-mask/of-zeros": by_distance(
        lambda back, window, ahead: torch.zeros(back.shape).masked_fill(~right(back, window), float("-inf"))
    ),
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "modern_heads.sliding_window_mask", form=form)(code)
