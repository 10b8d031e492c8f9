"""Multi-head attention in PyTorch: all heads in one projection, one transpose and one batched product.

Masks are boolean, True = may attend. `nn.MultiheadAttention` means the opposite: its True is "ignore".
"""

import torch
from torch import nn

from mha_lib.heads import head_dim


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


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no token sees a later one; queries, keys and values in one product.

    The submodules are linear layers with bias: `qkv_proj` maps `d_model` features to 3·d_model, first all
    queries, then all keys, then all values; `out_proj` maps `d_model` features to `d_model`. Nothing else is
    trained: the mask is not a parameter that requires a gradient; as a buffer it may be persistent or not. `.to()`
    moves everything that the layer needs to another dtype and *device*, even after a call. There is no dropout.

    Args:
        d_model: number of features.
        num_heads: number of heads; it divides `d_model`.
        max_len: the largest number of tokens that `forward` is given.

    Raises:
        ValueError: if `num_heads` does not divide `d_model` (not graded).

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.

    >>> layer = CausalSelfAttention(d_model=6, num_heads=2, max_len=8)
    >>> x = torch.randn(4, 5, 6)
    >>> torch.allclose(layer(x)[:, :3], layer(x[:, :3]), atol=1e-6)  # what comes later changes nothing
    True
    """

    causal: torch.Tensor

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.d_k = head_dim(d_model, num_heads)
        self.qkv_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        causal = torch.ones(max_len, max_len, dtype=torch.bool).tril()  # (max_len, max_len)
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend from every token of `x` to itself and to the earlier ones.

        Args:
            x: tokens `(batch, n, d_model)`, n from 1 to `max_len`, another n at each call if need be.

        Returns:
            The output `(batch, n, d_model)`; in bfloat16 it may be off by 0.1.
        """
        n = x.shape[1]
        qkv = self.qkv_proj(x)  # (batch, n, 3 * d_model)
        qkv = qkv.unflatten(-1, (3, self.num_heads, self.d_k))  # (batch, n, 3, heads, d_k)
        Q, K, V = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, n, d_k)
        heads, _ = attention(Q, K, V, self.causal[:n, :n])  # (batch, heads, n, d_k)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)


def from_builtin(builtin: nn.MultiheadAttention) -> MultiHeadAttention:
    """A `MultiHeadAttention` that computes what PyTorch's own layer computes.

    The two layers read masks in opposite ways: True means "ignore" to the built-in one and "may attend" here.

    Args:
        builtin: an `nn.MultiheadAttention` with any `batch_first`, with or without `bias`, with any
            `dropout`, in float32 or float64, with parameters that can be trained, but without `kdim`, `vdim`,
            `add_bias_kv` and `add_zero_attn`. It is not changed.

    Returns:
        A layer that takes `(batch, n, d_model)`, whatever the `batch_first` of `builtin`. Its weights are copies,
        which later changes of `builtin` do not affect. They can be trained: they require gradients, and an
        optimiser takes them (it takes leaves only). Its biases are 0 where `builtin` has none. Its dtype, device,
        dropout and mode (training or eval) are those of `builtin`. The tests read the mode from `training`, and
        dropout from outputs: store the probability under any name.

    Source: the documentation of torch.nn.MultiheadAttention.

    >>> builtin = nn.MultiheadAttention(embed_dim=6, num_heads=2, batch_first=True)
    >>> x, layer = torch.randn(4, 5, 6), from_builtin(builtin)
    >>> torch.allclose(layer(x), builtin(x, x, x)[0], atol=1e-6)
    True
    >>> torch.equal(layer.k_proj.weight, builtin.in_proj_weight[6:12])
    True
    """
    layer = MultiHeadAttention(builtin.embed_dim, builtin.num_heads, builtin.dropout)
    layer.to(builtin.out_proj.weight)  # its dtype and its device
    with torch.no_grad():
        inputs = (layer.q_proj, layer.k_proj, layer.v_proj)
        for linear, weight in zip(inputs, builtin.in_proj_weight.chunk(3), strict=True):
            linear.weight.copy_(weight)  # (d_model, d_model)
        layer.out_proj.weight.copy_(builtin.out_proj.weight)
        if builtin.in_proj_bias is None:
            for linear in (*inputs, layer.out_proj):
                linear.bias.zero_()
        else:
            for linear, bias in zip(inputs, builtin.in_proj_bias.chunk(3), strict=True):
                linear.bias.copy_(bias)  # (d_model,)
            layer.out_proj.bias.copy_(builtin.out_proj.bias)
    return layer.train(builtin.training)


def sdpa_attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """The output of `attention`, through PyTorch's fused kernels.

    What PyTorch's function gives for a query that may attend to nothing depends on the kernel.

    Args:
        Q, K, V, mask: as for `attention`, in every dtype and with any number of leading axes.

    Returns:
        The output `(..., n, d_v)` alone, equal to that of `attention`; 0 for a query that may attend to
        nothing. Its gradients, too, are those of `attention`: finite, even with such queries. The points depend
        on these numbers; the instructor sees whether your code calls `scaled_dot_product_attention`.

    Source: Dao et al. 2022, FlashAttention, section 3.1; the documentation of
    torch.nn.functional.scaled_dot_product_attention.

    >>> Q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    >>> K = torch.tensor([[3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]).log()
    >>> V = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    >>> sdpa_attention(Q, K, V).round(decimals=4)
    tensor([[3., 2.]])
    """
    if mask is None:
        return nn.functional.scaled_dot_product_attention(Q, K, V)  # (..., n, d_v)
    mask = torch.atleast_2d(mask)
    empty = ~mask.any(dim=-1, keepdim=True)  # (..., n, 1)
    output = nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask | empty)  # (..., n, d_v)
    return output.masked_fill(empty, 0.0)
