"""Attacks on the grader by someone who has read all of it: they earn nothing, see nothing, and stop nobody.

Each row is one attack. What `test_sandbox` and `test_grading` try already is not repeated here.
"""

import json
import os
import platform
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import psutil
import pytest

from mha_grader.course import assignment as assignments
from mha_grader.course import authoring, store
from mha_grader.grading import grading, rebuild
from mha_grader.grading.runner import load_parts, run_parts
from mha_grader.grading.session import Budget, Session
from mha_grader.sandbox import syscalls, wire
from mha_grader.sandbox.fork_server import Limits
from mha_grader.sandbox.sandbox import Sandbox, SandboxDied, SandboxMemory
from mha_grader.testing.proxies import Recorder, local
from mha_grader.testing.testing import CallError

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


# --- forged replies -------------------------------------------------------------------------------------------

# `arm` lets the next reply be made by the student: the worker sends through a module that anyone can change.
ARM = """\
import json, struct, sys, time
import numpy as np
_wire = sys.modules['_wire']
honest = _wire.send
def arm(forge):
    def send(channel, message):
        _wire.send = honest
        forge(channel, message)
    _wire.send = send
def change(**fields):
    arm(lambda channel, message: honest(channel, {**message, **fields}))
def raw(text, payload=b''):
    def forge(channel, message):
        header = text.replace('NUMBER', str(message['number'])).encode()
        channel.sendall(struct.pack('>IQ', len(header), len(payload)) + header + payload)
    arm(forge)
def fail(**fields):
    change(**{'status': 'error', 'types': ['KeyError'], 'text': 'x', 'cell': 'f', 'line': 1, **fields})
def tree(value):
    raw('{"number": NUMBER, "status": "ok", "value": ' + value + '}')
"""
FORGED = {  # what the student's function does, and what comes of it
    "number is an array": ("change(number=np.array([1, 2]))", "died"),
    "number is an empty array": ("change(number=np.array([]))", "died"),
    "number is true": ("change(number=True)", "died"),
    "number is a float": (
        "arm(lambda channel, message: honest(channel, {**message, 'number': float(message['number'])}))",
        "died",
    ),
    "number is a text": ("raw('{\"number\": \"NUMBER\", \"status\": \"ok\"}')", "died"),
    "number is missing": ("raw('{\"status\": \"ok\"}')", "died"),
    "number comes twice": ("raw('{\"number\": -1, \"number\": NUMBER, \"status\": \"ok\"}')", "ok"),
    "status is an array": ("change(status=np.array([1, 2]))", "died"),
    "status is unknown": ("change(status='pass')", "error"),
    "asks a candidate that there is not": ("change(status='candidate', args=[], kwargs={})", "error"),
    "cell is an array": ("fail(cell=np.array([1, 2]))", "error"),
    "line is huge": ("fail(line=10**4000)", "error"),
    "line is an array": ("fail(line=np.arange(3))", "error"),
    "types hold surrogates": ("fail(types=['\\ud800'])", "error"),
    "types hold markup": ("fail(types=['<script>alert(1)</script>'])", "error"),
    "types hold terminal codes": ("fail(types=['\\x9b31m', '\\x1b]0;owned\\x07'])", "error"),
    "types hold no text": ("fail(types=[np.zeros(3), None, {}])", "error"),
    "types are many": ("fail(types=['KeyError'] * 90_000)", "error"),
    "text holds surrogates": ("fail(text='\\ud800')", "error"),
    "text is huge": ("fail(text='x' * 3_000_000)", "error"),
    "text is data": ("fail(text={'a': np.zeros((2, 2))})", "error"),
    "changed holds surrogates": ("change(changed=['\\udfff', '\\x1b[2J', 7, None])", "ok"),
    "changed is endless": ("change(changed=['x' * 1000] * 3000)", "ok"),
    "changed is a dict": ("change(changed={'0': 1})", "ok"),
    "keys that all collide": (
        "tree('{\"d\": [' + ','.join(f'[{i * (2**61 - 1)}, 0]' for i in range(100_000)) + ']}')",
        "died",
    ),
    "many dicts with keys that collide": (
        "one = '{\"d\": [' + ','.join(f'[{i * (2**61 - 1)}, 0]' for i in range(4000)) + ']}'\n"
        "    tree('[' + ','.join([one] * 20) + ']')",
        "died",
    ),
    "a million lists": ("tree('[' + ','.join(['[]'] * 1_000_000) + ']')", "died"),
    "an integer without end": ("tree('9' * 1_000_000)", "died"),
    "a float beyond all floats": ("tree('1e999999')", "ok"),
    "nested beyond the parser": ("tree('[' * 500_000)", "died"),
    "text with surrogates": ("tree('\"\\\\ud800\"')", "ok"),
    "tag with surrogates": ("tree('{\"\\\\ud800\": 1}')", "died"),
    "type with terminal codes": ("tree('{\"o\": \"\\\\u001b[31m\\\\ud800\"}')", "ok"),
    "handle to nothing": ("tree('{\"h\": 7}')", "ok"),
    "array of objects": ("tree('{\"a\": [\"O\", [0]]}')", "died"),
    "array of negative size": ("tree('{\"a\": [\"int8\", [-1]]}')", "died"),
    "tensor of an odd dtype": ("tree('{\"T\": [\"complex128\", [0]]}')", "died"),
    "array with too many axes": ("tree('{\"a\": [\"int8\", ' + str([0] * 33) + ']}')", "died"),
    "payload that nobody needs": ("raw('{\"number\": NUMBER, \"status\": \"ok\"}', b'x' * 2**20)", "died"),
    "payload beyond the cap": ("arm(lambda c, m: c.sendall(struct.pack('>IQ', 2, 2**26 + 1)))", "died"),
    "payload that never comes": ("arm(lambda c, m: c.sendall(struct.pack('>IQ', 2, 2**26) + b'{}'))", "timeout"),
    "one byte at a time": (
        "arm(lambda c, m: [(c.sendall(b'\\0'), time.sleep(0.3)) for _ in range(60)])",
        "timeout",
    ),
    "two replies at once": ("arm(lambda c, m: (honest(c, m), honest(c, {**m, 'value': 'second'})))", "ok"),
}  # fmt: skip


