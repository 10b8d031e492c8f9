"""Who imports whom: no circle in the grader, and nothing that pyproject.toml does not declare."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
OWN = {"mha_lib", "mha_grader", "tests", "benchmarks", "examples", "book"}


def imports(path):
    """Dotted names that a file imports anywhere, inside its functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if is_module(name) else node.module for name in below}
    return found


def is_module(name):
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def circle(graph):
    """The modules that stand in circles of {module: modules that it imports}, or between two circles."""
    graph = {module: set(others) & graph.keys() - {module} for module, others in graph.items()}
    while True:
        used = set().union(*graph.values())
        rest = {module: others for module, others in graph.items() if others and module in used}
        if len(rest) == len(graph):
            return sorted(graph)
        graph = {module: others & rest.keys() for module, others in rest.items()}


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c", "numpy"}, "c": {"b", "d"}, "d": {"d"}}) == ["b", "c"]
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_no_modules_of_the_grader_import_each_other_in_a_circle():
    graph = {module_name(path): imports(path) for path in (ROOT / "mha_grader").rglob("*.py")}
    assert len(graph) > 30
    assert circle(graph) == []


def declared(*extras):
    """The packages that pyproject.toml names, for those who install with these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    names = {canonicalize_name(Requirement(line).name) for line in lines}
    return names.union(*(BROUGHT.get(name, ()) for name in names))


# What is imported with another package, which exists to bring it.
BROUGHT = {
    "jupyter-book": {
        "sphinx",
        "myst-nb",
        "docutils",
        "beautifulsoup4",
        "jupyter-cache",
        "pygments",
        "pyyaml",
        "ipython",
    },
    "nbgrader": {
        "setuptools",
        "nbformat",
        "nbconvert",
        "nbclient",
        "traitlets",
        "sqlalchemy",
        "jupyter-client",
        "ipython",
    },
    "jinja2": {"markupsafe"},
    "distributed": {"dask"},
    "matplotlib": {"cycler"},
    "notebook": {"matplotlib-inline"},
}


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("mha_lib", ("student", "heads", "grade")),
        ("mha_grader", ("grade",)),
        ("solutions", ("student", "heads")),
        ("benchmarks", ("grade", "book", "dev", "heads")),
        ("examples", ("grade",)),
        ("tests", ("grade", "book", "dev", "heads", "student")),
    ],
)
def test_what_is_imported_is_declared(folder, extras):
    known = declared(*extras)
    packages = metadata.packages_distributions()
    missing = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        beside = {file.stem for file in path.parent.glob("*.py")}
        beside |= {file.stem for file in ROOT.glob(f"exercises/{path.stem}/*.py")}
        for name in (
            {name.partition(".")[0] for name in imports(path)} - OWN - beside - sys.stdlib_module_names
        ):
            if not known & set(map(canonicalize_name, packages.get(name, ()))):
                missing.setdefault(name, str(path.relative_to(ROOT)))
    assert missing == {}


def test_what_the_cells_of_the_book_import_is_declared():
    known = declared("book", "heads", "grade")
    packages = metadata.packages_distributions()
    names = set()
    for page in ROOT.glob("book/*.md"):
        for cell in re.findall(r"^```\{code-cell\}.*?\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
            names |= set(re.findall(r"^(?:from|import) (\w+)", cell, re.M))
    names -= OWN | set(sys.stdlib_module_names)
    assert "numpy" in names
    assert [n for n in sorted(names) if not known & set(map(canonicalize_name, packages.get(n, ())))] == []
