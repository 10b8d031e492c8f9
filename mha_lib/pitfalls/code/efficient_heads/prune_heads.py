"""Mistakes in `prune_heads`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mha_lib import pruning as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import given
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


@mistake("prune-tuple-as-index", "efficient_heads.prune_heads")
def prune_tuple_as_index(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: a tuple as an index has a number for each axis, and there is one axis."""
    stays = np.ones(num_heads, dtype=bool)
    stays[heads] = False
    columns = np.repeat(stays, len(W_O) // num_heads)  # (num_heads * d_k,)
    return W_Q[:, columns], W_K[:, columns], W_V[:, columns], W_O[columns], int(stays.sum())


@mistake("prune-nothing-fails", "efficient_heads.prune_heads")
def prune_needs_a_head(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: columns of no head at all cannot be joined."""
    d_k = W_Q.shape[1] // num_heads
    gone = np.concatenate([np.arange(i * d_k, (i + 1) * d_k) for i in heads])
    W_Q, W_K, W_V = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V))
    return W_Q, W_K, W_V, np.delete(W_O, gone, axis=0), num_heads - len(heads)


# --- forms -------------------------------------------------------------------------------------------------


def some_pruned(places: Sequence[int]) -> Callable[..., Pruned]:
    """`prune_heads` that gives back some of the weights as they were: 0, 1, 2, 3 in their order."""

    def prune_heads(
        W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
    ) -> Pruned:
        old = (W_Q, W_K, W_V, W_O)
        *pruned, left = right.prune_heads(*old, num_heads, heads)
        W_Q, W_K, W_V, W_O = (old[place] if place in places else pruned[place] for place in range(4))
        return W_Q, W_K, W_V, W_O, left

    return prune_heads


for form, places in {
    "values-left": (2,),
    "queries-alone": (1, 2, 3),
    "values-and-output": (0, 1),
    "queries-left": (0,),
    "keys-left": (1,),
}.items():
    mistake("prune-query-key-only", "efficient_heads.prune_heads", form=form)(some_pruned(places))


def with_columns(columns_of: Callable[[int, int], Sequence[int]]) -> Callable[..., Pruned]:
    """`prune_heads` that takes other columns for those of a head, which depend on its number and on d_k."""

    def prune_heads(
        W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
    ) -> Pruned:
        gone = [column for head in heads for column in columns_of(head, W_Q.shape[1] // num_heads)]
        W_Q, W_K, W_V = (np.delete(W, gone, axis=1) for W in (W_Q, W_K, W_V))
        return W_Q, W_K, W_V, np.delete(W_O, gone, axis=0), num_heads - len(heads)

    return prune_heads


mistake("prune-single-columns", "efficient_heads.prune_heads", form="first-of-block")(
    with_columns(lambda head, d_k: [head * d_k])
)
mistake("prune-single-columns", "efficient_heads.prune_heads", form="one-short")(
    with_columns(lambda head, d_k: range(head * d_k, (head + 1) * d_k - 1))
)


@mistake("prune-single-columns", "efficient_heads.prune_heads", form="kept")
def prune_keeps_single_columns(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: of each head that stays, one column stays."""
    kept = [head for head in range(num_heads) if head not in heads]
    return W_Q[:, kept], W_K[:, kept], W_V[:, kept], W_O[kept], len(kept)


@mistake("prune-interleaved-columns", "efficient_heads.prune_heads", form="output")
def prune_interleaved_rows_of_output(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: head i is taken to own every num_heads-th row of W_O."""
    stays = ~np.isin(np.arange(len(W_O)) % num_heads, heads)
    W_Q, W_K, W_V, _, left = right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)
    return W_Q, W_K, W_V, W_O[stays], left


@mistake("prune-stale-indices", "efficient_heads.prune_heads", form="no-further-than-the-last")
def prune_stale_indices_cut(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the numbers have moved, and one that is too large is taken for the last head's."""
    pruned = (W_Q, W_K, W_V, W_O, num_heads)
    for head in sorted(heads):
        pruned = right.prune_heads(*pruned, [min(head, pruned[4] - 1)])
    return pruned


@mistake("prune-stale-indices", "efficient_heads.prune_heads", form="shifted")
def prune_shifted_indices(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: every number is shifted by how many heads are gone, but those before them have not moved."""
    d_k = W_Q.shape[1] // num_heads
    for gone, head in enumerate(heads):
        own = slice((head - gone) * d_k, (head - gone + 1) * d_k)
        W_Q, W_K, W_V = (np.delete(W, own, axis=1) for W in (W_Q, W_K, W_V))
        W_O = np.delete(W_O, own, axis=0)
    return W_Q, W_K, W_V, W_O, num_heads - len(heads)


@mistake("prune-first-listed-only", "efficient_heads.prune_heads", form="last")
def prune_last_listed_only(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the last head is removed, however many are listed."""
    return right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads[-1:])


@mistake("prune-first-listed-only", "efficient_heads.prune_heads", form="last-and-all-counted")
def prune_last_and_count_all(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: each time the head is removed from the old weights, so that the last one alone is gone."""
    pruned = right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads[-1:])
    return *pruned[:4], num_heads - len(heads)


@mistake("prune-head-count-not-updated", "efficient_heads.prune_heads", form="one-less")
def prune_counts_one_less(
    W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, heads: Sequence[int]
) -> Pruned:
    """Wrong: the number of heads goes down by one, however many are removed."""
    return *right.prune_heads(W_Q, W_K, W_V, W_O, num_heads, heads)[:4], num_heads - 1


# --- laws: what is left of four heads ----------------------------------------------------------------------


def left_of_four(tested: Any, heads: Sequence[int]) -> list[Array]:
    """W_Q, W_K, W_V and W_Oᵀ after these heads are asked to go, of each the first row.

    There are four heads, two wide, and the number of a head, from 1 on, stands in all its columns.
    """
    W = np.repeat(np.arange(1.0, 5.0), 2) * np.ones((8, 1))  # (d_model, num_heads * d_k)
    W_Q, W_K, W_V, W_O, _ = tested(W, W, W, W.T, 4, heads)
    return [left[0] for left in (W_Q, W_K, W_V, W_O.T)]  # at most (num_heads * d_k,) each


def is_left(tested: Any, heads: Sequence[int], *numbers: int) -> bool:
    """Whether the heads of these numbers are left once the others are asked to go."""
    return left_of_four(tested, heads)[0].tolist() == np.repeat(numbers, 2).tolist()


def prunes_a_full_layer(tested: Any) -> bool:
    """Whether all four weights are right once one head or two are asked to go."""
    wanted = {(1,): np.repeat([1, 3, 4], 2), (0, 2): np.repeat([2, 4], 2)}
    return all(
        np.array_equal(left, numbers)
        for heads, numbers in wanted.items()
        for left in left_of_four(tested, list(heads))
    )


@law("prune-stale-indices", "efficient_heads.prune_heads")
def removes_with_old_numbers(tested: Any, steps: Sequence[Any]) -> bool:
    """Of heads 0 and 1, asked to go, 1 stays and 2 goes; one head alone goes as it should."""
    several = any(len(given(step, 5, "heads")) > 1 for step in steps)
    return several and is_left(tested, [0, 1], 2, 4) and is_left(tested, [1], 1, 3, 4)


@law("prune-keeps-listed", "efficient_heads.prune_heads")
def keeps_what_is_listed(tested: Any, steps: Sequence[Any]) -> bool:
    """What is asked to go is all that is left."""
    return is_left(tested, [1], 2) and is_left(tested, [2, 3], 3, 4)


@law("prune-zeroed-not-removed", "efficient_heads.prune_heads")
def zeroes_what_should_go(tested: Any, steps: Sequence[Any]) -> bool:
    """The weights are as large as before, and of some the columns or rows of the head are zero."""
    weights = [left.tolist() for left in left_of_four(tested, [1])]
    as_before, zeroed = ([1.0, 1.0, own, own, 3.0, 3.0, 4.0, 4.0] for own in (2.0, 0.0))
    return zeroed in weights and all(left in (as_before, zeroed) for left in weights)


@law("prune-nothing-fails", "efficient_heads.prune_heads")
def fails_without_a_head(tested: Any, steps: Sequence[Any]) -> bool:
    """Heads go as they should; if none is to go, all of them should stay."""
    return all(len(given(step, 5, "heads")) == 0 for step in steps) and prunes_a_full_layer(tested)


@law("prune-width-from-d-model", "efficient_heads.prune_heads")
def fails_if_pruned_before(tested: Any, steps: Sequence[Any]) -> bool:
    """Heads of a full layer go as they should, and those of a layer that was pruned before do not."""
    shapes = [given(step, 0, "W_Q").shape for step in steps]
    return all(rows != columns for rows, columns in shapes) and prunes_a_full_layer(tested)