@pytest.fixture(scope="module")
def session():
    with Session(limits=Limits(memory=1024), budget=Budget(call=2, submission=600, item=600)) as session:
        assert session.execute("arm", ARM, 10) is None
        yield session


def call(session, name="f", **fields):
    request = {"op": "call", "target": name, "method": None, "args": [], "kwargs": {}, "keep": None}
    return session.perform(request | fields)


def storable(value):
    """Whether this can stand in a record: in UTF-8, and short."""
    return len(repr(value).encode()) < 20_000 and len(str(value).encode()) < 20_000


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_reply_is_data_or_a_failure(session, name):
    forge, expected = FORGED[name]
    session.start_item()
    assert session.execute("f", f"def f():\n    {forge}\ndef honest_one(): return 7", 5) is None
    start = time.process_time()
    try:
        result, changed = call(session)
    except CallError as error:
        outcome, told, words = error.kind, (error.text, error.line), error.type_names
    else:
        outcome, told, words = "ok", result, changed
    assert outcome == expected
    assert storable((told, words))
    assert all(word.isalnum() or word == "?" for word in words)
    assert time.process_time() - start < 6  # of this process alone: it is not the machine that is tested
    if name == "two replies at once":  # the second one does not answer the next question
        with pytest.raises(CallError, match="died"):
            call(session, "honest_one")
    assert call(session, "honest_one") == (7, ())


# --- a checker and what it is given ---------------------------------------------------------------------------

