"""The process from which sandboxes are forked: nothing goes from it, or through it, from one student to another."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from mha_grader.grading.grade import grade_submission
from mha_grader.sandbox import fork_server, syscalls
from mha_grader.sandbox.fork_server import KEPT, Layout, Limits, SandboxUnavailable, ServerGone
from mha_grader.sandbox.sandbox import Sandbox, process_number

ROOT = Path(__file__).parents[3]
TORCH = Layout.make(imports=("torch", "torch.nn", "matplotlib.pyplot", "mha_lib.heads"))
NAMESPACES = ("mnt", "pid", "net", "ipc")


def run(box, source, seconds=20):
    reply = box.ask(seconds, op="exec", source=source, label="cell")
    assert reply["status"] == "ok", reply


def value(box, expression):
    run(box, f"_value = {expression}")
    return box.ask(5, op="get", target="_value")["value"]


def server_process(layout):
    """The fork server itself."""
    return psutil.Process(process_number(fork_server.get(layout).process))


def kill(server):
    """Kill a fork server and all that it forked, and wait until it has ended."""
    psutil.Process(process_number(server.process)).parent().kill()  # the first process of its namespace
    assert server.has_ended(20)


def wait_until_gone(pids):
    psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=20)
    for pid in pids:
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


# --- what comes in --------------------------------------------------------------------------------------------


def test_modules_of_the_layout_are_there_and_others_are_not():
    assert TORCH.imports == ("torch", "torch.nn", "matplotlib.pyplot")
    names = (
        "[name for name in ('torch', 'torch._dynamo', 'matplotlib.pyplot', 'mha_lib') if name in sys.modules]"
    )
    with Sandbox(TORCH) as box:
        run(box, "import sys")
        assert value(box, names) == ["torch", "torch._dynamo", "matplotlib.pyplot"]
    with Sandbox() as box:
        run(box, "import sys")
        assert value(box, names) == []


def test_it_has_one_thread_and_a_fork_of_it_computes():
    with Sandbox(TORCH) as box:
        assert server_process(TORCH).num_threads() == 1
        run(
            box,
            "import torch, threading\n"
            "x = torch.ones(300, 300, requires_grad=True)\n"
            "(x @ x).sum().backward()\n"
            "torch.nn.Linear(3, 2).to('meta')(torch.empty(1, 3, device='meta'))",
        )
        assert value(box, "float(x.grad[0, 0])") == 600
    assert server_process(TORCH).num_threads() == 1


def test_only_the_channel_is_open():
    with Sandbox() as box:
        kinds = value(box, "[__import__('os').readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2, 3)]")
        numbers = value(box, "[int(n) for n in __import__('os').listdir('/proc/self/fd')]")
    assert kinds[:3] == ["/dev/null"] * 3
    assert kinds[3].startswith("socket:")
    assert len(numbers) == 5  # the last is that of the listing


def test_a_program_that_the_student_starts_does_not_get_the_channel():
    with Sandbox() as box:
        run(box, "import subprocess")
        listed = value(
            box, "subprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True).stdout.split()"
        )
    assert "3" not in listed or len(listed) == 4  # the descriptor of its own listing


# --- nothing goes from one to the next ------------------------------------------------------------------------


def test_each_process_has_namespaces_of_its_own():
    with Sandbox() as first, Sandbox() as second:  # together: the numbers of what has ended are used again
        seen = [
            {name: os.readlink(f"/proc/{process}/ns/{name}") for name in NAMESPACES}
            for process in ("self", server_process(Layout()).pid)
        ]
        for box in (first, second):
            seen.append(
                value(box, f"{{n: __import__('os').readlink('/proc/self/ns/' + n) for n in {NAMESPACES}}}")
            )
    for name in NAMESPACES:
        assert len({each[name] for each in seen}) == len(seen), name


LEAVE = """\
import builtins, os, random, socket, sys
import numpy as np
builtins.left = np.left = random.left = sys.left = sys.modules["_wire"].left = "here"
os.environ["LEFT"] = "here"
for folder in ("/tmp", "/home/student", "/dev/shm"):
    open(folder + "/left", "w").write("here")
keep = os.openpty()
for device in ("null", "zero", "full", "random", "urandom", "tty"):
    try: os.utime("/dev/" + device)
    except OSError: pass
