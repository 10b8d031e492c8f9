"""The assignment `efficient_heads`: what partly right answers earn, and the notebook with its solutions."""

import numpy as np


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


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(run_solved, text_of):
    outputs = run_solved()
    table = [line.split()[-3:] for line in text_of(outputs["print_kv_cache_bytes"]).splitlines()[1:]]
    assert table[1] == ["10.49", "1.31", "0.16"]
    assert "image/png" in outputs["plot_cache"][0].data
    assert "image/png" in outputs["plot_pruning"][0].data
