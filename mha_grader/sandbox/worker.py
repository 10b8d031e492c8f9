"""The student's side: runs inside the sandbox, executes cells, answers calls. Knows no test and no answer.

A grader starts it as a script, as a fork server: it imports what students' code will need, and never runs any of
it. Each time that a grader asks, it forks a process that locks itself in (see `confine`) and then is a student's.
That one reads one request at a time and answers it under the request's number. Everything in it can be tampered
with by the code that it executes; nothing that it says about itself is believed.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import json
import os
import select
import socket
import sys
import time
import traceback
import types
from typing import Any, NoReturn

sys.path[:] = [p for p in sys.path if p] + [os.environ["STUDENT_PACKAGES"]]

import numpy as np  # noqa: E402 - only now can it be found
import numpy.random  # noqa: E402 - which NumPy imports late

LINGER = 1.0  # seconds that the fork server waits for a grader when it has none


def load_beside(name: str) -> Any:
    """A module that lies beside this file, which is on no import path."""
    spec = importlib.util.spec_from_file_location(
        f"_{name}", os.path.join(os.path.dirname(__file__), f"{name}.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"_{name}"] = module
    spec.loader.exec_module(module)
    return module


confine = load_beside("confine")
wire = load_beside("wire")
requests = load_beside("requests")


def start_shell() -> Any:
    """An IPython shell without history, files or output, so that a cell means what it means in a notebook."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    shell.user_module = main
    shell.user_ns = main.__dict__
    shell.init_user_ns()
    for quiet in ("showtraceback", "showsyntaxerror", "enable_gui"):
        setattr(shell, quiet, lambda *args, **kwargs: None)
    return shell


def execute(shell: Any, source: str, label: str) -> dict[str, Any]:
    """Run one cell as a notebook would."""
    shell.compile.get_code_name = lambda *args: f"<cell {label}>"
    result = shell.run_cell(source, store_history=False, silent=True)
    error = result.error_before_exec or result.error_in_exec
    return requests.failure(error) if error is not None else {"status": "ok"}


def candidate(channel: socket.socket, read: Any, number: int) -> Any:
    """A function that asks the grader for its results."""

    def ask(args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        wire.send(channel, {"number": number, "status": "candidate", "args": args, "kwargs": kwargs})
        answer: dict[str, Any] = wire.parse(wire.read_frame(read))
        return answer

    return requests.candidate(ask)


def in_a_fork(action: Any) -> bool:
    """Run `action` in a copy of this process, so that nothing it does stays here; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def reader(channel: socket.socket) -> Any:
    """A function that reads exactly so many bytes."""

    def read(size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = channel.recv_into(view)
            if not count:
                os._exit(0)  # the grader is gone
            view = view[count:]
        return data

    return read


def respond(
    channel: socket.socket, read: Any, performer: Any, shell: Any, frame: Any, request: dict[str, Any]
) -> None:
    """Carry out the request that came in a frame and send the reply."""
    number = request["number"]
    performer.candidate = lambda _: candidate(channel, read, number)
    try:
        if request["op"] == "exec":
            reply = execute(shell, request["source"], request["label"])
        else:
            reply = performer.perform(request, wire.parse(frame))
        wire.send(channel, {"number": number, **reply})
    except BaseException as error:  # of the student's code, or while its result was made into data
        wire.send(channel, {"number": number, **requests.failure(error)})


def be_the_students(channel: socket.socket, shell: Any) -> None:
    """Answer requests until the grader closes the channel."""
    np.random.seed()
    read = reader(channel)
    performer = requests.Operations(shell.user_ns, wire.same_bits)
    sys.path.insert(0, os.getcwd())
    wire.send(channel, {"number": 0, "status": "ok"})
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    while True:
        frame = wire.read_frame(read)
        request = wire.parse(frame)
        answer = functools.partial(respond, channel, read, performer, shell, frame, request)
        if request["op"] != "check" and not request.get("copy"):
            answer()
        elif not in_a_fork(answer):  # a checker is run in a copy, so that it cannot keep count
            os._exit(1)


def prepare(modules: list[str]) -> Any:
    """Import what is needed in any case and start a shell, so that a fork has it at once; returns the shell."""
    shell = start_shell()
    execute(shell, "pass", "first")  # IPython imports much when it is first used
    for name in modules:
        with contextlib.suppress(ImportError):  # then the student's own import says so
            importlib.import_module(name)
    while len(os.listdir("/proc/self/task")) > 1:  # only the thread that forks lives on in a fork
        time.sleep(0.01)
    gc.collect()
    gc.freeze()  # else each fork's collections would copy all of it
    return shell


def main() -> None:
    """Fork a locked-in process for each order of a grader, until no grader is left."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    shell = prepare(sys.argv[2:])
    sys.argv[:] = [""]
    os.sched_setaffinity(0, range(os.cpu_count() or 1))  # the grader that started it may be bound to one
    this = os.pidfd_open(os.getpid())
    graders: set[socket.socket] = set()
    while readable := select.select([listener, *graders], [], [], None if graders else LINGER)[0]:
        for ready in readable:
            grader = listener.accept()[0] if ready is listener else ready
            try:
                if ready is listener:
                    socket.send_fds(grader, [b"ready"], [this])
                    graders.add(grader)
                elif not carry_out(grader, shell, [listener, *graders]):
                    raise ConnectionError
            except OSError:
                graders.discard(grader)
                grader.close()


def carry_out(grader: socket.socket, shell: Any, connections: list[socket.socket]) -> bool:
    """Fork a process as a grader orders; whether it could be done. A grader that is gone orders nothing."""
    order, descriptors, _, _ = socket.recv_fds(grader, 65536, 1)
    if not descriptors:
        return False
    with socket.socket(fileno=descriptors[0]) as channel:
        if os.fork() == 0:
            launch(grader, channel, json.loads(order), shell, connections)
        return os.wait()[1] == 0


def launch(
    grader: socket.socket,
    channel: socket.socket,
    order: dict[str, Any],
    shell: Any,
    connections: list[socket.socket],
) -> NoReturn:
    """Fork the student's process and tell the grader which one it is."""
    try:
        confine.be_first(lambda child: socket.send_fds(grader, [b"forked"], [child]))
        for connection in connections:
            connection.detach()  # the descriptors are closed with all others
        confine.enter(channel, order)
        be_the_students(socket.socket(fileno=confine.CHANNEL), shell)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
