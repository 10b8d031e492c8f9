"""What a hand-in has of other assignments: a notebook that is another one's, and code that another one gives.

Later notebooks give solutions of earlier ones, in their cells or in files beside them. So a notebook of another
assignment earns nothing, and code that is the same as what another one gives is shown to a person, who decides.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from mha_grader.course.assignment import Assignment, Released

MAX_PARSED = 10_000  # characters of code that is read as Python: Python can take minutes for more


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

    Comments and docstrings do not count, nor does the layout, nor the name under which it is defined.

    Args:
        assignment: the item's assignment.
        item: the item's name.
        source: the student's cell.
    """
    own = set(_definitions(source).values()) if len(source) <= MAX_PARSED else set()
    same = [other.name for other in assignment.others if own.intersection(_given(other, item))]
    return (f"{item} is the code that the notebook {' and '.join(same)} gives",) if same else ()


def _given(other: Released, item: str) -> list[str]:
    return [found[item] for given in other.given if item in (found := _given_definitions(given))]


def _definitions(source: str) -> dict[str, str]:
    """What code defines at its top level as functions and classes, in a form without comments and docstrings."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
                    node.body = node.body[1:]
            name, statement.name = statement.name, ""
            found[name] = ast.dump(statement)
    return found


_given_definitions = functools.cache(_definitions)  # what is given is the same for all students
