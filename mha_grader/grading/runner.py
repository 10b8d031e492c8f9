"""Runs the hidden test of one item, part by part, and gives each part a verdict."""

from __future__ import annotations

import hashlib
import hmac
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_grader.course.records import Status
from mha_grader.grading.session import OutOfBudget
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.testing import testing
from mha_grader.testing.proxies import Recorder, Step
from mha_grader.testing.testing import CallError, Mismatch, Part

# Errors whose texts speak of names and types of the code, not of the numbers that it was given.
ABOUT_CODE = frozenset(
    {"NameError", "UnboundLocalError", "AttributeError", "TypeError", "ModuleNotFoundError"}
)
NOT_WRITTEN = "it is not written yet: it raises NotImplementedError"


@dataclass(frozen=True)
class Verdict:
    """What came of one part."""

    part: Part
    status: Status
    reason: str = ""  # safe for students
    steps: tuple[Step, ...] = field(default=(), repr=False)


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
    values = [value if isinstance(value, list) else [value] for value in namespace.values()]
    parts = [part for value in values for part in value if isinstance(part, Part)]
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
    parts: Sequence[Part], recorder: Recorder, generator: Callable[[Part], np.random.Generator]
) -> list[Verdict]:
    """Run each part whose needs are met, and give it a verdict.

    The others get the verdict `not-run`. Their steps are recorded all the same, unless the code hangs or
    devours memory: more inputs help to tell one mistake from another.

    Args:
        parts: as `load_parts` returns them.
        recorder: what their tested names are bound to.
        generator: makes a part's random generator.
    """
    verdicts: list[Verdict] = []
    passed: set[str] = set()
    safe = True
    for part in parts:
        unmet = [name for name in part.needs if name not in passed]
        recorder.start_part()
        if safe or not unmet:
            status, reason = _run(part, generator(part))
            safe = safe and status not in ("timeout", "memory")
        if unmet:
            status, reason = "not-run", f"not run, since it rests on the part “{unmet[0]}”"
        elif status == "pass":
            passed.add(part.name)
        verdicts.append(Verdict(part, status, reason, tuple(recorder.steps)))
    return verdicts


def _run(part: Part, rng: np.random.Generator) -> tuple[Status, str]:
    try:
        with np.errstate(all="ignore"):
            part.run(rng)
    except Mismatch as mismatch:
        return "fail", clean(str(mismatch), 600)
    except CallError as error:
        return describe_error(error)
    except OutOfBudget:
        return "timeout", "the time for this item is used up"
    except SandboxUnavailable:  # the machine's fault, not the student's
        raise
    except Exception:  # the test looks into a result that is not what it should be, and trips over it
        return "fail", "the result is not of the kind that was asked for"
    return "pass", ""


def describe_error(error: CallError, show_text: bool = False) -> tuple[Status, str]:
    """Status and words for a call without result.

    The error's own text is shown on public inputs; on hidden ones if it speaks of code, and then without numbers.
    """
    if error.kind == "timeout":
        return "timeout", "your code did not come to an end within its time"
    if error.kind == "memory":
        return "memory", "your code used more memory than it may"
    if error.kind == "missing":
        return "error", "the name that was asked for is not defined after your cell has run"
    if error.kind == "died":
        return "error", "the process that ran your code ended"
    if "NotImplementedError" in error.type_names:
        return "error", NOT_WRITTEN
    place = f" on line {error.line} of your cell" if error.line else ""
    text = clean(error.text) if show_text else _about_code(error)
    text = f": {text}" if text else ""
    return "error", f"your code raised {clean(error.type_names[0])}{place}{text}"


def _about_code(error: CallError) -> str:
    """The error's text without its numbers, if it speaks of code; else nothing."""
    return clean(re.sub(r"\d+", "#", error.text), 120) if error.type_names[0] in ABOUT_CODE else ""


def clean(text: str, length: int = 300) -> str:
    """Text of a student's process, made harmless for terminals and short."""
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)  # terminal codes, whole
    text = "".join(c if c.isprintable() or c == " " else " " for c in text)
    return text if len(text) <= length else text[: length - 1] + "…"