SPEC = "single_head.softmax/style/{}"
CHECKERS = {
    "verdict is no dict": ("change(value=5)", "died"),
    "verdict is empty": ("change(value={})", "died"),
    "verdict is an array": ("change(value={'accepted': np.array([1, 2]), 'returned': False})", "died"),
    "verdict is a number": ("change(value={'accepted': 1, 'returned': 0})", "died"),
    "returned is missing": ("change(value={'accepted': True})", "died"),
    "arguments are a number": ("change(status='candidate', args=5, kwargs={})", "died"),
    "arguments are missing": ("change(status='candidate')", "died"),
    "names are a number": ("change(status='candidate', args=[], kwargs=5)", "died"),
    "arguments are handles": ("candidate(_wire.Handle(1))", "ok"),
    "a name that is none": ("candidate(**{'\\ud800': 1})", "ok"),
    "arguments are large": ("candidate(np.broadcast_to(np.float16(1), (2**20,)))", "ok"),
    "ends while it is served": ("import os\n    os._exit(0)", "timeout"),
    "ends badly while it is served": ("import os\n    os._exit(3)", "died"),
}


@pytest.mark.parametrize("name", CHECKERS)
def test_a_checker_cannot_hurt_the_candidates_or_the_grader(session, name):
    trick, expected = CHECKERS[name]
    spec = next(spec for spec in grading_candidates() if "/style/" in spec)
    session.start_item()
    source = (
        f"def check(candidate):\n    {trick}\ndef fine(candidate): assert candidate(np.zeros(2))[0] == 0.5"
    )
    assert session.execute("check", source, 5) is None
    try:
        session.perform({"op": "check", "target": "check", "candidate": spec})
        outcome = "ok"
    except CallError as error:
        outcome = error.kind
    assert outcome == expected
    verdict, _ = session.perform({"op": "check", "target": "fine", "candidate": spec})
    assert verdict["accepted"] is True


def grading_candidates():
    from mha_grader.testing import candidates

    return candidates.right("single_head.softmax")


# --- whole hand-ins -------------------------------------------------------------------------------------------

