"""The wrong code: a package for each assignment, a module for each of its items.

The functions and classes are wrong on purpose, each in exactly one way: their docstrings say how. They may warn
(an overflow) or raise where the right code does not, and some change their arguments.

What else is known of an item can stand in its module, too: the item itself and its examples, see
`mha_lib.pitfalls.examples`; right code in other styles, see `mha_lib.styles`; weak checks, see
`mha_lib.pitfalls.weak_checks`.

A mistake is registered by the decorator `mistake`, with its slug and its item. The words for the slug stand in
`mha_lib.pitfalls.words`. People write one mistake in several ways, with different numbers: further ways are
*forms* of the mistake. And some mistakes are told by what they violate, however they are written: that is a *law*,
registered by the decorator `law`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mha_lib.pitfalls.registry import Registry
from mha_lib.pitfalls.words import BANK

Code = TypeVar("Code", bound=Callable[..., Any])
# From a function or class, which may be tried, and the recorded steps of a failed part.
Law = Callable[[Any, Sequence[Any]], bool]
Told = TypeVar("Told", bound=Law)

MISTAKES: Registry[Callable[..., Any]] = Registry(__name__)
LAWS: Registry[Law] = Registry(__name__)


def mistake(slug: str, item: str, form: str = "") -> Callable[[Code], Code]:
    """A decorator: this function or class makes the mistake `slug` in the item.

    Args:
        slug: the name of the mistake, for instance `no-scale`.
        item: `assignment.item`, for instance `single_head.attention`.
        form: which other way of writing it this is; none for the way that the book shows.

    Raises:
        ValueError: if there are no words for the slug, or the item has a variant of this slug and form already.
    """
    return MISTAKES.register(f"{_known(slug)}/{form}" if form else _known(slug), item)


def law(slug: str, item: str) -> Callable[[Told], Told]:
    """A decorator: if this function says so of code, the code makes the mistake `slug` in the item, for sure.

    The function gets the code, a function or class that it may call, and the recorded steps of a part that failed.
    Each step has a `request` and the `value` that came of it. An error that it raises means no.

    Args:
        slug: the name of the mistake.
        item: `assignment.item`.

    Raises:
        ValueError: if there are no words for the slug, or the item has a law for it already.
    """
    return LAWS.register(_known(slug), item)


def _known(slug: str) -> str:
    if slug not in BANK:
        raise ValueError(f"no words for the mistake {slug!r}: add them to a family in mha_lib.pitfalls.words")
    return slug


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


def forms(assignment: str, item: str) -> dict[str, Callable[..., Any]]:
    """As `variants`, and behind these the further forms of the mistakes, as `slug/form`."""
    return variants(assignment, item) | {
        name: code for name, code in MISTAKES.of(assignment, item).items() if "/" in name
    }


def laws(assignment: str, item: str) -> dict[str, Law]:
    """The laws of one item, by the slug of the mistake that they tell."""
    return dict(LAWS.of(assignment, item))
