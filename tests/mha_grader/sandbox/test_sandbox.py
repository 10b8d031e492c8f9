"""What a student's process can reach and use, tried from inside."""

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from mha_grader.sandbox import fork_server, sandbox
from mha_grader.sandbox.fork_server import Layout, Limits, SandboxUnavailable
from mha_grader.sandbox.sandbox import Sandbox, SandboxDied, SandboxMemory, SandboxTimeout

COURSE = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def box():
    with Sandbox(Layout.make(hidden=COURSE)) as box:
        yield box


def run(box, source, seconds=20):
    return box.ask(seconds, op="exec", source=source, label="cell")


def call(box, name, *args, seconds=20, **kwargs):
    fields = {"method": None, "args": list(args), "kwargs": kwargs, "keep": None}
    return box.ask(seconds, op="call", target=name, **fields)


def value(box, expression):
    """Evaluate an expression inside."""
    reply = run(box, f"_value = {expression}")
    assert reply["status"] == "ok", reply
    return box.ask(5, op="get", target="_value")["value"]


def raises(box, source):
    reply = run(box, source)
    assert reply["status"] == "error", reply
    return reply["types"]


# --- out of reach -----------------------------------------------------------------------------------------


def test_the_network_cannot_be_reached(box):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "OSError" in raises(
            box, f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=2)"
        )
    assert "OSError" in raises(box, "import socket; socket.getaddrinfo('example.org', 80)")
    assert value(box, "__import__('os').listdir('/sys') if __import__('os').path.isdir('/sys') else []") == []


@pytest.mark.parametrize(
    "path",
    [
        COURSE,
        COURSE / "gradebook.db",
        COURSE / "submitted",
        COURSE / "solutions",
        COURSE / ".course_secret",
        COURSE / "mha_grader" / "grading" / "judge.py",
        COURSE / "mha_lib",
        Path.home() / ".bashrc",
        Path("/etc/passwd"),
        Path("/etc/shadow"),
        Path("/var"),
        Path("/root/.ssh"),
    ],
    ids=str,
)
def test_files_outside_do_not_exist_inside(box, path):
    assert value(box, f"__import__('os').path.exists({str(path)!r})") is False


def test_no_file_of_the_project_lies_anywhere_inside(box):
    found = value(
        box,
        "[p for d in ('/home', '/packages', '/grader', '/tmp', '/etc', '/usr/local', '/dev') "
        "for r, _, fs in __import__('os').walk(d) for f in fs "
        "if ('mha_' in (p := r + '/' + f) or p.endswith(('.ipynb', 'gradebook.db'))) and 'nbformat' not in p]",
    )
    assert found == []


def test_the_graders_environment_does_not_come_in():
    os.environ["MHA_COURSE_SECRET_FOR_THIS_TEST"] = "secret"
    try:
        with Sandbox() as fresh:
            environment = value(fresh, "dict(__import__('os').environ)")
            block = value(fresh, "open('/proc/self/environ').read()")
    finally:
        del os.environ["MHA_COURSE_SECRET_FOR_THIS_TEST"]
    assert "secret" not in str(environment) + block
    assert set(environment) <= {*fork_server.environment(), "PWD"}


@pytest.mark.parametrize(
    "module", ["mha_lib", "mha_grader", "nbgrader", "pytest", "distributed", "rich", "pip"]
)
def test_other_packages_cannot_be_imported(box, module):
    assert "ModuleNotFoundError" in raises(box, f"import {module}")


@pytest.mark.parametrize(
    "module", ["numpy", "scipy.special", "matplotlib.pyplot", "torch", "einops", "IPython"]
)
def test_packages_for_students_can_be_imported(box, module):
    assert run(box, f"import {module}", 60)["status"] == "ok"


def test_other_processes_cannot_be_seen_or_signalled(box):
    pids = [int(pid) for pid in value(box, "[p for p in __import__('os').listdir('/proc') if p.isdigit()]")]
    assert len(pids) <= 4
    assert os.getpid() not in pids
    assert raises(box, f"import os, signal; os.kill({os.getpid()}, 0)")[0] in (
        "ProcessLookupError",
        "PermissionError",
    )


