"""What `mha-grade` prints: tables, lines and the progress of a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from mha_grader.course.folders import Course
from mha_grader.course.records import AnswerRecord, ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor import export, feedback, roster
from mha_grader.instructor.collect import Collected
from mha_grader.instructor.entry import CHANGED, Entry
from mha_grader.sandbox.text import clean

SHOWN = 20  # names in one line
IN_PROCESS = "in the student's own process, where code can forge a pass"


def print_collected(found: Collected) -> None:
    """What became of an archive."""
    print(f"{len(found.new)} new, {len(found.replaced)} replaced, {len(found.unchanged)} as before")
    for what, names in (
        ("without a notebook", found.without_notebook),
        ("several notebooks, and none has the assignment's name", found.several),
        ("late, says Canvas, and not by how much (--times can tell)", found.late),
        ("count for a group, of so many students", found.groups),
        ("left out, since they are nobody's", found.left_out),
    ):
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            print(f"{what}: {', '.join(clean(name) for name in names[:SHOWN])}{more}")


def progress(*, quiet: bool) -> Progress:
    """How far the grading of a class is, on stderr."""
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True)


class _Rate(ProgressColumn):
    """Hand-ins a minute."""

    def render(self, task: Task) -> Text:
        """The rate so far, once there is one."""
        return Text(f"{60 * task.speed:.0f} a minute" if task.speed else "")


def print_scores(
    records: Mapping[str, SubmissionRecord], entries: Mapping[str, Entry], course: Course
) -> None:
    """A table with a line for each student: the final score first, and a * at what a person changed."""
    people, table = roster.load(course), Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    first = next(iter(records.values()))
    is_late = any(entry.penalty for student, entry in entries.items() if student in records)
    table.add_column("student")
    if people:
        table.add_column("name")
    late = [("late", 0.0)] if is_late else []
    columns = [(item.item, item.max_score) for item in first.items]
    columns += [(answer.item, answer.max_score) for answer in first.answers]
    points = [("score", first.max_score), *late, *columns]
    for name, most in points:
        # A name in lines of its own words, so that the table fits on a narrow screen.
        head = "\n".join([*name.split("_"), *([f"of {most:g}"] if most else [])])
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("remarks", overflow="fold")
    for student, record in records.items():
        entry = entries.get(student, Entry())
        waiting = entry.waiting(record)
        scores = [f"{entry.score(record):g}{'?' if waiting else ''}"]
        scores += [f"{0 - entry.penalty:g}"] if is_late else []
        scores += [
            f"{entry.item_score(item):g}{'*' if item.item in entry.by_hand else ''}" for item in record.items
        ]
        scores += [
            _mark(entry, answer) + ("?" if answer.item in waiting else "") for answer in record.answers
        ]
        person = people.by_id.get(student) if people else None
        names = [Text(clean(person.name) if person else "")] if people else []
        table.add_row(Text(clean(student)), *names, *scores, ", ".join(_remarks(record, entry)))
    console = Console()
    if not console.is_terminal:  # in a file or a pipe, a line may be as long as it is
        console.width = max(console.width, 250)
    console.print(table)
    if any(entries.get(student, Entry()).waiting(record) for student, record in records.items()):
        print(f"? not final: a person has yet to mark it (mha-grade marks {first.assignment})")
    weak = [item.item for item in first.items if any(part.in_process for part in item.parts)]
    if weak:
        print(f"{', '.join(weak)}: tested {IN_PROCESS} (see the page Writing an assignment)")


def _mark(entry: Entry, answer: AnswerRecord) -> str:
    mark = entry.mark(answer)
    return "" if mark is None else f"{mark:g}"


def _remarks(record: SubmissionRecord, entry: Entry) -> list[str]:
    found = ([] if record.status == "graded" else [record.status]) + list(export.recognised(record))
    found += [
        f"* {item.item} {item.score:g} by the tests" for item in record.items if item.item in entry.by_hand
    ]
    found += [f"{name} {CHANGED}" for name, why in entry.waiting(record).items() if why == CHANGED]
    if entry.penalty:
        found.append(_how_late(entry.late_seconds))
    found += [
        f"{item.item} out of time"
        for item in record.items
        if any(part.status == "timeout" for part in item.parts)
    ]
    found += ["look at its files"] if record.flags else []
    return found + [f"look at {item.item}" for item in record.items if item.flags]


def _how_late(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit} late"
    return "less than a minute late"


def print_missing(students: Sequence[str]) -> None:
    """Who is in the roster and has handed in nothing: ids, with names if there are any."""
    if students:
        print(f"nothing handed in: {', '.join(map(clean, students))}")


def print_log(called: str, record: SubmissionRecord, entry: Entry | None) -> None:
    """All that is known about one hand-in of the student who is called so."""
    print(f"{clean(called)}: {record.assignment} {record.version}, {record.status}")
    print(
        f"{record.score:g} of {record.max_by_tests:g} points by the tests; sha256 {record.submission or 'none'}"
    )
    if entry is not None:
        yet = " (a person has yet to mark something)" if entry.waiting(record) else ""
        print(
            f"{entry.score(record):g} of {record.max_score:g} in the end{yet}: penalty {entry.penalty:g}, "
            f"{_how_late(entry.late_seconds) if entry.late_seconds else 'in time'}"
        )
    for note in record.notes:
        print(f"note: {clean(note)}")
    for flag in record.flags:
        print(f"look at: {clean(flag)}")
    for item in record.items:
        by_hand = (
            ""
            if entry is None or item.item not in entry.by_hand
            else f", {entry.by_hand[item.item]:g} by hand"
        )
        print(f"\n{item.item}: {item.score:g} of {item.max_score:g}{by_hand}")
        for kind, lines in (("look at", item.flags), ("note", item.notes)):
            for line in lines:
                print(f"  {kind}: {clean(line)}")
        for line in _part_lines(item):
            print(f"  {line}")
    for answer in record.answers:
        _print_answer(answer, entry or Entry(), record)
    if record.changes:
        print("\nchanged by regrading:")
    for line in record.changes:
        print(f"  {clean(line, 1000)}")
    print("\nin the sandbox:" if record.log else "\nin the sandbox: nothing to tell")
    for line in record.log:
        print(f"  {clean(line, 1000)}")


def _print_answer(answer: AnswerRecord, entry: Entry, record: SubmissionRecord) -> None:
    """What a student wrote for a person to mark, and the mark."""
    mark = entry.mark(answer)
    words = [] if mark is None else [f"{mark:g} of {answer.max_score:g}"]
    words.append(
        entry.waiting(record).get(answer.item, "by a person" if answer.written else "nothing written")
    )
    print(f"\n{answer.item}: {', '.join(words)}")
    for line in answer.text.splitlines():
        print(f"  {clean(line, 1000)}")


def _part_lines(item: ItemRecord) -> Iterator[str]:
    """Every part with its status and points, and below it why it failed."""
    repeated = feedback.repeats(item)
    for part in item.parts:
        beside = f" (with right {feedback.listed(item.stood_in)})" if part.carried else ""
        beside += f" ({IN_PROCESS})" if part.in_process else ""
        yield f"{part.status:8} {part.points:g}/{part.max_points:g} {part.name}{beside}"
        if part.status in ("pass", "not-run"):
            continue
        yield f"{'':8} {clean(part.reason)}"
        if part.pitfall and (title := export.title_of(part)):
            yield f"{'':8} recognised: {title} ({part.pitfall})"
        elif part.name not in repeated:
            yield from (f"{'':8} {clean(line)}" for line in part.message.splitlines()[1:])


def as_json(path: Path, assignment: str, record: ItemRecord) -> dict[str, Any]:
    """What came of one file, for a program."""
    return {
        "file": str(path),
        "assignment": assignment,
        "item": record.item,
        "status": record.status,
        "score": record.score,
        "max_score": record.max_score,
        "parts": [_part_json(part) for part in record.parts],
    }


def _part_json(part: PartRecord) -> dict[str, Any]:
    return {
        "name": part.name,
        "points": part.points,
        "max_points": part.max_points,
        "status": part.status,
        "pitfall": part.pitfall,
        "message": part.message,
    }


def print_item(path: Path, record: ItemRecord) -> None:
    """What came of one file, for people."""
    console, repeated = Console(highlight=False), feedback.repeats(record)
    console.print(Text(f"{path}: {record.item}  {record.score:g} / {record.max_score:g}", style="bold"))
    for part in record.parts:
        style = {"pass": "green", "not-run": "dim"}.get(part.status, "red")
        score = f"{part.points:g}/{part.max_points:g}"
        console.print(
            Text.assemble("  ", (f"{part.status:8}", style), f"{score:>8}  {part.name}"), soft_wrap=True
        )
        if part.status not in ("pass", "not-run"):
            first = repeated.get(part.name)
            why = part.message.splitlines() if first is None else [f"for the same reason as “{first}” above"]
            for line in (part.proves, *why):
                console.print(Padding(Text(line), (0, 0, 0, 22)))
