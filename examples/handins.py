"""Writes example hand-ins, made from the released notebook of the day.

    python -m examples.handins DESTINATION [--assignment single_head]

writes DESTINATION/<student>/<assignment>/… and prints what each of them is. Every example says which verdict
it should get: the status of the hand-in, the parts that it loses, and the mistakes that are recognised.
Students who hand in `RIGHT` differ in nothing but the cells that are named.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import Assignment, load_assignment

COURSE = Path(__file__).resolve().parents[1]
Notebook = dict[str, Any]
ALL = ("all parts",)
EVERY_ITEM = "every item"  # in the place of an item's name


@dataclass(frozen=True)
class HandIn:
    """One example: what is handed in, and what should come of it."""

    what: str
    cells: Mapping[str, str] = field(default_factory=dict)  # code of items that differ from a right hand-in
    stub: bool = False  # start from the notebook as it was released, not from a right hand-in
    added: Mapping[str, str] = field(default_factory=dict)  # code cells added behind the cell of this id
    damage: Callable[[Notebook], None] | None = None  # what else was done to the notebook
    files: Callable[[Path, bytes], None] | None = None  # writes the folder, in place of one notebook
    status: str = "graded"
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # parts by item; `ALL` for all of them
    slugs: tuple[str, ...] = ()

    def loses(self, item: str, part: str) -> bool:
        """Whether it should lose this part of an item."""
        parts = self.lost.get(item, self.lost.get(EVERY_ITEM, ()))
        return parts is ALL or part in parts


# --- right, in another style --------------------------------------------------------------------------------

LOOPS = {
    "softmax": """\
import math

def softmax(x, axis=-1):
    x = np.moveaxis(np.asarray(x), axis, -1)
    rows = x.reshape(-1, x.shape[-1])
    result = []
    for row in rows:
        top = max(row)
        e = [math.exp(value - top) for value in row]
        result.append([value / sum(e) for value in e])
    return np.moveaxis(np.array(result).reshape(x.shape), -1, axis)
""",
    "attention": """\
def attention(Q, K, V, mask=None):
    scores = K @ np.swapaxes(Q, -1, -2) * Q.shape[-1] ** -0.5  # (..., m, n): keys first
    if mask is not None:
        scores = scores + np.where(np.swapaxes(mask, -1, -2), 0.0, -1e9)
    weights = np.swapaxes(softmax(scores, axis=-2), -1, -2)  # (..., n, m)
    return np.einsum("...nm,...md->...nd", weights, V), weights
""",
    "causal_mask": """\
def causal_mask(n, m=None):
    m = n if m is None else m
    return np.tril(np.ones((n, m)), k=m - n).astype(bool)
""",
    "padding_mask": """\
def padding_mask(lengths, max_len):
    rows = [[position < length for position in range(max_len)] for length in lengths]
    return np.array(rows).reshape(len(rows), 1, 1, max_len)
""",
    "decoder_mask": """\
def decoder_mask(n, keep=None):
    mask = np.ones((1, 1, n, n), dtype=bool)
    if keep is not None:
        mask = mask & np.expand_dims(keep, (1, 2))
    for i in range(n):
        mask[:, :, i, i + 1 :] = False
    return mask
