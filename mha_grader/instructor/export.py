"""Grades for other programs: a CSV and a JSON file, and CSV files that Moodle and Canvas take."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor import origins
from mha_grader.instructor.entry import Entry
from mha_grader.instructor.origins import Origin
from mha_grader.sandbox.text import clean
from mha_lib import pitfalls

# What spreadsheets take for the start of a formula: those of some languages take the wide signs as well.
FORMULA = re.compile(r"^[\s\"]*[=+@\uff1d\uff0b\uff0d\uff20-]")
SEPARATORS = re.compile(r"[;\t\r\n]")  # where some of them begin a new cell


def write(
    course: Course, assignment: str, records: Mapping[str, SubmissionRecord], entries: Mapping[str, Entry]
) -> tuple[Path, Path]:
    """Write grades/<assignment>.csv and grades/<assignment>.json.

    Args:
        course: the course.
        assignment: the assignment's name.
        records: what grading found, by student; at least one.
        entries: what the gradebook has beside it, by student.

    Returns:
        The paths of the two files.
    """
    rows = [_row(student, record, entries.get(student, Entry())) for student, record in records.items()]
    folder = course.root / "grades"
    folder.mkdir(exist_ok=True)
    table, data = folder / f"{assignment}.csv", folder / f"{assignment}.json"
    _write_table(table, [_flat(row) for row in rows])
    data.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return table, data


def _write_table(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in line.items()} for line in lines)


def _row(student: str, record: SubmissionRecord, entry: Entry) -> dict[str, Any]:
    return {
        "student": student,
        "status": record.status,
        "score": record.score,  # of the tests alone
        "max_score": record.max_score,
        "items": {
            item.item: {"score": item.score, "max_score": item.max_score, "status": item.status}
            for item in record.items
        },
        "by_hand": dict(entry.by_hand),
        "late_seconds": entry.late_seconds,
        "late_penalty": entry.penalty,
        "final_score": entry.score(record),
        "recognised": list(recognised(record)),
        "notes": [*record.notes, *(note for item in record.items for note in item.notes)],
        "flags": [*record.flags, *(flag for item in record.items for flag in item.flags)],
    }


def recognised(record: SubmissionRecord) -> tuple[str, ...]:
    """The slugs of all recognised mistakes, each once, in the order of the items."""
    slugs = (part.pitfall for item in record.items for part in item.parts)
    return tuple(dict.fromkeys(slug for slug in slugs if slug))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table: one column for each item, and one for the scores that a person set."""
    return {
        **{name: row[name] for name in ("student", "status", "score", "max_score")},
        **{name: item["score"] for name, item in row["items"].items()},
        "by_hand": " ".join(f"{name}={score:g}" for name, score in row["by_hand"].items()),
        "late_seconds": f"{row['late_seconds']:.15g}",  # all digits: months have millions
        **{name: row[name] for name in ("late_penalty", "final_score")},
        "recognised": " ".join(row["recognised"]),
        "look_at": "; ".join(map(clean, row["flags"])),
    }


def _cell(value: Any) -> Any:
    """A cell in which no spreadsheet finds a formula; numbers without the dust of adding up."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, str):
        return value
    value = SEPARATORS.sub(",", value)
    return f"'{value}" if FORMULA.match(value) else value


# --- Moodle and Canvas ------------------------------------------------------------------------------------


def write_for_platforms(
    course: Course, assignment: str, records: Mapping[str, SubmissionRecord], entries: Mapping[str, Entry]
) -> list[Path]:
    """Write grades/<assignment>-moodle.csv and grades/<assignment>-canvas.csv.

    A student whose hand-in was collected from one of the two is known there by the number in its archive, and
    stands in no file for the other. All others stand in both, by their id. A file without students is not written.

    Args:
        course: the course.
        assignment: the assignment's name.
        records: what grading found, by student; at least one.
        entries: what the gradebook has beside it, by student: the grades are those that people left, with the
            penalty for being late.
    """
    who = origins.origins(course, assignment)
    moodle, canvas = [], []
    for student, record in records.items():
        origin = who.get(student, Origin("plain"))
        entry = entries.get(student, Entry())
        if origin.scheme != "canvas":
            moodle.append(_moodle(student, origin, record, entry))
        if origin.scheme != "moodle" and not origin.number.startswith("anon_"):
            canvas.append(_canvas(student, origin, assignment, entry.score(record)))
    if canvas:
        points = next(iter(records.values())).max_score
        canvas.insert(0, _canvas("    Points Possible", Origin("canvas"), assignment, points))
    written = []
    for name, lines in (("moodle", moodle), ("canvas", canvas)):
        path = course.root / "grades" / f"{assignment}-{name}.csv"
        path.unlink(missing_ok=True)
        if lines:
            _write_table(path, lines)
            written.append(path)
    return written


def _moodle(student: str, origin: Origin, record: SubmissionRecord, entry: Entry) -> dict[str, Any]:
    """A line of Moodle's grading worksheet, whose import asks for Identifier, Grade and Last modified (grade)."""
    collected = origin.scheme == "moodle"
    return {
        "Identifier": f"Participant {origin.number}" if collected else "",
        "Full name": origin.name,
        "ID number": "" if collected else student,
        "Grade": entry.score(record),
        "Maximum Grade": record.max_score,
        "Last modified (grade)": "",
        "Feedback comments": "; ".join(_in_words(item, entry) for item in record.items),
    }


def _in_words(item: ItemRecord, entry: Entry) -> str:
    score = f"{item.item} {entry.item_score(item):g}/{item.max_score:g}"
    found = dict.fromkeys(title_of(part).replace("`", "") for part in item.parts)
    titles = [title for title in found if title]
    return f"{score} ({', '.join(titles)})" if titles else score


def title_of(part: PartRecord) -> str:
    """The title of the mistake that was recognised in a part; "" if there is none, or it is no longer known."""
    known = pitfalls.BANK.get(part.pitfall or "")
    return known.title if known and not part.title else part.title


def _canvas(student: str, origin: Origin, assignment: str, score: float) -> dict[str, Any]:
    """A line of Canvas' gradebook. Canvas looks for the ID, then for the SIS Login ID, then for the name."""
    return {
        "Student": origin.name or student,
        "ID": origin.number,
        "SIS User ID": "",
        "SIS Login ID": student if origin.scheme == "plain" else "",
        "Section": "",
        assignment: score,
    }
