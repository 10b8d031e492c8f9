"""The pitfalls: known mistakes, each explained and as code that is wrong in exactly one way.

One module holds one family. The functions are wrong on purpose: their docstrings say how. They may warn
(an overflow) or raise where the right code does not, and some change their arguments.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

from mha_lib.pitfalls import (
    attention,
    block,
    counting,
    heads,
    mask,
    modern,
    modules,
    positions,
    projections,
    pruning,
    reading_heads,
    scale,
    sharing,
    softmax,
)
from mha_lib.pitfalls.pitfall import CHECKS_OF_ITEMS, WEAK_CHECKS, Pitfall
from mha_lib.pitfalls.same_items import original

__all__ = ["BANK", "CHECKS_OF_ITEMS", "FAMILIES", "WEAK_CHECKS", "Pitfall", "variants"]

# The pitfalls of each family, in teaching order.
FAMILIES: Mapping[str, tuple[Pitfall, ...]] = {
    "softmax": softmax.PITFALLS,
    "attention": attention.PITFALLS,
    "scale": scale.PITFALLS,
    "mask": mask.PITFALLS,
    "projections": projections.PITFALLS,
    "heads": heads.PITFALLS,
    "modules": modules.PITFALLS,
    "block": block.PITFALLS,
    "counting": counting.PITFALLS,
    "sharing": sharing.PITFALLS,
    "pruning": pruning.PITFALLS,
    "reading-heads": reading_heads.PITFALLS,
    "positions": positions.PITFALLS,
    "modern": modern.PITFALLS,
}

# All pitfalls by slug, in the same order.
BANK: Mapping[str, Pitfall] = {pitfall.slug: pitfall for family in FAMILIES.values() for pitfall in family}


def variants(assignment: str, item: str) -> dict[str, Callable[..., Any]]:
    """The wrong functions or classes of one item, by the slug of their mistake, in teaching order.

    Those that need PyTorch, or are made of parts, stand in `mha_lib.pitfalls.<assignment>`, by item and slug in
    a dict `VARIANTS`, and are imported only when they are asked for.

    Args:
        assignment: name of an assignment, for instance `single_head`.
        item: name of one of its items, for instance `softmax`.

    Returns:
        A dict from slug to function or class; empty if no mistake in the item is known.

    >>> "softmax-fixed-axis" in variants("single_head", "softmax")
    True
    """
    assignment, item = original(assignment, item)
    name = f"{assignment}.{item}"
    found = {slug: pitfall.variants[name] for slug, pitfall in BANK.items() if name in pitfall.variants}
    module = f"{__name__}.{assignment}"
    if importlib.util.find_spec(module) is not None:
        found |= importlib.import_module(module).VARIANTS.get(item, {})
    return {slug: found[slug] for slug in BANK if slug in found}
