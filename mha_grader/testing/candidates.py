"""What a student's checker is judged by: right styles that it must accept, known mistakes that it should catch.

A candidate is named by a spec, `assignment.item/style/NAME` or `assignment.item/pitfall/SLUG`. It runs in a
sandbox of its own; the checker, in the student's process, can call it and see what it returns, nothing else.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import mha_lib
from mha_grader.sandbox import wire
from mha_grader.sandbox.asking import SandboxDied, SandboxMemory, SandboxTimeout
from mha_grader.sandbox.fork_server import Layout, Limits
from mha_grader.sandbox.sandbox import Sandbox
from mha_lib import pitfalls
from mha_lib.pitfalls import calls
from mha_lib.styles import styles

# Executed in the candidates' sandbox, where `mha_lib` can be imported; it takes as long for each candidate.
DEFINE = """\
from mha_lib import pitfalls, styles
found = {{"style": styles.styles({assignment!r}, {item!r}), "pitfall": pitfalls.variants({assignment!r}, {item!r})}}
candidate = found[{kind!r}][{name!r}]
"""


def right(item: str) -> list[str]:
    """Specs of the right styles of `assignment.item`."""
    return [f"{item}/style/{name}" for name in styles(*item.split("."))]


def wrong(item: str) -> list[str]:
    """Specs of the known mistakes in `assignment.item`."""
    return [f"{item}/pitfall/{slug}" for slug in pitfalls.variants(*item.split("."))]


def resolve(spec: str) -> Callable[..., Any]:
    """The candidate itself, for checks of this process, which are trusted."""
    item, kind, name = spec.split("/", 2)
    found = {"style": styles, "pitfall": pitfalls.variants}[kind](*item.split("."))
    function: Callable[..., Any] = found[name]
    return function


def told(reply: dict[str, Any]) -> dict[str, Any]:
    """What a checker learns of a call: values, or that there was an error; nothing names their source."""
    if reply["status"] == "ok":
        return {"status": "ok", "value": _nameless(reply["value"]), "after": _nameless(reply["after"])}
    return {"status": "error" if reply["status"] == "error" else "none"}


def call(
    spec: str, args: Any, kwargs: Any, ask: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """What a checker is told of a call, which is passed on if the contract of the candidate's item allows it.

    Args:
        spec: names the candidate.
        args: what the checker sent.
        kwargs: what the checker sent.
        ask: has the candidate, which it knows as `candidate`, carry out a request.
    """
    sent = isinstance(args, list) and isinstance(kwargs, dict)
    arguments = calls.allowed(spec.split("/", 1)[0], args, kwargs) if sent else None
    if arguments is None:
        return {"status": "outside"}
    args, kwargs = arguments
    request = {"op": "call", "target": "candidate", "method": None, "args": args, "kwargs": kwargs}
    return told(ask({**request, "keep": None, "after": True}))


def _nameless(value: Any) -> Any:
    """Plain data as it is; in place of anything else, no word of what it was."""
    if isinstance(value, wire.Opaque):
        return wire.Opaque("object")
    if isinstance(value, list | tuple):
        return type(value)(map(_nameless, value))
    if isinstance(value, dict):
        return {key: _nameless(item) for key, item in value.items()}
    return value


class Candidates(Protocol):
    """Runs one candidate after the other for a checker."""

    def start(self, spec: str) -> None:
        """End the candidate before, and start this one."""

    def call(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """What goes back to the checker for a call of the candidate."""

    def close(self) -> None:
        """Stop it."""


class CandidateSandbox:
    """Runs the candidate that a checker judges, in a process of its own: no other one was in it before."""

    def __init__(self, limits: Limits):
        """Nothing is started yet."""
        self._limits = limits
        self._sandbox: Sandbox | None = None
        self._spec = ""

    def start(self, spec: str) -> None:
        """End the process of the candidate before, and define this one in a fresh one.

        Done before a checker is called, it takes nothing of the time that the checker has.
        """
        self.close()
        item, kind, name = spec.split("/", 2)
        assignment, item = item.split(".")
        self._spec, self._sandbox = spec, Sandbox(layout(assignment), self._limits)
        source = DEFINE.format(kind=kind, assignment=assignment, item=item, name=name)
        reply = self._sandbox.ask(30.0, op="exec", label="candidate", source=source)
        if reply["status"] != "ok":
            raise RuntimeError(f"the candidate {spec} is broken: {reply}")

    def call(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """Call the candidate with what a checker sent; returns what goes back to the checker.

        A call that brings its process down gave no result; the next one finds a fresh process.
        """
        try:
            return call(self._spec, args, kwargs, self._ask)
        except (SandboxTimeout, SandboxMemory, SandboxDied):
            self.start(self._spec)
            return {"status": "none"}

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._sandbox is not None
        return self._sandbox.ask(10.0, **request)

    def close(self) -> None:
        """Stop it."""
        if self._sandbox is not None:
            self._sandbox.close()


@functools.cache
def layout(assignment: str) -> Layout:
    """Where the candidates of an assignment are found, all of them imported before the first fork."""
    modules = ["mha_lib.pitfalls", f"mha_lib.styles.{assignment}"]
    code = importlib.import_module(f"mha_lib.pitfalls.code.{assignment}")
    modules += [f"{code.__name__}.{module.name}" for module in pkgutil.iter_modules(code.__path__)]
    return Layout.make(packages={"mha_lib": str(Path(mha_lib.__file__).parent)}, imports=tuple(modules))
