"""One way to register what is known of an item: by a decorator, in a module that is found by its place."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from mha_lib.pitfalls.same_items import original

Registered = TypeVar("Registered")
Thing = TypeVar("Thing", bound=Any)

# The assignments in the order of `_toc.yml`, which an installed package does not have at hand; a test compares.
# One that is not named here comes after those that are.
IN_TEACHING_ORDER = (
    "single_head",
    "multi_head",
    "batched_torch",
    "transformer_block",
    "efficient_heads",
    "real_heads",
    "modern_heads",
    "language_model",
)

MODULE_OF_ITEM = "mha_lib.pitfalls.code"  # here a module may hold all that is known of its item


class Registry(Generic[Registered]):
    """What the modules of some packages register, by item and name.

    What belongs to the assignment `single_head` lies in the module or subpackage `single_head` of these packages.
    It is imported when somebody first asks for this assignment: who asks for NumPy code does not wait for PyTorch.
    """

    def __init__(self, *packages: str) -> None:
        """A registry of the modules of these packages, of which none is imported yet."""
        self._packages = packages
        self._loaded: set[str] = set()
        self._found: dict[str, dict[str, Any]] = {}

    def register(self, name: str, item: str) -> Callable[[Thing], Thing]:
        """A decorator that registers what it stands above, and changes nothing.

        Args:
            name: the name under which it is found.
            item: `assignment.item`.

        Raises:
            ValueError: if the item has something of this name already.
        """

        def remember(thing: Thing) -> Thing:
            found = self._found.setdefault(item, {})
            if name in found:
                raise ValueError(f"{item} has two entries {name!r}: {found[name]} and {thing}")
            found[name] = thing
            return thing

        return remember

    def has(self, name: str, item: str) -> bool:
        """Whether a module that is imported has registered this name for this item."""
        return name in self._found.get(item, {})

    def of(self, assignment: str, item: str) -> Mapping[str, Registered]:
        """What is registered of an item, by name, in the order of the source; empty if there is nothing.

        An item that is another one under a new name has what its original has.
        """
        assignment, item = original(assignment, item)
        self._load(assignment)
        return dict(self._found.get(f"{assignment}.{item}", {}))

    def items(self) -> list[str]:
        """Every item, as `assignment.item`: assignments in teaching order, their items as they were registered."""
        order = self.assignments()
        for assignment in order:
            self._load(assignment)
        places = {assignment: place for place, assignment in enumerate(order)}
        return sorted(self._found, key=lambda item: places.get(item.partition(".")[0], len(order)))

    def assignments(self) -> list[str]:
        """The assignments that have a module, in teaching order."""
        names = {name for package in self._packages for name in _modules_in(package)}
        known = [name for name in IN_TEACHING_ORDER if name in names]
        return known + sorted(names - set(known))

    def _load(self, assignment: str) -> None:
        if assignment in self._loaded or assignment not in self.assignments():
            return
        for package in self._packages:
            if assignment in _modules_in(package):
                module = f"{package}.{assignment}"
                for inside in _modules_in(module):
                    importlib.import_module(f"{module}.{inside}")
        self._loaded.add(assignment)


@functools.cache
def _modules_in(name: str) -> tuple[str, ...]:
    """Import a module; the names of the modules inside, if it is a package."""
    path = getattr(importlib.import_module(name), "__path__", [])
    return tuple(module.name for module in pkgutil.iter_modules(path))
