"""Mistakes in cutting features into heads, in putting heads together, and in what a head works on."""

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.derived import causal_around, for_one_head
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray

# --- the width of a head -----------------------------------------------------------------------------------


def head_dim_unchecked(d_model: int, num_heads: int) -> int:
    """Wrong: `//` drops what is left over."""
    return d_model // num_heads


def head_dim_asserted(d_model: int, num_heads: int) -> int:
    """Wrong: an assertion, not a ValueError; it is gone under `python -O`."""
    assert d_model > 0, f"{d_model=} and {num_heads=} must both be positive"
    assert num_heads > 0, f"{d_model=} and {num_heads=} must both be positive"
    assert d_model % num_heads == 0, f"{num_heads=} does not divide {d_model=}"
    return d_model // num_heads


def head_dim_positivity_unchecked(d_model: int, num_heads: int) -> int:
    """Wrong: 0 and negative numbers are let through, or fail as a division by zero."""
    if d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model // num_heads


def head_dim_message_without_numbers(d_model: int, num_heads: int) -> int:
    """Wrong: the message does not say which numbers were given."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError("d_model must be a positive multiple of num_heads")
    return d_model // num_heads


def head_dim_error_not_raised(d_model: int, num_heads: int) -> int | None:
    """Wrong: None is returned where an error should be raised."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        return None
    return d_model // num_heads


