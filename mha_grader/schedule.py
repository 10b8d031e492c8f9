"""Run many pure tasks at once, on Dask: on all cores of this machine, one task a worker process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
FEW = 3  # for fewer tasks than this a cluster's start costs more than it saves


def run_all(function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
    """Yield (index of the task, its result) as they come.

    Raises:
        Exception: what a task raised.
    """
    workers = min(len(os.sched_getaffinity(0)), len(tasks))
    if len(tasks) < FEW or workers == 1:
        for index, task in enumerate(tasks):
            yield index, function(task)
        return
    from distributed import Client, LocalCluster, as_completed

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40
        ) as cluster,
        Client(cluster) as client,
    ):
        # Each worker on a processor of its own, which what it starts cannot leave: code that burns its processor
        # slows no other hand-in down.
        processors = sorted(os.sched_getaffinity(0))
        for worker, processor in zip(client.scheduler_info()["workers"], processors, strict=False):
            client.run(os.sched_setaffinity, 0, {processor}, workers=[worker])
        futures = client.map(function, tasks, pure=False)
        places = {future.key: index for index, future in enumerate(futures)}
        for future, result in as_completed(futures, with_results=True):
            yield places[future.key], result
