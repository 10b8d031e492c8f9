"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From multi_head: `head_dim`.
"""




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
