"""The student's side: runs inside the sandbox, executes cells, answers calls. Knows no test and no answer.

The grader starts it as a script with the number of the channel's descriptor. It reads one request at a time
and answers it under the request's number. Everything here can be tampered with by the code that it executes;
nothing that it says about itself is believed.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
import types
from typing import Any

sys.path[:] = [p for p in sys.path if p] + [os.environ["STUDENT_PACKAGES"]]


def load_wire() -> Any:
    """The module beside this file, which is on no import path."""
    spec = importlib.util.spec_from_file_location("_wire", os.path.join(os.path.dirname(__file__), "wire.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["_wire"] = module
    spec.loader.exec_module(module)
    return module


wire = load_wire()


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


class Worker:
    """Executes requests on one namespace."""

    def __init__(self) -> None:
        self.shell = start_shell()
        self.objects: dict[int, Any] = {}  # what stays here and is named by a handle

    def execute(self, source: str, label: str) -> dict[str, Any]:
        """Run one cell as a notebook would."""
        self.shell.compile.get_code_name = lambda *args: cell_name(label)
        result = self.shell.run_cell(source, store_history=False, silent=True)
        error = result.error_before_exec or result.error_in_exec
        return failure(error) if error is not None else {"status": "ok"}

    def get(self, name: str) -> dict[str, Any]:
        """The value of a variable."""
        if name not in self.shell.user_ns:
            return {"status": "missing"}
        return {"status": "ok", "value": self.shell.user_ns[name]}

    def call(self, name: str, arguments: Any, pristine: Any) -> dict[str, Any]:
        """Call a function with arguments, and tell which of them it changed in place."""
        args, kwargs = arguments
        if name not in self.shell.user_ns:
            return {"status": "missing"}
        value = self.shell.user_ns[name](*args, **kwargs)
        old_args, old_kwargs = pristine
        changed = [
            str(i) for i, (new, old) in enumerate(zip(args, old_args, strict=True)) if differs(new, old)
        ]
        changed += [key for key in kwargs if differs(kwargs[key], old_kwargs[key])]
        return {"status": "ok", "value": value, "changed": changed}


def cell_name(label: str) -> str:
    """The file name under which a cell's code is compiled."""
    return f"<cell {label}>"


def differs(new: Any, old: Any) -> bool:
    """Whether two plain values differ in any bit."""
    first: list[bytes] = []
    second: list[bytes] = []
    return bool(wire.encode(new, first) != wire.encode(old, second) or first != second)


def failure(error: BaseException) -> dict[str, Any]:
    """What went wrong, with the place in the student's own cells."""
    names = [base.__name__ for base in type(error).__mro__ if base is not object]
    text = str(error)[:2000]
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return {"status": "memory"}
    cell, line = "", None
    if isinstance(error, SyntaxError):
        cell, line = str(error.filename), error.lineno
        text = str(error.msg)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<cell "):
            cell, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return {
        "status": "error",
        "types": names,
        "text": text,
        "cell": cell.removeprefix("<cell ").removesuffix(">"),
        "line": line,
    }


def answer(worker: Worker, request: dict[str, Any], pristine: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request; whatever the student's code raises becomes a reply."""
    try:
        if request["op"] == "exec":
            return worker.execute(request["source"], request["label"])
        if request["op"] == "get":
            return worker.get(request["name"])
        return worker.call(request["name"], request["arguments"], pristine["arguments"])
    except BaseException as error:
        return failure(error)


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


def main() -> None:
    """Answer requests until the grader closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    read = reader(channel)
    worker = Worker()
    sys.path.insert(0, os.getcwd())
    sys.argv[:] = [""]
    wire.send(channel, {"number": 0, "status": "ok"})
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    while True:
        frame = wire.read_frame(read)
        request = wire.parse(frame)
        reply = answer(worker, request, wire.parse(frame))
        try:
            wire.send(channel, {"number": request["number"], **reply})
        except Exception as error:  # the value could not be encoded: its own code raised
            wire.send(channel, {"number": request["number"], **failure(error)})


if __name__ == "__main__":
    main()
