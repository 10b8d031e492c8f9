"""The process from which sandboxes are forked: it has imported what students' code needs, and never runs any.

Starting Python and importing PyTorch takes seconds, a fork takes hundredths of one. So bubblewrap starts one *fork
server* for many hand-ins. It sees only a read-only system, the Python interpreter, a list of packages that students
may import (never this project's own) and the files that lie beside a notebook: no secret, no hand-in, no hidden
test, no network. It keeps the right to make namespaces, since each process that it forks gets fresh ones and gives
that right up before it runs anything of a student (see `confine`); none of them can reach it.

Where the grader runs as root no user namespace is made: each forked process changes to an unused uid instead, since
a limit on the number of processes does not bind root. Elsewhere all runs in a user namespace of its own.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import importlib.metadata
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.requirements import Requirement

from mha_grader.sandbox import syscalls

PACKAGES = ("numpy", "scipy", "matplotlib", "torch", "einops", "ipython")  # what students may import
# What the parts of a package import only when they are first used.
LATE_IMPORTS = {"torch": "torch._dynamo"}
HOME = "/home/student"
GIVEN = "/given"  # files that lie beside the notebook; each forked process finds them in its home
INSIDE_PACKAGES = "/packages"
INSIDE_GRADER = "/grader"
INSIDE_FILES = ("worker.py", "confine.py", "wire.py", "requests.py")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
START = 120.0  # seconds that a fork server may take to import everything, on a busy machine
KEPT = 3  # fork servers that one thread keeps: for the assignment, for candidates, and for what it did before


class SandboxUnavailable(Exception):  # noqa: N818 - it names a state of the machine
    """This machine cannot make a sandbox; the text says what to do."""


class ServerGone(SandboxUnavailable):
    """The fork server was ended from outside, and with it the students' processes: no fault of theirs."""


@dataclass(frozen=True)
class Limits:
    """What a student's process may use. Sizes in MiB."""

    memory: int = 2048
    file: int = 64
    disk: int = 128
    processes: int = 64


@dataclass(frozen=True)
class Layout:
    """What the processes of one fork server find: two that are equal can share one."""

    files: tuple[tuple[str, int, int], ...] = ()  # beside the notebook: path, size and time in ns of each
    packages: tuple[tuple[str, str], ...] = ()  # (name, path) of what can be imported beside `PACKAGES`
    imports: tuple[str, ...] = ()  # modules to be imported before the first fork
    hidden: str | None = None  # a folder to be hidden should it lie below something that the sandbox shows

    @staticmethod
    def make(
        files: Path | None = None,
        packages: dict[str, str] | None = None,
        imports: tuple[str, ...] = (),
        hidden: Path | None = None,
    ) -> Layout:
        """A layout.

        Args:
            files: a folder whose plain files lie, read-only, beside the notebook.
            packages: path by name of packages that can be imported beside those for students.
            imports: names of modules to be imported beforehand; those of other packages are left out.
            hidden: a folder to be hidden should it lie below something that the sandbox shows.
        """
        listed = []
        for file in sorted(files.iterdir()) if files is not None else ():
            if file.is_file() and not file.is_symlink() and file.suffix != ".ipynb":
                status = file.stat()
                listed.append((str(file.resolve()), status.st_size, status.st_mtime_ns))
        known = [name for name in imports if name.partition(".")[0] in (*PACKAGES, *(packages or ()))]
        tops = {name.partition(".")[0] for name in known}
        late = [module for name, module in LATE_IMPORTS.items() if name in tops]
        return Layout(
            files=tuple(listed),
            packages=tuple(sorted((packages or {}).items())),
            imports=(*known, *late),
            hidden=None if hidden is None else str(hidden.resolve()),
        )


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


def _mounts(layout: Layout) -> Iterator[str]:
    """The arguments that lay out the file system."""
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)
    for path in ETC:
        yield from ("--ro-bind-try", path, path)
    prefix = os.path.realpath(sys.base_prefix)
    folders = (
        *map(str, reversed(Path(prefix).parents)),
        "/home",
        HOME,
        GIVEN,
        INSIDE_PACKAGES,
        INSIDE_GRADER,
    )
    for folder in folders:
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
    for path, name in (*package_paths(), *((path, name) for name, path in layout.packages)):
        yield from ("--ro-bind", path, f"{INSIDE_PACKAGES}/{name}")
    for name in INSIDE_FILES:
        yield from ("--ro-bind", str(Path(__file__).with_name(name)), f"{INSIDE_GRADER}/{name}")
    for path, _, _ in layout.files:
        yield from ("--ro-bind", path, f"{GIVEN}/{Path(path).name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--dev-bind", "/dev/null", "/dev/zero")  # a shared mapping of it would be memory of nobody's
    yield from ("--tmpfs", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME)
    if layout.hidden is not None and layout.hidden.startswith(("/usr/", prefix)):
        yield from ("--tmpfs", layout.hidden, "--remount-ro", layout.hidden)


def environment() -> dict[str, str]:
    """The variables inside; so are the paths in them, where /tmp is each process's own."""
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


