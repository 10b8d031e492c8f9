"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From multi_head: `head_dim`, `split_heads`, `combine_heads`.
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


def head_dim(d_model: int, num_heads: int) -> int:
    """The width d_k of one head, when `num_heads` heads share `d_model` features equally.

    Args:
        d_model: number of features, an int.
        num_heads: number of heads, an int.

    Returns:
        d_model / num_heads as an int (a NumPy integer is right, too).

    Raises:
        ValueError: if `num_heads` does not divide `d_model`, or if one of them is 0 or negative. The message
            contains both numbers, in plain digits (1024, not 1,024).

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.

    >>> head_dim(512, 8)
    64
    >>> head_dim(7, 2)
    Traceback (most recent call last):
    ValueError: d_model=7 cannot be divided among num_heads=2: 7 / 2 = 3.5
    """
    if d_model <= 0 or num_heads <= 0:
        raise ValueError(f"d_model={d_model} and num_heads={num_heads} must both be positive")
    if d_model % num_heads != 0:
        quotient = f"{d_model} / {num_heads} = {d_model / num_heads:g}"
        raise ValueError(f"d_model={d_model} cannot be divided among num_heads={num_heads}: {quotient}")
    return d_model // num_heads


def split_heads(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Give each head its own block of features, `(batch, n, d_model)` to `(batch, heads, n, d_k)`.

    Args:
        x: features `(batch, n, d_model)`.
        num_heads: number of heads, at least 1 (0 and negative numbers are not tested).

    Returns:
        Array `(batch, heads, n, d_k)`; entry `[:, i]` is `x[:, :, i*d_k:(i+1)*d_k]`.

    Raises:
        ValueError: if `num_heads` does not divide `d_model`, even if it is larger (the grader accepts any error).

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.

    >>> x = np.array([[[10, 11, 12, 13], [20, 21, 22, 23]]])  # the tens tell the token, the ones the feature
    >>> split_heads(x, 2)
    array([[[[10, 11],
             [20, 21]],
    <BLANKLINE>
            [[12, 13],
             [22, 23]]]])
    """
    batch, n, d_model = x.shape
    d_k = head_dim(d_model, num_heads)
    x = x.reshape(batch, n, num_heads, d_k)  # (batch, n, heads, d_k)
    return x.transpose(0, 2, 1, 3)  # (batch, heads, n, d_k)


def combine_heads(x: np.ndarray) -> np.ndarray:
    """Concatenate the heads again, `(batch, heads, n, d_k)` to `(batch, n, d_model)`: the inverse of
    `split_heads`.

    Args:
        x: one block of features for each head, `(batch, heads, n, d_k)`.

    Returns:
        Array `(batch, n, heads * d_k)`, head i in the columns `i*d_k … (i+1)*d_k - 1`.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2, Concat(head_1, …, head_h).

    >>> x = np.array([[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]])  # two heads of two tokens
    >>> combine_heads(x)
    array([[[0, 1, 2, 3],
            [4, 5, 6, 7]]])
    """
    batch, num_heads, n, d_k = x.shape
    x = x.transpose(0, 2, 1, 3)  # (batch, n, heads, d_k)
    return x.reshape(batch, n, num_heads * d_k)  # (batch, n, d_model)
