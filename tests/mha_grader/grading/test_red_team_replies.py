"""Attacks on what goes between the processes, by someone who has read all of the grader: they earn nothing.

Each row is one attack.
"""

import time

import pytest

from mha_grader.grading.session import Budget, Session
from mha_grader.sandbox.fork_server import Limits
from mha_grader.testing.errors import CallError

# --- forged replies -------------------------------------------------------------------------------------------

# `arm` lets the next reply be made by the student: the worker sends through a module that anyone can change.
ARM = """\
import json, struct, sys, time
import numpy as np
_wire = sys.modules['_wire']
honest = _wire.send
def arm(forge):
    def send(channel, message):
        _wire.send = honest
        forge(channel, message)
    _wire.send = send
def change(**fields):
    arm(lambda channel, message: honest(channel, {**message, **fields}))
def raw(text, payload=b''):
    def forge(channel, message):
        header = text.replace('NUMBER', str(message['number'])).encode()
        channel.sendall(struct.pack('>IQ', len(header), len(payload)) + header + payload)
    arm(forge)
def fail(**fields):
    change(**{'status': 'error', 'types': ['KeyError'], 'text': 'x', 'cell': 'f', 'line': 1, **fields})
def tree(value):
    raw('{"number": NUMBER, "status": "ok", "value": ' + value + '}')
"""
FORGED = {  # what the student's function does, and what comes of it
    "number is an array": ("change(number=np.array([1, 2]))", "died"),
    "number is an empty array": ("change(number=np.array([]))", "died"),
    "number is true": ("change(number=True)", "died"),
    "number is a float": (
        "arm(lambda channel, message: honest(channel, {**message, 'number': float(message['number'])}))",
        "died",
    ),
    "number is a text": ("raw('{\"number\": \"NUMBER\", \"status\": \"ok\"}')", "died"),
    "number is missing": ("raw('{\"status\": \"ok\"}')", "died"),
    "number comes twice": ("raw('{\"number\": -1, \"number\": NUMBER, \"status\": \"ok\"}')", "ok"),
    "status is an array": ("change(status=np.array([1, 2]))", "died"),
    "status is unknown": ("change(status='pass')", "error"),
    "asks a candidate that there is not": ("change(status='candidate', args=[], kwargs={})", "error"),
    "cell is an array": ("fail(cell=np.array([1, 2]))", "error"),
    "line is huge": ("fail(line=10**4000)", "error"),
    "line is an array": ("fail(line=np.arange(3))", "error"),
    "types hold surrogates": ("fail(types=['\\ud800'])", "error"),
    "types hold markup": ("fail(types=['<script>alert(1)</script>'])", "error"),
    "types hold terminal codes": ("fail(types=['\\x9b31m', '\\x1b]0;owned\\x07'])", "error"),
    "types hold no text": ("fail(types=[np.zeros(3), None, {}])", "error"),
    "types are many": ("fail(types=['KeyError'] * 90_000)", "error"),
    "text holds surrogates": ("fail(text='\\ud800')", "error"),
    "text is huge": ("fail(text='x' * 3_000_000)", "error"),
    "text is data": ("fail(text={'a': np.zeros((2, 2))})", "error"),
    "changed holds surrogates": ("change(changed=['\\udfff', '\\x1b[2J', 7, None])", "ok"),
    "changed is endless": ("change(changed=['x' * 1000] * 3000)", "ok"),
    "changed is a dict": ("change(changed={'0': 1})", "ok"),
    "keys that all collide": (
        "tree('{\"d\": [' + ','.join(f'[{i * (2**61 - 1)}, 0]' for i in range(100_000)) + ']}')",
        "died",
    ),
    "many dicts with keys that collide": (
        "one = '{\"d\": [' + ','.join(f'[{i * (2**61 - 1)}, 0]' for i in range(4000)) + ']}'\n"
        "    tree('[' + ','.join([one] * 20) + ']')",
        "died",
    ),
    "a million lists": ("tree('[' + ','.join(['[]'] * 1_000_000) + ']')", "died"),
    "an integer without end": ("tree('9' * 1_000_000)", "died"),
    "a float beyond all floats": ("tree('1e999999')", "ok"),
    "nested beyond the parser": ("tree('[' * 500_000)", "died"),
    "text with surrogates": ("tree('\"\\\\ud800\"')", "ok"),
    "tag with surrogates": ("tree('{\"\\\\ud800\": 1}')", "died"),
    "type with terminal codes": ("tree('{\"o\": \"\\\\u001b[31m\\\\ud800\"}')", "ok"),
    "handle to nothing": ("tree('{\"h\": 7}')", "ok"),
    "array of objects": ("tree('{\"a\": [\"O\", [0]]}')", "died"),
    "array of negative size": ("tree('{\"a\": [\"int8\", [-1]]}')", "died"),
    "tensor of an odd dtype": ("tree('{\"T\": [\"complex128\", [0]]}')", "died"),
    "array with too many axes": ("tree('{\"a\": [\"int8\", ' + str([0] * 33) + ']}')", "died"),
    "payload that nobody needs": ("raw('{\"number\": NUMBER, \"status\": \"ok\"}', b'x' * 2**20)", "died"),
    "payload beyond the cap": ("arm(lambda c, m: c.sendall(struct.pack('>IQ', 2, 2**26 + 1)))", "died"),
    "payload that never comes": ("arm(lambda c, m: c.sendall(struct.pack('>IQ', 2, 2**26) + b'{}'))", "timeout"),
    "one byte at a time": (
        "arm(lambda c, m: [(c.sendall(b'\\0'), time.sleep(1)) for _ in range(20)])",
        "timeout",
    ),
    "two replies at once": ("arm(lambda c, m: (honest(c, m), honest(c, {**m, 'value': 'second'})))", "ok"),
}  # fmt: skip


