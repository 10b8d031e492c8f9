"""Heads that are taken out of a layer for good: smaller weights, and attention that reads its width from them."""

from collections.abc import Mapping, Sequence

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads


def pruned_attention(
    X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, W_O: np.ndarray, num_heads: int
) -> np.ndarray:
    """Multi-head self-attention whose heads together need not be as wide as the model.

    Args:
        X: tokens `(batch, n, d_model)`.
        W_Q, W_K, W_V: weights `(d_model, num_heads * d_k)`, used as `X @ W`. `num_heads * d_k` may be smaller than,
            equal to, or larger than `d_model`.
        W_O: weights `(num_heads * d_k, d_model)`.
        num_heads: number of heads. The width d_k follows from the weights, not from `d_model`: d_k =
            W_Q.shape[1] / num_heads. The scores are divided by its square root. There is no mask.

    Returns:
        The output `(batch, n, d_model)`.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.2.

    >>> X = np.array([[[1.0, 2.0, 9.0, 0.0], [3.0, 4.0, 0.0, 9.0]]])
    >>> W_V = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> W_Q = W_K = np.zeros((4, 2))  # one head of width 2 is left: all scores are 0
    >>> pruned_attention(X, W_Q, W_K, W_V, W_V.T, num_heads=1)
    array([[[2., 3., 0., 0.],
            [2., 3., 0., 0.]]])
    """
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K = split_heads(X @ W_K, num_heads)  # (batch, heads, n, d_k)
    V = split_heads(X @ W_V, num_heads)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k), scaled by the width that Q has
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def prune_heads(
    W_Q: np.ndarray,
    W_K: np.ndarray,
    W_V: np.ndarray,
    W_O: np.ndarray,
    num_heads: int,
    heads: Sequence[int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Remove heads from a layer: their columns of W_Q, W_K and W_V, and their rows of W_O.

    Args:
        W_Q, W_K, W_V: weights `(d_model, num_heads * d_k)`. The layer may have been pruned before: d_k follows
            from the weights.
        W_O: weights `(num_heads * d_k, d_model)`.
        num_heads: number of heads.
        heads: the heads to remove, a list or a tuple of ints from 0 to `num_heads` - 1, distinct, in any order;
            perhaps none, but never all.

    Returns:
        `(W_Q, W_K, W_V, W_O, new_num_heads)`: the four smaller weights and the number of heads that are left,
        an int or a NumPy integer. `pruned_attention` with them equals the full layer without those heads. The heads
        that are left may stand in any order, the same in all four.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.3.

    >>> W = np.arange(8.0).reshape(2, 4)  # d_model = 2, two heads of width 2
    >>> W_Q, _, _, W_O, left = prune_heads(W, W, W, W.T, num_heads=2, heads=[0])
    >>> W_Q
    array([[2., 3.],
           [6., 7.]])
    >>> W_O
    array([[2., 6.],
           [3., 7.]])
    >>> left
    1
    """
    d_k = W_Q.shape[1] // num_heads
    stays = ~np.isin(np.arange(num_heads), heads)  # (num_heads,)
    columns = np.repeat(stays, d_k)  # (num_heads * d_k,): head i owns columns i*d_k … (i+1)*d_k - 1
    return W_Q[:, columns], W_K[:, columns], W_V[:, columns], W_O[columns], int(stays.sum())


def prune_bert_heads(
    weights: Mapping[str, Mapping[str, np.ndarray]], num_heads: int, heads: Sequence[int]
) -> tuple[dict[str, dict[str, np.ndarray]], int]:
    """Take heads out of a layer whose weights are stored as `bert_attention` wants them.

    Args:
        weights: `query`, `key`, `value` with `weight` `(num_heads * d_k, d_model)` and `bias` `(num_heads * d_k,)`,
            and `dense` with `weight` `(d_model, num_heads * d_k)` and `bias` `(d_model,)`.
        num_heads: number of heads.
        heads: the heads to remove, distinct, in any order, counted from 0; perhaps none, but not all.

    Returns:
        The smaller weights and the number of heads that are left. The bias of `dense` belongs to no head and stays.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.3.

    >>> W = {"weight": np.arange(8.0).reshape(4, 2), "bias": np.arange(4.0)}  # two heads of width 2
    >>> dense = {"weight": np.arange(8.0).reshape(2, 4), "bias": np.ones(2)}
    >>> smaller, left = prune_bert_heads({"query": W, "key": W, "value": W, "dense": dense}, 2, heads=[0])
    >>> smaller["value"]["weight"], smaller["value"]["bias"], smaller["dense"]["weight"]
    (array([[4., 5.],
           [6., 7.]]), array([2., 3.]), array([[2., 3.],
           [6., 7.]]))
    """
    names = ("query", "key", "value")
    with_bias = (np.vstack([weights[name]["weight"].T, weights[name]["bias"]]) for name in names)
    W_Q, W_K, W_V = with_bias  # (d_model + 1, num_heads * d_k) each: the bias is one more row
    W_O = weights["dense"]["weight"].T  # (num_heads * d_k, d_model)
    W_Q, W_K, W_V, W_O, left = prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    pruned = {
        name: {"weight": W[:-1].T, "bias": W[-1]} for name, W in zip(names, (W_Q, W_K, W_V), strict=True)
    }
    pruned["dense"] = {"weight": W_O.T, "bias": weights["dense"]["bias"]}
    return pruned, left
