"""Attacks of checkers on what they judge: candidates cannot be told apart but by what they do, nor be counted.

Each row is one attack.
"""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from mha_grader.grading.judge import load_parts, run_parts, seed
from mha_grader.grading.session import Session
from mha_grader.testing import candidates
from mha_grader.testing.proxies import Recorder, local

# --- by a name ------------------------------------------------------------------------------------------------

CHECKED = ("single_head.attention", "multi_head.split_heads", "multi_head.multi_head_attention")
RAISED = """
    error = raised(candidate, {arguments})
    trace, frames = error.__traceback__, []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_name, code.co_qualname, code.co_filename, trace.tb_lineno))
        frames.append(sorted(trace.tb_frame.f_locals))
        trace = trace.tb_next
    about = vars(error), error.__cause__, str(error.__context__), type(error).__module__
    return str(error), error.args, about, frames
"""
FORMS = {  # what a checker sees of a candidate: the same of each
    "a wrong keyword": RAISED.format(arguments="zzz=1"),
    "too few arguments": RAISED.format(arguments=""),
    "too many arguments": RAISED.format(arguments="*range(20)"),
    "types of which an error speaks": RAISED.format(arguments="{}, []"),
    "features that do not fit": RAISED.format(arguments="np.ones((1, 2, 7)), 2"),
    "what it makes of a vector": RAISED.format(arguments="np.ones(4), 2"),
    "what it makes of other numbers": RAISED.format(arguments="np.ones((1, 2, 4)) * 1j, 2"),
    "what it makes of no heads": RAISED.format(arguments="np.ones((1, 2, 4)), 0"),
    "its repr": "\n    return repr(candidate).split(' at ')[0], str(candidate).split(' at ')[0]",
    "its names": (
        "\n    return [getattr(candidate, name, None) for name in ('__name__', '__qualname__', '__module__',"
        " '__doc__', '__dict__', '__defaults__', '__kwdefaults__', '__annotations__', '__wrapped__')]"
    ),
    "its help, signature and source": (
        "\n    return pydoc.render_doc(candidate).split(' at ')[0], str(inspect.signature(candidate)),"
        " inspect.getsourcelines(candidate)[1], candidate.__code__.co_consts, candidate.__code__.co_names"
    ),
    "what it prints and warns of": (
        "\n    out = io.StringIO()\n    with warnings.catch_warnings(record=True) as warned, "
        "contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):\n"
        "        warnings.simplefilter('always')\n        raised(candidate, np.array([[[np.nan, np.inf]]]), 2)\n"
        "    return out.getvalue(), [str(w.message) for w in warned]"
    ),
    "how its result lies in memory": (
        "\n    x = candidate(np.arange(24.0).reshape(2, 2, 6), 3)\n"
        "    return type(x), x.flags.c_contiguous, x.flags.writeable, x.flags.aligned, type(x.base),"
        " x.dtype.byteorder, x.strides == np.ascontiguousarray(x).strides"
    ),
}  # fmt: skip
ODD = {"features that do not fit": (np.ones((1, 2, 7)), 2)}
LOOK = """
import contextlib, hashlib, inspect, io, pydoc, warnings
import numpy as np
def raised(candidate, *args, **kwargs):
    try: return candidate(*args, **kwargs)
    except Exception as error: return error
def look(candidate):BODY
def check(candidate):
    raise ValueError(str(look(candidate))[:150] + hashlib.sha256(str(look(candidate)).encode()).hexdigest()[:20])
"""
# Sixteen ways of splitting differ in how a result lies in memory, in the errors that they raise and in their names.
SPLITS = candidates.right(CHECKED[1])[:5] + candidates.wrong(CHECKED[1])[:5]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["in the sandbox", "in this process"])
def test_all_candidates_look_the_same(form, where):
    source = LOOK.replace("BODY", FORMS[form])
    # Whether it raises is what it does: those that do are compared.
    specs = [spec for spec in SPLITS if raises(spec, ODD[form])] if form in ODD else SPLITS
    assert len(specs) > 1
    with Session() as session:
        if where == "in the sandbox":
            assert session.execute("check", source, 10) is None
            perform = session.perform
        else:
            namespace = {}
            exec(compile(source, "<cell check>", "exec"), namespace)
            perform = local(**namespace)
        check = Recorder(perform).bind("check", lambda candidate: None)
        seen = {check.check(spec)["text"] for spec in specs}
    assert len(seen) == 1, seen


def raises(spec, arguments):
    try:
        candidates.resolve(spec)(*arguments)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("item", CHECKED)
