"""How a command ends: its exit code, and one line for what went wrong."""

from __future__ import annotations

import argparse
import os
import sys

from mha_grader.course.errors import CourseError
from mha_grader.sandbox.fork_server import SandboxUnavailable


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was chosen; returns the exit code.

    0: done. 1: the machine or the course is not ready. 3: some hand-ins could not be graded, all others are.
    130: stopped from the keyboard.
    """
    try:
        result: int = arguments.run(arguments)
        sys.stdout.flush()
        return result
    except BrokenPipeError:  # as in `mha-grade log … | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return 1
    except (CourseError, SandboxUnavailable) as error:
        print(f"mha-grade: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mha-grade: stopped", file=sys.stderr)
        return 130