""",
}

# --- wrong ---------------------------------------------------------------------------------------------------

NO_SCALE = """\
def attention(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    weights = softmax(scores)
    return weights @ V, weights
"""
OVER_QUERIES = """\
def attention(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(d_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=-2)
    return weights @ V, weights
"""
MASK_AFTER = """\
def attention(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    weights = softmax(np.matmul(Q, K.swapaxes(-1, -2)) / d_k**0.5)
    if mask is not None:
        weights = weights * mask
    return weights @ V, weights
"""
FIRST_TRY = "def attention(Q, K, V, mask=None):\n    return Q @ K.T\n"
ENDLESS = "import time\n\n\ndef padding_mask(lengths, max_len):\n    while True:\n        time.sleep(1)\n"
CATCHES_ALL = """\
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
CRASH = "import os\n\ndef padding_mask(lengths, max_len):\n    os._exit(0)\n"
MEMORY = "def padding_mask(lengths, max_len):\n    return np.ones((10**6, 10**6, max_len)) > 0\n"

# --- hostile: tricks on tests that run in the student's own kernel, where most of them give full marks ----------

NOTHING = {
    "softmax": "def softmax(x, axis=-1):\n    pass\n",
    "attention": "def attention(Q, K, V, mask=None):\n    return None, None\n",
    "causal_mask": "def causal_mask(n, m=None):\n    pass\n",
    "padding_mask": "def padding_mask(lengths, max_len):\n    pass\n",
    "decoder_mask": "def decoder_mask(n, keep=None):\n    pass\n",
    "answers": "answers = {}\n",
}
PATCHED_NUMPY = """\
import numpy.testing
numpy.testing.assert_allclose = numpy.testing.assert_array_equal = lambda *args, **kwargs: None
np.allclose = np.array_equal = lambda *args, **kwargs: True
np.abs = np.absolute = lambda x: np.zeros(np.shape(x))
import checks
for name in dir(checks):
    if "check" in name:
        setattr(checks, name, lambda *args, **kwargs: print("ok"))
"""
SAYS_OK = {
    item: f"import sys\n\ndef {item}(*args, **kwargs):\n    sys.displayhook('ok')\n"
    for item in ("softmax", "attention", "causal_mask", "padding_mask", "decoder_mask")
}
TRANSFORMER = """\
def only_pass(lines):
    return ["'ok'\\n"] if any("check_" in line or "expect" in line for line in lines) else lines

get_ipython().input_transformers_post.append(only_pass)
"""
OWN_NUMPY = """\
import sys, types
path, sys.path[:] = sys.path[:], [folder for folder in sys.path if "packages" in folder or "/lib" in folder]
del sys.modules["numpy"]
import numpy
sys.path[:] = path
checks = sys.modules["checks"] = types.ModuleType("checks")
checks.__getattr__ = lambda name: lambda *args, **kwargs: None
"""
ALWAYS_EQUAL = """\
class Yes(np.ndarray):
    def __eq__(self, other): return True
    def __array_function__(self, *args): return True

def padding_mask(lengths, max_len):
    return np.zeros((len(lengths), 1, 1, max_len), bool).view(Yes)
"""
GRADEBOOK = """\
import sqlite3
with sqlite3.connect("../../../gradebook.db") as book:
    book.execute("UPDATE grade SET auto_score = 100, manual_score = 100")
"""
READS_TESTS = """\
import gc, inspect

def attention(Q, K, V, mask=None):
    for frame in inspect.stack():
        if "reference" in frame.frame.f_globals:
            return frame.frame.f_globals["reference"].attention(Q, K, V, mask)
    for thing in gc.get_objects():
        if inspect.isfunction(thing) and thing.__name__ == "attention" and thing is not attention:
            return thing(Q, K, V, mask)
    import mha_lib.attention
    return mha_lib.attention.attention(Q, K, V, mask)
"""
FORGED_REPLIES = """\
import os, socket
for number in range(3, 64):
    try:
        channel = socket.socket(fileno=os.dup(number))
        header = b'{"number": 1, "status": "ok", "value": true, "changed": []}'
        channel.sendall(len(header).to_bytes(4, "big") + bytes(8) + header)
    except OSError:
        pass
"""
WARNS = """\
import sys, warnings

def softmax(x, axis=-1):
    warnings.warn("subtracting the maximum")
    print("softmax called", file=sys.stderr)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
"""
MARKUP = """\
# </pre></style><script>document.title = "script ran"</script><img src=x onerror="document.title = 1">
def softmax(x, axis=-1):
    raise RuntimeError("<script>document.title = 'script ran'</script> \\x1b[31mred\\x1b[0m {{ 7 * 7 }} $\\\\int$")
"""


def _untag(notebook: Notebook) -> None:
    """Some editors keep the cells' text and lose all else."""
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        cell.pop("id", None)


def _first_try_twice(notebook: Notebook) -> None:
    """The cell of attention, copied, with an old attempt in the first copy."""
    places = [cell["id"] for cell in notebook["cells"]]
    old = copy.deepcopy(notebook["cells"][places.index("attention")])
    old["source"] = FIRST_TRY
    notebook["cells"].insert(places.index("attention"), old)


def _skip_tests(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["metadata"]["nbgrader"]["grade"]:
            cell["metadata"]["tags"] = ["skip-execution"]
            cell["source"], cell["outputs"] = "'ok'", []


def _rewrite_tests(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        nbgrader = cell["metadata"]["nbgrader"]
        if nbgrader["grade"]:
            nbgrader |= {"points": 1000, "locked": False, "checksum": "0"}
            cell["source"] = "1000"
            result = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
            cell["outputs"] = [result | {"data": {"text/plain": "1000"}}]


def _renamed(folder: Path, notebook: bytes) -> None:
    (folder / f"{folder.name} (1).ipynb").write_bytes(notebook)


def _web_page(folder: Path, _notebook: bytes) -> None:
    text = "<!DOCTYPE html><title>Log in</title><p>Your session has expired.</p>"
    (folder / f"{folder.name}.ipynb").write_text(text)


def _nothing(_folder: Path, _notebook: bytes) -> None:
    pass


def _own_numpy(folder: Path, notebook: bytes) -> None:
    (folder / f"{folder.name}.ipynb").write_bytes(notebook)
    (folder / "numpy.py").write_text(OWN_NUMPY)


def _odd_files(folder: Path, notebook: bytes) -> None:
    (folder / f"{folder.name}.ipynb").write_bytes(notebook)
    (folder / "timestamp.txt").write_text("the day before yesterday\n")
    (folder / "secret.txt").symlink_to("../../../.course_secret")
    (folder / "answers").symlink_to("../../../solutions")  # a link to a folder, but not to one without end
    os.mkfifo(folder / "data.csv")


EVERYTHING = {EVERY_ITEM: ALL}

HANDINS: Mapping[str, Mapping[str, HandIn]] = {
    "single_head": {
        "s01": HandIn("right, as the course does it"),
        "s02": HandIn(
            "right, with loops, keys first, an additive mask, and cells of its own, one of which fails",
            cells=LOOPS,
            added={
                "imports": "%matplotlib inline\nimport time\nstart = time.time()",
                "test_attention": "print(time.time() - start)\n1 / 0",
            },
        ),
        "s03": HandIn(
            "scores not divided by √d_k",
            cells={"attention": NO_SCALE},
            lost={"attention": ("scale", "scale in a batch")},
            slugs=("no-scale",),
        ),
        "s04": HandIn(
            "softmax along the queries",
            cells={"attention": OVER_QUERIES},
            lost={"attention": ALL},
            slugs=("softmax-over-queries",),
        ),
        "s05": HandIn(
            "mask applied after the softmax",
            cells={"attention": MASK_AFTER},
            lost={
                "attention": (
                    "mask",
                    "square mask",
                    "one mask for all",
                    "mask for each sequence",
                    "mask for all queries",
                    "masked weights",
                    "scores far below zero",
                    "masked scores far above",
                    "what is masked does not matter",
                    "inputs unchanged",
                )
            },
            slugs=("mask-after-softmax",),
        ),
        "s06": HandIn("as it was released", stub=True, lost=EVERYTHING),
        "s07": HandIn("a call that never ends", cells={"padding_mask": ENDLESS}, lost={"padding_mask": ALL}),
        "s08": HandIn(
            "a cell that never ends and catches what would end it",
            cells={"decoder_mask": CATCHES_ALL},
            lost={"decoder_mask": ALL},
        ),
        "s09": HandIn("ends its own process", cells={"padding_mask": CRASH}, lost={"padding_mask": ALL}),
        "s10": HandIn("asks for 8 TB of memory", cells={"padding_mask": MEMORY}, lost={"padding_mask": ALL}),
        "s11": HandIn("right, but warns and writes to stderr", cells={"softmax": WARNS}),
        # malformed
        "s12": HandIn("right, with a cell copied twice", damage=_first_try_twice, status="repaired"),
        "s13": HandIn("right, without any metadata", damage=_untag, status="repaired"),
        "s14": HandIn("right, in a file of another name", files=_renamed, status="repaired"),
        "s15": HandIn(
            "a web page in place of a notebook", files=_web_page, status="not-json", lost=EVERYTHING
        ),
        "s16": HandIn("a folder without a notebook", files=_nothing, status="missing", lost=EVERYTHING),
        "s17": HandIn("right, with odd files beside it", files=_odd_files),
        # hostile
        "s18": HandIn(
            "test cells with the tag skip-execution", stub=True, damage=_skip_tests, lost=EVERYTHING
        ),
        "s19": HandIn(
            "test cells that answer with a score", stub=True, damage=_rewrite_tests, lost=EVERYTHING
        ),
        "s20": HandIn("functions that only display ok", stub=True, cells=SAYS_OK, lost=EVERYTHING),
        "s21": HandIn(
            "an input transformer that empties tests",
            stub=True,
            cells=NOTHING,
            added={"imports": TRANSFORMER},
            lost=EVERYTHING,
        ),
        "s22": HandIn(
            "patched comparisons of NumPy and of the checks",
            stub=True,
            cells=NOTHING | {"softmax": PATCHED_NUMPY + NOTHING["softmax"]},
            lost=EVERYTHING,
        ),
        "s23": HandIn(
            "a numpy.py of its own that replaces the checks",
            stub=True,
            cells=NOTHING,
            files=_own_numpy,
            lost=EVERYTHING,
        ),
        "s24": HandIn(
            "results that are equal to everything",
            cells={"padding_mask": ALWAYS_EQUAL},
            lost={"padding_mask": ALL},
        ),
        "s25": HandIn("looks for the reference", cells={"attention": READS_TESTS}, lost={"attention": ALL}),
        "s26": HandIn("writes to the gradebook", stub=True, added={"imports": GRADEBOOK}, lost=EVERYTHING),
        "s27": HandIn(
            "answers on the grader's channel itself", cells={"answers": FORGED_REPLIES}, lost={"answers": ALL}
        ),
        "s28": HandIn(
            "markup in its code and errors",
            cells={"softmax": MARKUP},  # which `attention` calls: it is right by itself
            lost={"softmax": ALL},
        ),
    }
}


def write(assignment: Assignment, destination: Path) -> None:
    """Write all example hand-ins for an assignment, as nbgrader collects them.

    Args:
        assignment: one that has examples.
        destination: a `submitted` folder.

    Raises:
        FileExistsError: if one of the students has handed in there already.
    """
    for student, handin in HANDINS[assignment.name].items():
        folder = destination / student / assignment.name
        folder.mkdir(parents=True)
        data = json.dumps(_notebook(assignment, handin), ensure_ascii=False, indent=1).encode()
        if handin.files is None:
            (folder / f"{assignment.name}.ipynb").write_bytes(data)
        else:
            handin.files(folder, data)


def _notebook(assignment: Assignment, handin: HandIn) -> Notebook:
    notebook: Notebook = json.loads((assignment.files / f"{assignment.name}.ipynb").read_text("utf-8"))
    code = {} if handin.stub else {item: _solution(assignment, item) for item in assignment.items}
    code |= handin.cells
    cells = []
    for cell in notebook["cells"]:
        cells.append(cell | {"source": code[cell["id"]]} if cell["id"] in code else cell)
    if handin.damage is not None:
        handin.damage(notebook | {"cells": cells})
    for place, source in handin.added.items():
        new = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        cells.insert([cell["id"] for cell in cells].index(place) + 1, new | {"id": f"own-{place}"})
    return notebook | {"cells": cells}


def _solution(assignment: Assignment, item: str) -> str:
    """The instructor's code, without the marks around it."""
    lines = assignment.cell("solution", item).source.splitlines(keepends=True)
    return "".join(
        line for line in lines if "### BEGIN SOLUTION" not in line and "### END SOLUTION" not in line
    )


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.handins", description="Write example hand-ins.")
    parser.add_argument("destination", type=Path, metavar="DESTINATION", help="a `submitted` folder")
    parser.add_argument("--assignment", choices=list(HANDINS), default="single_head")
    options = parser.parse_args(arguments)
    write(load_assignment(COURSE, options.assignment), options.destination)
    for student, handin in HANDINS[options.assignment].items():
        print(f"{student}  {handin.what}")


if __name__ == "__main__":
    main()
