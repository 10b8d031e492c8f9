"""The sandbox: a process without network, files, neighbours or secrets, with limits, killed from outside.

It is forked from a process that has imported what it needs (see `fork_server`), and locks itself in before it runs
anything of a student (see `confine`): a read-only system, the Python interpreter, a list of packages that students
may import (never this project's own), an empty home, a small private /tmp, and nothing else.

If the machine cannot make such a sandbox, nothing is graded: `SandboxUnavailable` says what to install.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import threading

from mha_grader.sandbox import clock, fork_server
from mha_grader.sandbox.asking import Asked, SandboxDied, SandboxMemory, SandboxTimeout
from mha_grader.sandbox.fork_server import START, Layout, Limits, ServerGone

# In the kernel's account of a process, see proc(5): in memory, swapped out, in large pages, and what says where.
COUNTED = ("VmRSS:", "VmSwap:", "HugetlbPages:", "VmPTE:")
LOOKS = 50  # at all processes, until none of them ends meanwhile


class Sandbox(Asked):
    """One student's process, with a channel to it. Use it as a context manager: leaving it kills the process."""

    def __init__(self, layout: Layout = Layout(), limits: Limits = Limits()):  # noqa: B008
        """Fork the process and wait until it answers.

        Raises:
            SandboxUnavailable: if this machine cannot make a sandbox.
        """
        self.limits = limits
        self._server = fork_server.get(layout)
        self.channel, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = self._server.fork(theirs, limits)
        except fork_server.SandboxUnavailable:
            self.channel.close()
            raise
        self._processes: int | None = None  # a descriptor of the /proc inside
        self._closing = threading.Event()
        self._over_memory = False
        self._watch = threading.Thread(target=self._watch_memory, daemon=True)
        try:
            self._receive(clock.seconds() + START)
            self.pid = process_number(self._process)
            # Not the /proc outside: there are too many others in it to look through quickly.
            self._processes = os.open(f"/proc/{self.pid}/root/proc", os.O_PATH)
        except (SandboxDied, SandboxTimeout, OSError) as error:
            self.close()
            raise self._server.failed(str(error)) from None
        self._watch.start()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def kill(self) -> None:
        """Kill the process and everything that it started, and wait until all of it has ended."""
        with contextlib.suppress(ProcessLookupError):
            # It is the first of its namespace: with it all others die.
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        select.select([self._process], [], [])

    def close(self) -> None:
        """Kill what is left. Closing twice is fine."""
        if self.closed:
            return
        self.channel.close()
        self._closing.set()
        if self._watch.is_alive():
            self._watch.join()
        self.kill()
        os.close(self._process)
        if self._processes is not None:
            os.close(self._processes)
        self._server.in_use -= 1

    @property
    def closed(self) -> bool:
        """Whether the process has been killed."""
        return self.channel.fileno() < 0

    def _ended(self) -> SandboxDied | SandboxMemory | ServerGone:
        self.close()
        if self._server.has_ended(0.3):
            return ServerGone("the fork server of the sandboxes was ended from outside")
        if self._over_memory:
            return SandboxMemory("it used too much memory")
        return SandboxDied("its process has ended")

    def _watch_memory(self) -> None:
        """Kill the process when all that it started uses too much, whether it is being asked or not."""
        while not self._closing.wait(0.1):
            if memory_used(f"/proc/self/fd/{self._processes}") > self.limits.memory * 1024:
                self._over_memory = True
                self.kill()
                return


def memory_used(processes: str) -> float:
    """Memory in KiB of all processes in a /proc but the first, which is none of a student's.

    Infinite if they come and go so quickly that there are always some that could not be looked at.
    """
    most = 0
    for _ in range(LOOKS):
        numbers = [name for name in os.listdir(processes) if name.isdigit() and name != "1"]
        found = [_memory_of(f"{processes}/{number}/task") for number in numbers]
        most = max(most, sum(memory or 0 for memory in found))
        if None not in found:
            return most
    return math.inf


def _memory_of(threads: str) -> int | None:
    """Memory in KiB of a process; None if it, or a thread that could have told, ended before it was looked at.

    The first thread can end before others, and then has no account.
    """
    ended = False
    try:
        for thread in os.listdir(threads):
            try:
                with open(f"{threads}/{thread}/status") as lines:
                    sizes = [int(line.split()[1]) for line in lines if line.startswith(COUNTED)]
            except OSError:
                ended = True
            else:
                if sizes:
                    return sum(sizes)
    except OSError:
        ended = True
    return None if ended else 0


def process_number(descriptor: int) -> int:
    """The number, as this process sees it, of the process that a descriptor refers to; -1 if it has ended."""
    with open(f"/proc/self/fdinfo/{descriptor}") as lines:
        fields = dict(line.split(":\t") for line in lines)
    return int(fields["Pid"])


def probe(layout: Layout = Layout()) -> None:  # noqa: B008
    """Make a sandbox and throw it away. The fork server for it stays as long as this thread.

    Raises:
        SandboxUnavailable: with what to do about it.
    """
    with contextlib.suppress(ServerGone), Sandbox(layout):
        return
    with Sandbox(layout):
        pass
