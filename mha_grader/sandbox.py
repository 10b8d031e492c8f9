"""The sandbox: a process without network, files, neighbours or secrets, with limits, killed from outside.

It is built by bubblewrap. Inside there is a read-only system, the Python interpreter, a list of packages
that students may import (never this project's own), an empty home, a small private /tmp, and nothing else.
Where the grader runs as root no user namespace is made: the process changes to an unused uid instead, since
a limit on the number of processes does not bind root. Elsewhere the process runs in its own user namespace.

If the machine cannot make such a sandbox, nothing is graded: `SandboxUnavailable` says what to install.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import importlib.metadata
import os
import re
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
from packaging.requirements import Requirement

from mha_grader import syscalls, wire

PACKAGES = ("numpy", "scipy", "matplotlib", "torch", "einops", "ipython")  # what students may import
INSIDE_PACKAGES = "/packages"
INSIDE_GRADER = "/grader"
HOME = "/home/student"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
MIB = 2**20


Serve = Callable[[dict[str, Any]], dict[str, Any]]


class SandboxUnavailable(Exception):  # noqa: N818 - it names a state of the machine
    """This machine cannot make a sandbox; the text says what to do."""


class SandboxTimeout(Exception):  # noqa: N818 - it is a verdict
    """The process did not answer in time and was killed."""


class SandboxMemory(Exception):  # noqa: N818 - it is a verdict
    """The process used more memory than allowed and was killed."""


class SandboxDied(Exception):  # noqa: N818 - it is a verdict
    """The process ended, or sent something that is not an answer, and was killed."""


@dataclass(frozen=True)
class Limits:
    """What a student's process may use. Sizes in MiB, times in seconds."""

    memory: int = 2048
    file: int = 64
    disk: int = 128
    processes: int = 64
    start: float = 60.0


@functools.cache
def package_paths() -> tuple[tuple[str, str], ...]:
    """Pairs (path outside, name inside) of the top-level files of `PACKAGES` and all that they need."""
    todo, seen = list(PACKAGES), set()
    paths: dict[str, str] = {}
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # needed on another platform, or an optional extra
        record = csv.reader((distribution.read_text("RECORD") or "").splitlines())
        for top in {row[0].partition("/")[0] for row in record}:
            if top not in ("..", "__pycache__"):
                paths[top] = os.path.realpath(str(distribution.locate_file(top)))
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    return tuple(sorted((path, name) for name, path in paths.items()))


def _mounts(files: Path | None, limits: Limits, packages: Mapping[str, str]) -> Iterator[str]:
    """The arguments that lay out the file system."""
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)
    for path in ETC:
        yield from ("--ro-bind-try", path, path)
    prefix = os.path.realpath(sys.base_prefix)
    for folder in (*map(str, reversed(Path(prefix).parents)), "/home", INSIDE_PACKAGES, INSIDE_GRADER):
        yield from ("--dir", folder)  # else bubblewrap makes it on the way, for its own uid only
    if not prefix.startswith("/usr"):
        yield from ("--ro-bind", prefix, prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for hidden in (
        f"{prefix}/lib/{version}/site-packages",
        "/usr/lib/python3/dist-packages",
        f"/usr/local/lib/{version}",
    ):
        if os.path.isdir(hidden):
            yield from ("--tmpfs", hidden, "--remount-ro", hidden)
    for path, name in (*package_paths(), *((path, name) for name, path in packages.items())):
        yield from ("--ro-bind", path, f"{INSIDE_PACKAGES}/{name}")
    for name in ("worker.py", "wire.py", "operations.py"):
        yield from ("--ro-bind", str(Path(__file__).with_name(name)), f"{INSIDE_GRADER}/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--dev-bind", "/dev/null", "/dev/zero")  # a shared mapping of it would be memory of nobody's
    for path, size, mode in (
        (HOME, 64, "0777"),
        ("/tmp", limits.disk, "1777"),
        ("/dev/shm", 64, "1777"),
    ):
        yield from ("--perms", mode, "--size", str(size * MIB), "--tmpfs", path)
    for file in sorted(files.iterdir()) if files is not None else ():
        if file.is_file() and not file.is_symlink() and file.suffix != ".ipynb":
            yield from ("--ro-bind", str(file), f"{HOME}/{file.name}")
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME)


