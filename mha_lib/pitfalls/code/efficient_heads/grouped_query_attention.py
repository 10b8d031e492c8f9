"""Mistakes in `grouped_query_attention`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import mistake, variants
from mha_lib.pitfalls.pieces import FURTHER_PIECES, PARTLY_SPLIT, PIECES, projected, register

Array = np.ndarray
Function = Callable[..., Any]


@mistake("kv-tiled", "efficient_heads.grouped_query_attention")
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


@mistake("kv-not-repeated", "efficient_heads.grouped_query_attention")
def grouped_kv_not_repeated(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: NumPy stretches one key head over all query heads, but not two or three."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("kv-repeated-on-sequence-axis", "efficient_heads.grouped_query_attention")
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


@mistake("kv-repeated-on-feature-axis", "efficient_heads.grouped_query_attention")
def grouped_kv_repeated_on_feature_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: every single feature is repeated before the heads are split."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    group = num_heads // num_kv_heads
    K = split_heads(np.repeat(X @ W_K, group, axis=-1), num_heads)  # (batch, num_heads, n, d_k)
    V = split_heads(np.repeat(X @ W_V, group, axis=-1), num_heads)  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-repeated-too-often", "efficient_heads.grouped_query_attention")
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


@mistake("kv-first-head-for-all", "efficient_heads.grouped_query_attention")
def grouped_kv_first_head_for_all(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all query heads use key head 0."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)[:, :1]  # (batch, 1, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)[:, :1]  # (batch, 1, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-index-by-number-of-heads", "efficient_heads.grouped_query_attention")
def grouped_kv_index_by_number_of_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: query head i uses key head i // num_kv_heads, and there may be no such head."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    shared = np.arange(num_heads) // num_kv_heads  # (num_heads,)
    K = split_heads(X @ W_K, num_kv_heads)[:, shared]  # (batch, num_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)[:, shared]  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-averaged", "efficient_heads.grouped_query_attention")
def grouped_kv_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all query heads use the mean of the key heads."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads).mean(axis=1, keepdims=True)  # (batch, 1, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads).mean(axis=1, keepdims=True)  # (batch, 1, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("kv-split-into-query-heads", "efficient_heads.grouped_query_attention")
def grouped_kv_split_into_query_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the few keys are cut into as many heads as there are queries, so that they are too narrow."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_heads)  # (batch, num_heads, n, less than d_k)
    V = split_heads(X @ W_V, num_heads)  # (batch, num_heads, n, less than d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("kv-values-not-repeated", "efficient_heads.grouped_query_attention")
def grouped_kv_values_not_repeated(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the keys are repeated, the values are not."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K = split_heads(X @ W_K, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    V = split_heads(X @ W_V, num_kv_heads)  # (batch, num_kv_heads, n, d_k)
    K = np.repeat(K, num_heads // num_kv_heads, axis=1)  # (batch, num_heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("scale-by-kv-width", "efficient_heads.grouped_query_attention")
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


def repeated(heads: Array, num_heads: int) -> Array:
    """Each of the few heads for its group of query heads, `(batch, num_heads, n, d_k)`."""
    return np.repeat(heads, num_heads // heads.shape[1], axis=1)


def grouped_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
    keys: Function = repeated,
    values: Function = repeated,
) -> Function:
    """`grouped_query_attention` made of these pieces, of which one is wrong, or those of keys and values."""

    def grouped_query_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
    ) -> Any:
        Q = split(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
        K, V = (split(X @ W, num_kv_heads) for W in (W_K, W_V))  # (batch, num_kv_heads, n, d_k)
        K, V = keys(K, num_heads), values(V, num_heads)  # (batch, num_heads, n, d_k)
        return project(combine(attend(Q, K, V)[0]), W_O)  # (batch, n, d_model)

    grouped_query_attention.__doc__ = wrong.__doc__
    return grouped_query_attention


@mistake("input-changed-in-place", "efficient_heads.grouped_query_attention")
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


wrong = variants("single_head", "attention")["always-causal"]
mistake("always-causal", "efficient_heads.grouped_query_attention")(grouped_from(wrong, attend=wrong))

for slug, (piece, wrong) in PIECES.items():
    mistake(slug, "efficient_heads.grouped_query_attention")(grouped_from(wrong, **{piece: wrong}))


# --- forms -------------------------------------------------------------------------------------------------


def attention_by_einsum(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Right; if the numbers of heads do not agree, the error is another one."""
    scores = np.einsum("bhnd,bhmd->bhnm", Q, K) / np.sqrt(Q.shape[-1])
    weights = softmax(scores)
    return np.einsum("bhnm,bhmd->bhnd", weights, V), weights


