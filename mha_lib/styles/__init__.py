"""Right ways of writing what students build, beside the reference: each of them must earn full marks.

One module holds the styles of one assignment, or the module of an item in `mha_lib.pitfalls.code` holds those of
the item. A grader that rejects one of them is wrong.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mha_lib.pitfalls.registry import MODULE_OF_ITEM, Registry

__all__ = ["style", "styles"]

Code = TypeVar("Code", bound=Callable[..., Any])

STYLES: Registry[Callable[..., Any]] = Registry(__name__, MODULE_OF_ITEM)


def style(name: str, item: str) -> Callable[[Code], Code]:
    """A decorator: this function or class is a right form of the item `assignment.item`.

    Raises:
        ValueError: if the item has a style of this name already.
    """
    return STYLES.register(name, item)


def styles(assignment: str, item: str) -> Mapping[str, Callable[..., Any]]:
    """The right functions or classes of one item by the name of their style; empty if there are none.

    >>> "softmax in float32" in styles("single_head", "attention")
    True
    """
    return STYLES.of(assignment, item)
