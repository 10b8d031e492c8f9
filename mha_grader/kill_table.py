"""Tests the hidden tests: the reference and every right style must pass, every wrong variant must lose, named.

`table` runs the hidden test of an item on trusted functions in this process, with the code that grades students.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mha_grader import diagnosis
from mha_grader.assignment import Assignment
from mha_grader.records import Status
from mha_grader.runner import load_parts, run_parts, seed
from mha_grader.tested import Recorder, local
from mha_lib import pitfalls
from mha_lib.styles import styles

Kind = Literal["reference", "stub", "style", "pitfall"]


@dataclass(frozen=True)
class Row:
    """How one function fared."""

    kind: Kind
    name: str
    statuses: Mapping[str, Status]  # by part
    slugs: Mapping[str, str]  # the recognised mistake by failed part
    reasons: Mapping[str, str]
    score: float
    max_score: float


def table(assignment: Assignment, item: str, secret: bytes) -> list[Row]:
    """A row for the reference, the stub, each right style and each wrong variant of an item."""
    reference = getattr(assignment.reference, item)
    rows = [judge(assignment, item, "reference", "reference", reference, secret)]
    rows.append(judge(assignment, item, "stub", "stub", _stub(reference), secret))
    for name, style in styles(assignment.name, item).items():
        rows.append(judge(assignment, item, "style", name, style, secret))
    for slug, variant in pitfalls.variants(assignment.name, item).items():
        rows.append(judge(assignment, item, "pitfall", slug, variant, secret))
    return rows


def judge(
    assignment: Assignment,
    item: str,
    kind: Kind,
    name: str,
    tested: Any,
    secret: bytes,
    *,
    diagnose: bool = True,
) -> Row:
    """Run the item's hidden test on one function, class or value; recognise its mistakes if `diagnose`."""
    recorder = Recorder(local(**{item: tested}))
    reference = getattr(assignment.reference, item)
    hidden = assignment.cell("test", item).hidden
    parts = load_parts(hidden, {item: recorder.bind(item, reference)}, assignment.reference)
    version = f"{assignment.name} {assignment.version}"
    verdicts = run_parts(parts, recorder, lambda part: seed(secret, version, item, part.name))
    known = pitfalls.variants(assignment.name, item) if diagnose else {}
    slugs = diagnosis.recognise(item, verdicts, known)
    return Row(
        kind=kind,
        name=name,
        statuses={verdict.part.name: verdict.status for verdict in verdicts},
        slugs=slugs,
        reasons={verdict.part.name: verdict.reason for verdict in verdicts},
        score=sum(verdict.part.points for verdict in verdicts if verdict.status == "pass"),
        max_score=sum(verdict.part.points for verdict in verdicts),
    )


def _stub(reference: Any) -> Any:
    if not callable(reference):
        return dict.fromkeys(reference) if isinstance(reference, dict) else None

    def stub(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    return stub
