"""Mistakes in `CachedAttention`."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mha_lib import kv_cache as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.kv_cache import CachedAttention
from mha_lib.masks import causal_mask
from mha_lib.pitfalls.code import law, mistake, variants
from mha_lib.pitfalls.pieces import PIECES, projected

Array = np.ndarray
Function = Callable[..., Any]


@mistake("cache-mask-offset", "efficient_heads.CachedAttention")
class CachedAttentionMaskOffset(right.CachedAttention):
    """Wrong: the mask lines the chunk up with the first keys, not with the last ones."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, with the triangle at the wrong end."""
        Q, K, V = project_and_remember(self, chunk)
        mask = np.tril(np.ones((Q.shape[2], K.shape[2]), dtype=bool))  # (t, m)
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


@mistake("cache-masks-first-chunk-only", "efficient_heads.CachedAttention")
class CachedAttentionMasksFirstChunkOnly(right.CachedAttention):
    """Wrong: once something is remembered, the tokens of a chunk see each other without a mask."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, without a mask from the second chunk on."""
        first = self.K is None
        Q, K, V = project_and_remember(self, chunk)
        mask = causal_mask(Q.shape[2]) if first else None
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


@mistake("cache-keeps-last-chunk", "efficient_heads.CachedAttention")
class CachedAttentionKeepsLastChunk(right.CachedAttention):
    """Wrong: what is stored is the new chunk alone, so that the third chunk no longer knows the first."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, with a memory of one chunk."""
        Q = split_heads(chunk @ self.W_Q, self.num_heads)  # (batch, heads, t, d_k)
        K = split_heads(chunk @ self.W_K, self.num_heads)  # (batch, heads, t, d_k)
        V = split_heads(chunk @ self.W_V, self.num_heads)  # (batch, heads, t, d_k)
        old_K, old_V = self.K, self.V
        self.K, self.V = K, V
        if old_K is not None and old_V is not None:
            K = np.concatenate([old_K, K], axis=2)  # (batch, heads, m, d_k)
            V = np.concatenate([old_V, V], axis=2)  # (batch, heads, m, d_k)
        mask = causal_mask(Q.shape[2], K.shape[2])  # (t, m)
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


@mistake("cache-never-used", "efficient_heads.CachedAttention")
class CachedAttentionNeverUsed(right.CachedAttention):
    """Wrong: each chunk is treated by itself."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, without a memory."""
        self.reset()
        return super().forward(chunk)


@mistake("cache-newest-first", "efficient_heads.CachedAttention")
class CachedAttentionNewestFirst(right.CachedAttention):
    """Wrong: the new keys are put before the old ones, where the mask takes them for the oldest."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, with keys in the wrong order."""
        Q = split_heads(chunk @ self.W_Q, self.num_heads)  # (batch, heads, t, d_k)
        K = split_heads(chunk @ self.W_K, self.num_heads)  # (batch, heads, t, d_k)
        V = split_heads(chunk @ self.W_V, self.num_heads)  # (batch, heads, t, d_k)
        if self.K is not None and self.V is not None:
            K = np.concatenate([K, self.K], axis=2)  # (batch, heads, m, d_k)
            V = np.concatenate([V, self.V], axis=2)  # (batch, heads, m, d_k)
        self.K, self.V = K, V
        mask = causal_mask(Q.shape[2], K.shape[2])  # (t, m)
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


@mistake("cache-wrong-axis", "efficient_heads.CachedAttention")
class CachedAttentionWrongAxis(right.CachedAttention):
    """Wrong: old and new keys are joined along the heads, not along the tokens."""

    def forward(self, chunk: Array) -> Array:
        """The outputs of the first chunk, then an error."""
        Q = split_heads(chunk @ self.W_Q, self.num_heads)  # (batch, heads, t, d_k)
        K = split_heads(chunk @ self.W_K, self.num_heads)  # (batch, heads, t, d_k)
        V = split_heads(chunk @ self.W_V, self.num_heads)  # (batch, heads, t, d_k)
        if self.K is not None and self.V is not None:
            K = np.concatenate([self.K, K], axis=1)  # (batch, 2 * heads, t, d_k)
            V = np.concatenate([self.V, V], axis=1)  # (batch, 2 * heads, t, d_k)
        self.K, self.V = K, V
        mask = causal_mask(Q.shape[2], K.shape[2])
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O


@mistake("cache-keys-only", "efficient_heads.CachedAttention")
class CachedAttentionKeysOnly(right.CachedAttention):
    """Wrong: the values of earlier tokens are forgotten."""

    def forward(self, chunk: Array) -> Array:
        """The outputs of the first chunk, then an error."""
        Q = split_heads(chunk @ self.W_Q, self.num_heads)  # (batch, heads, t, d_k)
        K = split_heads(chunk @ self.W_K, self.num_heads)  # (batch, heads, t, d_k)
        V = split_heads(chunk @ self.W_V, self.num_heads)  # (batch, heads, t, d_k)
        if self.K is not None:
            K = np.concatenate([self.K, K], axis=2)  # (batch, heads, m, d_k)
        self.K = K
        mask = causal_mask(Q.shape[2], K.shape[2])  # (t, m)
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O


