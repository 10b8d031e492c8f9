"""Right ways of writing the items of `multi_head`; some of them look wrong at first."""

from fractions import Fraction

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.styles import style
from mha_lib.styles.single_head import attention_contract_checked

Array = np.ndarray

# --- the width of a head, and from features to heads and back ----------------------------------------------


@style("divmod", "multi_head.head_dim")
def head_dim_divmod(d_model: int, num_heads: int) -> int:
    """Quotient and remainder at once."""
    width, rest = divmod(d_model, num_heads) if num_heads > 0 else (0, 1)
    if rest or width < 1:
        raise ValueError(f"{num_heads} heads cannot share {d_model} features")
    return width


@style("search", "multi_head.head_dim")
def head_dim_search(d_model: int, num_heads: int) -> int:
    """The one width that fits, if there is one."""
    for width in range(1, d_model + 1):
        if num_heads > 0 and width * num_heads == d_model:
            return width
    raise ValueError("no width fits", d_model, num_heads)


class NotDivisibleError(ValueError):
    """A ValueError of the student's own."""


@style("an error of one's own", "multi_head.head_dim")
def head_dim_fraction(d_model: int, num_heads: int) -> int:
    """An exact fraction, and an error of one's own class."""
    if min(d_model, num_heads) < 1:
        raise NotDivisibleError(f"{d_model=}, {num_heads=}")
    width = Fraction(d_model, num_heads)
    if width.denominator != 1:
        raise NotDivisibleError(f"{d_model=} / {num_heads=} = {width}")
    return int(width)


@style("stacked slices", "multi_head.split_heads")
def split_heads_stacked_slices(x: Array, num_heads: int) -> Array:
    """A slice of columns for each head."""
    d_k, rest = divmod(x.shape[-1], num_heads)
    if rest:
        raise ValueError
    return np.stack([x[:, :, i * d_k : (i + 1) * d_k] for i in range(num_heads)], axis=1)


@style("np.split", "multi_head.split_heads")
def split_heads_np_split(x: Array, num_heads: int) -> Array:
    """`np.split`, which refuses unequal parts."""
    return np.swapaxes(np.array(np.split(x, num_heads, axis=2)), 0, 1)


