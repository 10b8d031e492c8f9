"""Mistakes in `prune_heads`."""

from collections.abc import Sequence

import numpy as np

from mha_lib import pruning as right
from mha_lib.pitfalls.code import mistake
from mha_lib.pruning import prune_heads

Array = np.ndarray
Pruned = tuple[Array, Array, Array, Array, int]


@mistake("prune-width-from-d-model", "efficient_heads.prune_heads")
def prune_width_from_d_model(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: d_model / num_heads is the width of a head in a full layer only."""
    d_k = W_Q.shape[0] // num_heads
    gone = [column for i in heads for column in range(i * d_k, (i + 1) * d_k)]
    W_Q, W_K, W_V = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, gone, axis=0), num_heads - len(heads)


@mistake("prune-wrong-axis-of-output", "efficient_heads.prune_heads")
def prune_wrong_axis_of_output(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: columns of W_O are removed, but a head owns rows of it."""
    d_k = W_Q.shape[1] // num_heads
    gone = [column for i in heads for column in range(i * d_k, (i + 1) * d_k)]
    W_Q, W_K, W_V, W_O = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V, W_O))
    return W_Q, W_K, W_V, W_O, num_heads - len(heads)


@mistake("prune-output-untouched", "efficient_heads.prune_heads")
def prune_output_untouched(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: W_O still expects all heads."""
    pruned = right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    W_Q, W_K, W_V, _, left = pruned
    return W_Q, W_K, W_V, W_O.copy(), left


@mistake("prune-query-key-only", "efficient_heads.prune_heads")
def prune_query_key_only(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the values and the output keep the heads that are gone."""
    W_Q, W_K, _, _, left = right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    return W_Q, W_K, W_V.copy(), W_O.copy(), left


@mistake("prune-head-count-not-updated", "efficient_heads.prune_heads")
def prune_head_count_not_updated(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the number of heads is returned as it was."""
    return *right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)[:4], num_heads


@mistake("prune-returns-removed-count", "efficient_heads.prune_heads")
def prune_returns_removed_count(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the number of heads that are gone is returned, not of those that are left."""
    return *right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)[:4], len(heads)


@mistake("prune-stale-indices", "efficient_heads.prune_heads")
def prune_stale_indices(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: heads are removed one after the other, and after the first the numbers have moved."""
    pruned = (W_Q, W_K, W_V, W_O, num_heads)
    for head in heads:
        pruned = right.prune_heads(*pruned, [head])
    return pruned


@mistake("prune-first-listed-only", "efficient_heads.prune_heads")
def prune_first_listed_only(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: one head is removed, however many are listed."""
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads[:1])


@mistake("prune-keeps-listed", "efficient_heads.prune_heads")
def prune_keeps_listed(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the listed heads stay and the others go."""
    others = [i for i in range(num_heads) if i not in heads]
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, others)


@mistake("prune-counted-from-one", "efficient_heads.prune_heads")
def prune_counted_from_one(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the first head is taken to be number 1."""
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, [i - 1 for i in heads])


@mistake("prune-single-columns", "efficient_heads.prune_heads")
def prune_single_columns(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: column i is removed, but head i owns d_k columns."""
    W_Q, W_K, W_V = (np.delete(W, heads, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, heads, axis=0), num_heads - len(heads)


@mistake("prune-interleaved-columns", "efficient_heads.prune_heads")
def prune_interleaved_columns(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: head i is taken to own every num_heads-th column."""
    columns = range(W_Q.shape[1])
    gone = [column for column in columns if column % num_heads in heads]
    W_Q, W_K, W_V = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, gone, axis=0), num_heads - len(heads)


@mistake("prune-rows-of-projections", "efficient_heads.prune_heads")
def prune_rows_of_projections(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: rows of W_Q, W_K and W_V are removed, but these belong to the features of the input."""
    d_k = W_Q.shape[1] // num_heads
    gone = [column for i in heads for column in range(i * d_k, (i + 1) * d_k)]
    W_Q, W_K, W_V, W_O = (np.delete(W, gone, axis=0) for W in (W_Q, W_K, W_V, W_O))
    return W_Q, W_K, W_V, W_O, num_heads - len(heads)


@mistake("prune-zeroed-not-removed", "efficient_heads.prune_heads")
def prune_zeroed_not_removed(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the heads are silenced, but the weights are as large as before."""
    d_k = W_Q.shape[1] // num_heads
    stays = np.repeat(~np.isin(np.arange(num_heads), heads), d_k)
    return W_Q * stays, W_K * stays, W_V * stays, W_O * stays[:, None], num_heads


@mistake("input-changed-in-place", "efficient_heads.prune_heads")
def prune_changes_its_input(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> tuple[Array, Array, Array, Array, int]:
    """Wrong: the rows of the removed heads become 0 in the caller's W_O too."""
    result = prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    W_O[np.repeat(np.isin(np.arange(num_heads), heads), len(W_O) // num_heads)] = 0.0
    return result
