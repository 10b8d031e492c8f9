"""The process from which sandboxes are forked: it has imported what students' code needs, and never runs any.

Starting Python and importing PyTorch takes seconds, a fork takes hundredths of one. So bubblewrap starts one *fork
server* for many hand-ins. It sees only a read-only system, the Python interpreter, a list of packages that students
may import (never this project's own) and the files that lie beside a notebook: no secret, no hand-in, no hidden
test, no network. It keeps the right to make namespaces, since each process that it forks gets fresh ones and gives
that right up before it runs anything of a student (see `confine`); none of them can reach it.

All graders of one user on one machine share it: whichever needs one first starts it, the others connect to its
socket, which lies in a folder that only this user can enter. It ends when its last grader is gone. A student's
process does not wait for that: it ends when the grader's end of its own channel is closed.

Where the grader runs as root no user namespace is made: each forked process changes to an unused uid instead, since
a limit on the number of processes does not bind root. Elsewhere all runs in a user namespace of its own.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import secrets
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.requirements import Requirement

from mha_grader.sandbox import syscalls

NEEDED = ("numpy", "ipython")  # by what runs students' code
PACKAGES = (
    "scipy",
    "matplotlib",
    "torch",
    "einops",
)  # what students may import besides, unless a course says
# What the parts of a package import only when they are first used; the fork server imports it at once.
LATE_IMPORTS = {"torch": "torch._dynamo"}
HOME = "/home/student"
GIVEN = "/given"  # files that lie beside the notebook; each forked process finds them in its home
INSIDE_PACKAGES = "/packages"
INSIDE_TMP = "/tmp"  # of each process its own; no file of this machine is there
INSIDE_GRADER = "/grader"
INSIDE_FILES = ("worker.py", "answering.py", "confine.py", "wire.py", "requests.py")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
START = 120.0  # seconds that a fork server may take to import everything, on a busy machine
KEPT = 3  # fork servers that one thread keeps: for the assignment, for candidates, and for what it did before
TRIES = 3  # to connect to a server that is there until it is ready
NOT_STARTED = (
    "the sandbox did not start ({why}): {words}\n"
    "Grading needs Linux with bubblewrap and permission to create namespaces. Run a container privileged, or with "
    "`--security-opt seccomp=unconfined`; on Ubuntu 24.04 and later allow bwrap and what it starts in AppArmor "
    "(`sysctl kernel.apparmor_restrict_unprivileged_userns=0`, and no profile `bwrap-userns-restrict`)."
)


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
    allowed: tuple[str, ...] = PACKAGES  # distributions that can be imported, with what they need
    packages: tuple[tuple[str, str], ...] = ()  # (name, path) of what can be imported besides
    imports: tuple[str, ...] = ()  # modules of these packages to be imported before the first fork
    hidden: str | None = None  # a folder to be hidden should it lie below something that the sandbox shows

    @staticmethod
    def make(
        files: Path | None = None,
        packages: dict[str, str] | None = None,
        imports: tuple[str, ...] = (),
        hidden: Path | None = None,
        allowed: tuple[str, ...] = PACKAGES,
    ) -> Layout:
        """A layout.

        Args:
            files: a folder whose plain files lie, read-only, beside the notebook.
            packages: path by name of packages that can be imported beside those for students.
            imports: names of modules to be imported beforehand; those of other packages are left out.
            hidden: a folder to be hidden should it lie below something that the sandbox shows.
            allowed: names of distributions that can be imported, with what they need.
        """
        listed = []
        for file in sorted(files.iterdir()) if files is not None else ():
            if file.is_file() and not file.is_symlink() and file.suffix != ".ipynb":
                status = file.stat()
                listed.append((str(file.resolve()), status.st_size, status.st_mtime_ns))
        there = {name.partition(".")[0] for _, name in package_paths(allowed)} | set(packages or ())
        return Layout(
            files=tuple(listed),
            allowed=allowed,
            packages=tuple(sorted((packages or {}).items())),
            imports=tuple(name for name in imports if name.partition(".")[0] in there),
            hidden=None if hidden is None else str(hidden.resolve()),
        )


def _late_imports(layout: Layout) -> list[str]:
    """What the server imports besides; graders, which share the layout's imports, have no use for it."""
    tops = {name.partition(".")[0] for name in layout.imports}
    return [module for name, module in LATE_IMPORTS.items() if name in tops]


