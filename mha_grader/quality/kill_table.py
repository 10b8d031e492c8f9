"""Tests the hidden tests: the reference and every right style must pass, every wrong variant must lose, named.

`table` runs the hidden test of an item on trusted functions in this process, with the code that grades students.
`python -m mha_grader.quality.kill_table` writes the result as a page of the book, `book/kill_table.md`; with
names of assignments behind it, it prints their sections and writes nothing.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mha_grader.course.assignment import Assignment, assignment_names, in_teaching_order, load_assignment
from mha_grader.course.records import Status
from mha_grader.grading import diagnose
from mha_grader.grading.judge import load_parts, run_parts, seed
from mha_grader.grading.replay import Memory
from mha_grader.testing.proxies import Recorder, local
from mha_lib import pitfalls
from mha_lib.styles import styles

PUBLIC_SECRET = b"one"  # the draws of the published table; students meet others
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


def table(assignment: Assignment, item: str, secret: bytes, *, named: bool = True) -> list[Row]:
    """A row for the reference, the stub, each right style and each wrong variant of an item.

    Args:
        assignment, item: whose hidden test it is.
        secret: decides the draws.
        named: whether mistakes are recognised too; what is lost does not depend on it.
    """
    reference = getattr(assignment.reference, item)
    tested: list[tuple[Kind, str, Any]] = [
        ("reference", "reference", reference),
        ("stub", "stub", _stub(reference)),
        *(("style", name, style) for name, style in styles(assignment.name, item).items()),
        *(("pitfall", slug, wrong) for slug, wrong in pitfalls.variants(assignment.name, item).items()),
    ]
    memory = Memory() if named else None
    return [judge(assignment, item, kind, name, one, secret, memory) for kind, name, one in tested]


def judge(
    assignment: Assignment,
    item: str,
    kind: Kind,
    name: str,
    tested: Any,
    secret: bytes,
    memory: Memory | None = None,
) -> Row:
    """Run the item's hidden test on one function, class or value, and recognise its mistakes.

    Args:
        assignment, item: whose hidden test it is.
        kind, name: what the row is called.
        tested: the function, class or value.
        secret: decides the draws.
        memory: what came of the item's known mistakes before; None if no mistake is to be recognised.
    """
    beside = vars(assignment.reference)  # an item's test may use other items
    recorder = Recorder(local(**{**beside, item: tested}))
    reference = getattr(assignment.reference, item)
    hidden = assignment.cell("test", item).hidden
    stand_in = recorder.bind(item, reference)
    parts = load_parts(hidden, {item: stand_in}, assignment.reference)
    slugs: dict[str, str] = {}
    with warnings.catch_warnings(action="ignore"):  # as in the sandbox, whatever they are here
        # Students meet draws of their assignment's version; here a changed word must not change what is drawn.
        verdicts = run_parts(parts, recorder, lambda part: seed(secret, assignment.name, item, part.name))
        if memory is not None:
            known, laws = pitfalls.forms(assignment.name, item), pitfalls.laws(assignment.name, item)
            slugs = diagnose.recognise(
                item, verdicts, known, reference, beside=beside, laws=laws, tested=stand_in, memory=memory
            )
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


PAGE = """\
# What the hidden tests catch

% Written by `python -m mha_grader.quality.kill_table`; a test compares it with a fresh run.

Every hidden test has itself been tested. The reference and {styles} correct answers in other styles keep all
points; a stub gets none; each of the {pitfalls} wrong variants below loses points, and the grader recognises it.
What a variant keeps is what a student with that mistake, and no other, would keep.

"""


def page(tables: Mapping[tuple[str, str], list[Row]]) -> str:
    """The kill table as a page, from the rows of each (assignment, item)."""
    rows = [row for found in tables.values() for row in found]
    counts = {kind: sum(row.kind == kind for row in rows) for kind in ("style", "pitfall")}
    lines = [PAGE.format(styles=counts["style"], pitfalls=counts["pitfall"])]
    heading = ""
    for (assignment, item), found in tables.items():
        if assignment != heading:
            heading = assignment
            lines.append(f"## `{assignment}`\n")
        right = [row.name for row in found if row.kind == "style"]
        (reference,) = [row for row in found if row.kind == "reference"]
        lines.append(f"### `{item}`\n")
        lines.append(f"{reference.max_score:g} points in {len(reference.statuses)} parts.")
        if right:
            lines.append(f"Correct styles that keep all of them: {', '.join(right)}.")
        wrong = [row for row in found if row.kind == "pitfall"]
        if wrong:
            lines.append(
                "\n| mistake | keeps | fails | not run, since it rests on these |\n|---|---|---|---|"
            )
        else:
            lines.append("The bank has no wrong variants of it.")
        lines += [_line(row) for row in wrong]
        lines.append("")
    return "\n".join(lines)


def _line(row: Row) -> str:
    failed = [part for part, status in row.statuses.items() if status not in ("pass", "not-run")]
    not_run = [part for part, status in row.statuses.items() if status == "not-run"]
    mistake = f"[`{row.name}`](#{row.name})"  # its section in the book has the slug as its label
    keeps = f"{row.score:g} / {row.max_score:g}".replace(" ", "\N{NO-BREAK SPACE}")
    return f"| {mistake} | {keeps} | {', '.join(failed)} | {', '.join(not_run)} |"


def tables_of(course: Path, names: Iterable[str]) -> dict[tuple[str, str], list[Row]]:
    """The kill table of every item of these assignments."""
    loaded = [load_assignment(course, name) for name in names]
    return {(each.name, item): table(each, item, PUBLIC_SECRET) for each in loaded for item in each.items}


def main(argv: list[str] | None = None) -> int:
    """Write the page, or print the sections of the named assignments; returns 0."""
    course = Path.cwd()
    parser = argparse.ArgumentParser(prog="python -m mha_grader.quality.kill_table")
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="print these, and write nothing")
    if names := parser.parse_args(argv).assignments:
        print(page(tables_of(course, names)))
    else:
        names = in_teaching_order(course, assignment_names(course))
        (course / "book" / "kill_table.md").write_text(page(tables_of(course, names)), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
