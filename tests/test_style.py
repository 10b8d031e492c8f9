"""Style and types are clean; `make lint` shows the same."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_style_and_types_are_clean(command):
    name, *options = command.split()
    program = Path(sys.executable).with_name(name)
    done = subprocess.run([program, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
