"""Mistakes of other families as they look in the items of `efficient_heads`: by item and slug.

The functions and classes made here are right but for the piece that they are made of.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.kv_cache import CachedAttention
from mha_lib.masks import causal_mask
from mha_lib.pitfalls.attention import attention_keys_used_as_values
from mha_lib.pitfalls.heads import combine_heads_without_transpose, split_heads_without_transpose
from mha_lib.pitfalls.mask import (
    attention_always_causal,
    causal_mask_hides_self,
    causal_mask_inverted,
    causal_mask_sees_next,
)
from mha_lib.pitfalls.scale import attention_no_scale, attention_scale_by_dk
from mha_lib.pitfalls.softmax import attention_softmax_over_queries
from mha_lib.pruning import prune_heads

Array = np.ndarray
Function = Callable[..., Any]


def not_projected(heads: Array, W_O: Array) -> Array:
    """Wrong: the heads, side by side, are the output."""
    return heads


def projected(heads: Array, W_O: Array) -> Array:
    """The heads, side by side, through W_O."""
    return heads @ W_O


def grouped_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
) -> Function:
    """`grouped_query_attention` made of these pieces, of which one is wrong."""

    def grouped_query_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
    ) -> Any:
        Q = split(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
        K, V = (split(X @ W, num_kv_heads) for W in (W_K, W_V))  # (batch, num_kv_heads, n, d_k)
        K, V = (np.repeat(x, num_heads // num_kv_heads, axis=1) for x in (K, V))  # (batch, num_heads, n, d_k)
        return project(combine(attend(Q, K, V)[0]), W_O)  # (batch, n, d_model)

    grouped_query_attention.__doc__ = wrong.__doc__
    return grouped_query_attention


def pruned_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
) -> Function:
    """`pruned_attention` made of these pieces, of which one is wrong."""

    def pruned_attention(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Any:
        Q, K, V = (split(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
        return project(combine(attend(Q, K, V)[0]), W_O)  # (batch, n, d_model)

    pruned_attention.__doc__ = wrong.__doc__
    return pruned_attention


def cached_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
    mask: Function = causal_mask,
) -> type[CachedAttention]:
    """`CachedAttention` made of these pieces, of which one is wrong."""

    class Cached(CachedAttention):
        def forward(self, chunk: Array) -> Any:
            Q, K, V = (split(chunk @ W, self.num_heads) for W in (self.W_Q, self.W_K, self.W_V))
            if self.K is not None and self.V is not None:
                K = np.concatenate([self.K, K], axis=2)  # (batch, heads, m, d_k)
                V = np.concatenate([self.V, V], axis=2)  # (batch, heads, m, d_k)
            self.K, self.V = K, V
            heads = attend(Q, K, V, mask(Q.shape[2], K.shape[2]))[0]  # (batch, heads, t, d_k)
            return project(combine(heads), self.W_O)  # (batch, t, d_model)

    Cached.__doc__ = wrong.__doc__
    return Cached


def no_mask(n: int, m: int) -> None:
    """Wrong: the tokens of a chunk see those that come after them."""


def square_mask(n: int, m: int) -> Array:
    """Wrong: the mask knows the chunk only, not what came before."""
    return causal_mask(n)  # (n, n)


class CachedAttentionChangesItsInput(CachedAttention):
    """Wrong: the chunk is scaled in place, in the caller's array."""

    def forward(self, chunk: Array) -> Array:
        """The outputs."""
        output = super().forward(chunk)
        chunk /= np.sqrt(chunk.shape[-1])
        return output


def grouped_changes_its_input(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: W_Q is scaled in place, in the caller's array."""
    W_Q /= np.sqrt(W_Q.shape[1] // num_heads)
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K, V = (split_heads(X @ W, num_kv_heads) for W in (W_K, W_V))  # (batch, num_kv_heads, n, d_k)
    K, V = (np.repeat(x, num_heads // num_kv_heads, axis=1) for x in (K, V))  # (batch, num_heads, n, d_k)
    Q = Q * np.sqrt(Q.shape[-1])  # `attention` divides once more
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def pruned_changes_its_input(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_Q is scaled in place, in the caller's array."""
    d_k = W_Q.shape[1] // num_heads
    W_Q /= np.sqrt(d_k)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    return combine_heads(attention(Q * np.sqrt(d_k), K, V)[0]) @ W_O  # (batch, n, d_model)


def prune_changes_its_input(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> tuple[Array, Array, Array, Array, int]:
    """Wrong: the rows of the removed heads become 0 in the caller's W_O too."""
    result = prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    W_O[np.repeat(np.isin(np.arange(num_heads), heads), len(W_O) // num_heads)] = 0.0
    return result


def cache_bytes_not_whole(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> float:
    """Wrong: the right number as a float, which is exact up to 2⁵³ only."""
    return 2.0 * batch * n * num_layers * num_kv_heads * d_k * bytes_per_value


# Pieces that are wrong, by the slug of their mistake: which piece it is, and what stands in its place.
PIECES: Mapping[str, tuple[str, Function]] = {
    "softmax-over-queries": ("attend", attention_softmax_over_queries),
    "keys-used-as-values": ("attend", attention_keys_used_as_values),
    "no-scale": ("attend", attention_no_scale),
    "scale-by-dk": ("attend", attention_scale_by_dk),
    "no-output-projection": ("project", not_projected),
    "split-without-transpose": ("split", split_heads_without_transpose),
    "merge-without-transpose": ("combine", combine_heads_without_transpose),
}
MASKS: Mapping[str, Function] = {
    "mask-inverted": causal_mask_inverted,
    "causal-missing": no_mask,
    "causal-hides-self": causal_mask_hides_self,
    "causal-sees-next": causal_mask_sees_next,
    "square-mask-assumed": square_mask,
}

VARIANTS: Mapping[str, Mapping[str, Function]] = {
    "grouped_query_attention": {
        "input-changed-in-place": grouped_changes_its_input,
        "always-causal": grouped_from(attention_always_causal, attend=attention_always_causal),
        **{slug: grouped_from(wrong, **{piece: wrong}) for slug, (piece, wrong) in PIECES.items()},
    },
    "CachedAttention": {
        "input-changed-in-place": CachedAttentionChangesItsInput,
        **{slug: cached_from(wrong, **{piece: wrong}) for slug, (piece, wrong) in PIECES.items()},
        **{slug: cached_from(wrong, mask=wrong) for slug, wrong in MASKS.items()},
    },
    "kv_cache_bytes": {"count-not-whole": cache_bytes_not_whole},
    "pruned_attention": {
        "input-changed-in-place": pruned_changes_its_input,
        "always-causal": pruned_from(attention_always_causal, attend=attention_always_causal),
        **{slug: pruned_from(wrong, **{piece: wrong}) for slug, (piece, wrong) in PIECES.items()},
    },
    "prune_heads": {"input-changed-in-place": prune_changes_its_input},
}
