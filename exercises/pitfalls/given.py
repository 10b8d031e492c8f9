"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From multi_head: `head_dim`.
From single_head: `softmax`.
"""

import numpy as np


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Turn logits into weights: positive numbers that sum to 1 along `axis`.

    Args:
        x: logits of any shape. They must be finite or -inf, with at least one finite logit in every slice
            along `axis`; -inf gets weight 0. Finite logits may be as large as you like.
        axis: the axis along which the weights sum to 1.

    Returns:
        An array of the shape of `x`.

    Source: Goodfellow, Bengio, Courville, Deep Learning (2016), section 4.1: subtracting the largest logit
    changes nothing in the quotient and keeps the exponential from overflowing.

    >>> softmax(np.log([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]))
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
        d_model: number of features.
        num_heads: number of heads.

    Returns:
        d_model / num_heads as an int.

    Raises:
        ValueError: if either number is not positive or `d_model` is not a multiple of `num_heads`. The
            message holds both numbers.

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
