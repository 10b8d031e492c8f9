"""The command line: every command is in it, and it ends as it should."""

import argparse
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mha_grader import cli, commands
from mha_grader.commands import outcome

COURSE = Path(__file__).parents[2]
NAMES = [command.__name__.rpartition(".")[2].strip("_") for command in cli.COMMANDS]


def test_every_module_that_adds_a_command_is_in_the_command_line():
    modules = [
        import_module(f"{commands.__name__}.{each.name}") for each in pkgutil.iter_modules(commands.__path__)
    ]
    adding = {module.__name__ for module in modules if hasattr(module, "add")}
    assert adding == {command.__name__ for command in cli.COMMANDS}


def test_the_command_line_imports_nothing_that_takes_seconds_and_that_few_commands_need():
    code = "import sys, mha_grader.cli; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=COURSE, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert (
        loaded & {"jupytext", "nbformat", "jsonschema", "lark", "nbgrader", "torch", "distributed"} == set()
    )


def shown(capsys, *words):
    with pytest.raises(SystemExit) as left:
        cli.main([*words, "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_the_help_says_of_every_command_what_it_does(capsys):
    listed = re.findall(r"^    ([a-z]+) +\w.*$", shown(capsys), re.M)
    assert listed == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_its_help(name, capsys):
    assert shown(capsys, name).startswith(f"usage: mha-grade {name} [-h]")


def test_outside_a_course_it_says_where_to_go(tmp_path, capsys):
    assert cli.main(["--course", str(tmp_path), "try", "single_head", "softmax", "x.py"]) == 1
    assert "nbgrader_config.py" in capsys.readouterr().err


def test_stopped_from_the_keyboard_it_says_so_in_one_line(capsys):
    def stopped(arguments):
        raise KeyboardInterrupt

    assert outcome.run(argparse.Namespace(run=stopped)) == 130
    assert capsys.readouterr().err == "mha-grade: stopped\n"


GONE = """\
import argparse, sys
from mha_grader.commands import outcome
def run(arguments):
    for number in range(100_000):
        print(number)
    return 0
sys.exit(outcome.run(argparse.Namespace(run=run)))
"""


def test_a_reader_that_goes_away_ends_it_quietly():
    with subprocess.Popen(
        [sys.executable, "-c", GONE], cwd=COURSE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1
