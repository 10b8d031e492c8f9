"""What the scheduler costs a task: a thousand tasks that only sleep, on 1, 2, 8 and 64 workers.

    python -m benchmarks.scheduler

Sleeping tasks stand for grading, so more workers can be tried than there are cores. With S seconds of sleep each,
T tasks on W workers cannot take less than T · S / W seconds; what they take beyond that is the scheduler's.
"""

import time
from typing import Any

from distributed import Client, LocalCluster

from benchmarks.measure import command_line, write
from mha_grader.grading.schedule import run_all

SLEEP = {1: 0.01, 2: 0.02, 8: 0.08, 64: 0.64}  # workers: seconds of a task, so that each row sleeps 10 s


def measure(workers: int, tasks: int) -> dict[str, Any]:
    """Seconds for all tasks on a cluster that is up already."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(workers)
        address = cluster.scheduler.address
        start = time.perf_counter()
        done = sum(1 for _ in run_all(time.sleep, [SLEEP[workers]] * tasks, scheduler=address))
        seconds = time.perf_counter() - start
    least = -(-tasks // workers) * SLEEP[workers]
    overhead = 1e3 * (seconds - least) / tasks
    print(
        f"{workers:3} workers: {done} tasks in {seconds:6.2f} s, at least {least:.2f} s; {overhead:.2f} ms a task"
    )
    return {"workers": workers, "tasks": done, "seconds": seconds, "least_s": least, "overhead_ms": overhead}


def main() -> None:
    """Measure, print, store."""
    parser = command_line(__doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="(default: 1000)")
    arguments = parser.parse_args()
    measured = [measure(workers, arguments.tasks) for workers in SLEEP]
    print("written:", write(arguments.results, "scheduler", {"measured": measured}))


if __name__ == "__main__":
    main()
