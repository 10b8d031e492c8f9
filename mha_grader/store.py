"""Records on disk: grades/<assignment>/<student>.json, each written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from mha_grader.records import SubmissionRecord, from_json, to_json


def save(folder: Path, student: str, record: SubmissionRecord) -> None:
    """Write a student's record. A crash leaves the old file or the new one, never a part of one."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(to_json(record), file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, folder / f"{student}.json")


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
