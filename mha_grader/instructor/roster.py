"""Who the students are: what can be an id, and who they are on the platform that their hand-ins came from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mha_grader.course.folders import Course
from mha_grader.course.store import write_whole

Scheme = Literal["moodle", "canvas", "brightspace", "sakai", "plain"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


def is_student_id(name: str) -> bool:
    """Whether a folder's name can be a student's id.

    nbgrader cannot read names of several lines, its database holds 128 characters, and a file with a longer name
    than the folder's is written for each.
    """
    if not name.isprintable() or name.startswith("."):
        return False
    return len(name) <= 128 and len(name.encode()) <= 200


@dataclass(frozen=True)
class Origin:
    """Who a student is on the platform that the hand-in came from."""

    scheme: Scheme
    name: str = ""  # as the platform has it
    number: str = ""  # Moodle: of the participant in this one assignment; else: of the user, or the login
    late: bool = False  # Canvas says so; Moodle does not say


def origins(course: Course, assignment: str) -> dict[str, Origin]:
    """Who the students are whose hand-ins were collected, by id; empty if none were."""
    try:
        data = json.loads(_path(course, assignment).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return {student: Origin(**origin) for student, origin in data.items()}


def _path(course: Course, assignment: str) -> Path:
    return course.root / "grades" / f"{assignment}-collected.json"


def save(course: Course, assignment: str, found: Mapping[str, Origin]) -> None:
    """Write down who the students are, by id."""
    data = {student: dataclasses.asdict(origin) for student, origin in found.items()}
    _path(course, assignment).parent.mkdir(exist_ok=True)
    write_whole(_path(course, assignment), json.dumps(data, indent=1, ensure_ascii=False))
