"""Putting a folder in the place of another one, so that at every moment one of the two is there, whole."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

_HERE = -100  # AT_FDCWD: paths are meant as they are written
_EXCHANGE = 2  # RENAME_EXCHANGE, see renameat2(2)


def put_in_place(new: Path, place: Path) -> None:
    """Put a folder in its place. What stood there is removed afterwards.

    Where the system cannot exchange two folders at once (it is not Linux, or the file system cannot), there is a
    moment in which the place is empty.

    Args:
        new: the folder, on the same file system.
        place: where it should be; there may be a folder already.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(new, place)
    except OSError:  # a folder stands there, perhaps since a moment ago
        if not place.exists():
            raise
        if _exchange(new, place):
            shutil.rmtree(new)
            return
        old = new.with_name(f"{new.name}.old")
        os.rename(place, old)
        os.rename(new, place)
        shutil.rmtree(old)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at once; whether this system can."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and not rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
