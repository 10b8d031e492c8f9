"""Mistakes in `cross_attention`."""

import numpy as np

from mha_lib import multi_head as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls import layers, one_head
from mha_lib.pitfalls.code import law, mistake, variants
from mha_lib.pitfalls.code.multi_head.combine_heads import combine_heads_without_transpose
from mha_lib.pitfalls.code.multi_head.split_heads import split_heads_without_transpose
from mha_lib.pitfalls.derived import cross_around
from mha_lib.pitfalls.evidence import POOLS, pooled

Array = np.ndarray


# --- softmax -----------------------------------------------------------------------------------------------


@mistake("input-changed-in-place", "multi_head.cross_attention")
def cross_attention_in_place(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the caller's W_Q is changed."""
    d_k = X.shape[-1] // num_heads
    W_Q /= np.sqrt(d_k)  # so that the scores need no division
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q * np.sqrt(d_k), K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


# --- scale -------------------------------------------------------------------------------------------------


@mistake("scale-by-d-model", "multi_head.cross_attention")
def cross_attention_scale_by_d_model(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the scores are divided by √d_model, the width of the layer and not of a head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    d_k, d_model = Q.shape[-1], X.shape[-1]
    heads, _ = attention(Q * np.sqrt(d_k / d_model), K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


# --- projections -------------------------------------------------------------------------------------------


@mistake("weights-applied-transposed", "multi_head.cross_attention")
def cross_attention_weights_transposed(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_Q, W_K and W_V are transposed, as if they were stored as (d_out, d_in)."""
    Q = split_heads(X @ W_Q.T, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W.T, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("value-used-as-key", "multi_head.cross_attention")
def cross_attention_value_used_as_key(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_V makes the keys as well; W_K is not used."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K = V = split_heads(memory @ W_V, num_heads)  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("queries-and-keys-swapped", "multi_head.cross_attention")
def cross_attention_queries_and_keys_swapped(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_K makes the queries and W_Q the keys."""
    Q = split_heads(X @ W_K, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_Q, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("keys-and-values-exchanged", "multi_head.cross_attention")
def cross_attention_keys_and_values_exchanged(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_V makes the keys and W_K the values."""
    return right.cross_attention(X, memory, W_Q, W_V, W_K, W_O, num_heads)


@mistake("residual-added", "multi_head.cross_attention")
def cross_attention_residual_added(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the tokens that ask are added to the output."""
    return X + right.cross_attention(X, memory, W_Q, W_K, W_V, W_O, num_heads)


@mistake("no-output-projection", "multi_head.cross_attention")
def cross_attention_no_output_projection(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are returned side by side, without W_O."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads)  # (batch, n, d_model)


@mistake("memory-ignored", "multi_head.cross_attention")
def cross_attention_memory_ignored(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: self-attention; `memory` is not used."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("cross-roles-swapped", "multi_head.cross_attention")
def cross_attention_roles_swapped(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the memory asks, and the tokens of `X` are attended to."""
    Q = split_heads(memory @ W_Q, num_heads)  # (batch, heads, m, d_k)
    K, V = (split_heads(X @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, m, d_k)
    return combine_heads(heads) @ W_O  # (batch, m, d_model)


@mistake("all-from-memory", "multi_head.cross_attention")
def cross_attention_all_from_memory(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the memory attends to itself; `X` is not used."""
    Q, K, V = (split_heads(memory @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, m, d_k)
    return combine_heads(heads) @ W_O  # (batch, m, d_model)


@mistake("values-from-input", "multi_head.cross_attention")
def cross_attention_values_from_input(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the values come from `X`; if n ≠ m they do not even fit the weights."""
    Q, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_V))  # (batch, heads, n, d_k)
    K = split_heads(memory @ W_K, num_heads)  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("memory-appended-to-input", "multi_head.cross_attention")
def cross_attention_memory_appended(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the tokens of `X` are attended to as well."""
    seen = np.concatenate([X, memory], axis=1)  # (batch, n + m, d_model)
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(seen @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, n + m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("first-memory-for-all-sequences", "multi_head.cross_attention")
def cross_attention_first_memory_for_all(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: every sequence looks at the memory of the first one."""
    return right.cross_attention(
        X, np.repeat(memory[:1], len(X), axis=0), W_Q, W_K, W_V, W_O, num_heads
    )  # (batch, n, d_model)


@mistake("memory-length-assumed", "multi_head.cross_attention")
def cross_attention_memory_length_assumed(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: keys and values are reshaped as if the memory were as long as `X`."""
    batch, n, d_model = X.shape
    d_k = d_model // num_heads
    Q, K, V = (
        (features @ W).reshape(batch, n, num_heads, d_k).transpose(0, 2, 1, 3)  # (batch, heads, n, d_k)
        for features, W in [(X, W_Q), (memory, W_K), (memory, W_V)]
    )
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("weights-returned-too", "multi_head.cross_attention")
def cross_attention_weights_returned_too(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> tuple[Array, Array]:
    """Wrong: a pair is returned in place of the output alone."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, weights = attention(Q, K, V)  # (batch, heads, n, d_k), (batch, heads, n, m)
    return combine_heads(heads) @ W_O, weights  # (batch, n, d_model), (batch, heads, n, m)


# --- heads -------------------------------------------------------------------------------------------------


@mistake("split-without-transpose", "multi_head.cross_attention")
def cross_attention_split_without_transpose(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: queries, keys and values are reshaped into heads at once, without moving an axis."""
    Q = split_heads_without_transpose(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads_without_transpose(memory @ W, num_heads) for W in (W_K, W_V))
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("merge-without-transpose", "multi_head.cross_attention")
def cross_attention_merge_without_transpose(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are reshaped into features at once, without moving an axis back."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


@mistake("heads-fold-by-reshape", "multi_head.cross_attention")
def cross_attention_fold_by_reshape(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: heads are cut and put together by reshapes that undo each other, but tokens are mixed in between."""
    Q = split_heads_without_transpose(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads_without_transpose(memory @ W, num_heads) for W in (W_K, W_V))
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


@mistake("num-heads-ignored", "multi_head.cross_attention")
def cross_attention_one_wide_head(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: one head over all features; `num_heads` has no effect."""
    heads, _ = attention(X @ W_Q, memory @ W_K, memory @ W_V)  # (batch, n, d_model)
    return heads @ W_O  # (batch, n, d_model)


# --- mistakes in one head, in a layer of such heads --------------------------------------------------------

for slug in (
    "softmax-over-queries",
    "softmax-over-heads",
    "transpose-all-axes",
    "scores-transposed",
    "keys-used-as-values",
    "no-scale",
    "scale-by-dk",
    "always-causal",
):
    mistake(slug, "multi_head.cross_attention")(cross_around(variants("single_head", "attention")[slug]))

for slug, pool in POOLS.items():
    law(slug, "multi_head.cross_attention")(pooled(pool, 6, memory=True))


# --- other forms -------------------------------------------------------------------------------------------


@mistake("weights-applied-transposed", "multi_head.cross_attention", form="all-four")
def cross_attention_all_weights_transposed(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: all four weights are transposed."""
    return right.cross_attention(X, memory, W_Q.T, W_K.T, W_V.T, W_O.T, num_heads)


@mistake("weights-applied-transposed", "multi_head.cross_attention", form="queries-and-keys")
def cross_attention_queries_and_keys_transposed(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_Q and W_K are transposed."""
    return right.cross_attention(X, memory, W_Q.T, W_K.T, W_V, W_O, num_heads)


@mistake("split-without-transpose", "multi_head.cross_attention", form="memory-only")
def cross_attention_memory_split_without_transpose(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: keys and values are reshaped into heads at once; the queries are split rightly."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (
        split_heads_without_transpose(memory @ W, num_heads) for W in (W_K, W_V)
    )  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


@mistake("memory-length-assumed", "multi_head.cross_attention", form="width-inferred")
def cross_attention_memory_length_assumed_width_inferred(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: as if the memory were as long as `X`, and the width of a head follows from that."""
    batch, n, _ = X.shape
    Q, K, V = (
        (features @ W).reshape(batch, n, num_heads, -1).transpose(0, 2, 1, 3)
        for features, W in [(X, W_Q), (memory, W_K), (memory, W_V)]
    )
    heads, _ = attention(Q, K, V)
    return combine_heads(heads) @ W_O


# --- laws of one head --------------------------------------------------------------------------------------

ITEM = "multi_head.cross_attention"
HEAD = one_head.Head(one_head.in_cross_layer)
one_head.tell(ITEM, HEAD, one_head.SOFTMAX | one_head.OF_A_LAYER | one_head.SEVERAL_ROWS, one_head.anything)
one_head.tell(
    ITEM, HEAD, one_head.SCALE_OF_A_LAYER | {"always-causal": one_head.always_causal}, one_head.anything
)
law("keepdims-forgotten", ITEM)(one_head.sums_without_axis)
law("input-changed-in-place", ITEM)(one_head.changes_only(right.cross_attention))
layers.tell(ITEM, right.cross_attention, lambda *given: [*given], layers.wrong_layers(), memory=True)
