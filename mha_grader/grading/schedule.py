"""Run many pure tasks at once, on Dask: on all cores of this machine, or on a cluster that runs already."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
ATTEMPTS = 3  # to start a cluster
IMPORTS = "MHA_GRADER_IMPORTS"  # in the environment: what is imported once for all workers
FEW = 3  # for fewer tasks than this a cluster's start costs more than it saves


@dataclass(frozen=True)
class Failed:
    """A task that gave no result: it raised, or every worker that had it died."""

    error: BaseException


def run_all(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    imports: Sequence[str] = (),
    first: Callable[[], object] | None = None,
) -> Iterator[tuple[int, Result | Failed]]:
    """Yield (index of the task, its result or why there is none) as they come.

    Args:
        function: pure, and importable where the workers are.
        tasks: what it is called with.
        scheduler: address of a Dask scheduler whose workers see the same files; None starts one here.
        workers: how many to start here; as many as there are cores if None.
        imports: modules that the function needs, to be imported once for all workers that are started here.
        first: what is to be done before all tasks, where these run; what it raises is raised here.
    """
    workers = min(workers or len(os.sched_getaffinity(0)), len(tasks))
    if scheduler is None and (len(tasks) < FEW or workers == 1):
        if first is not None:
            first()
        for index, task in enumerate(tasks):
            yield index, _attempt(function, task)
        return
    from distributed import Client, as_completed

    if scheduler is not None:
        with Client(scheduler) as client:
            yield from _on(client, as_completed, function, tasks, first)
        return
    with _local_cluster(workers, imports) as cluster, Client(cluster) as client:
        alone = functools.partial(_on_own_processor, function, sorted(os.sched_getaffinity(0)))
        yield from _on(client, as_completed, alone, tasks, first)


def _local_cluster(workers: int, imports: Sequence[str]) -> Any:
    """A cluster on this machine; a worker that dies while it starts is no reason to give up at once.

    Its workers are forked from one process that has imported what they need, and never computes.
    """
    import dask
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    dask.config.set(
        {
            "distributed.worker.multiprocessing-method": "forkserver",
            # Each process would look at itself up to a hundred times a second, for nobody.
            "distributed.worker.profile.enabled": False,
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "10s",
            "distributed.worker.memory.monitor-interval": "1s",
        }
    )
    os.environ[IMPORTS] = " ".join(imports)
    get_mp_context().set_forkserver_preload(["mha_grader.grading.forked"])
    start = functools.partial(
        LocalCluster, n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40
    )
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(RuntimeError):
            return start()
    return start()


def _on(
    client: Any,
    as_completed: Any,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    first: Callable[[], object] | None,
) -> Iterator[tuple[int, Result | Failed]]:
    if first is not None:
        client.submit(first, pure=False).result()
    futures = client.map(function, tasks, pure=False)
    places = {future.key: index for index, future in enumerate(futures)}
    for future in as_completed(futures):
        try:
            result: Result | Failed = future.result()  # computed again if the worker that had it is gone
        except Exception as error:
            result = Failed(error)
        yield places[future.key], result
        future.release()


def _attempt(function: Callable[[Task], Result], task: Task) -> Result | Failed:
    try:
        return function(task)
    except Exception as error:
        return Failed(error)


def _on_own_processor(function: Callable[[Task], Result], processors: list[int], task: Task) -> Result:
    """Code that burns the processor that it runs on slows no other hand-in down."""
    from distributed import get_worker

    os.sched_setaffinity(0, {processors[int(get_worker().name) % len(processors)]})
    return function(task)