def head_dim_not_whole(d_model: int, num_heads: int) -> float:
    """Wrong: `/` gives a float, even where it divides."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model / num_heads


def head_dim_full_width(d_model: int, num_heads: int) -> int:
    """Wrong: each head is as wide as the model."""
    if d_model <= 0 or num_heads <= 0 or d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return d_model


# --- from features to heads --------------------------------------------------------------------------------


def split_heads_without_transpose(x: Array, num_heads: int) -> Array:
    """Wrong: reshaped to the right shape at once, so that a head gets whole tokens, cut up."""
    batch, n, d_model = x.shape
    return x.reshape(batch, num_heads, n, d_model // num_heads)  # (batch, heads, n, d_k)


def split_heads_interleaved(x: Array, num_heads: int) -> Array:
    """Wrong: head i gets the columns i, i + heads, i + 2 * heads, …"""
    batch, n, d_model = x.shape
    x = x.reshape(batch, n, d_model // num_heads, num_heads)  # (batch, n, d_k, heads)
    return x.transpose(0, 3, 1, 2)  # (batch, heads, n, d_k)


def split_heads_axis_not_moved(x: Array, num_heads: int) -> Array:
    """Wrong: the axis of the heads stays behind that of the tokens."""
    batch, n, d_model = x.shape
    return x.reshape(batch, n, num_heads, d_model // num_heads)  # (batch, n, heads, d_k)


def split_heads_batch_and_heads_swapped(x: Array, num_heads: int) -> Array:
    """Wrong: the heads come first, before the batch."""
    return np.stack(np.split(x, num_heads, axis=-1))  # (heads, batch, n, d_k)


def split_heads_features_first(x: Array, num_heads: int) -> Array:
    """Wrong: the last two axes are exchanged."""
    batch, n, d_model = x.shape
    x = x.reshape(batch, n, num_heads, d_model // num_heads)  # (batch, n, heads, d_k)
    return x.transpose(0, 2, 3, 1)  # (batch, heads, d_k, n)


def split_heads_count_taken_as_width(x: Array, num_heads: int) -> Array:
    """Wrong: `num_heads` is taken for the width of a head."""
    batch, n, d_model = x.shape
    x = x.reshape(batch, n, d_model // num_heads, num_heads)  # (batch, n, d_k, heads)
    return x.transpose(0, 2, 1, 3)  # (batch, d_k, n, heads)


def split_heads_features_not_split(x: Array, num_heads: int) -> Array:
    """Wrong: every head gets all features."""
    return np.repeat(x[:, None], num_heads, axis=1)  # (batch, heads, n, d_model)


def split_heads_tokens_split(x: Array, num_heads: int) -> Array:
    """Wrong: the tokens are shared out, not the features."""
    return np.stack(np.array_split(x, num_heads, axis=1), axis=1)  # (batch, heads, n / heads, d_model)


def split_heads_unchecked(x: Array, num_heads: int) -> Array:
    """Wrong: features that are left over are dropped without a word."""
    d_k = x.shape[-1] // num_heads
    heads = [x[..., i * d_k : (i + 1) * d_k] for i in range(num_heads)]  # each (batch, n, d_k)
    return np.stack(heads, axis=1)  # (batch, heads, n, d_k)


# --- from heads to features --------------------------------------------------------------------------------


def combine_heads_without_transpose(x: Array) -> Array:
    """Wrong: reshaped to the right shape at once, so that a row holds several tokens of one head."""
    batch, num_heads, n, d_k = x.shape
    return x.reshape(batch, n, num_heads * d_k)  # (batch, n, d_model)


def combine_heads_interleaved(x: Array) -> Array:
    """Wrong: the heads take turns, feature by feature."""
    batch, num_heads, n, d_k = x.shape
    x = x.transpose(0, 2, 3, 1)  # (batch, n, d_k, heads)
    return x.reshape(batch, n, d_k * num_heads)  # (batch, n, d_model)


def combine_heads_axis_not_merged(x: Array) -> Array:
    """Wrong: the heads still have an axis of their own."""
    return x.transpose(0, 2, 1, 3)  # (batch, n, heads, d_k)


def combine_heads_batch_and_heads_swapped(x: Array) -> Array:
    """Wrong: the first axis is taken for the heads."""
    return np.concatenate(list(x), axis=-1)  # (heads, n, batch * d_k)


def combine_heads_tokens_appended(x: Array) -> Array:
    """Wrong: the heads are laid end to end along the tokens."""
    batch, num_heads, n, d_k = x.shape
    return x.reshape(batch, num_heads * n, d_k)  # (batch, heads * n, d_k)


def combine_heads_averaged(x: Array) -> Array:
    """Wrong: the mean over the heads."""
    return np.mean(x, axis=1)  # (batch, n, d_k)


def combine_heads_summed(x: Array) -> Array:
    """Wrong: the sum over the heads."""
    return np.sum(x, axis=1)  # (batch, n, d_k)


def combine_heads_max_pooled(x: Array) -> Array:
    """Wrong: the largest entry over the heads."""
    return np.max(x, axis=1)  # (batch, n, d_k)


# --- the whole layer ---------------------------------------------------------------------------------------


def multi_head_attention_split_without_transpose(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: queries, keys and values are reshaped into heads at once, without moving an axis."""
    Q, K, V = (X @ W for W in (W_Q, W_K, W_V))  # (batch, n, d_model)
    Q, K, V = (split_heads_without_transpose(x, num_heads) for x in (Q, K, V))
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_merge_without_transpose(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the heads are reshaped into features at once, without moving an axis back."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_fold_by_reshape(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: heads are cut and put together by reshapes that undo each other, but tokens are mixed in between."""
    Q, K, V = (X @ W for W in (W_Q, W_K, W_V))  # (batch, n, d_model)
    Q, K, V = (split_heads_without_transpose(x, num_heads) for x in (Q, K, V))
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_interleaved(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: head i works on the columns i, i + heads, …, and writes into them."""
    Q, K, V = (split_heads_interleaved(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads_interleaved(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_batch_and_heads_swapped(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: heads come first, and are put together as if the batch did."""
    batch, n, d_model = X.shape
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]  # (batch, n, n), beside scores (heads, batch, n, n)
    Q, K, V = (split_heads_batch_and_heads_swapped(X @ W, num_heads) for W in (W_Q, W_K, W_V))
    heads, _ = attention(Q, K, V, mask)  # (heads, batch, n, d_k)
    heads = heads.reshape(batch, num_heads, n, d_model // num_heads)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_between_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: within each token, the heads attend to one another."""
    Q, K, V = (
        split_heads_axis_not_moved(X @ W, num_heads) for W in (W_Q, W_K, W_V)
    )  # (batch, n, heads, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, n, heads, d_k)
    return heads.reshape(X.shape) @ W_O  # (batch, n, d_model)


def multi_head_attention_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: what the heads contribute is averaged, not added up."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    blocks = W_O.reshape(num_heads, -1, W_O.shape[1])  # (heads, d_k, d_model)
    return np.mean(heads @ blocks, axis=1)  # (batch, n, d_model)


def multi_head_attention_max_pooled(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: of what the heads contribute, the largest is taken, entry by entry."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    blocks = W_O.reshape(num_heads, -1, W_O.shape[1])  # (heads, d_k, d_model)
    return np.max(heads @ blocks, axis=1)  # (batch, n, d_model)


def multi_head_attention_summed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the heads are added before W_O, so they share one block of its rows."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return np.sum(heads, axis=1) @ W_O[: heads.shape[-1]]  # (batch, n, d_model)


def multi_head_attention_weights_averaged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the weights are averaged over the heads, and all heads use the average."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    _, weights = attention(Q, K, V, mask)  # (batch, heads, n, n)
    heads = np.mean(weights, axis=1, keepdims=True) @ V  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_one_wide_head(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: one head over all features; `num_heads` has no effect."""
    heads, _ = attention(X @ W_Q, X @ W_K, X @ W_V, for_one_head(mask))  # (batch, n, d_model)
    return heads @ W_O  # (batch, n, d_model)


def cross_attention_split_without_transpose(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: queries, keys and values are reshaped into heads at once, without moving an axis."""
    Q = split_heads_without_transpose(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads_without_transpose(memory @ W, num_heads) for W in (W_K, W_V))
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_merge_without_transpose(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are reshaped into features at once, without moving an axis back."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


def cross_attention_fold_by_reshape(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: heads are cut and put together by reshapes that undo each other, but tokens are mixed in between."""
    Q = split_heads_without_transpose(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads_without_transpose(memory @ W, num_heads) for W in (W_K, W_V))
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads_without_transpose(heads) @ W_O  # (batch, n, d_model)


def cross_attention_one_wide_head(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: one head over all features; `num_heads` has no effect."""
    heads, _ = attention(X @ W_Q, memory @ W_K, memory @ W_V)  # (batch, n, d_model)
    return heads @ W_O  # (batch, n, d_model)


PITFALLS = (
    Pitfall(
        slug="divisibility-unchecked",
        title="No check that d_model divides",
        symptom="With 7 features and 2 heads no error comes: a head gets 3 features, and one is lost.",
        reason="You divide with `//`, which drops what is left over without a word.",
        fix="Check `d_model % num_heads` first, and raise a ValueError that names both numbers.",
        passes=("divides", "shape", "one head", "round trip"),
        variants={
            "multi_head.head_dim": head_dim_unchecked,
            "multi_head.split_heads": split_heads_unchecked,
        },
    ),
    Pitfall(
        slug="divisibility-asserted",
        title="An assertion in place of an error",
        symptom="AssertionError where a ValueError is expected, and no error at all under `python -O`.",
        reason="You check the arguments with `assert`, which is for what cannot happen, while wrong arguments do "
        "happen.",
        fix="Raise the error yourself: `raise ValueError(…)`.",
        passes=("divides",),
        variants={"multi_head.head_dim": head_dim_asserted},
    ),
    Pitfall(
        slug="positivity-unchecked",
        title="0 and negative numbers let through",
        symptom="A head of width 0 or −2, or a ZeroDivisionError.",
        reason="You ask only whether it divides, and −8 divided by 4 leaves nothing over.",
        fix="Check first that both numbers are at least 1.",
        passes=("divides",),
        variants={"multi_head.head_dim": head_dim_positivity_unchecked},
    ),
    Pitfall(
        slug="message-without-numbers",
        title="An error that does not name the numbers",
        symptom="A ValueError from which nobody can tell which layer was set up wrongly.",
        reason="You raise the right error, but its message does not hold the two numbers that do not fit.",
        fix='Put both into the message: `f"d_model={d_model} … num_heads={num_heads}"`.',
        passes=("divides",),
        variants={"multi_head.head_dim": head_dim_message_without_numbers},
    ),
    Pitfall(
        slug="error-not-raised",
        title="None in place of an error",
        symptom="None comes back, and something else fails later, far from the cause.",
        reason="You return where the contract asks for an error (or you build the error and do not raise it).",
        fix="Write `raise ValueError(…)`.",
        passes=("divides",),
        variants={"multi_head.head_dim": head_dim_error_not_raised},
    ),
    Pitfall(
        slug="head-width-not-whole",
        title="The width of a head as a float",
        symptom="4.0 in place of 4; `reshape` refuses it.",
        reason="You divide with `/`, which gives a float even where nothing is left over.",
        fix="Divide with `//`, once you know that it divides.",
        passes=(),
        variants={"multi_head.head_dim": head_dim_not_whole},
    ),
    Pitfall(
        slug="features-not-split",
        title="Every head as wide as the model",
        symptom="Each head has d_model features in place of d_model / num_heads.",
        reason="You give every head all d_model features, but the heads share them: together they are d_model "
        "wide.",
        fix="Give each head d_k = d_model / num_heads features.",
        passes=("one head",),
        variants={
            "multi_head.head_dim": head_dim_full_width,
            "multi_head.split_heads": split_heads_features_not_split,
        },
    ),
    Pitfall(
        slug="split-without-transpose",
        title="Cut into heads by a reshape alone",
        symptom="Right shape; a head gets some tokens whole and of the others nothing.",
        reason="You reshape to (batch, heads, n, d_k) at once, but a reshape keeps the order of the entries, and "
        "there a token's features lie together.",
        fix="Reshape to (batch, n, heads, d_k), then exchange the axes of tokens and heads.",
        passes=("shape", "finite", "one head", "one token"),
        variants={
            "multi_head.split_heads": split_heads_without_transpose,
            "multi_head.multi_head_attention": multi_head_attention_split_without_transpose,
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_attention_split_without_transpose
            ),
            "multi_head.cross_attention": cross_attention_split_without_transpose,
        },
    ),
    Pitfall(
        slug="merge-without-transpose",
        title="Put together by a reshape alone",
        symptom="Right shape; a row holds several tokens of one head in place of all heads of one token.",
        reason="You reshape (batch, heads, n, d_k) at once, but a reshape keeps the order of the entries, and "
        "there "
        "a head's tokens lie together.",
        fix="Exchange the axes of heads and tokens first, then reshape to (batch, n, d_model).",
        passes=("shape", "finite", "one head", "one token"),
        variants={
            "multi_head.combine_heads": combine_heads_without_transpose,
            "multi_head.multi_head_attention": multi_head_attention_merge_without_transpose,
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_attention_merge_without_transpose
            ),
            "multi_head.cross_attention": cross_attention_merge_without_transpose,
        },
    ),
    Pitfall(
        slug="heads-fold-by-reshape",
        title="Cut and put together by reshapes alone",
        symptom="Cutting and putting together undo each other, so that everything fits; in between, tokens "
        "are mixed.",
        reason="You reshape on the way in and on the way out, which hides the mistake: in between, a head works on "
        "pieces of different tokens.",
        fix="Exchange the axes of tokens and heads after the first reshape and before the last.",
        passes=("shape", "finite", "one head", "one token"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_fold_by_reshape,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_fold_by_reshape),
            "multi_head.cross_attention": cross_attention_fold_by_reshape,
        },
    ),
    Pitfall(
        slug="heads-interleaved",
        title="Heads that take turns",
        symptom="Right shape; head i has the columns i, i + heads, i + 2 * heads, … in place of a block.",
        reason="You reshape the features to (d_k, heads), which deals the columns out like cards, but head i owns "
        "the block from i*d_k to (i+1)*d_k.",
        fix="Reshape the features to (heads, d_k), with the heads first.",
        passes=("shape", "finite", "one head"),
        variants={
            "multi_head.split_heads": split_heads_interleaved,
            "multi_head.combine_heads": combine_heads_interleaved,
            "multi_head.multi_head_attention": multi_head_attention_interleaved,
        },
    ),
    Pitfall(
        slug="head-axis-not-moved",
        title="The axis of the heads left behind the tokens",
        symptom="Shape (batch, n, heads, d_k) in place of (batch, heads, n, d_k).",
        reason="You cut the features and leave the axes as they are, so `@` would multiply heads with heads within "
        "each token.",
        fix="Exchange the axes of tokens and heads.",
        passes=("finite",),
        variants={"multi_head.split_heads": split_heads_axis_not_moved},
    ),
    Pitfall(
        slug="heads-not-merged",
        title="The axis of the heads left in place",
        symptom="Four axes, (batch, n, heads, d_k), in place of three.",
        reason="You move the axis of the heads and stop, but then the heads still lie apart.",
        fix="Reshape to (batch, n, heads * d_k).",
        passes=("finite",),
        variants={"multi_head.combine_heads": combine_heads_axis_not_merged},
    ),
    Pitfall(
        slug="batch-and-heads-swapped",
        title="Heads first, batch second",
        symptom="Right for one sequence with one head; else an error, or sequences mixed with heads.",
        reason="You have the heads on the first axis where the batch belongs, or the other way round.",
        fix="Keep the order (batch, heads, n, d_k) throughout.",
        passes=("finite",),
        variants={
            "multi_head.split_heads": split_heads_batch_and_heads_swapped,
            "multi_head.combine_heads": combine_heads_batch_and_heads_swapped,
            "multi_head.multi_head_attention": multi_head_attention_batch_and_heads_swapped,
        },
    ),
    Pitfall(
        slug="features-before-tokens",
        title="Tokens and features exchanged",
        symptom="Shape (batch, heads, d_k, n) in place of (batch, heads, n, d_k).",
        reason="You move one axis too many, so each column is a token.",
        fix="Exchange only the axes of tokens and heads: `transpose(0, 2, 1, 3)`.",
        passes=("finite",),
        variants={"multi_head.split_heads": split_heads_features_first},
    ),
    Pitfall(
        slug="head-count-taken-as-width",
        title="The number of heads taken for their width",
        symptom="Shape (batch, d_k, n, heads): d_k heads of width num_heads.",
        reason="You reshape the features to (d_k, num_heads), so there are d_k heads, each num_heads wide.",
        fix="Reshape the features to (num_heads, d_k).",
        passes=("finite",),
        variants={"multi_head.split_heads": split_heads_count_taken_as_width},
    ),
    Pitfall(
        slug="tokens-split-in-place-of-features",
        title="The tokens are shared out among the heads",
        symptom="Each head gets a stretch of the text, with all features; an error if n does not divide.",
        reason="You cut along the axis of the tokens, but every head reads every token; it is the features that "
        "are shared out.",
        fix="Cut along the last axis.",
        passes=(),
        variants={"multi_head.split_heads": split_heads_tokens_split},
    ),
    Pitfall(
        slug="heads-on-token-axis",
        title="Heads laid end to end along the tokens",
        symptom="Shape (batch, heads * n, d_k): the text seems to have become longer.",
        reason="You join the heads along the axis of the tokens, but each token gets the features of all heads.",
        fix="Join the heads along the last axis.",
        passes=("finite", "one head"),
        variants={"multi_head.combine_heads": combine_heads_tokens_appended},
    ),
    Pitfall(
        slug="heads-averaged",
        title="The mean over the heads",
        symptom="What the heads found cannot be told apart any more.",
        reason="You average over the heads, which throws away what each of them found by itself.",
        fix="Lay the heads side by side, each in columns of its own; W_O then adds up what they contribute.",
        passes=("finite", "one head"),
        variants={
            "multi_head.combine_heads": combine_heads_averaged,
            "multi_head.multi_head_attention": multi_head_attention_averaged,
        },
    ),
    Pitfall(
        slug="heads-summed",
        title="The heads added before W_O",
        symptom="d_k columns in place of d_model, or one block of W_O for all heads.",
        reason="You add the heads up while nothing yet tells them apart; only after its own block of W_O may "
        "a head "
        "be added to the others.",
        fix="Lay the heads side by side, each in columns of its own.",
        passes=("finite", "one head"),
        variants={
            "multi_head.combine_heads": combine_heads_summed,
            "multi_head.multi_head_attention": multi_head_attention_summed,
        },
    ),
    Pitfall(
        slug="heads-max-pooled",
        title="The largest entry over the heads",
        symptom="Only the loudest head is heard, entry by entry.",
        reason="You take the maximum over the heads, so what the others found is lost.",
        fix="Lay the heads side by side, each in columns of its own.",
        passes=("finite", "one head"),
        variants={
            "multi_head.combine_heads": combine_heads_max_pooled,
            "multi_head.multi_head_attention": multi_head_attention_max_pooled,
        },
    ),
    Pitfall(
        slug="attention-between-heads",
        title="Heads attend to heads",
        symptom="No token ever sees another one; the output at a position depends on that position alone.",
        reason="You attend over the axis of the heads, since it stands where `@` expects the tokens.",
        fix="Exchange the axes first: (batch, heads, n, d_k), so that the tokens are on the last axis but one.",
        passes=("shape", "finite"),
        variants={"multi_head.multi_head_attention": multi_head_attention_between_heads},
    ),
    Pitfall(
        slug="weights-averaged-over-heads",
        title="One average of all heads' weights",
        symptom="All heads look at the same tokens.",
        reason="You average the weights over the heads and use the average in each, which leaves one attention "
        "pattern where there should be several.",
        fix="Let each head use its own weights.",
        passes=("shape", "finite", "one head", "one token"),
        variants={"multi_head.multi_head_attention": multi_head_attention_weights_averaged},
    ),
    Pitfall(
        slug="num-heads-ignored",
        title="One wide head",
        symptom="The output does not change with num_heads.",
        reason="You attend with all d_model features at once, so there is one set of weights for each query.",
        fix="Cut queries, keys and values into heads before the attention, and put the heads together after it.",
        passes=("shape", "finite", "one head", "one token"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_one_wide_head,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_one_wide_head),
            "multi_head.cross_attention": cross_attention_one_wide_head,
        },
    ),
)
