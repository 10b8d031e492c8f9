"""What the tests of the assignments share. `assignment` is the one that a test module is called after."""

import collections
import fcntl
import functools
import pickle
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from book.kernels import kernels_that_start_at_once
from mha_grader.course.assignment import load_assignment
from mha_grader.course.authoring import assignment_names, release
from mha_grader.course.folders import config_of_a_copy
from mha_grader.grading.replay import Memory
from mha_grader.quality.kill_table import judge, table

ROOT = Path(__file__).parents[2]
LOADED = {name: load_assignment(ROOT, name) for name in assignment_names(ROOT)}
ITEMS = [(name, item) for name, assignment in LOADED.items() for item in assignment.items]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    """The course generated afresh from its sources, away from the tree."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "solutions").mkdir()
    (folder / "nbgrader_config.py").write_text(config_of_a_copy(ROOT))
    for path in (ROOT / "solutions").glob("*.*"):
        shutil.copyfile(path, folder / path.relative_to(ROOT))
    for name in assignment_names(folder):
        release(folder, name)
    return folder


@pytest.fixture(scope="session")
def loaded():
    """All assignments by name."""
    return LOADED


@pytest.fixture(scope="session")
def rows_of(tmp_path_factory, worker_id):
    """The kill table of an assignment's item under a secret; it names mistakes if `named`.

    It is computed once, and kept in a file for the other processes that run tests.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker_id == "master" else folder.parent

    @functools.cache
    def rows(name, item, secret, named):
        path = folder / f"rows-{name}.{item}-{secret.hex()}-{named}"
        with Path(f"{path}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_bytes(pickle.dumps(table(LOADED[name], item, secret, named=named)))
        return pickle.loads(path.read_bytes())

    return rows


@pytest.fixture(scope="session")
def judge_item():
    """The row of one function, class or dict of answers, for an assignment and an item; no mistake is named."""
    return lambda name, item, tested: judge(LOADED[name], item, "style", "tested", tested, b"secret")


@pytest.fixture(scope="session")
def name_mistakes():
    """The same row with the mistakes that are recognised: every known one is tried."""
    memories = collections.defaultdict(Memory)
    return lambda name, item, tested: judge(
        LOADED[name], item, "style", "tested", tested, b"secret", memories[name, item]
    )


@pytest.fixture(scope="session")
def lost_by(judge_item):
    """The parts that one function, class or dict of answers does not pass, for an assignment and an item."""
    return lambda name, item, tested: {
        part for part, status in judge_item(name, item, tested).statuses.items() if status != "pass"
    }


@pytest.fixture(scope="module")
def assignment(request, loaded):
    return loaded[request.module.__name__.rpartition("test_")[2]]


@pytest.fixture(scope="module")
def grade(assignment, name_mistakes):
    """`name_mistakes` for the items of `assignment`."""
    return lambda item, tested: name_mistakes(assignment.name, item, tested)


@pytest.fixture(scope="module")
def lost(assignment, lost_by):
    """`lost_by` for the items of `assignment`."""
    return lambda item, tested: lost_by(assignment.name, item, tested)


@pytest.fixture(scope="session")
def kernels():
    """Where Jupyter finds kernels that start at once."""
    with kernels_that_start_at_once() as folder:
        yield folder


@pytest.fixture
def run(course, assignment, tmp_path, kernels, monkeypatch):
    """Run the released notebook with sources in place of its own; its outputs and what failed, by cell."""

    monkeypatch.setenv("JUPYTER_PATH", kernels)

    def run(sources):
        folder = tmp_path / assignment.name
        shutil.copytree(course / "exercises" / assignment.name, folder)
        notebook = nbformat.read(folder / f"{assignment.name}.ipynb", as_version=4)
        for cell in notebook.cells:
            cell.source = sources.get(cell.id, cell.source)
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
        outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
        return outputs, {
            cell: output.ename
            for cell, found in outputs.items()
            for output in found
            if output.output_type == "error"
        }

    return run


@pytest.fixture(scope="session")
def text_of():
    """What a cell printed."""
    return lambda outputs: "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.fixture
def run_solved(assignment, run, text_of):
    """Run the notebook with all solutions, see that every check says ok, and give the outputs by cell."""

    def run_solved(**sources):
        solutions = {cell.id: cell.source for cell in assignment.cells if cell.kind == "solution"}
        outputs, failed = run(solutions | sources)
        assert failed == {}
        for cell in assignment.cells:
            if cell.kind == "test":
                lines = text_of(outputs[cell.id]).splitlines()
                assert lines, cell.id
                assert all(line.startswith(("ok ", "have ")) for line in lines)
        return outputs

    return run_solved
