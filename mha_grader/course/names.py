"""Which names a text of Python reads, and which it binds; the imports of a text source."""

from __future__ import annotations

import ast
from typing import Any

from mha_grader.course.sources import statements_of

PIECES = ("mha_lib", "checks")  # what a text source imports from these is no library


def imports_of(source: Any, *roles: str) -> list[ast.stmt]:
    """The imports of libraries in a text source's cells of some roles."""
    cells = [cell for role in roles for cell in source.cells if cell.metadata.get("role") == role]
    return [
        statement
        for cell in cells
        for statement in statements_of(cell.source)
        if isinstance(statement, ast.Import | ast.ImportFrom)
        and str(getattr(statement, "module", "")).split(".")[0] not in PIECES
    ]


def read(text: str) -> set[str]:
    """The names that a text reads and does not bind, at any depth."""
    found: set[str] = set()
    own: set[str] = set()
    for node in ast.walk(ast.Module(statements_of(text), [])):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Name | ast.arg | ast.stmt | ast.ExceptHandler):
            own.update(bound(node))
    return found - own


def defined(text: str) -> set[str]:
    """The names that a text binds at its top."""
    return {
        name
        for statement in statements_of(text)
        for node in [statement, *getattr(statement, "targets", [])]
        for name in bound(node)
    }


def bound(node: ast.AST) -> list[str]:
    """The names that a node binds by itself."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name.split(".")[0] for alias in node.names]
        case ast.FunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Name(ctx=ast.Store()):
            return [node.id]
        case ast.arg():
            return [node.arg]
        case ast.ExceptHandler(name=str(name)):
            return [name]
    return []
