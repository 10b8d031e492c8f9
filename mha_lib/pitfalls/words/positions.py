"""Mistakes in rotary positions and in the mask of a sliding window."""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="rotary-pairs-interleaved",
        title="Neighbouring features as pairs",
        symptom="Weights that were trained with the half-split convention give wrong results, even if lengths and "
        "scores are right.",
        reason="You use features 2i and 2i + 1 as a pair, or rotate them by the same angle, but in the "
        "half-split convention the partner of feature i is i + d_k/2.",
        fix="Cut the features into two halves: `first, second = x.chunk(2, dim=-1)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-angle-reversed",
        title="Rotated the other way",
        symptom="Scores still depend on the distance alone, but the features differ from those of other "
        "code.",
        reason="You rotate by minus the angle: the minus sign stands before the wrong one of the two sines.",
        fix="Compute the first half as first · cos − second · sin, and the second as first · sin + second · "
        "cos.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-cos-sin-swapped",
        title="Cosine and sine exchanged",
        symptom="A token at position 0 changes, though its angle is 0.",
        reason="You multiply by the sine where the cosine belongs, and by the cosine where the sine belongs.",
        fix="Compute the first half as first · cos − second · sin, and the second as first · sin + second · "
        "cos.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-minus-missing",
        title="The same sign before both sines",
        symptom="Vectors change their lengths, so that scores depend on the position as well.",
        reason="You add, or subtract, the products in both halves, which is not a rotation.",
        fix="Compute the first half as first · cos **−** second · sin, and the second as first · sin + "
        "second · cos.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-first-half-only",
        title="One half is left as it is",
        symptom="One half of the features is right, but the other does not change with the position.",
        reason="You compute one feature of each rotated pair and return the other one unchanged.",
        fix="Change both halves: the first is first · cos − second · sin, and the second is first · sin + "
        "second · cos.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-half-overwritten",
        title="The first half overwritten too early",
        symptom="The first half of the features is right, but the second is not, and lengths change.",
        reason="You overwrite the first half, and then compute the second from the new numbers.",
        fix="Give the results new names, or compute both halves in one statement.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-pairs-shifted",
        title="The speeds of the pairs are shifted or stretched",
        symptom="The first pair or the last one does not rotate as fast as it should.",
        reason="You count the pairs from 1, or divide by d_k/2 − 1, but the exponent is −2i/d_k with i from 0.",
        fix="Use `torch.arange(d_k // 2)` for i, and divide 2i by d_k.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-exponent-halved",
        title="The exponent −i/d_k",
        symptom="The first pair is right, but the later ones rotate too fast.",
        reason="You leave out the 2: the exponent is −2i/d_k, and i counts the pairs from 0 to d_k/2 − 1.",
        fix="Use `base ** (-2 * i / d_k)` with `i = arange(d_k // 2)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-exponent-doubled",
        title="The 2 is counted twice",
        symptom="The first pair is right, but the later ones rotate far too slowly.",
        reason="You step by 2 and multiply by 2 as well: the exponent becomes −4i/d_k.",
        fix="Use either `2 * arange(d_k // 2)` or `arange(0, d_k, 2)`, not both.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-exponent-positive",
        title="Later pairs rotate faster",
        symptom="The later pairs have rotated thousands of times after a few tokens.",
        reason="You leave out the minus sign of the exponent, so later pairs rotate faster, but they should "
        "rotate more slowly.",
        fix="Use a negative exponent: base^(−2i/d_k).",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-one-frequency",
        title="All pairs rotate at the same speed",
        symptom="The result is right for d_k = 2. With more pairs, positions repeat every 2π tokens.",
        reason="You rotate every pair by the same angle, but each pair has its own speed.",
        fix="Multiply the position by base^(−2i/d_k) for pair i.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-base-ignored",
        title="The base is always the same",
        symptom="The result is the same for every base, so it is right for one base at most.",
        reason="You write a number, such as 10,000, where the argument `base` belongs.",
        fix="Use `base`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-positions-ignored",
        title="Tokens are counted from 0",
        symptom="The result is right for a whole sequence, and wrong as soon as a cache holds earlier tokens.",
        reason="You count the tokens that you were given, and never look at `positions`.",
        fix="Compute the angles from `positions`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-offset-lost",
        title="The first token is taken for position 0",
        symptom="The result is right for a whole sequence, but each new chunk is rotated as if it came first, or "
        "gaps between positions are lost.",
        reason="You subtract the first position, or count on from it, but each token keeps its own position.",
        fix="Use `positions` as they are.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-positions-from-one",
        title="Positions are off by one",
        symptom="Scores are right, since they depend on distances, but the features differ from those of "
        "other code.",
        reason="You rotate the token at position 0 by the angle of a neighbouring position, but it should "
        "stay as it is.",
        fix="Use `positions` as they are.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="rotary-first-positions-for-all",
        title="The first sequence's positions for all",
        symptom="The result is right for one sequence, or if all sequences have the same positions.",
        reason="You use row 0 of positions of shape (batch, n) for the whole batch.",
        fix="Let the angles have the shape (batch, 1, n, d_k/2).",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-positions-told-by-size",
        title="Positions told apart by their size",
        symptom="The result is wrong only if there are as many sequences as tokens.",
        reason="You take positions for those of each sequence if their first size is the batch size, but n may be "
        "as large.",
        fix="Look at the number of axes, or use `angles.unsqueeze(-3)`, which is right for both.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-positions-on-head-axis",
        title="No axis for the heads",
        symptom="The result is right for positions (n,). With (batch, n) there is an error, or wrong numbers if "
        "there are as many heads as sequences.",
        reason="Your angles have no axis for the heads, so broadcasting lines their batch up with the heads.",
        fix="Insert an axis: `angles.unsqueeze(-3)`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-width-unchecked",
        title="An odd width is not refused",
        symptom="There is an error about sizes that does not mention d_k, or no error at all.",
        reason="You do not check that d_k is even, though an odd feature would be left without a partner.",
        fix="Raise a ValueError that names d_k.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="rotary-in-float64",
        title="The result has another dtype",
        symptom="The numbers are right, but their dtype is not that of x, and the next product raises an "
        "error.",
        reason="You compute in float64 or float32, or with whole numbers, and let that dtype reach the result.",
        fix="Convert cosine and sine, or the result, to the dtype of x.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="window-start-top-left",
        title="The start of the window lined up at the first key",
        symptom="The mask is right when n = m. With more keys than queries, each query sees up to m − n keys "
        "before its window.",
        reason="You count the start of the window from i, but query i stands at position i + (m − n).",
        fix="Shift both ends of the window by m − n.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-one-too-wide",
        title="One key too many",
        symptom="A query sees itself and `window` keys before it.",
        reason="You do not count the query's own key, but it is one of the `window`.",
        fix="Let a query see a key if 0 ≤ distance < window.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-one-too-narrow",
        title="One key too few",
        symptom="With a window of 1 a query sees nothing.",
        reason="You end the window one key too early.",
        fix="Let a query see a key if 0 ≤ distance < window.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-on-both-sides",
        title="The window looks ahead as well",
        symptom="A query sees later keys as well as earlier ones.",
        reason="You take the distance without its sign, but the mask should be causal.",
        fix="Require 0 ≤ distance as well.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-ahead",
        title="The window looks ahead only",
        symptom="A query sees itself and what comes after it.",
        reason="You subtract the query's position from the key's, so that earlier keys have a negative distance.",
        fix="Compute the distance as the query's position minus the key's position.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-ignored",
        title="No window at all",
        symptom="The result is the plain causal mask, whatever the window is.",
        reason="You use the causal mask and never hide what is too far back.",
        fix="Hide keys whose distance is `window` or more.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-in-blocks",
        title="Blocks in place of a window",
        symptom="The first query of each block sees itself alone.",
        reason="You cut the sequence into blocks of `window` keys, or show the same keys to all queries, but "
        "the window moves with the query.",
        fix="Compare the distance of query and key with `window`.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-negative-index",
        title="A slice that starts below 0",
        symptom="The first queries see nothing, but later rows are right.",
        reason="You start a slice at a negative index, which counts from the end.",
        fix="Start at `max(0, …)`, or compare distances.",
        passes=("shape",),
    ),
    Pitfall(
        slug="window-unchecked",
        title="A window below 1 is accepted",
        symptom="A window of 0, or a negative one, gives a mask, and nothing says so.",
        reason="You accept some or all windows below 1.",
        fix="Raise a ValueError that names `window`.",
        passes=("shape",),
    ),
)
