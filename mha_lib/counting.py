"""What a layer of multi-head attention costs: parameters and floating-point operations, by formula."""

from mha_lib.heads import head_dim


def count_parameters(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Number of parameters of W_Q, W_K, W_V and W_O together.

    Args:
        d_model: number of features.
        num_heads: number of query heads; it divides `d_model`.
        num_kv_heads: number of key heads and of value heads, a divisor of `num_heads`. None: `num_heads`.
        bias: whether each of the four projections has a bias.

    Returns:
        2·d_model² + 2·d_model·num_kv_heads·d_k, and 2·d_model + 2·num_kv_heads·d_k more with biases. With
        as many key heads as query heads, that is 4·d_model² however many heads there are.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2; Ainslie et al. 2023, GQA,
    section 2.2.

    >>> count_parameters(512, num_heads=8)
    1048576
    >>> count_parameters(512, num_heads=8, num_kv_heads=2, bias=True)
    656640
    """
    if num_kv_heads is None:
        num_kv_heads = num_heads
    kv_width = num_kv_heads * head_dim(d_model, num_heads)  # features of all keys together
    weights = 2 * d_model * d_model + 2 * d_model * kv_width  # W_Q and W_O, W_K and W_V
    biases = 2 * d_model + 2 * kv_width
    return weights + biases if bias else weights


def attention_flops(n: int, d_model: int) -> int:
    """Floating-point operations of the matrix products in one forward pass of multi-head self-attention.

    One sequence, no mask; a multiplication with its addition counts as 2; the softmax is not counted; the
    four projections are. The number of heads does not matter.

    Args:
        n: number of tokens.
        d_model: number of features.

    Returns:
        8·n·d_model² for the four projections and 4·n²·d_model for Q Kᵀ and the weighted values.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 4, table 1, gives the orders of growth.

    >>> attention_flops(n=10, d_model=4)
    2880
    """
    projections = 4 * (2 * n * d_model * d_model)  # four products (n, d_model) @ (d_model, d_model)
    scores = 2 * n * n * d_model  # over all heads: (n, d_k) @ (d_k, n)
    mixing = 2 * n * n * d_model  # over all heads: (n, n) @ (n, d_k)
    return projections + scores + mixing
