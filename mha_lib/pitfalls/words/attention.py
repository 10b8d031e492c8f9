"""Mistakes in how queries, keys, values and weights are put together, and in what is returned.

In self-attention no input tells `scores-transposed` from `queries-and-keys-swapped`, so it is not a variant there.
"""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="transpose-all-axes",
        title="`.T` on more than a matrix",
        symptom="Matrices give the right result. With a batch there is an error about shapes.",
        reason="`K.T` reverses all axes, so with leading dimensions it moves the batch to the end; PyTorch's "
        "`K.t()` takes matrices only.",
        fix="Exchange the last two axes only: `np.swapaxes(K, -2, -1)` in NumPy, `K.transpose(-2, -1)` in PyTorch.",
        passes=("no batch",),
    ),
    Pitfall(
        slug="batch-axis-assumed",
        title="A fixed number of leading dimensions",
        symptom="The result is right for one number of axes, for instance (batch, n, d_k). Other numbers of "
        "axes raise an error.",
        reason="You name the axes from the front, but the number of leading dimensions is not fixed.",
        fix="Count the axes from the end: `np.swapaxes(K, -2, -1)` in NumPy, `K.transpose(-2, -1)` in PyTorch.",
        passes=("one leading dimension",),
    ),
    Pitfall(
        slug="scores-transposed",
        title="K Qᵀ in place of Q Kᵀ",
        symptom="There is an error when n ≠ m. When n = m, the weights are wrong, although their rows sum "
        "to 1.",
        reason="You exchange the roles of queries and keys, so each row of weights belongs to a key.",
        fix="Multiply in the order of the formula, Q times the transposed K, which gives one row for each "
        "query.",
        passes=("shape at n = m",),
    ),
    Pitfall(
        slug="weights-transposed",
        title="Transposed weights times V",
        symptom="There is an error when n ≠ m. When n = m, the weights are right and the output is wrong.",
        reason="You transpose the weights before you multiply, so each output mixes the values with the weights "
        "that all queries gave to one key.",
        fix="Multiply the weights (..., n, m) with the values (..., m, d_v) as they are.",
        passes=("shape at n = m",),
    ),
    Pitfall(
        slug="keys-used-as-values",
        title="The keys are averaged",
        symptom="The weights are right, but the output has the width of the keys and does not depend on V.",
        reason="You apply the weights to the keys, which only decide where to look; the output is made of "
        "values.",
        fix="Multiply the weights by V.",
        passes=("finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="scores-applied-to-values",
        title="The scores multiply the values",
        symptom="The output is not an average of the values and may lie far outside them.",
        reason="You multiply the values by the scores, so the softmax does not affect the output.",
        fix="Multiply V by the weights, not by the scores.",
        passes=("shape", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="values-not-mixed",
        title="The weights returned as the output",
        symptom="The output has m columns instead of d_v.",
        reason="You stop at the weights, but the output is the average of the values under these weights.",
        fix="Return `weights @ V` as the output.",
        passes=("finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="weights-returned-before-softmax",
        title="The scores returned as the weights",
        symptom="The output is right, but the weights that come with it are negative or do not sum to 1.",
        reason="You return the scores, or their exponentials before the division, but the weights are the "
        "result of the whole softmax.",
        fix="Keep the result of the softmax in a variable, and return that.",
        passes=("shape",),
    ),
    Pitfall(
        slug="only-output-returned",
        title="The weights are not returned",
        symptom="There is an error where the caller unpacks the result into two.",
        reason="You return the output alone, but the contract asks for the pair (output, weights).",
        fix="Return both: `return weights @ V, weights`.",
        passes=(),
    ),
    Pitfall(
        slug="tuple-order-swapped",
        title="Weights first, output second",
        symptom="Each result has the shape of the other.",
        reason="You return (weights, output), but the contract asks for (output, weights).",
        fix="Exchange the two in the return statement.",
        passes=("finite",),
    ),
)
