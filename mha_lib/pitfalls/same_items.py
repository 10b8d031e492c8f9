"""Items that are another item under a new name: what is known of the one holds for the other."""

from collections.abc import Mapping

SAME_ITEMS: Mapping[str, str] = {
    "pitfalls.repaired_scale": "single_head.attention",
    "pitfalls.repaired_mask": "single_head.attention",
    "pitfalls.repaired_split": "multi_head.split_heads",
    "pitfalls.repaired_merge": "multi_head.combine_heads",
    "pitfalls.repaired_causal": "single_head.causal_mask",
}


def original(assignment: str, item: str) -> tuple[str, str]:
    """Assignment and item of the original of an item; itself if it is one.

    >>> original("pitfalls", "repaired_scale")
    ('single_head', 'attention')
    >>> original("single_head", "softmax")
    ('single_head', 'softmax')
    """
    assignment, _, item = SAME_ITEMS.get(f"{assignment}.{item}", f"{assignment}.{item}").partition(".")
    return assignment, item
