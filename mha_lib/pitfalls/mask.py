"""Mistakes in making masks and in applying them.

Not here, since no allowed input shows them: filling masked scores with −1e9 or with the lowest finite number
(kept scores lie far above both in float64), and masking after the softmax with the rows divided by their sum
again, which is right as long as the masked scores are not much larger than the kept ones.
"""

from typing import Any

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.masks import causal_mask
from mha_lib.pitfalls.derived import causal_around, causal_under, cross_around, multi_head_around
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray

# --- applying a mask ---------------------------------------------------------------------------------------


def attention_mask_no_effect(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: `np.where` returns a new array, which nobody keeps."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_inverted(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: True is taken to mean "hide"."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_epsilon_in_denominator(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: masked weights are removed and the rest is renormalised, with 1e-9 added to a sum that may be less."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    weights = softmax(scores)  # (..., n, m)
    if mask is not None:
        weights = np.where(mask, weights, 0.0)
        weights = weights / (np.sum(weights, axis=-1, keepdims=True) + 1e-9)
    return weights @ V, weights


def attention_mask_after_softmax(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: weights are removed after the softmax, so the rest sums to less than 1."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    weights = softmax(scores)  # (..., n, m)
    if mask is not None:
        weights = weights * mask
    return weights @ V, weights


def attention_masked_scores_zero(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: masked scores become 0, and exp(0) = 1 is a weight like any other."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = scores * mask
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_fill_tiny(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: −1e-9 is a tiny number, not a large negative one."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -1e-9)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_fill_with_smallest_score(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the smallest score is still a score."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, np.min(scores))
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_fill_not_negative_enough(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: a row of kept scores may lie below −1e4."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(mask, scores, -1e4)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_added_as_0_1(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the mask is added as 0 and 1, which moves a score by 1 only."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = scores + mask
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_zero_times_infinity(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: for kept scores this adds 0 · (−inf), which is NaN."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = scores + (1 - mask) * -np.inf
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_none_not_handled(Q: Array, K: Array, V: Array, mask: Any = None) -> tuple[Array, Array]:
    """Wrong: for `np.where`, None is as good as False."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_truth_value(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: an array with more than one entry is neither true nor false."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_mask_transposed(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the mask's queries and keys are exchanged."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None:
        scores = np.where(np.swapaxes(mask, -2, -1), scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_first_mask_for_all_sequences(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: every sequence gets the mask of the first one."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is not None and mask.ndim == 4:
        mask = mask[0, 0]  # (n, m)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


def attention_always_causal(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: without a mask, later keys are hidden all the same."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (..., n, m)
    if mask is None:
        mask = np.tril(np.ones(scores.shape[-2:], dtype=bool))  # (n, m)
    scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)  # (..., n, m)
    return weights @ V, weights


# --- causal masks ------------------------------------------------------------------------------------------


def causal_mask_inverted(n: int, m: int | None = None) -> Array:
    """Wrong: True where a key is to be hidden."""
    m = n if m is None else m
    return np.arange(m) > np.arange(n)[:, None] + (m - n)  # (n, m)


def causal_mask_transposed(n: int, m: int | None = None) -> Array:
    """Wrong: a query sees itself and what comes later."""
    m = n if m is None else m
    return np.arange(m) >= np.arange(n)[:, None] + (m - n)  # (n, m)


def causal_mask_hides_self(n: int, m: int | None = None) -> Array:
    """Wrong: a query does not see its own position."""
    m = n if m is None else m
    return np.arange(m) < np.arange(n)[:, None] + (m - n)  # (n, m)


def causal_mask_sees_next(n: int, m: int | None = None) -> Array:
    """Wrong: a query sees one position too many."""
    m = n if m is None else m
    return np.arange(m) <= np.arange(n)[:, None] + (m - n) + 1  # (n, m)


def causal_mask_top_left(n: int, m: int | None = None) -> Array:
    """Wrong: the first query is lined up with the first key."""
    m = n if m is None else m
    return np.tril(np.ones((n, m), dtype=bool))  # (n, m)


def causal_mask_offset_reversed(n: int, m: int | None = None) -> Array:
    """Wrong: the sign of the offset m − n is turned around."""
    m = n if m is None else m
    return np.arange(m) <= np.arange(n)[:, None] - (m - n)  # (n, m)


def causal_mask_square_assumed(n: int, m: int | None = None) -> Array:
    """Wrong: `m` is not used."""
    return np.tril(np.ones((n, n), dtype=bool))  # (n, n)


def causal_mask_shape_transposed(n: int, m: int | None = None) -> Array:
    """Wrong: keys in the rows, queries in the columns."""
    m = n if m is None else m
    return np.arange(m)[:, None] <= np.arange(n) + (m - n)  # (m, n)


def causal_mask_with_extra_axes(n: int, m: int | None = None) -> Array:
    """Wrong: axes for a batch and for heads are added."""
    m = n if m is None else m
    return np.tril(np.ones((1, 1, n, m), dtype=bool), k=m - n)  # (1, 1, n, m)


def causal_mask_not_boolean(n: int, m: int | None = None) -> Array:
    """Wrong: numbers 0.0 and 1.0."""
    m = n if m is None else m
    return np.tril(np.ones((n, m)), k=m - n)  # (n, m)


def causal_mask_additive(n: int, m: int | None = None) -> Array:
    """Wrong: 0 where a key is kept and −inf where it is hidden."""
    m = n if m is None else m
    keep = np.tril(np.ones((n, m), dtype=bool), k=m - n)  # (n, m)
    return np.where(keep, 0.0, -np.inf)


# --- padding masks -----------------------------------------------------------------------------------------


def padding_mask_inverted(lengths: Array, max_len: int) -> Array:
    """Wrong: True for padding."""
    return np.arange(max_len) >= np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)


def padding_mask_off_by_one(lengths: Array, max_len: int) -> Array:
    """Wrong: `<=` keeps the first padding token."""
    return np.arange(max_len) <= np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)


def padding_mask_hides_last_token(lengths: Array, max_len: int) -> Array:
    """Wrong: the last real token is hidden."""
    return np.arange(max_len) < np.asarray(lengths)[:, None, None, None] - 1  # (batch, 1, 1, max_len)


def padding_mask_on_the_left(lengths: Array, max_len: int) -> Array:
    """Wrong: the padding is taken to come first."""
    padding = max_len - np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, 1)
    return np.arange(max_len) >= padding  # (batch, 1, 1, max_len)


def padding_mask_without_broadcast_axes(lengths: Array, max_len: int) -> Array:
    """Wrong: no axes for heads and queries."""
    return np.arange(max_len) < np.asarray(lengths)[:, None]  # (batch, max_len)


def padding_mask_batch_on_head_axis(lengths: Array, max_len: int) -> Array:
    """Wrong: one axis too few, so that the batch lines up with the heads."""
    return np.arange(max_len) < np.asarray(lengths)[:, None, None]  # (batch, 1, max_len)


def padding_mask_on_query_axis(lengths: Array, max_len: int) -> Array:
    """Wrong: the queries are masked, not the keys."""
    return np.arange(max_len)[:, None] < np.asarray(lengths)[:, None, None, None]  # (batch, 1, max_len, 1)


def padding_mask_of_queries_too(lengths: Array, max_len: int) -> Array:
    """Wrong: padding queries are left with no key at all."""
    keep = np.arange(max_len) < np.asarray(lengths)[:, None]  # (batch, max_len)
    return keep[:, None, :, None] & keep[:, None, None, :]  # (batch, 1, max_len, max_len)


def padding_mask_max_len_ignored(lengths: Array, max_len: int) -> Array:
    """Wrong: as wide as the longest sequence, whatever `max_len` says."""
    longest = np.max(lengths)
    return np.arange(longest) < np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, longest)


def padding_mask_not_boolean(lengths: Array, max_len: int) -> Array:
    """Wrong: numbers 0.0 and 1.0."""
    keep = np.arange(max_len) < np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)
    return keep.astype(float)


def padding_mask_additive(lengths: Array, max_len: int) -> Array:
    """Wrong: 0 where a key is kept and −inf where it is hidden."""
    keep = np.arange(max_len) < np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, max_len)
    return np.where(keep, 0.0, -np.inf)


# --- causal and padding together ---------------------------------------------------------------------------


def decoder_mask_or_combined(n: int, keep: Array | None = None) -> Array:
    """Wrong: `or` lets a key through that one of the two masks hides."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal | keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_padding_replaces_causal(n: int, keep: Array | None = None) -> Array:
    """Wrong: with `keep`, only the padding is hidden."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else keep[:, None, None, :]  # (batch, 1, 1, n)


def decoder_mask_causal_missing(n: int, keep: Array | None = None) -> Array:
    """Wrong: the future is never hidden."""
    return np.ones((n, n), dtype=bool) if keep is None else keep[:, None, None, :]  # (batch, 1, 1, n)


def decoder_mask_padding_missing(n: int, keep: Array | None = None) -> Array:
    """Wrong: `keep` is not used."""
    return causal_mask(n)  # (n, n)


def decoder_mask_padding_on_query_axis(n: int, keep: Array | None = None) -> Array:
    """Wrong: padding hides queries in place of keys."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & keep[:, None, :, None]  # (batch, 1, n, n)


def decoder_mask_of_queries_too(n: int, keep: Array | None = None) -> Array:
    """Wrong: padding queries are left with no key at all."""
    causal = causal_mask(n)  # (n, n)
    if keep is None:
        return causal
    return causal & keep[:, None, None, :] & keep[:, None, :, None]  # (batch, 1, n, n)


def decoder_mask_batch_on_head_axis(n: int, keep: Array | None = None) -> Array:
    """Wrong: one axis too few, so that the batch lines up with the heads."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & keep[:, None, :]  # (batch, n, n)


def decoder_mask_first_for_all_sequences(n: int, keep: Array | None = None) -> Array:
    """Wrong: every sequence gets the padding of the first one."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & keep[0]  # (n, n)


def decoder_mask_keep_inverted(n: int, keep: Array | None = None) -> Array:
    """Wrong: `keep` is taken to mark the padding."""
    causal = causal_mask(n)  # (n, n)
    return causal if keep is None else causal & ~keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_inverted(n: int, keep: Array | None = None) -> Array:
    """Wrong: True where a key is to be hidden."""
    causal = causal_mask(n)  # (n, n)
    return ~causal if keep is None else ~(causal & keep[:, None, None, :])  # (batch, 1, n, n)


def decoder_mask_causal_transposed(n: int, keep: Array | None = None) -> Array:
    """Wrong: a query sees itself and what comes later."""
    later = causal_mask(n).T  # (n, n)
    return later if keep is None else later & keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_causal_hides_self(n: int, keep: Array | None = None) -> Array:
    """Wrong: a query does not see its own position."""
    earlier = np.tril(np.ones((n, n), dtype=bool), k=-1)  # (n, n)
    return earlier if keep is None else earlier & keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_causal_sees_next(n: int, keep: Array | None = None) -> Array:
    """Wrong: a query sees one position too many."""
    causal = np.tril(np.ones((n, n), dtype=bool), k=1)  # (n, n)
    return causal if keep is None else causal & keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_none_not_handled(n: int, keep: Any = None) -> Array:
    """Wrong: None has no axes to add."""
    return causal_mask(n) & keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_not_boolean(n: int, keep: Array | None = None) -> Array:
    """Wrong: numbers 0.0 and 1.0."""
    causal = np.tril(np.ones((n, n)))  # (n, n)
    return causal if keep is None else causal * keep[:, None, None, :]  # (batch, 1, n, n)


def decoder_mask_additive(n: int, keep: Array | None = None) -> Array:
    """Wrong: 0 where a key is kept and −inf where it is hidden."""
    allowed = causal_mask(n)  # (n, n)
    if keep is not None:
        allowed = allowed & keep[:, None, None, :]  # (batch, 1, n, n)
    return np.where(allowed, 0.0, -np.inf)


# --- masks in a layer of several heads ---------------------------------------------------------------------


def multi_head_attention_mask_repeated_in_wrong_order(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: heads are folded into the batch sequence by sequence, but the masks are repeated head by head."""
    batch, n, d_model = X.shape
    fold = (batch * num_heads, n, d_model // num_heads)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    Q, K, V = (x.reshape(fold) for x in (Q, K, V))  # (batch * heads, n, d_k)
    if mask is not None and mask.ndim == 4:
        mask = np.tile(mask[:, 0], (num_heads, 1, 1))  # (heads * batch, n, n)
    heads, _ = attention(Q, K, V, mask)  # (batch * heads, n, d_k)
    heads = heads.reshape(batch, num_heads, n, d_model // num_heads)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_mask_batch_on_head_axis(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: without its axis of size 1, the mask's batch lines up with the heads."""
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]  # (batch, n, n)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_mask_axis_kept_in_loop(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the loop over heads has no axis of heads, but the mask still has."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads = []
    for i in range(num_heads):
        head, _ = attention(Q[:, i], K[:, i], V[:, i], mask)
        heads.append(head)  # (batch, batch, n, d_k), if each sequence has a mask
    return np.concatenate(heads, axis=-1) @ W_O


def multi_head_attention_mask_for_first_head(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: only head 0 is masked."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    if mask is not None:
        first = np.arange(num_heads)[:, None, None] == 0  # (heads, 1, 1)
        mask = mask | ~first  # (heads, n, n) or (batch, heads, n, n)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def causal_multi_head_attention_missing(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: nothing is hidden."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def causal_multi_head_attention_size_from_batch(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: `len(X)` counts sequences, not tokens."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, causal_mask(len(X)))  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


PITFALLS = (
    Pitfall(
        slug="mask-no-effect",
        title="The mask has no effect",
        symptom="The result is the same with and without a mask.",
        reason="You do not use the mask, or you compute the masked scores and then go on with the unmasked ones: "
        "neither `np.where` nor PyTorch's `masked_fill` changes anything in place.",
        fix="Keep what comes back: `scores = np.where(mask, scores, -np.inf)`, or in PyTorch "
        "`scores = scores.masked_fill(~mask, -torch.inf)`.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
        variants={
            "single_head.attention": attention_mask_no_effect,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_no_effect),
        },
    ),
    Pitfall(
        slug="mask-inverted",
        title="True and False exchanged",
        symptom="Each query sees exactly what it should not; a query that sees everything gets NaN.",
        reason="You use True for what is to be hidden, while here True means: may attend.",
        fix="Keep a score where the mask is True, and hide it where the mask is False.",
        passes=("shape", "boolean", "no mask"),
        variants={
            "single_head.attention": attention_mask_inverted,
            "single_head.causal_mask": causal_mask_inverted,
            "single_head.padding_mask": padding_mask_inverted,
            "single_head.decoder_mask": decoder_mask_inverted,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_inverted),
            "multi_head.causal_multi_head_attention": causal_under(causal_mask_inverted),
        },
    ),
    Pitfall(
        slug="mask-after-softmax",
        title="Masked after the softmax",
        symptom="Masked keys get weight 0, but the weights of a query sum to less than 1.",
        reason="You remove weights after they were shared out, so what the masked keys had taken is lost.",
        fix="Set the masked scores to −inf before the softmax.",
        passes=("shape", "finite", "masked weights are 0", "no mask", "all-True mask"),
        variants={
            "single_head.attention": attention_mask_after_softmax,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_after_softmax),
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_around(attention_mask_after_softmax)
            ),
        },
    ),
    Pitfall(
        slug="epsilon-in-denominator",
        title="A small number added to the sum of the kept weights",
        symptom="Where a masked key fits a query far better than all kept ones, the weights sum to less than 1.",
        reason="You renormalise after the mask and add a small number to the sum, but where a masked score lies 21 "
        "above the kept ones their weights sum to less than 1e-9, so the small number rules.",
        fix="Mask the scores before the softmax, or divide by the sum alone.",
        passes=("shape", "finite", "masked weights are 0", "no mask", "all-True mask"),
        variants={"single_head.attention": attention_epsilon_in_denominator},
    ),
    Pitfall(
        slug="masked-scores-zero",
        title="Masked scores set to 0",
        symptom="Masked keys still get weight, often more than kept keys with a negative score.",
        reason="Your masked scores become 0 or something tiny, such as −1e-9, but exp(0) = 1, so a masked key "
        "still gets its share.",
        fix="Set the masked scores to −inf, whose exponential is 0.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
        variants={
            "single_head.attention": attention_masked_scores_zero,
            "multi_head.multi_head_attention": multi_head_around(attention_masked_scores_zero),
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_around(attention_masked_scores_zero)
            ),
        },
    ),
    Pitfall(
        slug="mask-fill-tiny",
        title="−1e-9 in place of −1e9",
        symptom="Masked keys get weight as if their score were 0.",
        reason="You fill with −1e-9, which is almost 0, and exp(0) = 1 still gets its share.",
        fix="Fill with `-np.inf`, which cannot be mistyped into something small.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
        variants={
            "single_head.attention": attention_mask_fill_tiny,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_fill_tiny),
        },
    ),
    Pitfall(
        slug="mask-fill-with-smallest-score",
        title="Masked scores set to the smallest score",
        symptom="Masked keys keep a small weight.",
        reason="You fill with the smallest score that occurs, which is a score like any other and gets its share.",
        fix="Fill with `-np.inf`.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
        variants={
            "single_head.attention": attention_mask_fill_with_smallest_score,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_fill_with_smallest_score),
        },
    ),
    Pitfall(
        slug="mask-fill-not-negative-enough",
        title="Masked scores set to −1e4",
        symptom="Right in most tests; a query whose kept scores all lie below −1e4 attends to masked keys only.",
        reason="You fill with −1e4, which is the largest score of a row whose kept scores lie lower.",
        fix="Fill with −inf, below which no score can lie.",
        passes=(
            "shape",
            "finite",
            "rows sum to 1",
            "small logits",
            "no mask",
            "all-True mask",
            "masked weights are 0",
        ),
        variants={
            "single_head.attention": attention_mask_fill_not_negative_enough,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_fill_not_negative_enough),
        },
    ),
    Pitfall(
        slug="mask-added-as-0-1",
        title="The mask added as 0 and 1",
        symptom="Masked keys lose a little weight, by a factor e before the rows are normalised.",
        reason="You add 1 to the kept scores and 0 to the others, which prefers the kept ones but hides nothing.",
        fix="Put −inf in the place of the masked scores, with `np.where` or PyTorch's `masked_fill`; do not add "
        "the mask.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
        variants={
            "single_head.attention": attention_mask_added_as_0_1,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_added_as_0_1),
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_around(attention_mask_added_as_0_1)
            ),
        },
    ),
    Pitfall(
        slug="zero-times-infinity",
        title="0 times infinity",
        symptom="NaN everywhere as soon as there is a mask, even one that hides nothing.",
        reason="You multiply by −inf to hide the masked scores, but for the kept ones that is 0 · (−inf), which is "
        "NaN.",
        fix="Choose with `np.where(mask, scores, -np.inf)`, which multiplies nothing.",
        passes=("shape", "no mask"),
        variants={
            "single_head.attention": attention_zero_times_infinity,
            "multi_head.multi_head_attention": multi_head_around(attention_zero_times_infinity),
        },
    ),
    Pitfall(
        slug="none-not-handled",
        title="None is not handled",
        symptom="NaN or an error when nothing is to be masked and the argument is left out.",
        reason="You use the argument without asking whether it is None, the default, which means that nothing is "
        "hidden.",
        fix="Ask first: `if mask is not None:`.",
        passes=("shape", "boolean", "masked weights are 0", "small logits", "all-True mask", "no padding"),
        variants={
            "single_head.attention": attention_none_not_handled,
            "single_head.decoder_mask": decoder_mask_none_not_handled,
            "multi_head.multi_head_attention": multi_head_around(attention_none_not_handled),
        },
    ),
    Pitfall(
        slug="mask-truth-value",
        title="`if mask:`",
        symptom="ValueError: the truth value of an array with more than one element is ambiguous.",
        reason="You ask whether the mask is true, but an array of many entries is neither true nor false.",
        fix="Ask whether there is a mask: `if mask is not None:`.",
        passes=("no mask",),
        variants={
            "single_head.attention": attention_mask_truth_value,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_truth_value),
        },
    ),
    Pitfall(
        slug="mask-transposed",
        title="The mask's axes exchanged",
        symptom="An error when n ≠ m; when n = m, a causal mask hides the past.",
        reason="You transpose the mask, so what was said about query i and key j is applied to query j and key i.",
        fix="Use the mask as it comes: one row for each query, one column for each key.",
        passes=("shape at n = m", "no mask"),
        variants={
            "single_head.attention": attention_mask_transposed,
            "multi_head.multi_head_attention": multi_head_around(attention_mask_transposed),
        },
    ),
    Pitfall(
        slug="first-mask-for-all-sequences",
        title="The first sequence's mask for all",
        symptom="The first sequence is right; the others are masked by its lengths.",
        reason="You take entry 0 of the mask, but each sequence has padding of its own.",
        fix="Keep the axis of the batch, and let it broadcast over heads and queries.",
        passes=(
            "shape",
            "boolean",
            "finite",
            "rows sum to 1",
            "no mask",
            "all-True mask",
            "one sequence",
            "no keep",
        ),
        variants={
            "single_head.attention": attention_first_mask_for_all_sequences,
            "single_head.decoder_mask": decoder_mask_first_for_all_sequences,
            "multi_head.multi_head_attention": multi_head_around(attention_first_mask_for_all_sequences),
        },
    ),
    Pitfall(
        slug="mask-repeated-in-wrong-order",
        title="Masks repeated in the order of the heads",
        symptom="Right with one head, one sequence or one mask for all; else heads get another sequence's mask.",
        reason="You fold the heads into the batch with all heads of a sequence in a row, but repeat the masks as a "
        "whole, so that sequences and masks do not meet.",
        fix="Repeat each mask for the heads of its sequence, with `np.repeat` or PyTorch's `repeat_interleave`; or "
        "do not fold, and let the mask broadcast.",
        passes=("shape", "finite", "no mask", "all-True mask", "one head", "one sequence"),
        variants={"multi_head.multi_head_attention": multi_head_attention_mask_repeated_in_wrong_order},
    ),
    Pitfall(
        slug="mask-axis-kept-in-loop",
        title="A mask with four axes inside a loop over heads",
        symptom="A result with one axis too many, in which each sequence stands once for each mask.",
        reason="You go through the heads one by one, so the scores have three axes, but the mask still has "
        "the axis of the heads and makes NumPy pair every sequence with every mask.",
        fix="Drop the axis in the loop: `mask[:, 0]`.",
        passes=("no mask", "finite"),
        variants={"multi_head.multi_head_attention": multi_head_attention_mask_axis_kept_in_loop},
    ),
    Pitfall(
        slug="mask-for-first-head-only",
        title="Only the first head is masked",
        symptom="Right with one head; with several, the others attend to everything.",
        reason="You mask head 0 only, but what a query may not see must stay hidden from all its heads.",
        fix="Let the mask broadcast over the heads.",
        passes=("shape", "finite", "no mask", "all-True mask", "one head"),
        variants={"multi_head.multi_head_attention": multi_head_attention_mask_for_first_head},
    ),
    Pitfall(
        slug="always-causal",
        title="Causal without being asked",
        symptom="Without a mask the first query attends to the first key only.",
        reason="You hide later keys when no mask is given, but no mask means that nothing is hidden.",
        fix="Leave the scores alone when the mask is None.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "small logits", "all-True mask"),
        variants={
            "single_head.attention": attention_always_causal,
            "multi_head.multi_head_attention": multi_head_around(attention_always_causal),
            "multi_head.cross_attention": cross_around(attention_always_causal),
        },
    ),
    Pitfall(
        slug="causal-missing",
        title="The causal mask is missing",
        symptom="Each token attends to later ones; the training loss becomes too good to be true.",
        reason="You do not hide what comes later, so the model reads the token that it is to predict.",
        fix="Let query i attend to key j only where j ≤ i.",
        passes=("shape", "boolean", "every row keeps a key"),
        variants={
            "single_head.decoder_mask": decoder_mask_causal_missing,
            "multi_head.causal_multi_head_attention": causal_multi_head_attention_missing,
        },
    ),
    Pitfall(
        slug="causal-size-from-batch",
        title="The mask as large as the batch",
        symptom="An error, or, for one sequence, no mask at all: a single True fits everything.",
        reason="You build the causal mask from the first axis, but that counts sequences, not tokens.",
        fix="Take the number of tokens: `n = X.shape[1]`.",
        passes=(),
        variants={"multi_head.causal_multi_head_attention": causal_multi_head_attention_size_from_batch},
    ),
    Pitfall(
        slug="causal-transposed",
        title="The future in place of the past",
        symptom="The first query sees everything, the last one only itself.",
        reason="You keep j ≥ i, so each token sees what comes later and nothing of what came before.",
        fix="Keep j ≤ i, the lower triangle: a row is a query.",
        passes=("shape", "boolean"),
        variants={
            "single_head.causal_mask": causal_mask_transposed,
            "single_head.decoder_mask": decoder_mask_causal_transposed,
            "multi_head.causal_multi_head_attention": causal_under(causal_mask_transposed),
        },
    ),
    Pitfall(
        slug="causal-hides-self",
        title="A token does not see itself",
        symptom="The first query has no key at all: NaN in its row.",
        reason="You keep j < i, but a token may attend to its own position, and the first one has nothing else.",
        fix="Keep j ≤ i, the diagonal included.",
        passes=("shape", "boolean"),
        variants={
            "single_head.causal_mask": causal_mask_hides_self,
            "single_head.decoder_mask": decoder_mask_causal_hides_self,
            "multi_head.causal_multi_head_attention": causal_under(causal_mask_hides_self),
        },
    ),
    Pitfall(
        slug="causal-sees-next",
        title="A token sees the next one",
        symptom="Only the token right after the query leaks; the training loss falls to almost nothing.",
        reason="You keep j ≤ i + 1, and the next token is exactly the one to be predicted.",
        fix="Keep j ≤ i: when n = m, the triangle with its diagonal and nothing above.",
        passes=("shape", "boolean", "every row keeps a key"),
        variants={
            "single_head.causal_mask": causal_mask_sees_next,
            "single_head.decoder_mask": decoder_mask_causal_sees_next,
            "multi_head.causal_multi_head_attention": causal_under(causal_mask_sees_next),
        },
    ),
    Pitfall(
        slug="causal-top-left",
        title="Lined up at the first key",
        symptom="Right when n = m; with more keys than queries, the queries do not see the latest keys.",
        reason="You line the first query up with the first key, but the queries are the last n of the m positions.",
        fix="Line the last query up with the last key: keep j ≤ i + (m − n).",
        passes=("shape", "boolean", "every row keeps a key", "n = m"),
        variants={"single_head.causal_mask": causal_mask_top_left},
    ),
    Pitfall(
        slug="causal-offset-reversed",
        title="The offset's sign turned around",
        symptom="Right when n = m; with more keys than queries, the first rows are empty.",
        reason="You subtract m − n, but with more keys than queries each query sees more keys, not fewer.",
        fix="Add the offset: keep j ≤ i + (m − n).",
        passes=("shape", "boolean", "n = m"),
        variants={"single_head.causal_mask": causal_mask_offset_reversed},
    ),
    Pitfall(
        slug="square-mask-assumed",
        title="As many keys as queries taken for granted",
        symptom="Right when n = m; otherwise the mask has n columns and does not fit the scores.",
        reason="You build an n × n mask, but with a cache there are more keys than queries.",
        fix="Build a mask of shape (n, m).",
        passes=("shape at n = m", "boolean", "n = m"),
        variants={"single_head.causal_mask": causal_mask_square_assumed},
    ),
    Pitfall(
        slug="mask-shape-transposed",
        title="Keys in the rows of the mask",
        symptom="Shape (m, n) in place of (n, m); when n = m, the future in place of the past.",
        reason="You put the keys into the rows, but the scores have one row for each query.",
        fix="Build a mask of shape (n, m): `np.arange(n)[:, None]` for the queries, `np.arange(m)` for the keys.",
        passes=("shape at n = m", "boolean"),
        variants={"single_head.causal_mask": causal_mask_shape_transposed},
    ),
    Pitfall(
        slug="mask-with-extra-axes",
        title="Axes that nobody asked for",
        symptom="Shape (1, 1, n, m) in place of (n, m).",
        reason="You add axes for a batch and for heads, but a mask that is the same for all needs neither, and the "
        "contract says (n, m).",
        fix="Return shape (n, m), which broadcasts over everything that leads.",
        passes=("boolean", "every row keeps a key"),
        variants={"single_head.causal_mask": causal_mask_with_extra_axes},
    ),
    Pitfall(
        slug="mask-not-boolean",
        title="Numbers in place of booleans",
        symptom="The mask holds 0.0 and 1.0; `~mask` fails, and adding it to the scores hides nothing.",
        reason="You return numbers, which code that expects True and False may add or multiply without an error.",
        fix="Make the array with dtype=bool, or by a comparison.",
        passes=("shape",),
        variants={
            "single_head.causal_mask": causal_mask_not_boolean,
            "single_head.padding_mask": padding_mask_not_boolean,
            "single_head.decoder_mask": decoder_mask_not_boolean,
        },
    ),
    Pitfall(
        slug="additive-mask",
        title="0 and −inf in place of booleans",
        symptom="The mask holds 0.0 where a key is kept and −inf where it is hidden.",
        reason="You return a mask to be added to the scores, and to `np.where` its 0 means False and its −inf "
        "means True: the opposite of what you mean.",
        fix="Return a boolean mask, True = may attend.",
        passes=("shape",),
        variants={
            "single_head.causal_mask": causal_mask_additive,
            "single_head.padding_mask": padding_mask_additive,
            "single_head.decoder_mask": decoder_mask_additive,
        },
    ),
    Pitfall(
        slug="padding-off-by-one",
        title="The first padding token is kept",
        symptom="Right for sequences without padding; all others attend to one padding token.",
        reason="You compare with `<=`, but positions count from 0, so position `length` is already padding.",
        fix="Compare with `<`.",
        passes=("shape", "boolean", "every row keeps a key", "no padding"),
        variants={"single_head.padding_mask": padding_mask_off_by_one},
    ),
    Pitfall(
        slug="padding-hides-last-token",
        title="The last real token is hidden",
        symptom="Every sequence loses its last token; one of length 1 has no key at all.",
        reason="You take 1 off the length, but positions count from 0, so `position < length` is already right.",
        fix="Compare the position with the length itself.",
        passes=("shape", "boolean"),
        variants={"single_head.padding_mask": padding_mask_hides_last_token},
    ),
    Pitfall(
        slug="padding-on-the-left",
        title="The padding is taken to come first",
        symptom="The number of kept tokens is right, but they are the wrong ones.",
        reason="You keep the last positions, but a sequence starts at position 0 and the padding fills up its end.",
        fix="Keep the positions below the length.",
        passes=("shape", "boolean", "every row keeps a key", "no padding"),
        variants={"single_head.padding_mask": padding_mask_on_the_left},
    ),
    Pitfall(
        slug="padding-without-broadcast-axes",
        title="No axes for heads and queries",
        symptom="Shape (batch, max_len): an error beside scores, or the mask of another axis if sizes agree.",
        reason="You return (batch, max_len), which NumPy lines up with queries and keys, not with batch and keys.",
        fix="Add two axes: `[:, None, None, :]` gives (batch, 1, 1, max_len).",
        passes=("boolean", "every row keeps a key"),
        variants={"single_head.padding_mask": padding_mask_without_broadcast_axes},
    ),
    Pitfall(
        slug="mask-batch-on-head-axis",
        title="The batch lined up with the heads",
        symptom="An error, or, with as many sequences as heads, each head masked by another sequence's padding.",
        reason="Your mask has three axes, so beside scores (batch, heads, n, m) its first one meets the heads.",
        fix="Add an axis of size 1 for the heads: (batch, 1, …, m).",
        passes=("boolean", "every row keeps a key", "no keep"),
        variants={
            "single_head.padding_mask": padding_mask_batch_on_head_axis,
            "single_head.decoder_mask": decoder_mask_batch_on_head_axis,
            "multi_head.multi_head_attention": multi_head_attention_mask_batch_on_head_axis,
        },
    ),
    Pitfall(
        slug="padding-on-query-axis",
        title="Padding hides queries, not keys",
        symptom="Real tokens still attend to padding; the rows of padding are empty and become NaN.",
        reason="You put the padding on the axis of the queries, but what must not be read are padding keys.",
        fix="Put the tokens of `keep` on the last axis: `keep[:, None, None, :]`.",
        passes=("boolean", "no keep"),
        variants={
            "single_head.padding_mask": padding_mask_on_query_axis,
            "single_head.decoder_mask": decoder_mask_padding_on_query_axis,
        },
    ),
    Pitfall(
        slug="padding-masks-queries-too",
        title="Padding hides keys and queries",
        symptom="The rows of padding are empty and become NaN, which spreads through the next layer.",
        reason="You hide padding queries as well, which leaves them no key at all, while their output is thrown "
        "away in any case.",
        fix="Hide the padding keys only.",
        passes=("boolean", "no keep"),
        variants={
            "single_head.padding_mask": padding_mask_of_queries_too,
            "single_head.decoder_mask": decoder_mask_of_queries_too,
        },
    ),
    Pitfall(
        slug="max-len-ignored",
        title="As wide as the longest sequence",
        symptom="Right when one sequence is full; otherwise the mask is narrower than the scores.",
        reason="You take the width from the longest sequence, but the arrays are max_len wide.",
        fix="Count the positions up to max_len.",
        passes=("boolean", "every row keeps a key", "no padding"),
        variants={"single_head.padding_mask": padding_mask_max_len_ignored},
    ),
    Pitfall(
        slug="masks-or-combined",
        title="`or` in place of `and`",
        symptom="Tokens attend to later real tokens, and to earlier padding.",
        reason="You let a key through if either mask allows it, but both must.",
        fix="Combine the masks with `&`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep"),
        variants={"single_head.decoder_mask": decoder_mask_or_combined},
    ),
    Pitfall(
        slug="padding-replaces-causal",
        title="The padding mask replaces the causal one",
        symptom="Right without `keep`; with it, tokens attend to later ones.",
        reason="You return the padding mask alone as soon as there is one, so the future is no longer hidden.",
        fix="Combine the masks with `&`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep"),
        variants={"single_head.decoder_mask": decoder_mask_padding_replaces_causal},
    ),
    Pitfall(
        slug="padding-missing",
        title="The padding is not hidden",
        symptom="Right without padding; otherwise tokens attend to padding that comes before them.",
        reason="You do not use `keep`, so padding that is not later than the query stays visible.",
        fix="Combine the causal mask with `keep[:, None, None, :]` by `&`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep", "no padding"),
        variants={"single_head.decoder_mask": decoder_mask_padding_missing},
    ),
    Pitfall(
        slug="keep-inverted",
        title="`keep` taken to mark the padding",
        symptom="Real tokens are hidden; without padding every row is empty.",
        reason="You hide where `keep` is True, but it marks the real tokens.",
        fix="Use `keep` as it is, without `~`.",
        passes=("shape", "boolean", "no keep"),
        variants={"single_head.decoder_mask": decoder_mask_keep_inverted},
    ),
    Pitfall(
        slug="mask-fill-overflows-half",
        title="−1e9 in float16",
        symptom="Right in float32; in float16 an error about a value that overflows.",
        reason="You fill with a number that float16 does not have: its lowest one is −65,504.",
        fix="Fill with −∞ or with `torch.finfo(scores.dtype).min`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "small logits"),
    ),
    Pitfall(
        slug="empty-row-nan",
        title="NaN for a query without keys",
        symptom="NaN in the row of a query that may attend to nothing, and from there in the whole loss.",
        reason="You fill a row with −∞ from end to end, and its softmax is 0/0.",
        fix="Leave such a row finite, and set its weights to 0 after the softmax.",
        passes=("shape", "masked weights are 0", "small logits", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="empty-row-uniform",
        title="A query without keys attends to everything",
        symptom="The output of a query that may attend to nothing is the mean of all values, padding included.",
        reason="You give all keys of the row the same low score, and the softmax looks at differences only.",
        fix="Set the weights of masked keys to 0 after the softmax as well.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="nan-gradient-on-empty-row",
        title="NaN mended in the output only",
        symptom="Right outputs; after one step of training all parameters are NaN.",
        reason="You replace NaN after it has come up, and on the way back NaN times 0 is NaN again.",
        fix="Let no NaN come up: keep such a row finite before the softmax.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="in-place-breaks-autograd",
        title="The weights overwritten in place",
        symptom="Right outputs; backward raises an error about a variable that was modified in place.",
        reason="You write into the result of the softmax, which its backward pass still needs.",
        fix="Make a new tensor: `masked_fill` without the underscore.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="mask-not-sliced",
        title="The longest mask for every length",
        symptom="Right for sequences of exactly max_len tokens; an error for shorter ones.",
        reason="You use the whole mask of max_len tokens, but there are n queries and n keys.",
        fix="Cut it to size: `mask[:n, :n]`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="mask-of-first-call",
        title="The first call's mask for all calls",
        symptom="Right until a longer sequence comes.",
        reason="You keep the mask that the first call needed, but the next one may have more tokens.",
        fix="Keep the mask for max_len tokens, and cut it to size at each call.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="first-mask-kept",
        title="The first mask kept for later calls",
        symptom="The first call is right; later ones go by its mask, whatever mask they are given.",
        reason="You keep the first mask in the layer and look at no later one, but each call has its own.",
        fix="Use the `mask` that `forward` was given, and keep none in `self`.",
        passes=("shape", "finite", "no mask", "all-True mask", "right values"),
    ),
)
