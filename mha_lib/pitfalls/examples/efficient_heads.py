"""The items of `efficient_heads`, and small inputs that expose mistakes in them."""

from typing import Any

import numpy as np

from mha_lib import grouped_query, kv_cache, pruning
from mha_lib.pitfalls.examples import Code, item

GROUPED_QUERY_ATTENTION = item(
    "efficient_heads.grouped_query_attention", grouped_query.grouped_query_attention
)


@GROUPED_QUERY_ATTENTION.example
def two_groups(grouped_query_attention: Code) -> Any:
    """Six heads of queries share two heads of keys and values: the first token's output."""
    X = np.arange(72).reshape(1, 4, 18) % 5 - 2
    W_Q, W_O = (np.arange(648) % 7 - 3).reshape(2, 18, 18) / 4
    W_K, W_V = (np.arange(216) % 11 - 5).reshape(2, 18, 6) / 8
    return grouped_query_attention(X, W_Q, W_K, W_V, W_O, 6, 2)[0, 0]


CACHED_ATTENTION = item("efficient_heads.CachedAttention", kv_cache.CachedAttention)


@CACHED_ATTENTION.example
def chunk_by_chunk(CachedAttention: Code) -> Any:
    """Seven tokens in chunks of three, three and one: the outputs of the last two chunks."""
    layer = CachedAttention(*(np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4, 2)
    X = np.arange(28).reshape(1, 7, 4) % 5 - 2
    layer.forward(X[:, :3])
    return layer.forward(X[:, 3:6]), layer.forward(X[:, 6:])


@CACHED_ATTENTION.example
def kept_output(CachedAttention: Code) -> Any:
    """The output of the first token, read after the second one has come."""
    layer = CachedAttention(*(np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4, 2)
    X = np.arange(8).reshape(1, 2, 4) % 5 - 2
    first = layer.forward(X[:, :1])
    layer.forward(X[:, 1:])
    return first


@CACHED_ATTENTION.example
def after_a_reset(CachedAttention: Code) -> Any:
    """A new sequence after `reset`."""
    layer = CachedAttention(*(np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4, 2)
    X = np.arange(20).reshape(1, 5, 4) % 3 - 1
    layer.forward(X)
    layer.reset()
    return layer.forward(X[:, :2])


@CACHED_ATTENTION.example
def two_layers(CachedAttention: Code) -> Any:
    """Two layers that run side by side: the second one's output."""
    weights = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    X = np.arange(20).reshape(1, 5, 4) % 3 - 1
    first, second = CachedAttention(*weights, 2), CachedAttention(*weights, 2)
    first.forward(X)
    return second.forward(X[:, :2])


KV_CACHE_BYTES = item("efficient_heads.kv_cache_bytes", kv_cache.kv_cache_bytes)


@KV_CACHE_BYTES.example
def six_numbers(kv_cache_bytes: Code) -> Any:
    """Six different numbers."""
    return kv_cache_bytes(3, 6, 5, 7, 11, bytes_per_value=8)


@KV_CACHE_BYTES.example
def a_large_cache(kv_cache_bytes: Code) -> Any:
    """More than two gigabytes."""
    return kv_cache_bytes(3, 4096, 32, 32, 128)


PRUNED_ATTENTION = item("efficient_heads.pruned_attention", pruning.pruned_attention)


@PRUNED_ATTENTION.example
def two_heads_left(pruned_attention: Code) -> Any:
    """Two heads of width 3 are left of a model of width 8: the first token's output."""
    X = np.arange(40).reshape(1, 5, 8) % 5 - 2
    W_Q, W_K, W_V = (np.arange(144) % 7 - 3).reshape(3, 8, 6) / 4
    W_O = (np.arange(48) % 7 - 3).reshape(6, 8) / 4
    return pruned_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)[0, 0]


PRUNE_HEADS = item("efficient_heads.prune_heads", pruning.prune_heads)


@PRUNE_HEADS.example
def two_of_five_heads(prune_heads: Code) -> Any:
    """Each column, of W_O each row, holds its number: what is left of W_Q, W_V and W_O, and how many heads."""
    W = np.tile(np.arange(10), (10, 1))
    W_Q, _, W_V, W_O, num_heads = prune_heads(W, W, W, W.T, 5, [0, 1])
    return W_Q[0], W_V[0], W_O[:, 0], num_heads


@PRUNE_HEADS.example
def a_tuple_of_heads(prune_heads: Code) -> Any:
    """Two heads of four are to go, in a tuple: what is left of W_Q."""
    W = np.tile(np.arange(4), (4, 1))
    return prune_heads(W, W, W, W.T, 4, (0, 2))[0][0]


@PRUNE_HEADS.example
def no_head(prune_heads: Code) -> Any:
    """No head is to go: what is left of W_Q, and how many heads."""
    W = np.tile(np.arange(4), (4, 1))
    W_Q, _, _, _, num_heads = prune_heads(W, W, W, W.T, 2, [])
    return W_Q[0], num_heads