socket.socket(socket.AF_UNIX).bind("\\0left")
random.seed(0); np.random.seed(0)
"""


def test_nothing_that_one_leaves_behind_is_there_for_the_next():
    start = time.time()
    with Sandbox() as first:
        run(first, LEAVE)
        with Sandbox() as beside:
            found_beside = look(beside, start)
    with Sandbox() as after:
        assert look(after, start) == found_beside == []


def look(box, start):
    run(box, "import builtins, os, random, socket, sys\nimport numpy as np")
    run(box, "modules = (builtins, np, random, sys, sys.modules['_wire'])")
    run(box, "found = [module.__name__ for module in modules if hasattr(module, 'left')]")
    run(box, "found += [os.environ['LEFT']] if 'LEFT' in os.environ else []")
    run(box, "found += [d for d in ('/tmp', '/home/student', '/dev/shm') if 'left' in os.listdir(d)]")
    run(box, "found += [line for line in open('/proc/self/net/unix') if 'left' in line]")
    run(box, "found += [name for name in os.listdir('/dev/pts') if name != 'ptmx']")
    devices = ("null", "zero", "full", "random", "urandom", "tty")
    run(box, f"found += [d for d in {devices} if os.stat('/dev/' + d).st_mtime > {start}]")
    return value(box, "found")


def test_random_numbers_are_drawn_anew_in_each():
    drawn = []
    for _ in range(2):
        with Sandbox() as box:
            run(box, "import random, numpy as np, uuid, tempfile")
            drawn.append(
                value(box, "(random.random(), float(np.random.rand()), uuid.uuid4().hex, tempfile.mktemp())")
            )
    assert all(first != second for first, second in zip(*drawn, strict=True))


def test_each_process_has_a_user_of_its_own_where_users_can_be_changed():
    with Sandbox() as first, Sandbox() as second:
        uids = {psutil.Process(box.pid).uids() for box in (first, second)}
        assert len(uids) == (2 if os.geteuid() == 0 else 1)


def test_the_first_process_of_the_namespace_cannot_be_looked_into_or_ended():
    with Sandbox() as box:
        run(
            box,
            "import os, signal, time\n"
            "for number in signal.valid_signals():\n"
            "    os.kill(1, number)\n"
            "time.sleep(0.2)",
        )
        for name in ("mem", "environ", "maps", "fd"):
            reply = box.ask(
                5,
                op="exec",
                label="cell",
                source=f"open('/proc/1/{name}', 'rb'); os.listdir('/proc/1/{name}')",
            )
            assert reply["types"][0] == "PermissionError", (name, reply)
        assert value(box, "1") == 1


def test_how_many_files_there_may_be_is_limited():
    with Sandbox() as box:
        source = "for i in range(30_000): open(f'/tmp/{i}', 'w').close()"
        assert "OSError" in box.ask(60, op="exec", label="cell", source=source)["types"]


def test_what_hides_a_folder_cannot_be_written_to_and_so_is_no_place_to_leave_things():
    with Sandbox(Layout.make(hidden=Path(sys.base_prefix) / "include")) as box:
        mounts = value(box, "[line.split()[4:6] for line in open('/proc/self/mountinfo')]")
    (options,) = [
        options for place, options in mounts if place == f"{Path(sys.base_prefix).resolve()}/include"
    ]
    assert options.startswith("ro,")


def test_the_kernel_ends_it_before_the_grader_and_leaves_no_dump_of_it():
    with Sandbox() as box:
        assert value(box, "int(open('/proc/self/oom_score_adj').read())") == 1000
        # With 0, a machine whose core_pattern is a program would start that one, outside.
        assert value(box, "__import__('resource').getrlimit(__import__('resource').RLIMIT_CORE)") == (1, 1)


# --- how long it lives ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_fork_server")
def test_one_server_serves_many_and_is_replaced_when_it_is_gone():
    with Sandbox():
        first = fork_server.get(Layout())
    with Sandbox():
        assert fork_server.get(Layout()) is first
    kill(first)
    with Sandbox() as box:
        assert value(box, "1") == 1
        second = fork_server.get(Layout())
        assert second is not first
        signal.pidfd_send_signal(second.process, signal.SIGKILL)  # it alone, and not what it forked
        assert second.has_ended(20)
        assert value(box, "2") == 2


GRADER = """\
import sys, time
from pathlib import Path
from mha_grader.sandbox import fork_server
from mha_grader.sandbox.sandbox import Sandbox, process_number
fork_server._folder = lambda: Path(sys.argv[1])
box = Sandbox()
print(process_number(fork_server.get(fork_server.Layout()).process), box.pid, flush=True)
source = "import subprocess\\nsubprocess.Popen(['sleep', '1000'])\\nwhile True: pass"
box.ask(1000, op="exec", label="cell", source=source)
"""


@contextlib.contextmanager
def another_grader(folder):
    """Another process that grades, whose student's code never ends; then the server's pid and that code's."""
    with subprocess.Popen(
        [sys.executable, "-c", GRADER, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, *map(int, process.stdout.readline().split())
        finally:
            process.kill()


@pytest.mark.usefixtures("no_fork_server")
def test_all_graders_share_one_server_and_one_that_is_killed_ends_its_own_sandboxes_only():
    folder = fork_server._folder()
    with another_grader(folder) as (first, server, box), another_grader(folder) as (second, same, other_box):
        assert server == same
        with Sandbox() as own:
            assert server_process(Layout()).pid == server
            children = [child.pid for child in psutil.Process(box).children(recursive=True)]
            assert len(children) == 2  # the student's process, and the one that it started
            first.kill()
            wait_until_gone([box, *children])
            assert psutil.pid_exists(other_box)
            assert value(own, "1 + 1") == 2
        fork_server.get(Layout()).stop()
        time.sleep(2)
        assert psutil.pid_exists(server)  # there still is a grader
        second.kill()
        wait_until_gone([server, other_box])


@pytest.mark.usefixtures("no_fork_server")
def test_a_server_that_is_killed_before_it_is_ready_is_started_again(monkeypatch):
    real, started = fork_server._start, []

    def start(path, layout, line):
        started.append(line)
        return real(path, layout, ["/bin/false"] if len(started) == 1 else line)  # it ends without a word

    monkeypatch.setattr(fork_server, "_start", start)
    with Sandbox() as box:
        assert value(box, "1") == 1
    assert len(started) == 2


@pytest.mark.usefixtures("no_fork_server")
def test_graders_that_start_together_start_one_server():
    found = []

    def grade():
        with Sandbox():
            found.append(process_number(fork_server.get(Layout()).process))

    threads = [threading.Thread(target=grade) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 5
    assert len(set(found)) == 1


def test_a_grader_with_other_code_has_a_server_of_its_own(monkeypatch):
    line = fork_server.command(Layout())
    names = {fork_server._socket_name(Layout(), line) for _ in range(2)}
    names.add(fork_server._socket_name(Layout(imports=("torch",)), line))
    names.add(fork_server._socket_name(Layout(), [*line, "--"]))
    monkeypatch.setattr(fork_server, "INSIDE_FILES", ("worker.py",))
    names.add(fork_server._socket_name(Layout(), line))
    assert len(names) == 4


def test_a_folder_that_others_can_enter_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(fork_server.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = fork_server._folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o750)
    with pytest.raises(SandboxUnavailable, match="only you can enter"):
        fork_server._folder()
    folder.rename(tmp_path / "other")
    (tmp_path / "other").chmod(0o700)
    folder.symlink_to(tmp_path / "other")
    with pytest.raises(SandboxUnavailable, match="only you can enter"):
        fork_server._folder()


def test_a_process_runs_where_its_grader_may():
    before = os.sched_getaffinity(0)
    for processors in ({min(before)}, {max(before)}, before):
        os.sched_setaffinity(0, processors)
        with Sandbox() as box:
            assert set(value(box, "list(__import__('os').sched_getaffinity(0))")) == processors


@pytest.mark.usefixtures("no_fork_server")
def test_a_few_are_kept_and_none_that_is_in_use_is_stopped(tmp_path):
    layouts = []
    for number in range(KEPT + 1):
        (tmp_path / "file.txt").write_text("x" * number)  # another file, another layout
        layouts.append(Layout.make(tmp_path))
    with Sandbox(layouts[0]) as box:
        for layout in layouts[1:]:
            with Sandbox(layout):
                pass
        assert value(box, "1") == 1
        assert list(fork_server._servers.by_layout) == [layouts[0], *layouts[2:]]


@pytest.mark.usefixtures("no_fork_server")
def test_it_ends_with_the_thread_that_was_its_last_grader():
    started = []

    def start():
        with Sandbox():
            started.append(server_process(Layout()).pid)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    wait_until_gone(started)
    assert len(started) == 1


@pytest.mark.usefixtures("no_fork_server")
def test_a_server_that_is_killed_costs_no_student_anything(toy, settings, monkeypatch):
    real, killed = Sandbox.ask, []

    def ask(self, seconds, serve=None, **request):
        if request.get("op") == "call" and len(killed) < 1:
            killed.append(kill(self._server))
        return real(self, seconds, serve, **request)

    monkeypatch.setattr(Sandbox, "ask", ask)
    cells = [
        {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": item}}}
        for item, source in (
            ("double", "double = lambda x: 2 * x"),
            ("quadruple", "quadruple = lambda x: 4 * x"),
        )
    ]
    handed_in = json.dumps({"cells": cells}).encode()
    record = grade_submission(toy, settings, handed_in)
    assert killed == [None]
    assert record == grade_submission(toy, settings, handed_in)
    assert {item.item: item.score for item in record.items}["quadruple"] == 1.5
    with Sandbox() as box:
        kill(box._server)
        with pytest.raises(ServerGone):
            run(box, "import time; time.sleep(15)")


def fork_for_a_grader_that_is_gone(server):
    """Have it fork a process whose channel nobody holds any more, and wait until that has ended."""
    channel, theirs = socket.socketpair()
    channel.close()
    with theirs:
        forked = server.fork(theirs, Limits())
    assert select.select([forked], [], [], 20)[0]
    os.close(forked)


@pytest.mark.usefixtures("no_fork_server")
def test_a_process_whose_grader_is_gone_says_nothing():
    server = fork_server.get(Layout())
    for _ in range(60):  # it notices at one place or another
        fork_for_a_grader_that_is_gone(server)
    assert server._path.with_suffix(".log").read_bytes() == b""
    with Sandbox() as box:
        assert value(box, "1") == 1


@pytest.mark.usefixtures("no_fork_server")
def test_what_a_server_said_of_another_process_is_no_reason_why_this_one_fails(monkeypatch):
    server, other = fork_server.get(Layout()), fork_server.ForkServer(Layout())
    monkeypatch.setattr(other, "_filter", "ff" * 8)  # a process cannot lock itself in with it
    fork_for_a_grader_that_is_gone(other)
    assert b"Invalid argument" in server._path.with_suffix(".log").read_bytes()
    kill(server)
    with pytest.raises(ServerGone, match="it gave no reason"):
        fork_for_a_grader_that_is_gone(server)


# --- the machine ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_fork_server")
def test_a_process_that_cannot_lock_itself_in_runs_nothing_and_says_why(monkeypatch):
    monkeypatch.setattr(syscalls, "program", lambda: b"\xff" * 8)
    with pytest.raises(SandboxUnavailable, match=r"prctl(.|\n)*Invalid argument(.|\n)*privileged"):
        Sandbox()


AS_SOMEBODY = """\
from mha_grader.sandbox.sandbox import Sandbox
with Sandbox() as box:
    box.ask(20, op="exec", label="cell", source="import os; status = os.getuid(), open('/proc/self/status').read()")
    uid, status = box.ask(5, op="get", target="status")["value"]
fields = dict(line.split(":\\t") for line in status.splitlines() if ":\\t" in line)
print(uid, *(fields[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh", "NoNewPrivs", "Seccomp")))
"""


def test_it_needs_no_root():
    command = [sys.executable, "-B", "-c", AS_SOMEBODY]
    if os.geteuid() == 0:
        command = as_nobody(command)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1000", *["0" * 16] * 5, "1", "2"], done.stderr


def as_nobody(command):
    """The command as the user nobody, who can read Python and this project wherever they are."""
    bwrap = [shutil.which("bwrap"), "--dev-bind", "/", "/"]
    needed = sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix), ROOT})
    closed = {path for place in needed for path in place.parents if not path.stat().st_mode & 1}
    for path in sorted(closed):
        bwrap += ["--tmpfs", str(path)]
    for place in needed:
        for path in reversed(place.parents):
            bwrap += ["--dir", str(path)]  # else bubblewrap makes it on the way, for root only
        bwrap += ["--ro-bind", str(place), str(place)]
    rights = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    return [*bwrap, "--", "setpriv", *rights, *command]
