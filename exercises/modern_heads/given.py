"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From batched_torch: `attention`.
"""

import torch


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V, even for queries that may attend to nothing.

    Args:
        Q: queries `(..., n, d_k)`.
        K: keys `(..., m, d_k)`.
        V: values `(..., m, d_v)`. The dots are the same leading axes in all three: none, `(batch,)`,
            `(batch, heads)` or more. n and m may differ, and each may be 1; d_k and d_v may differ. All
            have the same dtype: float32, float64, float16 or bfloat16. They need not be contiguous.
        mask: None or boolean, True = may attend: `(n, m)` or `(batch, 1, n, m)` (padding: `(batch, 1, 1, m)`),
            not `(batch, n, m)`. If `Q` has two or three axes, it is `(n, m)`; with five or more, there is none.

    Scores are finite. Those of keys that a query may attend to can be as low as -20,000. A masked score is
    never more than 30 above the largest score that its query may attend to. In half precision no |q·k| is above
    100.

    Returns:
        `(output, weights)` of shapes `(..., n, d_v)` and `(..., n, m)`, in the dtype of the arguments; in
        float16 they may be off by 0.005, and in bfloat16 by 0.03. A weight is 0 where the mask is False, and the
        weights of a query sum to 1. If the mask is False for all its keys, its weights and its output are 0.
        Gradients of the output reach Q, K and V, and none is infinite or NaN, even for queries without keys.

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
    # Near 100, neighbouring bfloat16 numbers are 0.5 apart, so scores in half precision are made in float32.
    dtype = torch.promote_types(Q.dtype, torch.float32)  # float64 stays float64
    d_k = Q.shape[-1]
    scores = Q.to(dtype) @ K.to(dtype).transpose(-2, -1) / d_k**0.5  # (..., n, m)
    if mask is None:
        weights = scores.softmax(dim=-1)  # (..., n, m)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)  # (..., n, 1): queries that may attend to nothing
        hidden = ~mask & ~empty  # (..., n, m): a row of only -inf would give 0 / 0
        bias = torch.zeros_like(mask, dtype=dtype).masked_fill(hidden, float("-inf"))  # (..., n, m)
        weights = (scores + bias).softmax(dim=-1) * ~empty  # (..., n, m)
    weights = weights.to(V.dtype)
    return weights @ V, weights  # (..., n, d_v), (..., n, m)
