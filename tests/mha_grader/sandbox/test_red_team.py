"""Attacks on the sandbox by someone who has read all of it: they reach nothing, see nothing, and stop nobody.

Each row is one attack. What `test_sandbox` tries already is not repeated here.
"""

import os
import platform
import threading

import numpy as np
import psutil
import pytest

from mha_grader.sandbox import syscalls, wire
from mha_grader.sandbox.fork_server import Limits
from mha_grader.sandbox.sandbox import Sandbox, SandboxDied, SandboxMemory

# --- calls of the kernel --------------------------------------------------------------------------------------

CALL = """\
import ctypes, errno, os
_library = ctypes.CDLL(None, use_errno=True)
_library.syscall.restype = ctypes.c_long
def call(number, *arguments):
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if _library.syscall(ctypes.c_long(number), *arguments) >= 0:
        return "done"
    return errno.errorcode[ctypes.get_errno()]
room = ctypes.create_string_buffer(256)
"""
ARGUMENTS = {  # such that the call would go through, or fail in another way, without the filter
    "ptrace": "0, 0, 0, 0",
    "keyctl": "0, -3, 1",
    "add_key": "b'user', b'left', b'behind', 6, -3",
    "request_key": "b'user', b'left', 0, -3",
    "unshare": "0x10000000",
    "setns": "3, 0",
    "mount": "b'none', b'/tmp', b'tmpfs', 0, 0",
    "bpf": "0, room, 64",
    "perf_event_open": "room, 0, -1, -1, 0",
    "userfaultfd": "1",
    "process_vm_readv": "1, 0, 0, 0, 0, 0",
    "shmget": "0, 2**26, 0o1600",
    "msgget": "0, 0o1600",
    "semget": "0, 1, 0o1600",
    "fsopen": "b'tmpfs', 0",
    "sched_setaffinity": "0, 128, room",
    "setxattr": "b'/tmp', b'user.x', b'y', 1, 0",
    "lsetxattr": "b'/tmp', b'user.x', b'y', 1, 0",
    "fsetxattr": "os.open('/tmp', 0), b'user.x', b'y', 1, 0",
    "setxattrat": "-100, b'/tmp', 0, b'user.x', room, 16",
    "clone3": "room, 88",
    "memfd_create": "b'x', 0",
    "io_setup": "1, room",
    "inotify_init1": "0",
    "fanotify_init": "0x200, 0",
    "vmsplice": "os.pipe()[1], room, 0, 0",
    "splice": "os.pipe()[0], 0, os.pipe()[1], 0, 0, 0",
    "tee": "os.pipe()[0], os.pipe()[1], 0, 0",
    "landlock_create_ruleset": "0, 0, 1",
    "io_uring_setup": "4, room",
}
COLUMN = list(syscalls.ARCHITECTURES).index(platform.machine())
NUMBERS = {name: pair[COLUMN] for name, pair in (syscalls.FORBIDDEN | syscalls.ABSENT).items()}


@pytest.fixture(scope="module")
def box():
    with Sandbox() as box:
        assert run(box, CALL)["status"] == "ok"
        yield box


def run(box, source, seconds=20):
    return box.ask(seconds, op="exec", source=source, label="cell")


def value(box, expression):
    assert run(box, f"_value = {expression}")["status"] == "ok"
    return box.ask(5, op="get", target="_value")["value"]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_calls_that_reach_past_the_sandbox_are_refused(box, name):
    refused = "ENOSYS" if name in syscalls.ABSENT else "EPERM"
    assert value(box, f"call({NUMBERS[name]}, {ARGUMENTS[name]})") == refused


def test_a_new_namespace_cannot_come_with_a_new_process(box):
    clone = syscalls.CLONE[COLUMN]
    assert value(box, f"call({clone}, 0x10000000 | 17, 0, 0, 0, 0)") == "EPERM"


@pytest.mark.parametrize(
    "family",
    [2, 10, 16, 40, 38, 17, 31],
    ids=["inet", "inet6", "netlink", "vsock", "crypto", "packet", "bluetooth"],
)
def test_sockets_of_networks_and_of_the_machine_below_cannot_be_made(box, family):
    reply = run(box, f"import socket\nsocket.socket({family}, socket.SOCK_STREAM)")
    assert (reply["status"], "Address family not supported" in reply["text"]) == ("error", True)


@pytest.mark.parametrize("command", ["fcntl.F_NOTIFY, fcntl.DN_ACCESS", "fcntl.F_SETLEASE, fcntl.F_RDLCK"])
def test_nothing_tells_when_others_use_a_file(box, command):
    reply = run(box, f"import fcntl\nfcntl.fcntl(os.open('/usr/bin', os.O_RDONLY), {command})")
    assert (reply["status"], "No locks available" in reply["text"]) == ("error", True)


def test_what_plain_programs_do_is_not_refused(box):
    reply = run(
        box,
        "import asyncio, fcntl, multiprocessing, mmap, os, subprocess, threading\n"
        "asyncio.new_event_loop().run_until_complete(asyncio.sleep(0))\n"
        "fcntl.flock(os.open('/tmp/x', os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)\n"
        "assert fcntl.fcntl(0, fcntl.F_DUPFD, 10) >= 10\n"
        "import shutil; open('/tmp/one', 'w').close(); shutil.copy2('/tmp/one', '/tmp/two')\n"
        "mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)[0] = 1\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]\n"
        "assert subprocess.run(['true'], start_new_session=True).returncode == 0\n"
        "thread = threading.Thread(target=print); thread.start(); thread.join()",
    )
    assert reply["status"] == "ok", reply


