"""What grading depends on beside the assignment and the hand-in."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass, field
from pathlib import Path

from mha_grader.course.assignment import Assignment, CourseError
from mha_grader.course.folders import Course
from mha_grader.grading.session import Budget, Session
from mha_grader.sandbox.fork_server import PACKAGES, Layout, Limits


@dataclass(frozen=True)
class Settings:
    """The course's secret, and what a student's code may take."""

    secret: bytes  # hidden inputs are drawn from it
    course: Path
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)

    def layout(self, assignment: Assignment) -> Layout:
        """What students' processes find.

        Raises:
            CourseError: if the course allows a package that is not installed.
        """
        for name in (*(assignment.packages or ()), *assignment.besides):
            try:
                importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:
                raise CourseError(
                    f"solutions/course.toml lets students of {assignment.name} import {name}, which is not "
                    f"installed where grading runs: install it there, for instance with `pip install {name}`"
                ) from None
        return Layout.make(
            assignment.files,
            imports=assignment.imports(),
            hidden=self.course,
            allowed=(
                *(PACKAGES if assignment.packages is None else assignment.packages),
                *assignment.besides,
            ),
        )

    def session(self, assignment: Assignment) -> Session:
        """A new session for one student."""
        return Session(self.layout(assignment), self.limits, self.budget)


def settings_of(course: Course) -> Settings:
    """The settings of a course."""
    return Settings(secret=course.secret(), course=course.root)
