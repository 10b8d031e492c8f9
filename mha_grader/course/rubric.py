"""How a person marks: a file beside the source, `solutions/<assignment>_rubric.toml`.

    [why_two_heads]                       # the answer's item
    criteria = [                          # students read them in the notebook
        [2, "says what the second head does that the first cannot"],
        [1, "names a run that shows it"],
    ]
    comments = [                          # for the marker, to be copied into nbgrader's comment box
        "True, but it does not follow from what you say before it.",
    ]

The points of the criteria are the points of the item. Comments may change at any time.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mha_grader.course.errors import CourseError

ENDING = "_rubric.toml"
WANTED = 'criteria = [[2, "what earns 2 points"], …] and perhaps comments = ["…", …]'


@dataclass(frozen=True)
class Criterion:
    """What earns points."""

    points: float
    says: str


@dataclass(frozen=True)
class Rubric:
    """How an answer is marked."""

    criteria: tuple[Criterion, ...]
    comments: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """What a full answer earns."""
        return sum(criterion.points for criterion in self.criteria)

    def in_markdown(self) -> str:
        """The criteria as a list."""
        return "\n".join(
            f"* {each.points:g} {'point' if each.points == 1 else 'points'}: {each.says}"
            for each in self.criteria
        )


def read(sources: Path, assignment: str) -> dict[str, Rubric]:
    """The rubrics of an assignment by item; none if it has no such file.

    Args:
        sources: the folder of the sources.
        assignment: the assignment's name.

    Raises:
        CourseError: if the file is not what it should be.
    """
    path = sources / f"{assignment}{ENDING}"
    if not path.exists():
        return {}
    try:
        return {item: _rubric(table) for item, table in tomllib.loads(path.read_text("utf-8")).items()}
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{path.name} is not TOML: {error}") from None
    except ValueError:
        raise CourseError(f"{path.name}: each item should have {WANTED}") from None


def _rubric(table: Any) -> Rubric:
    match table:
        case {"criteria": [_, *_] as criteria, **others} if not others.keys() - {"comments"}:
            comments = others.get("comments", [])
            if isinstance(comments, list) and all(isinstance(each, str) for each in comments):
                return Rubric(tuple(map(_criterion, criteria)), tuple(comments))
    raise ValueError


def _criterion(pair: Any) -> Criterion:
    match pair:
        case [int() | float() as points, str(says)] if points > 0 and not isinstance(points, bool):
            return Criterion(float(points), says)
    raise ValueError
