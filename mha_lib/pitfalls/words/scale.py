"""Mistakes in the scaling of the scores.

Not here, since no input tells them from `scale-by-dk`: dividing both Q and K by √d_k, or dividing the scores
by √d_k twice.
"""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="no-scale",
        title="No division by √d_k",
        symptom="The weights are close to 0 or 1, the more so the larger d_k is, and the gradients are "
        "small.",
        reason="The spread of a dot product grows with √d_k, and without the division your softmax puts nearly "
        "all weight on one key.",
        fix="Divide the scores by √d_k before the softmax.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="scale-by-dk",
        title="Divided by d_k in place of √d_k",
        symptom="The weights are close to uniform, the more so the larger d_k is.",
        reason="The spread of a dot product grows with √d_k, so dividing by d_k makes the scores too small.",
        fix="Divide by the square root of d_k, and only once.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="scale-by-d-model",
        title="Divided by √d_model in place of √d_k",
        symptom="The result is right with one head. With several, the scores are too small by a factor of "
        "√heads, and the weights are too close to uniform.",
        reason="You divide by the root of the layer's width, but a score is a dot product of d_k numbers, so its "
        "spread comes from d_k and you make it too small.",
        fix="Divide by √d_k, the width of one head.",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="scale-multiplied",
        title="Multiplied by √d_k",
        symptom="The weights are almost exactly 0 or 1.",
        reason="You multiply where the formula divides, so the scores are far too large.",
        fix="Divide the scores by √d_k.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="scale-by-value-dim",
        title="Divided by √d_v",
        symptom="The result is right when values are as wide as keys, and wrong otherwise.",
        reason="The spread of the scores comes from the width of queries and keys; the width of the values does "
        "not affect it.",
        fix="Take the width from the queries: `d_k = Q.shape[-1]`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "d_k = d_v"),
    ),
    Pitfall(
        slug="scale-by-sequence-length",
        title="Divided by √m or √n",
        symptom="The weights change with the number of tokens; short and long sequences behave differently.",
        reason="You divide by the number of keys or queries, or by its root, while the spread of the scores comes "
        "from the width of a key.",
        fix="Take the last axis: `d_k = Q.shape[-1]`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
    ),
    Pitfall(
        slug="scale-by-axis-one",
        title="d_k read from axis 1",
        symptom="Matrices give the right result. With a batch the result is wrong.",
        reason="Axis 1 holds the width of a query only in a matrix; with a batch it holds queries or heads.",
        fix="Count from the end: `d_k = Q.shape[-1]`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "no batch"),
    ),
    Pitfall(
        slug="scale-after-softmax",
        title="The weights are divided by √d_k",
        symptom="The weights of each query sum to 1 / √d_k, or the output is too small by this factor.",
        reason="You scale after the softmax, so the weights shrink and stay as sharp as without scaling.",
        fix="Divide the scores, before the softmax.",
        passes=("shape", "finite", "masked weights are 0"),
    ),
    Pitfall(
        slug="cosine-scores",
        title="Cosine in place of the dot product",
        symptom="The weights are close to uniform, because the scores stay in a narrow range.",
        reason="You divide queries or keys by their length, but a long key is meant to count for more, and "
        "scores in a narrow range cannot single out a key.",
        fix="Take the plain dot product and divide it by √d_k.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0"),
    ),
)
