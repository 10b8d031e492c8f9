"""What grading depends on beside the assignment and the hand-in."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mha_grader.course.assignment import Assignment
from mha_grader.course.folders import Course
from mha_grader.grading.session import Budget, Session
from mha_grader.sandbox.fork_server import Layout, Limits


@dataclass(frozen=True)
class Settings:
    """The course's secret, and what a student's code may take."""

    secret: bytes  # hidden inputs are drawn from it
    course: Path
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)

    def layout(self, assignment: Assignment) -> Layout:
        """What students' processes find."""
        return Layout.make(assignment.files, imports=assignment.imports(), hidden=self.course)

    def session(self, assignment: Assignment) -> Session:
        """A new session for one student."""
        return Session(self.layout(assignment), self.limits, self.budget)


def settings(course: Course) -> Settings:
    """The settings of a course."""
    return Settings(secret=course.secret(), course=course.root)