@functools.cache
def package_paths(allowed: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pairs (path outside, name inside) of the top-level files of distributions and all that they need."""
    todo, seen = [*NEEDED, *allowed], set()
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
    for path, name in (*package_paths(layout.allowed), *((path, name) for name, path in layout.packages)):
        yield from ("--ro-bind", path, f"{INSIDE_PACKAGES}/{name}")
    for name in INSIDE_FILES:
        yield from ("--ro-bind", str(Path(__file__).with_name(name)), f"{INSIDE_GRADER}/{name}")
    for path, _, _ in layout.files:
        yield from ("--ro-bind", path, f"{GIVEN}/{Path(path).name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--dev-bind", "/dev/null", "/dev/zero")  # a shared mapping of it would be memory of nobody's
    yield from ("--tmpfs", INSIDE_TMP, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME)
    if layout.hidden is not None and layout.hidden.startswith(("/usr/", prefix)):
        yield from ("--tmpfs", layout.hidden, "--remount-ro", layout.hidden)


def environment() -> dict[str, str]:
    """The variables inside; so are the paths in them."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    kept = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # some processors need them to compute right
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": HOME,
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": f"{INSIDE_TMP}/matplotlib",
        "IPYTHONDIR": f"{INSIDE_TMP}/ipython",
        "PYTHONHASHSEED": "0",
        "TORCH_COMPILE_DISABLE": "1",  # the decorator does nothing: there is no compiler, and no time for one
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
    line = [bwrap, "--new-session", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    line += ["--unshare-cgroup-try", "--hostname", "sandbox", "--clearenv"]
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


def _folder() -> Path:
    """Where the sockets of this user's fork servers lie.

    Raises:
        SandboxUnavailable: if others can enter it.
    """
    folder = Path(tempfile.gettempdir()) / f"mha-grader-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise SandboxUnavailable(f"{folder} should be a folder that only you can enter: remove it")
    return folder


def _socket_name(layout: Layout, line: list[str]) -> str:
    """The same for two graders only if one server can serve both: with the same files, code, and place."""
    code = [Path(__file__).with_name(name).read_bytes() for name in INSIDE_FILES]
    place = [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "user")]
    return f"{hashlib.sha256(repr((layout, line, code, place)).encode()).hexdigest()[:16]}.socket"


def _dial(path: Path) -> socket.socket | None:
    """A connection to the server that listens there; None if there is none."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        control.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        control.close()
        return None
    return control


def _start(path: Path, layout: Layout, line: list[str]) -> socket.socket:
    """A connection to a new fork server, which others can reach at `path`."""
    for old in path.parent.glob("*.socket"):
        if control := _dial(old):
            control.close()
        else:
            old.unlink(missing_ok=True)
            old.with_suffix(".log").unlink(missing_ok=True)
    path.with_suffix(".log").unlink(missing_ok=True)
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        path.with_suffix(".log").open("xb") as log,
    ):
        listener.bind(str(path))
        listener.listen(1000)
        control.connect(str(path))
        worker = [python, "-I", "-S", "-B", f"{INSIDE_GRADER}/worker.py", str(listener.fileno())]
        # The shell ends at once, so that the server is no child of this process and does not end with it.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *line, *worker, *layout.imports, *_late_imports(layout)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=[listener.fileno()],
            env={},
            start_new_session=True,
            check=True,
        )
    return control


class ForkServer:
    """A connection to the fork server for a layout, and the way to have it fork."""

    def __init__(self, layout: Layout):
        """Connect to the server, which is started if there is none, and wait until it has imported everything.

        Raises:
            SandboxUnavailable: if bubblewrap is not installed, has no filter for this machine, or fails.
        """
        program = syscalls.program()
        if program is None:
            raise SandboxUnavailable(
                f"grading needs {' or '.join(syscalls.ARCHITECTURES)}, as Linux calls them"
            )
        self._filter = program.hex()
        line = command(layout)
        self._path = _folder() / _socket_name(layout, line)
        self.in_use = 0  # processes that it forked for this connection and that are not done with
        self._open = contextlib.ExitStack()
        weakref.finalize(self, self._open.close)
        for _ in range(TRIES):
            self._connect(layout, line)
            try:
                self.process = self._receive(b"ready")  # a descriptor of the server (a pidfd)
            except OSError as error:
                failure = self.failed(str(error))
                if isinstance(error, TimeoutError) or not isinstance(failure, ServerGone):
                    raise failure from None
            else:
                self._open.callback(os.close, self.process)
                return
        raise failure

    def _connect(self, layout: Layout, line: list[str]) -> None:
        """Connect to the server, which is started if there is none."""
        import fcntl  # where there is none, one's own code can still be checked, and this module is imported

        with (self._path.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            control = _dial(self._path) or _start(self._path, layout, line)
            self.control = self._open.enter_context(control)
            self._log = self._open.enter_context(self._path.with_suffix(".log").open("rb"))

    def fork(self, channel: socket.socket, limits: Limits) -> int:
        """Have it fork a process that answers on `channel`; returns a descriptor of that process (a pidfd).

        The process may run where this thread may, and ends when all other ends of `channel` are closed.

        Raises:
            SandboxUnavailable: if the server has ended, or did not answer in time.
        """
        order = {**asdict(limits), "home": HOME, "given": GIVEN, "uid": _unused_uid(), "filter": self._filter}
        order["processors"] = sorted(os.sched_getaffinity(0))
        self._log.seek(0, os.SEEK_END)  # what it said of others' processes is no reason why this one fails
        try:
            socket.send_fds(self.control, [json.dumps(order).encode()], [channel.fileno()])
            descriptor = self._receive(b"forked")
        except OSError as error:
            raise self.failed(str(error)) from None
        self.in_use += 1
        return descriptor

    def failed(self, why: str) -> SandboxUnavailable:
        """Give it up, so that the next one is a new one; the error that says what it said, and what to do.

        A server that cannot do its work says why. One that says nothing since it was last asked was ended from
        outside, or had no grader left.
        """
        self._path.unlink(missing_ok=True)
        words = self._log.read()[-4000:].decode(errors="replace").strip()
        self.stop()
        kind = SandboxUnavailable if words else ServerGone
        return kind(NOT_STARTED.format(why=why, words=words or "it gave no reason"))

    def _receive(self, word: bytes) -> int:
        """The descriptor that comes with a word of the server."""
        self.control.settimeout(START)
        message, received, _, _ = socket.recv_fds(self.control, 100, 1)
        if message != word:
            raise OSError("it has ended")
        return received[0]

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Whether the server has ended; waits so long for one that is about to."""
        return self.control.fileno() < 0 or bool(select.select([self.process], [], [], seconds)[0])

    def stop(self) -> None:
        """Leave it. If this was its last connection, it ends, and with it every process that it forked."""
        self._open.close()


class _Servers(threading.local):
    """The connections of this thread, each of which does one thing after another."""

    def __init__(self) -> None:
        self.by_layout: dict[Layout, ForkServer] = {}  # the last used is the last


_servers = _Servers()


def get(layout: Layout) -> ForkServer:
    """This thread's connection to the fork server for a layout.

    Raises:
        SandboxUnavailable: see `ForkServer`.
    """
    kept = _servers.by_layout
    server = kept.pop(layout, None)
    if server is None or server.has_ended():
        idle = [old for old, other in kept.items() if not other.in_use]
        for old in idle[: max(len(kept) - KEPT + 1, 0)]:
            kept.pop(old).stop()
        server = ForkServer(layout)
    kept[layout] = server
    return server
