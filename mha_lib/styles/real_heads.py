"""Right ways of writing the items of `real_heads`; some of them look wrong at first."""

from collections.abc import Mapping, Sequence

import numpy as np
from einops import rearrange

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pruning import prune_heads, pruned_attention
from mha_lib.real_heads import bert_attention
from mha_lib.styles import style

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]


def linear(x: Array, layer: Mapping[str, Array]) -> Array:
    """A linear layer as it is stored."""
    return x @ layer["weight"].T + layer["bias"]


# --- the attention -----------------------------------------------------------------------------------------


@style("by loop", "real_heads.bert_attention")
def bert_by_loop(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """One head after the other, each with its own rows of the weights."""
    d_k = len(weights["query"]["weight"]) // num_heads
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]
    outputs, maps = [], []
    for i in range(num_heads):
        rows = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (
            x @ weights[name]["weight"][rows].T + weights[name]["bias"][rows]
            for name in ("query", "key", "value")
        )
        head, weight = attention(Q, K, V, mask)
        outputs.append(head)
        maps.append(weight)
    return linear(np.concatenate(outputs, axis=-1), weights["dense"]), np.stack(maps, axis=1)


@style("without the bias of the keys", "real_heads.bert_attention")
def bert_without_the_bias_of_the_keys(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """It adds the same to all scores of a query, so it may be left out."""
    K = split_heads(x @ weights["key"]["weight"].T, num_heads)
    Q, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "value"))
    heads, maps = attention(Q, K, V, mask)
    return linear(combine_heads(heads), weights["dense"]), maps


@style("fused", "real_heads.bert_attention")
def bert_fused(x: Array, weights: Weights, num_heads: int, mask: Array | None = None) -> tuple[Array, Array]:
    """All three projections in one product, with the scale in the queries."""
    names = ("query", "key", "value")
    W = np.concatenate([weights[name]["weight"] for name in names])  # (3 * d_model, d_model)
    b = np.concatenate([weights[name]["bias"] for name in names])
    Q, K, V = rearrange(x @ W.T + b, "b n (three h d) -> three b h n d", three=3, h=num_heads)
    scores = np.einsum("bhid,bhjd->bhij", Q / Q.shape[-1] ** 0.5, K)
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -1e9)
    maps = softmax(scores)
    return linear(rearrange(maps @ V, "b h n d -> b n (h d)"), weights["dense"]), maps


