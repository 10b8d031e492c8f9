"""Pieces of earlier assignments, for this one to use: the notebook imports them from here.

Leave the file as it is. Your notebook is graded with the file as it was handed out.

From batched_torch: `MultiHeadAttention`, `attention`.
From multi_head: `head_dim`.
"""

import torch
from torch import nn


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


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention with dropout on the weights.

    The linear layers `q_proj`, `k_proj`, `v_proj` and `out_proj` map `d_model` features to as many, with a
    bias. Head i owns the features `i*d_k … (i+1)*d_k - 1` of the first three.

    Args:
        d_model: number of features.
        num_heads: number of heads; it divides `d_model`.
        dropout: probability that a weight is set to zero, in training only; the others grow by
            1 / (1 - dropout).

    Raises:
        ValueError: if `d_model` is not a multiple of `num_heads`.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.

    >>> layer = MultiHeadAttention(d_model=6, num_heads=2)
    >>> layer(torch.zeros(4, 5, 6)).shape
    torch.Size([4, 5, 6])
    >>> sum(p.numel() for p in layer.parameters())  # 4 · (6 · 6 + 6)
    168
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.d_k = head_dim(d_model, num_heads)
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Attend from every token of `x` to every token that the mask lets through.

        Args:
            x: tokens `(batch, n, d_model)`.
            mask: boolean, True = may attend, `(n, n)` or `(batch, 1, n, n)`.

        Returns:
            The output `(batch, n, d_model)`.
        """
        Q = self.split_heads(self.q_proj(x))  # (batch, heads, n, d_k)
        K = self.split_heads(self.k_proj(x))  # (batch, heads, n, d_k)
        V = self.split_heads(self.v_proj(x))  # (batch, heads, n, d_k)
        heads, weights = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
        if self.training and self.dropout.p > 0:  # else the output stays as it is
            heads = self.dropout(weights) @ V  # (batch, heads, n, d_k)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)

    def split_heads(self, x: torch.Tensor) -> torch.Tensor:
        """Give each head its own block of features, `(batch, n, d_model)` to `(batch, heads, n, d_k)`."""
        x = x.unflatten(-1, (self.num_heads, self.d_k))  # (batch, n, heads, d_k)
        return x.transpose(1, 2)  # (batch, heads, n, d_k)


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
