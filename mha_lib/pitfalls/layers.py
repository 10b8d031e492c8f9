"""Laws of a layer: its output on one input shows which of its pieces is wrong, and how.

A layer consists of projections, attention, a merge and W_O. A mistake may be in one of the three projections or in
several. The law tries all of these, so that each need not be a form of its own.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.code import law
from mha_lib.pitfalls.code.multi_head.combine_heads import (
    combine_heads_interleaved,
    combine_heads_without_transpose,
)
from mha_lib.pitfalls.code.multi_head.split_heads import (
    split_heads_axis_not_moved,
    split_heads_interleaved,
    split_heads_without_transpose,
)
from mha_lib.pitfalls.one_head import close

Array = np.ndarray
Project = Callable[[Array, Array, int], Array]
Layer = Callable[..., Array]


def project(x: Array, W: Array, num_heads: int) -> Array:
    """Right: one product makes all heads, `(batch, heads, n, d_k)`."""
    return split_heads(x @ W, num_heads)


def layer(
    projections: Sequence[Project] = (project, project, project),
    attend: Callable[..., Any] = attention,
    merge: Callable[[Array], Array] = combine_heads,
    output: Callable[[Array, Array], Array] = np.matmul,
) -> Layer:
    """A layer of these pieces. It takes tokens, memory, the four weights, the number of heads and a mask."""

    def made(
        X: Array,
        memory: Array,
        W_Q: Array,
        W_K: Array,
        W_V: Array,
        W_O: Array,
        num_heads: int,
        mask: Array | None = None,
    ) -> Array:
        arguments = zip(projections, (X, memory, memory), (W_Q, W_K, W_V), strict=True)
        Q, K, V = (project(x, W, num_heads) for project, x, W in arguments)  # (batch, heads, n, d_k)
        return output(merge(attend(Q, K, V, mask)[0]), W_O)  # (batch, n, d_model)

    return made


# --- wrong projections -------------------------------------------------------------------------------------


def turned(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: the weight is transposed."""
    return split_heads(x @ W.T, num_heads)


