"""A student's checker judges functions that it can call and not look into."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mha_grader.grading.judge import load_parts, run_parts
from mha_grader.grading.messages import NOT_WRITTEN
from mha_grader.grading.session import Session
from mha_grader.sandbox.requests import ERRORS
from mha_grader.testing import candidates
from mha_grader.testing.proxies import Recorder, local
from mha_lib.pitfalls import calls

ROOT = Path(__file__).parents[3]
ITEM = "single_head.causal_mask"
CHECKED = "multi_head.split_heads"
TEST = f'parts = checker_parts(check, "{ITEM}", right=3, each=0.5)'

GOOD = """
import numpy as np
def check(candidate):
    for n, m in [(1, 1), (3, 3), (3, 5), (2, 7)]:
        expected = np.arange(m) <= np.arange(n)[:, None] + m - n
        got = candidate(n, m)
        assert isinstance(got, np.ndarray) and got.dtype == bool
        assert got.shape == (n, m) and (got == expected).all()
    assert (candidate(4) == candidate(n=4, m=4)).all()
    assert (candidate(4) == np.tri(4)).all()
"""
SHAPE_ONLY = "def check(candidate):\n    assert candidate(3, 5).shape == (3, 5)"
SAYS_FALSE = "def check(candidate):\n    return candidate(3, 5)[0, 3] == False"
REFUSES_ALL = "def check(candidate):\n    raise ValueError"
COUNTS = """
calls = []
def check(candidate):
    calls.append(1)
    if len(calls) > 1: raise ValueError
"""
COUNTS_IN_A_FILE = """
import os
def check(candidate):
    with open('/tmp/count', 'a+') as file:
        file.write('x')
    if os.path.getsize('/tmp/count') > RIGHT: raise ValueError
"""
LOOKS_INSIDE = """
import gc, sys, types
seen = []
def check(candidate):
    texts = [repr(x) for x in gc.get_objects() if isinstance(x, (str, dict, types.FunctionType))]
    cells = [c.cell_contents for c in candidate.__closure__]
    found = [t for t in texts + [repr(c) for c in cells] if 'causal' + '-transposed' in t or 'pit' + 'fall/' in t]
    if found: raise ValueError(found[0])
