"""What a layer of multi-head attention costs: parameters and floating-point operations, by formula."""

from mha_lib.heads import head_dim


def count_parameters(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Number of parameters of W_Q, W_K, W_V and W_O together: all their entries, and the biases if there are any.

    Query heads that share key heads and value heads make W_K and W_V narrower, but not W_Q and W_O. A bias has
    one number for each column of its weights.

    Args:
        d_model: number of features, an int.
        num_heads: number of query heads, an int that divides `d_model` (you need not check it).
        num_kv_heads: number of key heads and of value heads, a divisor of `num_heads`. None means `num_heads`.
        bias: whether each of the four projections has a bias.

    Returns:
        The count, as an int or a NumPy integer.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2; Ainslie et al. 2023, GQA, section
    2.2.

    >>> count_parameters(6, num_heads=3)  # four matrices of 36 entries
    144
    >>> count_parameters(6, num_heads=3, num_kv_heads=1, bias=True)  # 36 + 12 + 12 + 36, and 6 + 2 + 2 + 6
    112
    """
    if num_kv_heads is None:
        num_kv_heads = num_heads
    kv_width = num_kv_heads * head_dim(d_model, num_heads)  # features of all keys together
    weights = 2 * d_model * d_model + 2 * d_model * kv_width  # W_Q and W_O, W_K and W_V
    biases = 2 * d_model + 2 * kv_width
    return weights + biases if bias else weights


def attention_flops(n: int, d_model: int) -> int:
    """Floating-point operations of the matrix products in one forward pass of multi-head self-attention.

    The count covers the four projections, the scores, and the weights applied to the values, for one sequence
    without a mask. A multiplication and an addition count as 2. Softmax, scale and biases are not counted. The
    number of heads does not matter.

    Args:
        n: number of tokens, an int.
        d_model: number of features, an int.

    Returns:
        The count, as an int or a NumPy integer.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 4, table 1, gives the orders of growth.

    >>> attention_flops(n=2, d_model=3)  # 36 for each projection, 24 for the scores, 24 for the weighted values
    192
    """
    projections = 4 * (2 * n * d_model * d_model)  # four products (n, d_model) @ (d_model, d_model)
    scores = 2 * n * n * d_model  # over all heads: (n, d_k) @ (d_k, n)
    mixing = 2 * n * n * d_model  # over all heads: (n, n) @ (n, d_k)
    return projections + scores + mixing
