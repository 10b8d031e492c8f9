"""Mistakes in taking heads out of a layer, and in running the narrower layer that is left."""

from collections.abc import Sequence

import numpy as np

from mha_lib import pruning as right
from mha_lib.attention import attention, softmax
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray
Pruned = tuple[Array, Array, Array, Array, int]

# --- running a layer that is narrower than the model -------------------------------------------------------


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


def pruned_scale_from_d_model(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are split rightly, but scaled as if they were d_model / num_heads wide."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(X.shape[-1] / num_heads)  # (batch, heads, n, n)
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


def pruned_scale_from_all_heads(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the scores are scaled by the width of all heads together."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(W_Q.shape[1])  # (batch, heads, n, n)
    return combine_heads(softmax(scores) @ V) @ W_O  # (batch, n, d_model)


def pruned_output_padded(X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> Array:
    """Wrong: the heads' outputs are filled up with zeros to d_model, and W_O is not applied."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads = combine_heads(attention(Q, K, V)[0])[:, :, : X.shape[-1]]  # (batch, n, heads * d_k)
    missing = X.shape[-1] - heads.shape[-1]
    return np.pad(heads, ((0, 0), (0, 0), (0, missing)))  # (batch, n, d_model)


# --- taking heads out --------------------------------------------------------------------------------------


def prune_width_from_d_model(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: d_model / num_heads is the width of a head in a full layer only."""
    d_k = W_Q.shape[0] // num_heads
    gone = [column for i in heads for column in range(i * d_k, (i + 1) * d_k)]
    W_Q, W_K, W_V = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, gone, axis=0), num_heads - len(heads)


def prune_wrong_axis_of_output(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: columns of W_O are removed, but a head owns rows of it."""
    d_k = W_Q.shape[1] // num_heads
    gone = [column for i in heads for column in range(i * d_k, (i + 1) * d_k)]
    W_Q, W_K, W_V, W_O = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V, W_O))
    return W_Q, W_K, W_V, W_O, num_heads - len(heads)


def prune_output_untouched(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: W_O still expects all heads."""
    pruned = right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    W_Q, W_K, W_V, _, left = pruned
    return W_Q, W_K, W_V, W_O.copy(), left


def prune_query_key_only(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the values and the output keep the heads that are gone."""
    W_Q, W_K, _, _, left = right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    return W_Q, W_K, W_V.copy(), W_O.copy(), left


def prune_head_count_not_updated(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the number of heads is returned as it was."""
    return *right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)[:4], num_heads


def prune_returns_removed_count(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the number of heads that are gone is returned, not of those that are left."""
    return *right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)[:4], len(heads)


def prune_stale_indices(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: heads are removed one after the other, and after the first the numbers have moved."""
    pruned = (W_Q, W_K, W_V, W_O, num_heads)
    for head in heads:
        pruned = right.prune_heads(*pruned, [head])
    return pruned


def prune_first_listed_only(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: one head is removed, however many are listed."""
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads[:1])


def prune_keeps_listed(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the listed heads stay and the others go."""
    others = [i for i in range(num_heads) if i not in heads]
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, others)


def prune_counted_from_one(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the first head is taken to be number 1."""
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, [i - 1 for i in heads])


def prune_single_columns(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: column i is removed, but head i owns d_k columns."""
    W_Q, W_K, W_V = (np.delete(W, heads, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, heads, axis=0), num_heads - len(heads)


def prune_interleaved_columns(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: head i is taken to own every num_heads-th column."""
    columns = range(W_Q.shape[1])
    gone = [column for column in columns if column % num_heads in heads]
    W_Q, W_K, W_V = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, gone, axis=0), num_heads - len(heads)


def prune_rows_of_projections(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: rows of W_Q, W_K and W_V are removed, but these belong to the features of the input."""
    d_k = W_Q.shape[1] // num_heads
    gone = [column for i in heads for column in range(i * d_k, (i + 1) * d_k)]
    W_Q, W_K, W_V, W_O = (np.delete(W, gone, axis=0) for W in (W_Q, W_K, W_V, W_O))
    return W_Q, W_K, W_V, W_O, num_heads - len(heads)


def prune_zeroed_not_removed(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the heads are silenced, but the weights are as large as before."""
    d_k = W_Q.shape[1] // num_heads
    stays = np.repeat(~np.isin(np.arange(num_heads), heads), d_k)
    return W_Q * stays, W_K * stays, W_V * stays, W_O * stays[:, None], num_heads


RUN = "efficient_heads.pruned_attention"
PRUNE = "efficient_heads.prune_heads"

PITFALLS = (
    Pitfall(
        slug="prune-width-from-d-model",
        title="The width of a head taken from d_model",
        symptom="Right for a full layer; in a pruned one heads seem wider than they are.",
        reason="You compute d_k as d_model / num_heads, but the heads of a pruned layer are fewer and no wider.",
        fix="Take the width from the weights: `d_k = W_Q.shape[1] // num_heads`.",
        passes=("full width",),
        variants={RUN: pruned_width_from_d_model, PRUNE: prune_width_from_d_model},
    ),
    Pitfall(
        slug="prune-scale-from-d-model",
        title="Scores scaled by √(d_model / num_heads)",
        symptom="Right for a full layer; in a pruned one the weights are too close to uniform.",
        reason="You scale by the width that heads of a full layer would have, but a query is d_k wide, which the "
        "weights tell.",
        fix="Divide by the root of the last axis of Q.",
        passes=("shape", "finite", "full width"),
        variants={RUN: pruned_scale_from_d_model},
    ),
    Pitfall(
        slug="prune-scale-from-all-heads",
        title="Scores scaled by the width of all heads together",
        symptom="Right with one head; with more of them the weights are too close to uniform.",
        reason="You divide by the root of the number of columns of W_Q, which hold all heads, but a score is a sum "
        "over the d_k columns of one head.",
        fix="Divide by the root of the last axis of Q after the split.",
        passes=("shape", "finite"),
        variants={RUN: pruned_scale_from_all_heads},
    ),
    Pitfall(
        slug="prune-output-padded",
        title="Filled up with zeros in place of W_O",
        symptom="The right shape; the features after those of the heads are 0.",
        reason="You fill the heads' outputs up with zeros, but W_O leads from their width back to d_model.",
        fix="Multiply the heads, side by side, with W_O, which has as many rows as they have columns.",
        passes=("shape", "finite"),
        variants={RUN: pruned_output_padded},
    ),
    Pitfall(
        slug="prune-wrong-axis-of-output",
        title="Columns of W_O removed in place of rows",
        symptom="W_O no longer fits the heads, and its output is narrower than the model.",
        reason="You remove columns of W_O, but a head owns rows of it: W_O is applied after the heads.",
        fix="Remove rows there: `W_O[columns]`.",
        passes=("number of heads",),
        variants={PRUNE: prune_wrong_axis_of_output},
    ),
    Pitfall(
        slug="prune-output-untouched",
        title="W_O left as it is",
        symptom="The heads that are left no longer fit W_O.",
        reason="You leave the rows of the removed heads in W_O, so it has more rows than the heads have columns.",
        fix="Remove from W_O the rows of the same heads.",
        passes=("number of heads",),
        variants={PRUNE: prune_output_untouched},
    ),
    Pitfall(
        slug="prune-query-key-only",
        title="Only W_Q and W_K pruned",
        symptom="Fewer weights than values: nothing fits.",
        reason="You remove the heads from queries and keys only, but each head has values and rows of W_O as well.",
        fix="Treat W_V like W_Q and W_K, and remove the heads' rows from W_O.",
        passes=("number of heads",),
        variants={PRUNE: prune_query_key_only},
    ),
    Pitfall(
        slug="prune-head-count-not-updated",
        title="The number of heads as before",
        symptom="Right weights, which are then split among too many heads.",
        reason="You return the number of heads from before, and whoever uses the weights finds heads too narrow.",
        fix="Return the number of heads that are left.",
        passes=("weights",),
        variants={PRUNE: prune_head_count_not_updated},
    ),
    Pitfall(
        slug="prune-returns-removed-count",
        title="The number of removed heads returned",
        symptom="Right weights, and a number of heads that fits only if half of them went.",
        reason="You return how many heads are gone, but what is asked for is how many are left.",
        fix="Return the number of heads that are left.",
        passes=("weights",),
        variants={PRUNE: prune_returns_removed_count},
    ),
    Pitfall(
        slug="prune-stale-indices",
        title="Removed one by one with the old numbers",
        symptom="Right for one head; with several, a wrong one goes whenever a lower one went before.",
        reason="After you remove a head, all heads behind it move up, so your next number means another head.",
        fix="Find all columns first and remove them at once.",
        passes=("number of heads", "one head removed"),
        variants={PRUNE: prune_stale_indices},
    ),
    Pitfall(
        slug="prune-first-listed-only",
        title="Only one head removed",
        symptom="Right for one head; with several, the others are still there.",
        reason="You remove one head, but the list may hold several.",
        fix="Collect the columns of all listed heads.",
        passes=("one head removed",),
        variants={PRUNE: prune_first_listed_only},
    ),
    Pitfall(
        slug="prune-keeps-listed",
        title="The listed heads stay",
        symptom="The other heads are gone.",
        reason="You keep the listed heads and remove the others, but the list says which ones go.",
        fix="Turn the condition round.",
        passes=(),
        variants={PRUNE: prune_keeps_listed},
    ),
    Pitfall(
        slug="prune-counted-from-one",
        title="Heads counted from 1",
        symptom="The head before each listed one is gone.",
        reason="You take the first head to be number 1, but heads are counted from 0.",
        fix="Let head i own the columns from i · d_k on.",
        passes=(),
        variants={PRUNE: prune_counted_from_one},
    ),
    Pitfall(
        slug="prune-single-columns",
        title="One column removed for each head",
        symptom="The weights are narrower by one column a head, and can no longer be split evenly.",
        reason="You remove column i for head i, but a head owns d_k columns.",
        fix="Remove the columns i · d_k … (i + 1) · d_k − 1.",
        passes=("number of heads",),
        variants={PRUNE: prune_single_columns},
    ),
    Pitfall(
        slug="prune-interleaved-columns",
        title="Every num_heads-th column removed",
        symptom="Right shapes; each head that is left has lost some columns and got others.",
        reason="You take head i to own the columns i, i + num_heads, …, but its columns stand side by side.",
        fix="Remove the columns i · d_k … (i + 1) · d_k − 1.",
        passes=("number of heads", "shape"),
        variants={PRUNE: prune_interleaved_columns},
    ),
    Pitfall(
        slug="prune-rows-of-projections",
        title="Rows of W_Q, W_K and W_V removed",
        symptom="The weights no longer fit the tokens.",
        reason="You remove rows of the projections, but these belong to the features of the input, which stay.",
        fix="Remove columns of W_Q, W_K and W_V, and rows of W_O.",
        passes=("number of heads",),
        variants={PRUNE: prune_rows_of_projections},
    ),
    Pitfall(
        slug="prune-zeroed-not-removed",
        title="Heads silenced, not removed",
        symptom="The layer's output is right, but nothing is saved: the weights are as large as before.",
        reason="You set the heads' weights to zero, but the point of pruning is that they are not stored and not "
        "computed.",
        fix="Return smaller arrays, without those columns and rows.",
        passes=("layer's output",),
        variants={PRUNE: prune_zeroed_not_removed},
    ),
)
