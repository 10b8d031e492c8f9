"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From batched_torch: `attention`.
"""

import torch


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V, also for queries that may attend to nothing.

    Args:
        Q: queries `(..., n, d_k)`.
        K: keys `(..., m, d_k)`.
        V: values `(..., m, d_v)`. All three have the same leading dimensions, any number of them, and the
            same dtype: float64, float32, float16 or bfloat16.
        mask: boolean, True = may attend, broadcastable to `(..., n, m)`. None: every query may attend to
            every key.

    Returns:
        The output `(..., n, d_v)` and the weights `(..., n, m)`, in the dtype of `V`. A query that may attend
        to nothing gets zero weights and a zero output, and all gradients stay finite. In half precision the
        scores and the softmax are computed in float32: near 100, two neighbouring bfloat16 numbers are 0.5
        apart.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.1, equation 1.

    >>> Q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    >>> K = torch.tensor([[3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]).log()
    >>> V = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    >>> output, weights = attention(Q, K, V)  # the scores are 2 log(3) / √4 = log(3) and 0
    >>> weights.round(decimals=4)
    tensor([[0.7500, 0.2500]])
    >>> output.round(decimals=4)
    tensor([[3., 2.]])
    >>> attention(Q, K, V, mask=torch.tensor([[False, False]]))
    (tensor([[0., 0.]]), tensor([[0., 0.]]))
    """
    dtype = torch.promote_types(Q.dtype, torch.float32)  # float64 stays float64
    d_k = Q.shape[-1]
    scores = Q.to(dtype) @ K.to(dtype).transpose(-2, -1) / d_k**0.5  # (..., n, m)
    if mask is None:
        weights = scores.softmax(dim=-1)  # (..., n, m)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)  # (..., n, 1): queries that may attend to nothing
        scores = scores.masked_fill(~mask & ~empty, float("-inf"))  # a row of only -inf would give 0 / 0
        weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)  # (..., n, m)
    weights = weights.to(V.dtype)
    return weights @ V, weights  # (..., n, d_v), (..., n, m)
