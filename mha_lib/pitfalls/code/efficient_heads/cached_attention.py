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
from mha_lib.pitfalls.evidence import methods
from mha_lib.pitfalls.pieces import FURTHER_PIECES, MASKING, PIECES, projected, register

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


@mistake("cache-not-reset", "efficient_heads.CachedAttention", form="zeros-kept")
class CachedAttentionZerosKept(right.CachedAttention):
    """Wrong: `reset` makes keys and values zero, but they stay in the cache."""

    def reset(self) -> None:
        """Overwrite the tokens only."""
        if self.K is not None and self.V is not None:
            self.K, self.V = 0 * self.K, 0 * self.V


@mistake("cache-offset-not-reset", "efficient_heads.CachedAttention")
class CachedAttentionOffsetNotReset(right.CachedAttention):
    """Wrong: the past tokens are counted beside the cache, and `reset` does not set the count back."""

    past = 0

    def forward(self, chunk: Array) -> Array:
        """The outputs; a query may attend to as many keys more than itself as were counted."""
        projected = [chunk @ W for W in (self.W_Q, self.W_K, self.W_V)]
        Q, K, V = (split_heads(each, self.num_heads) for each in projected)
        if self.K is not None and self.V is not None:
            K = np.concatenate([self.K, K], axis=2)
            V = np.concatenate([self.V, V], axis=2)
        self.K, self.V = K, V  # (batch, heads, m, d_k)
        t, m = Q.shape[2], K.shape[2]
        mask = np.arange(m) <= np.arange(t)[:, None] + self.past  # (t, m)
        self.past += t
        return combine_heads(attention(Q, K, V, mask)[0]) @ self.W_O  # (batch, t, d_model)


@mistake("result-overwritten-later", "efficient_heads.CachedAttention")
class CachedAttentionResultOverwritten(right.CachedAttention):
    """Wrong: what is returned is an array of the layer, which the next chunk of this size overwrites."""

    output: Array | None = None

    def forward(self, chunk: Array) -> Array:
        """The outputs, in the same array again."""
        output = super().forward(chunk)
        if self.output is None or self.output.shape != output.shape:
            self.output = output
        self.output[:] = output
        return self.output


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


# --- forms -------------------------------------------------------------------------------------------------

register({**FURTHER_PIECES, **MASKING}, "efficient_heads.CachedAttention", cached_from)


class InParts(CachedAttention):
    """The right layer in parts, each of which may be written anew."""

    def forward(self, chunk: Array) -> Array:
        """The outputs of the chunk's tokens."""
        Q, *new = (split_heads(chunk @ W, self.num_heads) for W in (self.W_Q, self.W_K, self.W_V))
        K, V = self.joined(*new)
        self.remember(K, V, *new)
        heads, _ = attention(Q, K, V, self.mask(Q.shape[2], K.shape[2]))  # (batch, heads, t, d_k)
        return combine_heads(heads) @ self.W_O  # (batch, t, d_model)

    def joined(self, K: Array, V: Array) -> tuple[Array, Array]:
        """The new keys and values behind the old ones."""
        return behind(self.K, K), behind(self.V, V)

    def remember(self, K: Array, V: Array, new_K: Array, new_V: Array) -> None:
        """Keep what the next chunk needs."""
        self.K, self.V = K, V

    def mask(self, t: int, m: int) -> Array:
        """Which of m keys each of t queries may see."""
        return causal_mask(t, m)


def behind(old: Array | None, new: Array, axis: int = 2) -> Array:
    """The new entries behind the old ones, if there are any."""
    return new if old is None else np.concatenate([old, new], axis=axis)


class OnTokens(CachedAttention):
    """The right layer, which keeps the tokens and computes everything again."""

    X: Array | None = None
    axis = 1

    def forward(self, chunk: Array) -> Array:
        """The outputs of the chunk's tokens."""
        self.X = X = self.joined(chunk)  # (batch, m, d_model)
        Q, K, V = (split_heads(X @ W, self.num_heads) for W in (self.W_Q, self.W_K, self.W_V))
        heads, _ = attention(Q, K, V, causal_mask(X.shape[1]))  # (batch, heads, m, d_k)
        return (combine_heads(heads) @ self.W_O)[:, -chunk.shape[1] :]  # (batch, t, d_model)

    def joined(self, chunk: Array) -> Array:
        """The chunk behind the tokens that came before."""
        return behind(self.X, chunk, self.axis)

    def reset(self) -> None:
        """Forget all tokens."""
        self.X = None


class OnTokensOfOneBatch(OnTokens):
    """Wrong: the chunk is put below the earlier ones as further sequences; its own queries see all of them."""

    def forward(self, chunk: Array) -> Array:
        """The outputs of the chunk's tokens."""
        self.X = X = behind(self.X, chunk, axis=0)
        Q, K, V = (
            split_heads(x @ W, self.num_heads) for x, W in ((chunk, self.W_Q), (X, self.W_K), (X, self.W_V))
        )
        heads, _ = attention(Q, K, V, causal_mask(Q.shape[2], K.shape[2]))
        return combine_heads(heads) @ self.W_O


class MaskFromChunks(InParts):
    """Wrong: how far the mask is moved depends on the chunks, not on the number of tokens before."""

    chunks: tuple[int, ...] = ()  # their lengths

    def mask(self, t: int, m: int) -> Array:
        """A triangle, moved."""
        moved = self.offset(t, *self.chunks)
        self.chunks = (*self.chunks, t)
        return np.tril(np.ones((t, m), dtype=bool), moved)

    def offset(self, t: int, *before: int) -> int:
        """How far, from the length of this chunk and of those before."""
        return sum(before)

    def reset(self) -> None:
        """Forget all tokens."""
        super().reset()
        self.chunks = ()


