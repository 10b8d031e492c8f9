"""Attacks by hand-ins of someone who has read all of the grader: they earn nothing, see nothing, and stop nobody.

Each row is one attack. What `test_grade` tries already is not repeated here.
"""

import json
import os
import time
import tracemalloc
from pathlib import Path

import numpy as np
import psutil
import pytest

from mha_grader.course import store
from mha_grader.course.assignment import assignment_names, load_assignment
from mha_grader.grading import rebuild
from mha_grader.grading.grade import grade_submission
from mha_grader.grading.judge import load_parts, run_parts
from mha_grader.sandbox import fork_server
from mha_grader.sandbox.sandbox import process_number
from mha_grader.testing.proxies import Recorder, local
from tests.mha_grader.grading.test_red_team_replies import ARM

# --- whole hand-ins -------------------------------------------------------------------------------------------

DOUBLE = "def double(x):\n    if isinstance(x, str):\n        {}\n    return 2 * x\n"
HANDINS = {  # code of `double`, and what it deserves
    "an error with a name that cannot be written": (
        ARM + DOUBLE.format("fail(types=['\\ud800', 'TypeError'], text='text'); return"), 4),
    "an error that is no TypeError": (ARM + DOUBLE.format("fail(types=['\\x1b[31m\\ud800']); return"), 3),
    "changes that cannot be written": (
        ARM + DOUBLE.format("raise TypeError('text')").replace(
            "return", "change(changed=['\\ud800'])\n    return"), 3),
    "looks for the test in its own memory": (
        "import re\ndef double(x):\n    found = None\n    for line in open('/proc/self/maps'):\n"
        "        low, high = (int(end, 16) for end in line.split()[0].split('-'))\n"
        "        if line.split()[1].startswith('rw') and high - low < 2**26:\n"
        "            with open('/proc/self/mem', 'rb') as memory:\n                memory.seek(low)\n"
        "                found = found or re.search(b'refuses[_]text', memory.read(high - low))\n"
        "    return 2 * x if found else None", 0),
    "looks for the answer among all objects": (
        "import gc\ndef double(x):\n"
        "    return next((o for o in gc.get_objects() if isinstance(o, np.ndarray) and o.shape == x.shape\n"
        "                 and o is not x and not np.array_equal(o, x)), None)", 0),
    "imports the reference": (
        "def double(x):\n    import importlib, sys\n"
        "    sys.path += ['/work', '/grader', '/proc/1/root', '/proc/1/cwd']\n"
        "    return importlib.import_module('mha_lib').double(x)", 0),
    "asks for a class of the grader": (
        "double = type('Mismatch', (Exception,), {'__call__': lambda s, x: s})()", 0),
    "burns the processor in many sessions": (
        "import os\nfor _ in range(20):\n    if not os.fork():\n        os.setsid()\n        while True: pass\n"
        + DOUBLE.format("raise TypeError('text')"), 4),
    "stops the first process": (
        "import os, signal\ndef double(x):\n    os.kill(1, signal.SIGSTOP); os.kill(-1, signal.SIGKILL)", 0),
    "is a module with a module's lies": (
        "class Lies:\n    def __call__(self, x): return self\n    def __array__(self, *a, **k): raise SystemExit\n"
        "    def __getattr__(self, name): return self\n    def __iter__(self): return self\n"
        "    def __next__(self): return self\ndouble = Lies()", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDINS)
def test_a_hand_in_gets_what_its_code_deserves(toy, settings, tmp_path, name):
    source, deserved = HANDINS[name]
    cells = [
        {"cell_type": "code", "source": text, "metadata": {"nbgrader": {"grade_id": item}}}
        for item, text in (("double", source), ("quadruple", "quadruple = lambda x: 4 * x"))
    ]
    with settings.session(toy) as session:
        session.execute("first", "pass", 10)  # the fork server stays, nothing else does
    server = psutil.Process(process_number(fork_server.get(settings.layout(toy)).process))
    before = set(server.parent().children(recursive=True))
    record = grade_submission(toy, settings, json.dumps({"cells": cells}).encode())
    assert {item.item: item.score for item in record.items} == {
        "double": deserved,
        "quadruple": 1.5,
        "answers": 0,
    }
    store.save(tmp_path, "student", record)
    assert store.load(tmp_path, "student") == record
    told = "".join(part.message for item in record.items for part in item.parts)
    assert all(c.isprintable() or c == "\n" for c in told)
    assert "refuses_text" not in told
    assert server in before
    left = set(server.parent().children(recursive=True)) - before
    assert psutil.wait_procs(left, timeout=20)[1] == []  # what was killed may still have to be gathered up


def test_large_results_in_every_part_take_no_memory_of_the_grader(toy, settings):
    source = "import numpy as np\nlarge = np.zeros(2**26 - 1, np.int8)\ndef {}(x):\n    return large"
    cells = [
        {"cell_type": "code", "source": source.format(item), "metadata": {"nbgrader": {"grade_id": item}}}
        for item in ("double", "quadruple")
    ]
    tracemalloc.start()
    try:
        assert grade_submission(toy, settings, json.dumps({"cells": cells}).encode()).score == 0
        assert tracemalloc.get_traced_memory()[1] < 300 * 2**20
    finally:
        tracemalloc.stop()


def test_very_many_words_take_no_memory_of_the_grader(toy, settings):
    words = "".join(f" w{number}" for number in range(30_000))
    texts = [f"'{words.replace('w', letter)}'" for letter in "abcdefghij"]
    cells = [{"cell_type": "code", "source": source} for source in texts]
    tracemalloc.start()
    try:
        grade_submission(toy, settings, json.dumps({"cells": cells}).encode())
        assert tracemalloc.get_traced_memory()[1] < 18 * 2**20
    finally:
        tracemalloc.stop()


# --- right code where the student's own is wrong --------------------------------------------------------------

COURSE = Path(__file__).parents[3]
NAMES = assignment_names(COURSE)


def borrowed(right):
    """What an item could be that only hands on what another one gives."""
    if isinstance(right, type):
        return [type("Borrowed", (right,), {})]
    return [right, lambda *args, **kwargs: right(*args, **kwargs)[0]]


@pytest.mark.parametrize("name", NAMES)
def test_right_code_that_stands_in_gives_no_other_item_away(name):
    given = load_assignment(COURSE, name)
    for item in given.items:
        right = getattr(given.reference, item)
        for other in given.rests_on(item):
            for stolen in borrowed(getattr(given.reference, other)):
                recorder = Recorder(local(**{item: stolen}))
                names = {item: recorder.bind(item, right)}
                parts = load_parts(given.cell("test", item).hidden, names, given.reference)
                verdicts = run_parts(parts, recorder, lambda part: np.random.default_rng(1))
                won = sum(verdict.part.points for verdict in verdicts if verdict.status == "pass")
                assert won <= sum(part.points for part in parts) / 5, (item, other)


# --- files ----------------------------------------------------------------------------------------------------


def added(*sources):
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]}).encode()


