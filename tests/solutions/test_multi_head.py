"""The assignment `multi_head`: what each mistake costs, what junk does, and the notebook from top to bottom."""

import shutil
from itertools import chain, repeat

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from mha_grader import assignment as assignments
from mha_grader.kill_table import judge
from mha_lib import pitfalls

FUNCTIONS = (
    "head_dim",
    "split_heads",
    "combine_heads",
    "multi_head_attention",
    "causal_multi_head_attention",
    "cross_attention",
    "count_parameters",
    "attention_flops",
)


@pytest.fixture(scope="session")
def multi_head(course):
    return assignments.load(course, "multi_head")


def grade(multi_head, item, tested):
    """The row of one function."""
    return judge(multi_head, item, "style", "tested", tested, b"secret")


def lost_by(row):
    return {part for part, status in row.statuses.items() if status != "pass"}


# A mistake costs the parts that are about it, and no others

SCALE = {"scale", "all together", "all together with a mask", "order of tokens"}
HEADS = SCALE | {"several heads", "batch"}
MASKS = {
    "mask",
    "one mask for all",
    "mask for each sequence",
    "all together with a mask",
    "scores far below zero",
}
COSTS = [
    ("head_dim", "head-width-not-whole", {"whole number"}),
    ("head_dim", "message-without-numbers", {"message"}),
    ("head_dim", "positivity-unchecked", {"not positive", "message"}),
    ("split_heads", "divisibility-unchecked", {"does not divide"}),
    ("split_heads", "split-without-transpose", {"values", "does not divide", "input unchanged"}),
    ("combine_heads", "merge-without-transpose", {"values", "undoes split heads", "input unchanged"}),
    ("multi_head_attention", "no-max-subtraction", {"large scores", "scores far below zero"}),
    ("multi_head_attention", "no-scale", SCALE),
    ("multi_head_attention", "scale-by-dk", SCALE),
    ("multi_head_attention", "scale-by-d-model", SCALE),
    ("multi_head_attention", "num-heads-ignored", HEADS),
    ("multi_head_attention", "input-sliced-per-head", HEADS),
    ("multi_head_attention", "heads-interleaved", HEADS),
    (
        "multi_head_attention",
        "split-without-transpose",
        HEADS | {"one mask for all", "mask for each sequence"},
    ),
    ("multi_head_attention", "mask-inverted", MASKS),
    ("multi_head_attention", "mask-no-effect", MASKS),
    ("multi_head_attention", "mask-fill-not-negative-enough", {"scores far below zero"}),
    (
        "multi_head_attention",
        "mask-repeated-in-wrong-order",
        {"mask for each sequence", "all together with a mask"},
    ),
    ("multi_head_attention", "weights-returned-too", {"output alone"}),
    ("multi_head_attention", "input-changed-in-place", {"inputs unchanged"}),
    ("causal_multi_head_attention", "no-scale", {"all together"}),
    ("causal_multi_head_attention", "split-without-transpose", {"several heads", "all together"}),
    ("causal_multi_head_attention", "weights-returned-too", {"output alone"}),
    ("cross_attention", "scale-by-d-model", {"all together"}),
    ("cross_attention", "num-heads-ignored", {"several heads", "all together"}),
    ("cross_attention", "input-changed-in-place", {"inputs unchanged"}),
    ("count_parameters", "biases-ignore-kv-heads", {"biases of shared keys and values"}),
    ("count_parameters", "count-not-whole", {"whole number"}),
    ("attention_flops", "flops-without-output", {"projections", "all together", "whole number"}),
    ("attention_flops", "flops-without-mixing", {"scores and values", "all together", "whole number"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(multi_head, item, slug, parts):
    wrong = pitfalls.variants("multi_head", item)[slug]
    assert lost_by(grade(multi_head, item, wrong)) == parts


def test_a_layer_that_looks_nowhere_earns_little(multi_head):
    def values_alone(X, W_Q, W_K, W_V, W_O, num_heads, mask=None):
        return X @ W_V @ W_O

    row = grade(multi_head, "multi_head_attention", values_alone)
    assert row.score == 0


@pytest.mark.parametrize("item", ["multi_head_attention", "causal_multi_head_attention", "cross_attention"])
def test_a_layer_of_zeros_earns_nothing(multi_head, item):
    assert grade(multi_head, item, lambda X, *others: np.zeros_like(X)).score == 0


# Junk is a verdict on the student, never a crash of the grader

JUNK = [
    None,
    "text",
    True,
    3.5,
    -(10**400),
    float("nan"),
    (),
    [],
    {},
    np.array(1.5),
    np.array("text"),
    np.array([1j, 2j]),
    np.full((2, 3), np.nan),
    np.ones((2, 3, 4, 5, 6)),
    np.ones((0, 4)),
    (np.ones(2), None),
    (None, np.ones(2)),
    (np.ones(2), np.ones(2), np.ones(2)),
    object(),
]


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_nothing(multi_head, item):
    for junk in JUNK:
        row = grade(multi_head, item, lambda *arguments, **options: junk)  # noqa: B023 - called at once
        assert row.score == 0, junk
        assert set(row.statuses.values()) <= {"fail", "not-run"}, junk


@pytest.mark.parametrize("item", FUNCTIONS)
@pytest.mark.parametrize("right_calls", [1, 2, 3])
def test_a_function_that_turns_to_junk_is_a_verdict_too(multi_head, item, right_calls):
    right = getattr(multi_head.reference, item)
    for junk in JUNK:
        results = chain(repeat(right, right_calls), repeat(lambda *arguments, **options: junk))  # noqa: B023
        row = grade(multi_head, item, lambda *a, **options: next(results)(*a, **options))  # noqa: B023
        assert row.score < row.max_score, junk
        assert set(row.statuses.values()) <= {"pass", "fail", "not-run"}, junk


# The notebook, from top to bottom


def run(course, tmp_path, sources):
    """Run the released notebook with these sources in place of its own; its outputs and what failed, by cell."""
    folder = tmp_path / "multi_head"
    shutil.copytree(course / "exercises" / "multi_head", folder)
    notebook = nbformat.read(folder / "multi_head.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    return outputs, {
        cell: output.ename
        for cell, found in outputs.items()
        for output in found
        if output.output_type == "error"
    }


def text_of(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_with_the_solutions_every_check_is_ok_and_the_demonstrations_show_what_the_text_says(
    course, tmp_path, multi_head
):
    solutions = {cell.id: cell.source for cell in multi_head.cells if cell.kind == "solution"}
    outputs, failed = run(course, tmp_path, solutions)
    assert failed == {}
    for cell in multi_head.cells:
        if cell.kind == "test":
            lines = text_of(outputs[cell.id]).splitlines()
            assert lines, cell.id
            assert all(line.startswith("ok ") for line in lines)
    assert text_of(outputs["show_reshape"]).count("True") == 2
    errors = [float(line.split()[-1]) for line in text_of(outputs["show_two_heads"]).splitlines()]
    assert len(errors) == 2
    assert max(errors) < 1e-6
    table = [line.split()[1:] for line in text_of(outputs["show_features"]).splitlines()[1:7]]
    assert np.min(np.array(table, dtype=float)) > 0  # every feature moves every head
    counts = [line.split()[-1] for line in text_of(outputs["show_costs"]).splitlines()[1:5]]
    assert set(counts) == {"1,048,576"}


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(course, tmp_path):
    _, failed = run(course, tmp_path, {})
    assert {f"test_{item}" for item in FUNCTIONS} <= set(failed)
    assert set(failed.values()) == {"NotImplementedError"}


def test_later_items_need_none_of_the_earlier_ones(course, tmp_path):
    loops = """
def multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads, mask=None):
    d_k = X.shape[-1] // num_heads
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]
    heads = []
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        heads.append(attention(X @ W_Q[:, own], X @ W_K[:, own], X @ W_V[:, own], mask)[0])
    return np.concatenate(heads, axis=-1) @ W_O
"""
    _, failed = run(course, tmp_path, {"multi_head_attention": loops})
    assert "test_multi_head_attention" not in failed
    assert "test_split_heads" in failed
