"""Mistakes in taking heads out of a layer, and in running the narrower layer that is left."""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="prune-width-from-d-model",
        title="The width of a head taken from d_model",
        symptom="The result is right for a full layer. In a pruned one, heads seem wider than they are.",
        reason="You compute d_k as d_model / num_heads, but the heads of a pruned layer are fewer and no wider.",
        fix="Take the width from the weights: `d_k = W_Q.shape[1] // num_heads`.",
        passes=("full width",),
    ),
    Pitfall(
        slug="prune-scale-from-d-model",
        title="Scores scaled by √(d_model / num_heads)",
        symptom="The result is right for a full layer. In a pruned one, the weights are too close to uniform.",
        reason="You scale by the width of a full layer's heads, but here a query is d_k wide, and d_k follows "
        "from the weights.",
        fix="Divide by the root of the last axis of Q.",
        passes=("shape", "finite", "full width"),
    ),
    Pitfall(
        slug="prune-scale-from-all-heads",
        title="Scores scaled by the width of all heads together",
        symptom="The result is right with one head. With several, the weights are too close to uniform.",
        reason="You divide by the root of the number of columns of W_Q, which hold all heads, but a score is a sum "
        "over the d_k columns of one head.",
        fix="Divide by the root of the last axis of Q after the split.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="prune-output-padded",
        title="Padded with zeros in place of W_O",
        symptom="The shape is right, but the features after those of the heads are 0.",
        reason="You pad the heads' outputs with zeros, but W_O maps their width back to d_model.",
        fix="Multiply the concatenated heads by W_O, which has as many rows as they have columns.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="prune-wrong-axis-of-output",
        title="Columns of W_O removed in place of rows",
        symptom="W_O no longer fits the heads, and its output is narrower than the model.",
        reason="You remove columns of W_O, but a head owns rows of it: W_O is applied after the heads.",
        fix="Remove rows of W_O: `W_O[columns]`.",
        passes=("number of heads",),
    ),
    Pitfall(
        slug="prune-output-untouched",
        title="W_O left as it is",
        symptom="The heads that are left no longer fit W_O.",
        reason="You leave the rows of the removed heads in W_O, so it has more rows than the heads have columns.",
        fix="Remove the rows of the same heads from W_O.",
        passes=("number of heads",),
    ),
    Pitfall(
        slug="prune-query-key-only",
        title="Only some of the weights pruned",
        symptom="Some weights have fewer heads than others, so nothing fits.",
        reason="You remove the heads from some of the weights only, but each head has columns of W_Q, W_K and W_V, "
        "and rows of W_O.",
        fix="Treat W_Q, W_K and W_V alike, and remove the heads' rows from W_O.",
        passes=("number of heads",),
    ),
    Pitfall(
        slug="prune-head-count-not-updated",
        title="The number of heads as before",
        symptom="The weight matrices are right, but they are then split among too many heads.",
        reason="You return the old number of heads, or one less, and code that uses the weights makes heads "
        "that are too narrow.",
        fix="Return the number of heads that are left.",
        passes=("weights",),
    ),
    Pitfall(
        slug="prune-returns-removed-count",
        title="The number of removed heads returned",
        symptom="The weight matrices are right, but the number of heads is right only if half of them were "
        "removed.",
        reason="You return the number of removed heads, but the contract asks how many are left.",
        fix="Return the number of heads that are left.",
        passes=("weights",),
    ),
    Pitfall(
        slug="prune-stale-indices",
        title="Removed one by one with the old numbers",
        symptom="One head is removed correctly. With several, in one order of the list or another, wrong ones are "
        "removed.",
        reason="After you remove a head, those behind it move up and those before it do not, so your next number "
        "means another head.",
        fix="Find all columns first and remove them at once.",
        passes=("number of heads", "one head removed"),
    ),
    Pitfall(
        slug="prune-first-listed-only",
        title="Only one head removed",
        symptom="One head is removed correctly. With several, the others are still there.",
        reason="You remove one head, but the list may hold several.",
        fix="Collect the columns of all listed heads.",
        passes=("one head removed",),
    ),
    Pitfall(
        slug="prune-tuple-as-index",
        title="A tuple of heads as an index",
        symptom="A list of heads works. With a tuple of several, NumPy says that there are too many indices.",
        reason="You index an array with `heads` itself, but NumPy takes a tuple for one index on each axis.",
        fix="Make a list of it first: `stays[list(heads)] = False`.",
        passes=("shape", "one head removed", "number of heads"),
    ),
    Pitfall(
        slug="prune-nothing-fails",
        title="An empty list of heads is not handled",
        symptom="The result is right for one head and for several. An empty list gives an error or another "
        "result.",
        reason="You assume that the list holds at least one head, but it may be empty, and then all heads "
        "stay.",
        fix="Mark the columns that stay with `np.isin`, or return early if the list is empty.",
        passes=(),
    ),
    Pitfall(
        slug="prune-keeps-listed",
        title="The listed heads stay",
        symptom="The heads that should stay are gone.",
        reason="You keep the listed heads and remove the others, but the list says which ones to remove.",
        fix="Invert the condition.",
        passes=(),
    ),
    Pitfall(
        slug="prune-counted-from-one",
        title="Heads counted from 1",
        symptom="The head before each listed one is gone.",
        reason="You take the first head to be number 1, but heads are counted from 0.",
        fix="Let head i own the columns from i · d_k on.",
        passes=(),
    ),
    Pitfall(
        slug="prune-single-columns",
        title="One column removed for each head",
        symptom="A wrong number of columns is removed for each head, and the weights can no longer be split "
        "evenly.",
        reason="You treat a head as one column, or as one column too few, but a head owns d_k columns.",
        fix="Remove the columns i · d_k … (i + 1) · d_k − 1.",
        passes=("number of heads",),
    ),
    Pitfall(
        slug="prune-interleaved-columns",
        title="Every num_heads-th column removed",
        symptom="The shapes are right, but each head that is left has lost some columns and received "
        "columns of others.",
        reason="You take head i to own the columns i, i + num_heads, …, but its columns are adjacent.",
        fix="Remove the columns i · d_k … (i + 1) · d_k − 1.",
        passes=("number of heads", "shape"),
    ),
    Pitfall(
        slug="prune-rows-of-projections",
        title="Rows of W_Q, W_K and W_V removed",
        symptom="The weights no longer fit the tokens.",
        reason="You remove rows of the projections, but these belong to the features of the input, which stay.",
        fix="Remove columns of W_Q, W_K and W_V, and rows of W_O.",
        passes=("number of heads",),
    ),
    Pitfall(
        slug="prune-zeroed-not-removed",
        title="Heads silenced, not removed",
        symptom="The layer's output is right, but nothing is saved: the weights are as large as before.",
        reason="You set the heads' weights to zero, but the point of pruning is that they are neither stored nor "
        "computed.",
        fix="Return smaller arrays, without those columns and rows.",
        passes=("layer's output",),
    ),
)
