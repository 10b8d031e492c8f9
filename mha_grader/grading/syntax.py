"""Code that was handed in, read as Python. Nothing of it is run, and no text makes reading it long or fail."""

from __future__ import annotations

import ast
import functools

MAX_PARSED = 10_000  # characters of code that is read as Python: Python can take minutes for more
LAST = 8  # texts whose trees are kept: what an item consists of is looked at several times


@functools.lru_cache(LAST)
def parsed(source: str) -> ast.Module | None:
    """The tree of a text, to be looked at and not to be changed; None if Python cannot read it."""
    try:
        return ast.parse(source) if len(source) <= MAX_PARSED else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(LAST)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a text's tree, as `ast.walk` gives them; none if Python cannot read it."""
    tree = parsed(source)
    return tuple(ast.walk(tree)) if tree is not None else ()
