"""What students are given of earlier assignments: kept in `given.py` beside a notebook, which imports it.

In a given cell of a text source, `from mha_lib.attention import softmax` becomes `from given import softmax`, and
the function goes to `given.py`. Code of `mha_lib.pitfalls` is there to be read, so it stands in the cell itself.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mha_grader.course.names import bound, imports_of, read
from mha_grader.course.sources import SourceError, source_of, statements_of

GIVEN = "given.py"
WIDTH = 78  # columns of code in a notebook
# A solution cell that is an item of the library under its own name: its module and its name
SOLUTION = re.compile(r'^# %%.*role="solution".*\n+from ([\w.]+) import (\w+)$', re.MULTILINE)
HEAD = """\
Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.
"""


class Piece(NamedTuple):
    """A function or class that a given cell imports."""

    module: str
    name: str
    statement: ast.ImportFrom
    alias: ast.alias

    @property
    def is_read(self) -> bool:
        """Whether students read it in the notebook."""
        return self.module.startswith("mha_lib.pitfalls.")

    @property
    def source(self) -> str:
        """Its source, under the name that it is imported as."""
        return source_of(self.statement, self.alias)


def given_cell(text: str) -> str:
    """The text of a given cell in a notebook.

    Raises:
        SourceError: if it does other things beside importing from `mha_lib`.
    """
    pieces = _pieces(text)
    if not pieces:
        return text
    names = sorted(piece.name for piece in pieces if not piece.is_read)
    shown = [piece.source for piece in pieces if piece.is_read]
    return "\n\n\n".join([*([_import_line(names)] if names else []), *shown])


def given_file(source: Any, sources: Path) -> str | None:
    """The text of `given.py`; None if the notebook needs none.

    Args:
        source: the text source, as `read_source` gives it.
        sources: the folder of the text sources.

    Raises:
        SourceError: if a piece uses a name that the file would not have.
    """
    pieces = _kept_apart(source)
    if not pieces:
        return None
    origins = _origins(pieces, source.metadata["mha"]["assignment"], sources)
    return '"""' + "\n".join([HEAD, *origins]).rstrip() + f'\n"""\n\n{given_code(source)}\n'


def given_code(source: Any) -> str:
    """The code of `given.py`, without the text at its top; "" if the notebook needs none.

    Raises:
        SourceError: if a piece uses a name that the file would not have.
    """
    pieces = _kept_apart(source)
    return "\n\n\n".join([_imports(source, pieces), *(piece.source for piece in pieces)]) if pieces else ""


def _kept_apart(source: Any) -> list[Piece]:
    """The pieces that students do not read in the notebook."""
    given = [cell.source for cell in source.cells if cell.metadata.get("role") == "given"]
    return [piece for text in given for piece in _pieces(text) if not piece.is_read]


def _pieces(text: str) -> list[Piece]:
    statements = statements_of(text)
    imports = [
        statement
        for statement in statements
        if isinstance(statement, ast.ImportFrom) and str(statement.module).split(".")[0] == "mha_lib"
    ]
    if imports and len(imports) < len(statements):
        raise SourceError("a given cell with imports from mha_lib should hold nothing else")
    return [
        Piece(str(statement.module), alias.asname or alias.name, statement, alias)
        for statement in imports
        for alias in statement.names
    ]


def _import_line(names: list[str]) -> str:
    line = f"from given import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join(["from given import (", *map("    {},".format, names), ")"])


def _origins(pieces: list[Piece], assignment: str, sources: Path) -> Iterator[str]:
    """Which items of which other assignments the pieces are, a line for each of these assignments."""
    for path in sorted(sources.glob("*.py")):
        items = set(SOLUTION.findall(path.read_text("utf-8"))) if path.stem != assignment else set()
        found = [f"`{piece.name}`" for piece in pieces if (piece.module, piece.alias.name) in items]
        if found:
            yield f"From {path.stem}: {', '.join(found)}."


def _imports(source: Any, pieces: list[Piece]) -> str:
    """Those of the notebook's imports that the pieces use."""
    used = set().union(*(read(piece.source) for piece in pieces))
    statements = [statement for statement in imports_of(source, "given") if used & set(bound(statement))]
    known = {name for statement in statements for name in bound(statement)}
    missing = used - known - {piece.name for piece in pieces} - set(dir(builtins))
    if missing:
        raise SourceError(
            f"what it gives uses {', '.join(sorted(missing))}, which no given cell imports from a library or gives"
        )
    return "\n".join(map(ast.unparse, statements))
