"""Grouped-query attention in NumPy: several query heads share one head of keys and values."""

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads


def grouped_query_attention(
    X: np.ndarray,
    W_Q: np.ndarray,
    W_K: np.ndarray,
    W_V: np.ndarray,
    W_O: np.ndarray,
    num_heads: int,
    num_kv_heads: int,
) -> np.ndarray:
    """Self-attention in which neighbouring query heads share a key head and a value head.

    With `num_kv_heads` = `num_heads` it is multi-head attention, and with `num_kv_heads` = 1 multi-query attention.
    There is no mask; scores are divided by √d_k, and the concatenated heads go through `W_O`.

    Args:
        X: tokens `(batch, n, d_model)`.
        W_Q, W_O: weights `(d_model, d_model)`, used as `X @ W`.
        W_K, W_V: weights `(d_model, num_kv_heads * d_k)`, with d_k = d_model / num_heads.
        num_heads: number of query heads; it divides `d_model`.
        num_kv_heads: number of key heads and of value heads; it divides `num_heads`, and may equal it or be 1.

    Returns:
        The output `(batch, n, d_model)`. Query head i uses the keys and values of head
        `i // (num_heads // num_kv_heads)`.

    Source: Ainslie et al. 2023, GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
    Checkpoints, section 2.2; Shazeer 2019, Fast Transformer Decoding, section 3, for one key head.

    >>> X = np.array([[[0.0, np.log(3.0)], [4.0, 0.0]]])  # one sequence of two tokens
    >>> W_Q = np.array([[0.0, 1.0], [0.0, 0.0]])  # head 0 asks for nothing, head 1 asks with feature 0
    >>> W_K, W_V = np.array([[0.0], [0.25]]), np.array([[1.0], [0.0]])
    >>> grouped_query_attention(X, W_Q, W_K, W_V, np.eye(2), num_heads=2, num_kv_heads=1).round(6)
    array([[[2., 2.],
            [2., 1.]]])
    """
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads  # query heads that share one head of keys and values
    K = np.repeat(K, group, axis=1)  # (batch, num_heads, n, d_k)
    V = np.repeat(V, group, axis=1)  # (batch, num_heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, num_heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)
