"""Who handed in what is in submitted/: the person as the platform of the archive calls them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.course.store import write_whole

Scheme = Literal["moodle", "canvas", "brightspace", "blackboard", "gradescope", "sakai", "plain"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


@dataclass(frozen=True)
class Origin:
    """Who a student is on the platform that the hand-in came from."""

    scheme: Scheme
    name: str = ""  # as the platform has it
    number: str = ""  # Moodle: of the participant in this one assignment; else: of the user, or the login
    late: bool = False  # Canvas says so; Moodle does not say
    email: str = ""
    id_number: str = ""  # Moodle's of the user, from its worksheet
    place: str = dataclasses.field(default="", compare=False)  # the platform's own words before a file's name
    members: tuple[str, ...] = dataclasses.field(default=(), compare=False)  # ids of a group that handed in

    @property
    def user(self) -> str:
        """What stands for the user in all assignments; "" if the platform did not tell."""
        return (
            self.id_number if self.scheme == "moodle" else self.number or self.name * (self.scheme == "plain")
        )


def origins(course: Course, assignment: str) -> dict[str, Origin]:
    """Who the students are whose hand-ins were collected, by id; empty if none were.

    Raises:
        CourseError: if what was written down cannot be read.
    """
    path = _path(course, assignment)
    try:
        data = json.loads(path.read_text("utf-8"))
        return {student: _origin(origin) for student, origin in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CourseError(
            f"cannot read {path}, which says whose hand-ins are whose: {error}; restore it, or remove it and "
            "collect with --scheme"
        ) from None


def _origin(data: dict[str, Any]) -> Origin:
    return Origin(**data | {"members": tuple(data.get("members", ()))})


def _path(course: Course, assignment: str) -> Path:
    return course.root / "grades" / f"{assignment}-collected.json"


def save(course: Course, assignment: str, found: Mapping[str, Origin]) -> None:
    """Write down who the students are, by id."""
    data = {student: dataclasses.asdict(origin) for student, origin in found.items()}
    _path(course, assignment).parent.mkdir(exist_ok=True)
    write_whole(_path(course, assignment), json.dumps(data, indent=1, ensure_ascii=False))


def representatives(course: Course, assignment: str) -> dict[str, str]:
    """For each member of a group that handed in together: the student in whose folder the hand-in lies."""
    return {
        member: student
        for student, origin in origins(course, assignment).items()
        for member in origin.members
    }