@pytest.mark.parametrize(
    "path",
    ["/", "/usr/lib/x", "/packages/numpy/x", "/grader/worker.py", "/dev/x", "/etc/x", "/proc/sys/kernel/x"],
)
def test_nothing_of_the_system_can_be_written(box, path):
    target = path if path.endswith((".py", "/x")) else path + "x"
    assert "OSError" in raises(box, f"open({target!r}, 'w')")


def test_there_are_no_capabilities_and_none_to_be_had(box):
    status = value(box, "open('/proc/self/status').read()")
    lines = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {lines[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")} == {"0" * 16}
    assert lines["NoNewPrivs"] == "1"
    assert value(box, "__import__('os').getuid()") != 0


def test_home_is_empty_and_nothing_persists(box):
    assert value(box, "__import__('os').listdir('/tmp')") is not None
    run(box, "open('/tmp/left', 'w').write('x'); open('/home/student/left', 'w').write('x')")
    with Sandbox() as fresh:
        assert value(fresh, "__import__('os').listdir('/home/student')") == []
        assert value(fresh, "__import__('os').path.exists('/tmp/left')") is False


def test_helper_files_lie_beside_the_notebook_and_cannot_be_changed(tmp_path):
    (tmp_path / "helper.py").write_text("answer = 42")
    (tmp_path / "other.ipynb").write_text("{}")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    with Sandbox(Layout.make(tmp_path)) as box:
        assert value(box, "__import__('os').listdir('.')") == ["helper.py"]
        assert value(box, "__import__('helper').answer") == 42
        assert "OSError" in raises(box, "open('helper.py', 'w')")


# --- limits -----------------------------------------------------------------------------------------------


def test_a_cell_that_never_ends_is_killed_with_all_that_it_started():
    with Sandbox() as box:
        run(box, "import subprocess; subprocess.Popen(['sleep', '12345'])")
        with pytest.raises(SandboxTimeout):
            run(box, "while True:\n    try:\n        while True: pass\n    except BaseException: pass", 1)
        with pytest.raises(SandboxDied):
            run(box, "1")
    deadline = time.monotonic() + 10  # the kernel takes a moment to end a whole namespace
    while still_running(b"12345") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not still_running(b"12345")


def still_running(word):
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            commands.append(path.read_bytes())
    return any(word in command for command in commands)


def test_too_much_memory_is_an_error_or_kills():
    limits = Limits(memory=512)
    with Sandbox(limits=limits) as box:
        assert run(box, "import numpy as np; x = np.ones(2**30)")["status"] == "memory"
        assert run(box, "y = 1")["status"] == "ok"  # nothing else is lost
    with Sandbox(limits=limits) as box, pytest.raises((SandboxMemory, SandboxDied)):
        # many processes, each below the limit
        run(
            box,
            "import os, time\nfor i in range(4):\n    if not os.fork():\n        x = b'x' * (200 * 2**20)\n"
            "        time.sleep(30)\ntime.sleep(30)",
        )


def test_the_number_of_processes_is_limited():
    with Sandbox(limits=Limits(processes=20)) as box:
        source = "import os, time\nfor i in range(40):\n    if not os.fork(): time.sleep(60)"
        assert "BlockingIOError" in raises(box, source)


@pytest.mark.parametrize("folder", ["/tmp", "/home/student", "/dev/shm"])
def test_the_disk_is_limited(folder):
    with Sandbox(limits=Limits(file=16, disk=32)) as box:
        assert "OSError" in raises(box, f"open('{folder}/big', 'wb').write(b'x' * (20 * 2**20))")
        source = f"for i in range(20): open('{folder}/' + str(i), 'wb').write(b'x' * (8 * 2**20))"
        assert "OSError" in raises(box, source)


def test_a_flood_of_output_goes_nowhere(box):
    source = "import os, sys\nfor i in range(2000):\n    print('x' * 10000); os.write(2, b'y' * 10000)"
    assert run(box, source)["status"] == "ok"


def test_a_result_beyond_the_cap_ends_the_process_not_the_grader():
    with Sandbox() as box:
        run(box, "import numpy as np\ndef f(): return np.zeros(2**26)")
        with pytest.raises(SandboxDied, match="cap"):
            call(box, "f")


# --- the channel ------------------------------------------------------------------------------------------


def test_calls_go_through_and_changed_arguments_are_named(box):
    run(box, "def f(x, y, *, z):\n    y += 1\n    z[0] = 7\n    return x + y, 'text', [1]")
    reply = call(box, "f", np.ones(3), np.zeros(3), z=np.arange(2))
    assert np.array_equal(reply["value"][0], [2, 2, 2])
    assert reply["value"][1:] == ("text", [1])
    assert reply["changed"] == ["1", "z"]


def test_errors_carry_the_line_in_the_students_cell(box):
    run(box, "def g(x):\n    y = x\n    return y + 'a'")
    reply = call(box, "g", 1)
    assert (reply["types"][0], reply["cell"], reply["line"]) == ("TypeError", "cell", 3)
    reply = run(box, "x = 1\ny = = 2")
    assert (reply["types"][0], reply["line"]) == ("SyntaxError", 2)


@pytest.mark.parametrize(
    "source", ["raise SystemExit", "exit()", "quit()", "import sys; sys.exit(3)", "input()"]
)
def test_leaving_is_only_an_error(box, source):
    run(box, source)
    assert run(box, "1")["status"] == "ok"


@pytest.mark.parametrize(
    "source",
    [
        "%timeit -n1 -r1 1",
        "%%time\n1",
        "%matplotlib inline",
        "!ls",
        "?print",
        "import time\nawait __import__('asyncio').sleep(0)",
    ],
)
def test_what_notebooks_allow_is_allowed(box, source):
    assert run(box, source)["status"] == "ok"


def test_a_process_that_ends_is_noticed_at_once():
    with Sandbox() as box, pytest.raises(SandboxDied):
        run(box, "import os; os._exit(0)", 60)


@pytest.mark.parametrize(
    "forged",
    [
        "b'\\0' * 500",
        "b'\\xff' * 500",
        "__import__('struct').pack('>IQ', 2, 0) + b'{}'",
        "frame({'number': 99, 'status': 'ok'})",
        "frame({'number': None, 'status': 'ok'})",
        "frame({'number': 'x'})",
    ],
)
def test_forged_replies_end_the_process(forged):
    source = (
        "import json, os, struct\n"
        "def frame(message):\n"
        "    header = json.dumps(message).encode()\n"
        "    return struct.pack('>IQ', len(header), 0) + header\n"
        "for name in os.listdir('/proc/self/fd'):\n"
        "    try:\n"
        "        if os.readlink('/proc/self/fd/' + name).startswith('socket:'):\n"
        f"            os.write(int(name), {forged})\n"
        "    except OSError: pass\n"
    )
    with Sandbox() as box, pytest.raises(SandboxDied):
        run(box, source)


def test_a_process_that_does_not_read_is_timed_out():
    with Sandbox() as box:
        run(box, "def f(x): return 1")
        source = (
            "import threading, time, os\n"
            "def stop():\n    time.sleep(0.3)\n    os.kill(os.getpid(), 19)\n"
            "threading.Thread(target=stop).start()"
        )
        run(box, source)
        threading.Event().wait(0.6)
        with pytest.raises(SandboxTimeout):
            call(box, "f", np.zeros(2**22), seconds=1)


# --- the machine ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_fork_server")
def test_without_bubblewrap_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(fork_server.shutil, "which", lambda name: None)
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        sandbox.probe()


@pytest.mark.usefixtures("no_fork_server")
def test_where_namespaces_are_forbidden_nothing_runs(monkeypatch, tmp_path):
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(fork_server.shutil, "which", lambda name: str(refusing))
    with pytest.raises(SandboxUnavailable, match=r"No permissions to create(.|\n)*privileged"):
        sandbox.probe()


def test_leaving_the_grader_kills_the_process():
    box = Sandbox()
    run(box, "import subprocess; subprocess.Popen(['sleep', '54321'])")
    box.close()
    assert not still_running(b"54321")
    assert not psutil.pid_exists(box.pid) or psutil.Process(box.pid).status() == psutil.STATUS_ZOMBIE
    box.close()  # closing twice is fine
