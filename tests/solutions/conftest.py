"""What the tests of the assignments share. `assignment` is the one that a test module is called after."""

import shutil
from itertools import chain, repeat
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from mha_grader.assignment import load
from mha_grader.authoring import assignments, release
from mha_grader.kill_table import judge
from mha_lib import pitfalls

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    """The course generated afresh from its sources, away from the tree."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "solutions").mkdir()
    for path in [ROOT / "nbgrader_config.py", *(ROOT / "solutions").glob("*.py")]:
        shutil.copyfile(path, folder / path.relative_to(ROOT))
    for name in assignments(folder):
        release(folder, name)
    return folder


@pytest.fixture(scope="module")
def assignment(request, course):
    return load(course, request.module.__name__.rpartition("test_")[2])


@pytest.fixture(scope="module")
def grade(assignment):
    """The row of one function, class or dict of answers."""
    return lambda item, tested: judge(assignment, item, "style", "tested", tested, b"secret")


@pytest.fixture(scope="module")
def lost(grade):
    """The parts that one function, class or dict of answers does not pass."""
    return lambda item, tested: {
        part for part, status in grade(item, tested).statuses.items() if status != "pass"
    }


@pytest.fixture(scope="module")
def lost_to(assignment, lost):
    """The parts that a known mistake costs."""
    return lambda item, slug: lost(item, pitfalls.variants(assignment.name, item)[slug])


@pytest.fixture(scope="session")
def junk():
    """Results that are none, where an array or a number is asked for."""
    return [
        None,
        "text",
        True,
        3.5,
        -(10**400),
        float("nan"),
        (),
        [],
        {},
        np.array(1.5),
        np.array("text"),
        np.array([1j, 2j]),
        np.full((2, 3), np.nan),
        np.ones((2, 3, 4, 5)),
        np.ones((2, 3, 4, 5, 6)),
        np.ones((0, 4)),
        (np.ones(2), None),
        (None, np.ones(2)),
        (np.ones(2), np.ones(3)),
        (np.ones(2),) * 3,
        (np.ones(2),) * 5,
        (np.ones((15, 0)),) * 4 + (0,),
        (np.ones((15, 12)),) * 4 + (4,),
        object(),
    ]


@pytest.fixture(scope="session")
def torch_junk(junk):
    """Results that are none, where a tensor is asked for."""
    import torch

    return [
        *(value for value in junk if not isinstance(value, tuple)),
        torch.tensor(1.0),
        torch.ones(2, 3) > 0,
        torch.full((2, 5, 6), float("nan")),
        torch.ones(2, 3, 4, 5, 6),
        torch.ones(0, 4),
        (torch.ones(2), None),
        (None, torch.ones(2)),
        torch.ones(2, 5, 6).numpy(),
    ]


@pytest.fixture(scope="module")
def turns_to_junk(assignment, grade, junk):
    """See that a function that is right a few times, and junk from then on, gets a verdict and loses points."""

    def turns_to_junk(item, right_calls):
        right = getattr(assignment.reference, item)
        for value in junk:
            results = chain(repeat(right, right_calls), repeat(lambda *a, **options: value))  # noqa: B023
            row = grade(item, lambda *a, **options: next(results)(*a, **options))  # noqa: B023
            assert row.score < row.max_score if right_calls else row.score == 0, value
            assert set(row.statuses.values()) <= {"pass", "fail", "not-run"}, value

    return turns_to_junk


@pytest.fixture(scope="module")
def layer_of_junk(grade, torch_junk):
    """See that a layer whose `forward` is right a few times, and junk from then on, earns at most that share."""

    def layer_of_junk(right, right_calls, most):
        for value in torch_junk:

            class Layer(right):
                calls = 0

                def forward(self, *arguments, value=value):
                    type(self).calls += 1
                    return super().forward(*arguments) if type(self).calls <= right_calls else value

            row = grade(right.__name__, Layer)
            assert row.score <= most * row.max_score, value
            assert right_calls or row.slugs == {}, value

    return layer_of_junk


@pytest.fixture
def run(course, assignment, tmp_path):
    """Run the released notebook with sources in place of its own; its outputs and what failed, by cell."""

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
                assert all(line.startswith("ok ") for line in lines)
        return outputs

    return run_solved