@style("entry by entry", "multi_head.split_heads")
def split_heads_entry_by_entry(x: Array, num_heads: int) -> Array:
    """Loops, and an error that is no ValueError."""
    batch, n, d_model = x.shape
    assert d_model % num_heads == 0, "the features do not divide"
    heads = np.empty((batch, num_heads, n, d_model // num_heads), x.dtype)
    for column in range(d_model):
        head, k = divmod(column, d_model // num_heads)
        for b in range(batch):
            for t in range(n):
                heads[b, head, t, k] = x[b, t, column]
    return heads


@style("einsum", "multi_head.split_heads")
def split_heads_einsum(x: Array, num_heads: int) -> Array:
    """The axes by name."""
    batch, n, _ = x.shape
    return np.einsum("bthk->bhtk", x.reshape(batch, n, num_heads, -1))


@style("from the transpose", "multi_head.split_heads")
def split_heads_from_the_transpose(x: Array, num_heads: int) -> Array:
    """Features first, where a reshape alone is right."""
    batch, n, _ = x.shape
    columns_first = np.moveaxis(x, 2, 1)  # (batch, d_model, n)
    return np.moveaxis(columns_first.reshape(batch, num_heads, -1, n), 3, 2)


@style("fancy index", "multi_head.split_heads")
def split_heads_fancy_index(x: Array, num_heads: int) -> Array:
    """A table of columns, one row for each head."""
    columns = np.arange(x.shape[-1]).reshape(num_heads, -1)  # (heads, d_k)
    return x[..., columns].swapaxes(1, 2)  # (batch, n, heads, d_k) before the exchange


@style("empty without heads", "multi_head.split_heads")
def split_heads_empty_without_heads(x: Array, num_heads: int) -> Array:
    """For no head at all, which nobody asks for, an empty array and no error."""
    if num_heads < 1:
        return np.empty((len(x), 0, x.shape[1], 0))
    return split_heads_np_split(x, num_heads)


@style("concatenated", "multi_head.combine_heads")
def combine_heads_concatenated(x: Array) -> Array:
    """The heads side by side."""
    return np.concatenate([x[:, i] for i in range(x.shape[1])], axis=-1)


@style("filled", "multi_head.combine_heads")
def combine_heads_filled(x: Array) -> Array:
    """An empty array, filled block by block."""
    batch, heads, n, d_k = x.shape
    out = np.zeros((batch, n, heads * d_k))
    for i in range(heads):
        out[:, :, i * d_k : (i + 1) * d_k] = x[:, i]
    return out


@style("moved axis", "multi_head.combine_heads")
def combine_heads_moved_axis(x: Array) -> Array:
    """The head's axis is moved behind the tokens."""
    moved = np.moveaxis(x, 1, 2)
    return moved.reshape(*moved.shape[:2], -1)


@style("stacked", "multi_head.combine_heads")
def combine_heads_stacked(x: Array) -> Array:
    """Token by token, with `hstack`."""
    return np.stack([np.hstack(list(sequence)) for sequence in x])


@style("einsum", "multi_head.combine_heads")
def combine_heads_einsum(x: Array) -> Array:
    """The axes by name."""
    return np.einsum("bhtk->bthk", x).reshape(x.shape[0], x.shape[2], -1)


# --- self-attention ----------------------------------------------------------------------------------------


def _heads(x: Array, num_heads: int) -> Array:
    return x.reshape(x.shape[0], x.shape[1], num_heads, -1).swapaxes(1, 2)  # (batch, heads, n, d_k)


def _features(x: Array) -> Array:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)  # (batch, n, d_model)


@style("loop over heads", "multi_head.multi_head_attention")
def multi_head_loop_over_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """One head after the other, each with its own columns."""
    d_k = X.shape[-1] // num_heads
    allowed = mask if mask is None or mask.ndim == 2 else mask[:, 0]
    outputs = []
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        outputs.append(attention(X @ W_Q[:, own], X @ W_K[:, own], X @ W_V[:, own], allowed)[0])
    return np.concatenate(outputs, axis=-1) @ W_O


@style("einsum", "multi_head.multi_head_attention")
def multi_head_einsum(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Weights as tensors with an axis for the heads; every product by name."""
    d_model = X.shape[-1]
    q, k, v = (W.reshape(d_model, num_heads, -1) for W in (W_Q, W_K, W_V))  # (d_model, heads, d_k)
    o = W_O.reshape(num_heads, -1, d_model)  # (heads, d_k, d_model)
    Q, K, V = (np.einsum("bnd,dhk->bhnk", X, w) for w in (q, k, v))
    scores = np.einsum("bhik,bhjk->bhij", Q, K) / Q.shape[-1] ** 0.5
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    return np.einsum("bhij,bhjk,hkd->bid", softmax(scores), V, o)


@style("fused", "multi_head.multi_head_attention")
def multi_head_fused(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """One product for queries, keys and values."""
    batch, n, _ = X.shape
    packed = X @ np.hstack([W_Q, W_K, W_V])  # (batch, n, 3 * d_model)
    Q, K, V = packed.reshape(batch, n, 3, num_heads, -1).transpose(2, 0, 3, 1, 4)
    return _features(attention(Q, K, V, mask)[0]) @ W_O


@style("heads-major batch", "multi_head.multi_head_attention")
def multi_head_heads_major(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Heads folded into the batch, all sequences of a head in a row; masks tiled to match."""
    batch = len(X)
    Q, K, V = (np.concatenate(np.split(X @ W, num_heads, axis=-1)) for W in (W_Q, W_K, W_V))
    if mask is not None and mask.ndim == 4:
        mask = np.tile(mask[:, 0], (num_heads, 1, 1))  # (heads * batch, n, n)
    heads = attention(Q, K, V, mask)[0]  # (heads * batch, n, d_k)
    return np.concatenate([heads[i * batch : (i + 1) * batch] for i in range(num_heads)], axis=-1) @ W_O


@style("batch-major batch", "multi_head.multi_head_attention")
def multi_head_batch_major(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Heads folded into the batch, all heads of a sequence in a row; masks repeated to match."""
    batch, n, _ = X.shape
    Q, K, V = (_heads(X @ W, num_heads).reshape(batch * num_heads, n, -1) for W in (W_Q, W_K, W_V))
    if mask is not None and mask.ndim == 4:
        mask = np.repeat(mask[:, 0], num_heads, axis=0)  # (batch * heads, n, n)
    heads = attention(Q, K, V, mask)[0].reshape(batch, num_heads, n, -1)
    return _features(heads) @ W_O


@style("merged weights", "multi_head.multi_head_attention")
def multi_head_merged_weights(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """W_Q W_Kᵀ and W_V W_O, multiplied beforehand for each head; no query, key or value is ever made."""
    d_k = X.shape[-1] // num_heads
    out = np.zeros_like(X)
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        looks_for, brings = W_Q[:, own] @ W_K[:, own].T, W_V[:, own] @ W_O[own]  # (d_model, d_model)
        scores = (X @ looks_for @ X.swapaxes(1, 2) / np.sqrt(d_k))[:, None]  # (batch, 1, n, n)
        weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))[:, 0]
        out = out + weights @ (X @ brings)
    return out


@style("heads summed after W_O", "multi_head.multi_head_attention")
def multi_head_heads_summed_after_w_o(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Each head goes through its own block of rows of W_O, and then they are added."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    heads, _ = attention(Q, K, V, mask)
    blocks = W_O.reshape(num_heads, -1, W_O.shape[-1])  # (heads, d_k, d_model)
    return (heads @ blocks).sum(axis=1)


@style("keys first", "multi_head.multi_head_attention")
def multi_head_keys_first(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """K·Qᵀ with the softmax over axis −2, transposed at the end."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    scores = K @ Q.swapaxes(-1, -2) / np.sqrt(K.shape[-1])  # (batch, heads, keys, queries)
    if mask is not None:
        scores = np.where(mask.swapaxes(-1, -2), scores, -np.inf)
    weights = softmax(scores, axis=-2)
    return _features(weights.swapaxes(-1, -2) @ V) @ W_O


@style("fourth root on both", "multi_head.multi_head_attention")
def multi_head_fourth_root(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """d_k^(−1/4) on the weights of queries and of keys."""
    root = (X.shape[-1] // num_heads) ** -0.25
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q * root, W_K * root, W_V))
    scores = Q @ K.swapaxes(-1, -2)
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return _features(weights @ V) @ W_O


@style("softmax in float32", "multi_head.multi_head_attention")
def multi_head_float32_softmax(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """The softmax in single precision inside a double precision answer."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    scores = (Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])).astype(np.float32)
    scores = scores if mask is None else np.where(mask, scores, np.float32(-np.inf))
    return _features(softmax(scores).astype(np.float64) @ V) @ W_O


@style("all in float32", "multi_head.multi_head_attention")
def multi_head_all_float32(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Everything in single precision."""
    X, W_Q, W_K, W_V, W_O = (array.astype(np.float32) for array in (X, W_Q, W_K, W_V, W_O))
    return multi_head_fused(X, W_Q, W_K, W_V, W_O, num_heads, mask)


@style("masked after the softmax, renormalised", "multi_head.multi_head_attention")
def multi_head_masked_and_renormalised(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """The mask comes after the softmax, and then the rows are made to sum to 1 again."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    weights = softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]))
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return _features(weights @ V) @ W_O


@style("added mask", "multi_head.multi_head_attention")
def multi_head_added_mask(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """The mask as a bias of 0 and −1e9, and the largest score taken off by hand."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -1e9)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return _features(exponentials @ V / exponentials.sum(axis=-1, keepdims=True)) @ W_O


@style("online", "multi_head.multi_head_attention")
def multi_head_online(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Keys come in tiles of two, with a running maximum and a running sum."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    largest = np.full((*scores.shape[:-1], 1), -np.inf)
    total, output = np.zeros_like(largest), np.zeros_like(Q)
    for start in range(0, K.shape[-2], 2):
        tile = scores[..., start : start + 2]
        new = np.maximum(largest, tile.max(axis=-1, keepdims=True))
        safe = np.where(np.isfinite(new), new, 0.0)
        before, exponentials = np.exp(largest - safe), np.exp(tile - safe)
        total = total * before + exponentials.sum(axis=-1, keepdims=True)
        output = output * before + exponentials @ V[..., start : start + 2, :]
        largest = new
    return _features(output / total) @ W_O


@style("query by query", "multi_head.multi_head_attention")
def multi_head_query_by_query(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Loops over sequences, queries and heads; masked keys are left out."""
    batch, n, d_model = X.shape
    d_k = d_model // num_heads
    allowed = np.broadcast_to(True if mask is None else mask, (batch, 1, n, n))
    output = np.empty_like(X)
    for b in range(batch):
        Q, K, V = X[b] @ W_Q, X[b] @ W_K, X[b] @ W_V  # (n, d_model)
        for i in range(n):
            keys = np.flatnonzero(allowed[b, 0, i])
            row = []
            for start in range(0, d_model, d_k):
                own = slice(start, start + d_k)
                scores = K[keys, own] @ Q[i, own] / d_k**0.5  # (keys,)
                exponentials = np.exp(scores - scores.max())
                row.append(exponentials @ V[keys, own] / exponentials.sum())
            output[b, i] = np.concatenate(row) @ W_O
    return output


@style("one wide product", "multi_head.multi_head_attention")
def multi_head_one_wide_product(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Queries with zeros outside their head's columns, so that full-width products give each head's scores."""
    owner = np.arange(X.shape[-1]) * num_heads // X.shape[-1]  # (d_model,), the head of each column
    own = np.arange(num_heads)[:, None] == owner  # (heads, d_model)
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = (Q[:, None] * own[:, None]) @ K.swapaxes(1, 2)[:, None] / np.sqrt(X.shape[-1] // num_heads)
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return ((weights @ V[:, None]) * own[:, None]).sum(axis=1) @ W_O


@style("contract checked", "multi_head.multi_head_attention")
def multi_head_contract_checked(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """The arguments are looked at first, and anything other than what is allowed is an error."""
    d_model = X.shape[-1]
    if any(W.shape != (d_model, d_model) for W in (W_Q, W_K, W_V, W_O)) or X.ndim != 3 or 0 in X.shape:
        raise ValueError("shapes that do not fit")
    if any(array.dtype != np.float64 for array in (X, W_Q, W_K, W_V, W_O)):
        raise TypeError("not all arrays are of dtype float64")
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    return _features(attention_contract_checked(Q, K, V, mask)[0]) @ W_O


# --- causal ------------------------------------------------------------------------------------------------


@style("prefix by prefix", "multi_head.causal_multi_head_attention")
def causal_prefix_by_prefix(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """The last row of full attention on each prefix; nothing is masked."""
    prefixes = (X[:, : i + 1] for i in range(X.shape[1]))
    rows = [multi_head_einsum(prefix, W_Q, W_K, W_V, W_O, num_heads)[:, -1] for prefix in prefixes]
    return np.stack(rows, axis=1)


@style("with a cache", "multi_head.causal_multi_head_attention")
def causal_with_a_cache(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Token by token; keys and values are kept."""
    batch, n, d_model = X.shape
    cached_keys, cached_values, rows = [], [], []
    for i in range(n):
        token = X[:, i]  # (batch, d_model)
        cached_keys.append((token @ W_K).reshape(batch, num_heads, -1))
        cached_values.append((token @ W_V).reshape(batch, num_heads, -1))
        Q = (token @ W_Q).reshape(batch, num_heads, 1, -1)
        K, V = np.stack(cached_keys, axis=2), np.stack(cached_values, axis=2)  # (batch, heads, i + 1, d_k)
        rows.append(attention(Q, K, V)[0].reshape(batch, d_model) @ W_O)
    return np.stack(rows, axis=1)


@style("lower triangle, renormalised", "multi_head.causal_multi_head_attention")
def causal_lower_triangle(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """`np.tril` after the exponential, and then the rows are divided by their sums."""
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    exponentials = np.tril(np.exp(scores - scores.max(axis=-1, keepdims=True)))
    return _features(exponentials / exponentials.sum(axis=-1, keepdims=True) @ V) @ W_O


@style("a mask for each sequence", "multi_head.causal_multi_head_attention")
def causal_mask_for_each_sequence(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """The same mask once for each sequence, and a loop over heads."""
    batch, n, _ = X.shape
    mask = np.broadcast_to(np.tri(n, dtype=bool), (batch, 1, n, n))
    return multi_head_loop_over_heads(X, W_Q, W_K, W_V, W_O, num_heads, mask)


@style("upper triangle added", "multi_head.causal_multi_head_attention")
def causal_upper_triangle_added(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """−∞ above the diagonal, added to the scores."""
    n = X.shape[1]
    bias = np.zeros((n, n))
    bias[np.triu_indices(n, 1)] = -np.inf
    Q, K, V = (_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    weights = softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]) + bias)
    return _features(weights @ V) @ W_O


# --- cross -------------------------------------------------------------------------------------------------


@style("loop over heads", "multi_head.cross_attention")
def cross_loop_over_heads(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """One head after the other, each added after its own rows of W_O."""
    d_k = X.shape[-1] // num_heads
    output = np.zeros(X.shape)
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        head, _ = attention(X @ W_Q[:, own], memory @ W_K[:, own], memory @ W_V[:, own])
        output += head @ W_O[own]
    return output


@style("einsum", "multi_head.cross_attention")
def cross_einsum(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Every product by name."""
    Q, K, V = (
        np.einsum("btd,dhk->bhtk", features, W.reshape(len(W), num_heads, -1))
        for features, W in [(X, W_Q), (memory, W_K), (memory, W_V)]
    )
    weights = softmax(np.einsum("bhnk,bhmk->bhnm", Q, K) * Q.shape[-1] ** -0.5)
    return np.einsum("bhnm,bhmk->bnhk", weights, V).reshape(X.shape) @ W_O


@style("keys and values fused", "multi_head.cross_attention")
def cross_keys_and_values_fused(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """One product for keys and values."""
    packed = memory @ np.concatenate([W_K, W_V], axis=1)  # (batch, m, 2 * d_model)
    K, V = (_heads(half, num_heads) for half in np.split(packed, 2, axis=-1))
    return _features(attention(_heads(X @ W_Q, num_heads), K, V)[0]) @ W_O


@style("self-attention under a mask", "multi_head.cross_attention")
def cross_by_a_mask(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Self-attention on both laid end to end, where only the memory may be attended to."""
    n, m = X.shape[1], memory.shape[1]
    both = np.concatenate([X, memory], axis=1)  # (batch, n + m, d_model)
    mask = np.broadcast_to(np.arange(n + m) >= n, (n + m, n + m))
    return multi_head_einsum(both, W_Q, W_K, W_V, W_O, num_heads, mask)[:, :n]


@style("sequence by sequence", "multi_head.cross_attention")
def cross_sequence_by_sequence(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """One sequence at a time, the heads as the leading axis."""
    outputs = []
    for tokens, seen in zip(X, memory, strict=True):
        Q, K, V = (
            np.stack(np.hsplit(features @ W, num_heads))  # (heads, tokens, d_k)
            for features, W in [(tokens, W_Q), (seen, W_K), (seen, W_V)]
        )
        outputs.append(np.hstack(list(attention(Q, K, V)[0])) @ W_O)
    return np.array(outputs)


# --- counting ----------------------------------------------------------------------------------------------


@style("by shapes", "multi_head.count_parameters")
def count_parameters_by_shapes(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """The shapes of all arrays, written down."""
    d_k = d_model // num_heads
    kv = (num_kv_heads or num_heads) * d_k
    shapes: list[tuple[int, ...]] = [
        (d_model, num_heads * d_k),
        (d_model, kv),
        (d_model, kv),
        (d_model, d_model),
    ]
    if bias:
        shapes += [(shape[1],) for shape in shapes]
    return int(sum(np.prod(shape) for shape in shapes))


@style("by arrays", "multi_head.count_parameters")
def count_parameters_by_arrays(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Real arrays, counted; the result is a NumPy integer."""
    kv = d_model * (num_heads if num_kv_heads is None else num_kv_heads) // num_heads
    arrays = [np.empty((d_model + bias, width), dtype=bool) for width in (d_model, kv, kv, d_model)]
    return np.sum([array.size for array in arrays])


@style("head by head", "multi_head.count_parameters")
def count_parameters_head_by_head(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Each head's columns of W_Q, W_K, W_V and its rows of W_O."""
    d_k = d_model // num_heads
    total = d_model if bias else 0  # the bias of W_O belongs to no head
    for _ in range(num_heads):
        total += d_model * d_k + d_k * d_model + (d_k if bias else 0)
    for _ in range(num_kv_heads if num_kv_heads is not None else num_heads):
        total += 2 * (d_model * d_k + (d_k if bias else 0))
    return total


@style("factored", "multi_head.attention_flops")
def attention_flops_factored(n: int, d_model: int) -> int:
    """In one product."""
    return 4 * n * d_model * (2 * d_model + n)


@style("product by product", "multi_head.attention_flops")
def attention_flops_product_by_product(n: int, d_model: int) -> int:
    """Each matrix product by its three sizes."""
    products = [(n, d_model, d_model)] * 4 + [(n, d_model, n), (n, n, d_model)]
    return sum(2 * rows * inner * columns for rows, inner, columns in products)


@style("head by head", "multi_head.attention_flops")
def attention_flops_head_by_head(n: int, d_model: int) -> int:
    """As many heads as features, each of width 1: their number does not matter."""
    each = 3 * 2 * n * d_model + 2 * n * n + 2 * n * n
    return d_model * each + 2 * n * d_model**2
