"""`mha-grade try`: what it prints, in which order, and what it says when something is not as it should be."""

import json
import shutil
from pathlib import Path

import pytest

from mha_grader import cli
from mha_grader.course.records import STATUSES
from mha_grader.sandbox import fork_server

COURSE = Path(__file__).parents[3]

RIGHT = (
    "def causal_mask(n, m=None):\n    m = n if m is None else m\n    return np.tri(n, m, m - n, dtype=bool)\n"
)
WRONG = "def causal_mask(n, m=None):\n    return np.tri(n, m or n, dtype=bool)\n"
STUB = "def causal_mask(n, m=None):\n    raise NotImplementedError\n"
BROKEN = "def causal_mask(n, m=None)\n"


@pytest.fixture
def files(tmp_path):
    paths = []
    for name, source in {"right": RIGHT, "wrong": WRONG, "stub": STUB, "broken": BROKEN}.items():
        paths.append(tmp_path / f"{name}.py")
        paths[-1].write_text(source)
    return [str(path) for path in paths]


def attempt(*arguments):
    return cli.main(["--course", str(COURSE), "try", *arguments])


def test_every_file_gets_a_line_of_json_in_its_order(files, capsys):
    assert attempt("single_head", "causal_mask", *files, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["file"] for line in lines] == files
    assert [line["status"] for line in lines] == ["pass", "fail", "error", "error"]
    right, wrong, stub, broken = lines
    assert set(right) == {"file", "assignment", "item", "status", "score", "max_score", "parts"}
    assert (right["assignment"], right["item"]) == ("single_head", "causal_mask")
    assert right["score"] == right["max_score"] > wrong["score"] > stub["score"] == broken["score"] == 0
    for line in lines:
        assert line["score"] == sum(part["points"] for part in line["parts"])
        for part in line["parts"]:
            assert set(part) == {"name", "points", "max_points", "status", "pitfall", "message"}
            assert part["status"] in STATUSES
    assert {part["pitfall"] for part in wrong["parts"]} == {None, "causal-top-left"}


def test_without_json_people_read_what_was_proved_and_why_it_failed(files, capsys):
    assert attempt("single_head", "causal_mask", files[1]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "causal_mask 4 / 6" in out
    assert "causal-top-left" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["double_head", "softmax", "x.py"], "there is no assignment 'double_head'"),
        (["single_head", "softmin", "x.py"], "has no item 'softmin'; it has softmax, attention"),
        (["single_head", "softmax", "no/such/file.py"], "cannot read no/such/file.py"),
    ],
)
def test_what_is_not_there_is_named(arguments, words, capsys):
    assert attempt(*arguments) == 1
    assert words in capsys.readouterr().err


def test_a_file_is_read_in_the_encoding_that_it_declares_and_one_that_cannot_be_read_stops_no_other(
    tmp_path, capsys
):
    declared, wrong, unknown = tmp_path / "declared.py", tmp_path / "wrong.py", tmp_path / "unknown.py"
    declared.write_bytes(b"# -*- coding: latin-1 -*-\n# gr\xf6\xdfte Zahl\n" + RIGHT.encode())
    wrong.write_bytes(b"# gr\xf6\xdfte Zahl\n" + RIGHT.encode())
    unknown.write_bytes(b"# coding: klingon\n" + RIGHT.encode())
    files = [str(path) for path in (wrong, declared, unknown, tmp_path / "missing.py")]
    assert attempt("single_head", "causal_mask", *files, "--json") == 3
    captured = capsys.readouterr()
    (line,) = (json.loads(line) for line in captured.out.splitlines())
    assert (line["file"], line["status"]) == (str(declared), "pass")
    said = captured.err.splitlines()
    assert [line.split(": ")[1] for line in said] == [
        f"cannot read {tmp_path / name}" for name in ("wrong.py", "unknown.py", "missing.py")
    ]


COMPILED = """\
import math
import torch
@torch.compile
def attention(Q, K, V, mask=None):
    scores = Q @ K.mT / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1) if mask is None else scores.softmax(-1) * mask
    return weights @ V, weights
"""


def test_code_that_asks_to_be_compiled_earns_what_it_earns_otherwise(tmp_path, capsys):
    path = tmp_path / "compiled.py"
    path.write_text(COMPILED)
    assert attempt("batched_torch", "attention", str(path), "--json") == 0
    line = json.loads(capsys.readouterr().out)
    assert line["score"] == line["max_score"]


@pytest.mark.usefixtures("no_fork_server")
def test_without_a_sandbox_nothing_is_graded(files, monkeypatch, capsys):
    which = shutil.which
    monkeypatch.setattr(fork_server.shutil, "which", lambda name: None if name == "bwrap" else which(name))
    assert attempt("single_head", "causal_mask", files[0]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "apt-get install bubblewrap" in captured.err
