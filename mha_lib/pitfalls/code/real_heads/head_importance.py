"""Mistakes in `head_importance`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mha_lib import real_heads as right
from mha_lib.heads import split_heads
from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.code.real_heads.bert_attention import INHERITED, INHERITED_FORMS, heads_side_by_side
from mha_lib.pitfalls.code.real_heads.keep_heads import keep_from

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]
Function = Callable[..., Any]


def changes(x: Array, weights: Weights, num_heads: int) -> Array:
    """What each head adds to the output, `(heads, batch, n, d_model)`."""
    bias = weights["dense"]["bias"]
    return np.stack([right.keep_heads(x, weights, num_heads, [head]) - bias for head in range(num_heads)])


@mistake("importance-squared", "real_heads.head_importance")
def importance_squared(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the square of the norm."""
    return (changes(x, weights, num_heads) ** 2).sum(axis=-1).mean(axis=(1, 2))


@mistake("importance-absolute-sum", "real_heads.head_importance")
def importance_absolute_sum(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the sum of the absolute values is another norm."""
    return np.abs(changes(x, weights, num_heads)).sum(axis=-1).mean(axis=(1, 2))


@mistake("importance-averaged-over-features", "real_heads.head_importance")
def importance_averaged_over_features(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the root of the *mean* square over the features, not of the sum."""
    squares = changes(x, weights, num_heads) ** 2  # (heads, batch, n, d_model)
    return np.sqrt(squares.mean(axis=-1)).mean(axis=(1, 2))


@mistake("importance-summed-over-tokens", "real_heads.head_importance")
def importance_summed_over_tokens(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the sum over all tokens, which grows with the text."""
    return np.linalg.norm(changes(x, weights, num_heads), axis=-1).sum(axis=(1, 2))


@mistake("importance-norm-of-everything", "real_heads.head_importance")
def importance_norm_of_everything(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: one norm over all tokens and features, which grows with the text."""
    return np.sqrt((changes(x, weights, num_heads) ** 2).sum(axis=(1, 2, 3)))


@mistake("importance-mean-before-norm", "real_heads.head_importance")
def importance_mean_before_norm(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the mean change of the tokens, in which they cancel each other, and then its norm."""
    change = changes(x, weights, num_heads).mean(axis=(1, 2))  # (heads, d_model)
    return np.linalg.norm(change, axis=-1)


@mistake("importance-root-mean-square", "real_heads.head_importance")
def importance_root_mean_square(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the root of the mean square over the tokens, in which large ones count for more."""
    squares = changes(x, weights, num_heads) ** 2  # (heads, batch, n, d_model)
    return np.sqrt(squares.sum(axis=-1).mean(axis=(1, 2)))


@mistake("importance-largest-token", "real_heads.head_importance")
def importance_largest_token(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the token that changes most."""
    return np.linalg.norm(changes(x, weights, num_heads), axis=-1).max(axis=(1, 2))


@mistake("importance-of-first-sequence", "real_heads.head_importance")
def importance_for_each_sequence(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the mean over the tokens of the first sequence only."""
    norms = np.linalg.norm(changes(x[:1], weights, num_heads), axis=-1)
    return norms.mean(axis=(1, 2))


@mistake("importance-of-head-alone", "real_heads.head_importance")
def importance_of_head_alone(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the length of the output when the head is alone, with the bias of `dense` in it."""
    heads = range(num_heads)
    outputs = [right.keep_heads(x, weights, num_heads, [head]) for head in heads]
    return np.array([np.linalg.norm(output, axis=-1).mean() for output in outputs])


@mistake("importance-of-the-rest", "real_heads.head_importance")
def importance_of_the_rest(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the length of the output without the head, not how far it has moved."""
    rest = [[i for i in range(num_heads) if i != head] for head in range(num_heads)]
    outputs = [right.keep_heads(x, weights, num_heads, others) for others in rest]
    return np.array([np.linalg.norm(output, axis=-1).mean() for output in outputs])


@mistake("importance-by-lengths", "real_heads.head_importance")
def importance_by_lengths(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the difference of the lengths with and without the head, which is blind to a turn."""
    full, _ = right.bert_attention(x, weights, num_heads)  # (batch, n, d_model)
    without = full - changes(x, weights, num_heads)  # (heads, batch, n, d_model)
    shorter = np.linalg.norm(full, axis=-1) - np.linalg.norm(without, axis=-1)
    return np.abs(shorter).mean(axis=(1, 2))


@mistake("importance-before-dense", "real_heads.head_importance")
def importance_before_dense(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the length of what the head finds, before `dense` has weighed it."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    heads = split_heads(heads, num_heads)  # (batch, heads, n, d_k)
    return np.linalg.norm(heads, axis=-1).mean(axis=(0, 2))


@mistake("heads-silenced-for-good", "real_heads.head_importance")
def importance_silenced_for_good(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: heads are silenced in the caller's weights, and no later head is measured with them."""
    full, _ = right.bert_attention(x, weights, num_heads)  # (batch, n, d_model)
    d_k = full.shape[-1] // num_heads
    importance = []
    for head in range(num_heads):
        weights["dense"]["weight"][:, head * d_k : (head + 1) * d_k] = 0.0
        change = full - right.bert_attention(x, weights, num_heads)[0]  # (batch, n, d_model)
        importance.append(np.linalg.norm(change, axis=-1).mean())
    return np.array(importance)


@mistake("importance-relative", "real_heads.head_importance")
def importance_relative(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: shares that sum to 1."""
    norms = np.linalg.norm(changes(x, weights, num_heads), axis=-1)
    norms = norms.mean(axis=(1, 2))  # (heads,)
    return norms / norms.sum()


@mistake("importance-averaged-over-heads", "real_heads.head_importance")
def importance_one_number(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the mean over the heads as well."""
    norms = np.linalg.norm(changes(x, weights, num_heads), axis=-1)
    return norms.mean(keepdims=True)[0, 0]  # (1,)


@mistake("input-changed-in-place", "real_heads.head_importance")
def importance_changes_its_input(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the columns of each head are set to 0 in the caller's weights, and only the last ones restored."""
    importance = right.head_importance(x, weights, num_heads)
    W = weights["dense"]["weight"]
    W[:, : W.shape[1] - W.shape[1] // num_heads] = 0.0
    return importance


def importance_from(keep: Function) -> Function:
    """`head_importance` around another `keep_heads`."""

    def head_importance(x: Array, weights: Weights, num_heads: int) -> Array:
        full = keep(x, weights, num_heads, range(num_heads))
        rest = [[i for i in range(num_heads) if i != head] for head in range(num_heads)]
        changes = [full - keep(x, weights, num_heads, others) for others in rest]
        return np.array([np.linalg.norm(change, axis=-1).mean() for change in changes])

    head_importance.__doc__ = keep.__doc__
    return head_importance


for slug, bert in INHERITED.items():
    mistake(slug, "real_heads.head_importance")(importance_from(keep_from(bert)))


# --- forms -------------------------------------------------------------------------------------------------


def of_changes(measure: Function) -> Function:
    """`head_importance` that measures the changes `(heads, batch, n, d_model)` in another way."""
    return lambda x, weights, num_heads: measure(changes(x, weights, num_heads))


def of_outputs(measure: Function) -> Function:
    """`head_importance` from the full output, what each head adds to it, and the bias of `dense`."""

    def head_importance(x: Array, weights: Weights, num_heads: int) -> Any:
        full, _ = right.bert_attention(x, weights, num_heads)  # (batch, n, d_model)
        return measure(full, changes(x, weights, num_heads), weights["dense"]["bias"])

    return head_importance


def norms(x: Array) -> Array:
    """The length of each token's features."""
    return np.linalg.norm(x, axis=-1)


def means(x: Array) -> Array:
    """The mean over all but the first axis."""
    return x.reshape(len(x), -1).mean(axis=1)


def shares(x: Array) -> Array:
    """The softmax of a vector."""
    exponentials = np.exp(x - x.max())
    return exponentials / exponentials.sum()


FORMS: dict[str, Function] = {
    "importance-squared/mean-of-all": of_changes(lambda change: means(change**2)),
    "importance-squared/sum-of-all": of_changes(lambda change: (change**2).sum(axis=(1, 2, 3))),
    "importance-absolute-sum/mean": of_changes(lambda change: means(np.abs(change))),
    "importance-absolute-sum/largest": of_changes(lambda change: means(np.abs(change).max(axis=-1))),
    "importance-averaged-over-features/divided": of_changes(
        lambda change: means(norms(change)) / change.shape[-1]
    ),
    "importance-averaged-over-features/deviation": of_changes(lambda change: means(change.std(axis=-1))),
    "importance-summed-over-tokens/not-sequences": of_changes(
        lambda change: norms(change).sum(axis=2).mean(axis=1)
    ),
    "importance-summed-over-tokens/sequences": of_changes(
        lambda change: norms(change).mean(axis=2).sum(axis=1)
    ),
    "importance-norm-of-everything/per-token": of_changes(
        lambda change: norms(change.reshape(len(change), -1)) / change[0, ..., 0].size
    ),
    "importance-norm-of-everything/of-a-sequence": of_changes(
        lambda change: np.linalg.norm(change, axis=(2, 3)).mean(axis=1)
    ),
    "importance-norm-of-everything/of-a-sequence-per-token": of_changes(
        lambda change: np.linalg.norm(change, axis=(2, 3)).mean(axis=1) / change.shape[2]
    ),
    "importance-norm-of-everything/over-tokens": of_changes(
        lambda change: means(np.linalg.norm(change, axis=-2))
    ),
    "importance-norm-of-everything/over-sequences": of_changes(
        lambda change: means(np.linalg.norm(change, axis=1))
    ),
    "importance-mean-before-norm/tokens": of_changes(lambda change: norms(change.mean(axis=2)).mean(axis=1)),
    "importance-mean-before-norm/sequences": of_changes(
        lambda change: norms(change.mean(axis=1)).mean(axis=1)
    ),
    "importance-mean-before-norm/absolute": of_changes(lambda change: np.abs(means(change))),
    "importance-root-mean-square/of-everything": of_changes(lambda change: np.sqrt(means(change**2))),
    "importance-root-mean-square/of-a-sequence": of_changes(
        lambda change: np.sqrt((change**2).sum(axis=-1).mean(axis=2)).mean(axis=1)
    ),
    "importance-largest-token/of-a-sequence": of_changes(
        lambda change: norms(change).max(axis=2).mean(axis=1)
    ),
    "importance-of-first-sequence/last": of_changes(lambda change: norms(change)[:, -1].mean(axis=1)),
    "importance-of-first-sequence/first-token": of_changes(
        lambda change: norms(change)[:, :, 0].mean(axis=1)
    ),
    "importance-of-first-sequence/last-token": of_changes(
        lambda change: norms(change)[:, :, -1].mean(axis=1)
    ),
    "importance-of-first-sequence/its-first-token": of_changes(lambda change: norms(change)[:, 0, 0]),
    "importance-of-the-rest/without-bias": of_changes(
        lambda change: means(norms(change.sum(axis=0) - change))
    ),
    "importance-by-lengths/signed": of_outputs(
        lambda full, change, bias: means(norms(full) - norms(full - change))
    ),
    "importance-by-lengths/turned": of_outputs(
        lambda full, change, bias: means(norms(full - change) - norms(full))
    ),
    "importance-by-lengths/of-the-means": of_outputs(
        lambda full, change, bias: np.abs(means(norms(full) - norms(full - change)))
    ),
    "importance-relative/to-the-largest": of_changes(
        lambda change: means(norms(change)) / means(norms(change)).max()
    ),
    "importance-relative/softmax": of_changes(lambda change: shares(means(norms(change)))),
    "importance-relative/to-the-output": of_outputs(
        lambda full, change, bias: means(norms(change) / norms(full))
    ),
    "importance-relative/to-the-mean-output": of_outputs(
        lambda full, change, bias: means(norms(change)) / norms(full).mean()
    ),
    "importance-averaged-over-heads/number": of_changes(lambda change: norms(change).mean()),
    "importance-averaged-over-heads/for-each": of_changes(
        lambda change: np.full(len(change), norms(change).mean())
    ),
    **{name: importance_from(keep_from(bert)) for name, bert in INHERITED_FORMS.items()},
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "real_heads.head_importance", form=form)(code)
