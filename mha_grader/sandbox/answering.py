"""What a process that runs a student's code does: it executes cells and answers calls. It knows no test, no answer.

It reads one request at a time and answers it under the request's number. Everything in it can be tampered with by
the code that it executes; nothing that it says about itself is believed. Nothing here needs Linux.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import socket
import sys
import types
from typing import Any

import numpy as np
import numpy.random  # which NumPy imports late


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


wire = load_beside("wire")
requests = load_beside("requests")


def start_shell(modules: list[str]) -> Any:
    """An IPython shell without history, files or output, so that a cell means what it means in a notebook.

    Modules that cells are known to import, and what IPython imports late, are imported before it is returned.
    """
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
    execute(shell, "pass", "first")  # IPython imports much when it is first used
    for name in modules:
        with contextlib.suppress(ImportError):  # then the student's own import says so
            importlib.import_module(name)
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


def respond(channel: socket.socket, read: Any, performer: Any, shell: Any, request: dict[str, Any]) -> None:
    """Carry out a request and send the reply."""
    number = request["number"]
    performer.candidate = lambda _: candidate(channel, read, number)
    try:
        if request["op"] == "exec":
            reply = execute(shell, request["source"], request["label"])
        else:
            pristine = {name: wire.arriving(request.get(name)) for name in ("args", "kwargs")}
            reply = performer.perform(request, pristine)
        wire.send(channel, {"number": number, **reply})
    except BaseException as error:  # of the student's code, or while its result was made into data
        wire.send(channel, {"number": number, **requests.failure(error)})


def be_the_students(channel: socket.socket, shell: Any) -> None:
    """Answer requests until the grader closes the channel; the shell executes the cells."""
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
        respond(channel, read, performer, shell, wire.parse(wire.read_frame(read)))
