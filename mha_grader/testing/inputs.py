"""Hidden inputs, drawn so that a mistake costs the parts that are about it, and no others.

With *decided* queries and keys a wrong scale makes no difference, with *undecided* ones only the mask does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def random_mask(rng: np.random.Generator, *shape: int, empty_rows: int = 0) -> np.ndarray:
    """A mask in which each row has a True and a False, but for `empty_rows` rows of False alone."""
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    mask = rng.permuted(mask, axis=-1)
    if empty_rows:
        mask[..., rng.permutation(shape[-2])[:empty_rows], :] = False
    return mask


def scalar_qkv(rng: np.random.Generator, *leading: int, n: int = 5, m: int = 7) -> list[np.ndarray]:
    """Q, K and V of width 1: dividing by the root of a width does nothing, so they do not test the scale."""
    return [rng.normal(size=(*leading, tokens, 1)) for tokens in (n, m, m)]


def wide_qkv(rng: np.random.Generator, *leading: int) -> list[np.ndarray]:
    """Q, K and V of ordinary size and with d_k = 24, so that only the right scale gives the right weights."""
    return [rng.normal(size=(*leading, *size)) for size in ((5, 24), (7, 24), (7, 6))]


def low_qkv(rng: np.random.Generator) -> list[np.ndarray]:
    """Q, K and V of width 1; the scores of two queries are about -20,000, those of a row close to each other."""
    Q = np.array([[-200.0], [1.0], [-200.0], [-1.0], [50.0]])
    return [Q, 100.0 + rng.normal(size=(7, 1)) / 100.0, rng.normal(size=(7, 1))]


def high_qkv(rng: np.random.Generator) -> list[np.ndarray]:
    """Q, K and V of width 1; scores are in the thousands, of either sign, those of a row close to each other."""
    Q = np.array([[100.0], [-100.0], [0.0], [100.0], [-1.0]])
    return [Q, 30.0 + rng.normal(size=(7, 1)) / 100.0, rng.normal(size=(7, 1))]


def decided_qkv(
    rng: np.random.Generator, *leading: int, n: int = 5, m: int = 7, d_k: int = 4, d_v: int = 6
) -> list[np.ndarray]:
    """Q, K and V in which each query asks for one kind of key: 0 for it, far below 0 for others, on any scale."""
    of_key = rng.permuted(np.broadcast_to(np.arange(m) % d_k, (*leading, m)), axis=-1)  # (..., m)
    asked = rng.integers(d_k, size=(*leading, n))  # (..., n)
    one_hot = np.eye(d_k)
    return [300.0 * (one_hot[asked] - 1.0), one_hot[of_key], rng.normal(size=(*leading, m, d_v))]


def undecided_qkv(
    rng: np.random.Generator, *leading: int, n: int = 5, m: int = 7, d_v: int = 6
) -> list[np.ndarray]:
    """Q, K and V with which all scores are 0, so that only a mask tells the keys apart."""
    K, V = rng.normal(size=(*leading, m, 1)), rng.normal(size=(*leading, m, d_v))
    return [np.zeros((*leading, n, 1)), K, V]


def random_layer(rng: np.random.Generator, batch: int, n: int, num_heads: int, d_k: int) -> tuple[Any, ...]:
    """Tokens, W_Q, W_K, W_V, W_O and the number of heads: queries, keys and outputs of ordinary size."""
    d_model = num_heads * d_k
    X, weights = rng.normal(size=(batch, n, d_model)), rng.normal(size=(4, d_model, d_model))
    return X, *(weights / np.sqrt(d_model)), num_heads


def decided_layer(
    rng: np.random.Generator,
    batch: int,
    n: int,
    num_heads: int,
    d_k: int,
    *,
    num_kv_heads: int | None = None,
    d_model: int | None = None,
    apart: float = 28.0,
) -> tuple[Any, ...]:
    """Tokens, W_Q, W_K, W_V, W_O and the number of heads; each query asks for one kind of key, on any scale.

    The first three features of a token tell its kind, of which there are three. In each head it looks for tokens
    of the next kind, or of the one before: their scores are 0, and the others are so much lower that they get no
    weight, whichever scale somebody takes for the right one. With n a multiple of 3, a softmax over queries would
    go unnoticed.

    Args:
        rng: draws all of it.
        batch, n: number of sequences and of tokens.
        num_heads, d_k: number and width of the query heads, which are 3 or more wide.
        num_kv_heads: number of heads of keys and values. None: `num_heads`.
        d_model: number of features. None: as wide as the heads together.
        apart: how much lower the other scores are on the right scale. Up to 30 suit masks that act after the
            exponential.
    """
    kv_heads, width = num_kv_heads or num_heads, num_heads * d_k
    d_model, kinds = d_model or width, np.eye(3)
    X = rng.normal(size=(batch, n, d_model))
    X[..., :3] = kinds[rng.permuted(np.broadcast_to(np.arange(n) % 3, (batch, n)), axis=-1)]
    W_Q, W_K = np.zeros((d_model, width)), np.zeros((d_model, kv_heads * d_k))
    for i in range(num_heads):
        shift = (
            i // (num_heads // kv_heads) + (-1) ** i
        )  # its key head turns the kinds by the first of the two
        W_Q[:3, i * d_k : i * d_k + 3] = apart * np.sqrt(d_k) * (np.roll(kinds, shift, axis=1) - 1.0)
    for j in range(kv_heads):
        W_K[:3, j * d_k : j * d_k + 3] = np.roll(kinds, j, axis=1)
    W_V = rng.normal(size=(d_model, kv_heads * d_k)) / np.sqrt(d_model)
    W_O = rng.normal(size=(width, d_model)) / np.sqrt(width)
    return X, W_Q, W_K, W_V, W_O, num_heads


def heads_alone(layer: tuple[Any, ...]) -> tuple[Any, ...]:
    """A layer whose W_O passes the heads on as they are, since W_O has a part of its own."""
    X, W_Q, W_K, W_V, W_O, num_heads = layer
    return X, W_Q, W_K, W_V, np.eye(*W_O.shape), num_heads


def stored_layer(
    rng: np.random.Generator, batch: int, n: int, num_heads: int, d_k: int, *, biased: Sequence[str] = ()
) -> tuple[Any, ...]:
    """A decided layer as PyTorch stores it: tokens, weights `(out, in)` with biases, the number of heads.

    The biases of those of `query`, `key`, `value` and `dense` that are `biased` are random, the others 0.
    """
    X, W_Q, W_K, W_V, W_O, num_heads = decided_layer(rng, batch, n, num_heads, d_k)
    weights = {"query": W_Q.T, "key": W_K.T, "value": W_V.T, "dense": W_O.T}
    biases = {name: rng.normal(size=len(W)) * (name in biased) for name, W in weights.items()}
    return X, {name: {"weight": W, "bias": biases[name]} for name, W in weights.items()}, num_heads


def stored_text(width: int, weight: str = "", bias: str = "") -> str:
    """The text of a stored layer's weights, for examples: `query`, `key`, `value` and `dense` are all alike.

    Args:
        width: d_model.
        weight: the text of an array. Empty: it passes everything on.
        bias: the text of an array. Empty: zeros.
    """
    weight, bias = weight or f"np.eye({width})", bias or f"np.zeros({width})"
    return f"dict.fromkeys(['query', 'key', 'value', 'dense'], {{'weight': {weight}, 'bias': {bias}}})"


def undecided_layer(
    rng: np.random.Generator, batch: int, n: int, num_heads: int, d_k: int
) -> tuple[Any, ...]:
    """Tokens, W_Q, W_K, W_V, W_O and the number of heads: all scores are 0, and nothing is projected."""
    d_model = num_heads * d_k
    zeros, ones = np.zeros((d_model, d_model)), np.eye(d_model)
    return rng.normal(size=(batch, n, d_model)), zeros, zeros, ones, ones, num_heads
