"""The clock of all time limits. It goes slower while processes must wait for a processor.

A student's code should not fail because other programs keep the machine busy.
"""

import functools
import os
import time

SHARE = (
    0.75  # of the time in which some process waited does not count: a limit lasts four times as long at most
)
TOLD = 0.005  # seconds for which an answer stands; when the next one comes, the clock may step back by less


def seconds() -> float:
    """The time since some moment, less most of the time in which some process waited for a processor."""
    return time.monotonic() - SHARE * waited()


def waited() -> float:
    """How many seconds, since the machine was started, some process was ready to run and no processor was free.

    It is 0 where the system does not tell.

    Source: PSI, Pressure Stall Information, in the documentation of the Linux kernel.
    """
    pressure = _pressure()
    return 0.0 if pressure is None else _total(pressure, time.monotonic() // TOLD)


@functools.lru_cache(1)
def _total(pressure: int, moment: float) -> float:
    """What the file says at a moment: Linux adds it all up each time that somebody asks."""
    first_line = os.pread(pressure, 200, 0).partition(b"\n")[0]  # some avg10=0.00 … total=microseconds
    return int(first_line.rpartition(b"=")[2]) / 1e6


@functools.cache
def _pressure() -> int | None:
    """The open file in which Linux tells it."""
    try:
        return os.open("/proc/pressure/cpu", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
