"""A plain process of this machine that runs one's own code, and the channel to it.

It speaks as a sandbox does, so that the same tests can be put to it. It needs neither Linux nor any rights.
Wall-clock time is limited everywhere, memory and files where the system has such limits. It protects from nothing.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from mha_grader.sandbox import clock
from mha_grader.sandbox.asking import Asked, SandboxDied, SandboxTimeout
from mha_grader.sandbox.fork_server import START, Layout, Limits, package_paths

WORKER = Path(__file__).with_name("worker.py")
SETTINGS = {
    "MPLBACKEND": "Agg",
    "TORCH_COMPILE_DISABLE": "1",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}


class CannotStart(Exception):  # noqa: N818 - it names a state of the machine
    """The process did not start; the text says what it said."""


class OwnProcess(Asked):
    """A process for one's own code. Close it, or it waits for ever."""

    def __init__(self, layout: Layout, limits: Limits):
        """Start it, and wait until it answers.

        Args:
            layout: which files lie beside the notebook, and what is imported beforehand.
            limits: on memory and files.

        Raises:
            CannotStart: if it ends before it answers.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="mha-check-", ignore_cleanup_errors=True)
        work = Path(self._folder.name) / "work"
        work.mkdir()
        for path, _, _ in layout.files:
            shutil.copy(path, work)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            token = secrets.token_hex(16)
            order = {"port": listener.getsockname()[1], "token": token, "imports": layout.imports}
            order |= {"memory": limits.memory, "file": limits.file, "allowed": importable(layout)}
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=work,
                env={**os.environ, **SETTINGS, "IPYTHONDIR": str(work.with_name("ipython"))},
            )
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.close()
            self.channel = self._accept(listener, token)
        try:
            self._receive(clock.seconds() + START)
        except (SandboxDied, SandboxTimeout) as error:
            self.close()
            raise CannotStart(f"the process for your code did not start: {error}\n{self._words}") from None

    def _accept(self, listener: socket.socket, token: str) -> socket.socket:
        """The connection that the process makes; others do not know its word."""
        deadline = clock.seconds() + START
        listener.settimeout(0.2)
        while clock.seconds() < deadline and self._process.poll() is None:
            try:
                channel = listener.accept()[0]
            except TimeoutError:
                continue
            channel.settimeout(5.0)
            channel.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
            )  # else each question waits for 40 ms
            if hmac.compare_digest(channel.recv(len(token)), token.encode()):
                return channel
            channel.close()
        self._stop()
        raise CannotStart(f"the process for your code did not start:\n{self._words}")

    def close(self) -> None:
        """End the process, and forget its folder. Closing twice is fine."""
        if self.channel.fileno() >= 0:
            self.channel.close()
            self._stop()

    def _stop(self) -> None:
        """End the process, and keep what it said before any code of the notebook ran."""
        self._process.kill()
        self._process.wait()
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            self._words = stderr.read()[-4000:].decode(errors="replace").strip() or "it gave no reason"
        self._folder.cleanup()

    def _ended(self) -> SandboxDied:
        self.close()
        return SandboxDied("its process has ended")


def importable(layout: Layout) -> list[str]:
    """Names of what can be imported in the sandbox beside Python's own library."""
    return sorted(
        {name.removesuffix(".py") for _, name in package_paths(layout.allowed) if "-info" not in name}
    )