@pytest.fixture(scope="module")
def session():
    with Session(limits=Limits(memory=1024), budget=Budget(call=2, submission=600, item=600)) as session:
        assert session.execute("arm", ARM, 10) is None
        yield session


def call(session, name="f", **fields):
    request = {"op": "call", "target": name, "method": None, "args": [], "kwargs": {}, "keep": None}
    return session.perform(request | fields)


def storable(value):
    """Whether this can stand in a record: in UTF-8, and short."""
    return len(repr(value).encode()) < 20_000 and len(str(value).encode()) < 20_000


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_reply_is_data_or_a_failure(session, name):
    forge, expected = FORGED[name]
    session.start_item()
    assert session.execute("f", f"def f():\n    {forge}\ndef honest_one(): return 7", 5) is None
    start = time.process_time()
    try:
        result, changed = call(session)
    except CallError as error:
        outcome, told, words = error.kind, (error.text, error.line), error.type_names
    else:
        outcome, told, words = "ok", result, changed
    assert outcome == expected
    assert storable((told, words))
    assert all(word.isalnum() or word == "?" for word in words)
    assert time.process_time() - start < 6  # of this process alone: it is not the machine that is tested
    if name == "two replies at once":  # the second one does not answer the next question
        with pytest.raises(CallError, match="died"):
            call(session, "honest_one")
    assert call(session, "honest_one") == (7, ())


# --- a checker and what it is given ---------------------------------------------------------------------------

SPEC = "single_head.softmax/style/{}"
CHECKERS = {
    "verdict is no dict": ("change(value=5)", "died"),
    "verdict is empty": ("change(value={})", "died"),
    "verdict is an array": ("change(value={'accepted': np.array([1, 2]), 'returned': False})", "died"),
    "verdict is a number": ("change(value={'accepted': 1, 'returned': 0})", "died"),
    "returned is missing": ("change(value={'accepted': True})", "died"),
    "arguments are a number": ("change(status='candidate', args=5, kwargs={})", "error"),
    "arguments are missing": ("change(status='candidate')", "error"),
    "names are a number": ("change(status='candidate', args=[], kwargs=5)", "error"),
    "arguments are handles": ("candidate(_wire.Handle(1))", "ok"),
    "a name that is none": ("candidate(**{'\\ud800': 1})", "ok"),
    "arguments are large": ("candidate(np.broadcast_to(np.float16(1), (2**20,)))", "ok"),
    "ends while it is served": ("import os\n    os._exit(0)", "died"),
    "ends badly while it is served": ("import os\n    os._exit(3)", "died"),
}


@pytest.mark.parametrize("name", CHECKERS)
def test_a_checker_cannot_hurt_the_candidates_or_the_grader(session, name):
    trick, expected = CHECKERS[name]
    spec = next(spec for spec in grading_candidates() if "/style/" in spec)
    session.start_item()
    source = (
        f"def check(candidate):\n    {trick}\ndef fine(candidate): assert candidate(np.zeros(2))[0] == 0.5"
    )
    assert session.execute("check", source, 5) is None
    try:
        session.perform({"op": "check", "target": "check", "candidate": spec})
        outcome = "ok"
    except CallError as error:
        outcome = error.kind
    assert outcome == expected
    verdict, _ = session.perform({"op": "check", "target": "fine", "candidate": spec})
    assert verdict["accepted"] is True


def grading_candidates():
    from mha_grader.testing import candidates

    return candidates.right("single_head.softmax")


@pytest.mark.parametrize("place", [1, 3])
def test_a_cell_that_ends_the_process_only_when_it_is_executed_again_is_left_out(place):
    sources = ["x = 6", "def f(): return x + 1", "def g():\n    import os\n    os._exit(0)"]
    with Session() as session:
        for number, source in enumerate([*sources[:place], "pass", *sources[place:]]):
            assert session.execute(f"cell {number}", source, 5) is None
        label, _, seconds = session._executed[place]
        session._executed[place] = (
            label,
            "import os\nos._exit(0)",
            seconds,
        )  # as a cell can that looks at a clock
        session.start_item()
        with pytest.raises(CallError, match="died"):
            call(session, "g")
        assert call(session) == (7, ())
