"""Known code is asked once what came of the same requests, and answers as if it were asked again."""

import numpy as np
import pytest

from mha_grader.grading import replay
from mha_grader.grading.replay import Memory, Replay
from mha_grader.sandbox.wire import Handle
from mha_grader.testing.proxies import Step


class Counter:
    made = 0

    def __init__(self, start):
        type(self).made += 1
        self.total = start

    def add(self, x):
        if x < 0:
            raise ValueError(f"{x} is negative")
        self.total = self.total + x
        return self.total


def make(start):
    return Step({"op": "call", "target": "Counter", "method": None, "args": [start], "kwargs": {}, "keep": 1})


def add(x):
    return Step({"op": "call", "target": Handle(1), "method": "add", "args": [x], "kwargs": {}, "keep": None})


@pytest.fixture
def results(monkeypatch):
    """What comes of steps on `Counter`, by the name under which it is remembered."""
    monkeypatch.setattr(Counter, "made", 0)

    def run(memory, *steps, name="counter"):
        done = list(Replay(memory, name, {"Counter": Counter}, steps))[1:]
        return [step.value if step.error is None else step.error.type_names[0] for step in done]

    return run


def test_the_same_requests_are_carried_out_once(results):
    memory = Memory()
    for _ in range(3):
        assert results(memory, make(1.0), add(2.0), add(-1.0), add(4.0)) == [3.0, "ValueError", 7.0]
    assert Counter.made == 1


def test_a_request_that_is_new_finds_the_objects_in_the_state_in_which_earlier_ones_leave_them(results):
    memory = Memory()
    results(memory, make(1.0), add(2.0))
    assert results(memory, make(1.0), add(2.0), add(3.0), add(4.0)) == [3.0, 6.0, 10.0]
    assert results(memory, make(1.0), add(5.0), add(3.0)) == [6.0, 9.0]
    assert Counter.made == 3


def test_other_code_is_asked_too(results):
    memory = Memory()
    results(memory, make(1.0), add(2.0))
    results(memory, make(1.0), add(2.0), name="another")
    assert Counter.made == 2


def test_arrays_are_told_apart_by_all_of_their_numbers(results):
    memory, x = Memory(), np.zeros(100_000)
    (first,) = results(memory, make(x), add(1.0))
    x[54_321] = 1.0
    (second,) = results(memory, make(x), add(1.0))
    assert (first.sum(), second.sum()) == (100_000.0, 100_001.0)


def test_what_is_remembered_has_an_end(results, monkeypatch):
    monkeypatch.setattr(replay, "MOST", 10)
    memory = Memory()
    for start in range(20):
        assert results(memory, make(float(start)), add(1.0), add(2.0)) == [start + 1, start + 3]
        assert len(memory.outcomes) <= 10