@pytest.mark.parametrize("machine", syscalls.ARCHITECTURES)
def test_the_filter_is_whole_on_every_machine(machine):
    program = syscalls.program(machine)
    assert program is not None
    assert len(program) % 8 == 0
    assert len(program) // 8 < 256  # jumps are counted in one byte


def test_on_an_unknown_machine_there_is_no_filter_and_so_no_grading():
    assert syscalls.program("pdp11") is None


# --- memory that no limit of a process sees -------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    ["import mmap\nmmap.mmap(-1, 2**20)", "import mmap\nmmap.mmap(open('/dev/zero', 'r+b').fileno(), 2**20)"],
    ids=["shared and anonymous", "of the zero device"],
)
def test_there_is_no_memory_that_belongs_to_no_process(box, source):
    assert run(box, source)["status"] == "error"


HELD_BY_THE_KERNEL = {  # what holds memory that is on no process's account, or of which the machine has few
    "locks on parts of a file": "import fcntl, os\nfd = os.open('/tmp/x', os.O_CREAT | os.O_RDWR)\n"
    "for i in range(100): fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * i)",
    "large buffers of sockets": "import socket\nfor pair in [socket.socketpair()] * 2:\n"
    "    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**24)",
    "many sockets": "import socket\nkeep = [socket.socketpair() for _ in range(40)]",
    "terminals": "import os\nfor _ in range(20): keep.append(os.openpty())",
}


@pytest.mark.parametrize("name", HELD_BY_THE_KERNEL)
def test_there_is_no_memory_that_the_kernel_holds_without_limit(name):
    with Sandbox() as box:
        assert "OSError" in run(box, "keep = []\n" + HELD_BY_THE_KERNEL[name])["types"]


GROW = """\
import os, time
for child in range(3):
    if not os.fork():
        if child: time.sleep(0.3)
        x = b'x' * (150 * 2**20)
        time.sleep(60)
        os._exit(0)
"""


def test_memory_is_watched_while_bytes_keep_coming():
    trickle = """
for name in os.listdir('/proc/self/fd'):
    try: link = os.readlink('/proc/self/fd/' + name)
    except OSError: continue
    if link.startswith('socket:'):
        os.write(int(name), __import__('struct').pack('>IQ', 2**20, 0))
        for _ in range(1000):
            os.write(int(name), b' ')
            time.sleep(0.01)
"""
    with Sandbox(limits=Limits(memory=256)) as box, pytest.raises(SandboxMemory):
        run(box, GROW + trickle)


CLIB = """\
import _thread, ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
x = []
def step(number):
    if number % 50 == 0 and len(x) < 50: x.append(b'x' * 2**22)
    _thread.start_new_thread(step, (number + 1,))
def grow():
    time.sleep(0.5)
    x.append(b'x' * (150 * 2**20))
    time.sleep(60)
def end_of_the_first_thread():
    time.sleep(0.1)
    libc.pthread_exit(None)
"""
HIDDEN_MEMORY = {  # of which a look at the first thread of each process, in its own time, would see nothing
    "of a thread whose process seems to have ended": (
        "for _ in range(3):\n    if not os.fork():\n"
        "        _thread.start_new_thread(grow, ())\n"
        "        end_of_the_first_thread()\n"),
    "of threads that come and go": (
        "for _ in range(3):\n    if not os.fork():\n"
        "        _thread.start_new_thread(step, (0,))\n        end_of_the_first_thread()\n"),
    "of processes that come and go": (
        "for _ in range(3):\n    if not os.fork():\n        while not os.fork():\n"
        "            if len(x) < 150: x.append(b'x' * 2**20)\n        os._exit(0)\n"),
    "of tables that say where nothing is": (
        "place = libc.mmap(None, 2**38, 1, 0x4022, -1, 0)\nlibc.madvise(place, 2**38, 15)\n"
        "for at in range(place, place + 2**38, 2**21): ctypes.string_at(at, 1)\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN_MEMORY)
def test_memory_cannot_be_hidden(name):
    with Sandbox(limits=Limits(memory=256)) as box, pytest.raises(SandboxMemory):
        run(box, CLIB + HIDDEN_MEMORY[name] + "time.sleep(15)")


def test_memory_is_watched_while_nothing_is_asked():
    with Sandbox(limits=Limits(memory=256)) as box:
        run(box, GROW)
        psutil.Process(box.pid).wait(timeout=20)
        with pytest.raises(SandboxMemory):
            run(box, "1")


def test_a_burning_neighbour_cannot_leave_its_processors():
    with Sandbox() as box:
        allowed = value(box, "sorted(__import__('os').sched_getaffinity(0))")
        assert allowed == sorted(os.sched_getaffinity(box.pid))
        assert run(box, "import os; os.sched_setaffinity(0, {0})")["types"][0] == "PermissionError"


def test_a_process_that_is_ended_from_outside_ends_no_grader():
    with Sandbox() as box:
        threading.Timer(0.3, box.kill).start()
        with pytest.raises(SandboxDied):
            run(box, "import time; time.sleep(30)")


def test_what_a_frame_may_hold_is_bounded():
    array = np.zeros(4)
    for value in ([array] * (wire.MAX_NODES + 1), dict.fromkeys(range(wire.MAX_KEYS + 1))):
        buffers = []
        tree = wire.encode(value, buffers)
        with pytest.raises(wire.ProtocolError, match="cap"):
            wire.decode(tree, memoryview(b"".join(buffers)))