class ValuesOfTheChunk(InParts):
    """Wrong: of the weights, those of the chunk's keys are used, with the chunk's values."""

    def forward(self, chunk: Array) -> Array:
        """The outputs of the chunk's tokens."""
        Q, K, V = project_and_remember(self, chunk)
        _, weights = attention(Q, K, V, causal_mask(Q.shape[2], K.shape[2]))  # (batch, heads, t, m)
        t = chunk.shape[1]
        return combine_heads(weights[..., -t:] @ V[:, :, -t:]) @ self.W_O  # (batch, t, d_model)


class LastOutputAlone(CachedAttention):
    """Wrong: the output of the chunk's last token is all that is returned."""

    def forward(self, chunk: Array) -> Array:
        """One output."""
        return super().forward(chunk)[:, -1:]


class Transposed(CachedAttention):
    """Wrong: the weights of queries, keys and values are transposed."""

    def __init__(self, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int):
        """Keep the weights."""
        super().__init__(W_Q.T, W_K.T, W_V.T, W_O, num_heads)


def changed(base: type[CachedAttention], **parts: Any) -> type[CachedAttention]:
    """The layer with other parts."""
    return type("Cached", (base,), parts)


def first_kept(layer: Any, K: Array, V: Array, new_K: Array, new_V: Array) -> None:
    """Wrong: only the first chunk is kept."""
    if layer.K is None:
        layer.K, layer.V = K, V


def last_token_kept(layer: Any, K: Array, V: Array, new_K: Array, new_V: Array) -> None:
    """Wrong: only the last token is kept."""
    layer.K, layer.V = K[:, :, -1:], V[:, :, -1:]


def forgets(name: str) -> Callable[[Any], None]:
    """Wrong: `reset` forgets keys or values only."""
    return lambda layer: setattr(layer, name, None)


FORMS: dict[str, type[CachedAttention]] = {
    "cache-mask-offset/number-of-chunks": changed(
        MaskFromChunks, offset=lambda self, t, *before: len(before)
    ),
    "cache-mask-offset/this-chunk": changed(
        MaskFromChunks, offset=lambda self, t, *before: t if before else 0
    ),
    "cache-mask-offset/last-chunk": changed(MaskFromChunks, offset=lambda self, t, *before: (0, *before)[-1]),
    "cache-mask-offset/but-for-one-token": changed(
        InParts, mask=lambda self, t, m: np.tril(np.ones((t, m), dtype=bool), 0 if t > 1 else m)
    ),
    "cache-keeps-last-chunk/first": changed(InParts, remember=first_kept),
    "cache-keeps-last-chunk/last-token": changed(InParts, remember=last_token_kept),
    "cache-newest-first/keys": changed(
        InParts, joined=lambda self, K, V: (K if self.K is None else behind(K, self.K), behind(self.V, V))
    ),
    "cache-newest-first/tokens": changed(
        OnTokens, joined=lambda self, chunk: chunk if self.X is None else behind(chunk, self.X, 1)
    ),
    **{
        f"cache-wrong-axis/{name}": changed(
            InParts, joined=lambda self, K, V, axis=axis: (behind(self.K, K, axis), behind(self.V, V, axis))
        )
        for name, axis in (("batch", 0), ("features", 3))
    },
    "cache-wrong-axis/tokens-as-sequences": changed(OnTokens, axis=0),
    "cache-wrong-axis/tokens-as-features": changed(OnTokens, axis=2),
    "cache-wrong-axis/tokens-as-sequences-for-keys": OnTokensOfOneBatch,
    "cache-keys-only/cut-weights": ValuesOfTheChunk,
    "cache-returns-all-tokens/last-alone": LastOutputAlone,
    "cache-not-reset/keys": changed(InParts, reset=forgets("V")),
    "cache-not-reset/values": changed(InParts, reset=forgets("K")),
    "weights-applied-transposed/all-three": Transposed,
}
for name, layer in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "efficient_heads.CachedAttention", form=form)(layer)


# --- laws --------------------------------------------------------------------------------------------------


def first_output(layer: Any) -> Any:
    """What comes out for one token, which is 0.5 and so gives other tokens much weight, of a layer one wide."""
    return layer.forward(np.array([[[0.5]]]))


@law("cache-not-reset", "efficient_heads.CachedAttention")
def remembers_after_a_reset(tested: Any, steps: Sequence[Any]) -> bool:
    """A new object is right, and after a reset the first token gets another output; the part resets a used one."""
    called = methods(steps)
    if "forward" not in called or "reset" not in called[called.index("forward") :]:
        return False
    new, used = (tested(*[np.ones((1, 1))] * 4, 1) for _ in range(2))
    alone = first_output(new)
    new.reset()
    used.forward(np.array([[[2.0]]]))
    used.reset()
    return np.allclose(alone, 0.5) and not np.allclose(first_output(used), 0.5)


@law("cache-shared-between-objects", "efficient_heads.CachedAttention")
def sees_what_another_object_got(tested: Any, steps: Sequence[Any]) -> bool:
    """The first token of an object gets another output once another object has had a token."""
    made = [step for step in steps if step.request["target"] == "CachedAttention"]
    if len(made) < 2:
        return False
    one = np.ones((1, 1))
    alone, first, second = (tested(one, one, one, one, 1) for _ in range(3))
    alone.reset()
    wanted = first_output(alone)
    alone.reset()
    first.forward(np.array([[[2.0]]]))
    got = first_output(second)
    for layer in (first, second):
        layer.reset()
    return bool(np.isfinite(wanted).all()) and not np.allclose(got, wanted)
