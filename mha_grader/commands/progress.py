"""`mha-grade progress`: what one has reached alone, and what to read next."""

from __future__ import annotations

import argparse
from typing import Any

from mha_grader.learn.material import Material
from mha_grader.learn.progress import Progress, lines


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "progress",
        help="show what you have reached by `mha-grade check`, and what to read next",
        description="Show the most points that each item has had in `mha-grade check`, and what to read next. "
        "They are kept in the file .mha-grade/progress.json of your home folder.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    del arguments  # it takes none
    print("\n".join(lines(Material(), Progress())))
    return 0
