"""Mistakes in turning logits into weights.

Not here, since no allowed input shows it: a small number added to the denominator (1e-9, say). After the
largest logit was subtracted the denominator is at least 1. (After a mask it may be tiny: see `mask`.)
"""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="no-max-subtraction",
        title="Exponentials of raw logits",
        symptom="The result is NaN as soon as a logit exceeds 709, or when all logits of a row lie below "
        "−745.",
        reason="You take the exponential of the logits as they are, and exp(710) is already infinite in float64.",
        fix="Subtract the largest logit of the row first; the quotient stays the same.",
        passes=("shape", "rows sum to 1", "small logits"),
    ),
    Pitfall(
        slug="min-subtraction",
        title="The smallest logit is subtracted",
        symptom="The result is NaN in rows that hold one logit some 710 above another one.",
        reason="You subtract the smallest logit of a row, so the largest one may still be far above 709, where its "
        "exponential is infinite.",
        fix="Subtract the largest logit of each row: then no exponential exceeds 1.",
        passes=("shape", "rows sum to 1", "small logits"),
    ),
    Pitfall(
        slug="mean-subtraction",
        title="The mean of the logits is subtracted",
        symptom="The result is NaN in rows that hold one logit some 710 above the mean.",
        reason="You subtract the mean of a row, so its largest logit may still be far above 709, where its "
        "exponential is infinite.",
        fix="Subtract the largest logit of each row: then no exponential exceeds 1.",
        passes=("shape", "rows sum to 1", "small logits"),
    ),
    Pitfall(
        slug="global-max-subtraction",
        title="One maximum for all rows",
        symptom="The result is NaN in rows whose logits lie far below those of another row.",
        reason="You subtract the largest logit of the whole array, so a row that lies 1e4 lower becomes all zeros "
        "and then 0 / 0.",
        fix="Take the maximum along the axis that is normalised, with keepdims=True.",
        passes=("shape", "rows sum to 1", "small logits", "one row"),
    ),
    Pitfall(
        slug="max-over-other-axis",
        title="Maximum along one axis, sum along another",
        symptom="The weights sum to 1, but they are wrong unless there is a single row.",
        reason="You subtract different numbers within one row, and only the same number for the whole row cancels "
        "in the quotient.",
        fix="Use the same axis for the maximum and for the sum.",
        passes=("shape", "rows sum to 1", "one row"),
    ),
    Pitfall(
        slug="logits-clipped",
        title="Logits clipped against overflow",
        symptom="Logits that lie beyond a limit get equal weights, however different they are.",
        reason="You clip the logits, so that two of them beyond a limit, such as 1000 and 2000, become the "
        "same logit.",
        fix="Do not clip: subtract the largest logit of the row, which avoids the overflow and changes nothing.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "one row"),
    ),
    Pitfall(
        slug="nan-replaced-by-zero",
        title="NaN replaced with a number",
        symptom="With large logits the weights do not sum to 1; some rows are all zeros.",
        reason="You replace the NaN of an overflow with a number, which hides the error and throws the "
        "largest logits away.",
        fix="Remove the cause: subtract the largest logit of the row before the exponential.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "one row"),
    ),
    Pitfall(
        slug="softmax-whole-matrix",
        title="Softmax over the whole matrix",
        symptom="All weights together sum to 1, so the output shrinks as the number of queries grows.",
        reason="You divide by the sum over all rows, but each query has its own weights, which sum to 1 on their "
        "own.",
        fix="Sum along the axis of the keys only, with keepdims=True.",
        passes=("shape", "finite", "one row", "masked weights are 0"),
    ),
    Pitfall(
        slug="softmax-fixed-axis",
        title="The axis is ignored",
        symptom="The result is right for one axis, usually the default axis, and wrong for every other axis.",
        reason="You write a fixed axis into the code, at least in one place, so the argument `axis` has no "
        "effect there.",
        fix="Pass `axis` on to the maximum and to the sum.",
        passes=("shape", "finite", "rows sum to 1", "last axis", "one row"),
    ),
    Pitfall(
        slug="vector-made-a-row",
        title="A vector turned into a row",
        symptom="The result is right along the last axis. A vector along axis 0 gets weights of 1.",
        reason="You make a matrix of a vector, and axis 0 of this matrix has size 1.",
        fix="Leave the shape alone: with keepdims=True, one axis is as good as two.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "one row"),
    ),
    Pitfall(
        slug="softmax-first-axis",
        title="Always the first axis",
        symptom="The columns sum to 1, but the rows do not.",
        reason="You normalise along axis 0, which is the axis of the weights only when the array has no other.",
        fix="Pass `axis` on to the maximum and to the sum.",
        passes=("shape", "finite", "one row"),
    ),
    Pitfall(
        slug="axis-not-moved-back",
        title="An axis moved to the end and not back",
        symptom="The result is right for the last axis. For another axis, the numbers stand in the wrong places, "
        "and the shape may be wrong.",
        reason="You move the axis to the end, but afterwards you leave it there or move it in the same direction "
        "again.",
        fix="Move it back with `np.moveaxis(weights, -1, axis)`, or pass `axis` on to the maximum and to the sum.",
        passes=("finite", "last axis", "one row"),
    ),
    Pitfall(
        slug="softmax-over-queries",
        title="Softmax along the queries",
        symptom="The weights of each key sum to 1; those of each query do not.",
        reason="You normalise along the queries, so the queries compete for each key; it is the keys that must "
        "compete for each query.",
        fix="Apply softmax along the last axis of the scores (..., n, m).",
        passes=("shape",),
    ),
    Pitfall(
        slug="softmax-over-heads",
        title="Softmax along axis 1",
        symptom="Matrices give the right result. With (batch, heads, n, m) the weights of the heads sum to 1 at "
        "each position.",
        reason="You normalise along axis 1, which holds the keys of a matrix but the heads of a batch of heads.",
        fix="Count the axis from the end: axis=-1 is the axis of the keys, however many dimensions lead.",
        passes=("shape", "no batch"),
    ),
    Pitfall(
        slug="keepdims-forgotten",
        title="Row sums that line up with columns",
        symptom="There is an error about shapes, or, for a square matrix, the weights do not sum to 1.",
        reason="Without keepdims the sums have shape (n,), and NumPy lines them up with the last axis instead of "
        "with the rows.",
        fix="Sum with keepdims=True, so that the sums have shape (..., n, 1).",
        passes=("one row",),
    ),
    Pitfall(
        slug="normalised-without-exponential",
        title="Divided by the sum, without the exponential",
        symptom="The weights grow linearly with the logits; some may be negative or larger than 1.",
        reason="You divide the logits themselves by a sum, but logits of both signs do not make weights "
        "between 0 and 1.",
        fix="Take the exponential first, so that every number is positive.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="softmax-not-normalised",
        title="Exponentials without the sum",
        symptom="The rows do not sum to 1. Often the largest weight of each row is exactly 1.",
        reason="You do not divide the exponentials by their sum, so the weights do not sum to 1 and the output is "
        "not an average of the values.",
        fix="Divide the exponentials by their sum along the axis of the keys.",
        passes=("shape", "finite", "masked weights are 0"),
    ),
    Pitfall(
        slug="sigmoid-instead-of-softmax",
        title="Sigmoid in place of softmax",
        symptom="Each weight lies between 0 and 1, but the rows do not sum to 1.",
        reason="You judge each logit on its own, while softmax compares the logits of a row with one another.",
        fix="Divide the exponential of each logit by the sum of the exponentials of its row.",
        passes=("shape", "finite", "masked weights are 0"),
    ),
    Pitfall(
        slug="log-weights-returned",
        title="Logarithms of the weights",
        symptom="All results are negative or 0.",
        reason="You return the logarithms of the weights, which is what a loss function wants, not attention.",
        fix="Return the exponentials divided by their sum.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="softmax-twice",
        title="Softmax applied twice",
        symptom="The weights sum to 1, but they are nearly uniform, and masked keys get weight again.",
        reason="You apply softmax to weights that lie between 0 and 1, so the second softmax makes them nearly "
        "equal, and masked ones get exp(0).",
        fix="Apply softmax once, to the scores; a loss such as `cross_entropy` applies it itself: give it logits.",
        passes=("shape", "finite", "rows sum to 1"),
    ),
    Pitfall(
        slug="axes-of-one-dropped",
        title="Axes of size 1 are dropped",
        symptom="With a single sequence, head, token or feature, the result has too few axes.",
        reason="You drop axes of size 1, with `squeeze` for instance, but one of them may be an axis that belongs "
        "there.",
        fix="Remove only the axis that you have added: index it, or give its number, as in `x.squeeze(1)`.",
        passes=("shape", "finite", "rows sum to 1"),
    ),
    Pitfall(
        slug="input-changed-in-place",
        title="The caller's array is overwritten",
        symptom="The result is right, but a second call with the same arrays gives something else.",
        reason="You write into an array that belongs to the caller, who may still need it.",
        fix="Write `x = x - …` in place of `x -= …`: it makes a new array.",
        passes=("shape", "finite", "rows sum to 1", "right values"),
    ),
)
