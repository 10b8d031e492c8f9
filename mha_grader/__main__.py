"""`mha-grade`, and `python -m mha_grader`: the commands for learning alone run without what grading needs."""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import sys
from collections.abc import Sequence

from mha_grader.commands import check, outcome, progress

ALONE = {"check": check, "progress": progress}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code, see `mha_grader.cli.main`."""
    gc.set_threshold(200_000, 50, 50)  # most of what a command imports and makes stays until its end
    atexit.register(gc.freeze)  # and there is no need to look for garbage in it then
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ALONE:
        return _learn(words)
    try:
        from mha_grader import cli
    except ModuleNotFoundError as error:
        if words in ([], ["-h"], ["--help"]):
            return _learn(["--help"])
        print(
            f"mha-grade: all commands but {' and '.join(ALONE)} need the packages of the extra `grade`; "
            f"{error.name} is missing. In a copy of the repository, `make course` installs them",
            file=sys.stderr,
        )
        return 1
    return cli.main(words)


def _learn(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="mha-grade", description="Learn alone: test your own code, see how far you are."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in ALONE.values():
        command.add(commands)
    arguments = parser.parse_args(words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # some consoles cannot show a √
    return outcome.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
