"""What several commands take."""

from __future__ import annotations

import argparse

STUDENT = "the id; with a roster also login, e-mail address or full name"


def add_assignment(parser: argparse.ArgumentParser) -> None:
    """The command is about one assignment."""
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="its name, for instance single_head")


def add_only_student(parser: argparse.ArgumentParser) -> None:
    """The command can be about one student."""
    parser.add_argument("--student", metavar="STUDENT", help=f"only this student: {STUDENT}")
