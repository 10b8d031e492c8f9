"""What a student wrote for a person to mark."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from mha_grader.course.assignment import Assignment, Cell


def written(
    assignment: Assignment, cells: Iterable[tuple[Cell | None, str, str]], sources: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The answers that differ from what was released, by id, and the ids of answers whose cell is gone.

    A text consists of all pieces of its cell and of text cells that the student added right below it, or right
    below the question above it.

    Args:
        assignment: the assignment.
        cells: those that were handed in: the released cell that each one is, its type and its source.
        sources: what was taken of the cells with code, by item.
    """
    texts = [cell for cell in assignment.marked if cell.kind in ("markdown", "task")]
    owner = {cell.id: cell for cell in texts}  # of what stands in a cell, and of text cells added below it
    for question, answer in itertools.pairwise(assignment.cells):
        if answer.id in owner:
            owner.setdefault(question.id, answer)
    pieces: dict[str, list[str]] = {cell.id: [] for cell in texts}
    there: set[str] = set()
    anchor: Cell | None = None
    for place, kind, source in cells:
        if place is not None:
            anchor = owner.get(place.id)
            there.add(place.id)
        is_piece = kind == "markdown" if place is None else place.id in pieces
        if anchor is not None and is_piece and source.strip() not in ("", anchor.released.strip()):
            pieces[anchor.id].append(source)
    found = {name: "\n\n".join(dict.fromkeys(parts)) for name, parts in pieces.items() if parts}
    for cell in assignment.marked:
        if cell.kind == "solution" and sources[cell.id].strip() not in ("", cell.released.strip()):
            found[cell.id] = sources[cell.id]
    missing = [
        cell.id for cell in texts if cell.kind == "markdown" and cell.id not in there and cell.id not in found
    ]
    return found, missing