"""


def verdicts(perform, source=GOOD):
    recorder = Recorder(perform)
    tested = recorder.bind("check", lambda candidate: None)
    parts = load_parts(TEST, {"check": tested}, SimpleNamespace())
    found = run_parts(parts, recorder, lambda part: np.random.default_rng(3))
    return {verdict.part.name: verdict for verdict in found}


@pytest.fixture(params=["in the sandbox", "in this process"])
def judge(request):
    def judge(source):
        if request.param == "in this process":
            namespace = {}
            exec(source, namespace)
            return verdicts(local(**namespace))
        with Session() as session:
            assert session.execute("check", source, 10) is None
            return verdicts(session.perform)

    return judge


def caught(found):
    return {name for name, verdict in found.items() if verdict.status == "pass"}


def test_a_good_checker_accepts_what_is_right_and_catches_every_mistake(judge):
    found = judge(GOOD)
    assert len(found) == 1 + len(candidates.wrong(ITEM))
    assert caught(found) == set(found), {n: v.reason for n, v in found.items() if v.status != "pass"}


def test_a_weak_checker_catches_what_it_catches(judge):
    found = judge(SHAPE_ONLY)
    assert "accepts what is right" in caught(found)
    assert "catches causal-transposed" not in caught(found)
    assert 0 < len(caught(found)) < len(found) / 2


def test_a_checker_must_raise(judge):
    found = judge(SAYS_FALSE)
    assert "should raise an error" in found["catches causal-transposed"].reason


def test_a_checker_that_refuses_what_is_right_earns_nothing(judge):
    found = judge(REFUSES_ALL)
    assert caught(found) == set()
    assert "rejects" in found["accepts what is right"].reason


def test_what_a_checker_raises_on_right_code_is_told(judge):
    found = judge("def check(candidate):\n    assert candidate(2, 3).dtype == float, 'no\\x1b[31m\\n floats'")
    assert "with AssertionError: no floats" in found["accepts what is right"].reason


def test_a_checker_that_is_not_written_is_told_so(judge):
    found = judge("def check(candidate):\n    raise NotImplementedError()")
    assert found["accepts what is right"].reason == NOT_WRITTEN


@pytest.mark.parametrize(
    "source", [COUNTS, COUNTS_IN_A_FILE.replace("RIGHT", str(len(candidates.right(ITEM))))]
)
def test_counting_the_candidates_earns_nothing(source):
    with Session() as session:
        assert session.execute("check", source, 10) is None
        assert len(caught(verdicts(session.perform))) <= 1


def test_a_candidate_cannot_be_looked_into():
    with Session() as session:
        assert session.execute("check", LOOKS_INSIDE, 10) is None
        found = verdicts(session.perform)
    assert "accepts everything" in found["accepts what is right"].reason  # it found nothing to go by


def test_what_a_candidate_changes_in_place_is_changed_in_the_checkers_array():
    source = "def check(candidate):\n    x = np.ones((2, 3))\n    candidate(x)\n    assert (x == 1).all()"
    with Session() as session:
        session.execute("check", "import numpy as np\n" + source, 10)
        recorder = Recorder(session.perform)
        check = recorder.bind("check", lambda candidate: None)
        assert check.check("single_head.softmax/style/by logarithm")["accepted"] is True
        assert check.check("single_head.softmax/pitfall/input-changed-in-place")["accepted"] is False


@pytest.mark.parametrize("spec", candidates.right(CHECKED) + candidates.wrong(CHECKED))
def test_an_error_of_a_candidate_and_a_call_outside_of_its_contract_say_nothing_of_it(spec):
    def check(candidate):
        for arguments in [(np.ones((2, 3, 5)), 2), (np.ones(4), 2), (np.ones((2, 3, 4)), 2.0), (), ("x", 2)]:
            try:
                candidate(*arguments)
            except Exception as error:
                seen.append((type(error), str(error)))

    seen = []
    Recorder(local(check=check)).bind("check", lambda candidate: None).check(spec)
    errors = [(ValueError, ERRORS["error"])] * (len(seen) - 4) + [(ValueError, ERRORS["outside"])] * 4
    assert seen == errors


def array(*shape):
    return np.arange(float(np.prod(shape))).reshape(shape)


MASK = np.tri(3, 5, dtype=bool)
ALLOWED = [  # by an item: a call, and whether its contract has it
    ("single_head.attention", (array(3, 4), array(5, 4), array(5, 2)), True),
    ("single_head.attention", (array(3, 4), array(5, 4), array(5, 2), MASK), True),
    ("single_head.attention", (array(2, 3, 4), array(2, 5, 4), array(2, 5, 2), MASK), True),
    ("single_head.attention", (array(2, 6, 3, 4), array(2, 6, 5, 4), array(2, 6, 5, 2), MASK[None, None]), True),
    ("single_head.attention", (array(2, 6, 3, 4), array(2, 6, 5, 4), array(2, 6, 5, 2), MASK[:1]), True),
    ("single_head.attention", (array(1, 2, 6, 3, 4), array(1, 2, 6, 5, 4), array(1, 2, 6, 5, 2)), True),
    ("single_head.attention", (array(2, 3, 4), array(2, 5, 4), array(2, 5, 2), MASK[None]), False),
    ("single_head.attention", (array(3, 4), array(5, 4), array(5, 2), ~MASK), True),
    ("single_head.attention", (array(3, 4), array(5, 4), array(5, 2), MASK & ~MASK), False),
    ("single_head.attention", (array(3, 4), array(5, 4), array(5, 2), MASK * 1.0), False),
    ("single_head.attention", (array(3, 4), array(5, 3), array(5, 2)), False),
    ("single_head.attention", (array(3, 4), array(5, 4), array(6, 2)), False),
    ("single_head.attention", (array(2, 3, 4), array(5, 4), array(5, 2)), False),
    ("single_head.attention", (array(4), array(4), array(4)), False),
    ("single_head.attention", (array(3, 4), array(5, 4), np.inf * np.ones((5, 2))), False),
    ("single_head.attention", (array(3, 4) * 1e200, array(5, 4) * 1e200, array(5, 2)), False),
    ("multi_head.split_heads", (array(2, 3, 4), 2), True),
    ("multi_head.split_heads", (array(2, 3, 4), 5), True),
    ("multi_head.split_heads", (array(2, 3, 4).astype(int), np.int64(2)), True),
    ("multi_head.split_heads", (array(2, 3, 4), np.array(2)), True),
    ("multi_head.split_heads", (array(2, 3, 4), np.array(2.0)), False),
    ("multi_head.split_heads", (np.ones((8, 128, 768)), 12), True),
    ("multi_head.split_heads", (np.ones((5, 1000, 1000), np.int8), 2), False),
    ("multi_head.split_heads", (array(2, 3, 4), 0), False),
    ("multi_head.split_heads", (array(2, 3, 4), 10**7), False),
    ("multi_head.split_heads", (array(2, 3, 4), True), False),
    ("multi_head.split_heads", (array(2, 0, 4), 2), False),
    ("multi_head.split_heads", (array(3, 4), 2), False),
    ("multi_head.split_heads", (array(2, 3, 4).tolist(), 2), False),
    ("multi_head.split_heads", (array(2, 3, 4) * 1j, 2), False),
    ("multi_head.split_heads", (array(2, 3, 4), 2, 2), False),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 4)] * 4, 2), True),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 4)] * 4, 2, np.tri(3, dtype=bool)), True),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 4)] * 4, 2, np.ones((2, 1, 1, 3), bool)), True),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 4)] * 4, 2, np.ones((2, 3, 3), bool)), False),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 4)] * 4, 3), False),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 4) * 1e160] * 4, 2), False),
    ("multi_head.multi_head_attention", (array(2, 3, 4), *[array(4, 3)] * 4, 2), False),
]  # fmt: skip


@pytest.mark.parametrize(("item", "arguments", "is_allowed"), ALLOWED)
def test_a_call_is_passed_on_if_the_contract_has_it(item, arguments, is_allowed):
    assert (calls.allowed(item, list(arguments), {}) is not None) == is_allowed


def test_every_item_that_a_checker_is_written_for_has_its_calls():
    sources = "".join(path.read_text("utf-8") for path in ROOT.glob("solutions/*.py"))
    checked = re.findall(r'checker_parts\(\w+, "([\w.]+)"', sources)
    assert len(checked) == 3
    assert set(checked) == set(calls.CALLS)


def test_the_arguments_that_a_candidate_gets_are_in_float64():
    args, _ = calls.allowed(CHECKED, [np.arange(24, dtype=np.int32).reshape(2, 3, 4), 2], {})
    assert args[0].dtype == np.float64


def test_a_call_that_brings_a_candidate_down_costs_the_checker_nothing():
    source = """
