"""What one has reached so far, in a file of one's own: `.mha-grade/progress.json` in the home folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import CourseError
from mha_grader.course.records import ItemRecord
from mha_grader.course.store import write_whole
from mha_grader.learn.material import Material


def place() -> Path:
    """Where the file lies.

    Raises:
        CourseError: if the system names no home folder.
    """
    try:
        return Path.home() / ".mha-grade" / "progress.json"
    except RuntimeError:
        raise CourseError("there is no home folder to keep your progress in: set HOME to a folder") from None


class Progress:
    """The most points that each item has had, and whose solution was asked for. Changes are written at once."""

    def __init__(self, path: Path | None = None):
        """Read the file, if there is one.

        Raises:
            CourseError: if it is damaged or cannot be read; nothing of it is changed then.
        """
        self.path = path or place()
        self._items = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        """What the file says of items, by "assignment.item"."""
        try:
            return {
                name: {
                    "points": None if item["points"] is None else 0.0 + item["points"],
                    "asked": bool(item["asked"]),
                }
                for name, item in json.loads(self.path.read_text("utf-8"))["items"].items()
            }
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise CourseError(
                f"cannot read {self.path}, where your progress is kept: {error.strerror}"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CourseError(
                f"{self.path}, where your progress is kept, is damaged ({type(error).__name__}: {error}): "
                "repair it, or move it away to start again"
            ) from None

    def points(self, assignment: str, item: str) -> float | None:
        """The most points that an item has had; None if it was not checked yet."""
        return self._items.get(f"{assignment}.{item}", {}).get("points")

    def asked(self, assignment: str, item: str) -> bool:
        """Whether the item's solution was asked for before."""
        return bool(self._items.get(f"{assignment}.{item}", {}).get("asked"))

    def enter(self, assignment: str, records: tuple[ItemRecord, ...]) -> None:
        """Keep what came of a check.

        Raises:
            CourseError: if the file cannot be written.
        """
        self._items = self._read()  # a check takes a while, and another one may have ended meanwhile
        for record in records:
            self._change(
                assignment, record.item, points=max(record.score, self.points(assignment, record.item) or 0.0)
            )
        self._write()

    def ask(self, assignment: str, item: str) -> None:
        """Keep that a solution was asked for.

        Raises:
            CourseError: if the file cannot be written.
        """
        self._change(assignment, item, asked=True)
        self._write()

    def _change(self, assignment: str, item: str, **fields: Any) -> None:
        self._items.setdefault(f"{assignment}.{item}", {"points": None, "asked": False}).update(fields)

    def _write(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, json.dumps({"items": self._items}, indent=1, sort_keys=True))
        except OSError as error:
            raise CourseError(
                f"cannot write {self.path}, where your progress is kept: {error.strerror}"
            ) from None


def lines(material: Material, progress: Progress) -> Iterator[str]:
    """The points of all items in the order of the book, and what to do next."""
    following = None
    for name in material.names:
        released = material.released(name)
        reached = {item: progress.points(name, item) for item in released.points}
        total, most = sum(points or 0.0 for points in reached.values()), sum(released.points.values())
        yield f"{name}: {total:g} of {most:g} points"
        for item, worth in released.points.items():
            points = reached[item]
            missing = points is None or points < worth
            if missing and following is None:
                following = name, item, released.reading(item)
            if any(value is not None for value in reached.values()):
                yield f"  {item:32} {'not checked' if points is None else f'{points:g} of {worth:g}'}"
    if following is None:
        yield "You have all points."
        return
    name, item, reading = following
    yield f"Next: {item} of {name}." + (f" Read in the book: {reading}" if reading else "")
    if page := material.page(reading):
        yield page
