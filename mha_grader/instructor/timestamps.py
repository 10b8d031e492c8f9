"""When a hand-in came: its timestamp.txt, and how any small file beside a hand-in is read."""

from __future__ import annotations

import codecs
import re
import stat
from datetime import datetime
from pathlib import Path

from mha_grader.grading import rebuild

NAME = "timestamp.txt"
MAX_SMALL_FILE = 1000  # bytes of a timestamp or of the exchange's secret
# A year and a time of day: without them, a date would be taken for its midnight and a time for one of today.
COMPLETE = re.compile(r"\d{4}.*(\d:\d\d|T\d{4})|\d:\d\d.*\d{4}")
OFFSET = re.compile(r"\s+([+-]\d\d:?\d\d)$")


def timestamp(folder: Path) -> datetime | None:
    """When the hand-in in a folder came, from its timestamp.txt; None if that is missing or is not a time."""
    from nbgrader.utils import parse_utc  # heavy, and most commands read no time

    text = small_file(folder / NAME).strip()
    if not COMPLETE.search(text):
        return None
    try:
        found: datetime = parse_utc(OFFSET.sub(r"\1", text))  # apart, nbgrader takes +0200 for 200 seconds
    except Exception:  # the text may be anything, and so may the error
        return None
    return found


def is_unreadable(folder: Path) -> bool:
    """Whether there is a timestamp.txt that tells no time, so that the hand-in counts as in time."""
    path = folder / NAME
    return (path.exists() or path.is_symlink()) and timestamp(folder) is None


def small_file(path: Path) -> str:
    """The text of a small plain file beside a hand-in; empty if it is anything else.

    It is UTF-8, or UTF-16 with the byte order mark that editors on Windows write.
    """
    try:
        status = path.lstat()
        if rebuild.is_linked(path.parent):
            return ""
        if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SMALL_FILE:
            data = path.read_bytes()
            wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            return data.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, UnicodeDecodeError):
        pass
    return ""
