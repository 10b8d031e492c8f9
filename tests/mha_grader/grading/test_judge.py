"""Parts get verdicts; a hidden test cannot tell where the function runs; seeds are secret and exact."""

from types import SimpleNamespace

import numpy as np
import pytest

from mha_grader.grading.judge import load_parts, run_parts, seed
from mha_grader.grading.messages import NOT_WRITTEN, OTHER_KIND, RAISED
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.sandbox.text import clean
from mha_grader.testing.errors import CallError
from mha_grader.testing.proxies import Recorder, local

REFERENCE = SimpleNamespace(f=lambda x: x + 1)

TEST = '''
@part(points=2)
def first(rng):
    """The value."""
    x = rng.normal(size=(2, 3))
    expect_close(f(x), reference.f(x))

@part(points=1, needs="first")
def second(rng):
    """Rests on the first."""
    f(np.ones(3))
    expect_unchanged(f)

@part(points=1, needs=["second"])
def third(rng):
    """Rests on the second."""
    f(np.zeros(2))

@part(points=1)
def fourth(rng):
    """Rests on nothing."""
    expect_equal(f(np.array([1, 2])).shape, (2,))
'''


def verdicts(function):
    recorder = Recorder(local(f=function))
    parts = load_parts(TEST, {"f": recorder.bind("f", function)}, REFERENCE)
    return run_parts(parts, recorder, lambda part: np.random.default_rng(0))


def statuses(function):
    return [verdict.status for verdict in verdicts(function)]


def test_a_right_function_passes_every_part():
    assert statuses(lambda x: x + 1) == ["pass"] * 4


def test_parts_that_rest_on_a_failed_one_are_not_run_and_say_so():
    found = verdicts(lambda x: x + 2)
    assert [verdict.status for verdict in found] == ["fail", "not-run", "not-run", "pass"]
    assert "“first”" in found[1].reason
    assert "“second”" in found[2].reason


def test_parts_that_do_not_count_are_recorded_unless_the_code_hangs():
    assert verdicts(lambda x: x + 2)[2].steps

    def hang(x):
        raise AssertionError

    recorder = Recorder(slow := Slow())
    parts = load_parts(TEST, {"f": recorder.bind("f", hang)}, REFERENCE)
    found = run_parts(parts, recorder, lambda part: np.random.default_rng(0))
    assert [verdict.status for verdict in found] == ["timeout", "not-run", "not-run", "timeout"]
    assert slow.calls == 2


class Slow:
    """Carries nothing out in time."""

    calls = 0

    def __call__(self, request):
        self.calls += 1
        raise CallError("timeout")


def test_what_a_function_raises_is_an_error_and_its_text_stays_here():
    def leak(x):
        raise ValueError(f"secret {x}")

    found = verdicts(leak)[0]
    assert found.status == "error"
    assert "ValueError" in found.reason
    assert "secret" not in found.reason


def test_a_stub_is_told_apart_from_an_error():
    def stub(x):
        raise NotImplementedError

    assert verdicts(stub)[0].reason == NOT_WRITTEN


def test_what_a_library_has_not_implemented_is_shown_in_its_own_words():
    def f(x):
        raise NotImplementedError("softmax is not implemented for Bool")

    reason = verdicts(f)[0].reason
    assert reason.startswith(f"{RAISED} NotImplementedError")
    assert reason.endswith(": softmax is not implemented for Bool")


def test_calls_are_recorded_as_they_were():
    def scribble(x):
        result = x + 1
        x[:] = 0
        return result

    found = verdicts(scribble)
    assert [verdict.status for verdict in found] == ["pass", "fail", "not-run", "pass"]
    step = found[0].steps[0]
    assert step.request["args"][0].any()
    assert step.changed == ("0",)


def test_a_part_sees_its_own_secret_draws_each_time_the_same():
    def draws(*arguments):
        return seed(*arguments).integers(2**62, size=4).tolist()

    one = draws(b"secret", "toy 1.0", "f", "first")
    assert one == draws(b"secret", "toy 1.0", "f", "first")
    others = [
        draws(b"other", "toy 1.0", "f", "first"),
        draws(b"secret", "toy 1.1", "f", "first"),
        draws(b"secret", "toy 1.0", "g", "first"),
        draws(b"secret", "toy 1.0", "f", "second"),
    ]
    assert all(one != other for other in others)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "defines no part"),
        ('@part(points=1, needs="later")\ndef a(rng):\n    "Shows."', "not a part before it"),
        ("@part(points=1)\ndef a(rng): pass", "no docstring"),
        ('@part(points=-1)\ndef a(rng):\n    "Shows."', "less than 0"),
    ],
)
def test_a_hidden_test_that_is_not_one_is_refused(source, message):
    with pytest.raises(ValueError, match=message):
        load_parts(source, {}, REFERENCE)


def test_a_test_that_trips_over_an_odd_result_is_a_verdict_and_a_broken_machine_is_not():
    def load(body):
        recorder = Recorder(local(f=lambda x: None))
        source = f'@part(points=1)\ndef only(rng):\n    "Shows."\n    {body}'
        parts = load_parts(source, {"f": recorder.bind("f", lambda x: x)}, REFERENCE)
        return run_parts(parts, recorder, lambda part: np.random.default_rng(0))

    (verdict,) = load("f(1)[0]")
    assert verdict.status == "fail"
    assert verdict.reason == OTHER_KIND
    with pytest.raises(SandboxUnavailable):
        load("from mha_grader.sandbox.fork_server import SandboxUnavailable\n    raise SandboxUnavailable")


def test_text_of_a_student_is_made_harmless():
    assert clean("a\x1b[31mb\nc\u202ed\x1b") == "ab c d "
    assert len(clean("x" * 1000)) == 300
