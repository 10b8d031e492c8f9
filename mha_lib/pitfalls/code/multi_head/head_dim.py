"""Mistakes in `head_dim`."""

from collections.abc import Sequence
from typing import Any

from mha_lib.pitfalls.code import law, mistake


@mistake("divisibility-unchecked", "multi_head.head_dim")
def head_dim_unchecked(d_model: int, num_heads: int) -> int:
    """Wrong: `//` drops what is left over."""
    return d_model // num_heads


@mistake("divisibility-asserted", "multi_head.head_dim")
def head_dim_asserted(d_model: int, num_heads: int) -> int:
    """Wrong: an assertion, not a ValueError; it is gone under `python -O`."""
    assert d_model > 0, f"{d_model=} and {num_heads=} must both be positive"
    assert num_heads > 0, f"{d_model=} and {num_heads=} must both be positive"
    assert d_model % num_heads == 0, f"{num_heads=} does not divide {d_model=}"
    return d_model // num_heads


@law("divisibility-asserted", "multi_head.head_dim")
def raises_an_assertion(tested: Any, steps: Sequence[Any]) -> bool:
    """Whatever its words: right code raises no AssertionError."""
    return any(step.error is not None and "AssertionError" in step.error.type_names for step in steps)


@mistake("positivity-unchecked", "multi_head.head_dim")
def head_dim_positivity_unchecked(d_model: int, num_heads: int) -> int:
    """Wrong: 0 and negative numbers are let through, or fail as a division by zero."""
    if d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model // num_heads


@mistake("message-without-numbers", "multi_head.head_dim")
def head_dim_message_without_numbers(d_model: int, num_heads: int) -> int:
    """Wrong: the message does not say which numbers were given."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError("d_model must be a positive multiple of num_heads")
    return d_model // num_heads


@mistake("error-not-raised", "multi_head.head_dim")
def head_dim_error_not_raised(d_model: int, num_heads: int) -> int | None:
    """Wrong: None is returned where an error should be raised."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        return None
    return d_model // num_heads


@mistake("head-width-not-whole", "multi_head.head_dim")
def head_dim_not_whole(d_model: int, num_heads: int) -> float:
    """Wrong: `/` gives a float, even where it divides."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model / num_heads


@mistake("features-not-split", "multi_head.head_dim")
def head_dim_full_width(d_model: int, num_heads: int) -> int:
    """Wrong: each head is as wide as the model."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model
