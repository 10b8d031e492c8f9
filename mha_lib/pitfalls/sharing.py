"""Mistakes in sharing keys and values among query heads, in remembering them, and in counting their bytes."""

from typing import ClassVar

import numpy as np

from mha_lib import kv_cache as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.masks import causal_mask
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray

# --- sharing keys and values -------------------------------------------------------------------------------


def grouped_kv_tiled(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the heads come in the order 0, 1, 2, 0, 1, 2; it should be 0, 0, 1, 1, 2, 2."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = np.tile(K, (1, group, 1, 1))  # (batch, num_heads, n, d_k)
    V = np.tile(V, (1, group, 1, 1))  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def grouped_kv_not_repeated(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: NumPy stretches one key head over all query heads, but not two or three."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


def grouped_kv_repeated_on_sequence_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: every token is repeated, not every head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = np.repeat(K, group, axis=2)  # (batch, num_kv_heads, n * group, d_k)
    V = np.repeat(V, group, axis=2)  # (batch, num_kv_heads, n * group, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


def grouped_kv_repeated_on_feature_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: every single feature is repeated before the heads are split."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = split_heads(np.repeat(X @ W_K, group, axis=-1), num_heads)  # (batch, num_heads, n, d_k)
    V = split_heads(np.repeat(X @ W_V, group, axis=-1), num_heads)  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def grouped_kv_repeated_too_often(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: each head is repeated `num_kv_heads` times, but a group has `num_heads // num_kv_heads`."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    K = np.repeat(K, num_kv_heads, axis=1)  # (batch, num_kv_heads², n, d_k)
    V = np.repeat(V, num_kv_heads, axis=1)  # (batch, num_kv_heads², n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


def grouped_kv_first_head_for_all(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all query heads use key head 0."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)[:, :1]  # (batch, 1, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)[:, :1]  # (batch, 1, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def grouped_kv_index_by_number_of_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: query head i uses key head i // num_kv_heads, and there may be no such head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    shared = np.arange(num_heads) // num_kv_heads  # (num_heads,)
    K = split_heads(X @ W_K, num_kv_heads)[:, shared]  # (batch, num_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)[:, shared]  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def grouped_kv_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all query heads use the mean of the key heads."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads).mean(axis=1, keepdims=True)  # (batch, 1, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads).mean(axis=1, keepdims=True)  # (batch, 1, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


def grouped_kv_split_into_query_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the few keys are cut into as many heads as there are queries, so that they are too narrow."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_heads)  # (batch, num_heads, n, less than d_k)
    V = split_heads(X @ W_V, num_heads)  # (batch, num_heads, n, less than d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


def grouped_kv_values_not_repeated(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the keys are repeated, the values are not."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    K = np.repeat(K, num_heads // num_kv_heads, axis=1)  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


def grouped_scale_by_kv_width(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the scale takes the features to be shared among the key heads; it is right if none is shared."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    group = num_heads // num_kv_heads
    K, V = np.repeat(K, group, axis=1), np.repeat(V, group, axis=1)  # (batch, num_heads, n, d_k)
    Q = Q / np.sqrt(group)  # attention divides by √d_k, and together that is √(d_model / num_kv_heads)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


# --- remembering keys and values ---------------------------------------------------------------------------


class CachedAttentionMaskOffset(right.CachedAttention):
    """Wrong: the mask lines the chunk up with the first keys, not with the last ones."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, with the triangle at the wrong end."""
        Q, K, V = project_and_remember(self, chunk)
        mask = np.tril(np.ones((Q.shape[2], K.shape[2]), dtype=bool))  # (t, m)
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


class CachedAttentionMasksFirstChunkOnly(right.CachedAttention):
    """Wrong: once something is remembered, the tokens of a chunk see each other without a mask."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, without a mask from the second chunk on."""
        first = self.K is None
        Q, K, V = project_and_remember(self, chunk)
        mask = causal_mask(Q.shape[2]) if first else None
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


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


class CachedAttentionNeverUsed(right.CachedAttention):
    """Wrong: each chunk is treated by itself."""

    def forward(self, chunk: Array) -> Array:
        """The outputs, without a memory."""
        self.reset()
        return super().forward(chunk)


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


class CachedAttentionNotReset(right.CachedAttention):
    """Wrong: `reset` leaves the cache as it is."""

    def reset(self) -> None:
        """Do nothing."""


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


# --- counting bytes ----------------------------------------------------------------------------------------


def cache_bytes_keys_only(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: keys are counted, values are not."""
    return batch * n * num_layers * num_kv_heads * d_k * bytes_per_value


def cache_bytes_with_queries(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: queries are counted too, but nobody needs those of earlier tokens."""
    return 3 * batch * n * num_layers * num_kv_heads * d_k * bytes_per_value


def cache_bytes_of_one_layer(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one layer is counted."""
    return 2 * batch * n * num_kv_heads * d_k * bytes_per_value


def cache_bytes_of_one_sequence(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one sequence is counted."""
    return 2 * n * num_layers * num_kv_heads * d_k * bytes_per_value


def cache_bytes_of_one_head(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one head is counted."""
    return 2 * batch * n * num_layers * d_k * bytes_per_value


def cache_bytes_of_fixed_values(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: a value is always taken to have two bytes."""
    return 2 * batch * n * num_layers * num_kv_heads * d_k * 2


def cache_bytes_as_number_of_values(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: values are counted, not their bytes."""
    return 2 * batch * n * num_layers * num_kv_heads * d_k


def cache_bytes_of_scores(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: the n × n weights are counted, which are made and thrown away."""
    return 2 * batch * n * n * num_layers * num_kv_heads * bytes_per_value


def cache_bytes_in_bits(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: bits, not bytes."""
    return 2 * batch * n * num_layers * num_kv_heads * d_k * bytes_per_value * 8


def cache_bytes_in_mebibytes(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> float:
    """Wrong: mebibytes, not bytes."""
    values = 2 * batch * n * num_layers * num_kv_heads * d_k
    return values * bytes_per_value / 2**20


GROUPED = "efficient_heads.grouped_query_attention"
CACHED = "efficient_heads.CachedAttention"
BYTES = "efficient_heads.kv_cache_bytes"

PITFALLS = (
    Pitfall(
        slug="kv-tiled",
        title="Key heads dealt out in turn",
        symptom="The right shape; right with one key head and with as many as query heads, wrong between.",
        reason="Your query heads get the key heads in the order 0, 1, …, 0, 1, …, but neighbours share one: query "
        "head i uses key head i // group.",
        fix="Repeat each key head in place, with `np.repeat(K, group, axis=1)`, not `np.tile`.",
        passes=("shape", "finite", "one key head", "as many key heads"),
        variants={GROUPED: grouped_kv_tiled},
    ),
    Pitfall(
        slug="kv-not-repeated",
        title="Key heads not given to their query heads",
        symptom="Shapes that do not fit, unless there is one key head or as many as query heads.",
        reason="You multiply many query heads with fewer key heads, and NumPy stretches an axis only if its size "
        "is 1.",
        fix="Repeat each key head and value head for its group of query heads.",
        passes=("one key head", "as many key heads"),
        variants={GROUPED: grouped_kv_not_repeated},
    ),
    Pitfall(
        slug="kv-values-not-repeated",
        title="Keys repeated, values not",
        symptom="Right weights, and shapes that do not fit when they meet the values.",
        reason="You repeat the key heads only, but query heads of a group share the values as well.",
        fix="Do the same with V as with K.",
        passes=("one key head", "as many key heads"),
        variants={GROUPED: grouped_kv_values_not_repeated},
    ),
    Pitfall(
        slug="kv-repeated-on-sequence-axis",
        title="Tokens repeated in place of heads",
        symptom="The number of key heads does not fit; with a single one nothing shows, since the copies of a key "
        "share its weight.",
        reason="You repeat along the axis of the tokens, so the number of key heads stays as it was.",
        fix="Repeat along the axis of the heads: axis 1 of `(batch, heads, n, d_k)`.",
        passes=("one key head", "as many key heads"),
        variants={GROUPED: grouped_kv_repeated_on_sequence_axis},
    ),
    Pitfall(
        slug="kv-repeated-on-feature-axis",
        title="Single features repeated in place of heads",
        symptom="The right shape and wrong numbers, unless there are as many key heads as query heads.",
        reason="You repeat each feature before the heads are split, so a head gets copies of a part of its "
        "features.",
        fix="Split into heads first, then repeat along axis 1 of `(batch, heads, n, d_k)`.",
        passes=("shape", "finite", "as many key heads"),
        variants={GROUPED: grouped_kv_repeated_on_feature_axis},
    ),
    Pitfall(
        slug="kv-repeated-too-often",
        title="Repeated by the number of key heads",
        symptom="Shapes that do not fit, unless there is one key head.",
        reason="You repeat each key head `num_kv_heads` times, but as many query heads share it as there are in a "
        "group.",
        fix="Repeat `num_heads // num_kv_heads` times.",
        passes=("one key head",),
        variants={GROUPED: grouped_kv_repeated_too_often},
    ),
    Pitfall(
        slug="kv-first-head-for-all",
        title="The first key head serves all",
        symptom="The right shape; key heads but the first have no effect.",
        reason="You give key head 0 to all query heads, which is right only if there is no other.",
        fix="Give each group of query heads its own key head.",
        passes=("shape", "finite", "one key head"),
        variants={GROUPED: grouped_kv_first_head_for_all},
    ),
    Pitfall(
        slug="kv-index-by-number-of-heads",
        title="`i // num_kv_heads` as the key head of query head i",
        symptom="Right only if a group has as many query heads as there are key heads. With as many key heads as "
        "query heads the first serves all; with few the index is out of bounds.",
        reason="You divide the number of the query head by the number of key heads, but it has to be divided by "
        "the number of query heads in a group.",
        fix="Use key head `i // (num_heads // num_kv_heads)`.",
        passes=("shape", "finite"),
        variants={GROUPED: grouped_kv_index_by_number_of_heads},
    ),
    Pitfall(
        slug="scale-by-kv-width",
        title="Divided by √(d_model / num_kv_heads)",
        symptom="The right shape; right with as many key heads as query heads, weights too even with fewer.",
        reason="You share d_model among the key heads, but all heads, also those of keys, are d_model / num_heads "
        "wide.",
        fix="Divide by the root of the last axis of Q or K after they were split.",
        passes=("shape", "finite", "as many key heads"),
        variants={GROUPED: grouped_scale_by_kv_width},
    ),
    Pitfall(
        slug="kv-averaged",
        title="The mean of the key heads serves all",
        symptom="The right shape; all query heads see the same keys and values.",
        reason="You average the key heads, but each group of query heads has one to itself.",
        fix="Repeat each key head for its own group, and leave out the mean.",
        passes=("shape", "finite", "one key head"),
        variants={GROUPED: grouped_kv_averaged},
    ),
    Pitfall(
        slug="kv-split-into-query-heads",
        title="Keys split into as many heads as queries",
        symptom="Keys narrower than queries: the product fails, unless there are as many key heads.",
        reason="You split the features of the keys among `num_heads` heads, but they hold only `num_kv_heads`.",
        fix="Split keys and values with `num_kv_heads`, then repeat the heads.",
        passes=("as many key heads",),
        variants={GROUPED: grouped_kv_split_into_query_heads},
    ),
    Pitfall(
        slug="cache-mask-offset",
        title="The chunk lined up with the first keys",
        symptom="The first chunk is right; later tokens see only the beginning of the sequence.",
        reason="Your mask puts the chunk's first token beside the first key, but a chunk is the end of what has "
        "come so far.",
        fix="Let the last query line up with the last key: j ≤ i + (m − t).",
        passes=("shape", "finite", "one chunk"),
        variants={CACHED: CachedAttentionMaskOffset},
    ),
    Pitfall(
        slug="cache-masks-first-chunk-only",
        title="No mask once something is remembered",
        symptom="Right for one chunk and token by token; in longer chunks tokens see the next ones.",
        reason="You leave the mask out as soon as there is a cache, which is right only for chunks of one token.",
        fix="Mask every chunk: `causal_mask(t, m)` hides nothing from a single token.",
        passes=("shape", "finite", "one chunk", "token by token"),
        variants={CACHED: CachedAttentionMasksFirstChunkOnly},
    ),
    Pitfall(
        slug="cache-keeps-last-chunk",
        title="Only the newest chunk is stored",
        symptom="Two chunks are right; from the third on the beginning is forgotten.",
        reason="You store the keys of the chunk, not all keys so far.",
        fix="Store the keys and values after you have joined them to the old ones.",
        passes=("shape", "finite", "one chunk", "two chunks"),
        variants={CACHED: CachedAttentionKeepsLastChunk},
    ),
    Pitfall(
        slug="cache-never-used",
        title="Each chunk by itself",
        symptom="One chunk is right; token by token, every token sees only itself.",
        reason="You compute each chunk without the keys and values of the chunks before.",
        fix="Join the stored keys and values to the new ones before the attention.",
        passes=("shape", "finite", "one chunk"),
        variants={CACHED: CachedAttentionNeverUsed},
    ),
    Pitfall(
        slug="cache-newest-first",
        title="New keys put before the old ones",
        symptom="Right token by token, where nothing is masked; wrong in longer chunks.",
        reason="You put the new keys before the old ones, so the mask hides the wrong ones.",
        fix="Join them in the order of the sequence: old ones first.",
        passes=("shape", "finite", "one chunk", "token by token"),
        variants={CACHED: CachedAttentionNewestFirst},
    ),
    Pitfall(
        slug="cache-wrong-axis",
        title="Old and new keys joined along the wrong axis",
        symptom="The first chunk is right; at the second, shapes do not fit.",
        reason="You join along another axis than that of the tokens, so there seem to be more heads and not more "
        "tokens.",
        fix="In `(batch, heads, n, d_k)` the tokens are on axis 2.",
        passes=("one chunk",),
        variants={CACHED: CachedAttentionWrongAxis},
    ),
    Pitfall(
        slug="cache-keys-only",
        title="Keys remembered, values not",
        symptom="The first chunk is right; at the second, there are more weights than values.",
        reason="You store the keys, but each remembered key needs its value as well.",
        fix="Store and join K and V alike.",
        passes=("one chunk",),
        variants={CACHED: CachedAttentionKeysOnly},
    ),
    Pitfall(
        slug="cache-returns-all-tokens",
        title="Outputs of all tokens returned",
        symptom="The first chunk is right; then the results get longer and longer.",
        reason="You return the outputs of all tokens so far, but those of earlier chunks have been returned "
        "before.",
        fix="Ask for the chunk's tokens only: its queries, or the last t rows of the output.",
        passes=("one chunk",),
        variants={CACHED: CachedAttentionReturnsAllTokens},
    ),
    Pitfall(
        slug="cache-not-reset",
        title="reset does not forget",
        symptom="The first sequence is right; the next one sees the tokens of the first.",
        reason="After `reset()` your object still holds keys and values of the sequence before.",
        fix="Put the cache back into the state that `__init__` gives it.",
        passes=("shape", "finite", "one chunk", "two chunks", "token by token"),
        variants={CACHED: CachedAttentionNotReset},
    ),
    Pitfall(
        slug="cache-shared-between-objects",
        title="One cache for all objects",
        symptom="One object alone is right; two in turn see each other's tokens.",
        reason="Your cache belongs to the class, or is a global variable, so all objects write into the same one.",
        fix="Make it in `__init__`, as an attribute of `self`.",
        passes=("shape", "finite", "one chunk", "two chunks", "token by token"),
        variants={CACHED: CachedAttentionSharedBetweenObjects},
    ),
    Pitfall(
        slug="cache-bytes-keys-only",
        title="Keys counted, values not",
        symptom="Half of what it should be.",
        reason="You count one array, but each layer keeps keys and values.",
        fix="Multiply by 2.",
        passes=(),
        variants={BYTES: cache_bytes_keys_only},
    ),
    Pitfall(
        slug="cache-bytes-with-queries",
        title="Queries counted too",
        symptom="One and a half times what it should be.",
        reason="You count queries, but the queries of earlier tokens are never needed again.",
        fix="Multiply by 2, for keys and values, not by 3.",
        passes=(),
        variants={BYTES: cache_bytes_with_queries},
    ),
    Pitfall(
        slug="cache-bytes-of-one-layer",
        title="One layer counted",
        symptom="Too small, by a factor of the number of layers.",
        reason="You count one layer, but each layer has keys and values of its own.",
        fix="Multiply by `num_layers`.",
        passes=(),
        variants={BYTES: cache_bytes_of_one_layer},
    ),
    Pitfall(
        slug="cache-bytes-of-one-sequence",
        title="One sequence counted",
        symptom="Too small, by a factor of the batch size.",
        reason="You count one sequence, but each sequence of the batch has tokens of its own.",
        fix="Multiply by `batch`.",
        passes=(),
        variants={BYTES: cache_bytes_of_one_sequence},
    ),
    Pitfall(
        slug="cache-bytes-of-one-head",
        title="One key head counted",
        symptom="Too small, by a factor of the number of key heads, which then seems not to matter.",
        reason="You count one head, but each key head and value head is stored.",
        fix="Multiply by `num_kv_heads`.",
        passes=(),
        variants={BYTES: cache_bytes_of_one_head},
    ),
    Pitfall(
        slug="cache-bytes-of-fixed-values",
        title="Two bytes a value, whatever is asked",
        symptom="Right without `bytes_per_value`, wrong for float32.",
        reason="You take a value to have two bytes, but the caller may say otherwise.",
        fix="Multiply by `bytes_per_value`.",
        passes=("default size",),
        variants={BYTES: cache_bytes_of_fixed_values},
    ),
    Pitfall(
        slug="cache-bytes-as-number-of-values",
        title="Values counted, not bytes",
        symptom="Too small, by a factor of `bytes_per_value`.",
        reason="You count numbers, but each of them takes `bytes_per_value` bytes.",
        fix="Multiply by `bytes_per_value`.",
        passes=(),
        variants={BYTES: cache_bytes_as_number_of_values},
    ),
    Pitfall(
        slug="cache-bytes-of-scores",
        title="The n × n weights counted",
        symptom="Growing with the square of n, and independent of d_k.",
        reason="You count the weights between all tokens, but they are not stored: a token's row is used once.",
        fix="Count keys and values, which are `d_k` wide, for n tokens.",
        passes=(),
        variants={BYTES: cache_bytes_of_scores},
    ),
    Pitfall(
        slug="cache-bytes-in-bits",
        title="Bits in place of bytes",
        symptom="Eight times what it should be.",
        reason="You count bits, but `bytes_per_value` is in bytes already, and so is the result.",
        fix="Leave out the factor of 8.",
        passes=(),
        variants={BYTES: cache_bytes_in_bits},
    ),
    Pitfall(
        slug="cache-bytes-in-mebibytes",
        title="Mebibytes in place of bytes",
        symptom="A fraction where a whole number is expected.",
        reason="You convert to larger units, but the result should be in bytes.",
        fix="Leave out the division.",
        passes=(),
        variants={BYTES: cache_bytes_in_mebibytes},
    ),
)
