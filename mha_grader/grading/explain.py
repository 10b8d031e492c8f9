"""Explain a verdict: what a student reads about a part.

The misconception is named if it is known; if it is not, a difference on a public example is shown. The sentences
about errors and known mistakes are in `messages`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mha_grader.course.assignment import Assignment
from mha_grader.course.mistakes import Mistake
from mha_grader.course.records import ItemRecord, PartRecord
from mha_grader.grading.diagnose import gap
from mha_grader.grading.judge import Judged, Verdict
from mha_grader.grading.messages import NOT_WRITTEN, account, capital, describe_error
from mha_grader.grading.session import OutOfBudget
from mha_grader.sandbox.text import clean
from mha_grader.testing.errors import CallError
from mha_grader.testing.modules import filled
from mha_grader.testing.proxies import Recorder, local
from mha_grader.testing.values import as_array, describe, is_tensor, show


@dataclass(frozen=True)
class Example:
    """Both sides of a public example: what the item's name stands for, and the reference."""

    item: str
    tested: Callable[..., Any]
    reference: Callable[..., Any]


def explain_parts(assignment: Assignment, judged: Judged, found: Mapping[str, str]) -> tuple[PartRecord, ...]:
    """The records of an item's parts, while the student's code is still there to be tried on public examples.

    Args:
        assignment: the assignment.
        judged: what came of the item with the student's own code before it.
        found: slugs of the recognised mistakes by the name of the failed part.
    """
    if assignment.plain:
        return tuple(explain(verdict, None, None) for verdict in judged.verdicts)
    reference = getattr(assignment.reference, judged.item)
    trial = callable(reference) and judged.tested is not None
    example = Example(judged.item, judged.tested, reference) if trial else None
    names = vars(assignment.reference)
    own = {known.slug: known for known in assignment.mistakes if known.item == judged.item}
    return tuple(
        explain(verdict, found.get(verdict.part.name), example, names, own) for verdict in judged.verdicts
    )


def revised_parts(
    assignment: Assignment, record: ItemRecord, again: Judged, found: Mapping[str, str]
) -> tuple[PartRecord, ...]:
    """The records of an item's parts once it was tested again, with right code for earlier items.

    Args:
        assignment: the assignment.
        record: the item's record of the first time.
        again: what came of the item the second time.
        found: slugs of the mistakes that were recognised then, by the name of the failed part.
    """
    names = vars(assignment.reference)
    own = {known.slug: known for known in assignment.mistakes if known.item == record.item}
    return tuple(
        _revised(part, verdict.status == "pass", found.get(part.name), names, own)
        for part, verdict in zip(record.parts, again.verdicts, strict=True)
    )


def explain(
    verdict: Verdict,
    slug: str | None,
    example: Example | None,
    names: Container[str] = (),
    own: Mapping[str, Mistake] = types.MappingProxyType({}),
) -> PartRecord:
    """The part's record, with a message that holds no hidden input.

    Args:
        verdict: on the student's own code.
        slug: the recognised mistake.
        example: both sides of a public example.
        names: of the assignment's code, which are not written with a capital at the start of a sentence.
        own: mistakes of the assignment's own file, by slug.
    """
    part = verdict.part
    message = verdict.reason
    if slug is not None:
        message = account(slug, own)
    elif verdict.reason == NOT_WRITTEN:
        message = f"{verdict.reason}."
    elif verdict.status in ("fail", "error") and example is not None and part.example is not None:
        message = f"{verdict.reason}.\n{difference(part.example, example)}"
    elif message:
        message = f"{message}."
    message = capital(message, names)
    return PartRecord(
        part.name,
        part.points,
        verdict.status,
        part.proves,
        slug,
        message,
        verdict.reason,
        title=own[slug].title if slug is not None and slug in own else "",
        in_process=part.in_process,
    )


def _revised(
    part: PartRecord, passed: bool, slug: str | None, names: Container[str], own: Mapping[str, Mistake]
) -> PartRecord:
    if part.status == "pass":
        return part
    if passed:
        return PartRecord(part.name, part.max_points, "pass", part.proves, carried=True)
    if slug is None:
        return part
    title = own[slug].title if slug in own else ""
    return replace(part, pitfall=slug, title=title, message=capital(account(slug, own), names))


