"""The command `mha-grade`: what it is made of. Each of its commands is a module of `mha_grader.commands`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mha_grader.commands import (
    change,
    check,
    collect,
    export,
    extend,
    feedback,
    grade,
    log,
    marks,
    new,
    outcome,
    progress,
    report,
    roster,
    try_,
)

DESCRIPTION = """\
Grade hand-ins of the multi-head attention course in a sandbox, and say why.

A week of an instructor:
  mha-grade collect single_head submissions.zip    unpack a platform's zip file into submitted/
  mha-grade grade single_head        grade all that lies in submitted/<student>/single_head/
  mha-grade feedback single_head     write a page for each student into feedback/
  mha-grade export single_head       write the scores to grades/single_head.csv and .json
  mha-grade report single_head       write a page about the class, grades/single_head-report.html

Test a piece of code without a notebook (it defines one item, see the assignment):
  mha-grade try single_head attention my_attention.py
"""


COMMANDS = (
    collect,
    grade,
    feedback,
    export,
    report,
    new,
    change,
    log,
    try_,
    check,
    marks,
    progress,
    roster,
    extend,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0: done. 1: the machine or the course is not ready. 2: wrong usage. 3: some hand-ins could not be graded, all
    others are. 130: stopped from the keyboard.
    """
    return outcome.run(_parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mha-grade", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--course", type=Path, metavar="DIR", help="the course's folder (default: this one)")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser
