"""A plain process for one's own code: it answers as a sandbox does, is limited, and leaves nothing behind."""

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from mha_grader.learn import process
from mha_grader.learn.process import CannotStart, OwnProcess
from mha_grader.sandbox.asking import SandboxDied, SandboxTimeout
from mha_grader.sandbox.fork_server import Layout, Limits


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes processes whose folders are in `tmp_path`; closes them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = []

    def make_one(layout=Layout(), limits=Limits()):  # noqa: B008
        made.append(OwnProcess(layout, limits))
        return made[-1]

    yield make_one
    for each in made:
        each.close()
    assert not list(tmp_path.glob("mha-check-*"))


def execute(one, source, seconds=60.0):
    return one.ask(seconds, op="exec", label="cell", source=source)


def call(one, name, *args):
    return one.ask(
        60.0, op="call", target=name, method=None, args=list(args), kwargs={}, keep=None, after=False
    )


def test_cells_run_and_functions_are_called_with_plain_data(make):
    one = make()
    source = "import numpy as np\n%matplotlib inline\ndef twice(x):\n    x *= 2\n    return x"
    assert execute(one, source)["status"] == "ok"
    reply = call(one, "twice", np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(reply["value"], 2 * np.arange(6.0).reshape(2, 3))
    assert reply["changed"] == ["0"]
    failed = execute(one, "1\n1 / 0")
    assert (failed["types"][0], failed["line"]) == ("ZeroDivisionError", 2)


def test_what_could_not_be_imported_in_the_sandbox_cannot_be_here(make, tmp_path):
    (tmp_path / "beside.py").write_text("value = 5\n")
    one = make(Layout.make(tmp_path))
    for name in ("mha_lib", "mha_grader", "nbgrader", "pytest"):
        assert execute(one, f"import {name}")["types"][0] == "ModuleNotFoundError", name
    assert (
        execute(one, "import numpy, scipy.linalg, einops, beside, json\nassert beside.value == 5")["status"]
        == "ok"
    )
    assert execute(one, "import importlib.metadata\nimportlib.metadata.version('numpy')")["status"] == "ok"


def test_memory_is_limited(make):
    one = make(limits=Limits(memory=1024))
    assert execute(one, "import numpy as np\nx = np.ones(2**28)")["status"] == "memory"
    assert execute(one, "x = np.ones(2**20)")["status"] == "ok"


def test_code_that_does_not_end_is_ended(make):
    one = make()
    with pytest.raises(SandboxTimeout):
        execute(one, "while True: pass", 1.0)
    assert one._process.poll() is not None


def test_a_process_that_ends_itself_is_told_from_one_that_hangs(make):
    with pytest.raises(SandboxDied):
        execute(make(), "import os\nos._exit(3)")


def test_a_process_that_does_not_start_says_why(make, tmp_path, monkeypatch):
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit('there is no such thing here')\n")
    monkeypatch.setattr(process, "WORKER", worker)
    with pytest.raises(CannotStart, match="there is no such thing here"):
        make()


def test_no_module_of_the_way_needs_what_only_some_systems_have():
    """Also not where nothing calls it: the import alone would fail there."""
    code = (
        "import sys\n"
        "gone = ['fcntl', 'resource', 'grp', 'nbgrader', 'distributed', 'jinja2']\n"
        "sys.modules.update(dict.fromkeys(gone))\n"
        "import mha_grader.__main__\n"
        "assert 'mha_grader.cli' not in sys.modules and 'mha_grader.instructor' not in sys.modules\n"
        "assert not {'jupytext', 'nbformat', 'torch'} & set(sys.modules)\n"  # which take seconds
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)


def test_no_question_and_no_answer_waits_until_the_other_side_has_acknowledged_what_came_before(make):
    """The system would hold small packets back, for 40 ms each."""
    assert make().channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    code = "import sys, socket; from mha_grader.learn.worker import connect"
    code += "; channel = connect({'port': int(sys.argv[1]), 'token': 'word'})"
    code += "; sys.exit(not channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert subprocess.run([sys.executable, "-c", code, port], check=False).returncode == 0