def _environment() -> dict[str, str]:
    """The variables of the process; the paths in it are those inside, where /tmp is private."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    kept = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # some processors need them to compute right
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": HOME,
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "IPYTHONDIR": "/tmp/ipython",
        "PYTHONHASHSEED": "0",
        "STUDENT_PACKAGES": INSIDE_PACKAGES,
        **dict.fromkeys(threads, "1"),
        **{name: os.environ[name] for name in kept if name in os.environ},
    }


def _unused_uid() -> str:
    """A uid for one sandbox alone: processes, and some of the kernel's stores, are counted and kept by uid."""
    return str(61000 + secrets.randbelow(4000))


def command(
    inner: list[str],
    files: Path | None,
    limits: Limits,
    secrets: Path | None = None,
    packages: Mapping[str, str] = MappingProxyType({}),
    syscall_filter: int | None = None,
) -> list[str]:
    """The whole command line that runs `inner` in a sandbox.

    Args:
        inner: the program and its arguments, with paths as they are inside.
        files: folder whose plain files lie, read-only, beside the notebook.
        limits: see `Limits`.
        secrets: a folder to be hidden should it lie below something that the sandbox shows.
        packages: path by name of packages that can be imported beside those for students.
        syscall_filter: descriptor of a file with the program of `syscalls`.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxUnavailable(
            "grading needs bubblewrap, which is not installed: on Debian or Ubuntu run "
            "`sudo apt-get install bubblewrap`, on Fedora `sudo dnf install bubblewrap`"
        )
    line = [bwrap, "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid", "--unshare-net"]
    line += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox", "--clearenv"]
    if syscall_filter is not None:
        line += ["--seccomp", str(syscall_filter)]
    for name, value in _environment().items():
        line += ["--setenv", name, value]
    line += list(_mounts(files, limits, packages))
    if secrets is not None and str(secrets.resolve()).startswith(
        ("/usr/", os.path.realpath(sys.base_prefix))
    ):
        line += ["--tmpfs", str(secrets.resolve())]
    inner = [*_limit_command(limits), *inner]
    if os.geteuid() == 0:
        uid = _unused_uid()
        line += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        line += ["--cap-add", "CAP_SETPCAP", "--", "/usr/bin/setpriv", "--reuid", uid, "--regid", uid]
        line += ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", *inner]
    else:
        line += ["--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns", "--", *inner]
    return line


def _limit_command(limits: Limits) -> list[str]:
    """Runs inside, as the last thing before the program: in a user namespace processes are counted there."""
    return [
        "/usr/bin/prlimit",
        "--core=0",
        f"--fsize={limits.file * MIB}",
        f"--data={limits.memory * MIB}",
        "--nofile=256",
        f"--nproc={limits.processes}",
    ]


class Sandbox:
    """One student's process, with a channel to it. Use it as a context manager: leaving it kills the process."""

    def __init__(
        self,
        files: Path | None = None,
        limits: Limits = Limits(),
        secrets: Path | None = None,
        packages: Mapping[str, str] = MappingProxyType({}),
    ):
        """Start the process and wait until it answers.

        Raises:
            SandboxUnavailable: if this machine cannot make a sandbox.
        """
        self.limits = limits
        self.number = 0
        self.last_words = ""  # what it wrote to stderr before it was ready, once it is closed
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        inner = [python, "-I", "-S", "-B", f"{INSIDE_GRADER}/worker.py"]
        program = syscalls.program()
        if program is None:
            raise SandboxUnavailable(
                f"grading needs {' or '.join(syscalls.ARCHITECTURES)}, as Linux calls them"
            )
        with tempfile.TemporaryFile() as file:
            file.write(program)
            file.seek(0)
            worker = command(inner, files, limits, secrets, packages, file.fileno())
            self.channel, theirs = socket.socketpair()
            with theirs:
                self.process = subprocess.Popen(
                    [*worker, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno(), file.fileno()],
                    env={},
                    start_new_session=True,
                )
        self._closing = threading.Event()
        self._over_memory = False
        self._watch = threading.Thread(target=self._watch_memory, daemon=True)
        self._watch.start()
        try:
            self._receive(time.monotonic() + limits.start)
        except (SandboxDied, SandboxTimeout, SandboxMemory) as error:
            raise SandboxUnavailable(
                f"the sandbox did not start ({error}): {self.last_words or 'it gave no reason'}\n"
                "Grading needs Linux with bubblewrap and leave to make namespaces. In a container run it "
                "privileged, or with `--security-opt seccomp=unconfined`; on Ubuntu 24.04 and later allow bwrap "
                "in AppArmor (`sysctl kernel.apparmor_restrict_unprivileged_userns=0`)."
            ) from None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process and everything that it started."""
        self.channel.close()
        self._closing.set()
        self._watch.join()
        self.process.kill()  # bubblewrap dies, with it the first process of the namespace, with it all others
        self.process.wait()
        if self.process.stderr is not None and not self.process.stderr.closed:
            self.last_words = self.process.stderr.read(4000).decode(errors="replace").strip()
            self.process.stderr.close()

    @property
    def closed(self) -> bool:
        """Whether the process has been killed."""
        return self.channel.fileno() < 0

    def ask(self, seconds: float, serve: Serve | None = None, **request: Any) -> dict[str, Any]:
        """Send one request and return the reply to it.

        Args:
            seconds: time until the reply has arrived.
            serve: answers what the process asks in between; without it, it may ask nothing.
            request: see `operations`.

        Raises:
            SandboxTimeout, SandboxMemory, SandboxDied: the process has been killed.
        """
        deadline = time.monotonic() + seconds
        self.number += 1
        self._send(deadline, **request)
        reply = self._receive(deadline)
        while reply["status"] == "candidate" and serve is not None:
            self._send(deadline, **serve(reply))
            reply = self._receive(deadline)
        return reply

    def _send(self, deadline: float, **message: Any) -> None:
        try:
            self.channel.settimeout(max(deadline - time.monotonic(), 0.01))
            wire.send(self.channel, {"number": self.number, **message})
        except TimeoutError:
            self.close()
            raise SandboxTimeout("it did not read the request") from None
        except OSError:
            raise self._ended() from None

    def _receive(self, deadline: float) -> dict[str, Any]:
        try:
            frame = wire.read_frame(lambda size: self._read(size, deadline))
            reply = wire.parse(frame)
            number = reply.get("number")
            if type(number) is not int or number != self.number or not isinstance(reply.get("status"), str):
                raise wire.ProtocolError("it answered something else")
        except wire.ProtocolError as error:
            self.close()
            raise SandboxDied(str(error)) from None
        return reply

    def _read(self, size: int, deadline: float) -> bytearray:
        """Exactly `size` bytes from the process, while its time and memory are watched."""
        data = bytearray(size)
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            if left <= 0:
                self.close()
                raise SandboxTimeout("it did not answer in time")
            if not select.select([self.channel], [], [], left)[0]:
                continue
            try:
                count = self.channel.recv_into(view)
            except OSError:
                count = 0
            if not count:
                raise self._ended()
            view = view[count:]
        return data

    def _ended(self) -> SandboxDied | SandboxMemory:
        self.close()
        if self._over_memory:
            return SandboxMemory("it used too much memory")
        return SandboxDied("its process has ended")

    def _watch_memory(self) -> None:
        """Kill the process when all that it started uses too much, whether it is being asked or not."""
        while not self._closing.wait(0.1):
            used = 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in psutil.Process(self.process.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        used += process.memory_info().rss
            if used > self.limits.memory * MIB:
                self._over_memory = True
                self.process.kill()
                return


def probe() -> None:
    """Make a sandbox and throw it away.

    Raises:
        SandboxUnavailable: with what to do about it.
    """
    with Sandbox():
        pass
