"""Records on disk: grades/<assignment>/<student>.json, each written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from mha_grader.course.records import SubmissionRecord, from_json, to_json


def save(folder: Path, student: str, record: SubmissionRecord) -> None:
    """Write a student's record."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{student}.json", json.dumps(to_json(record), indent=1, ensure_ascii=False))


def write_whole(path: Path, text: str) -> None:
    """Write a file. A crash leaves the old file or the new one, never a part of one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)


def load(folder: Path, student: str) -> SubmissionRecord | None:
    """A student's record, or None if there is none."""
    try:
        text = (folder / f"{student}.json").read_text("utf-8")
    except FileNotFoundError:
        return None
    return from_json(json.loads(text))


def load_all(folder: Path) -> dict[str, SubmissionRecord]:
    """All records of an assignment by student, in the order of the students' ids."""
    records = {}
    for path in sorted(folder.glob("*.json")):
        record = load(folder, path.stem)
        if record is not None:
            records[path.stem] = record
    return records
