"""For many checks: what `worker.py` imports is imported once, and each process for somebody's code is a fork.

`with forks(layout): …` starts the process that is forked. Meanwhile each `OwnProcess` starts this file in the place
of `worker.py`; it passes its order on, and lives as long as its fork.
"""

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ADDRESS = "FORKS"  # in the environment


@contextlib.contextmanager
def forks(layout):
    """Fork processes for this layout."""
    import pytest

    from mha_grader.learn import process

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, str(Path(folder, "socket")))
        order = {
            "imports": layout.imports,
            "allowed": process.importable(layout),
            "worker": str(process.WORKER),
        }
        environment = {**os.environ, **process.SETTINGS, "IPYTHONDIR": folder}
        command = [sys.executable, "-P", "-B", __file__, json.dumps(order)]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        try:
            assert server.stdout.readline() == b"ready\n"
            patch.setattr(process, "WORKER", Path(__file__))
            yield
        finally:
            server.kill()
            server.communicate()


def serve(order):
    """Fork a process for each connection."""
    spec = importlib.util.spec_from_file_location("worker", order["worker"])
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.environ[ADDRESS])
        listener.listen()
        shell = worker.prepare(order)
        print("ready", flush=True)
        while True:
            asked, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                be_one(worker, shell, asked)
            asked.close()


def be_one(worker, shell, asked):
    """Do what `worker.main` does after its imports, until whoever has asked is gone."""
    order = json.loads(asked.makefile().readline())
    threading.Thread(target=lambda: (asked.recv(1), os._exit(0)), daemon=True).start()
    os.chdir(order["folder"])
    worker.only_allow(order)
    channel = worker.connect(order)
    worker.limit(order)
    worker.answering.be_the_students(channel, shell)


def pass_on(order):
    """Ask for a fork, and wait for its end."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(os.environ[ADDRESS])
        asked.sendall(json.dumps({**json.loads(order), "folder": os.getcwd()}).encode() + b"\n")
        asked.recv(1)


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(json.loads(sys.argv[1]))
    else:
        pass_on(sys.stdin.readline())