def command(layout: Layout) -> list[str]:
    """The command line that runs what is appended to it, with paths as they are inside, as a fork server.

    Raises:
        SandboxUnavailable: if bubblewrap is not installed.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxUnavailable(
            "grading needs bubblewrap, which is not installed: on Debian or Ubuntu run "
            "`sudo apt-get install bubblewrap`, on Fedora `sudo dnf install bubblewrap`"
        )
    line = [bwrap, "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid", "--unshare-net"]
    line += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox", "--clearenv"]
    for name, value in environment().items():
        line += ["--setenv", name, value]
    line += list(_mounts(layout))
    capabilities = ["CAP_SYS_ADMIN", "CAP_SETPCAP"]  # for namespaces and mounts, and to give all up for good
    if os.geteuid() == 0:
        capabilities += ["CAP_SETUID", "CAP_SETGID"]
    else:
        line += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    line += ["--cap-drop", "ALL"]
    for capability in capabilities:
        line += ["--cap-add", capability]
    return [*line, "--"]


def _unused_uid() -> int | None:
    """A uid for one sandbox alone: processes, and some of the kernel's stores, are counted and kept by uid."""
    return 61000 + secrets.randbelow(4000) if os.geteuid() == 0 else None


class ForkServer:
    """A running fork server, and the way to have it fork."""

    def __init__(self, layout: Layout):
        """Start it; it imports what it has to in the time until the first fork.

        Raises:
            SandboxUnavailable: if bubblewrap is not installed, or has no filter for this machine.
        """
        program = syscalls.program()
        if program is None:
            raise SandboxUnavailable(
                f"grading needs {' or '.join(syscalls.ARCHITECTURES)}, as Linux calls them"
            )
        self._filter = program.hex()
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        line = command(layout)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        inner = [
            python,
            "-I",
            "-S",
            "-B",
            f"{INSIDE_GRADER}/worker.py",
            str(theirs.fileno()),
            *layout.imports,
        ]
        with theirs:
            self.process = subprocess.Popen(
                [*line, *inner],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env={},
                start_new_session=True,
            )
        self._end = weakref.finalize(self, _end, self.control, self.process)
        self.last_words = ""  # what it wrote to stderr, once it is stopped
        self.in_use = 0  # processes that it forked and that are not done with
        self._ready = False

    def fork(self, channel: socket.socket, limits: Limits) -> int:
        """Have it fork a process that answers on `channel`; returns a descriptor of that process (a pidfd).

        Raises:
            SandboxUnavailable: if it has ended, or did not start in time.
        """
        order = {**asdict(limits), "home": HOME, "given": GIVEN, "uid": _unused_uid(), "filter": self._filter}
        try:
            if not self._ready:
                self._receive(b"ready", descriptors=0)
                self._ready = True
            socket.send_fds(self.control, [json.dumps(order).encode()], [channel.fileno()])
            descriptor = self._receive(b"forked", descriptors=1)[0]
        except OSError as error:
            raise self.failed(str(error)) from None
        self.in_use += 1
        return descriptor

    def failed(self, why: str) -> SandboxUnavailable:
        """Stop it; the error that says what it said, and what to do."""
        self.stop()
        return SandboxUnavailable(
            f"the sandbox did not start ({why}): {self.last_words or 'it gave no reason'}\n"
            "Grading needs Linux with bubblewrap and leave to make namespaces. In a container run it "
            "privileged, or with `--security-opt seccomp=unconfined`; on Ubuntu 24.04 and later allow bwrap and "
            "what it starts in AppArmor (`sysctl kernel.apparmor_restrict_unprivileged_userns=0`, and no profile "
            "`bwrap-userns-restrict`)."
        )

    def _receive(self, word: bytes, descriptors: int) -> list[int]:
        self.control.settimeout(START)
        message, received, _, _ = socket.recv_fds(self.control, 100, descriptors)
        if message != word:
            raise OSError("it has ended")
        return received

    def has_ended(self) -> bool:
        """Whether it has ended; waits a moment for one that is about to."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.3)
        return self.process.returncode is not None

    def stop(self) -> None:
        """Kill it, and with it every process that it forked."""
        self.last_words = self._end() or self.last_words


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> str:
    """End a fork server; returns what it wrote to stderr."""
    control.close()
    process.kill()  # bubblewrap dies, with it the first process of the namespace, with it all others
    return process.communicate()[1][-4000:].decode(errors="replace").strip()


class _Servers(threading.local):
    """The fork servers of this thread: they end with the thread that started them."""

    def __init__(self) -> None:
        self.by_layout: dict[Layout, ForkServer] = {}  # the last used is the last


_servers = _Servers()


def get(layout: Layout) -> ForkServer:
    """This thread's fork server for a layout, which is started if there is none that runs.

    Raises:
        SandboxUnavailable: see `ForkServer`.
    """
    kept = _servers.by_layout
    server = kept.pop(layout, None)
    if server is None or server.process.poll() is not None:
        idle = [old for old, other in kept.items() if not other.in_use]
        for old in idle[: max(len(kept) - KEPT + 1, 0)]:
            kept.pop(old).stop()
        server = ForkServer(layout)
    kept[layout] = server
    return server
