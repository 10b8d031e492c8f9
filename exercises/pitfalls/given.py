"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From multi_head: `head_dim`.
From single_head: `softmax`.
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
