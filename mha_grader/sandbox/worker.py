"""The student's side: runs inside the sandbox, executes cells, answers calls. Knows no test and no answer.

A grader starts it as a script, as a fork server: it imports what students' code will need, and never runs any of
it. Each time that a grader asks, it forks a process that locks itself in (see `confine`) and then is a student's
(see `answering`).
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import os
import select
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

sys.path[:] = [p for p in sys.path if p] + [os.environ["STUDENT_PACKAGES"]]

HUGE, COLLAPSE = 2 * 2**20, 25  # the size of a huge page; of madvise(2), since Linux 6.1
LINGER = 1.0  # seconds that the fork server waits for a grader when it has none

_path = os.path.join(os.path.dirname(__file__), "answering.py")
_spec = importlib.util.spec_from_file_location("_answering", _path)
assert _spec is not None
assert _spec.loader is not None
answering: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(answering)
confine = answering.load_beside("confine")


def prepare(modules: list[str]) -> Any:
    """Import what is needed in any case and start a shell, so that a fork has it at once; returns the shell."""
    gc.disable()  # while much is imported, which stays: collecting takes a quarter of the time
    shell = answering.start_shell(modules)
    while len(os.listdir("/proc/self/task")) > 1:  # only the thread that forks lives on in a fork
        time.sleep(0.01)
    gc.freeze()  # else each fork's collections would copy all of it
    gc.enable()
    use_huge_pages()
    return shell


def use_huge_pages() -> None:
    """Gather what lies in memory into huge pages: a fork then copies a hundred entries in place of 50,000.

    A kernel that cannot do so leaves all as it is.
    """
    with open("/proc/self/maps") as maps:
        regions = [line.split() for line in maps]
    for place, rights, *_, name in (region if len(region) > 5 else [*region, ""] for region in regions):
        first, last = (int(address, 16) for address in place.split("-"))
        first, last = -(-first // HUGE) * HUGE, last // HUGE * HUGE
        if rights == "rw-p" and name in ("", "[heap]") and first < last:
            ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), COLLAPSE)


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
        answering.be_the_students(socket.socket(fileno=confine.CHANNEL), shell)
    except ConnectionError:
        pass  # the grader is gone, and with it who could be told
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing is to be saved, and what was imported need not be taken apart