def test_all_candidates_are_called_in_one_way(item):
    functions = map(candidates.resolve, candidates.right(item) + candidates.wrong(item))
    found = {
        tuple((p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values())
        for f in functions
    }
    assert len(found) == 1


def test_of_an_error_nothing_is_told():
    reply = {"status": "error", "types": ["AxisError"], "text": "attention_without_scale()", "line": 3}
    assert candidates.told(reply) == {"status": "error"}


# --- by what was seen of others -------------------------------------------------------------------------------

ITEM = "single_head.causal_mask"
SPECS = candidates.right(ITEM) + candidates.wrong(ITEM)
FILE = """
def place():
    with open({path!r}, 'a+') as file: file.write('x')
    return os.path.getsize({path!r}) - 1
"""
COUNTERS = {
    "a variable of the notebook": "calls = []\ndef place():\n    calls.append(1)\n    return len(calls) - 1",
    "a file": FILE.format(path="/tmp/count"),
    "a file at home": FILE.format(path="count"),
    "the number of the process": "first = os.getpid()\ndef place(): return os.getpid() - first - 1",
    "time": (
        "import time\ndef place():\n    with open('/tmp/start', 'a+') as file:\n        file.seek(0)\n"
        "        start = float(file.read() or 0) or time.monotonic()\n"
        "        file.truncate(0); file.write(str(start))\n"
        "    return int((time.monotonic() - start) / 0.05)"
    ),
    "shared memory": (
        "import mmap\nfile = open('/dev/shm/count', 'w+b')\nfile.truncate(8)\n"
        "memory = mmap.mmap(file.fileno(), 8)\n"
        "def place():\n    memory[0] += 1\n    return memory[0] - 1"
    ),
    "a process that stays": (
        "import socket\nours, theirs = socket.socketpair()\nif not os.fork():\n    number = 0\n"
        "    while theirs.recv(1):\n"
        "        theirs.send(bytes([number])); number += 1\n    os._exit(0)\n"
        "def place():\n    ours.send(b'?')\n    return ours.recv(1)[0]"
    ),
}  # fmt: skip
CHECK = """
import os
WRONG = {wrong}
{counter}
def check(candidate):
    if place() in WRONG: raise ValueError
"""


# It knows nothing of the contract: right ways of writing agree with each other, so the first answer to come three
# times is taken for right.
MAJORITY = """
import os
import numpy as np
{memory}
def check(candidate):
    def answer(arguments):
        try: return repr(candidate(*arguments))
        except Exception: return 'raised'
    seen = str([answer(arguments) for arguments in ((3, 5), (4, 4), (2, 7))])
    known = remembered(seen)
    often = [text for text in known if known.count(text) > 2]
    if often and seen != often[0]: raise ValueError
"""
IN_A_FILE = """
def remembered(text):
    with open({path!r}, 'a+') as file:
        file.write(text.replace(chr(10), ' ') + '|')
        file.seek(0)
        return file.read().split('|')[:-1]
"""
MEMORIES = {
    "a variable": "texts = []\ndef remembered(text):\n    texts.append(text)\n    return texts",
    "a file": IN_A_FILE.format(path="/tmp/seen"),
    "a file at home": IN_A_FILE.format(path="seen"),
    "shared memory": IN_A_FILE.format(path="/dev/shm/seen"),
}


class Remembering(Session):
    """What a session would be if a checker met all candidates in one process."""

    def forget(self):
        pass


def handed_in(source, drawn=None, kind=Session):
    """How many parts pass; the order is drawn as the grader does it, or as it was for another hand-in."""
    with kind() as session:
        assert session.execute("check", source, 10) is None
        recorder = Recorder(session.perform)
        tested = recorder.bind("check", lambda candidate: None)
        parts = load_parts(
            f'parts = checker_parts(check, "{ITEM}", right=3, each=0.5)', {"check": tested}, SimpleNamespace()
        )
        assert all(part.drawn_anew for part in parts)
        generators = {
            part.name: seed(b"secret", "v", "check", part.name, drawn or session.digest()) for part in parts
        }
        verdicts = run_parts(parts, recorder, lambda part: generators[part.name])
        return sum(verdict.status == "pass" for verdict in verdicts), session.digest()


def learnt(digest):
    """The places of the wrong ones in a hand-in whose order became known."""
    order = seed(b"secret", "v", "check", "accepts what is right", digest).permutation(SPECS).tolist()
    return [place for place, spec in enumerate(order) if "/pitfall/" in spec]


@pytest.mark.parametrize("name", COUNTERS)
def test_a_checker_that_counts_earns_nothing_even_if_it_knows_the_order(name):
    _, before = handed_in(CHECK.format(wrong=[], counter=COUNTERS[name]))
    source = CHECK.format(wrong=learnt(before), counter=COUNTERS[name])
    assert handed_in(source)[0] == 0
    assert handed_in(source, drawn=before)[0] == 0
    if "file" in name:  # in one process, and were the order the same, it would earn all
        assert handed_in(source, before, Remembering)[0] == 1 + len(candidates.wrong(ITEM))


@pytest.mark.parametrize("name", MEMORIES)
def test_a_checker_cannot_remember_what_other_candidates_did(name):
    source = MAJORITY.format(memory=MEMORIES[name])
    assert handed_in(source)[0] == 0
    assert handed_in(source, kind=Remembering)[0] > 1


OF_THE_MACHINE = """
import os, socket
found = {}
for folder, _, files in os.walk('/proc'):
    if not folder.split('/')[2:3] or not (folder.split('/')[2].isdigit() or 'self' in folder):
        for name in files:
            if os.path.islink(f'{folder}/{name}'): continue  # to what is the process's own
            with open(f'{folder}/{name}', 'rb') as file:
                if text := file.read(9): found[f'{folder}/{name}'] = text
try: found['cookie'] = socket.socket(socket.AF_UNIX).getsockopt(socket.SOL_SOCKET, 57, 8)
except OSError: pass
def look(): return sorted(found)
"""


def test_nothing_is_seen_that_the_kernel_counts_for_the_whole_machine():
    with Session() as session:
        assert session.execute("look", OF_THE_MACHINE, 10) is None
        seen = Recorder(session.perform).bind("look", lambda: None)()
    assert seen == ["/proc/cpuinfo", "/proc/version"]


def test_the_order_is_that_of_the_hand_in():
    digests = {}
    for source in ("x = 1", "x = 1 ", "x = 1"):
        with Session() as session:
            session.execute("check", source, 10)
            digests.setdefault(source, set()).add(tuple(learnt(session.digest())))
    assert all(len(orders) == 1 for orders in digests.values())
    assert digests["x = 1"] != digests["x = 1 "]
