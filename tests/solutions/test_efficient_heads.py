"""The assignment `efficient_heads`: what each mistake costs, what junk does, and the whole notebook."""

import numpy as np
import pytest

FUNCTIONS = ("grouped_query_attention", "kv_cache_bytes", "pruned_attention", "prune_heads")


# A mistake costs the parts that are about it, and no others

LATER_CHUNKS = {"token by token", "chunks", "reset", "two objects"}
COSTS = [
    ("grouped_query_attention", "kv-tiled", {"groups", "scale in groups"}),
    ("grouped_query_attention", "kv-not-repeated", {"groups", "scale in groups"}),
    (
        "grouped_query_attention",
        "kv-repeated-on-feature-axis",
        {"groups", "one key head", "scale in groups"},
    ),
    ("grouped_query_attention", "no-scale", {"scale", "scale in groups"}),
    ("grouped_query_attention", "scale-by-kv-width", {"scale in groups"}),
    ("grouped_query_attention", "no-output-projection", {"output projection"}),
    ("kv_cache_bytes", "cache-bytes-of-fixed-values", {"other sizes"}),
    ("kv_cache_bytes", "count-not-whole", {"whole number"}),
    ("CachedAttention", "cache-masks-first-chunk-only", {"chunks"}),
    ("CachedAttention", "cache-newest-first", {"chunks"}),
    ("CachedAttention", "square-mask-assumed", {"chunks"}),
    ("CachedAttention", "cache-mask-offset", LATER_CHUNKS),
    ("CachedAttention", "cache-never-used", LATER_CHUNKS),
    ("CachedAttention", "cache-not-reset", {"reset"}),
    ("CachedAttention", "cache-shared-between-objects", {"two objects"}),
    ("CachedAttention", "scale-by-dk", {"scale"}),
    ("CachedAttention", "input-changed-in-place", {"chunk unchanged"}),
    ("pruned_attention", "prune-width-from-d-model", {"narrower", "wider", "scale"}),
    ("pruned_attention", "prune-scale-from-d-model", {"scale"}),
    ("prune_heads", "prune-width-from-d-model", {"pruned before"}),
    ("prune_heads", "prune-stale-indices", {"several heads"}),
    ("prune_heads", "prune-head-count-not-updated", {"number of heads"}),
    ("prune_heads", "prune-zeroed-not-removed", {"smaller", "number of heads"}),
    ("prune_heads", "input-changed-in-place", {"inputs unchanged"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(lost_to, item, slug, parts):
    assert lost_to(item, slug) == parts


def test_whoever_ignores_sharing_loses_half(assignment, grade, lost):
    def multi_head(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads):
        return assignment.reference.grouped_query_attention(X, W_Q, W_K, W_V, W_O, num_heads, num_heads)

    assert lost("grouped_query_attention", multi_head) == {"groups", "one key head", "scale in groups"}
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


# Junk is a verdict on the student, never a crash of the grader


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_nothing(turns_to_junk, item):
    turns_to_junk(item, right_calls=0)


def test_an_object_that_returns_junk_earns_nothing(grade, junk):
    for value in junk:

        class Layer:
            def __init__(self, *arguments):
                pass

            def forward(self, chunk, value=value):
                return value

            def reset(self):
                pass

        row = grade("CachedAttention", Layer)
        assert row.score == 0, value
        assert set(row.statuses.values()) <= {"fail", "not-run"}, value


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(run_solved, text_of):
    outputs = run_solved()
    table = [line.split()[-3:] for line in text_of(outputs["print_kv_cache_bytes"]).splitlines()[1:]]
    assert table[1] == ["10.49", "1.31", "0.16"]
    assert "image/png" in outputs["plot_cache"][0].data
    assert "image/png" in outputs["plot_pruning"][0].data


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(run):
    _, failed = run({})
    assert {f"test_{item}" for item in (*FUNCTIONS, "CachedAttention")} <= set(failed)
    assert set(failed.values()) == {"NotImplementedError"}
