"""Mistakes in running a trained model's attention, and in reading off what its heads do.

Not here, since no input shows it: leaving out the bias of the keys. It adds the same number to all scores of a
query, and the softmax does not see that.
"""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="stored-weights-not-transposed",
        title="`x @ W` with weights stored as (out, in)",
        symptom="The shapes are right, since the weights are square, but the numbers are wrong everywhere.",
        reason="You multiply by the weights as they are, but a linear layer of PyTorch stores (out, in), and its "
        "row j makes feature j.",
        fix="Multiply by the transpose: `x @ W.T + b`.",
        passes=("shape", "finite", "rows sum to 1"),
    ),
    Pitfall(
        slug="dense-not-transposed",
        title="The last weight not transposed",
        symptom="The maps are right, but the output has the right shape and wrong numbers.",
        reason="You transpose the weights of queries, keys and values, but `dense` is stored in the same way.",
        fix="Multiply by the transpose of `dense` too.",
        passes=("shape", "finite", "rows sum to 1", "maps"),
    ),
    Pitfall(
        slug="biases-forgotten",
        title="No biases",
        symptom="The output is right only where all biases are 0.",
        reason="You leave out some or all of the biases, but a trained model has learnt them and counts on "
        "them.",
        fix='Add `weights[name]["bias"]` after each of the four products.',
        passes=("shape", "finite", "rows sum to 1", "all biases 0"),
    ),
    Pitfall(
        slug="dense-bias-forgotten",
        title="The bias of `dense` is missing",
        symptom="Every output is off by the same vector.",
        reason="You leave out the last bias, but it belongs to the output, whichever heads contribute.",
        fix='Add `weights["dense"]["bias"]` once, after the product with the weight.',
        passes=("shape", "finite", "rows sum to 1", "maps", "all biases 0"),
    ),
    Pitfall(
        slug="bias-before-weight",
        title="The bias added before the weight",
        symptom="The output is right only where all biases are 0.",
        reason="You add the bias to what goes in, but it belongs to what comes out.",
        fix="Write `x @ W.T + b`.",
        passes=("shape", "finite", "rows sum to 1", "all biases 0"),
    ),
    Pitfall(
        slug="maps-averaged-over-heads",
        title="One map for all heads",
        symptom="The output is right, but the maps have lost the axis of the heads.",
        reason="You average the maps over the heads, as PyTorch's layer does by default, or add them, or "
        "take the first, so no head can be studied by itself.",
        fix="Return the weights of all heads.",
        passes=("finite", "rows sum to 1"),
    ),
    Pitfall(
        slug="offset-sign-turned",
        title="The weight of the other neighbour",
        symptom="A head that looks back seems to look ahead. Offset 0 is right.",
        reason="You read the weight of key i − offset, for example because you exchanged the rows, which are "
        "queries, with the columns, which are keys.",
        fix="Read entry (i, i + offset): with offset −1 it stands below the diagonal.",
        passes=("shape", "finite", "offset 0"),
    ),
    Pitfall(
        slug="offset-ignored",
        title="The offset or its sign ignored",
        symptom="All offsets, or both signs of an offset, give the same result.",
        reason="You read the weights at a fixed offset, or drop the sign, but the offset says which "
        "neighbour is meant.",
        fix="Pass the offset on to `np.diagonal`.",
        passes=("shape", "finite", "offset 0"),
    ),
    Pitfall(
        slug="offset-divided-by-n",
        title="Divided by another number of queries",
        symptom="The scores are a little too small, the more so the larger the offset.",
        reason="You divide by n or another number, but only queries with a key at that offset are counted.",
        fix="Take the mean over the n − |offset| queries that have one.",
        passes=("shape", "finite", "offset 0", "direction"),
    ),
    Pitfall(
        slug="offset-summed",
        title="The sum in place of the mean",
        symptom="Some scores are above 1.",
        reason="You sum over the queries, so long sequences get larger scores.",
        fix="Take the mean.",
        passes=("shape", "finite", "direction"),
    ),
    Pitfall(
        slug="offset-zero-empty",
        title="Nothing left at offset 0",
        symptom="The result is right for all neighbours. For the token itself there is NaN or an error.",
        reason="You cut off `-offset` places at the end, but `[:-0]` is `[:0]`, which is empty.",
        fix="Treat offset 0 separately, cut at `n - offset`, or use `np.diagonal`.",
        passes=(),
    ),
    Pitfall(
        slug="offset-wraps-around",
        title="Positions that wrap around at the ends",
        symptom="The scores are a little off, because the first token counts as the successor of the last.",
        reason="You count positions around the end, but the first token has no token before it.",
        fix="Leave out the queries that have no such key.",
        passes=("shape", "finite", "offset 0", "direction"),
    ),
    Pitfall(
        slug="offset-negative-index",
        title="Negative indices count from the end",
        symptom="Positive offsets are right. For negative ones, the first tokens look at the last.",
        reason="You leave out keys beyond the end but not those before the start, and there NumPy counts "
        "from the end.",
        fix="Leave out queries with i + offset below 0 as well.",
        passes=("shape", "finite", "offset 0", "direction"),
    ),
    Pitfall(
        slug="offset-averaged-over-heads",
        title="Heads averaged",
        symptom="There is one number for each token, or a single number, instead of one for each head.",
        reason="You average over the heads, but the scores should tell the heads apart.",
        fix="Take the mean over the queries, and keep the axis of the heads.",
        passes=("finite",),
    ),
    Pitfall(
        slug="offset-first-axes",
        title="The diagonal of heads and queries",
        symptom="The shape is wrong, and the numbers mean nothing.",
        reason="You take the diagonal of other axes, such as the first two, which is the default of "
        "`np.diagonal`, but queries and keys are the last two.",
        fix="Name the axes: `np.diagonal(…, axis1=1, axis2=2)`.",
        passes=(),
    ),
    Pitfall(
        slug="offset-by-largest-weight",
        title="The largest weights counted",
        symptom="Clear heads score 0 or 1, where the mean weight tells how clear they are.",
        reason="You count the queries whose largest weight is at that offset, but the contract asks for the "
        "mean weight.",
        fix="Average the weights themselves.",
        passes=("shape", "finite", "direction"),
    ),
    Pitfall(
        slug="kept-heads-removed",
        title="The listed heads are silent",
        symptom="The output lacks the heads that should be there.",
        reason="You silence the listed heads, but the list says which ones stay.",
        fix="Invert the condition.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="kept-heads-counted-from-one",
        title="Kept heads counted from 1",
        symptom="The head before each listed one contributes.",
        reason="You take the first head to be number 1, but in code heads are counted from 0.",
        fix="Let head i own the columns from i · d_k on.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="kept-first-listed-only",
        title="Only one of the listed heads contributes",
        symptom="Keeping one head is right. With several, the output is too small.",
        reason="You use one head, but the list may hold several.",
        fix="Keep the columns of all listed heads.",
        passes=("shape", "finite", "one head kept"),
    ),
    Pitfall(
        slug="kept-interleaved",
        title="Every num_heads-th column kept",
        symptom="The shape is right, but a bit of every head contributes.",
        reason="You take head i to own the columns i, i + num_heads, …, but its columns are adjacent.",
        fix="Keep the columns i · d_k … (i + 1) · d_k − 1.",
        passes=("shape", "finite", "all heads kept"),
    ),
    Pitfall(
        slug="rows-of-dense-silenced",
        title="Rows of `dense` in place of columns",
        symptom="Some features of the output are nothing but bias.",
        reason="You silence rows of `dense`, but it is stored as (out, in), so that a head owns columns of it.",
        fix="Silence columns: `weight[:, columns]`.",
        passes=("shape", "finite", "all heads kept"),
    ),
    Pitfall(
        slug="dense-bias-with-each-head",
        title="The bias of `dense` once for each head",
        symptom="Keeping one head is right. With several, the output holds the bias of `dense` too often, or "
        "only a part of what the heads add.",
        reason="You add up or average the outputs of single heads, but the bias of `dense` belongs to no head.",
        fix="Add up the results before the bias, and add the bias once.",
        passes=("shape", "finite", "one head kept", "all biases 0"),
    ),
    Pitfall(
        slug="value-bias-left",
        title="Silent heads still add the bias of their values",
        symptom="The output is right where the biases are 0. Otherwise the silent heads shift it.",
        reason="You set the weights of the values to zero but not their bias, and a mean of equal biases is "
        "that bias.",
        fix="Silence the head after the attention, or its columns of `dense`.",
        passes=("shape", "finite", "all heads kept"),
    ),
    Pitfall(
        slug="queries-silenced",
        title="Queries silenced in place of heads",
        symptom="Silent heads still add the mean of all values.",
        reason="You set the queries to zero, so that all scores are equal, and a head with equal weights "
        "still passes on the mean of its values.",
        fix="Silence the head's output, not its queries.",
        passes=("shape", "finite", "all heads kept"),
    ),
    Pitfall(
        slug="kept-heads-out-of-order",
        title="Kept heads meet columns of other heads",
        symptom="The result is right if the list is in ascending order, and wrong in another order.",
        reason="You put the heads and the columns of `dense` into different orders, so a head meets the "
        "columns of another one.",
        fix="Use the same order for both, or set the other heads to zero and leave all of them in their "
        "places.",
        passes=(),
    ),
    Pitfall(
        slug="kept-heads-rescaled",
        title="The kept heads made larger",
        symptom="The output is too large by the ratio of all heads to the kept ones.",
        reason="You enlarge the kept heads, as dropout does in training, but a removed head is simply absent.",
        fix="Leave out the factor.",
        passes=("shape", "finite", "all heads kept"),
    ),
    Pitfall(
        slug="importance-squared",
        title="The square of the change",
        symptom="Large heads seem larger than they are, and small ones smaller.",
        reason="You take squares without a root, but the contract asks for the norm.",
        fix="Take the root before you average.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="importance-absolute-sum",
        title="Absolute values in place of squares",
        symptom="The numbers have another size, in a similar order.",
        reason="You take the sum, the mean or the largest of the absolute values, but the Euclidean norm is "
        "the root of the sum of squares.",
        fix="Use `np.linalg.norm(change, axis=-1)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="importance-averaged-over-features",
        title="Averaged over the features",
        symptom="All numbers are too small, often by the same factor, √d_model or d_model.",
        reason="You average over the features, but the Euclidean norm sums their squares.",
        fix="Sum over the features and average over the tokens.",
        passes=("shape", "finite", "order of heads"),
    ),
    Pitfall(
        slug="importance-summed-over-tokens",
        title="Summed over the tokens",
        symptom="All numbers are too large by a factor, the number of tokens or of sequences.",
        reason="You sum over tokens or sequences, so that more text makes every head look more important.",
        fix="Take the mean over all tokens of all sequences.",
        passes=("shape", "finite", "one token", "order of heads"),
    ),
    Pitfall(
        slug="importance-norm-of-everything",
        title="One norm over tokens and features",
        symptom="The numbers are too large, and grow with the length of the text.",
        reason="You take one norm over tokens or sequences, but each token has its own change.",
        fix="Take the norm over the last axis only, then the mean.",
        passes=("shape", "finite", "one token"),
    ),
    Pitfall(
        slug="importance-mean-before-norm",
        title="The mean taken before the norm",
        symptom="The numbers are too small, because changes in different directions cancel.",
        reason="You average the changes before you take the norm or the absolute value, but opposite changes "
        "are changes too.",
        fix="Take the norm for each token first, then the mean.",
        passes=("shape", "finite", "one token"),
    ),
    Pitfall(
        slug="importance-root-mean-square",
        title="Root of the mean square over the tokens",
        symptom="The numbers are a little too large. They are right if all tokens change equally.",
        reason="You average squares over the tokens, so that tokens with large changes count for more.",
        fix="Average the norms themselves.",
        passes=("shape", "finite", "one token"),
    ),
    Pitfall(
        slug="importance-largest-token",
        title="The token that changes most",
        symptom="The numbers are too large. They are right for a single token.",
        reason="You take the largest change, but the contract asks for the mean over all tokens.",
        fix="Replace the maximum by the mean.",
        passes=("shape", "finite", "one token"),
    ),
    Pitfall(
        slug="importance-of-first-sequence",
        title="Only one sequence or token counted",
        symptom="The numbers are right only for a single sequence, or for a single token.",
        reason="You look at one sequence or one token of each, but the mean is over all tokens of all sequences.",
        fix="Take the mean over the axes of sequences and of tokens.",
        passes=("shape", "finite", "one token", "one sequence"),
    ),
    Pitfall(
        slug="importance-of-head-alone",
        title="The output of the head alone",
        symptom="The numbers are right where the bias of `dense` is 0. Otherwise every number includes it.",
        reason="You measure the output when only this head is there, and that includes the bias of `dense`, "
        "which no head adds.",
        fix="Compare the full output with the output without the head.",
        passes=("shape", "finite", "all biases 0"),
    ),
    Pitfall(
        slug="importance-of-the-rest",
        title="The output without the head",
        symptom="Important heads get small numbers.",
        reason="You measure the output that is left, but the contract asks how far the output moves.",
        fix="Subtract the output without the head from the full one.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="importance-by-lengths",
        title="The difference of two lengths",
        symptom="The numbers are too small: an output that changes its direction but not its length seems "
        "unchanged.",
        reason="You compare the length of the output with and without the head, but the change is the length "
        "of their difference.",
        fix="Subtract the outputs first, then take the norm.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="importance-before-dense",
        title="Measured before `dense`",
        symptom="The shape is right, but heads whose output is hardly used look as important as others.",
        reason="You measure what a head finds, but how much of it reaches the output is up to its columns of "
        "`dense`.",
        fix="Measure the change of the output.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="heads-silenced-for-good",
        title="Heads silenced in the caller's weights",
        symptom="The first head is right. The numbers grow from head to head, and a second call gives zeros.",
        reason="You set a head's weights to 0 in the arrays that you were given, perhaps through a copy of the "
        "dict, which holds the same arrays, so each head that was silenced stays so.",
        fix="Make a new array for what you silence: `W * columns`, or `W.copy()` first.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="importance-relative",
        title="Ratios in place of lengths",
        symptom="The numbers sum to 1, or they are at most 1.",
        reason="You divide by the sum over the heads, by the largest number or by the length of the output, "
        "but the contract asks for lengths.",
        fix="Leave out the division.",
        passes=("shape", "finite", "order of heads"),
    ),
    Pitfall(
        slug="importance-averaged-over-heads",
        title="One number for the whole layer",
        symptom="The result is a single number.",
        reason="You average over the heads as well, but each head should get its own number.",
        fix="Average over sequences and tokens only.",
        passes=("finite",),
    ),
)
