"""How the benchmarks measure: contestants take turns, medians are compared, the machine is written down."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent


def command_line(description: str | None) -> argparse.ArgumentParser:
    """The parser that every benchmark starts from: its own description, and where the results go."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="where the JSON file goes"
    )
    return parser


def interleaved(
    contestants: Mapping[str, Callable[[], Any]],
    seconds: float,
    wait: Callable[[], None] = lambda: None,
    least: float = 5e-3,
    rounds: int = 5,
) -> dict[str, list[float]]:
    """Seconds of one call of each contestant, measured in turns, so that a busy moment hits all of them.

    Args:
        contestants: what is measured, by name.
        seconds: about how long to measure all of them together; a round is always finished.
        wait: waits until the device has done its work.
        least: a measurement is repeated inside the clock until it takes at least so many seconds.
        rounds: the smallest number of rounds.
    """

    def measure(run: Callable[[], Any], repeats: int) -> float:
        wait()
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        wait()
        return (time.perf_counter() - start) / repeats

    repeats = {}
    for name, run in contestants.items():
        measure(run, 2)  # warm-up
        repeats[name] = max(1, round(least / measure(run, 1)))
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    order = list(contestants)
    while len(taken[order[0]]) < rounds or time.perf_counter() < end:
        for name in order:
            taken[name].append(measure(contestants[name], repeats[name]))
        order = order[1:] + order[:1]  # nobody always comes after the same one
    return taken


def summary(taken: list[float]) -> dict[str, float]:
    """Median and quartiles of seconds, in milliseconds."""
    low, median, high = statistics.quantiles(taken, n=4)
    return {"median_ms": 1e3 * median, "q1_ms": 1e3 * low, "q3_ms": 1e3 * high, "measurements": len(taken)}


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    found: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": commit(),
    }
    for package in ("numpy", "torch", "nbgrader", "distributed", "jupyter-book"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    if "torch" in sys.modules:
        import torch

        found["threads"] = torch.get_num_threads()
        found["card"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return found


def processor() -> str:
    """The processor's name, as Linux tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def commit() -> str | None:
    """The commit that is measured, if this is a clone."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def write(folder: Path, name: str, results: Mapping[str, Any]) -> Path:
    """Store results with the machine that they are from."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **results}, indent=1) + "\n")
    return path
