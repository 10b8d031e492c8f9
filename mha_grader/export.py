"""Grades for other programs: one CSV and one JSON file for each assignment."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mha_grader.course import Course
from mha_grader.gradebook import Entry
from mha_grader.records import SubmissionRecord

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the start of a formula


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
    with table.open("w", encoding="utf-8", newline="") as file:
        lines = [_flat(row) for row in rows]
        writer = csv.DictWriter(file, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in line.items()} for line in lines)
    data.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return table, data


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
        "flags": [flag for item in record.items for flag in item.flags],
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
        **{name: row[name] for name in ("late_seconds", "late_penalty", "final_score")},
        "recognised": " ".join(row["recognised"]),
    }


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; numbers without the dust of adding up."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
