"""Limits of time are longer while the machine is busy with other things, and end all the same."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mha_grader.sandbox import clock
from mha_grader.sandbox.fork_server import Layout
from mha_grader.sandbox.sandbox import Sandbox, SandboxTimeout


@pytest.fixture
def busy(monkeypatch):
    """A machine on which some process waits all the time."""
    monkeypatch.setattr(clock, "waited", time.monotonic)


def run(source, seconds):
    with Sandbox(Layout.make()) as box:
        return box.ask(seconds, op="exec", source=source, label="cell")["status"]


SLOW = "import time\ntime.sleep(0.9)"


def test_slow_code_has_more_time_on_a_busy_machine(busy):
    assert run(SLOW, 0.5) == "ok"


def test_slow_code_has_its_time_and_no_more_on_another(monkeypatch):
    monkeypatch.setattr(clock, "waited", lambda: 0.0)
    with pytest.raises(SandboxTimeout):
        run(SLOW, 0.5)


def test_what_does_not_end_is_ended_on_a_busy_machine_too(busy):
    with pytest.raises(SandboxTimeout):
        run("while True: pass", 0.5)


def test_the_system_tells_that_processes_wait_where_it_tells_anything():
    before, looping = clock.waited(), [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(looping) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        time.sleep(1)
        assert (clock.waited() > before + 0.3) == Path("/proc/pressure/cpu").exists()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_where_the_system_does_not_tell_it_is_a_clock_like_others(monkeypatch):
    monkeypatch.setattr(clock, "_pressure", lambda: None)
    assert clock.seconds() == pytest.approx(time.monotonic(), abs=0.1)
