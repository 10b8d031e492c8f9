"""A student's function or class as a hidden test sees it.

Calling it makes a request, which something carries out: the student's process, or, for the course's own checks,
`local` in this one. The hidden test cannot tell. Every request is recorded, so that it can be replayed.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_grader.sandbox import wire
from mha_grader.sandbox.requests import Operations, candidate, failure
from mha_grader.testing.candidates import call, resolve
from mha_grader.testing.errors import CallError
from mha_grader.testing.replies import read_reply

PLAIN = frozenset({str, bool, int, float, type(None), wire.Handle, wire.Opaque})
MAX_KEPT = 2**20  # bytes of one result in the record: far more than a right one, and than known mistakes give
Perform = Callable[[dict[str, Any]], tuple[Any, tuple[str, ...]]]


@dataclass(frozen=True)
class Step:
    """One request that a part made, and what came of it."""

    request: dict[str, Any]
    value: Any = None
    error: CallError | None = None
    changed: tuple[str, ...] = ()


def local(**names: Any) -> Perform:
    """Carry out requests on trusted objects of this process, as if they were a student's in another one."""
    operations = Operations(names, wire.same_bits)
    operations.candidate = _candidate

    def perform(request: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
        try:
            reply = _through_wire(operations.perform(_through_wire(request), request))
        except Exception as error:
            reply = failure(error)
        return read_reply(reply, request["target"])

    return perform


def _candidate(spec: str) -> Callable[..., Any]:
    """A candidate as a checker meets it in the student's process."""
    return candidate(answers_of(spec))


def answers_of(spec: str) -> Callable[[Any, Any], dict[str, Any]]:
    """What a checker is told when it calls a candidate, which is trusted and runs in this process."""
    operations = Operations({"candidate": resolve(spec)}, wire.same_bits)

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        try:
            return _through_wire(operations.perform(_through_wire(request), request))
        except Exception as error:
            return failure(error)

    return lambda args, kwargs: call(spec, wire.arriving(args), wire.arriving(kwargs), ask)


def _through_wire(message: dict[str, Any]) -> dict[str, Any]:
    """The message as it would arrive in another process."""
    return {name: wire.arriving(value) for name, value in message.items()}


def _copied(value: Any) -> Any:
    """A copy of plain data; `copy.deepcopy` is several times slower on the small arrays of tests."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if kind in (list, tuple):
        return kind(map(_copied, value))
    if kind is np.ndarray:
        return value.copy()
    if hasattr(value, "clone"):  # a tensor
        return value.detach().clone()
    return copy.deepcopy(value)


def _size(value: Any) -> int:
    """About how many bytes plain data takes."""
    if isinstance(value, dict):
        return _size(list(value)) + _size(list(value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return getattr(value, "nbytes", 0) or sys.getsizeof(value)


class Recorder:
    """Stands between a hidden test and whatever carries its requests out, and keeps what happened."""

    def __init__(self, perform: Perform):
        """Record what goes through `perform`."""
        self._perform = perform
        self.steps: list[Step] = []
        self._kept = 0

    def start_part(self) -> None:
        """Forget the steps; the objects of the part before are no longer needed."""
        self.steps, self._kept = [], 0

    def bind(self, name: str, reference: Any) -> Any:
        """What a hidden test has under an item's name: a stand-in for a class or function, else the value.

        Raises:
            CallError: if there is no such value.
        """
        if isinstance(reference, type):
            return TestedClass(self, name)
        if callable(reference):
            return TestedFunction(self, name)
        return self.request("get", name)[0]

    def request(self, op: str, target: str | wire.Handle, **fields: Any) -> tuple[Any, tuple[str, ...]]:
        """Carry out one request (see `requests`).

        Raises:
            CallError: if it gave no result.
        """
        if "args" in fields:
            fields["args"] = [_handle_of(value) for value in fields["args"]]
            fields["kwargs"] = {key: _handle_of(value) for key, value in fields["kwargs"].items()}
        # A copy, since what a test does to its arrays afterwards must not reach the record.
        request: dict[str, Any] = _copied({"op": op, "target": target, **fields})
        try:
            value, changed = self._perform(request)
        except CallError as error:
            self.steps.append(Step(request, error=error))
            raise
        kept = value if _size(value) <= MAX_KEPT else wire.Opaque("something large")
        self.steps.append(Step(request, kept, changed=changed))
        return _copied(value), changed

    def keep(
        self,
        target: str | wire.Handle,
        method: str | None,
        args: Any,
        kwargs: Any,
        parameters: dict[str, Any] | None = None,
    ) -> TestedObject:
        """Call the target, and leave the result where it is; if it is a module, try to fill it with parameters.

        Raises:
            CallError: if the call gave no result.
        """
        self._kept += 1
        value, changed = self.request(
            "call",
            target,
            method=method,
            args=list(args),
            kwargs=kwargs,
            keep=self._kept,
            parameters=parameters,
        )
        kept = TestedObject(self, wire.Handle(self._kept))
        kept.changed = changed  # by the call that made it
        kept.filled = value is True
        return kept


class TestedFunction:
    """A function, or a method of a kept object, that runs elsewhere."""

    __test__ = False  # for pytest: it is not a test

    def __init__(self, recorder: Recorder, target: str | wire.Handle, method: str | None = None):
        """Bind the name; nothing is called yet."""
        self._recorder, self._target, self._method = recorder, target, method
        self.changed: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Send the arguments, return the result.

        Raises:
            CallError: if the call gave no result.
        """
        self.changed = ("?",)
        value, self.changed = self._recorder.request(
            "call", self._target, method=self._method, args=list(args), kwargs=kwargs, keep=None
        )
        return value

    def gradients(self, args: Sequence[Any], wrt: Sequence[int | str], cotangent: Any) -> list[Any]:
        """See `testing.gradients`."""
        value, _ = self._recorder.request(
            "gradients",
            self._target,
            method=self._method,
            args=list(args),
            kwargs={},
            wrt=list(wrt),
            cotangent=cotangent,
        )
        if not isinstance(value, list) or len(value) != len(wrt):
            raise CallError("died")  # what runs there is not the program that was started
        return value

    def keep(self, *args: Any, **kwargs: Any) -> TestedObject:
        """See `testing.keep`."""
        return self._recorder.keep(self._target, self._method, args, kwargs)

    def construct(self, path: str, *args: Any, **kwargs: Any) -> TestedObject:
        """See `testing.construct`."""
        return self._recorder.keep(path, None, args, kwargs)

    def installed(self, path: str) -> TestedClass:
        """See `testing.installed`."""
        return TestedClass(self._recorder, path)

    def check(self, candidate: str) -> dict[str, Any]:
        """See `testing.checker_parts`."""
        value, _ = self._recorder.request("check", self._target, candidate=candidate)
        return dict(value)


def _handle_of(value: Any) -> Any:
    return value.handle if isinstance(value, TestedObject) else value


class TestedClass:
    """A class that lives elsewhere: calling it makes an object there."""

    __test__ = False

    def __init__(self, recorder: Recorder, name: str):
        """Bind the name; nothing is made yet."""
        self._recorder, self._name = recorder, name

    def __call__(self, *args: Any, **kwargs: Any) -> TestedObject:
        """Make an object.

        Raises:
            CallError: if that failed.
        """
        return self._recorder.keep(self._name, None, args, kwargs)

    def make(self, parameters: dict[str, Any], *args: Any, **kwargs: Any) -> TestedObject:
        """Make a module, load its parameters and put it into eval mode; `filled` says whether that went well.

        Raises:
            CallError: if it could not be made.
        """
        return self._recorder.keep(self._name, None, args, kwargs, parameters)

    def construct(self, path: str, *args: Any, **kwargs: Any) -> TestedObject:
        """See `testing.construct`."""
        return self._recorder.keep(path, None, args, kwargs)


class TestedObject(TestedFunction):
    """An object that lives elsewhere: it can be called, so can its methods, and it can be an argument."""

    filled = False  # whether it got its parameters, and is in eval mode, when it was made

    @property
    def handle(self) -> wire.Handle:
        """Its name there."""
        assert isinstance(self._target, wire.Handle)
        return self._target

    def load_parameters(self, parameters: dict[str, Any]) -> None:
        """See `testing.load_parameters`."""
        self._recorder.request("load", self._target, parameters=parameters)

    def __getattr__(self, name: str) -> TestedFunction:
        """A method of the object."""
        if name.startswith("_"):
            raise AttributeError(name)
        return TestedFunction(self._recorder, self._target, name)
