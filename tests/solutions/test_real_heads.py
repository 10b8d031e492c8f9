"""The assignment `real_heads`: what each mistake costs, what junk does, the answers, and the notebook."""

import shutil

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from mha_grader import assignment as assignments
from mha_grader.kill_table import judge
from mha_lib import pitfalls
from mha_lib.minilm import load_sample
from mha_lib.real_heads import bert_attention, head_importance, offset_score

FUNCTIONS = ("bert_attention", "offset_score", "keep_heads", "head_importance")


@pytest.fixture(scope="session")
def real_heads(course):
    return assignments.load(course, "real_heads")


def grade(real_heads, item, tested):
    return judge(real_heads, item, "style", "tested", tested, b"secret")


def lost_by(row):
    return {part for part, status in row.statuses.items() if status != "pass"}


# A mistake costs the parts that are about it, and no others

MASKS = {"mask", "mask for each sequence"}
COSTS = [
    ("bert_attention", "stored-weights-not-transposed", {"weights stored as out in"}),
    ("bert_attention", "dense-not-transposed", {"weights stored as out in"}),
    ("bert_attention", "biases-forgotten", {"biases"}),
    ("bert_attention", "no-scale", {"scale"}),
    ("bert_attention", "only-output-returned", {"attention weights"}),
    ("bert_attention", "maps-averaged-over-heads", {"attention weights"}),
    ("bert_attention", "mask-inverted", MASKS),
    ("bert_attention", "mask-no-effect", MASKS),
    ("bert_attention", "first-mask-for-all-sequences", {"mask for each sequence"}),
    ("bert_attention", "input-changed-in-place", {"inputs unchanged"}),
    ("offset_score", "offset-divided-by-n", {"neighbours", "farther", "input unchanged"}),
    ("offset_score", "offset-sign-turned", {"direction", "neighbours", "farther", "input unchanged"}),
    ("keep_heads", "dense-bias-with-each-head", {"bias of dense once"}),
    ("keep_heads", "value-bias-left", {"bias of values"}),
    ("keep_heads", "no-scale", {"all heads"}),
    ("keep_heads", "input-changed-in-place", {"inputs unchanged"}),
    ("head_importance", "importance-of-head-alone", {"biases"}),
    ("head_importance", "importance-of-first-sequence", {"several sequences"}),
    (
        "head_importance",
        "importance-mean-before-norm",
        {"several tokens", "several sequences", "biases", "inputs unchanged"},
    ),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(real_heads, item, slug, parts):
    wrong = pitfalls.variants("real_heads", item)[slug]
    assert lost_by(grade(real_heads, item, wrong)) == parts


# Junk is a verdict on the student, never a crash of the grader

JUNK = [
    None,
    "text",
    3.5,
    [],
    {},
    np.array("text"),
    np.array([1.0, 0.0]),
    np.full((2, 3), np.nan),
    np.ones((0, 4)),
    (None, None),
    (np.ones(2), np.ones(3)),
    object(),
]


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_next_to_nothing(real_heads, item):
    for junk in JUNK:
        row = grade(real_heads, item, lambda *arguments, **options: junk)  # noqa: B023 - called at once
        assert row.score <= 1, junk  # two numbers of which the first is larger pass one part of offset_score
        assert set(row.statuses.values()) <= {"pass", "fail", "not-run"}, junk


# The answers


def test_the_right_answers_are_what_the_sample_shows(real_heads):
    sample, answers = load_sample(), real_heads.reference.answers
    for offset, name in [(-1, "previous"), (1, "next")]:
        scores = np.mean(
            [[offset_score(layer, offset) for layer in maps] for maps in sample.maps], axis=0
        )  # (6, 12)
        best = np.unravel_index(scores.argmax(), scores.shape)
        assert best == (answers[f"{name}_layer"], answers[f"{name}_head"])
    np.testing.assert_allclose(scores.max(), answers["next_score"], atol=1e-3)

    importance = np.mean([head_importance(x[None], sample.weights, 4) for x in sample.states], axis=0)
    assert sample.heads[importance.argmax()] == answers["most_important"]

    def weight(text, head, query, key):
        tokens = sample.tokens[text]
        return sample.maps[text][3, head, tokens.index(query), tokens.index(key)]

    looks = [head for head in sample.heads if weight(5, head, "are", "keys") > 0.5]
    assert looks == [answers["agreement_head"]]
    assert answers["too_wide"] == "b"
    assert weight(1, 1, "it", "animal") > 2 * weight(1, 1, "it", "street") > 0

    without = {**sample.weights, "key": {**sample.weights["key"], "bias": np.zeros(128)}}
    both = [bert_attention(sample.states[0][None], weights, 4) for weights in (sample.weights, without)]
    for got, expected in zip(*both, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)
    assert answers["key_bias"] == "c"


WRONG_ANSWERS = {
    "previous_layer": [1, None, "0", float("nan")],
    "previous_head": [3, 1],
    "next_layer": [2, 0],
    "next_head": [9, 7],
    "next_score": [0.61, 1.0, 0.55],
    "their_students": ["a", "c", 1],
    "agreement_head": [0, 2],
    "too_wide": ["a", "c", ""],
    "most_important": [10, 2],
    "key_bias": ["a", "b"],
}


@pytest.mark.parametrize("question", WRONG_ANSWERS)
def test_a_wrong_answer_costs_its_own_point(real_heads, question):
    right = real_heads.reference.answers
    assert set(right) == set(WRONG_ANSWERS)
    for wrong in WRONG_ANSWERS[question]:
        row = grade(real_heads, "answers", right | {question: wrong})
        assert lost_by(row) == {question.replace("_", " ")}, wrong


def test_answers_may_be_rounded_and_written_large(real_heads):
    answers = real_heads.reference.answers | {"next_score": 0.59, "next_head": np.int64(8), "too_wide": " B "}
    assert lost_by(grade(real_heads, "answers", answers)) == set()


# The notebook, from top to bottom


def run(course, tmp_path, sources):
    """Run the released notebook with these sources in place of its own; its outputs and what failed, by cell."""
    folder = tmp_path / "real_heads"
    shutil.copytree(course / "exercises" / "real_heads", folder)
    notebook = nbformat.read(folder / "real_heads.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    failed = {
        cell: output.ename
        for cell, found in outputs.items()
        for output in found
        if output.output_type == "error"
    }
    return outputs, failed


def text_of(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.mark.parametrize("installed", [True, False], ids=["with the model", "without the model"])
def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(
    course, tmp_path, real_heads, installed
):
    sources = {cell.id: cell.source for cell in real_heads.cells if cell.kind == "solution"}
    if not installed:
        (imports,) = (cell.released for cell in real_heads.cells if cell.id == "imports_for_checks")
        hide = "import importlib.util\nimportlib.util.find_spec = lambda name: None"
        sources["imports_for_checks"] = f"{imports}\n{hide}"
    outputs, failed = run(course, tmp_path, sources)
    assert failed == {}
    for cell in real_heads.cells:
        if cell.kind == "test":
            lines = text_of(outputs[cell.id]).splitlines()
            assert lines, cell.id
            assert all(line.startswith("ok ") for line in lines)
    assert ("pip install" in text_of(outputs["load_model"])) is not installed
    differences = [
        line.split()[-1] for line in text_of(outputs["plot_heads"]).splitlines() if "differ" in line
    ]
    assert len(differences) == 6
    assert max(map(float, differences)) < 0.002
    assert "offset -1: head 0-2 with 1.00" in text_of(outputs["print_offsets"])
    assert "0.68     0.22" in text_of(outputs["print_baseline"])


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(course, tmp_path):
    outputs, failed = run(course, tmp_path, {})
    assert {f"test_{item}" for item in FUNCTIONS} <= set(failed)
    assert set(failed.values()) == {"NotImplementedError"}
    assert text_of(outputs["test_answers"]).count("no answer yet") == len(WRONG_ANSWERS)
