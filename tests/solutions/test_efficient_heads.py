"""The assignment `efficient_heads`: what partly right answers earn, and the notebook with its solutions."""

import sys

import numpy as np
import pytest


def test_whoever_ignores_sharing_loses_half(assignment, grade, lost):
    def multi_head(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads):
        return assignment.reference.grouped_query_attention(X, W_Q, W_K, W_V, W_O, num_heads, num_heads)

    shared = {"groups", "one key head", "scale in groups", "groups in a batch"}
    assert lost("grouped_query_attention", multi_head) == shared
    row = grade("grouped_query_attention", multi_head)
    assert row.score == row.max_score / 2


def test_the_number_of_key_heads_in_the_place_of_the_group_is_not_taken_for_the_first_head(assignment, grade):
    def by_loop(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads):
        attention, d_k, heads = assignment.reference.attention, X.shape[-1] // num_heads, []
        for i in range(num_heads):
            own = slice(i * d_k, (i + 1) * d_k)
            shared = i // num_kv_heads
            K = (X @ W_K).reshape(*X.shape[:2], num_kv_heads, d_k)[:, :, shared]
            V = (X @ W_V).reshape(*X.shape[:2], num_kv_heads, d_k)[:, :, shared]
            heads.append(attention(X @ W_Q[:, own], K, V)[0])
        return np.concatenate(heads, axis=-1) @ W_O

    row = grade("grouped_query_attention", by_loop)
    assert row.slugs["as many key heads"] == row.slugs["groups"] == "kv-index-by-number-of-heads"
    assert "kv-first-head-for-all" not in row.slugs.values()


def test_the_visible_check_takes_the_heads_that_are_left_in_any_order(assignment, monkeypatch, capsys):
    def reversed_heads(W_Q, W_K, W_V, W_O, num_heads, heads):
        d_k, left = W_Q.shape[1] // num_heads, [i for i in range(num_heads)[::-1] if i not in heads]
        own = np.concatenate([np.arange(i * d_k, (i + 1) * d_k) for i in left])
        return W_Q[:, own], W_K[:, own], W_V[:, own], W_O[own], len(left)

    def in_two_orders(*arguments):
        W_Q, W_K, W_V, W_O, left = reversed_heads(*arguments)
        return W_Q, np.fliplr(W_K), W_V, W_O, left

    monkeypatch.syspath_prepend(assignment.files)
    monkeypatch.delitem(sys.modules, "checks", raising=False)  # that of another assignment
    namespace = {}
    exec("from checks import check_prune_heads", namespace)
    check = namespace["check_prune_heads"]
    check(reversed_heads)
    assert capsys.readouterr().out == "ok   prune_heads (8 checks)\n"
    with pytest.raises(AssertionError, match="W_K without head 1, in the order of W_Q"):
        check(in_two_orders)


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(run_solved, text_of):
    outputs = run_solved()
    table = [line.split()[-3:] for line in text_of(outputs["print_kv_cache_bytes"]).splitlines()[1:]]
    assert table[1] == ["10.49", "1.31", "0.16"]
    assert "image/png" in outputs["plot_cache"][0].data
    assert "image/png" in outputs["plot_pruning"][0].data


FORMULAS = {  # of no work, or of work on one factor
    "infinity": lambda *sizes, **more: float("inf"),
    "NaN": lambda *sizes, **more: float("nan"),
    "True": lambda *sizes, **more: True,
    "one": lambda *sizes, **more: 1,
    "a huge number": lambda *sizes, **more: 10**300,
    "right in the bytes alone": lambda *sizes, size=2: sum(sizes[:5]) ** 5 * (*sizes, size)[5],
    "a power that grows enough": lambda *sizes, size=2: max(sizes[:5]) ** 9 * (*sizes, size)[5],
    "two of the factors": lambda b, n, *others, size=2: b * n * (*others, size)[3],
    "a sum": lambda *sizes, size=2: sum(sizes[:5]) * (*sizes, size)[5],
    "right where it is doubled alone": lambda b, n, layers, heads, d_k, bytes_per_value=2: (
        b * n * layers * heads * d_k * bytes_per_value * (1 if min(b, n, layers, heads, d_k) < 4 else 3)
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_count_that_is_no_count_earns_nothing(grade, name):
    assert grade("kv_cache_bytes", FORMULAS[name]).score == 0
