"""Library code where the student's own was asked for: lines that a person should look at.

Nothing is decided here. A right answer through a library's own function is right, and the tests say so; whether it
is what was asked for, a person decides. So the lines are shown to the instructor, not to the student. Which names
are a library's version of what is to be built, the course says (`Assignment.library`), and what an item may use of
them its solution cell (`Cell.asks_for`, `Cell.may_use`).

What is shown is what a text says. A program can put a name together in more ways than can be listed, and whoever
wants to hide a call can; the plain ways are shown all the same, and so is code that is made of text.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mha_grader.course.cells import Cell, assigned
from mha_grader.grading.syntax import LAST, nodes_of, parsed

HIDES = frozenset({"exec", "eval", "__import__", "importlib"})  # built in: `model.eval` is another one
COMPARES = frozenset({"__eq__", "__ne__", "__bool__", "__array__", "__array_function__", "__instancecheck__"})
# Of the interpreter: code that is meant to be used has no use for them.
INNER = frozenset({
    "sys", "os", "builtins", "__builtins__", "gc", "inspect", "ctypes", "atexit", "signal", "globals",
    "setattr", "get_ipython", "mock", "unittest",
})  # fmt: skip
# What an honest cell hardly ever needs: with it code can reach what runs it, also from a cell that was added.
INSIDE = frozenset({
    "gc", "inspect", "ctypes", "_getframe", "f_back", "tb_frame", "gi_frame", "__subclasses__", "__globals__",
})  # fmt: skip
MAX_PIECES = 20  # of a text that is put together: with more it would take long


@dataclass(frozen=True)
class Helper:
    """A statement outside of all items that a person should look at if an item uses what it defines."""

    defines: frozenset[str]
    mentions: Mapping[str, tuple[int, str]]


def helpers(cells: Iterable[str], library: Sequence[str]) -> list[Helper]:
    """What there is to be looked at in the cells that a student added.

    Args:
        cells: their sources.
        library: patterns of names, see `flags`.
    """
    found = []
    for cell in cells:
        tree = parsed(cell)
        for statement in tree.body if tree is not None else ():
            mentions = _first(_mentions_in(ast.walk(statement)), cell)
            if _lines(mentions, library, ()):
                found.append(Helper(frozenset(assigned(statement)), mentions))
    return found


def flags(
    source: str, solution: Cell, library: Sequence[str], added: Iterable[Helper] = ()
) -> tuple[str, ...]:
    """What a person should look at in the code of an item.

    Args:
        source: the student's cell.
        solution: the item's solution cell, which says what the item asks for and what it may use.
        library: patterns of names that are a library's version of what is to be built.
        added: what is outside of the item: it counts if the item names what it defines.

    Returns:
        One sentence for each line that uses a library's version of what was to be built, or for the lack of
        it where it was asked for.
    """
    used = _first(_mentions(source), source)
    allowed = (*solution.asks_for, *solution.may_use)
    found = _lines(used, library, allowed)
    for helper in added:
        if helper.defines & used.keys():
            lines = _lines(helper.mentions, library, allowed)
            found += [f"in a cell that was added, {line}" for line in lines]
    if used:
        found += [
            f"{name} was asked for but does not appear" for name in solution.asks_for if name not in used
        ]
    return tuple(dict.fromkeys(found))


def _lines(used: Mapping[str, tuple[int, str]], library: Sequence[str], allowed: Sequence[str]) -> list[str]:
    is_library = re.compile("|".join(library) or r"(?!)").fullmatch  # without a pattern nothing is
    found = []
    for name, (line, text) in used.items():
        if is_library(name) and name not in allowed:
            found.append(f"line {line} uses a library's {name}: {text}")
        elif name in HIDES:
            found.append(f"line {line} may run code that is not shown here, through {name}: {text}")
    return found


@functools.lru_cache(maxsize=256)  # solutions are the same for all students
def _names_in(source: str) -> frozenset[str]:
    return frozenset(name for name, _ in _mentions(source))


def _first(mentions: Iterator[tuple[str, int]], source: str) -> dict[str, tuple[int, str]]:
    """The line, and its text, where each name stands first."""
    lines, first = source.splitlines(), {}
    for name, number in mentions:
        if name not in first:
            first[name] = number, "".join(lines[number - 1 : number]).strip()[:120]
    return first


def _mentions(source: str) -> Iterator[tuple[str, int]]:
    """Names and the numbers of their lines; where Python cannot read the text, as with `%time`, all words."""
    if parsed(source) is not None:
        yield from _mentions_of(source)
        return
    for number, line in enumerate(source.splitlines(), 1):
        for name in re.findall(r"[^\W\d]\w*", line.partition("#")[0]):
            if name not in HIDES:
                yield name, number


@functools.lru_cache(LAST)
def _mentions_of(source: str) -> tuple[tuple[str, int], ...]:
    return tuple(_mentions_in(nodes_of(source)))


def _mentions_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        for name in _mentioned(node):
            yield name, getattr(node, "lineno", 1)


def _mentioned(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr] if node.attr not in HIDES else []
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Import | ast.ImportFrom):
        whole = [alias.name for alias in node.names]
        whole += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        return [part for name in whole for part in name.split(".")]
    if isinstance(node, ast.Constant | ast.BinOp):
        return (_text(node) or "").split(".")  # getattr(F, "scaled_dot_product_attention")
    return []


def _text(node: ast.AST) -> str | None:
    """The text that a text, or a sum of a few texts, is."""
    pieces: list[str] = []
    todo = [node]
    while todo:
        if len(pieces) > MAX_PIECES:
            return None
        node = todo.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            todo += [node.left, node.right]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            pieces.append(node.value)
        else:
            return None
    return "".join(reversed(pieces))


def reaches_in(source: str, solution: Cell, added: Iterable[str] = ()) -> tuple[str, ...]:
    """What a person should look at, since it can reach what runs the code and says what a call changed.

    Args:
        source: the student's cell.
        solution: the item's solution cell; what it uses itself is fine.
        added: the cells that the student added.
    """
    own = _names_in(solution.source)
    found = [
        f"line {line} uses {name}: {text}" for name, (line, text) in _inner(source, (INNER | INSIDE) - own)
    ]
    for cell in added:
        found += [
            f"in a cell that was added, line {line} uses {name}: {text}"
            for name, (line, text) in _inner(cell, INSIDE)
        ]
    return tuple(f"{line} (which can reach the program that runs the code)" for line in found)


def _inner(source: str, names: frozenset[str]) -> list[tuple[str, tuple[int, str]]]:
    used = _first(_mentions(source), source)
    return [(name, used[name]) for name in used if name in names]


def reaches_out(source: str) -> tuple[str, ...]:
    """What a person should look at in code that is tested in its own process: it may be made to pass any test.

    Only the plain ways are found: what a comparison says, and changes of what is not its own.
    """
    found = {}
    for node in nodes_of(source):
        match node:
            case ast.FunctionDef(name=name) if name in COMPARES:
                found[node.lineno] = f"defines {name}"
            case ast.Attribute(attr=name, ctx=ast.Store()) if not _is_self(node.value):
                found[node.lineno] = f"changes {_written(node)}"
            case ast.Name(id=name) if name in INNER:
                found[node.lineno] = f"uses {name}"
            case ast.Import(names=names) if inner := INNER & {alias.name for alias in names}:
                found[node.lineno] = f"imports {', '.join(sorted(inner))}"
            case ast.ImportFrom(module=str(module)) if module in INNER:
                found[node.lineno] = f"imports {module}"
    where = "and it is tested in the student's own process"
    return tuple(f"line {line} {what}, {where}" for line, what in sorted(found.items()))


def _written(node: ast.Attribute) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:  # it is nested too deeply
        return f"….{node.attr}"


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