FILES = {  # data of the hand-in, and its status
    "sheets without cells": (
        b'{"worksheets": [{"cells": null}, {"cells": 5}, {"cells": {"a": 1}}]}', "not-a-notebook"),
    "sheets with anything": (b'{"worksheets": [null, {"cells": [1, {"input": "double = 1"}]}]}', None),
    "an f-string without end": (added("double = f'" + "{1}" * 300_000 + "'"), None),
    "a hundred large cells": (added(*["x = [" + "0," * 150_000 + "]"] * 100), None),
    "more cells than memory": (b'{"cells": [' + b"{}," * 2_000_000 + b"{}]}", "too-large"),
    "more lists than memory": (b'{"cells": [{}], "metadata": [' + b"[]," * 2_000_000 + b"0]}", "too-large"),
    "very many cells that are slow to read": (added(*["x = [" + "a+a," * 300 + "]"] * 50_000), None),
    "very many cells": (added(*["double = 1"] * 150_000), None),
    "an integer without end": (b'{"nbformat": ' + b"9" * 100_000 + b', "cells": []}', "not-json"),
    "keys that come twice": (b'{"cells": 1, "cells": [{"source": "x", "source": 3}]}', None),
    "cells by many names": (
        json.dumps({"cells": [{"cell_type": ["code"], "source": {}, "metadata": {"nbgrader": {"grade_id": {}}},
                               "id": [1]}] * 1000}).encode(), None),
    "numbers that are none": (b'{"cells": [{"source": NaN, "metadata": Infinity, "cell_type": -0.0}]}', None),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_bomb_of_a_file_is_read_in_seconds(toy, name):
    data, status = FILES[name]
    start = time.process_time()
    try:
        assert set(rebuild.rebuild(toy, data).sources) == set(toy.items)
        outcome = None
    except rebuild.Unusable as unusable:
        outcome = unusable.status
    assert outcome == status
    assert time.process_time() - start < 10  # of this process alone


def socket_file(path):
    import socket

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


ODD = {  # what lies in the place of the notebook
    "a name that is no text": lambda folder: Path(
        os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.ipynb")).write_text("{}"),
    "a name with terminal codes": lambda folder: (folder / "\x1b]0;x\x07\u202e.ipynb").write_text("{}"),
    "names beyond counting": lambda folder: [(folder / f"{i}\n.ipynb").write_text("{}") for i in range(500)],
    "a pipe": lambda folder: os.mkfifo(folder / "toy.ipynb"),
    "a socket": lambda folder: socket_file(folder / "toy.ipynb"),
    "a folder": lambda folder: (folder / "toy.ipynb").mkdir(),
    "a link to itself": lambda folder: (folder / "toy.ipynb").symlink_to("toy.ipynb"),
    "a link to the memory": lambda folder: (folder / "toy.ipynb").symlink_to("/proc/self/mem"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_told_in_words_that_can_be_stored(tmp_path, toy, name):
    ODD[name](tmp_path)
    try:
        notes = rebuild.find(tmp_path, toy).notes
    except rebuild.Unusable as unusable:
        notes = [str(unusable)]
    assert all(note.isprintable() and len(note.encode()) < 2000 for note in notes)


def test_of_very_many_cells_the_first_are_looked_at_and_it_is_said(toy):
    rebuilt = rebuild.rebuild(toy, added(*["pass"] * (rebuild.MAX_CELLS + 1)))
    assert any(note.startswith("only the first 1000 of the notebook's 1001 cells") for note in rebuilt.notes)
