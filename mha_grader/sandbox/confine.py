"""Locks a process in that was just forked: its namespaces, files, limits, rights and system calls.

This file is bound into the sandbox and imports only the standard library. It runs before any code of a student,
in a process that will never come back from it. What is needed from the kernel and is not in Python's library is
called through the C library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

CHANNEL = 3  # the descriptor of the channel to the grader, the only one beside the standard ones
MIB = 2**20
FILES = 20_000  # on each of the small disks: each costs memory that no other limit sees
OPEN_FILES = 64  # of one process: each can be a socket, whose buffers are memory that no other limit sees
CONSTANT = ("cpuinfo", "version")  # of what /proc tells of the machine: PyTorch, for one, reads the first
TERMINALS = 16  # programs of a shell, as in `!ls`, are given one each; the machine has few

# From the kernel's headers: sched.h, mount.h, prctl.h, seccomp.h, capability.h.
NEW_MOUNTS, NEW_IPC, NEW_PIDS, NEW_NETWORK = 0x00020000, 0x08000000, 0x20000000, 0x40000000
READ_ONLY, NO_SUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND, RECURSIVE, PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18)  # fmt: skip
SET_DUMPABLE, SET_SECCOMP, DROP_BOUND, SET_NO_NEW_PRIVILEGES, AMBIENT = 4, 22, 24, 38, 47
SECCOMP_FILTER, CLEAR_ALL = 2, 4
CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def call(name: str, *arguments: Any) -> None:
    """Call a function of the C library.

    Raises:
        OSError: if it fails, with its name.
    """
    numbers = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(_libc, name)(*numbers) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}{arguments}: {os.strerror(error)}")


def be_first(tell: Callable[[int], Any]) -> None:
    """Return in a child that is the first process of a new namespace of processes; this process ends.

    Args:
        tell: called with a descriptor of the child (see pidfd_open(2)), outside of that namespace.
    """
    call("unshare", NEW_PIDS)  # of its children; a process can do this only once
    if child := os.fork():
        tell(os.pidfd_open(child))
        os._exit(0)


def enter(channel: socket.socket, order: dict[str, Any]) -> None:
    """Lock this process in, the first of its namespace, and return in a child of it, which is a student's.

    This process itself stays, to gather up what the student's processes leave behind. It ends, and with it all of
    them, when the child ends or the grader has closed its end of the channel.

    Args:
        channel: to the grader.
        order: `processors` to run on; `memory`, `file`, `disk` in MiB and `processes`, as in `fork_server.Limits`;
            `home`, the folder to be in, and `given`, the folder of the files that lie there; `uid` to change to, or
            None where there is only one; `filter`, the program of `syscalls` in hexadecimal digits.
    """
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # should the machine run out of memory, this process is ended, and not the grader
    os.sched_setaffinity(0, order["processors"])
    call("unshare", NEW_MOUNTS | NEW_IPC | NEW_NETWORK)
    capabilities = _capabilities()
    _lay_out(order["home"], order["given"], order["disk"])
    _close_all_but(channel.detach())
    os.setsid()
    _limit(order)
    _give_up_rights(order["uid"], capabilities)
    _filter_calls(bytes.fromhex(order["filter"]))
    # A signal without a handler does nothing to the first process of a namespace.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    if child := os.fork():
        _stay_until_ended(child)
    signal.signal(signal.SIGINT, handler)
    call("prctl", SET_DUMPABLE, 1, 0, 0, 0)  # it may look at itself, as everywhere


def _lay_out(home: str, given: str, disk: int) -> None:
    """A home, a /tmp, shared memory and terminals of its own, and a /proc that shows its own processes only."""
    call("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
    safe = NO_SUID | NO_DEVICES
    call("mount", b"proc", b"/proc", b"proc", safe | NO_PROGRAMS | READ_ONLY, None)
    _empty_accounts(safe)
    for folder, size, mode in ((home, 64, "0777"), ("/tmp", disk, "1777"), ("/dev/shm", 64, "1777")):
        options = f"size={size}m,mode={mode},nr_inodes={FILES}".encode()
        call("mount", b"tmpfs", folder.encode(), b"tmpfs", safe, options)
    terminals = f"newinstance,ptmxmode=0666,mode=0620,max={TERMINALS}".encode()
    for device in (b"null", b"zero", b"full", b"random", b"urandom", b"tty"):
        # They are written to all the same, but the next can read no time of a change.
        call("mount", None, b"/dev/" + device, None, BIND | REMOUNT | READ_ONLY | NO_SUID | NO_PROGRAMS, None)
    call("mount", b"devpts", b"/dev/pts", b"devpts", NO_SUID | NO_PROGRAMS, terminals)
    for name in os.listdir(given):
        place = os.fsencode(f"{home}/{name}")
        os.close(os.open(place, os.O_CREAT))
        call("mount", os.fsencode(f"{given}/{name}"), place, None, BIND, None)
        call("mount", None, place, None, BIND | REMOUNT | READ_ONLY | safe, None)
    os.chdir(home)


def _empty_accounts(flags: int) -> None:
    """What /proc tells of the whole machine is empty: its counts would carry news from one process to the next."""
    with os.scandir("/proc") as entries:
        others = [entry for entry in entries if not (entry.name.isdigit() or entry.is_symlink())]
    for entry in others:
        if entry.name in CONSTANT:
            continue
        if entry.is_dir():
            call("mount", b"tmpfs", os.fsencode(entry.path), b"tmpfs", flags | READ_ONLY, b"size=4k")
        else:
            call("mount", b"/dev/null", os.fsencode(entry.path), None, BIND, None)


def _close_all_but(channel: int) -> None:
    """Nothing that the parent had open is left; the standard descriptors become those of nothing at the end."""
    os.dup2(channel, CHANNEL)
    os.set_inheritable(CHANNEL, False)
    os.closerange(CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))


def _limit(order: dict[str, Any]) -> None:
    for kind, value in (
        (resource.RLIMIT_CORE, 1),  # with 0, a machine that pipes them to a program would still do so
        (resource.RLIMIT_FSIZE, order["file"] * MIB),
        (resource.RLIMIT_DATA, order["memory"] * MIB),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_NPROC, order["processes"]),
    ):
        resource.setrlimit(kind, (value, value))


def _capabilities() -> range:
    """All that the kernel has; it says how many only in a whole /proc."""
    with open("/proc/sys/kernel/cap_last_cap") as last:
        return range(int(last.read()) + 1)


def _give_up_rights(uid: int | None, capabilities: range) -> None:
    """No capability is left, and none can be had. The order counts: each step needs what a later one takes."""
    call("prctl", AMBIENT, CLEAR_ALL, 0, 0, 0)
    for capability in capabilities:
        call("prctl", DROP_BOUND, capability, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    call("capset", header, (ctypes.c_uint32 * 6)())
    call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call("prctl", SET_DUMPABLE, 0, 0, 0, 0)


def _filter_calls(program: bytes) -> None:
    code = _Program(len(program) // 8, program)
    call("prctl", SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(code), 0, 0)


def _stay_until_ended(child: int) -> None:
    """As the first process of the namespace, take orphans in; its end ends all others."""
    told, telling = os.pipe()
    os.set_blocking(telling, False)
    signal.set_wakeup_fd(telling, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is told
    events = select.poll()
    events.register(told, select.POLLIN)
    events.register(CHANNEL, 0)  # nothing but its being closed
    while True:
        while ended := os.waitpid(-1, os.WNOHANG)[0]:
            if ended == child:
                os._exit(0)
        for descriptor, _ in events.poll():
            if descriptor == CHANNEL:
                os._exit(0)
            os.read(told, 4096)
