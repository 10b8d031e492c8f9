"""What a student's checker is judged by: right styles that it must accept, known mistakes that it should catch.

A candidate is named by a spec, `assignment.item/style/NAME` or `assignment.item/pitfall/SLUG`. It runs in a
sandbox of its own; the checker, in the student's process, can call it and see what it returns, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mha_lib
from mha_grader.sandbox.fork_server import Layout, Limits
from mha_grader.sandbox.sandbox import Sandbox
from mha_lib import pitfalls
from mha_lib.styles import styles

# Executed in the candidates' sandbox, where `mha_lib` can be imported.
DEFINE = """\
from mha_lib import pitfalls, styles
found = {{"style": styles.styles, "pitfall": pitfalls.variants}}[{kind!r}]({assignment!r}, {item!r})
candidate = found[{name!r}]
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


class CandidateSandbox:
    """Runs candidates for checkers; started at the first one."""

    def __init__(self, limits: Limits):
        """Nothing is started yet."""
        self._limits = limits
        self._sandbox: Sandbox | None = None
        self._spec = ""

    def prepare(self, spec: str) -> Sandbox:
        """Start the sandbox, if it does not run, and define the candidate in it.

        Done before a checker is called, it takes nothing of the time that the checker has.
        """
        if self._sandbox is None or self._sandbox.closed:
            library = {"mha_lib": str(Path(mha_lib.__file__).parent)}
            layout = Layout.make(packages=library, imports=("mha_lib.pitfalls", "mha_lib.styles"))
            self._sandbox, self._spec = Sandbox(layout, self._limits), ""
        if spec != self._spec:
            item, kind, name = spec.split("/", 2)
            assignment, item = item.split(".")
            source = DEFINE.format(kind=kind, assignment=assignment, item=item, name=name)
            reply = self._sandbox.ask(30.0, op="exec", label="candidate", source=source)
            if reply["status"] != "ok":
                raise RuntimeError(f"the candidate {spec} is broken: {reply}")
            self._spec = spec
        return self._sandbox

    def call(self, spec: str, args: Any, kwargs: Any) -> dict[str, Any]:
        """Call a candidate with what a checker sent; returns what goes back to the checker.

        Raises:
            SandboxTimeout, SandboxMemory, SandboxDied: the call brought the sandbox down.
        """
        request = {"method": None, "args": args, "kwargs": kwargs, "keep": None, "after": True}
        reply = self.prepare(spec).ask(10.0, op="call", target="candidate", **request)
        return {key: reply.get(key) for key in ("status", "value", "after", "types", "text")}

    def close(self) -> None:
        """Stop it."""
        if self._sandbox is not None:
            self._sandbox.close()