DOUBLE = "def double(x):\n    if isinstance(x, str):\n        {}\n    return 2 * x\n"
HANDINS = {  # code of `double`, and what it deserves
    "an error with a name that cannot be written": (
        ARM + DOUBLE.format("fail(types=['\\ud800', 'TypeError'], text='text'); return"), 4),
    "an error that is no TypeError": (ARM + DOUBLE.format("fail(types=['\\x1b[31m\\ud800']); return"), 3),
    "changes that cannot be written": (
        ARM + DOUBLE.format("raise TypeError('text')").replace(
            "return", "change(changed=['\\ud800'])\n    return"), 3),
    "looks for the test in its own memory": (
        "import re\ndef double(x):\n    found = None\n    for line in open('/proc/self/maps'):\n"
        "        low, high = (int(end, 16) for end in line.split()[0].split('-'))\n"
        "        if line.split()[1].startswith('rw') and high - low < 2**26:\n"
        "            with open('/proc/self/mem', 'rb') as memory:\n                memory.seek(low)\n"
        "                found = found or re.search(b'refuses[_]text', memory.read(high - low))\n"
        "    return 2 * x if found else None", 0),
    "looks for the answer among all objects": (
        "import gc\ndef double(x):\n"
        "    return next((o for o in gc.get_objects() if isinstance(o, np.ndarray) and o.shape == x.shape\n"
        "                 and o is not x and not np.array_equal(o, x)), None)", 0),
    "imports the reference": (
        "def double(x):\n    import importlib, sys\n"
        "    sys.path += ['/work', '/grader', '/proc/1/root', '/proc/1/cwd']\n"
        "    return importlib.import_module('mha_lib').double(x)", 0),
    "asks for a class of the grader": (
        "double = type('Mismatch', (Exception,), {'__call__': lambda s, x: s})()", 0),
    "burns the processor in many sessions": (
        "import os\nfor _ in range(20):\n    if not os.fork():\n        os.setsid()\n        while True: pass\n"
        + DOUBLE.format("raise TypeError('text')"), 4),
    "stops the first process": (
        "import os, signal\ndef double(x):\n    os.kill(1, signal.SIGSTOP); os.kill(-1, signal.SIGKILL)", 0),
    "is a module with a module's lies": (
        "class Lies:\n    def __call__(self, x): return self\n    def __array__(self, *a, **k): raise SystemExit\n"
        "    def __getattr__(self, name): return self\n    def __iter__(self): return self\n"
        "    def __next__(self): return self\ndouble = Lies()", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDINS)
def test_a_hand_in_gets_what_its_code_deserves(toy, settings, tmp_path, name):
    source, deserved = HANDINS[name]
    cells = [
        {"cell_type": "code", "source": text, "metadata": {"nbgrader": {"grade_id": item}}}
        for item, text in (("double", source), ("quadruple", "quadruple = lambda x: 4 * x"))
    ]
    with settings.session(toy) as session:
        session.execute("first", "pass", 10)  # the fork server stays, nothing else does
    before = set(psutil.Process().children(recursive=True))
    record = grading.grade_submission(toy, settings, json.dumps({"cells": cells}).encode())
    assert {item.item: item.score for item in record.items} == {
        "double": deserved,
        "quadruple": 1.5,
        "answers": 0,
    }
    store.save(tmp_path, "student", record)
    assert store.load(tmp_path, "student") == record
    told = "".join(part.message for item in record.items for part in item.parts)
    assert all(c.isprintable() or c == "\n" for c in told)
    assert "refuses_text" not in told
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.parametrize("place", [1, 3])
def test_a_cell_that_ends_the_process_only_when_it_is_executed_again_is_left_out(place):
    sources = ["x = 6", "def f(): return x + 1", "def g():\n    import os\n    os._exit(0)"]
    with Session() as session:
        for number, source in enumerate([*sources[:place], "pass", *sources[place:]]):
            assert session.execute(f"cell {number}", source, 5) is None
        label, _, seconds = session._executed[place]
        session._executed[place] = (
            label,
            "import os\nos._exit(0)",
            seconds,
        )  # as a cell can that looks at a clock
        session.start_item()
        with pytest.raises(CallError, match="died"):
            call(session, "g")
        assert call(session) == (7, ())


def test_large_results_in_every_part_take_no_memory_of_the_grader(toy, settings):
    source = "import numpy as np\nlarge = np.zeros(2**26 - 1, np.int8)\ndef {}(x):\n    return large"
    cells = [
        {"cell_type": "code", "source": source.format(item), "metadata": {"nbgrader": {"grade_id": item}}}
        for item in ("double", "quadruple")
    ]
    tracemalloc.start()
    try:
        assert grading.grade_submission(toy, settings, json.dumps({"cells": cells}).encode()).score == 0
        assert tracemalloc.get_traced_memory()[1] < 300 * 2**20
    finally:
        tracemalloc.stop()


def test_very_many_words_take_no_memory_of_the_grader(toy, settings):
    words = "".join(f" w{number}" for number in range(100_000))
    texts = [f"'{words.replace('w', letter)}'" for letter in "abcdefghij"]
    cells = [{"cell_type": "code", "source": source} for source in texts]
    tracemalloc.start()
    try:
        grading.grade_submission(toy, settings, json.dumps({"cells": cells}).encode())
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()


def test_a_burning_neighbour_cannot_leave_its_processors():
    with Sandbox() as box:
        allowed = value(box, "sorted(__import__('os').sched_getaffinity(0))")
        assert allowed == sorted(os.sched_getaffinity(box.pid))
        assert run(box, "import os; os.sched_setaffinity(0, {0})")["types"][0] == "PermissionError"


# --- right code where the student's own is wrong --------------------------------------------------------------

COURSE = Path(__file__).parents[3]
NAMES = authoring.assignments(COURSE)


def borrowed(right):
    """What an item could be that only hands on what another one gives."""
    if isinstance(right, type):
        return [type("Borrowed", (right,), {})]
    return [right, lambda *args, **kwargs: right(*args, **kwargs)[0]]


@pytest.mark.parametrize("name", NAMES)
def test_right_code_that_stands_in_gives_no_other_item_away(name):
    given = assignments.load(COURSE, name)
    for item in given.items:
        right = getattr(given.reference, item)
        for other in given.rests_on(item):
            for stolen in borrowed(getattr(given.reference, other)):
                recorder = Recorder(local(**{item: stolen}))
                names = {item: recorder.bind(item, right)}
                parts = load_parts(given.cell("test", item).hidden, names, given.reference)
                verdicts = run_parts(parts, recorder, lambda part: np.random.default_rng(1))
                won = sum(verdict.part.points for verdict in verdicts if verdict.status == "pass")
                assert won <= sum(part.points for part in parts) / 5, (item, other)


# --- files ----------------------------------------------------------------------------------------------------


def added(*sources):
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]}).encode()


