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

    Args:
        new: the folder, on the same file system.
        place: where it should be; there may be a folder already.

    Raises:
        OSError: if the file system cannot exchange two folders at once.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        os.rename(new, place)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(new), _HERE, os.fsencode(place), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(
            number, f"{os.strerror(number)}: this file system cannot exchange two folders", str(place)
        )
    shutil.rmtree(new)
