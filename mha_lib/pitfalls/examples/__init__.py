"""The items, and small inputs that expose the mistakes: what the book runs on the right and on the wrong code.

An example gets a function or class under its item's name, calls it, and returns what is to be compared. Its
docstring says what kind of input it is. The book shows its lines, so they are written to be read. One module holds
the items of one assignment, with their examples, the simplest first. The module of an item in
`mha_lib.pitfalls.code` may hold them as well.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mha_lib.pitfalls.registry import MODULE_OF_ITEM, Registry

Code = Callable[..., Any]
Example = Callable[[Code], Any]


@dataclass(frozen=True)
class Item:
    """A graded item.

    Attributes:
        right: the right function or class.
        examples: functions from such a function or class to what is compared, the simplest first.
    """

    right: Code
    examples: list[Example] = field(default_factory=list)

    def example(self, function: Example) -> Example:
        """A decorator: this is an example of the item."""
        self.examples.append(function)
        return function


ITEMS: Registry[Item] = Registry(__name__, MODULE_OF_ITEM)


def item(place: str, right: Code) -> Item:
    """Register the item `assignment.item`, of which `right` is the right code.

    Raises:
        ValueError: if it is registered already.
    """
    return ITEMS.register("item", place)(Item(right))


@functools.cache
def items() -> Mapping[str, Item]:
    """Every item by its place, `assignment.item`, in teaching order. This imports PyTorch."""
    return {place: ITEMS.of(*place.split("."))["item"] for place in ITEMS.items()}
