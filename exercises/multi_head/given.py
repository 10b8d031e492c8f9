"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From single_head: `softmax`, `attention`, `causal_mask`.
"""

import numpy as np


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Turn logits into weights: numbers from 0 to 1 that sum to 1 along `axis`.

    Args:
        x: floats of any shape with at least one axis. All logits are finite. They may be in the thousands, and
            one row may lie 10,000 above another one. (-inf gets weight 0 beside a finite logit: your
            `attention` may want it, but here it is not graded.)
        axis: the weights sum to 1 along this axis. It may be any axis of `x`, counted from the front or from
            the end.

    Returns:
        An array of the shape of `x`, right for all finite logits.

    Source: Goodfellow, Bengio, Courville, Deep Learning (2016), section 4.1.

    >>> softmax(np.log([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]))  # 1/8, 2/8, 5/8 and 3/8, 3/8, 2/8
    array([[0.125, 0.25 , 0.625],
           [0.375, 0.375, 0.25 ]])
    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))  # the largest is exp(0) = 1
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.

    Args:
        Q: queries `(..., n, d_k)`.
        K: keys `(..., m, d_k)`.
        V: values `(..., m, d_v)`. The dots are the same leading axes in all three: none, `(batch,)`,
            `(batch, heads)` or more. n and m may differ, either may be the larger one, and each may be 1; d_k
            and d_v may differ.
        mask: None or boolean, True = may attend: `(n, m)` or `(batch, 1, n, m)` (padding: `(batch, 1, 1, m)`),
            not `(batch, n, m)`. If `Q` has two or three axes, it is `(n, m)`; with five or more, there is none.
            Every query has at least one key.

    Scores are finite. Those of keys that a query may attend to can be as low as -20,000. A masked score is
    never more than 30 above the largest score that its query may attend to.

    Returns:
        `(output, weights)` of shapes `(..., n, d_v)` and `(..., n, m)`. A weight is 0 where the mask is False,
        so that not even values of 1e6 there change the output; the weights of each query sum to 1.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.1, equation 1.

    >>> Q = np.array([[2.0, 0.0, 0.0, 0.0]])
    >>> K = np.array([[np.log(3.0), 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    >>> V = np.array([[4.0, 0.0], [0.0, 8.0]])
    >>> output, weights = attention(Q, K, V)  # the scores are 2 log(3) / √4 = log(3) and 0
    >>> weights.round(6)  # 3/4 and 1/4
    array([[0.75, 0.25]])
    >>> output.round(6)
    array([[3., 2.]])
    """
    d_k = Q.shape[-1]
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(d_k)  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=-1)  # (..., n, m)
    return weights @ V, weights  # (..., n, d_v), (..., n, m)


def causal_mask(n: int, m: int | None = None) -> np.ndarray:
    """A query may attend to its own position and to earlier ones, never to a later one.

    The `n` queries are the *last* `n` of the `m` positions, so the last query lines up with the last key.

    Args:
        n: number of queries, an int.
        m: number of keys, an int of at least `n`. None means as many keys as queries.

    Returns:
        Boolean `(n, m)`. Entry (i, j), counted from 0, is True exactly when j <= i + (m - n).

    Raises:
        ValueError: if `n` is larger than `m` (not graded).

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.

    >>> causal_mask(2, 4)
    array([[ True,  True,  True, False],
           [ True,  True,  True,  True]])
    """
    if m is None:
        m = n
    if n > m:
        raise ValueError(f"n={n} queries need at least as many keys, but there are only m={m}")
    queries = np.arange(n)[:, None]  # (n, 1)
    keys = np.arange(m)[None, :]  # (1, m)
    return keys <= queries + (m - n)  # (n, m)