FILES = {  # data of the hand-in, and its status
    "sheets without cells": (
        b'{"worksheets": [{"cells": null}, {"cells": 5}, {"cells": {"a": 1}}]}', "not-a-notebook"),
    "sheets with anything": (b'{"worksheets": [null, {"cells": [1, {"input": "double = 1"}]}]}', None),
    "an f-string without end": (added("double = f'" + "{1}" * 300_000 + "'"), None),
    "a hundred large cells": (added(*["x = [" + "0," * 150_000 + "]"] * 100), None),
    "more cells than memory": (b'{"cells": [' + b"{}," * 2_000_000 + b"{}]}", "too-large"),
    "more lists than memory": (b'{"cells": [{}], "metadata": [' + b"[]," * 2_000_000 + b"0]}", "too-large"),
    "very many cells that are slow to read": (added(*["x = [" + "a+a," * 300 + "]"] * 50_000), None),
    "very many cells": (added(*["double = 1"] * 150_000), None),
    "an integer without end": (b'{"nbformat": ' + b"9" * 100_000 + b', "cells": []}', "not-json"),
    "keys that come twice": (b'{"cells": 1, "cells": [{"source": "x", "source": 3}]}', None),
    "cells by many names": (
        json.dumps({"cells": [{"cell_type": ["code"], "source": {}, "metadata": {"nbgrader": {"grade_id": {}}},
                               "id": [1]}] * 1000}).encode(), None),
    "numbers that are none": (b'{"cells": [{"source": NaN, "metadata": Infinity, "cell_type": -0.0}]}', None),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_bomb_of_a_file_is_read_in_seconds(toy, name):
    data, status = FILES[name]
    start = time.process_time()
    try:
        assert set(rebuild.rebuild(toy, data).sources) == set(toy.items)
        outcome = None
    except rebuild.Unusable as unusable:
        outcome = unusable.status
    assert outcome == status
    assert time.process_time() - start < 10  # of this process alone


def socket_file(path):
    import socket

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


ODD = {  # what lies in the place of the notebook
    "a name that is no text": lambda folder: Path(
        os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.ipynb")).write_text("{}"),
    "a name with terminal codes": lambda folder: (folder / "\x1b]0;x\x07\u202e.ipynb").write_text("{}"),
    "names beyond counting": lambda folder: [(folder / f"{i}\n.ipynb").write_text("{}") for i in range(500)],
    "a pipe": lambda folder: os.mkfifo(folder / "toy.ipynb"),
    "a socket": lambda folder: socket_file(folder / "toy.ipynb"),
    "a folder": lambda folder: (folder / "toy.ipynb").mkdir(),
    "a link to itself": lambda folder: (folder / "toy.ipynb").symlink_to("toy.ipynb"),
    "a link to the memory": lambda folder: (folder / "toy.ipynb").symlink_to("/proc/self/mem"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_told_in_words_that_can_be_stored(tmp_path, name):
    ODD[name](tmp_path)
    try:
        _, notes = rebuild.find(tmp_path, "toy")
    except rebuild.Unusable as unusable:
        notes = [str(unusable)]
    assert all(note.isprintable() and len(note.encode()) < 2000 for note in notes)


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


def test_of_very_many_cells_the_first_are_looked_at_and_it_is_said(toy):
    rebuilt = rebuild.rebuild(toy, added(*["pass"] * (rebuild.MAX_CELLS + 1)))
    assert any(note.startswith("only the first 1000 of the notebook's 1001 cells") for note in rebuilt.notes)