def interleaved(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: the features are interleaved among the heads."""
    return split_heads_interleaved(x @ W, num_heads)


def viewed(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: the features are split into heads by a reshape alone."""
    return split_heads_without_transpose(x @ W, num_heads)


def first_columns(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: each head has the first columns."""
    return np.repeat(project(x, W, num_heads)[:, :1], num_heads, axis=1)


def last_columns(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: each head has the last columns."""
    return np.repeat(project(x, W, num_heads)[:, -1:], num_heads, axis=1)


def torn(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: the weight is reshaped into heads."""
    return x[:, None] @ W.reshape(num_heads, len(W), -1)


def not_projected(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: the tokens are not projected."""
    return split_heads(x, num_heads)


def cut_off(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: a ReLU follows the projection."""
    return np.maximum(project(x, W, num_heads), 0)


def squashed(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: a tanh follows the projection."""
    return np.tanh(project(x, W, num_heads))


def blocks(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: a head sees its own slice of the tokens, and its block of the weight."""
    d_k = len(W) // num_heads
    cut = [slice(i * d_k, (i + 1) * d_k) for i in range(num_heads)]
    return np.stack([x[..., each] @ W[each, each] for each in cut], axis=1)


def first_block(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: a head sees its own slice of the tokens, and the first block of the weight."""
    d_k = len(W) // num_heads
    return split_heads(x, num_heads) @ W[:d_k, :d_k]


def own_columns(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: a head sees its own slice of the tokens, the first rows of the weight, and its own columns."""
    d_k = len(W) // num_heads
    return split_heads(x, num_heads) @ W[:d_k].reshape(d_k, num_heads, d_k).transpose(1, 0, 2)


def own_rows(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: a head sees its own slice of the tokens, its own rows of the weight, and the first columns."""
    d_k = len(W) // num_heads
    return split_heads(x, num_heads) @ W[:, :d_k].reshape(num_heads, d_k, d_k)


WRONG_PROJECTIONS: Mapping[str, Sequence[Project]] = {
    "weights-applied-transposed": (turned,),
    "split-without-transpose": (viewed,),
    "heads-interleaved": (interleaved,),
    "same-columns-for-every-head": (first_columns, last_columns),
    "weights-reshaped-without-transpose": (torn,),
    "no-projection": (not_projected,),
    "nonlinear-projection": (cut_off, squashed),
    "input-sliced-per-head": (blocks, first_block, own_columns, own_rows),
}


def in_some(wrong: Project) -> list[tuple[Project, ...]]:
    """The projections of a layer, with the wrong one in one, two or all three places."""
    return [each for each in itertools.product((project, wrong), repeat=3) if wrong in each]


# --- wrong weights, merges and outputs -----------------------------------------------------------------------


def averaging(pool: Callable[[Array], Array]) -> Callable[..., Any]:
    """Wrong: an attention that pools its weights into one set for all heads."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
        weights = np.repeat(pool(attention(Q, K, V, mask)[1]), Q.shape[1], axis=1)  # (batch, heads, n, m)
        return weights @ V, weights

    return attend


def scores_averaged(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are averaged over the heads."""
    scores = np.mean(Q @ np.swapaxes(K, -2, -1), axis=1, keepdims=True) / np.sqrt(
        Q.shape[-1]
    )  # (batch, 1, n, m)
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights @ V, weights


def scaled_by_d_model(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are divided by d_model."""
    return attention(Q / (Q.shape[1] * np.sqrt(Q.shape[-1])), K, V, mask)


def scaled_by_root_of_d_model(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are divided by √d_model."""
    return attention(Q / np.sqrt(Q.shape[1]), K, V, mask)


def scaled_by_heads(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are divided by the root of the number of heads."""
    return attention(Q * np.sqrt(Q.shape[-1] / Q.shape[1]), K, V, mask)


def not_scaled(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are not divided."""
    return attention(Q * np.sqrt(Q.shape[-1]), K, V, mask)


def scaled_by_dk(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are divided by d_k."""
    return attention(Q / np.sqrt(Q.shape[-1]), K, V, mask)


def weights_turned(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the weights are transposed before they meet the values."""
    weights = np.swapaxes(attention(Q, K, V, mask)[1], -2, -1)
    return weights @ V, weights


def filled(fill: Callable[[Array], Any], axis: int = -1) -> Callable[..., Any]:
    """Wrong: an attention that fills hidden scores with `fill`, and whose softmax runs along `axis`."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
        scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])  # (batch, heads, n, m)
        weights = softmax(scores if mask is None else np.where(mask, scores, fill(scores)), axis)
        return weights @ V, weights

    return attend


def weighing(weigh: Callable[..., Array]) -> Callable[..., Any]:
    """Wrong: an attention that computes its weights from scores and mask by `weigh`."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
        weights = weigh(Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1]), mask)  # (batch, heads, n, m)
        return weights @ V, weights

    return attend


def finite(scores: Array) -> float:
    """A fill value that hides keys as −inf does, except in rows without keys."""
    return -1e9


def exchanged_sizes(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: there are d_k heads of width `num_heads`."""
    return split_heads(x @ W, len(W) // num_heads)


def wide_with_narrow_scale(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: one head attends over all features, with scores divided by √d_k."""
    num_heads = Q.shape[1]
    root = np.sqrt(num_heads)
    Q, K, V = (combine_heads(x)[:, None] for x in (Q, K, V))  # (batch, 1, n, d_model)
    output, weights = attention(Q * root, K, V, mask)
    return split_heads(output[:, 0], num_heads), weights


def between_heads(x: Array, W: Array, num_heads: int) -> Array:
    """Wrong: the tokens are on the axis of the heads, `(batch, n, heads, d_k)`."""
    return split_heads_axis_not_moved(x @ W, num_heads)


def in_reverse(heads: Array) -> Array:
    """Wrong: the last head comes first."""
    return combine_heads(heads[:, ::-1])


def features_first(heads: Array) -> Array:
    """Wrong: another two axes are exchanged before the reshape."""
    return combine_heads_without_transpose(
        np.ascontiguousarray(np.swapaxes(heads, -2, -1)).reshape(heads.shape)
    )


def first_scores(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Wrong: the scores are taken over all features."""
    return attention(combine_heads(Q)[:, None], combine_heads(K)[:, None], V, mask)


PIECES: Mapping[str, Sequence[Layer]] = {
    "weights-averaged-over-heads": (
        layer(attend=averaging(lambda weights: weights.mean(axis=1, keepdims=True))),
        layer(attend=averaging(lambda weights: weights.sum(axis=1, keepdims=True))),
        layer(attend=scores_averaged),
    ),
    "no-scale": (layer(attend=not_scaled),),
    "scale-by-dk": (layer(attend=scaled_by_dk),),
    "weights-transposed": (layer(attend=weights_turned),),
    "softmax-over-heads": [layer(attend=filled(fill, axis=1)) for fill in (finite, lambda scores: -np.inf)],
    "head-count-taken-as-width": (layer((exchanged_sizes,) * 3),),
    "scale-by-d-model": (layer(attend=scaled_by_d_model), layer(attend=scaled_by_root_of_d_model)),
    "scale-by-axis-one": (layer(attend=scaled_by_heads),),
    "heads-in-reverse": (layer(merge=in_reverse),),
    "heads-interleaved": (
        layer(merge=combine_heads_interleaved),
        layer((interleaved,) * 3, merge=combine_heads_interleaved),
    ),
    "merge-without-transpose": (layer(merge=combine_heads_without_transpose), layer(merge=features_first)),
    "heads-fold-by-reshape": (layer((viewed,) * 3, merge=combine_heads_without_transpose),),
    "no-output-projection": (layer(output=lambda heads, W_O: heads),),
    "projection-transposed": (layer(output=lambda heads, W_O: heads @ W_O.T),),
    "weights-applied-transposed": (
        layer((turned,) * 3, output=lambda heads, W_O: heads @ W_O.T),
        layer((project, project, turned), output=lambda heads, W_O: heads @ W_O.T),
    ),
    "nonlinear-projection": (layer(output=lambda heads, W_O: np.maximum(heads @ W_O, 0)),),
    "num-heads-ignored": (layer(attend=first_scores), layer(attend=wide_with_narrow_scale)),
}


def exchanged(*order: int) -> Layer:
    """A right layer whose weights W_Q, W_K and W_V are taken in another order."""

    def made(X: Array, memory: Array, *rest: Any) -> Array:
        weights = [rest[place] for place in order]
        return layer()(X, memory, *weights, *rest[3:])

    return made


def residual_before(X: Array, memory: Array, *rest: Any) -> Array:
    """Wrong: the tokens are added before W_O."""
    return layer(output=lambda heads, W_O: (X + heads) @ W_O)(X, memory, *rest)


def residual_after(X: Array, memory: Array, *rest: Any) -> Array:
    """Wrong: the tokens are added to the output."""
    return X + layer()(X, memory, *rest)


WEIGHTS: Mapping[str, Sequence[Layer]] = {
    "shared-projection": [
        exchanged(*order)
        for order in ((0, 0, 0), (1, 1, 1), (2, 2, 2), (0, 0, 2), (1, 1, 2), (0, 1, 0), (2, 1, 2))
    ],
    "value-used-as-key": [exchanged(0, 2, 2)],
    "queries-and-keys-swapped": [exchanged(1, 0, 2)],
    "keys-and-values-exchanged": [exchanged(0, 2, 1)],
    "residual-added": [residual_before, residual_after],
}


def without_axes(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, *rest: Any
) -> Array:
    """Wrong: within a token, the heads attend to one another."""
    made = layer(
        (between_heads,) * 3,
        attend=lambda Q, K, V, mask: attention(Q, K, V),
        merge=lambda heads: heads.reshape(X.shape),
    )
    return made(X, memory, W_Q, W_K, W_V, W_O, *rest)


def without_axes_but_merged(X: Array, memory: Array, W_Q: Array, W_K: Array, *rest: Any) -> Array:
    """Wrong: like `without_axes`, but the merge exchanges tokens and heads as well."""
    made = layer(
        (between_heads,) * 3,
        attend=lambda Q, K, V, mask: attention(Q, K, V),
        merge=lambda heads: heads.transpose(0, 2, 1, 3).reshape(X.shape),
    )
    return made(X, memory, W_Q, W_K, *rest)


def wrong_layers() -> dict[str, list[Layer]]:
    """All layers with one wrong piece, by the slug of the mistake."""
    found: dict[str, list[Layer]] = {slug: list(layers) for slug, layers in WEIGHTS.items()}
    for slug, layers in PIECES.items():
        found.setdefault(slug, []).extend(layers)
    for slug, wrong in WRONG_PROJECTIONS.items():
        found.setdefault(slug, []).extend(layer(each) for one in wrong for each in in_some(one))
    found["attention-between-heads"] = [without_axes, without_axes_but_merged]
    return found


# --- registering -------------------------------------------------------------------------------------------


def example(memory: bool) -> list[Any]:
    """Two sequences of four tokens, a memory of seven if asked for, weights, and the number of heads, 3."""
    rng = np.random.default_rng(7)
    X, remembered = rng.normal(size=(2, 4, 15)), rng.normal(size=(2, 7, 15))
    return [X, *([remembered] if memory else []), *rng.normal(size=(4, 15, 15)) / 3, 3]


def tell(
    item: str,
    right: Callable[..., Array],
    spread: Callable[..., list[Any]],
    mistakes: Mapping[str, Iterable[Layer]],
    memory: bool = False,
) -> None:
    """Register laws of an item: on the example, its output equals that of a layer with this mistake.

    Args:
        item: `assignment.item`.
        right: the right function.
        spread: turns the arguments of the item into those of a layer here.
        mistakes: wrong layers, by slug.
        memory: whether the item takes a memory.
    """
    for slug, layers in mistakes.items():

        def of_part(tested: Any, steps: Sequence[Any], layers: Iterable[Layer] = tuple(layers)) -> bool:
            arguments = example(memory)
            output = tested(*arguments)
            if _alike(right(*arguments), output):
                return False
            found = [each for each in layers if _alike(_on(each, spread(*arguments)), output)]
            return any(_matters(each, right, spread, step) for each in found for step in steps)

        law(slug, item)(of_part)


def _on(wrong: Layer, arguments: Sequence[Any]) -> Any:
    """The output of a layer, or NaN if it raises an error."""
    try:
        return wrong(*arguments)
    except Exception:  # such as heads that do not fit one another
        return np.nan


def _matters(wrong: Layer, right: Callable[..., Array], spread: Callable[..., list[Any]], step: Any) -> bool:
    """Whether a step shows the mistake. A step without recorded arguments counts as one that does."""
    args, kwargs = step.request.get("args", ()), step.request.get("kwargs", {})
    if not args:
        return True
    return not _alike(_on(wrong, spread(*args, **kwargs)), right(*args, **kwargs))


def _alike(first: Any, second: Any) -> bool:
    """Whether two results are the same, with NaN in the same places, and have a finite number at all."""
    kept = np.isfinite(first)
    return bool(kept.any()) and np.array_equal(kept, np.isfinite(second)) and close(first[kept], second[kept])
