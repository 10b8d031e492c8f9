"""Mistakes in cutting features into heads, in putting heads together, and in what a head works on."""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="divisibility-unchecked",
        title="No check that num_heads divides d_model",
        symptom="With 8 features and 3 heads there is no error: a head gets 2 features, and the others are lost or "
        "go to other tokens.",
        reason="You divide with `//`, which drops the remainder silently, even if heads are left with no feature.",
        fix="Check `d_model % num_heads` first, and raise a ValueError that names both numbers.",
        passes=("divides", "shape", "one head", "round trip"),
    ),
    Pitfall(
        slug="divisibility-asserted",
        title="An assertion in place of an error",
        symptom="The function raises an AssertionError where a ValueError is expected, and nothing at all "
        "under `python -O`.",
        reason="You check the arguments with `assert`, which is meant for errors in the code itself, not for "
        "wrong arguments.",
        fix="Raise the error yourself: `raise ValueError(…)`.",
        passes=("divides",),
    ),
    Pitfall(
        slug="positivity-unchecked",
        title="Numbers below 1 accepted",
        symptom="A head has width 0 or −2, or there is a ZeroDivisionError.",
        reason="You let some numbers below 1 through, and both 0 and −8 are divisible by 4.",
        fix="Check first that both numbers are at least 1.",
        passes=("divides",),
    ),
    Pitfall(
        slug="message-without-numbers",
        title="An error that does not name the numbers",
        symptom="The text of the ValueError does not tell which layer has the wrong sizes.",
        reason="You raise the right error, but its message does not contain the two numbers that do not fit, or "
        "not in plain digits (1,024 in place of 1024).",
        fix='Put both into the message: `f"d_model={d_model} … num_heads={num_heads}"`.',
        passes=("divides",),
    ),
    Pitfall(
        slug="error-not-raised",
        title="An error that is not raised",
        symptom="The function returns None or the error itself, and something else fails later, far away.",
        reason="You return where the contract asks for an error (or you build the error and do not raise it).",
        fix="Write `raise ValueError(…)`.",
        passes=("divides",),
    ),
    Pitfall(
        slug="head-width-not-whole",
        title="The width of a head as a float",
        symptom="The width is 4.0 instead of 4, and `reshape` refuses it.",
        reason="You divide with `/`, which gives a float even where nothing is left over.",
        fix="Divide with `//`, once you know that it divides.",
        passes=(),
    ),
    Pitfall(
        slug="features-not-split",
        title="Every head as wide as the model",
        symptom="Each head has d_model features instead of d_model / num_heads.",
        reason="You give every head all d_model features, but the heads share them: together they are d_model "
        "wide.",
        fix="Give each head d_k = d_model / num_heads features.",
        passes=("one head",),
    ),
    Pitfall(
        slug="split-without-transpose",
        title="Cut into heads by a reshape alone",
        symptom="The shape is right, but entries stand in the wrong places: usually, a head gets all features of "
        "some tokens and nothing of the others.",
        reason="You reshape to heads directly, or exchange the wrong axes as well, but a reshape keeps the "
        "order of the entries and exchanges no axes.",
        fix="Reshape to (batch, n, heads, d_k), then exchange the axes of tokens and heads.",
        passes=("shape", "finite", "one head", "one token"),
    ),
    Pitfall(
        slug="merge-without-transpose",
        title="Put together by a reshape alone",
        symptom="The shape is right, but entries stand in the wrong places: usually, a row holds several tokens of "
        "one head instead of all heads of one token.",
        reason="You reshape (batch, heads, n, d_k) directly, or exchange the wrong axes as well, but a "
        "reshape keeps the order of the entries and exchanges no axes.",
        fix="Exchange the axes of heads and tokens first, then reshape to (batch, n, d_model).",
        passes=("shape", "finite", "one head", "one token"),
    ),
    Pitfall(
        slug="heads-fold-by-reshape",
        title="Cut and put together by reshapes alone",
        symptom="Splitting and combining undo each other, so all shapes fit, but in between tokens are "
        "mixed.",
        reason="You reshape on the way in and on the way out, which hides the mistake: in between, a head works on "
        "pieces of different tokens.",
        fix="Exchange the axes of tokens and heads after the first reshape and before the last.",
        passes=("shape", "finite", "one head", "one token"),
    ),
    Pitfall(
        slug="heads-interleaved",
        title="Features interleaved among the heads",
        symptom="The shape is right, but head i has the columns, or rows of W_O, i, i + heads, i + 2 * heads, … "
        "instead of a block.",
        reason="You give head i every heads-th feature, for example by a reshape to (d_k, heads), but it owns "
        "the block from i*d_k to (i+1)*d_k.",
        fix="Reshape the features to (heads, d_k), with the heads first.",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="heads-in-reverse",
        title="Heads in reverse order",
        symptom="The shape is right, but the columns of the first head come last.",
        reason="You go through the heads from the last to the first, but head i owns the columns from i*d_k "
        "to (i+1)*d_k.",
        fix="Keep the heads in their order.",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="head-axis-not-moved",
        title="The axis of the heads left behind the tokens",
        symptom="The result has shape (batch, n, heads, d_k) instead of (batch, heads, n, d_k).",
        reason="You cut the features and leave the axes as they are, so `@` would multiply heads with heads within "
        "each token.",
        fix="Exchange the axes of tokens and heads.",
        passes=("finite",),
    ),
    Pitfall(
        slug="heads-not-merged",
        title="The axis of the heads left in place",
        symptom="The result has four axes, (batch, n, heads, d_k), instead of three.",
        reason="You move the axis of the heads and stop, so the heads are still on an axis of their own.",
        fix="Reshape to (batch, n, heads * d_k).",
        passes=("finite",),
    ),
    Pitfall(
        slug="batch-and-heads-swapped",
        title="Heads first, batch second",
        symptom="The result is right for one sequence with one head. Otherwise there is an error, or "
        "sequences are mixed with heads.",
        reason="You have the heads on the first axis where the batch belongs, or the other way round.",
        fix="Keep the order (batch, heads, n, d_k) throughout.",
        passes=("finite",),
    ),
    Pitfall(
        slug="features-before-tokens",
        title="Tokens and features exchanged",
        symptom="The result has shape (batch, heads, d_k, n) instead of (batch, heads, n, d_k).",
        reason="You move one axis too many, so each column is a token.",
        fix="Exchange only the axes of tokens and heads: `transpose(0, 2, 1, 3)`.",
        passes=("finite",),
    ),
    Pitfall(
        slug="head-count-taken-as-width",
        title="The number of heads taken for their width",
        symptom="The result has shape (batch, d_k, n, heads): there are d_k heads of width num_heads.",
        reason="You reshape the features to (d_k, num_heads), so there are d_k heads, each num_heads wide.",
        fix="Reshape the features to (num_heads, d_k).",
        passes=("finite",),
    ),
    Pitfall(
        slug="tokens-split-in-place-of-features",
        title="The tokens divided among the heads",
        symptom="Each head gets a stretch of the text, with all features. There is an error if num_heads "
        "does not divide n.",
        reason="You cut along the axis of the tokens, but every head reads every token; the heads share the "
        "features.",
        fix="Cut along the last axis.",
        passes=(),
    ),
    Pitfall(
        slug="heads-on-token-axis",
        title="Heads concatenated along the tokens",
        symptom="The result has shape (batch, heads * n, d_k), as if the text had become longer.",
        reason="You join the heads along the axis of the tokens, but each token gets the features of all heads.",
        fix="Join the heads along the last axis.",
        passes=("finite", "one head"),
    ),
    Pitfall(
        slug="heads-averaged",
        title="The mean over the heads",
        symptom="The results of the heads can no longer be told apart.",
        reason="You average over the heads, which throws away what each of them found by itself.",
        fix="Concatenate the heads, each in its own columns; W_O then adds up their contributions.",
        passes=("finite", "one head"),
    ),
    Pitfall(
        slug="heads-summed",
        title="The heads added before W_O",
        symptom="The output has d_k columns instead of d_model, or all heads go through one block of W_O.",
        reason="You add the heads before W_O can tell them apart; a head may be added to the others only after "
        "its own block of W_O.",
        fix="Concatenate the heads, each in its own columns.",
        passes=("finite", "one head"),
    ),
    Pitfall(
        slug="heads-max-pooled",
        title="The largest entry over the heads",
        symptom="For each entry only the head with the largest value counts.",
        reason="You take the maximum over the heads, so what the others found is lost.",
        fix="Concatenate the heads, each in its own columns.",
        passes=("finite", "one head"),
    ),
    Pitfall(
        slug="attention-between-heads",
        title="Heads attend to heads",
        symptom="No token ever sees another one: the output at a position depends on that position alone.",
        reason="You attend over the axis of the heads, since it stands where `@` expects the tokens.",
        fix="Exchange the axes first: (batch, heads, n, d_k), so that the tokens are on the last axis but one.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="weights-averaged-over-heads",
        title="One average of all heads' weights",
        symptom="All heads look at the same tokens.",
        reason="You average the weights or scores over the heads and use the average in each, which leaves "
        "one attention pattern where there should be several.",
        fix="Let each head use its own weights.",
        passes=("shape", "finite", "one head", "one token"),
    ),
    Pitfall(
        slug="num-heads-ignored",
        title="One wide head",
        symptom="The output does not change with num_heads.",
        reason="You attend with all d_model features at once, so there is one set of weights for each query.",
        fix="Cut queries, keys and values into heads before the attention, and put the heads together after it.",
        passes=("shape", "finite", "one head", "one token"),
    ),
)
