"""Kernels that start at once: each is forked from a process that has imported what most pages import.

Importing PyTorch, Matplotlib and IPython takes longer than the cells of most pages. A kernel is still a process of
its own, in which a page's cells are the first that run.
"""

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

INLINE = "module://matplotlib_inline.backend_inline"  # as ipykernel sets it, before Matplotlib is imported
# Not matplotlib.pyplot, which IPython must see being imported. Optimizers import torch._dynamo when they are made.
IMPORTED = (
    "ipykernel.kernelapp",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "torch",
    "torch._dynamo",
)
# What Jupyter starts in place of a kernel. It asks for one, hands it the standard streams, and lives as long as it.
ASK = """
import json, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    wanted = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(wanted).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(wanted)
    server.recv(1)
"""


@contextlib.contextmanager
def kernels_that_start_at_once(imported: Sequence[str] = IMPORTED) -> Iterator[str]:
    """A folder for `JUPYTER_PATH`, in which the kernel `python3` is such a one as long as this is open.

    Args:
        imported: the modules that are imported before the first kernel; for few kernels, few of them pay.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        address, spec = f"{folder}/socket", Path(folder) / "kernels" / "python3"
        listener.bind(address)
        listener.listen(64)
        spec.mkdir(parents=True)
        command = [sys.executable, "-S", "-E", "-c", ASK, address, "{connection_file}"]
        described = {"argv": command, "display_name": "Python 3", "language": "python"}
        (spec / "kernel.json").write_text(json.dumps(described), "utf-8")
        number = listener.fileno()
        environment = os.environ | {"MPLBACKEND": INLINE}
        with subprocess.Popen(
            [sys.executable, __file__, str(number), *imported], pass_fds=[number], env=environment
        ) as server:
            yield folder
            server.terminate()


def serve(listener: socket.socket, imported: Iterable[str]) -> None:
    """Fork a kernel for each connection."""
    for name in imported:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for kernels that have ended
    while True:
        asking, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            be_a_kernel(asking)
        asking.close()


def be_a_kernel(asking: socket.socket) -> None:
    """Become the kernel that a connection asks for; end with it, or when nobody holds the other end any more."""
    head, streams, *_ = socket.recv_fds(asking, 8, 3)
    wanted = asking.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    arguments, folder, environment = json.loads(wanted)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    del sys.path[0]  # this file's folder; IPython puts in the current one
    threading.Thread(target=lambda: (asking.recv(1), os._exit(1)), daemon=True).start()
    from ipykernel.kernelapp import launch_new_instance

    # Each kernel would warn that it does not encrypt what it says to this machine.
    options = [f"--IPKernelApp.parent_handle={os.getppid()}", "--IPKernelApp.log_level=ERROR"]
    try:
        launch_new_instance(argv=[*options, "-f", *arguments])
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
