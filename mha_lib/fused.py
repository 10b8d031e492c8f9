"""Attention written to be fast: the readable layers' results through PyTorch's fused kernels.

One product makes all queries, keys and values. A kernel that works in tiles does the rest, so no matrix of n · m
scores is stored, and memory grows linearly with the number of tokens. Heads that share keys and values read them
where they are, without a copy.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.heads import head_dim
from mha_lib.torch_attention import CausalSelfAttention, MultiHeadAttention


class KVCache:
    """Keys and values of earlier tokens, in memory that is taken once.

    Args:
        batch: number of sequences.
        max_len: the largest number of tokens that fit.
        num_kv_heads: number of key heads and of value heads.
        d_k: width of a head.
        dtype: type of the numbers; torch's default if None.
        device: where they lie; torch's default if None.

    Source: Shazeer 2019, Fast Transformer Decoding, section 2.4.
    """

    def __init__(
        self,
        batch: int,
        max_len: int,
        num_kv_heads: int,
        d_k: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.K = torch.empty(batch, num_kv_heads, max_len, d_k, dtype=dtype, device=device)
        self.V = torch.empty_like(self.K)
        self.length = 0

    def append(self, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the next tokens, and show all that are stored, without a copy.

        Args:
            K: keys `(batch, num_kv_heads, t, d_k)`.
            V: values of the same shape.

        Returns:
            All keys and all values so far, each `(batch, num_kv_heads, m, d_k)`.

        Raises:
            ValueError: if the tokens do not fit any more.
        """
        start, end = self.length, self.length + K.shape[2]
        if end > self.K.shape[2]:
            room = self.K.shape[2]
            raise ValueError(f"the cache holds {room} tokens; {start} + {K.shape[2]} = {end} do not fit")
        self.K[:, :, start:end] = K
        self.V[:, :, start:end] = V
        self.length = end
        return self.K[:, :, :end], self.V[:, :, :end]

    def reset(self) -> None:
        """Forget all tokens; the memory is kept."""
        self.length = 0


class FusedAttention(nn.Module):
    """Multi-head or grouped-query self-attention through fused kernels, without dropout.

    `qkv_proj` maps `d_model` features to all queries, then all keys, then all values, with bias; `out_proj` maps
    `d_model` features to `d_model`, with bias.

    Args:
        d_model: number of features.
        num_heads: number of query heads; it divides `d_model`.
        num_kv_heads: number of key heads and of value heads, a divisor of `num_heads`; `num_heads` if None.
        causal: whether a token sees only itself and earlier ones.

    Raises:
        ValueError: if `d_model` is not a multiple of `num_heads`, or `num_heads` of `num_kv_heads`.

    Source: Dao et al. 2022, FlashAttention, section 3.1; Ainslie et al. 2023, GQA, section 2.2.

    >>> layer = FusedAttention(d_model=12, num_heads=6, num_kv_heads=2)
    >>> layer(torch.zeros(4, 5, 12)).shape
    torch.Size([4, 5, 12])
    """

    def __init__(
        self, d_model: int, num_heads: int, num_kv_heads: int | None = None, causal: bool = False
    ) -> None:
        super().__init__()
        self.d_k = head_dim(d_model, num_heads)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if self.num_kv_heads < 1 or num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads={num_heads} is not a multiple of num_kv_heads={num_kv_heads}")
        self.causal = causal
        self.qkv_proj = nn.Linear(d_model, (num_heads + 2 * self.num_kv_heads) * self.d_k)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None, cache: KVCache | None = None) -> Tensor:
        """Attend from every token of `x` to those that it may see, and to those in the cache.

        A causal layer needs no mask for sequences that are padded at their end: no real token sees the filling.
        With a mask it combines both, and that takes memory for n · m booleans.

        Args:
            x: tokens `(batch, n, d_model)`.
            mask: boolean, True = may attend, broadcastable to `(batch, heads, n, m)`; `(batch, 1, 1, m)` hides
                padding and stays small. A query that may attend to nothing gets the bias of `out_proj`.
            cache: what earlier tokens left; the tokens of `x` are added to it. m counts both.

        Returns:
            The output `(batch, n, d_model)`.
        """
        h, kv = self.num_heads, self.num_kv_heads
        qkv = self.qkv_proj(x).unflatten(-1, (h + 2 * kv, self.d_k))  # (batch, n, h + 2 kv, d_k)
        Q, K, V = qkv.transpose(1, 2).split(
            (h, kv, kv), dim=1
        )  # (batch, h, n, d_k), twice (batch, kv, n, d_k)
        if cache is not None:
            K, V = cache.append(K, V)  # (batch, kv, m, d_k)
        heads = self._attend(Q, K, V, mask)  # (batch, h, n, d_k)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)

    def _attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None) -> Tensor:
        n, m = Q.shape[2], K.shape[2]
        shared = self.num_kv_heads < self.num_heads
        is_causal = self.causal and mask is None and n == m  # the kernel's own mask starts at the top left
        if self.causal and n > 1 and not is_causal:
            causal = torch.ones(n, m, dtype=torch.bool, device=Q.device).tril(m - n)  # (n, m)
            mask = causal if mask is None else mask & causal
        if mask is None:
            return F.scaled_dot_product_attention(Q, K, V, is_causal=is_causal, enable_gqa=shared)
        empty = ~mask.any(dim=-1, keepdim=True)  # (..., n, 1): what a kernel makes of these differs
        heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | empty, enable_gqa=shared)
        return heads.masked_fill(empty, 0.0)  # (batch, h, n, d_k)


@torch.no_grad()
def fuse(layer: MultiHeadAttention | CausalSelfAttention) -> FusedAttention:
    """A `FusedAttention` with a copy of the weights of a readable layer, equal to it in eval mode.

    >>> readable = MultiHeadAttention(d_model=6, num_heads=2)
    >>> x = torch.randn(4, 5, 6)
    >>> torch.allclose(fuse(readable)(x), readable(x), atol=1e-6)
    True
    """
    if isinstance(layer, CausalSelfAttention):
        causal, inputs = True, [layer.qkv_proj]
    else:
        causal, inputs = False, [layer.q_proj, layer.k_proj, layer.v_proj]
    d_model = layer.out_proj.in_features
    fused = FusedAttention(d_model, layer.num_heads, causal=causal).to(layer.out_proj.weight)
    fused.qkv_proj.weight.copy_(torch.cat([linear.weight for linear in inputs]))
    fused.qkv_proj.bias.copy_(torch.cat([linear.bias for linear in inputs]))
    fused.out_proj.load_state_dict(layer.out_proj.state_dict())
    return fused.train(layer.training)
