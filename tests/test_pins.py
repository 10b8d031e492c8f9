"""The pinned packages can be installed wherever the project says that it runs."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def test_every_pinned_package_runs_on_the_oldest_python_that_the_project_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {canonicalize_name(line.split("==")[0]) for line in lines if "==" in line}
    wanted = {
        canonicalize_name(found.metadata["Name"]): found.metadata.get("Requires-Python") or ""
        for found in metadata.distributions()
    }
    here = sorted(pinned & wanted.keys())
    assert len(here) > 150
    assert [(name, wanted[name]) for name in here if oldest not in SpecifierSet(wanted[name])] == []


def test_no_process_that_reads_notebooks_compiles_a_grammar_first():
    code = "import sys, nbformat; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
