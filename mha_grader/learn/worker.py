"""The process that runs one's own code: it answers the requests of `process`, and nothing of it is a sandbox.

It is started as a script, so that nothing of this project can be imported in it: what can be imported in the
sandbox can be here, and nothing else that is installed. Limits are set where the system has them.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import socket
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any

MIB = 2**20
_path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sandbox", "answering.py")
_spec = importlib.util.spec_from_file_location("_answering", _path)
assert _spec is not None
assert _spec.loader is not None
answering: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(answering)


class OnlyAllowed:
    """Finds modules: files beside the notebook, and of what is installed what could be imported in the sandbox."""

    find_distributions = staticmethod(importlib.machinery.PathFinder.find_distributions)
    invalidate_caches = staticmethod(importlib.machinery.PathFinder.invalidate_caches)

    def __init__(self, allowed: Sequence[str], beside: str):
        """Allow names of packages, and what lies in the folder `beside`."""
        self._allowed = {*allowed, *sys.stdlib_module_names}
        self._elsewhere = [beside, sysconfig.get_path("stdlib")]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Where a module is; None if it may not be found."""
        if path is None and name not in self._allowed:
            path = self._elsewhere
        return importlib.machinery.PathFinder.find_spec(name, path, target)


def limit(order: dict[str, Any]) -> None:
    """Set limits on memory and on the size of a file, where the system has such limits."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        for kind, mebibytes in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, order["file"]),
            (resource.RLIMIT_DATA, order["memory"]),
        ):
            resource.setrlimit(kind, (mebibytes * MIB, mebibytes * MIB))


def prepare(order: dict[str, Any]) -> Any:
    """The shell for the cells."""
    sys.argv[:] = [""]
    only_allow(order)
    return answering.start_shell(order["imports"])


def only_allow(order: dict[str, Any]) -> None:
    """From here on, find what can be imported in the sandbox, and modules in this folder."""
    only_allowed: Any = OnlyAllowed(order["allowed"], os.getcwd())
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, only_allowed]


def connect(order: dict[str, Any]) -> socket.socket:
    """Connect to the process that has started this one."""
    channel = socket.create_connection(("127.0.0.1", order["port"]))
    channel.settimeout(None)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits for 40 ms
    channel.sendall(order["token"].encode())
    return channel


def main() -> None:
    """Answer the process that has started this one."""
    order = json.loads(sys.stdin.readline())
    channel = connect(order)
    shell = prepare(order)
    limit(order)
    answering.be_the_students(channel, shell)


if __name__ == "__main__":
    main()
