"""Which module may import which: rooms have an order, nothing runs in a circle, and no file is too long to read.

Imports inside functions count as well: they can hide a circle, not break it.
"""

import ast
import functools
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
# What the rooms of the grader may import of each other, from the bottom to the top. Beside these all of them but
# the sandbox, whose files lie where students' code runs, may import `mha_lib`.
MAY_IMPORT = {
    "sandbox": set(),
    "testing": {"sandbox"},
    "course": {"testing"},
    "grading": {"course", "testing", "sandbox"},
    "learn": {"grading", "course", "testing", "sandbox"},
    "instructor": {"grading", "course", "sandbox"},
    "quality": {"grading", "course", "testing", "sandbox"},
    "commands": {"learn", "instructor", "grading", "course", "testing", "sandbox"},
    "cli": {"commands"},
    "__main__": {"cli", "commands"},
}
MAX_LINES = 500
LISTS = (
    "mha_lib/pitfalls/",
    "mha_lib/styles/",
    "solutions/",
)  # of mistakes, styles and texts: not read in one go


def modules(*tops):
    """Paths by dotted name."""
    found = {}
    for top in tops:
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(text, known):
    """Dotted names that a text imports anywhere: of modules if they are `known`, else as they are written."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in known else node.module for name in whole}
    return names


MODULES = modules("mha_lib", "mha_grader")


@functools.cache
def graph():
    """What each module imports."""
    return {name: imported(path.read_text("utf-8"), MODULES) for name, path in MODULES.items()}


def circles(graph):
    """Sets of modules that can all be reached from each other, the largest possible; none of a single module."""

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            new = (graph[todo.pop()] & graph.keys()) - seen
            seen |= new
            todo += new
        return seen

    reach = {name: reached(name) for name in graph}
    groups = {
        frozenset(other for other in names | {name} if name in reach[other]) for name, names in reach.items()
    }
    return [set(group) for group in groups if len(group) > 1]


def room(name):
    """`sandbox` for mha_grader.sandbox.wire; None outside of the grader."""
    top, _, rest = name.partition(".")
    return rest.partition(".")[0] if top == "mha_grader" and rest else None


def test_a_circle_is_found_also_behind_an_import_in_a_function():
    texts = {
        "a": "import b",
        "b": "def f():\n    from c import d\n",
        "c": "from a import x",
        "e": "import e\nimport a",
    }
    graph = {name: imported(text, texts) for name, text in texts.items()}
    assert circles(graph) == [{"a", "b", "c"}]
    assert imported("from a import b, c", {"a", "a.b"}) == {"a", "a.b"}


def test_imports_are_written_out_so_that_they_can_be_followed():
    for path in MODULES.values():
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes), path


def test_no_module_imports_itself_through_others():
    assert circles(graph()) == []


def test_every_room_has_its_place_in_the_order():
    assert {room(name) for name in MODULES} - {None} == MAY_IMPORT.keys()
    order = list(MAY_IMPORT)
    assert all(
        order.index(other) < order.index(name) for name, others in MAY_IMPORT.items() for other in others
    )


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_room_imports_only_rooms_below_it(name):
    wrong = {
        module: sorted(
            other for other in graph()[module] if room(other) not in {None, name, *MAY_IMPORT[name]}
        )
        for module in graph()
        if room(module) == name
    }
    assert {module: others for module, others in wrong.items() if others} == {}


def test_the_sandbox_imports_nothing_of_the_project_from_outside():
    names = {other for module, others in graph().items() if room(module) == "sandbox" for other in others}
    assert {name for name in names if name.partition(".")[0] == "mha_lib"} == set()


def test_the_library_imports_nothing_of_the_project():
    tops = {
        other.partition(".")[0] for name, others in graph().items() if room(name) is None for other in others
    }
    assert tops & {"mha_grader", "tests", "benchmarks", "examples", "solutions"} == set()


@pytest.mark.parametrize("top", ["tests", "benchmarks"])
def test_nothing_imports_the_tests_or_the_benchmarks(top):
    outside = modules(*{"mha_lib", "mha_grader", "examples", "solutions", "book", "benchmarks"} - {top})
    wrong = [
        name
        for name, path in outside.items()
        if any(other.partition(".")[0] == top for other in imported(path.read_text("utf-8"), ()))
    ]
    assert wrong == []


def test_no_file_is_too_long_to_read():
    found = modules("mha_lib", "mha_grader", "tests", "examples", "benchmarks").values()
    lengths = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8").count("\n") for path in found}
    long = {path for path, lines in lengths.items() if lines > MAX_LINES and not path.startswith(LISTS)}
    assert long == set()


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
        "sphinx-book-theme",
        "pydata-sphinx-theme",
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
            {name.partition(".")[0] for name in imported(path.read_text("utf-8"), MODULES)}
            - OWN
            - beside
            - sys.stdlib_module_names
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
