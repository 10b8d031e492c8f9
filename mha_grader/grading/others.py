"""What a hand-in has of other assignments: a notebook that is another one's, and code that another one gives.

Later notebooks give solutions of earlier ones, in their cells or in files beside them. So a notebook of another
assignment earns nothing, and code that is the same as what another one gives is shown to a person, who decides.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from mha_grader.course.assignment import Assignment
from mha_grader.grading.syntax import parsed


def belongs_to(assignment: Assignment, cells: Sequence[Mapping[str, Any]]) -> str | None:
    """The name of the other assignment whose notebook this is, or None.

    It is one if at least half of that notebook's cells stand in it, known by their ids or their text, and less than
    half of this assignment's. A notebook without ids and with other text is nobody else's.

    Args:
        assignment: what it was handed in for.
        cells: of the hand-in.
    """
    ids, texts = set(), set()
    for cell in cells:
        nbgrader = cell["metadata"].get("nbgrader")
        grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
        ids |= {each for each in (grade_id, cell["id"]) if isinstance(each, str)}
        texts.add(cell["source"].strip())

    def share(released: Mapping[str, str]) -> float:
        there = [name in ids or source.strip() in texts for name, source in released.items()]
        return sum(there) / max(len(there), 1)

    if share({cell.id: cell.released for cell in assignment.cells}) >= 0.5:
        return None
    shares = {other.name: share(other.cells) for other in assignment.others}
    name = max(shares, key=lambda each: shares[each], default=None)
    return name if name is not None and shares[name] >= 0.5 else None


def given_elsewhere(assignment: Assignment, item: str, source: str) -> tuple[str, ...]:
    """What a person should look at: the code of an item is what another released notebook gives.

    Comments and docstrings do not count, nor does the layout, nor the name.

    Args:
        assignment: the item's assignment.
        item: the item's name.
        source: the student's cell.
    """
    own = _definitions(source).get(item) if parsed(source) is not None else None
    if own is None:
        return ()
    same = [
        other.name
        for other in assignment.others
        if any(own.is_like(given) for text in other.given for given in _given_definitions(text).values())
    ]
    if not same:
        return ()
    who = f"notebook {same[0]} gives" if len(same) == 1 else f"notebooks {' and '.join(same)} give"
    return (f"{item} is the code that the {who}",)


class _Definition:
    """A function or a class of a text, to be compared without its name and without docstrings."""

    def __init__(self, statement: ast.FunctionDef | ast.ClassDef):
        """The statement is changed once its code is asked for."""
        self._statement = statement
        self._kinds = [type(each) for each in statement.body if not isinstance(each, ast.Expr)]

    def is_like(self, other: _Definition) -> bool:
        """Whether both are the same code; most that are not differ already in what statements there are."""
        try:
            return self._kinds == other._kinds and self._code == other._code
        except RecursionError:  # no notebook gives code that is nested so deeply
            return False

    @functools.cached_property
    def _code(self) -> str:
        for node in ast.walk(self._statement):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        return ast.dump(self._statement).replace(repr(self._statement.name), "itself")


def _definitions(source: str) -> dict[str, _Definition]:
    """What code defines at its top level, by name; what a notebook gives may be long."""
    try:
        body = ast.parse(source).body  # a tree of its own, which will be changed
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    kept = [statement for statement in body if isinstance(statement, ast.FunctionDef | ast.ClassDef)]
    return {statement.name: _Definition(statement) for statement in kept}


_given_definitions = functools.cache(_definitions)  # what is given is the same for all students
