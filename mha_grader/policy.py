"""Library code where the student's own was asked for: lines that a person should look at.

Nothing is decided here. A right answer through PyTorch's own attention is right, and the tests say so; whether it
is what was asked for, a person decides. So the lines are shown to the instructor, not to the student.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from mha_grader.rebuild import MAX_PARSED

# Attention that somebody else wrote, by the last part of its name.
LIBRARY = frozenset(
    {
        "MultiheadAttention",
        "TransformerDecoderLayer",
        "TransformerEncoderLayer",
        "flex_attention",
        "mha_lib",
        "multi_head_attention_forward",
        "scaled_dot_product_attention",
    }
)
# Items that ask for one of them.
ASKED_FOR: Mapping[str, frozenset[str]] = {
    "sdpa_attention": frozenset({"scaled_dot_product_attention"}),
    "from_builtin": frozenset({"MultiheadAttention"}),
}


def flags(item: str, source: str) -> tuple[str, ...]:
    """What a person should look at in the code of an item.

    Args:
        item: the item's name.
        source: the student's cell.

    Returns:
        One sentence for each line that uses a library's attention where it was to be built, or for the lack of
        it where it was asked for; none for code that cannot be parsed.
    """
    used = dict(_names(source))
    asked = ASKED_FOR.get(item, frozenset())
    found = [
        f"line {line} uses a library's {name}: {text}"
        for name, (line, text) in used.items()
        if name in LIBRARY - asked
    ]
    if item == "sdpa_attention" and used and not asked & used.keys():
        found.append("scaled_dot_product_attention was asked for and does not appear")
    return tuple(found)


def _names(source: str) -> Iterator[tuple[str, tuple[int, str]]]:
    """Every name in the code with the line, and its text, where it stands first."""
    if len(source) > MAX_PARSED:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines, seen = source.splitlines(), set()
    for node in ast.walk(tree):
        for name in _mentioned(node):
            if name not in seen:
                seen.add(name)
                line = getattr(node, "lineno", 1)
                yield name, (line, lines[line - 1].strip()[:120])


def _mentioned(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Import | ast.ImportFrom):
        whole = [alias.name for alias in node.names]
        whole += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        return [part for name in whole for part in name.split(".")]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]  # getattr(F, "scaled_dot_product_attention")
    return []
