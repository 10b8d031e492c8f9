"""Multi-head attention in NumPy: self-attention, causal, cross, and head by head.

All heads share one projection `(d_model, d_model)` for queries, one for keys and one for values; head i owns
the columns `i*d_k … (i+1)*d_k - 1` of each. Every head reads all features of `X`.
"""

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, head_dim, split_heads
from mha_lib.masks import causal_mask


def multi_head_attention(
    X: np.ndarray,
    W_Q: np.ndarray,
    W_K: np.ndarray,
    W_V: np.ndarray,
    W_O: np.ndarray,
    num_heads: int,
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """Multi-head self-attention: Concat(head_1, …, head_h) W_O, all heads at once.

    Args:
        X: tokens `(batch, n, d_model)`; n may be 1.
        W_Q, W_K, W_V, W_O: weights `(d_model, d_model)`, used as `X @ W`. Head i owns the columns
            `i*d_k … (i+1)*d_k - 1` of the first three and the *rows* of `W_O` with the same numbers.
        num_heads: number of heads, an int that divides `d_model` (you need not check it).
        mask: None or boolean, True = may attend: `(n, n)` or `(batch, 1, n, n)` (padding: `(batch, 1, 1, n)`),
            not `(batch, n, n)`. Every query has at least one key.

    Scores are finite. They can be in the thousands, and those of keys that a query may attend to can be as low
    as -20,000. A masked score is never more than 30 above the largest score that its query may attend to.

    Returns:
        The output `(batch, n, d_model)` alone, without the weights.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.

    >>> X = np.array([[[1.0, 2.0, 9.0, 0.0], [3.0, 4.0, 0.0, 9.0]]])
    >>> W_Q = W_K = np.diag([0.0, 0.0, 1.0, 1.0])  # head 0: all scores 0; head 1: a token fits only itself
    >>> W_V = W_O = np.eye(4)
    >>> multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads=2).round(6)  # head 0 gives (1+3)/2, (2+4)/2
    array([[[2., 3., 9., 0.],
            [2., 3., 0., 9.]]])
    """
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K = split_heads(X @ W_K, num_heads)  # (batch, heads, n, d_k)
    V = split_heads(X @ W_V, num_heads)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def causal_multi_head_attention(
    X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, W_O: np.ndarray, num_heads: int
) -> np.ndarray:
    """Multi-head self-attention in which no token sees a later one.

    Args:
        X, W_Q, W_K, W_V, W_O, num_heads: as for `multi_head_attention`, but no score is above 30 in absolute value.

    Returns:
        The output `(batch, n, d_model)` alone; row i depends on the tokens 0 … i only.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.

    >>> X = np.array([[[3.0], [5.0], [10.0]]])
    >>> zero, one = np.zeros((1, 1)), np.eye(1)
    >>> causal_multi_head_attention(X, zero, zero, one, one, num_heads=1).round(6)  # (3+5)/2, (3+5+10)/3
    array([[[3.],
            [4.],
            [6.]]])
    """
    n = X.shape[1]
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads, mask=causal_mask(n))  # (batch, n, d_model)


def cross_attention(
    X: np.ndarray,
    memory: np.ndarray,
    W_Q: np.ndarray,
    W_K: np.ndarray,
    W_V: np.ndarray,
    W_O: np.ndarray,
    num_heads: int,
) -> np.ndarray:
    """Multi-head attention from one sequence to another: queries from `X`, and keys and values from `memory`.

    Args:
        X: tokens that make the queries, `(batch, n, d_model)`.
        memory: tokens that make keys and values, `(batch, m, d_model)`. m may be smaller or larger than n, and each
            may be 1.
        W_Q, W_K, W_V, W_O, num_heads: as for `multi_head_attention`, but no score is above 30 in absolute value.
            There is no mask.

    Returns:
        The output `(batch, n, d_model)` alone, one row for each token of `X`.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.

    >>> memory = np.array([[[1.0, 2.0, 9.0, 0.0], [3.0, 4.0, 0.0, 9.0]]])
    >>> X = np.array([[[5.0, 5.0, 0.0, 9.0]]])
    >>> W_Q = W_K = np.diag([0.0, 0.0, 1.0, 1.0])  # head 0: all scores 0; head 1 finds the second token
    >>> W_V = W_O = np.eye(4)
    >>> cross_attention(X, memory, W_Q, W_K, W_V, W_O, num_heads=2).round(6)
    array([[[2., 3., 0., 9.]]])
    """
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K = split_heads(memory @ W_K, num_heads)  # (batch, heads, m, d_k)
    V = split_heads(memory @ W_V, num_heads)  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_by_loop(
    X: np.ndarray,
    W_Q: np.ndarray,
    W_K: np.ndarray,
    W_V: np.ndarray,
    W_O: np.ndarray,
    num_heads: int,
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """`multi_head_attention`, one head after the other: each with its own columns of W_Q, W_K and W_V.

    Args:
        X: tokens `(batch, n, d_model)`.
        W_Q, W_K, W_V, W_O: weights `(d_model, d_model)`, used as `X @ W`.
        num_heads: number of heads; it divides `d_model`.
        mask: boolean, True = may attend, `(n, n)` or `(batch, 1, n, n)`; every query has at least one key.

    Returns:
        The output `(batch, n, d_model)`.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.

    >>> X = np.array([[[1.0, 2.0, 9.0, 0.0], [3.0, 4.0, 0.0, 9.0]]])
    >>> W_Q = W_K = np.diag([0.0, 0.0, 1.0, 1.0])
    >>> W_V = W_O = np.eye(4)
    >>> multi_head_attention_by_loop(X, W_Q, W_K, W_V, W_O, num_heads=2).round(6)
    array([[[2., 3., 9., 0.],
            [2., 3., 0., 9.]]])
    """
    d_k = head_dim(X.shape[-1], num_heads)
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]  # (batch, n, n): inside the loop there is no axis of heads
    heads = []
    for i in range(num_heads):
        columns = slice(i * d_k, (i + 1) * d_k)
        Q = X @ W_Q[:, columns]  # (batch, n, d_k)
        K = X @ W_K[:, columns]  # (batch, n, d_k)
        V = X @ W_V[:, columns]  # (batch, n, d_k)
        head, _ = attention(Q, K, V, mask)  # (batch, n, d_k)
        heads.append(head)
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)
