"""Mistakes in `pruned_attention`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import mistake, variants
from mha_lib.pitfalls.pieces import (
    FURTHER_PIECES,
    PARTLY_SPLIT,
    PIECES,
    first_head_for_all,
    projected,
    register,
)

Array = np.ndarray
Function = Callable[..., Any]


@mistake("prune-width-from-d-model", "efficient_heads.pruned_attention")
def pruned_width_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: d_model / num_heads is the width of a head in a full layer only."""
    batch, n, d_model = X.shape
    d_k = d_model // num_heads
    shape = (batch, n, num_heads, d_k)
    Q, K, V = (
        (X @ W).reshape(shape).transpose(0, 2, 1, 3) for W in (W_Q, W_K, W_V)
    )  # (batch, heads, n, d_k)
    return combine_heads(attention(Q, K, V)[0]) @ W_O  # (batch, n, d_model)


@mistake("prune-width-from-d-model", "efficient_heads.pruned_attention", form="slices")
def pruned_slices_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: heads are cut out of the weights by slices d_model / num_heads wide; some are short or empty."""
    d_k = X.shape[-1] // num_heads
    heads = []
    for i in range(num_heads):
        Q, K, V = (X @ W[:, i * d_k : (i + 1) * d_k] for W in (W_Q, W_K, W_V))  # (batch, n, at most d_k)
        heads.append(softmax(Q @ np.swapaxes(K, -2, -1) / np.sqrt(d_k)) @ V)  # (batch, n, at most d_k)
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)


@mistake("prune-scale-from-d-model", "efficient_heads.pruned_attention")
def pruned_scale_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are split rightly, but scaled as if they were d_model / num_heads wide."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(X.shape[-1] / num_heads)  # (batch, heads, n, n)
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


@mistake("prune-scale-from-all-heads", "efficient_heads.pruned_attention")
def pruned_scale_from_all_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the scores are scaled by the width of all heads together."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(W_Q.shape[1])  # (batch, heads, n, n)
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


@mistake("prune-output-padded", "efficient_heads.pruned_attention")
def pruned_output_padded(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: the heads' outputs are filled up with zeros to d_model, and W_O is not applied."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads = combine_heads(attention(Q, K, V)[0])[:, :, : X.shape[-1]]  # (batch, n, heads * d_k)
    missing = X.shape[-1] - heads.shape[-1]
    return np.pad(heads, ((0, 0), (0, 0), (0, missing)))  # (batch, n, d_model)


def pruned_from(
    wrong: Function,
    attend: Function = attention,
    split: Function = split_heads,
    combine: Function = combine_heads,
    project: Function = projected,
) -> Function:
    """`pruned_attention` made of these pieces, of which one is wrong."""

    def pruned_attention(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Any:
        Q, K, V = (split(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
        return project(combine(attend(Q, K, V)[0]), W_O)  # (batch, n, d_model)

    pruned_attention.__doc__ = wrong.__doc__
    return pruned_attention


@mistake("input-changed-in-place", "efficient_heads.pruned_attention")
def pruned_changes_its_input(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_Q is scaled in place, in the caller's array."""
    d_k = W_Q.shape[1] // num_heads
    W_Q /= np.sqrt(d_k)
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    return combine_heads(attention(Q * np.sqrt(d_k), K, V)[0]) @ W_O  # (batch, n, d_model)


wrong = variants("single_head", "attention")["always-causal"]
mistake("always-causal", "efficient_heads.pruned_attention")(pruned_from(wrong, attend=wrong))

for slug, (piece, wrong) in PIECES.items():
    mistake(slug, "efficient_heads.pruned_attention")(pruned_from(wrong, **{piece: wrong}))

no_forms = ("scale-by-d-model", "projection-transposed")  # the first is known under another name
further = {name: piece for name, piece in FURTHER_PIECES.items() if name not in no_forms}
register({**further, **PARTLY_SPLIT}, "efficient_heads.pruned_attention", pruned_from)


@mistake("prune-width-from-d-model", "efficient_heads.pruned_attention", form="summed-slices")
def pruned_summed_slices_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: columns and rows of each head are taken to be d_model / num_heads; what each head gives is added."""
    d_k = X.shape[-1] // num_heads
    output = np.zeros(X.shape)
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (X @ W[:, own] for W in (W_Q, W_K, W_V))  # (batch, n, at most d_k)
        output += attention(Q, K, V)[0] @ W_O[own]  # (batch, n, d_model)
    return output


@mistake("prune-width-from-d-model", "efficient_heads.pruned_attention", form="slices-scaled-as-they-are")
def pruned_slices_scaled_as_they_are(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: slices d_model / num_heads wide; each is scaled by its own width."""
    d_k = X.shape[-1] // num_heads
    own = [slice(i * d_k, (i + 1) * d_k) for i in range(num_heads)]
    heads = [attention(*((X @ W)[..., columns] for W in (W_Q, W_K, W_V)))[0] for columns in own]
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)


def scaled_by_d_model(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: the scores are divided by the root of d_model."""
    W_Q = W_Q * np.sqrt(W_Q.shape[1] / num_heads / X.shape[-1])
    return pruned_from(scaled_by_d_model)(X, W_Q, W_K, W_V, W_O, num_heads)


def one_wide_head(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: all heads in one."""
    return attention(X @ W_Q, X @ W_K, X @ W_V)[0] @ W_O


def with_residual(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: the tokens are added."""
    return X + pruned_from(with_residual)(X, W_Q, W_K, W_V, W_O, num_heads)


def reshaped_to_d_model(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: the heads are put together to the width d_model."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    return attention(Q, K, V)[0].transpose(0, 2, 1, 3).reshape(X.shape) @ W_O


for slug, form, code in (
    ("scale-by-d-model", "pieces", scaled_by_d_model),
    ("num-heads-ignored", "one-wide-head", one_wide_head),
    ("residual-added", "tokens", with_residual),
    ("prune-width-from-d-model", "merged", reshaped_to_d_model),
):
    mistake(slug, "efficient_heads.pruned_attention", form=form)(code)

for form, places in (("all-three", (0, 1, 2)), ("keys-and-values", (1, 2)), ("keys", (1,))):
    wrong = first_head_for_all(places)
    mistake("same-columns-for-every-head", "efficient_heads.pruned_attention", form=form)(
        pruned_from(wrong, attend=wrong)
    )
