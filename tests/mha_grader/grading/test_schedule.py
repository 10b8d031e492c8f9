"""Tasks on Dask: every task ends in a result or in a reason, also when processes die."""

import math
import operator
import os
import subprocess
import sys
from functools import partial

import pytest
from distributed import Client, LocalCluster

from mha_grader.grading.schedule import Failed, run_all

pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own


def results(tasks, **options):
    return dict(run_all(operator.call, tasks, **options))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_task_gets_its_own_result(count):
    found = results([partial(math.sqrt, number) for number in range(count)], workers=2)
    assert found == {number: math.sqrt(number) for number in range(count)}


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_to_be_done_first_is_done_before_all_tasks(workers, tmp_path):
    tasks = [partial(os.path.isdir, tmp_path / "made")] * 4
    found = results(tasks, workers=workers, first=partial(os.mkdir, tmp_path / "made"))
    assert found == dict.fromkeys(range(4), True)


@pytest.mark.parametrize("workers", [1, 2])
def test_if_what_is_to_be_done_first_raises_no_task_is_run(workers, tmp_path):
    tasks = [partial(os.mkdir, tmp_path / str(number)) for number in range(4)]
    with pytest.raises(ValueError, match=r"domain|nonnegative"):
        results(tasks, workers=workers, first=partial(math.sqrt, -1))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_raises_takes_no_other_with_it(workers):
    found = results([partial(math.sqrt, number) for number in (4, -1, 9, 16)], workers=workers)
    wrong = found.pop(1)
    assert found == {0: 2, 2: 3, 3: 4}
    assert isinstance(wrong, Failed)
    assert isinstance(wrong.error, ValueError)


def test_a_task_that_ends_every_worker_takes_no_other_with_it():
    found = results([*(partial(math.sqrt, 4) for _ in range(4)), partial(os._exit, 1)], workers=2)
    gone = found.pop(4)
    assert found == dict.fromkeys(range(4), 2)
    assert isinstance(gone, Failed)
    assert "worker" in str(gone.error).lower()


def test_a_module_that_raises_when_it_is_imported_stops_no_worker(tmp_path):
    (tmp_path / "odd.py").write_text("raise RuntimeError('not today')\n")
    script = (
        "from mha_grader.grading.schedule import run_all\n"
        "print(sorted(run_all(len, ['a', 'bb', 'ccc'], workers=2, imports=['odd'])))"
    )
    path = os.pathsep.join([str(tmp_path), os.getcwd()])
    done = subprocess.run(  # a process of its own: the server of this one's workers may run already
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "[(0, 1), (1, 2), (2, 3)]\n", done.stderr


def test_a_worker_stays_on_a_processor_of_its_own():
    found = results([partial(os.sched_getaffinity, 0)] * 6, workers=2)
    assert all(len(processors) == 1 for processors in found.values())


def test_a_cluster_that_runs_already_is_used_and_left_running():
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        (worker,) = client.run(os.getpid).values()
        assert results([os.getpid] * 2, scheduler=cluster.scheduler_address) == {0: worker, 1: worker}
        assert client.run(os.getpid)
