"""Mistakes in `head_dim`."""

from collections.abc import Sequence
from typing import Any

from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import given


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


@mistake("message-without-numbers", "multi_head.head_dim", form="one-at-a-time")
def head_dim_one_at_a_time(d_model: int, num_heads: int) -> int:
    """Wrong: of two numbers that do not fit, the message has only the one that is not positive."""
    for number in (d_model, num_heads):
        if number <= 0:
            raise ValueError(f"{number} should be positive")
    if d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model // num_heads


@mistake("message-without-numbers", "multi_head.head_dim", form="separators")
def head_dim_separators(d_model: int, num_heads: int) -> int:
    """Wrong: thousands are set apart by a comma, so that 7001 is not found in the message."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError(f"{d_model:,} features cannot be divided among {num_heads:,} heads")
    return d_model // num_heads


def answer(tested: Any, d_model: int, num_heads: int) -> Any:
    """What comes back; an error as its type's name."""
    try:
        return tested(d_model, num_heads)
    except Exception as error:
        return getattr(error, "type_names", [type(error).__name__])[0]


def asked(steps: Sequence[Any]) -> list[tuple[int, int]]:
    """The widths and numbers of heads that a part asked about; two that do not divide if it does not say."""
    pairs = [(given(step, 0, "d_model"), given(step, 1, "num_heads")) for step in steps]
    return [(7, 2) if None in pair else pair for pair in pairs]


@law("divisibility-unchecked", "multi_head.head_dim")
def rounds(tested: Any, steps: Sequence[Any]) -> bool:
    """7 features make two heads of 3, or of 4."""
    remainder = any(heads > 0 and width > 0 and width % heads for width, heads in asked(steps))
    return remainder and answer(tested, 7, 2) in (3, 4) and answer(tested, 12, 3) == 4


@law("error-not-raised", "multi_head.head_dim")
def returns_something(tested: Any, steps: Sequence[Any]) -> bool:
    """What comes back where it does not divide is no width, and no error either."""
    returned = answer(tested, 7, 2)
    number = isinstance(returned, int | float) and returned > 0
    raised = isinstance(returned, str) and returned.endswith(("Error", "Exception"))
    return answer(tested, 12, 3) == 4 and not number and not raised


@law("positivity-unchecked", "multi_head.head_dim")
def lets_through(tested: Any, steps: Sequence[Any]) -> bool:
    """It checks that it divides; some numbers that are not positive give a width, or divide by zero."""
    if answer(tested, 7, 2) != "ValueError" or all(min(pair) > 0 and pair != (7, 2) for pair in asked(steps)):
        return False
    returned = [answer(tested, *pair) for pair in ((0, 4), (-8, 4), (8, -4), (8, 0), (-8, -4))]
    return any(each != "ValueError" for each in returned)


@law("message-without-numbers", "multi_head.head_dim")
def says_too_little(tested: Any, steps: Sequence[Any]) -> bool:
    """A ValueError whose text lacks one of the two numbers."""
    errors = [
        (step.error, pair) for step, pair in zip(steps, asked(steps), strict=True) if step.error is not None
    ]
    return (
        bool(errors)
        and all("ValueError" in error.type_names for error, _ in errors)
        and any(not all(str(number) in error.text for number in pair) for error, pair in errors)
    )
