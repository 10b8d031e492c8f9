"""A student's notebook, running: cells are executed in order, functions are called, crashes are survived.

A session holds one sandboxed process at a time. When the process is killed (time, memory) or ends, the next
request starts a fresh one and executes again what had been executed, without the cell that brought it down.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mha_grader.sandbox import Limits, Sandbox, SandboxDied, SandboxMemory, SandboxTimeout
from mha_grader.testing import CallError


@dataclass(frozen=True)
class Budget:
    """Wall-clock seconds that a student's code may take."""

    cell: float = 10.0  # one cell of the assignment
    added: float = 5.0  # one cell that the student added
    call: float = 10.0  # one call of a function
    item: float = 60.0  # all calls of one item's hidden tests
    submission: float = 240.0  # everything


class OutOfBudget(Exception):  # noqa: N818 - it is a verdict
    """The item or the submission has used up its time; nothing more of it is run."""


class Session:
    """Runs one student's cells and calls. Use it as a context manager."""

    def __init__(
        self,
        files: Path | None = None,
        limits: Limits = Limits(),  # noqa: B008
        budget: Budget = Budget(),
        secrets: Path | None = None,
    ):
        """Nothing is started before the first cell."""
        self.files, self.limits, self.budget, self.secrets = files, limits, budget, secrets
        self.log: list[str] = []
        self._sandbox: Sandbox | None = None
        self._executed: list[tuple[str, str, float]] = []
        self._deadline = time.monotonic() + budget.submission
        self._item_deadline = self._deadline

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def start_item(self) -> None:
        """From here on, calls are counted against a new item's budget."""
        self._item_deadline = min(self._deadline, time.monotonic() + self.budget.item)

    def execute(self, label: str, source: str, seconds: float) -> CallError | None:
        """Execute one cell. Returns why it failed, or None.

        Raises:
            OutOfBudget: if the submission's time is used up.
        """
        try:
            reply = self._ask(
                min(seconds, self._deadline - time.monotonic()), op="exec", label=label, source=source
            )
        except CallError as failure:
            self.log.append(f"cell {label}: {failure.kind}")
            return failure
        self._executed.append((label, source, seconds))
        try:
            _check(reply, label)
        except CallError as failure:
            self.log.append(
                f"cell {label}: {failure.type_names[:1]} {failure.text[:500]!r} line {failure.line}"
            )
            return failure
        return None

    def value(self, name: str) -> Any:
        """The value of a variable, as plain data.

        Raises:
            CallError: if there is none, or the process could not answer.
        """
        reply = self._ask(self._call_seconds(), op="get", name=name)
        _check(reply, name)
        return reply.get("value")

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
        """Call a function; returns its result and which arguments it changed in place.

        Raises:
            CallError: if it raised, or the process could not answer.
            OutOfBudget: if the item's or the submission's time is used up.
        """
        reply = self._ask(self._call_seconds(), op="call", name=name, arguments=[list(args), kwargs])
        _check(reply, name)
        changed = reply.get("changed")
        return reply.get("value"), tuple(map(str, changed)) if isinstance(changed, list) else ("?",)

    def _call_seconds(self) -> float:
        return min(self.budget.call, self._item_deadline - time.monotonic())

    def _ask(self, seconds: float, **request: Any) -> dict[str, Any]:
        if self._sandbox is None:
            self._restart()
        if seconds <= 0:
            raise OutOfBudget
        assert self._sandbox is not None
        try:
            return self._sandbox.ask(seconds, **request)
        except SandboxTimeout:
            kind = "timeout"
        except SandboxMemory:
            kind = "memory"
        except SandboxDied as died:
            kind = "died"
            self.log.append(f"the process was ended: {died}")
        self._close()
        raise CallError(kind)

    def _restart(self) -> None:
        self._sandbox = Sandbox(self.files, self.limits, self.secrets)
        executed, self._executed = self._executed, []
        for label, source, seconds in executed:
            if self._sandbox is None:  # a cell that went well before brought this process down: leave it out
                self._sandbox = Sandbox(self.files, self.limits, self.secrets)
            if time.monotonic() > self._deadline:
                raise OutOfBudget
            self.execute(label, source, seconds)

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


class RemoteFunction:
    """A student's function, as a hidden test sees it: calling it runs it in the student's process."""

    def __init__(self, session: Session, name: str):
        """Bind the name; nothing is called yet."""
        self._session, self._name = session, name
        self.changed: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Send the arguments, return the result.

        Raises:
            CallError: if the call gave no result.
        """
        value, self.changed = self._session.call(self._name, args, kwargs)
        return value


def _check(reply: dict[str, Any], name: str) -> None:
    """Raise the `CallError` that a reply stands for, if it is not `ok`."""
    status = reply["status"]
    if status == "ok":
        return
    if status in ("memory", "missing"):
        raise CallError(status)
    types, line = reply.get("types"), reply.get("line")
    names = [str(t)[:80] for t in types] if isinstance(types, list) else []
    own_cell = reply.get("cell") == name
    raise CallError(
        "error",
        names or ["Exception"],
        str(reply.get("text", "")),
        line if own_cell and type(line) is int else None,
    )
