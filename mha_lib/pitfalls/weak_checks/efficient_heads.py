"""Weak checks of the items of `efficient_heads`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_lib.grouped_query import grouped_query_attention
from mha_lib.kv_cache import CachedAttention, kv_cache_bytes
from mha_lib.pitfalls.weak_checks import (
    Arguments,
    Check,
    Code,
    close,
    has_shapes,
    is_finite,
    results,
    right_on,
    weak_check,
)
from mha_lib.pruning import prune_heads, pruned_attention

Array = np.ndarray

# --- sharing keys and values -------------------------------------------------------------------------------

GROUPED = "efficient_heads.grouped_query_attention"


def grouped(num_kv_heads: int) -> Arguments:
    """Tokens and weights of six query heads."""
    rng = np.random.default_rng(7)
    W_K, W_V = rng.normal(size=(2, 12, num_kv_heads * 2))
    return rng.normal(size=(3, 5, 12)), rng.normal(size=(12, 12)), W_K, W_V, np.eye(12), 6, num_kv_heads


weak_check("shape", GROUPED)(has_shapes(grouped(3), (3, 5, 12)))
weak_check("finite", GROUPED)(is_finite(grouped(3)))
weak_check("one key head", GROUPED)(right_on(grouped_query_attention, grouped(1)))
weak_check("as many key heads", GROUPED)(right_on(grouped_query_attention, grouped(6)))

# --- remembering keys and values ---------------------------------------------------------------------------

CACHED = "efficient_heads.CachedAttention"


def in_chunks(cls: Code, *sizes: int) -> Array:
    """The outputs for a sequence that comes in chunks of these sizes."""
    layer = cls(*np.random.default_rng(9).normal(size=(4, 6, 6)), 3)
    X = np.random.default_rng(5).normal(size=(3, sum(sizes), 6))
    ends = np.cumsum(sizes)
    outputs = [layer.forward(X[:, end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    return np.concatenate(outputs, axis=1)


def right_in_chunks(*sizes: int) -> Check:
    """The check: the outputs are right for chunks of these sizes."""
    return lambda cls: close((in_chunks(cls, *sizes),), (in_chunks(CachedAttention, *sizes),), atol=1e-6)


weak_check("shape", CACHED)(lambda cls: in_chunks(cls, 2, 3, 1).shape == (3, 6, 6))
weak_check("finite", CACHED)(lambda cls: bool(np.isfinite(in_chunks(cls, 2, 3, 1)).all()))
weak_check("one chunk", CACHED)(right_in_chunks(5))
weak_check("two chunks", CACHED)(right_in_chunks(2, 3))
weak_check("token by token", CACHED)(right_in_chunks(1, 1, 1, 1))

weak_check("default size", "efficient_heads.kv_cache_bytes")(right_on(kv_cache_bytes, (2, 3, 5, 7, 11)))

# --- removing heads ----------------------------------------------------------------------------------------

PRUNED = "efficient_heads.pruned_attention"


def pruned(num_heads: int) -> Arguments:
    """Tokens of width 12, and weights of heads of width 4."""
    rng = np.random.default_rng(3)
    W_Q, W_K, W_V = rng.normal(size=(3, 12, num_heads * 4))
    return rng.normal(size=(2, 5, 12)), W_Q, W_K, W_V, np.eye(num_heads * 4, 12), num_heads


weak_check("shape", PRUNED)(has_shapes(pruned(2), (2, 5, 12)))
weak_check("finite", PRUNED)(is_finite(pruned(2)))
weak_check("full width", PRUNED)(right_on(pruned_attention, pruned(3)))

PRUNE = "efficient_heads.prune_heads"


def removing(heads: Sequence[int]) -> Arguments:
    """The weights of five heads of width 3, and which of them are to be removed."""
    rng = np.random.default_rng(2)
    W_Q, W_K, W_V = rng.normal(size=(3, 15, 15))
    return W_Q, W_K, W_V, rng.normal(size=(15, 15)), 5, heads


REMOVING_TWO = removing([1, 3])


@weak_check("shape", PRUNE)
def left_weights_have_the_right_shapes(prune: Code) -> Any:
    """When two heads are removed."""
    got, expected = results(prune, REMOVING_TWO), results(prune_heads, REMOVING_TWO)
    return [np.shape(W) for W in got] == [np.shape(W) for W in expected]


weak_check("number of heads", PRUNE)(lambda prune: bool(results(prune, REMOVING_TWO)[4] == 3))
weak_check("one head removed", PRUNE)(right_on(prune_heads, removing([2])))


@weak_check("weights", PRUNE)
def left_weights_are_right(prune: Code) -> Any:
    """Whatever is said of the number of heads."""
    return close(results(prune, REMOVING_TWO)[:4], results(prune_heads, REMOVING_TWO)[:4], atol=1e-6)


weak_check("full width", PRUNE)(right_on(prune_heads, REMOVING_TWO))


@weak_check("layer's output", PRUNE)
def output_of_what_is_left_is_right(prune: Code) -> Any:
    """When two heads are removed."""
    X = np.random.default_rng(1).normal(size=(2, 4, 15))
    got, expected = (pruned_attention(X, *results(f, REMOVING_TWO)) for f in (prune, prune_heads))
    return close((got,), (expected,), atol=1e-6)
