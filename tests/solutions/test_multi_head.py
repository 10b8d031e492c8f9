"""The assignment `multi_head`: what each mistake costs, what junk does, and the notebook from top to bottom."""

import numpy as np
import pytest

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
def test_a_mistake_costs_only_the_parts_about_it(lost_to, item, slug, parts):
    assert lost_to(item, slug) == parts


def test_a_layer_that_looks_nowhere_earns_little(grade):
    def values_alone(X, W_Q, W_K, W_V, W_O, num_heads, mask=None):
        return X @ W_V @ W_O

    row = grade("multi_head_attention", values_alone)
    assert row.score == 0


@pytest.mark.parametrize("item", ["multi_head_attention", "causal_multi_head_attention", "cross_attention"])
def test_a_layer_of_zeros_earns_nothing(grade, item):
    assert grade(item, lambda X, *others: np.zeros_like(X)).score == 0


@pytest.mark.parametrize("slug", ["residual-added", "keys-and-values-exchanged"])
def test_a_wrong_residual_and_exchanged_keys_and_values_are_named_in_cross_attention(assignment, grade, slug):
    right = assignment.reference.cross_attention
    wrong = {
        "residual-added": lambda X, *rest: X + right(X, *rest),
        "keys-and-values-exchanged": lambda X, M, Q, K, V, *rest: right(X, M, Q, V, K, *rest),
    }
    assert set(grade("cross_attention", wrong[slug]).slugs.values()) == {slug}


# Junk is a verdict on the student, never a crash of the grader


@pytest.mark.parametrize("item", FUNCTIONS)
@pytest.mark.parametrize("right_calls", [0, 1, 2, 3])
def test_a_function_that_turns_to_junk_is_a_verdict_too(turns_to_junk, item, right_calls):
    turns_to_junk(item, right_calls)


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_the_demonstrations_show_what_the_text_says(
    run_solved, text_of
):
    outputs = run_solved()
    assert text_of(outputs["show_reshape"]).count("True") == 2
    errors = [float(line.split()[-1]) for line in text_of(outputs["show_two_heads"]).splitlines()]
    assert len(errors) == 2
    assert max(errors) < 1e-6
    table = [line.split()[1:] for line in text_of(outputs["show_features"]).splitlines()[1:7]]
    assert np.min(np.array(table, dtype=float)) > 0  # every feature moves every head
    counts = [line.split()[-1] for line in text_of(outputs["show_costs"]).splitlines()[1:5]]
    assert set(counts) == {"1,048,576"}


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(run):
    _, failed = run({})
    assert {f"test_{item}" for item in FUNCTIONS} <= set(failed)
    assert set(failed.values()) == {"NotImplementedError"}


def test_later_items_need_none_of_the_earlier_ones(run):
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
    _, failed = run({"multi_head_attention": loops})
    assert "test_multi_head_attention" not in failed
    assert "test_split_heads" in failed
