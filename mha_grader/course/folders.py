"""Where a course keeps its files, and its secret."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from mha_grader.course.assignment import CourseError


@dataclass(frozen=True)
class Course:
    """The course's root folder: the one with nbgrader_config.py."""

    root: Path

    @classmethod
    def find(cls, folder: Path | None = None) -> Course:
        """The course that `folder` (the current one if None) lies in.

        Raises:
            CourseError: if neither it nor a folder above has an nbgrader_config.py.
        """
        start = (folder or Path.cwd()).resolve()
        for candidate in (start, *start.parents):
            if (candidate / "nbgrader_config.py").is_file():
                return cls(candidate)
        raise CourseError(
            f"{start} is not inside a course: no nbgrader_config.py there or above. "
            "Change to the course's folder, or name it with --course"
        )

    @property
    def submitted(self) -> Path:
        """Hand-ins: submitted/<student>/<assignment>/<assignment>.ipynb."""
        return self.root / "submitted"

    def grades(self, assignment: str) -> Path:
        """What grading has found: one JSON record a student."""
        return self.root / "grades" / assignment

    def secret(self) -> bytes:
        """The secret that hidden inputs are drawn from: $MHA_COURSE_SECRET, or a file made at first use.

        Regrading is exact only with the same secret, so keep the file with the course's private data.
        """
        if text := os.environ.get("MHA_COURSE_SECRET"):
            return text.encode()
        path = self.root / ".course_secret"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(32).encode())
        return path.read_bytes()


def config_of_a_copy(root: Path) -> str:
    """The text of nbgrader_config.py for a copy of the course, which is made to try something.

    The copy has a gradebook of its own, also if the course's is on a server: what is tried is no part of the term.
    """
    text = (root / "nbgrader_config.py").read_text("utf-8")
    return f'{text}\nc.CourseDirectory.pop("db_url", None)\n'


def hand_ins(submitted: Path, assignment: str) -> list[Path]:
    """The folders <student>/<assignment> in `submitted`, in the order of the students' ids.

    A student counts who has anything of that name, or the notebook beside the place of the folder; one whose
    folder cannot be looked into counts as well.
    """
    names = (assignment, f"{assignment}.ipynb")
    students = sorted(submitted.iterdir()) if submitted.is_dir() else []
    return [student / assignment for student in students if any(_exists(student / name) for name in names)]


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
