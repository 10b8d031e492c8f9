"""Heads as models since 2023 have them: keys and values from a latent vector, queries and keys of length 1."""

import torch

from mha_lib.torch_attention import attention


def latent_attention(
    x: torch.Tensor,
    W_Q: torch.Tensor,
    W_DKV: torch.Tensor,
    W_UK: torch.Tensor,
    W_UV: torch.Tensor,
    W_O: torch.Tensor,
    num_heads: int,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Multi-head attention whose keys and values are all made from one narrow vector for each token.

    That vector, the *latent* c = x W_DKV, is all that a cache must keep. It contains no positions. The
    weights are used as `x @ W`. The widths d_k and d_v of a head come from the weights: heads * d_k need not be
    d_model, and d_v need not be d_k. Head i owns the columns `i*d_k … (i+1)*d_k - 1` of queries and keys, and
    likewise of the values. Scores are divided by √d_k.

    Args:
        x: tokens `(batch, n, d_model)`.
        W_Q: makes the queries, `(d_model, heads * d_k)`.
        W_DKV: makes the latents, `(d_model, d_c)`.
        W_UK: makes the keys from the latents, `(d_c, heads * d_k)`.
        W_UV: makes the values from the latents, `(d_c, heads * d_v)`.
        W_O: projects the concatenated heads, `(heads * d_v, d_model)`.
        num_heads: number of heads.
        mask: None or boolean, True = may attend: `(n, n)` or `(batch, 1, n, n)`. Every query has at least one
            key.

    Returns:
        The output `(batch, n, d_model)` alone. Gradients reach `x` and all weights.

    Source: DeepSeek-AI 2024, DeepSeek-V2, section 2.1.2, without the rotary part.

    >>> x = torch.tensor([[[2.0, 0.0], [4.0, 0.0]]])  # (batch, n, d_model) = (1, 2, 2)
    >>> zero, eye = torch.zeros(2, 2), torch.eye(2)
    >>> W_DKV, W_UV = torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0, 10.0]])  # d_c = 1
    >>> latent_attention(x, zero, W_DKV, torch.ones(1, 2), W_UV, eye, num_heads=2)  # means of 2, 4 and 20, 40
    tensor([[[ 3., 30.],
             [ 3., 30.]]])
    """
    c = x @ W_DKV  # (batch, n, d_c)
    Q, K, V = (
        features.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (batch, heads, n, d_k or d_v)
        for features in (x @ W_Q, c @ W_UK, c @ W_UV)
    )
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_v)
    return heads.transpose(1, 2).flatten(2) @ W_O  # (batch, n, d_model)


def latent_attention_absorbed(
    x: torch.Tensor,
    W_Q: torch.Tensor,
    W_DKV: torch.Tensor,
    W_UK: torch.Tensor,
    W_UV: torch.Tensor,
    W_O: torch.Tensor,
    num_heads: int,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """What `latent_attention` computes, without ever forming a key or a value.

    No key c W_UK and no value c W_UV of a token is formed, not even as one step of a longer product. The tests
    use numbers so large that keys or values would overflow float32 while the right order of products stays
    finite; all other points rest on that. W_UK may be combined with W_Q or applied to queries, and W_UV may be
    combined with W_O or applied to averages of c: the tested numbers stay finite there.

    Args:
        x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask: as for `latent_attention`.

    Returns:
        The output `(batch, n, d_model)` alone.

    Source: DeepSeek-AI 2024, DeepSeek-V2, section 2.1.2.

    >>> x, latents = torch.randn(2, 5, 8), torch.randn(8, 3)  # d_model = 8, d_c = 3
    >>> weights = torch.randn(8, 8), latents, torch.randn(3, 8), torch.randn(3, 6), torch.randn(6, 8)
    >>> plain, absorbed = (f(x, *weights, num_heads=2) for f in (latent_attention, latent_attention_absorbed))
    >>> torch.allclose(plain, absorbed, atol=1e-3)
    True
    """
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c), the same for all heads
    Q = (x @ W_Q).unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (batch, heads, n, d_k)
    W_UK = W_UK.unflatten(-1, (num_heads, -1)).permute(1, 2, 0)  # (heads, d_k, d_c)
    W_UV = W_UV.unflatten(-1, (num_heads, -1)).transpose(0, 1)  # (heads, d_c, d_v)
    Q = (
        Q / Q.shape[-1] ** 0.5 @ W_UK * c.shape[-1] ** 0.5
    )  # (batch, heads, n, d_c): attention divides by √d_c
    latents = c.expand(*Q.shape[:2], -1, -1)  # (batch, heads, n, d_c), without a copy
    mixed, _ = attention(Q, latents, latents, mask)  # (batch, heads, n, d_c)
    heads = mixed @ W_UV  # (batch, heads, n, d_v)
    return heads.transpose(1, 2).flatten(2) @ W_O  # (batch, n, d_model)


def qk_norm_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Attention by the angle between query and key: both are divided by their lengths, in each head.

    Each query and key is divided by (its Euclidean length + 1e-6), or by the length where it is at least 1e-6; a
    vector of zeros stays zero, and no other tested vector is shorter than 0.0001. The scores are the dot products
    times g; nothing is divided by √d_k.

    Args:
        q: queries `(batch, heads, n, d_k)`.
        k: keys `(batch, heads, m, d_k)`.
        v: values `(batch, heads, m, d_v)`. n and m may differ, and so may d_k and d_v.
        g: a learned factor for each head, `(heads, 1, 1)`; any number between −200 and 200.
        mask: None or boolean, True = may attend: `(n, m)` or `(batch, 1, n, m)`. Every query has at least one
            key.

    Returns:
        The output `(batch, heads, n, d_v)` alone. Gradients reach q, k, v and g; those of q and k pass through the
        lengths as well. No gradient is tested where a vector is zero.

    Source: Henry et al. 2020, Query-Key Normalization for Transformers, section 3; 1e-6 is added to the
    lengths here.

    >>> q, k = torch.tensor([[[[5.0, 0.0]]]]), torch.tensor([[[[7.0, 0.0], [0.0, 9.0]]]])  # cosines 1 and 0
    >>> v, g = torch.tensor([[[[4.0], [0.0]]]]), torch.tensor([[[3.0]]]).log()
    >>> qk_norm_attention(q, k, v, g).round(decimals=3)  # weights 3/4 and 1/4
    tensor([[[[3.]]]])
    """
    q = q / (q.norm(dim=-1, keepdim=True) + 1e-6)  # (batch, heads, n, d_k)
    k = k / (k.norm(dim=-1, keepdim=True) + 1e-6)  # (batch, heads, m, d_k)
    output, _ = attention(g * q * q.shape[-1] ** 0.5, k, v, mask)  # attention divides by √d_k
    return output  # (batch, heads, n, d_v)
