"""Kernels that start at once do what Jupyter's own do, and end when those do."""

import os
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

from book.kernels import kernels_that_start_at_once


@pytest.fixture(scope="module")
def folder():
    with kernels_that_start_at_once() as folder:
        yield folder


@pytest.fixture
def there(folder, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", folder)


def outputs(*sources, folder):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    resources = {"metadata": {"path": str(folder)}}
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3", resources=resources, allow_errors=True).execute()
    return [[dict(output) for output in cell.outputs] for cell in notebook.cells]


def test_a_notebook_gives_what_it_gives_in_jupyters_own_kernel(there, tmp_path, monkeypatch):
    sources = (
        "import os, sys\nsorted({name for name in globals() if name[0] != '_'}), os.getcwd(), sys.path",
        "import subprocess\nsubprocess.run(['sh', '-c', 'echo printed; echo warned >&2']).returncode",
        "import matplotlib.pyplot as plt\nplt.plot([1, 3])\nplt.show()",
        "import torch\ntorch.manual_seed(3)\ntorch.rand(2), torch.optim.Adam([torch.ones(1)])",
        "os.environ['OMP_NUM_THREADS'], __name__",
        "1 / 0",
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ours = outputs(*sources, folder=tmp_path)
    monkeypatch.delenv("JUPYTER_PATH")
    assert ours == outputs(*sources, folder=tmp_path)


def test_a_notebook_finds_nothing_of_another(there, tmp_path):
    outputs("import numpy as np\nx = np.left = 1", folder=tmp_path)
    (names,) = outputs("import numpy as np\n'x' in globals(), hasattr(np, 'left')", folder=tmp_path)
    assert names[0]["data"]["text/plain"] == "(False, False)"


def forked():
    """The kernels of all servers that this process has started."""
    servers = [child for child in psutil.Process().children() if "kernels.py" in " ".join(child.cmdline())]
    return {kernel for server in servers for kernel in server.children()}


def test_a_kernel_ends_with_what_jupyter_has_started(there, tmp_path):
    argv, before = KernelSpecManager().get_kernel_spec("python3").argv, forked()
    asking = subprocess.Popen([part.format(connection_file=tmp_path / "file") for part in argv])
    while not (tmp_path / "file").exists():
        time.sleep(0.05)
    (kernel,) = forked() - before
    asking.kill()
    asking.wait()
    kernel.wait(timeout=30)


def test_all_kernels_end_with_the_process_that_they_are_forked_from(tmp_path, monkeypatch):
    with kernels_that_start_at_once() as folder:
        monkeypatch.setenv("JUPYTER_PATH", folder)
        argv = KernelSpecManager().get_kernel_spec("python3").argv
        asking = subprocess.Popen([part.format(connection_file=tmp_path / "file") for part in argv])
        while not (tmp_path / "file").exists():
            time.sleep(0.05)
    assert asking.wait(timeout=30) == 0
    assert not os.path.exists(folder)
    assert sys.executable in argv
