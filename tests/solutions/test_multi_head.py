"""The assignment `multi_head`: what partly right answers earn, and the notebook with its solutions."""

import numpy as np
import pytest


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
