"""Right ways of writing what students build, beside the reference: each of them must earn full marks.

One module holds the styles of one assignment, in a dict `STYLES` from item to (name of the style to function
or class). A grader that rejects one of them is wrong.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from mha_lib.pitfalls.same_items import original

__all__ = ["styles"]


def styles(assignment: str, item: str) -> Mapping[str, Any]:
    """The right functions or classes of one item by the name of their style; empty if there are none.

    >>> "softmax in float32" in styles("single_head", "attention")
    True
    """
    assignment, item = original(assignment, item)
    name = f"{__name__}.{assignment}"
    if importlib.util.find_spec(name) is None:
        return {}
    all_styles: Mapping[str, Mapping[str, Any]] = importlib.import_module(name).STYLES
    return all_styles.get(item, {})
