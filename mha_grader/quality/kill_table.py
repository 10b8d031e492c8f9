"""Tests the hidden tests: the reference and every right style must pass, every wrong variant must lose, named.

`table` runs the hidden test of an item on trusted functions in this process, with the code that grades students.
`python -m mha_grader.quality.kill_table` writes the result as a page of the book, `book/kill_table.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mha_grader.course.assignment import Assignment, load
from mha_grader.course.authoring import assignments as all_assignments
from mha_grader.course.records import Status
from mha_grader.grading import diagnosis
from mha_grader.grading.runner import load_parts, run_parts, seed
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
    beside = vars(assignment.reference)  # an item may call earlier ones
    recorder = Recorder(local(**{**beside, item: tested}))
    reference = getattr(assignment.reference, item)
    hidden = assignment.cell("test", item).hidden
    parts = load_parts(hidden, {item: recorder.bind(item, reference)}, assignment.reference)
    version = f"{assignment.name} {assignment.version}"
    verdicts = run_parts(parts, recorder, lambda part: seed(secret, version, item, part.name))
    known = pitfalls.variants(assignment.name, item) if diagnose else {}
    slugs = diagnosis.recognise(item, verdicts, known, reference, beside)
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

Every hidden test has itself been tested. The reference and {styles} right answers in other styles keep all points;
a stub gets none; each of the {pitfalls} wrong variants below loses points, and is recognised by its name. What a
variant keeps is what a student with that mistake, and no other, would keep.

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
            lines.append(f"Right styles that keep all of them: {', '.join(right)}.")
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


def in_the_book(course: Path) -> list[str]:
    """The names of all assignments, in the order in which the book has them."""
    contents = (course / "_toc.yml").read_text("utf-8")
    return sorted(all_assignments(course), key=lambda name: contents.index(f"exercises/{name}/"))


def main() -> int:
    """Write the page."""
    course = Path.cwd()
    tables: dict[tuple[str, str], list[Row]] = {}
    for name in in_the_book(course):
        assignment = load(course, name)
        tables |= {(name, item): table(assignment, item, PUBLIC_SECRET) for item in assignment.items}
    (course / "book" / "kill_table.md").write_text(page(tables), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