def as_they_are(heads: Array, num_heads: int) -> Array:
    """Wrong: the few heads."""
    return heads


def tiled(heads: Array, num_heads: int) -> Array:
    """Wrong: all heads, again and again."""
    return np.tile(heads, (1, num_heads // heads.shape[1], 1, 1))


def the_first(heads: Array, num_heads: int) -> Array:
    """Wrong: the first head for all."""
    return heads[:, :1]


def the_last(heads: Array, num_heads: int) -> Array:
    """Wrong: the last head for all."""
    return heads[:, -1:]


def averaged(heads: Array, num_heads: int) -> Array:
    """Wrong: the mean of the heads for all."""
    return heads.mean(axis=1, keepdims=True)


def summed(heads: Array, num_heads: int) -> Array:
    """Wrong: the sum of the heads for all."""
    return heads.sum(axis=1, keepdims=True)


def by_number_of_heads(heads: Array, num_heads: int) -> Array:
    """Wrong: head i // num_kv_heads."""
    return heads[:, np.arange(num_heads) // heads.shape[1]]


def by_number_of_heads_clipped(heads: Array, num_heads: int) -> Array:
    """Wrong: head i // num_kv_heads, or the last if there are not so many."""
    return heads[:, np.minimum(np.arange(num_heads) // heads.shape[1], heads.shape[1] - 1)]


def by_place_in_group(heads: Array, num_heads: int) -> Array:
    """Wrong: the head whose number is the query head's place in its group."""
    return heads[:, np.arange(num_heads) % (num_heads // heads.shape[1])]


def by_own_number(heads: Array, num_heads: int) -> Array:
    """Wrong: head i, which there may not be."""
    return np.stack([heads[:, i] for i in range(num_heads)], axis=1)


def along(axis: int) -> Function:
    """Repeated along another axis than that of the heads."""
    return lambda heads, num_heads: np.repeat(heads, num_heads // heads.shape[1], axis=axis)


def numbers_repeated(heads: Array, num_heads: int) -> Array:
    """Wrong: every single number is repeated, and then cut into heads."""
    batch, _, n, d_k = heads.shape
    return np.repeat(heads, num_heads // heads.shape[1]).reshape(batch, num_heads, n, d_k)


def features_repeated(heads: Array, num_heads: int) -> Array:
    """Wrong: single features are repeated."""
    group = num_heads // heads.shape[1]
    return split_heads(np.repeat(combine_heads(heads), group, axis=-1), num_heads)


def split_by_reshape(heads: Array, num_heads: int) -> Array:
    """Wrong: split by a reshape alone; then repeated."""
    batch, _, n, d_k = heads.shape
    return repeated(combine_heads(heads).reshape(batch, -1, n, d_k), num_heads)


for name, wrong in {
    "kv-tiled": tiled,
    "kv-first-head-for-all": the_first,
    "kv-averaged": averaged,
    "kv-index-by-number-of-heads": by_number_of_heads,
    "kv-repeated-on-feature-axis": features_repeated,
    "split-without-transpose": split_by_reshape,
}.items():
    mistake(name, "efficient_heads.grouped_query_attention", form="keys")(grouped_from(wrong, keys=wrong))
    mistake(name, "efficient_heads.grouped_query_attention", form="values")(grouped_from(wrong, values=wrong))

for name, wrong in {
    "kv-first-head-for-all/last": the_last,
    "kv-averaged/summed": summed,
    "kv-index-by-number-of-heads/clipped": by_number_of_heads_clipped,
    "kv-index-by-number-of-heads/remainder": by_place_in_group,
    "kv-not-repeated/in-a-loop": by_own_number,
    "kv-repeated-on-sequence-axis/batch": along(0),
    "kv-repeated-on-sequence-axis/features": along(3),
    "kv-repeated-on-sequence-axis/no-axis": numbers_repeated,
    "split-without-transpose/keys-and-values": split_by_reshape,
}.items():
    slug, _, form = name.partition("/")
    mistake(slug, "efficient_heads.grouped_query_attention", form=form)(
        grouped_from(wrong, keys=wrong, values=wrong)
    )

for slug, keys, values in (
    ("kv-not-repeated", as_they_are, as_they_are),
    ("kv-values-not-repeated", repeated, as_they_are),
    ("kv-repeated-on-sequence-axis", along(2), along(2)),
):
    mistake(slug, "efficient_heads.grouped_query_attention", form="einsum")(
        grouped_from(keys, attend=attention_by_einsum, keys=keys, values=values)
    )

of_queries = {name: piece for name, piece in PARTLY_SPLIT.items() if name.endswith("/queries")}
register({**FURTHER_PIECES, **of_queries}, "efficient_heads.grouped_query_attention", grouped_from)


@mistake("kv-split-into-query-heads", "efficient_heads.grouped_query_attention", form="queries")
def grouped_queries_split_into_kv_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the queries are cut into as few heads as there are keys, so that they are too wide."""
    Q, K, V = (split_heads(X @ W, num_kv_heads) for W in (W_Q, W_K, W_V))
    return combine_heads(attention(Q, K, V)[0]) @ W_O


@mistake("scale-by-kv-width", "efficient_heads.grouped_query_attention", form="in-the-reshape")
def grouped_reshaped_by_kv_width(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: the key heads are taken to be d_model / num_kv_heads wide."""
    batch, n, d_model = X.shape
    shape = (batch, n, num_kv_heads, d_model // num_kv_heads)
    Q = split_heads(X @ W_Q, num_heads)  # (batch, num_heads, n, d_k)
    K, V = ((X @ W).reshape(shape).transpose(0, 2, 1, 3) for W in (W_K, W_V))
    return combine_heads(attention(Q, repeated(K, num_heads), repeated(V, num_heads))[0]) @ W_O


def scaled_by(width: Function) -> Function:
    """`grouped_query_attention` whose scores are divided by the root of another width."""

    def grouped_query_attention(
        X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
    ) -> Any:
        d_k = X.shape[-1] / num_heads
        factor = np.sqrt(d_k / width(X.shape[-1], W_K.shape[1], num_heads))
        W_Q = W_Q * factor  # `attention` divides by √d_k
        return grouped_from(width)(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads)

    return grouped_query_attention


for name, width in {
    "scale-by-kv-width/all-keys": lambda d_model, columns, num_heads: columns,
    "scale-by-kv-width/keys-by-heads": lambda d_model, columns, num_heads: columns / num_heads,
}.items():
    slug, _, form = name.partition("/")
    mistake(slug, "efficient_heads.grouped_query_attention", form=form)(scaled_by(width))


@mistake("num-heads-ignored", "efficient_heads.grouped_query_attention", form="one-wide-head")
def grouped_one_wide_head(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, num_kv_heads: int
) -> Array:
    """Wrong: all heads in one."""
    K, V = (combine_heads(repeated(split_heads(X @ W, num_kv_heads), num_heads)) for W in (W_K, W_V))
    return attention(X @ W_Q, K, V)[0] @ W_O  # (batch, n, d_model)