def check(candidate):
    try: candidate(9000, 9000)  # its result is larger than what may be sent
    except RuntimeError: assert candidate(2, 3).shape == (2, 3)
    else: raise ValueError
"""
    with Session() as session:
        session.execute("check", source, 10)
        check = Recorder(session.perform).bind("check", lambda candidate: None)
        assert check.check(candidates.right(ITEM)[0])["accepted"]


def test_a_check_may_use_the_sizes_of_a_real_model_and_far_too_many_heads():
    """One mistake's result is larger than what may be sent, and another one's loop would take minutes."""
    source = """
import numpy as np
def check(candidate):
    x = np.random.default_rng(0).normal(size=(8, 128, 768))
    assert np.array_equal(candidate(x, np.int64(12))[:, 3], x[..., 192:256])
    try: candidate(x[:1, :2, :4], 10**7)
    except Exception: return
    raise ValueError
"""
    with Session() as session:
        session.execute("check", source, 10)
        recorder = Recorder(session.perform)
        check = recorder.bind("check", lambda candidate: None)
        parts = load_parts(
            f'parts = checker_parts(check, "{CHECKED}", right=1, each=0.5)',
            {"check": check},
            SimpleNamespace(),
        )
        found = run_parts(parts, recorder, lambda part: np.random.default_rng(3))
    assert found[0].status == "pass", found[0].reason
    assert sum(verdict.status == "pass" for verdict in found) > 5


def test_an_endless_checker_is_stopped():
    from mha_grader.grading.session import Budget

    with Session(budget=Budget(call=1, item=5)) as session:
        session.execute("check", "def check(candidate):\n    while True: candidate(2)", 10)
        found = verdicts(session.perform)
    assert found["accepts what is right"].status == "timeout"
    assert caught(found) == set()
