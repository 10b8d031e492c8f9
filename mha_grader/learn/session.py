"""Running one's own code with the tests of the graded run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import Assignment
from mha_grader.grading.session import Budget, Session
from mha_grader.grading.settings import Settings
from mha_grader.learn.process import OwnProcess
from mha_grader.testing.proxies import answers_of

DRAWS = b"for oneself"  # in place of a course's secret: the same code meets the same inputs every time


class OwnCandidates:
    """Runs the candidates of one's own checker in this process: they are the course's, and trusted."""

    def __init__(self) -> None:
        self._answers: Callable[[Any, Any], dict[str, Any]] | None = None

    def start(self, spec: str) -> None:
        """Begin with this candidate."""
        self._answers = answers_of(spec)

    def call(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """What goes back to the checker for a call of the candidate."""
        assert self._answers is not None
        return self._answers(args, kwargs)

    def close(self) -> None:
        """Nothing runs elsewhere."""


class OwnSession(Session):
    """A session whose process is a plain one of this machine (see `process`)."""

    def process(self) -> OwnProcess:
        """A new process."""
        return OwnProcess(self.layout, self.limits)

    def forget(self) -> None:
        """Keep the process: one's own checker has nobody to deceive, and a new process takes seconds."""

    def candidates(self) -> OwnCandidates:
        """What runs candidates."""
        return OwnCandidates()


@dataclass(frozen=True)
class OwnSettings(Settings):
    """Settings for checking one's own code."""

    budget: Budget = field(
        default_factory=lambda: Budget(submission=900.0)
    )  # a new process takes seconds here

    @classmethod
    def of(cls, material: Path) -> OwnSettings:
        """The settings for a course's material."""
        return cls(secret=DRAWS, course=material)

    def session(self, assignment: Assignment) -> OwnSession:
        """A new session."""
        return OwnSession(self.layout(assignment), self.limits, self.budget)
