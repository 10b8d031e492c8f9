"""The mistakes in `efficient_heads` go unnoticed where the bank says so.

That they differ from the right code and from each other is what the hidden tests prove; that they are called
like it, and say what is wrong, stands in `test_pitfalls_catalogue.py`.
"""

import numpy as np
import pytest

from mha_lib.grouped_query import grouped_query_attention
from mha_lib.kv_cache import CachedAttention, kv_cache_bytes
from mha_lib.pitfalls import BANK, CHECKS_OF_ITEMS, variants
from mha_lib.pruning import prune_heads, pruned_attention

REFERENCE = {
    "grouped_query_attention": grouped_query_attention,
    "CachedAttention": CachedAttention,
    "kv_cache_bytes": kv_cache_bytes,
    "pruned_attention": pruned_attention,
    "prune_heads": prune_heads,
}
EVERY_VARIANT = [(item, slug) for item in REFERENCE for slug in variants("efficient_heads", item)]


def close(got, expected):
    return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=0, atol=1e-6)


# --- weak checks: each tells, of a function or class, whether it passes -------------------------------------


def grouped(num_kv_heads):
    rng = np.random.default_rng(7)
    W_K, W_V = rng.normal(size=(2, 12, num_kv_heads * 2))
    return rng.normal(size=(3, 5, 12)), rng.normal(size=(12, 12)), W_K, W_V, np.eye(12), 6, num_kv_heads


def grouped_is_right(num_kv_heads):
    arguments = grouped(num_kv_heads)
    return lambda function: close(function(*arguments), grouped_query_attention(*arguments))


def in_chunks(layer, sizes):
    X = np.random.default_rng(5).normal(size=(3, sum(sizes), 6))
    ends = np.cumsum(sizes)
    outputs = [layer.forward(X[:, end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    return np.concatenate(outputs, axis=1)


def cached(cls, *sizes):
    return in_chunks(cls(*np.random.default_rng(9).normal(size=(4, 6, 6)), 3), sizes)


def cached_is_right(*sizes):
    return lambda cls: close(cached(cls, *sizes), cached(CachedAttention, *sizes))


def pruned(num_heads, d_model=12, d_k=4):
    rng = np.random.default_rng(3)
    W_Q, W_K, W_V = rng.normal(size=(3, d_model, num_heads * d_k))
    return rng.normal(size=(2, 5, d_model)), W_Q, W_K, W_V, np.eye(num_heads * d_k, d_model), num_heads


def removed(function, heads, num_heads=5):
    rng = np.random.default_rng(2)
    W_Q, W_K, W_V = rng.normal(size=(3, 15, num_heads * 3))
    return function(W_Q, W_K, W_V, rng.normal(size=(num_heads * 3, 15)), num_heads, heads)


def output_of(result):
    X = np.random.default_rng(1).normal(size=(2, 4, 15))
    return pruned_attention(X, *result)


def same_shapes(function, heads):
    got, expected = removed(function, heads), removed(prune_heads, heads)
    return [np.shape(W) for W in got] == [np.shape(W) for W in expected]


WEAK = {
    "grouped_query_attention": {
        "shape": lambda f: f(*grouped(3)).shape == (3, 5, 12),
        "finite": lambda f: np.isfinite(f(*grouped(3))).all(),
        "one key head": grouped_is_right(1),
        "as many key heads": grouped_is_right(6),
    },
    "CachedAttention": {
        "shape": lambda cls: cached(cls, 2, 3, 1).shape == (3, 6, 6),
        "finite": lambda cls: np.isfinite(cached(cls, 2, 3, 1)).all(),
        "one chunk": cached_is_right(5),
        "two chunks": cached_is_right(2, 3),
        "token by token": cached_is_right(1, 1, 1, 1),
    },
    "kv_cache_bytes": {"default size": lambda f: f(2, 3, 5, 7, 11) == kv_cache_bytes(2, 3, 5, 7, 11)},
    "pruned_attention": {
        "shape": lambda f: f(*pruned(2)).shape == (2, 5, 12),
        "finite": lambda f: np.isfinite(f(*pruned(2))).all(),
        "full width": lambda f: close(f(*pruned(3)), pruned_attention(*pruned(3))),
    },
    "prune_heads": {
        "shape": lambda f: same_shapes(f, [1, 3]),
        "number of heads": lambda f: removed(f, [1, 3])[4] == 3,
        "one head removed": lambda f: all(map(close, removed(f, [2]), removed(prune_heads, [2]))),
        "weights": lambda f: all(map(close, removed(f, [1, 3])[:4], removed(prune_heads, [1, 3])[:4])),
        "full width": lambda f: all(map(close, removed(f, [1, 3]), removed(prune_heads, [1, 3]))),
        "layer's output": lambda f: close(
            output_of(removed(f, [1, 3])), output_of(removed(prune_heads, [1, 3]))
        ),
    },
}


@pytest.mark.parametrize("item", WEAK)
def test_the_bank_names_the_weak_checks_of_an_item(item):
    assert CHECKS_OF_ITEMS[f"efficient_heads.{item}"] == tuple(WEAK[item])


@pytest.mark.parametrize("item", WEAK)
def test_right_code_passes_every_weak_check(item):
    assert [name for name, check in WEAK[item].items() if not check(REFERENCE[item])] == []


@pytest.mark.parametrize(
    ("item", "slug"), [(i, s) for i, s in EVERY_VARIANT if f"efficient_heads.{i}" in BANK[s].variants]
)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(item, slug):
    variant = variants("efficient_heads", item)[slug]
    checks = {name: check for name, check in WEAK[item].items() if name in BANK[slug].passes}
    assert len(checks) == len(BANK[slug].passes)
    assert [name for name, check in checks.items() if not check(variant)] == []