@mistake("cache-returns-all-tokens", "efficient_heads.CachedAttention")
class CachedAttentionReturnsAllTokens(right.CachedAttention):
    """Wrong: what comes back is the outputs of all tokens so far, not those of the chunk."""

    chunks: Array | None = None

    def forward(self, chunk: Array) -> Array:
        """The outputs of the whole sequence so far."""
        before = chunk[:, :0] if self.chunks is None else self.chunks  # (batch, m - t, d_model)
        X = self.chunks = np.concatenate([before, chunk], axis=1)  # (batch, m, d_model)
        weights = (self.W_Q, self.W_K, self.W_V)
        Q, K, V = (split_heads(X @ W, self.num_heads) for W in weights)  # (batch, heads, m, d_k)
        heads, _ = attention(Q, K, V, causal_mask(Q.shape[2]))  # (batch, heads, m, d_k)
        return combine_heads(heads) @ self.W_O  # (batch, m, d_model)

    def reset(self) -> None:
        """Forget all tokens."""
        self.chunks = None


@mistake("cache-not-reset", "efficient_heads.CachedAttention")
class CachedAttentionNotReset(right.CachedAttention):
    """Wrong: `reset` leaves the cache as it is."""

    def reset(self) -> None:
        """Do nothing."""


@mistake("cache-not-reset", "efficient_heads.CachedAttention", form="batch-kept")
class CachedAttentionBatchKept(right.CachedAttention):
    """Wrong: `reset` forgets the tokens, but keeps empty arrays for as many sequences as before."""

    def reset(self) -> None:
        """Drop the tokens only."""
        if self.K is not None and self.V is not None:
            self.K, self.V = self.K[:, :, :0], self.V[:, :, :0]


@mistake("cache-shared-between-objects", "efficient_heads.CachedAttention")
class CachedAttentionSharedBetweenObjects(right.CachedAttention):
    """Wrong: the cache belongs to the class, so that all its objects write into the same one."""

    chunks: ClassVar[list[Array]] = []

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Keep the weights; a new object does empty the cache, for all objects."""
        super().__init__(W_Q, W_K, W_V, W_O, num_heads)
        self.reset()

    def forward(self, chunk: Array) -> Array:
        """The outputs, with every object's tokens in one cache."""
        self.chunks.append(chunk)
        X = np.concatenate(self.chunks, axis=1)  # (batch, m, d_model)
        Q = split_heads(chunk @ self.W_Q, self.num_heads)  # (batch, heads, t, d_k)
        K = split_heads(X @ self.W_K, self.num_heads)  # (batch, heads, m, d_k)
        V = split_heads(X @ self.W_V, self.num_heads)  # (batch, heads, m, d_k)
        mask = causal_mask(Q.shape[2], K.shape[2])  # (t, m)
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)

    def reset(self) -> None:
        """Forget the tokens of all objects."""
        self.chunks.clear()


def project_and_remember(layer: right.CachedAttention, chunk: Array) -> tuple[Array, Array, Array]:
    """The chunk's queries, and the keys and values of all tokens so far."""
    Q, K, V = (split_heads(chunk @ W, layer.num_heads) for W in (layer.W_Q, layer.W_K, layer.W_V))
    if layer.K is not None and layer.V is not None:
        K = np.concatenate([layer.K, K], axis=2)  # (batch, heads, m, d_k)
        V = np.concatenate([layer.V, V], axis=2)  # (batch, heads, m, d_k)
    layer.K, layer.V = K, V
    return Q, K, V


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


@mistake("input-changed-in-place", "efficient_heads.CachedAttention")
class CachedAttentionChangesItsInput(CachedAttention):
    """Wrong: the chunk is scaled in place, in the caller's array."""

    def forward(self, chunk: Array) -> Array:
        """The outputs."""
        output = super().forward(chunk)
        chunk /= np.sqrt(chunk.shape[-1])
        return output


for slug, (piece, wrong) in PIECES.items():
    mistake(slug, "efficient_heads.CachedAttention")(cached_from(wrong, **{piece: wrong}))

WRONG_MASKS = variants("single_head", "causal_mask")
for slug, wrong in {
    "mask-inverted": WRONG_MASKS["mask-inverted"],
    "causal-missing": no_mask,
    "causal-hides-self": WRONG_MASKS["causal-hides-self"],
    "causal-sees-next": WRONG_MASKS["causal-sees-next"],
    "square-mask-assumed": square_mask,
}.items():
    mistake(slug, "efficient_heads.CachedAttention")(cached_from(wrong, mask=wrong))


@law("cache-shared-between-objects", "efficient_heads.CachedAttention")
def sees_what_another_object_got(tested: Any, steps: Sequence[Any]) -> bool:
    """The first token of an object gets another output once another object has had a token."""
    made = [step for step in steps if step.request["target"] == "CachedAttention"]
    if len(made) < 2:
        return False
    one = np.ones((1, 1))
    alone, first, second = (tested(one, one, one, one, 1) for _ in range(3))
    alone.reset()
    wanted = alone.forward(np.array([[[4.0]]]))
    alone.reset()
    first.forward(np.array([[[2.0]]]))
    got = second.forward(np.array([[[4.0]]]))
    for layer in (first, second):
        layer.reset()
    return not np.allclose(got, wanted)
