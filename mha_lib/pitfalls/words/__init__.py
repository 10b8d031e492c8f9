"""What is told of each mistake, a module for each family."""

from collections.abc import Mapping

from mha_lib.pitfalls.words import (
    attention,
    block,
    counting,
    heads,
    language,
    mask,
    modern_heads,
    modules,
    positions,
    projections,
    pruning,
    reading_heads,
    scale,
    sharing,
    softmax,
)
from mha_lib.pitfalls.words.pitfall import Pitfall

__all__ = ["BANK", "FAMILIES", "Pitfall"]

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
    "modern-heads": modern_heads.PITFALLS,
    "language": language.PITFALLS,
}

# All pitfalls by slug, in the same order.
BANK: Mapping[str, Pitfall] = {pitfall.slug: pitfall for family in FAMILIES.values() for pitfall in family}
