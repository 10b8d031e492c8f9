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


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention with dropout on the weights.

    The submodules `q_proj`, `k_proj`, `v_proj` and `out_proj` are linear layers with bias, each from `d_model`
    to `d_model` features. Head i owns the features `i*d_k … (i+1)*d_k - 1` of the first three. Extra buffers
    are allowed, but nothing else is trained.

    Args:
        d_model: number of features.
        num_heads: number of heads; it divides `d_model`.
        dropout: probability that a *weight* is set to zero, after the softmax and in training only; the others are
            multiplied by 1 / (1 - dropout), as with `nn.Dropout`. Each weight of every head, query, key and
            sequence is drawn independently, at every call. With 1.0, the output in training is `out_proj.bias`.

    Raises:
        ValueError: if `num_heads` does not divide `d_model` (not graded).

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
            x: tokens `(batch, n, d_model)`, n from 1; they need not be contiguous. Half precision is not
                tested.
            mask: None or boolean, True = may attend: `(n, n)` or `(batch, 1, n, n)`, no other shape (not even that
                of padding); each call may have a different one.

        Returns:
            The output `(batch, n, d_model)` alone. A query that may attend to nothing gets `out_proj.bias`, and
            all gradients arrive and stay finite, in training with dropout as well.
        """
        Q = self.split_heads(self.q_proj(x))  # (batch, heads, n, d_k)
        K = self.split_heads(self.k_proj(x))  # (batch, heads, n, d_k)
        V = self.split_heads(self.v_proj(x))  # (batch, heads, n, d_k)
        heads, weights = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
        if self.training and self.dropout.p > 0:  # else the output stays as it is
            heads = self.dropout(weights) @ V  # (batch, heads, n, d_k)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)

    def split_heads(self, x: torch.Tensor) -> torch.Tensor:
        """Give each head its block, `(batch, n, d_model)` to `(batch, heads, n, d_k)`; a helper, not graded."""
        x = x.unflatten(-1, (self.num_heads, self.d_k))  # (batch, n, heads, d_k)
        return x.transpose(1, 2)  # (batch, heads, n, d_k)


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
