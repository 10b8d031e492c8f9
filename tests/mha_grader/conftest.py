"""A small assignment, made for these tests: an item that is a function, one that builds on it, one of answers."""

import functools
import sys
import tempfile
from pathlib import Path

import pytest

from mha_grader.course.assignment import Assignment, Cell
from mha_grader.grading.session import Budget
from mha_grader.grading.settings import Settings
from mha_grader.sandbox import fork_server
from mha_grader.sandbox.fork_server import Limits

STUB = "# YOUR CODE HERE\nraise NotImplementedError()\n"

DOUBLE_TESTS = '''
assert double(2) == 4
### BEGIN HIDDEN TESTS
@part(points=2, example="double(np.array([1.0, 2.0]))")
def values(rng):
    """Every entry is twice what it was."""
    x = rng.normal(size=(3, 4))
    expect_close(double(x), reference.double(x))

@part(points=1, needs="values")
def unchanged(rng):
    """The input stays as it is."""
    double(rng.normal(size=5))
    expect_unchanged(double)

@part(points=1, needs="values")
def refuses_text(rng):
    """Text is refused with a TypeError that names what came."""
    expect_raises(double, "text", error="TypeError", mentions=["text"])
### END HIDDEN TESTS
'''

QUADRUPLE_TESTS = '''
### BEGIN HIDDEN TESTS
@part(points=1.5, example="quadruple(np.ones((2, 5)))")
def values(rng):
    """Every entry is four times what it was."""
    x = rng.normal(size=(2, 5))
    expect_close(quadruple(x), 4 * x)
### END HIDDEN TESTS
'''

ANSWERS_TESTS = '''
### BEGIN HIDDEN TESTS
@part(points=1)
def number(rng):
    """The answer to the question."""
    expect(isinstance(answers, dict) and answers.get("number") == reference.answers["number"], "not that number")
### END HIDDEN TESTS
'''

DOUBLE = '''def double(x):
    """Twice x."""
    if isinstance(x, str):
        raise TypeError(f"got the text {x!r}")
    return 2 * x
'''
QUADRUPLE = "def quadruple(x):\n    return double(double(x))\n"
ANSWERS = 'answers = {"number": 42}\n'


def released(test):
    return test.split("### BEGIN HIDDEN TESTS")[0]


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Assignment:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "helper.py").write_text("def half(x):\n    return x / 2\n")

    def solution(item, source, stub):
        return Cell(item, "solution", stub, source, item)

    def test(item, source, points):
        return Cell(f"test_{item}", "test", released(source), source, item, points)

    given = "import numpy as np\nfrom helper import half\n"
    return Assignment(
        name="toy",
        version="1.0+abc",
        cells=(
            Cell("intro", "markdown", "# Toy", "# Toy"),
            Cell("imports", "given", given, given),
            solution("double", DOUBLE, "def double(x):\n    " + STUB.replace("\n", "\n    ")),
            test("double", DOUBLE_TESTS, 4),
            Cell("plot", "show", "print(double(3))", "print(double(3))"),
            solution("quadruple", QUADRUPLE, "def quadruple(x):\n    " + STUB.replace("\n", "\n    ")),
            test("quadruple", QUADRUPLE_TESTS, 1.5),
            solution("answers", ANSWERS, 'answers = {"number": None}\n'),
            test("answers", ANSWERS_TESTS, 1),
        ),
        files=folder,
        metadata={"mha": {"assignment": "toy", "version": "1.0", "digest": "abc"}},
    )


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings(
        secret=b"secret",
        course=Path(__file__).parents[2],
        limits=Limits(memory=1024),
        budget=Budget(cell=3, added=2, call=3, item=12, submission=60),
    )


@pytest.fixture(scope="session", autouse=True)
def _alembic_is_asked_once():
    """nbgrader runs the command `alembic` for each new gradebook, and always learns the same version from it."""
    api = sys.modules.get("nbgrader.api")  # None if no test of this run uses it
    with pytest.MonkeyPatch.context() as patched:
        if api is not None:
            patched.setattr(api, "get_alembic_version", functools.cache(api.get_alembic_version))
        yield


@pytest.fixture
def no_fork_server(monkeypatch):
    """A thread that has no fork server yet, on a machine where nobody has."""
    servers = fork_server._Servers()
    monkeypatch.setattr(fork_server, "_servers", servers)
    with tempfile.TemporaryDirectory() as folder:  # not `tmp_path`, whose names are too long for a socket's
        monkeypatch.setattr(fork_server, "_folder", lambda: Path(folder))
        yield
        for server in servers.by_layout.values():
            server.stop()
