"""What the layers of the course start, and what memory they take, on a processor or on a CUDA card.

    python -m benchmarks.operations        some seconds

Counts, and one timing: what a processor's memory costs that is new in every call.
"""

import ctypes
import multiprocessing
import resource
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.layers import DEVICE, Peers, Shape, wait
from benchmarks.measure import command_line, interleaved, summary, write
from mha_lib.experiments.tracing import count_operations, peak_memory

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt(3)


def launches(heads: tuple[int, ...] = (1, 2, 4, 8, 16), d_model: int = 256) -> list[dict[str, Any]]:
    """How many operations the device is asked for: loop over heads, batched, fused."""
    rows = []
    for h in heads:
        peers = Peers(Shape(4, 128, d_model, h), torch.float32, training=False)
        ways = {
            "loop over heads": peers.loop,
            "batched": lambda p=peers: p.readable(p.x),
            "fused": peers.ours,
        }
        counts = {name: count_launches(run) for name, run in ways.items()}
        rows.append({"heads": h, **counts})
    return rows


def count_launches(run: Callable[[], Tensor]) -> int:
    """Kernels that one call starts on the card; on a processor, operations that compute or copy."""
    if DEVICE == "cpu":
        return len(count_operations(run).names)
    with torch.inference_mode():
        run()
        wait()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
            run()
            wait()
    cuda = torch.autograd.DeviceType.CUDA
    kernels = [event.name for event in recorded.events() if event.device_type == cuda]
    return sum(not name.startswith(("Memcpy", "Memset")) for name in kernels)


def peak(run: Callable[[], Tensor]) -> float:
    """MiB that a call takes at its peak, besides what was there before it."""
    with torch.inference_mode():
        run()
        if DEVICE == "cpu":
            return peak_memory(run) / 2**20
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20


def memory(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """The peak of one forward pass of one sequence, for several lengths."""
    rows = []
    for n in sizes:
        peers = Peers(Shape(1, n, 512, 8), torch.float32, training=False)
        ways = {
            "fused": peers.ours,
            "readable": lambda peers=peers: peers.readable(peers.x),
            "loop over heads": peers.loop,
        }
        rows.append({"n": n, **{way: peak(run) for way, run in ways.items()}})
        if DEVICE == "cpu":
            rows[-1]["fresh"] = {way: fresh(run) for way, run in ways.items()}
    return rows


def fresh(run: Callable[[], Tensor]) -> float:
    """MiB of memory that a call touches first of all, so that the system must find and clear it, page by page.

    The median of some calls: what an earlier call gave back may be at hand or not.
    """
    taken = []
    with torch.inference_mode():
        run()
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            run()
            taken.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return statistics.median(taken) * resource.getpagesize() / 2**20


def kept_at_hand(seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of the plain layer and the loop, before and after the C library is told to keep all memory.

    Run it in a new process: the library is told for good, and it also learns from what the process did before.
    """
    peers = Peers(Shape(8, 256, 512, 8), torch.float32, training=False)
    ways = {"readable": lambda: peers.readable(peers.x), "loop over heads": peers.loop}
    found = {}
    with torch.inference_mode():
        for when in ("as it is", "kept at hand"):
            if when == "kept at hand":
                libc = ctypes.CDLL(None)
                libc.mallopt(M_MMAP_MAX, 0)
                libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
            taken = interleaved(ways, seconds, wait)
            found[when] = {name: summary(times)["median_ms"] for name, times in taken.items()}
    return found


def main() -> None:
    """Measure, print, store."""
    arguments = command_line(__doc__).parse_args()
    results: dict[str, Any] = {"launches": launches(), "memory_mib": memory((1024, 2048, 4096))}
    if DEVICE == "cpu" and sys.platform == "linux":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results["kept_at_hand"] = pool.apply(kept_at_hand, (2.0,))
    for name, found in results.items():
        print(f"{name}:", *(found.items() if isinstance(found, dict) else found), sep="\n  ")
    print("written:", write(arguments.results, f"operations-{DEVICE}", results))


if __name__ == "__main__":
    main()
