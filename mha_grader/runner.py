"""Runs the hidden test of one item, part by part, and gives each part a verdict.

What is tested may be a student's function in another process or, for the course's own checks, a plain
function in this one (`LocalFunction`): the hidden test is the same text and cannot tell.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_grader import testing, wire
from mha_grader.records import Status
from mha_grader.session import OutOfBudget
from mha_grader.testing import Callee, CallError, Mismatch, Part


@dataclass(frozen=True)
class Call:
    """One call that a part made: what went in and what came out."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None
    error: CallError | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What came of one part."""

    part: Part
    status: Status
    reason: str = ""  # safe for students
    calls: tuple[Call, ...] = field(default=(), repr=False)


class LocalFunction:
    """A function of this process, made to look like a student's: it gets copies, and changes are noticed."""

    def __init__(self, function: Callable[..., Any]):
        """Wrap `function`; only for code that is trusted."""
        self.function = function
        self.changed: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it on copies.

        Raises:
            CallError: if it raises.
        """
        own_args, own_kwargs = copy.deepcopy((args, kwargs))
        try:
            result = plain(self.function(*own_args, **own_kwargs))
        except Exception as error:
            names = [base.__name__ for base in type(error).__mro__ if base is not object]
            raise CallError("error", names, str(error)) from error
        pairs = [(str(i), new, old) for i, (new, old) in enumerate(zip(own_args, args, strict=True))]
        pairs += [(key, own_kwargs[key], old) for key, old in kwargs.items()]
        self.changed = tuple(key for key, new, old in pairs if not same_bits(new, old))
        return result


def plain(value: Any) -> Any:
    """The value as it would arrive from another process."""
    buffers: list[bytes] = []
    tree = wire.encode(value, buffers)
    return wire.decode(tree, memoryview(b"".join(buffers)))


def same_bits(new: Any, old: Any) -> bool:
    """Whether two plain values are equal in every bit."""
    first: list[bytes] = []
    second: list[bytes] = []
    return bool(wire.encode(new, first) == wire.encode(old, second) and first == second)


class Recorder:
    """Stands between a hidden test and the tested function, and keeps the calls."""

    def __init__(self, callee: Callee):
        """Record the calls of `callee`."""
        self.callee = callee
        self.calls: list[Call] = []
        self.changed: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pass the call on; what a test does to its arrays afterwards does not reach the record."""
        args, kwargs = copy.deepcopy((args, kwargs))
        try:
            result = self.callee(*args, **kwargs)
        except CallError as error:
            self.changed = ()
            self.calls.append(Call(args, kwargs, error=error))
            raise
        self.changed = self.callee.changed
        self.calls.append(Call(args, kwargs, result=result, changed=self.changed))
        return copy.deepcopy(result)


def load_parts(source: str, tested: Mapping[str, Any], reference: types.SimpleNamespace) -> list[Part]:
    """Execute a hidden test's text with its names bound; returns its parts in order.

    Args:
        source: text of the hidden block.
        tested: what the item's name (and others) stand for.
        reference: the instructor's solutions by name.

    Raises:
        ValueError: if it defines no part, two of one name, or one that needs a part that is not before it.
    """
    names = {name: getattr(testing, name) for name in testing.__all__}
    namespace: dict[str, Any] = {
        "__name__": "hidden_test",
        "np": np,
        **names,
        "reference": reference,
        **tested,
    }
    exec(compile(source, "<hidden test>", "exec"), namespace)
    parts = [value for value in namespace.values() if isinstance(value, Part)]
    if not parts:
        raise ValueError("the hidden test defines no part")
    seen: set[str] = set()
    for each in parts:
        missing = set(each.needs) - seen
        if missing:
            raise ValueError(f"part {each.name!r} needs {sorted(missing)}, which is not a part before it")
        seen.add(each.name)
    return parts


def seed(secret: bytes, assignment_version: str, item: str, part: str) -> np.random.Generator:
    """The part's random generator: the same at every grading of this version, and nobody's guess."""
    text = "\0".join((assignment_version, item, part)).encode()
    digest = hmac.new(secret, text, hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest))


def run_parts(
    parts: Sequence[Part], recorder: Recorder | None, generator: Callable[[Part], np.random.Generator]
) -> list[Verdict]:
    """Run each part whose needs are met.

    Args:
        parts: as `load_parts` returns them.
        recorder: what the tested name stands for in them; None if the item is not a function.
        generator: makes a part's random generator.
    """
    verdicts: list[Verdict] = []
    passed: set[str] = set()
    for part in parts:
        unmet = [name for name in part.needs if name not in passed]
        if unmet:
            reason = f"not run, since it rests on the part “{unmet[0]}”"
            verdicts.append(Verdict(part, "not-run", reason))
            continue
        if recorder is not None:
            recorder.calls = []
        status, reason = _run(part, generator(part))
        if status == "pass":
            passed.add(part.name)
        verdicts.append(Verdict(part, status, reason, tuple(recorder.calls) if recorder else ()))
    return verdicts


def _run(part: Part, rng: np.random.Generator) -> tuple[Status, str]:
    try:
        with np.errstate(all="ignore"):
            part.run(rng)
    except Mismatch as mismatch:
        return "fail", str(mismatch)
    except CallError as error:
        return describe_error(error)
    except OutOfBudget:
        return "timeout", "the time for this item is used up"
    return "pass", ""


def describe_error(error: CallError, show_text: bool = False) -> tuple[Status, str]:
    """Status and words for a call without result. The error's own text is shown only on public inputs."""
    if error.kind == "timeout":
        return "timeout", "your code did not come to an end within its time"
    if error.kind == "memory":
        return "memory", "your code used more memory than it may"
    if error.kind == "missing":
        return "error", "the name is not defined after your cell has run"
    if error.kind == "died":
        return "error", "the process that ran your code ended"
    if "NotImplementedError" in error.type_names:
        return "error", "it is not written yet: it raises NotImplementedError"
    place = f" on line {error.line} of your cell" if error.line else ""
    text = f": {clean(error.text)}" if show_text and error.text else ""
    return "error", f"your code raised {clean(error.type_names[0])}{place}{text}"


def clean(text: str, length: int = 300) -> str:
    """Text of a student's process, made harmless for terminals and short."""
    text = "".join(c if c.isprintable() or c == " " else " " for c in text)
    return text if len(text) <= length else text[: length - 1] + "…"
