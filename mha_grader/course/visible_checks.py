"""The visible checks of a notebook: written in its source beside the hidden tests, kept in `checks.py` beside it.

In the notebook a check is one line, such as `check_softmax(softmax)`. `checks.py` is made of `solutions/checks.py`,
the imports that the checks use, the source's cells with `role="check"`, and a function for each test cell. In a
course without `solutions/checks.py` the checks stand in the notebook itself.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from functools import cached_property
from pathlib import Path
from typing import Any

from mha_grader.course.names import bound, defined, imports_of, read
from mha_grader.course.sources import split_test

CHECKS = "checks.py"


class VisibleChecks:
    """The visible checks of one text source.

    Args:
        source: the text source, as `read_source` gives it.
        helpers: the text of `solutions/checks.py`.
    """

    def __init__(self, source: Any, helpers: str):
        self.source, self.helpers = source, helpers

    def call(self, cell: Any) -> str:
        """The line in the notebook that runs a test cell's checks."""
        return f"{check_name(cell.metadata['item'])}({', '.join(self._parameters(cell))})"

    def file(self) -> str:
        """The text of `checks.py`."""
        written = [*self._shared, *(self._function(cell) for cell in self._cells("test"))]
        used = set().union(*map(read, written))
        imports = [
            ast.unparse(statement)
            for statement in self._imports
            if (names := set(bound(statement))) & used and not names <= defined(self.helpers)
        ]
        heading = "\n".join(["# The checks of this notebook's cells.", *imports])
        return "\n\n\n".join([self.helpers.rstrip(), heading, *written]) + "\n"

    def _cells(self, role: str) -> list[Any]:
        return [cell for cell in self.source.cells if cell.metadata.get("role") == role]

    @cached_property
    def _shared(self) -> list[str]:
        """What several checks use."""
        return [cell.source for cell in self._cells("check")]

    @cached_property
    def _imports(self) -> list[ast.stmt]:
        """The notebook's own imports, but for those of pieces of the course."""
        return imports_of(self.source, "given", "show")

    @cached_property
    def _known(self) -> set[str]:
        """The names that `checks.py` has by itself."""
        imported = {name for statement in self._imports for name in bound(statement)}
        return imported.union(dir(builtins), *map(defined, [self.helpers, *self._shared]))

    def _parameters(self, cell: Any) -> list[str]:
        """The names of the notebook that a test cell's checks use, its item first."""
        visible, item = split_test(cell.source)[0], cell.metadata["item"]
        others = read(visible) - self._known - {item}
        return [item, *sorted(others)]

    def _function(self, cell: Any) -> str:
        head = f"def {self.call(cell)}:\n    __tracebackhide__ = True\n"
        return f"@one_line\n{head}{textwrap.indent(split_test(cell.source)[0], '    ')}"


def visible_checks(source: Any, sources: Path) -> VisibleChecks | None:
    """The visible checks of a text source; None in a course without `checks.py`."""
    helpers = sources / CHECKS
    return VisibleChecks(source, helpers.read_text("utf-8")) if helpers.exists() else None


def check_name(item: str) -> str:
    """What the check of an item is called; an item that is a checker is called `check_…` itself."""
    return f"try_{item}" if item.startswith("check_") else f"check_{item}"