def difference(expression: str, example: Example) -> str:
    """Evaluate an expression on public inputs with the student's function and with the reference."""
    names = {"np": np, "torch": sys.modules.get("torch"), "filled": filled}
    reference = Recorder(local(**{example.item: example.reference})).bind(example.item, example.reference)
    try:
        expected = eval(expression, {**names, example.item: reference})
    except CallError as error:
        return _different_error(expression, {**names, example.item: example.tested}, error.type_names[0])
    try:
        got = eval(expression, {**names, example.item: example.tested})
        found = first_difference(got, expected)
    except CallError as error:
        return f"Try it yourself: {expression}\n{describe_error(error, show_text=True)[1]}."
    except OutOfBudget:
        return f"Try it yourself: {expression}"
    except Exception:  # the expression looks into a result that is not what it should be
        return f"Try it yourself: {expression}\nexpected {show(expected)}"
    if found is None:
        return (
            f"On the public example {expression} your answer is right; "
            "the hidden tests use other shapes, sizes and numbers, and call your code more than once."
        )
    return f"Try it yourself: {expression}\n{found}"


def _different_error(expression: str, names: dict[str, Any], wanted: str) -> str:
    """What an expression gives that should raise an error of the class `wanted`."""
    try:
        got = eval(expression, names)
    except CallError as error:
        if wanted in error.type_names:
            text = clean(error.text, 200) or "(none)"
            return (
                f"On the public example {expression} your code raises a {wanted}, as it should; "
                f"its text is: {text}"
            )
        return (
            f"Try it yourself: {expression}\nexpected a {wanted}; {describe_error(error, show_text=True)[1]}."
        )
    except OutOfBudget:
        return f"Try it yourself: {expression}"
    return f"Try it yourself: {expression}\nexpected a {wanted}, got {show(got)}"


def first_difference(got: Any, expected: Any, place: str = "the result") -> str | None:
    """Where two values first differ, what was expected there and what came; None if they do not."""
    if isinstance(expected, tuple):
        if not isinstance(got, tuple | list) or len(got) != len(expected):
            return f"expected {len(expected)} values, got {describe(got)}"
        pairs = enumerate(zip(got, expected, strict=True))
        found = (first_difference(one, other, f"value {i} of the result") for i, (one, other) in pairs)
        return next((text for text in found if text is not None), None)
    if is_tensor(expected):
        if not is_tensor(got):
            return f"expected a tensor of shape {tuple(expected.shape)}, got {describe(got)}"
        if got.dtype != expected.dtype:
            return f"expected dtype {expected.dtype}, got dtype {got.dtype}"
        return first_difference(as_array(got), as_array(expected), place)
    if isinstance(expected, np.ndarray | np.generic):
        expected = np.asarray(expected)
        if not isinstance(got, np.ndarray):
            return f"expected an array of shape {expected.shape}, got {describe(got)}"
        if got.shape != expected.shape:
            return f"expected shape {expected.shape}, got shape {got.shape}"
        for index in np.ndindex(expected.shape):
            if gap(got[index][None], expected[index][None]) > 1.0:
                at = f"at index {list(index)} of {place}: " if index else ""
                return f"{at}expected {show(expected[index])}, got {show(got[index])}"
        if (got.dtype.kind == "b") != (expected.dtype.kind == "b"):
            return f"expected dtype {expected.dtype}, got dtype {got.dtype}"
        return None
    same = type(got) is type(expected) and got == expected
    return None if same else f"expected {show(expected)}, got {show(got)}"


def reason(part: PartRecord) -> str:
    """What tells one reason from another: errors come with different examples, but their first line says all."""
    return part.pitfall or (part.message if part.status == "fail" else part.message.partition("\n")[0])


def repeats(item: ItemRecord) -> dict[str, str]:
    """For parts that fail for a reason given before: the name of the part where it was given, by part."""
    first: dict[str, str] = {}
    found = {}
    for part in item.parts:
        if part.status not in ("pass", "not-run") and first.setdefault(reason(part), part.name) != part.name:
            found[part.name] = first[reason(part)]
    return found
