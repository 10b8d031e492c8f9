"""Right ways of writing the items of `efficient_heads`; some of them look wrong at first."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from einops import rearrange, repeat
from scipy.special import logsumexp

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.masks import causal_mask
from mha_lib.multi_head import causal_multi_head_attention, multi_head_attention
from mha_lib.styles import style

Array = np.ndarray
Pruned = tuple[Array, Array, Array, Array, int]

# --- grouped-query attention -------------------------------------------------------------------------------


@style("by loop", "efficient_heads.grouped_query_attention")
def grouped_by_loop(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """One query head after the other, each with the columns of its group."""
    d_k = W_Q.shape[1] // num_heads
    heads = []
    for i in range(num_heads):
        g = i // (num_heads // num_kv_heads)
        Q = X @ W_Q[:, i * d_k : (i + 1) * d_k]  # (batch, n, d_k)
        K, V = (X @ W[:, g * d_k : (g + 1) * d_k] for W in (W_K, W_V))  # (batch, n, d_k)
        heads.append(attention(Q, K, V)[0])
    return np.concatenate(heads, axis=-1) @ W_O


@style("groups on an axis of their own", "efficient_heads.grouped_query_attention")
def grouped_on_an_axis_of_its_own(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """The group has an axis, and nothing is repeated."""
    batch, n, d_model = X.shape
    d_k = d_model // num_heads
    Q = (X @ W_Q).reshape(
        batch, n, num_kv_heads, num_heads // num_kv_heads, d_k
    )  # (batch, n, kv, group, d_k)
    K, V = ((X @ W).reshape(batch, n, num_kv_heads, d_k) for W in (W_K, W_V))  # (batch, n, kv, d_k)
    scores = np.einsum("bikgd,bjkd->bkgij", Q, K) / d_k**0.5  # (batch, kv, group, n, n)
    heads = np.einsum("bkgij,bjkd->bikgd", softmax(scores), V)  # (batch, n, kv, group, d_k)
    return heads.reshape(batch, n, d_model) @ W_O


@style("by indexing", "efficient_heads.grouped_query_attention")
def grouped_by_indexing(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """A list says which key head each query head uses."""
    of_head = [i // (num_heads // num_kv_heads) for i in range(num_heads)]
    Q = split_heads(X @ W_Q, num_heads)
    K, V = (split_heads(X @ W, num_kv_heads)[:, of_head] for W in (W_K, W_V))  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@style("by wider weights", "efficient_heads.grouped_query_attention")
def grouped_by_wider_weights(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """The columns of W_K and W_V are repeated, and then it is multi-head attention."""
    W_K, W_V = (
        np.repeat(W.reshape(len(W), num_kv_heads, -1), num_heads // num_kv_heads, axis=1).reshape(len(W), -1)
        for W in (W_K, W_V)
    )  # (d_model, d_model)
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads)


@style("with einops", "efficient_heads.grouped_query_attention")
def grouped_with_einops(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Axes by name."""
    Q = rearrange(X @ W_Q, "b n (h d) -> b h n d", h=num_heads)
    K, V = (
        repeat(X @ W, "b n (kv d) -> b (kv g) n d", kv=num_kv_heads, g=num_heads // num_kv_heads)
        for W in (W_K, W_V)
    )
    return rearrange(attention(Q, K, V)[0], "b h n d -> b n (h d)") @ W_O


@style("stretched by broadcasting", "efficient_heads.grouped_query_attention")
def grouped_stretched(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Key heads are stretched over their groups by broadcasting, and the scale is on both sides."""
    batch, n, _ = X.shape
    d_k = W_Q.shape[1] // num_heads
    Q = split_heads(X @ W_Q, num_heads).reshape(batch, num_kv_heads, -1, n, d_k)  # (batch, kv, group, n, d_k)
    K, V = (split_heads(X @ W, num_kv_heads)[:, :, None] for W in (W_K, W_V))  # (batch, kv, 1, n, d_k)
    scores = (Q * d_k**-0.25) @ np.swapaxes(K * d_k**-0.25, -2, -1)  # (batch, kv, group, n, n)
    heads = np.exp(scores - logsumexp(scores, axis=-1, keepdims=True)) @ V  # (batch, kv, group, n, d_k)
    return combine_heads(heads.reshape(batch, num_heads, n, d_k)) @ W_O


@style("groups as more rows", "efficient_heads.grouped_query_attention")
def grouped_groups_of_rows(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """The queries of a group stand below each other, as if there were more tokens that ask."""
    batch, n, _ = X.shape
    group, d_k = num_heads // num_kv_heads, W_Q.shape[1] // num_heads
    Q = split_heads(X @ W_Q, num_heads).reshape(batch, num_kv_heads, group * n, d_k)
    K, V = (split_heads(X @ W, num_kv_heads) for W in (W_K, W_V))  # (batch, kv, n, d_k)
    heads = attention(Q, K, V)[0].reshape(batch, num_heads, n, d_k)
    return combine_heads(heads) @ W_O


@style("heads summed after their block of W_O", "efficient_heads.grouped_query_attention")
def grouped_heads_summed_after_their_block(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Each head goes through its own rows of W_O, and the results are summed."""
    d_k = W_O.shape[0] // num_heads
    output = np.zeros_like(X, dtype=float)
    for i in range(num_heads):
        rows, g = slice(i * d_k, (i + 1) * d_k), i * num_kv_heads // num_heads
        shared = slice(g * d_k, (g + 1) * d_k)
        output += attention(X @ W_Q[:, rows], X @ W_K[:, shared], X @ W_V[:, shared])[0] @ W_O[rows]
    return output


@style("in float32", "efficient_heads.grouped_query_attention")
def grouped_in_float32(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """In single precision, which the tolerance allows."""
    X, W_Q, W_K, W_V, W_O = (array.astype(np.float32) for array in (X, W_Q, W_K, W_V, W_O))
    return grouped_by_indexing(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads)


@style("by merged weights", "efficient_heads.grouped_query_attention")
def grouped_by_merged_weights(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """W_Q·W_Kᵀ of each query head and its key head, and W_V·W_O, are multiplied first."""
    d_k = W_Q.shape[1] // num_heads
    output = np.zeros(X.shape)
    for i in range(num_heads):
        own, g = slice(i * d_k, (i + 1) * d_k), i // (num_heads // num_kv_heads)
        shared = slice(g * d_k, (g + 1) * d_k)
        scores = X @ (W_Q[:, own] @ W_K[:, shared].T) @ X.swapaxes(1, 2) / d_k**0.5
        output = output + softmax(scores) @ X @ (W_V[:, shared] @ W_O[own])
    return output


# --- attention with a cache --------------------------------------------------------------------------------


@style("recomputed from the chunks", "efficient_heads.CachedAttention")
class CachedByRecomputing:
    """All chunks are stored, and everything is computed again."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Keep everything."""
        self.arguments: Any = (W_Q, W_K, W_V, W_O, num_heads)
        self.chunks: list[Array] = []

    def forward(self, chunk: Array) -> Array:
        """The last rows of the whole."""
        self.chunks.append(chunk)
        whole = np.concatenate(self.chunks, axis=1)
        return causal_multi_head_attention(whole, *self.arguments)[:, -chunk.shape[1] :]

    def reset(self) -> None:
        """Forget the chunks."""
        self.chunks = []


@style("token by token", "efficient_heads.CachedAttention")
class CachedTokenByToken(CachedByRecomputing):
    """One token after the other, so that no mask is needed."""

    def forward(self, chunk: Array) -> Array:
        """Each token attends to all that have come."""
        W_Q, W_K, W_V, W_O, num_heads = self.arguments
        outputs = []
        for t in range(chunk.shape[1]):
            token = chunk[:, t : t + 1]  # (batch, 1, d_model)
            self.chunks.append(token)
            so_far = np.concatenate(self.chunks, axis=1)  # (batch, m, d_model)
            Q = split_heads(token @ W_Q, num_heads)
            K, V = (split_heads(so_far @ W, num_heads) for W in (W_K, W_V))
            outputs.append(combine_heads(attention(Q, K, V)[0]) @ W_O)
        return np.concatenate(outputs, axis=1)


@style("with room to spare", "efficient_heads.CachedAttention")
class CachedWithRoomToSpare:
    """Keys and values are written into arrays that are longer than needed and grow by doubling."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Nothing is written yet."""
        self.W_QKV, self.W_O, self.num_heads = np.concatenate([W_Q, W_K, W_V], axis=1), W_O, num_heads
        self.reset()

    def reset(self) -> None:
        """Start at the front; what lies in the arrays is overwritten."""
        self.filled = 0
        self.store: Array | None = None  # (2, batch, heads, room, d_k)

    def forward(self, chunk: Array) -> Array:
        """Write, then read what is filled."""
        batch, t, _ = chunk.shape
        packed = (chunk @ self.W_QKV).reshape(batch, t, 3, self.num_heads, -1).transpose(2, 0, 3, 1, 4)
        Q, new = packed[0], packed[1:]  # (batch, heads, t, d_k), (2, batch, heads, t, d_k)
        end = self.filled + t
        if self.store is None:
            self.store = np.full((*new.shape[:3], t, new.shape[-1]), np.nan)
        while self.store.shape[3] < end:
            self.store = np.concatenate([self.store, np.full_like(self.store, np.nan)], axis=3)
        self.store[:, :, :, self.filled : end] = new
        self.filled = end
        K, V = self.store[:, :, :, :end]
        heads, _ = attention(Q, K, V, causal_mask(t, end))
        return combine_heads(heads) @ self.W_O


@style("split when used", "efficient_heads.CachedAttention")
class CachedBeforeTheHeadsAreSplit:
    """Keys and values are stored as they come from the projection, and split when they are used."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """An empty cache is an array without tokens, but how many sequences there are is not known yet."""
        self.W_Q, self.W_K, self.W_V, self.W_O, self.h = W_Q, W_K, W_V, W_O, num_heads
        self.cache: tuple[Array, Array] | None = None

    def forward(self, chunk: Array) -> Array:
        """Stack below, split, mask with −1e9."""
        new = chunk @ self.W_K, chunk @ self.W_V  # (batch, t, d_model) each
        old = self.cache or (new[0][:, :0], new[1][:, :0])
        self.cache = np.hstack([old[0], new[0]]), np.hstack([old[1], new[1]])  # (batch, m, d_model) each
        Q, K, V = (split_heads(x, self.h) for x in (chunk @ self.W_Q, *self.cache))
        scores = np.einsum("bhid,bhjd->bhij", Q, K) / math.sqrt(Q.shape[-1])
        t, m = scores.shape[-2:]
        scores = scores + np.triu(np.full((t, m), -1e9), k=m - t + 1)
        return combine_heads(softmax(scores) @ V) @ self.W_O

    def reset(self) -> None:
        """No cache."""
        self.cache = None


@style("in lists of heads", "efficient_heads.CachedAttention")
class CachedInListsOfHeads:
    """One pair of lists for each head."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """The columns of each head."""
        self.weights = [np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V)]
        self.W_O = W_O
        self.reset()

    def reset(self) -> None:
        """Empty lists."""
        self.past: list[tuple[list[Array], list[Array]]] = [([], []) for _ in self.weights[0]]

    def forward(self, chunk: Array) -> Array:
        """Head by head."""
        heads = []
        for W_Q, W_K, W_V, (keys, values) in zip(*self.weights, self.past, strict=True):
            keys.append(chunk @ W_K)
            values.append(chunk @ W_V)
            K, V = np.concatenate(keys, axis=1), np.concatenate(values, axis=1)  # (batch, m, d_k)
            heads.append(attention(chunk @ W_Q, K, V, causal_mask(chunk.shape[1], K.shape[1]))[0])
        return np.concatenate(heads, axis=-1) @ self.W_O


@style("keys transposed", "efficient_heads.CachedAttention")
class CachedKeysTransposed:
    """Keys are stored as columns, ready for the product; old and new scores are computed apart."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Keep the weights."""
        self.W_Q, self.W_K, self.W_V, self.W_O, self.num_heads = W_Q, W_K, W_V, W_O, num_heads
        self.reset()

    def reset(self) -> None:
        """Forget."""
        self.length = 0
        self.columns: Any = None  # (batch, heads, d_k, m)
        self.values: Any = None  # (batch, heads, m, d_k)

    def forward(self, chunk: Array) -> Array:
        """Past keys are never masked; those of the chunk by a triangle."""
        Q, K, V = (split_heads(chunk @ W, self.num_heads) for W in (self.W_Q, self.W_K, self.W_V))
        triangle = np.where(np.tri(chunk.shape[1]) > 0, Q @ K.swapaxes(2, 3), -np.inf)  # (batch, heads, t, t)
        columns, values = K.swapaxes(2, 3), V
        scores = triangle
        if self.length:
            scores = np.concatenate([Q @ self.columns, triangle], axis=-1)  # (batch, heads, t, m)
            columns = np.concatenate([self.columns, columns], axis=-1)
            values = np.concatenate([self.values, values], axis=-2)
        self.columns, self.values = columns, values
        self.length += chunk.shape[1]
        return combine_heads(softmax(scores / np.sqrt(Q.shape[-1])) @ values) @ self.W_O


@style("newest first, and masked so", "efficient_heads.CachedAttention")
class CachedNewestFirstAndMaskedSo:
    """The newest key stands first in the cache, and the mask knows it."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Keep the weights."""
        self.W_Q, self.W_K, self.W_V, self.W_O, self.num_heads = W_Q, W_K, W_V, W_O, num_heads
        self.past: tuple[Array, Array] | None = None

    def reset(self) -> None:
        """Forget."""
        self.past = None

    def forward(self, chunk: Array) -> Array:
        """Attention does not mind the order of the keys."""
        Q, K, V = (split_heads(chunk @ W, self.num_heads) for W in (self.W_Q, self.W_K, self.W_V))
        K, V = K[:, :, ::-1], V[:, :, ::-1]
        if self.past is not None:
            K, V = (np.concatenate(pair, axis=2) for pair in zip((K, V), self.past, strict=True))
        self.past = K, V
        mask = causal_mask(Q.shape[2], K.shape[2])[:, ::-1]
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O


@style("by merged weights", "efficient_heads.CachedAttention")
class CachedByMergedWeights(CachedByRecomputing):
    """Tokens are stored as they are, and W_Q·W_Kᵀ and W_V·W_O of each head are multiplied once."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """One matrix for the scores and one for the output of each head."""
        super().__init__(W_Q, W_K, W_V, W_O, num_heads)
        parts = [np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V, W_O.T)]
        self.pairs = [(q @ k.T / np.sqrt(q.shape[1]), v @ o.T) for q, k, v, o in zip(*parts, strict=True)]

    def forward(self, chunk: Array) -> Array:
        """Sum of what the heads add."""
        self.chunks.append(chunk)
        so_far = np.concatenate(self.chunks, axis=1)  # (batch, m, d_model)
        mask = causal_mask(chunk.shape[1], so_far.shape[1])
        output = np.zeros(chunk.shape)
        for scores, read in self.pairs:
            weights = softmax(np.where(mask, chunk @ scores @ so_far.swapaxes(1, 2), -np.inf))
            output += weights @ so_far @ read
        return output


@style("online, chunk by chunk", "efficient_heads.CachedAttention")
class CachedChunkByChunk:
    """Online softmax: the stored chunks are visited one after the other, with a running maximum."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Keep the weights."""
        self.W_Q, self.W_K, self.W_V, self.W_O, self.num_heads = W_Q, W_K, W_V, W_O, num_heads
        self.reset()

    def reset(self) -> None:
        """Forget the chunks."""
        self.tiles: list[tuple[Array, Array]] = []

    def forward(self, chunk: Array) -> Array:
        """The chunk itself first, since every query sees something there."""
        Q, K, V = (split_heads(chunk @ W, self.num_heads) for W in (self.W_Q, self.W_K, self.W_V))
        triangle = np.tri(chunk.shape[1], dtype=bool)
        largest = np.full((*Q.shape[:3], 1), -np.inf)
        total, output = np.zeros_like(largest), np.zeros_like(Q)
        for keys, values, mask in [(K, V, triangle), *((k, v, np.array(True)) for k, v in self.tiles)]:
            scores = np.where(mask, Q @ keys.swapaxes(2, 3) / np.sqrt(Q.shape[-1]), -np.inf)
            new = np.maximum(largest, scores.max(axis=-1, keepdims=True))
            exponentials, shrink = np.exp(scores - new), np.exp(largest - new)
            total = total * shrink + exponentials.sum(axis=-1, keepdims=True)
            output = output * shrink + exponentials @ values
            largest = new
        self.tiles.append((K, V))
        return combine_heads(output / total) @ self.W_O


@style("in float32", "efficient_heads.CachedAttention")
class CachedInFloat32(CachedByRecomputing):
    """In single precision, which the tolerance allows."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Narrow weights."""
        W_Q, W_K, W_V, W_O = (W.astype(np.float32) for W in (W_Q, W_K, W_V, W_O))
        super().__init__(W_Q, W_K, W_V, W_O, num_heads)

    def forward(self, chunk: Array) -> Array:
        """Narrow tokens."""
        return super().forward(chunk.astype(np.float32))


# --- counting bytes ----------------------------------------------------------------------------------------


@style("as a product", "efficient_heads.kv_cache_bytes")
def cache_bytes_as_a_product(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """`math.prod` of everything."""
    return math.prod([2, batch, n, num_layers, num_kv_heads, d_k, bytes_per_value])


@style("token by token", "efficient_heads.kv_cache_bytes")
def cache_bytes_token_by_token(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Bytes of one token first."""
    per_token = num_layers * (num_kv_heads * d_k + num_kv_heads * d_k) * bytes_per_value
    return per_token * n * batch


@style("by NumPy", "efficient_heads.kv_cache_bytes")
def cache_bytes_by_numpy(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> Any:
    """A NumPy integer."""
    return np.prod([2, batch, n, num_layers, num_kv_heads, d_k, bytes_per_value], dtype=np.int64)


# --- narrower layers ---------------------------------------------------------------------------------------


@style("by loop", "efficient_heads.pruned_attention")
def pruned_by_loop(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Head by head, summed after its own rows of W_O."""
    parts = zip(*[np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V, W_O.T)], strict=True)
    return np.sum([attention(X @ q, X @ k, X @ v)[0] @ o.T for q, k, v, o in parts], axis=0)


@style("by einsum", "efficient_heads.pruned_attention")
def pruned_by_einsum(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Weights with an axis of heads."""
    d_model, width = W_Q.shape
    d_k = width // num_heads
    Q, K, V = (np.einsum("bnm,mhd->bhnd", X, W.reshape(d_model, num_heads, d_k)) for W in (W_Q, W_K, W_V))
    weights = softmax(np.einsum("bhid,bhjd->bhij", Q, K) / np.sqrt(d_k))
    return np.einsum("bhij,bhjd,hdm->bim", weights, V, W_O.reshape(num_heads, d_k, d_model))


@style("by merged weights", "efficient_heads.pruned_attention")
def pruned_by_merged_weights(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """W_Q·W_Kᵀ and W_V·W_O of each head are multiplied first."""
    d_k = len(W_O) // num_heads
    output = np.zeros(X.shape)
    for start in range(0, len(W_O), d_k):
        block = slice(start, start + d_k)
        scores = X @ (W_Q[:, block] @ W_K[:, block].T) @ np.swapaxes(X, 1, 2) / d_k**0.5
        output = output + softmax(scores) @ X @ (W_V[:, block] @ W_O[block])
    return output


@style("keys first", "efficient_heads.pruned_attention")
def pruned_keys_first(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """K·Qᵀ with the softmax over axis −2, transposed at the end."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    weights = softmax(K @ np.swapaxes(Q, -2, -1) / np.sqrt(Q.shape[-1]), axis=-2)  # (batch, heads, m, n)
    return combine_heads(np.swapaxes(weights, -2, -1) @ V) @ W_O


@style("heads-major", "efficient_heads.pruned_attention")
def pruned_heads_major(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Heads and sequences share the first axis, heads first."""
    batch = len(X)
    Q, K, V = (np.concatenate(np.split(X @ W, num_heads, axis=-1)) for W in (W_Q, W_K, W_V))
    heads = attention(Q, K, V)[0]  # (heads * batch, n, d_k)
    return np.concatenate([heads[i * batch : (i + 1) * batch] for i in range(num_heads)], axis=-1) @ W_O


# --- taking heads out --------------------------------------------------------------------------------------


style("multi-head attention as it was", "efficient_heads.pruned_attention")(multi_head_attention)


@style("by deleting", "efficient_heads.prune_heads")
def prune_by_deleting(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """`np.delete` on an axis of heads."""
    W_Q, W_K, W_V = (
        np.delete(W.reshape(len(W), num_heads, -1), heads, axis=1).reshape(len(W), -1)
        for W in (W_Q, W_K, W_V)
    )
    W_O = np.delete(W_O.reshape(num_heads, -1, W_O.shape[1]), heads, axis=0).reshape(-1, W_O.shape[1])
    return W_Q, W_K, W_V, W_O, num_heads - len(heads)


@style("by joining", "efficient_heads.prune_heads")
def prune_by_joining(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """The blocks that stay are joined."""
    stays = [i for i in range(num_heads) if i not in heads]
    W_Q, W_K, W_V, rows = (
        np.concatenate([np.split(W, num_heads, axis=1)[i] for i in stays], axis=1)
        for W in (W_Q, W_K, W_V, W_O.T)
    )
    return W_Q, W_K, W_V, rows.T, len(stays)


@style("from the last", "efficient_heads.prune_heads")
def prune_from_the_last(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """One after the other, the highest number first, so that the others do not move."""
    d_k = W_O.shape[0] // num_heads
    for i in sorted(heads, reverse=True):
        W_Q, W_K, W_V, rows = (
            np.hstack([W[:, : i * d_k], W[:, (i + 1) * d_k :]]) for W in (W_Q, W_K, W_V, W_O.T)
        )
        W_O = rows.T
        num_heads -= 1
    return W_Q, W_K, W_V, W_O, num_heads


@style("in another order", "efficient_heads.prune_heads")
def prune_in_another_order(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """The heads that stay come out in reverse order, which changes no output."""
    d_k = W_V.shape[1] // num_heads
    stays = sorted(set(range(num_heads)) - set(heads), reverse=True)
    columns = [i * d_k + j for i in stays for j in range(d_k)]
    return W_Q[:, columns], W_K[:, columns], W_V[:, columns], W_O[columns, :], len(stays)


@style("a list of five", "efficient_heads.prune_heads")
def prune_as_a_list(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Any:
    """A list of five, with the number as a NumPy integer."""
    owner = np.arange(W_Q.shape[1]) // (W_Q.shape[1] // num_heads)  # the head that owns each column
    stays = np.flatnonzero([head not in heads for head in owner])
    left = np.unique(owner[stays]).size
    return [
        *(np.take(W, stays, axis=1) for W in (W_Q, W_K, W_V)),
        np.take(W_O, stays, axis=0),
        np.int64(left),
    ]