@style("heads summed after their block", "real_heads.bert_attention")
def bert_heads_summed(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Each head goes through its own columns of `dense`, and the results are summed with one bias."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    heads, maps = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    blocks = np.split(weights["dense"]["weight"], num_heads, axis=1)
    return sum((heads[:, i] @ blocks[i].T for i in range(num_heads)), weights["dense"]["bias"]), maps


@style("masked after the softmax, renormalised", "real_heads.bert_attention")
def bert_masked_and_renormalised(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """The mask comes after the softmax, and then the rows are made to sum to 1 again."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    maps = softmax(Q @ K.swapaxes(2, 3) / np.sqrt(Q.shape[-1]))
    if mask is not None:
        maps = maps * mask / (maps * mask).sum(axis=-1, keepdims=True)
    return linear(combine_heads(maps @ V), weights["dense"]), maps


@style("in float32", "real_heads.bert_attention")
def bert_in_float32(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """In single precision, which the tolerance allows."""
    narrow = {
        name: {kind: array.astype(np.float32) for kind, array in pair.items()}
        for name, pair in weights.items()
    }
    return bert_attention(x.astype(np.float32), narrow, num_heads, mask)


@style("bias of the values added at the end", "real_heads.bert_attention")
def bert_value_bias_at_the_end(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Weights sum to 1, so the bias of the values passes through them unchanged and can be added behind."""
    Q, K = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key"))
    V = split_heads(x @ weights["value"]["weight"].T, num_heads)
    heads, maps = attention(Q, K, V, mask)
    return linear(combine_heads(heads) + weights["value"]["bias"], weights["dense"]), maps


@style("keys first", "real_heads.bert_attention")
def bert_keys_first(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """K·Qᵀ with the softmax over axis −2, transposed at the end."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    scores = K @ Q.swapaxes(2, 3) / np.sqrt(Q.shape[-1])  # (batch, heads, m, n)
    if mask is not None:
        allowed = np.broadcast_to(mask, scores.shape)  # n = m
        scores = np.where(allowed.swapaxes(2, 3), scores, -np.inf)
    maps = softmax(scores, axis=-2).swapaxes(2, 3)  # (batch, heads, n, m)
    return linear(combine_heads(maps @ V), weights["dense"]), maps


@style("fourth root on both", "real_heads.bert_attention")
def bert_fourth_root_on_both(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """d_k^(−1/4) on Q and on K, and a finite fill."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    root = (x.shape[-1] // num_heads) ** -0.25
    scores = (Q * root) @ (K * root).swapaxes(2, 3)
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    maps = softmax(scores)
    return linear(combine_heads(maps @ V), weights["dense"]), maps


@style("heads-major", "real_heads.bert_attention")
def bert_heads_major(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Heads and sequences share the first axis, heads first, with tiled masks."""
    (batch, n, _), names = x.shape, ("query", "key", "value")
    Q, K, V = (np.concatenate(np.split(linear(x, weights[name]), num_heads, axis=-1)) for name in names)
    if mask is not None:
        mask = np.tile(np.broadcast_to(mask, (batch, 1, n, n))[:, 0], (num_heads, 1, 1))
    heads, maps = attention(Q, K, V, mask)  # (heads * batch, n, d_k), (heads * batch, n, n)
    side_by_side = np.concatenate(np.split(heads, num_heads), axis=-1)  # (batch, n, d_model)
    return linear(side_by_side, weights["dense"]), np.stack(np.split(maps, num_heads), axis=1)


# --- where a head looks ------------------------------------------------------------------------------------


@style("by loop", "real_heads.offset_score")
def offset_by_loop(attention_weights: Array, offset: int) -> Array:
    """Entry by entry."""
    heads, n, _ = attention_weights.shape
    scores = []
    for h in range(heads):
        found = [attention_weights[h, i, i + offset] for i in range(n) if 0 <= i + offset < n]
        scores.append(sum(found) / len(found))
    return np.array(scores)


@style("by trace", "real_heads.offset_score")
def offset_by_trace(attention_weights: Array, offset: int) -> Array:
    """The trace is the sum of a diagonal."""
    count = attention_weights.shape[1] - abs(offset)
    return np.trace(attention_weights, offset, axis1=1, axis2=2) / count


@style("by mask", "real_heads.offset_score")
def offset_by_mask(attention_weights: Array, offset: int) -> Array:
    """A shifted identity picks the entries."""
    picked = np.eye(attention_weights.shape[-1], k=offset)
    return (attention_weights * picked).sum(axis=(1, 2)) / picked.sum()


@style("by indexing", "real_heads.offset_score")
def offset_by_indexing(attention_weights: Array, offset: int) -> Array:
    """Pairs of row and column numbers."""
    i = np.arange(max(0, -offset), attention_weights.shape[1] - max(0, offset))
    return attention_weights[:, i, i + offset].mean(axis=-1)


# --- single heads ------------------------------------------------------------------------------------------


@style("outputs set to 0", "real_heads.keep_heads")
def keep_by_zeroing_heads(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """The outputs of silent heads become 0."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    silent = [i for i in range(num_heads) if i not in keep]
    heads[:, silent] = 0.0
    return linear(combine_heads(heads), weights["dense"])


@style("values set to 0", "real_heads.keep_heads")
def keep_by_zeroing_values(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """The values of silent heads become 0, weight and bias."""
    kept = np.repeat([float(i in keep) for i in range(num_heads)], x.shape[-1] // num_heads)
    value = {"weight": weights["value"]["weight"] * kept[:, None], "bias": weights["value"]["bias"] * kept}
    return bert_attention(x, {**weights, "value": value}, num_heads)[0]


@style("by adding", "real_heads.keep_heads")
def keep_by_adding(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """What the kept heads add, one by one, and the bias."""
    d_k = x.shape[-1] // num_heads
    output = np.zeros(x.shape) + weights["dense"]["bias"]
    for i in keep:
        rows = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (
            x @ weights[name]["weight"][rows].T + weights[name]["bias"][rows]
            for name in ("query", "key", "value")
        )
        output += attention(Q, K, V)[0] @ weights["dense"]["weight"][:, rows].T
    return output


@style("by subtracting", "real_heads.keep_heads")
def keep_by_subtracting(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """The full output without what the silent heads add."""
    silent = [i for i in range(num_heads) if i not in keep]
    added = keep_by_adding(x, weights, num_heads, silent) - weights["dense"]["bias"]
    return bert_attention(x, weights, num_heads)[0] - added


@style("by pruning", "real_heads.keep_heads")
def keep_by_pruning(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """The silent heads are cut out; a constant feature carries the biases."""
    ones = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=-1)  # (batch, n, d_model + 1)
    W = [
        np.vstack([weights[name]["weight"].T, weights[name]["bias"]]) for name in ("query", "key", "value")
    ]  # (d_model + 1, d_model) each
    silent = [i for i in range(num_heads) if i not in keep]
    pruned = prune_heads(W[0], W[1], W[2], weights["dense"]["weight"].T, num_heads, silent)
    return pruned_attention(ones, *pruned) + weights["dense"]["bias"]


# --- importance --------------------------------------------------------------------------------------------


@style("by what is added", "real_heads.head_importance")
def importance_by_what_is_added(x: Array, weights: Weights, num_heads: int) -> Array:
    """What a head adds is how far the output moves without it."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    blocks = rearrange(weights["dense"]["weight"], "out (h d) -> h d out", h=num_heads)
    return np.linalg.norm(heads @ blocks, axis=-1).mean(axis=(0, 2))


@style("by loop", "real_heads.head_importance")
def importance_by_loop(x: Array, weights: Weights, num_heads: int) -> Array:
    """Head by head and token by token."""
    full = keep_by_adding(x, weights, num_heads, range(num_heads))
    result = np.zeros(num_heads)
    for head in range(num_heads):
        without = keep_by_subtracting(x, weights, num_heads, [i for i in range(num_heads) if i != head])
        for one, other in zip(full.reshape(-1, x.shape[-1]), without.reshape(-1, x.shape[-1]), strict=True):
            result[head] += sum((one - other) ** 2) ** 0.5
    return result / (len(x) * x.shape[1])


@style("by Gram matrix", "real_heads.head_importance")
def importance_by_gram_matrix(x: Array, weights: Weights, num_heads: int) -> Array:
    """The length of W·a is the root of a·WᵀW·a."""
    Q, K, V = (split_heads(linear(x, weights[name]), num_heads) for name in ("query", "key", "value"))
    heads = attention(Q, K, V)[0]
    blocks = weights["dense"]["weight"].T.reshape(num_heads, -1, x.shape[-1])  # (heads, d_k, d_model)
    gram = blocks @ blocks.swapaxes(1, 2)  # (heads, d_k, d_k)
    return np.sqrt(np.einsum("bhnd,hde,bhne->bhn", heads, gram, heads)).mean(axis=(0, 2))
