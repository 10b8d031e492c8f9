"""A student's notebook, running: cells are executed in order, functions are called, crashes are survived.

A session holds one sandboxed process at a time. When the process is killed (time, memory) or ends, the next
request starts a fresh one and executes again what had been executed, without the cell that brought it down. A
checker gets a fresh one for each candidate.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from mha_grader.sandbox import clock
from mha_grader.sandbox.asking import Asked, SandboxDied, SandboxMemory, SandboxTimeout
from mha_grader.sandbox.fork_server import Layout, Limits
from mha_grader.sandbox.sandbox import Sandbox
from mha_grader.testing.candidates import Candidates, CandidateSandbox
from mha_grader.testing.errors import CallError
from mha_grader.testing.replies import is_answer, read_reply


@dataclass(frozen=True)
class Budget:
    """Wall-clock seconds that a student's code may take."""

    cell: float = 10.0  # one cell of the assignment
    added: float = 5.0  # one cell that the student added
    call: float = 10.0  # one call of a function
    item: float = 60.0  # all calls of one item's hidden tests
    submission: float = 240.0  # everything else
    again: float = 240.0  # all cells once more, before each call of a checker


class OutOfBudget(Exception):  # noqa: N818 - it is a verdict
    """The item or the submission has used up its time; nothing more of it is run."""


class Session:
    """Runs one student's cells and calls. Use it as a context manager."""

    def __init__(
        self,
        layout: Layout = Layout(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        budget: Budget = Budget(),
    ):
        """Nothing is started before the first cell."""
        self.layout, self.limits, self.budget = layout, limits, budget
        self.log: list[str] = []
        self._sandbox: Asked | None = None
        self._candidates = self.candidates()
        self._executed: list[tuple[str, str, float]] = []
        self.deadline = clock.seconds() + budget.submission
        self._item_deadline = self.deadline
        self._spare = budget.again

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()
        self._candidates.close()

    def process(self) -> Asked:
        """A new process for the student's code."""
        return Sandbox(self.layout, self.limits)

    def candidates(self) -> Candidates:
        """What runs the candidates that a student's checker judges."""
        return CandidateSandbox(self.limits)

    def start_item(self) -> None:
        """From here on, calls are counted against a new item's budget."""
        self._item_deadline = min(self.deadline, clock.seconds() + self.budget.item)

    def execute(self, label: str, source: str, seconds: float) -> CallError | None:
        """Execute one cell. Returns why it failed, or None.

        Raises:
            OutOfBudget: if the submission's time is used up.
        """
        try:
            reply = self._ask(
                min(seconds, self.deadline - clock.seconds()), op="exec", label=label, source=source
            )
        except CallError as failure:
            self._note(f"cell {label}: {failure.kind}")
            return failure
        self._executed.append((label, source, seconds))
        try:
            read_reply(reply, label)
        except CallError as failure:
            self._note(f"cell {label}: {failure.type_names[:1]} {failure.text[:500]!r} line {failure.line}")
            return failure
        return None

    def _note(self, line: str) -> None:
        """Put a line into the log, once however often the cells are executed."""
        if line not in self.log:
            self.log.append(line)

    def perform(self, request: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
        """Carry out a request (see `requests`); returns its value and which arguments it changed in place.

        Raises:
            CallError: if the student's code raised, or its process could not answer.
            OutOfBudget: if the item's or the submission's time is used up.
        """
        reply = (
            self._check(request) if request["op"] == "check" else self._ask(self._call_seconds(), **request)
        )
        value, changed = read_reply(reply, request["target"])
        if not is_answer(request, value):
            raise CallError("died")
        return value, changed

    def _check(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have a checker judge a candidate, in a process in which it judges no other: it can remember none.

        The student's process does not learn which candidate it is.
        """
        begin = clock.seconds()
        self._candidates.start(request["candidate"])
        self.forget()
        self._restart()
        spent = min(clock.seconds() - begin, self._spare)
        self._spare -= spent
        self.deadline += spent
        self._item_deadline += spent
        try:
            return self._ask(self._call_seconds(), **{**request, "candidate": None, "serve": self._serve})
        finally:
            self.forget()

    def forget(self) -> None:
        """End the process, and with it all that cells have not written down; the next request starts a new one."""
        self._close()

    def digest(self) -> bytes:
        """Stands for all that was executed: it is another one wherever a byte of it is."""
        return hashlib.sha256(repr(self._executed).encode(errors="surrogatepass")).digest()

    def _serve(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer a call that a checker makes to a candidate."""
        return self._candidates.call(asked.get("args"), asked.get("kwargs"))

    def _call_seconds(self) -> float:
        return min(self.budget.call, self._item_deadline - clock.seconds())

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
        todo = self._executed
        while self._sandbox is None:
            self._sandbox = self.process()
            executed, self._executed = todo, []
            for number, (label, source, seconds) in enumerate(executed):
                if clock.seconds() > self.deadline:
                    raise OutOfBudget
                self.execute(label, source, seconds)
                if self._sandbox is None:  # a cell that went well before brought it down: leave it out
                    todo = executed[:number] + executed[number + 1 :]
                    break

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
