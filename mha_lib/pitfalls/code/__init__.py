"""The wrong code: a package for each assignment, a module for each of its items.

The functions and classes are wrong on purpose, each in exactly one way: their docstrings say how. They may warn
(an overflow) or raise where the right code does not, and some change their arguments.

A mistake is registered by the decorator `mistake`, with its slug and its item. The words for the slug stand in
`mha_lib.pitfalls.words`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from mha_lib.pitfalls.registry import Registry
from mha_lib.pitfalls.words import BANK

Code = TypeVar("Code", bound=Callable[..., Any])

MISTAKES: Registry[Callable[..., Any]] = Registry(__name__)


def mistake(slug: str, item: str) -> Callable[[Code], Code]:
    """A decorator: this function or class makes the mistake `slug` in the item.

    Args:
        slug: the name of the mistake, for instance `no-scale`.
        item: `assignment.item`, for instance `single_head.attention`.

    Raises:
        ValueError: if there are no words for the slug, or the item has a variant of this slug already.
    """
    if slug not in BANK:
        raise ValueError(f"no words for the mistake {slug!r}: add them to a family in mha_lib.pitfalls.words")
    return MISTAKES.register(slug, item)


def variants(assignment: str, item: str) -> dict[str, Callable[..., Any]]:
    """The wrong functions or classes of one item, by the slug of their mistake, in teaching order.

    Args:
        assignment: name of an assignment, for instance `single_head`.
        item: name of one of its items, for instance `softmax`.

    Returns:
        A dict from slug to function or class; empty if no mistake in the item is known.

    >>> "softmax-fixed-axis" in variants("single_head", "softmax")
    True
    >>> variants("heads", "x")
    {}
    """
    found = MISTAKES.of(assignment, item)
    return {slug: found[slug] for slug in BANK if slug in found}
