"""Mistakes in making masks and in applying them.

Not here, since no allowed input shows them: filling masked scores with −1e9 or with the lowest finite number
(kept scores lie far above both in float64), and masking after the softmax with the rows divided by their sum
again, which is right as long as the masked scores are not much larger than the kept ones.
"""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="mask-no-effect",
        title="The mask has no effect",
        symptom="The result is the same with and without a mask.",
        reason="You do not use the mask, or you compute the masked scores and then go on with the unmasked ones: "
        "neither `np.where` nor PyTorch's `masked_fill` changes anything in place.",
        fix="Keep what comes back: `scores = np.where(mask, scores, -np.inf)`, or in PyTorch "
        "`scores = scores.masked_fill(~mask, -torch.inf)`.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="mask-inverted",
        title="True and False exchanged",
        symptom="Each query sees exactly the keys that it should not see; a query that may see everything gets "
        "NaN.",
        reason='You read True as "hide", but here True means "may attend".',
        fix="Keep a score where the mask is True, and hide it where the mask is False.",
        passes=("shape", "boolean", "no mask"),
    ),
    Pitfall(
        slug="mask-after-softmax",
        title="Masked after the softmax",
        symptom="Masked keys get weight 0, but the weights that average the values sum to less than 1.",
        reason="You remove weights after the softmax has normalised them, so the share of the masked keys is "
        "lost.",
        fix="Set the masked scores to −inf before the softmax.",
        passes=("shape", "finite", "masked weights are 0", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="epsilon-in-denominator",
        title="A small number added to the sum of the kept weights",
        symptom="If a masked key fits a query far better than all kept ones, the weights sum to less than 1.",
        reason="You renormalise after the mask and add a small number to the sum, but if a masked score lies 21 "
        "above the kept ones, their weights sum to less than 1e-9 and the small number dominates.",
        fix="Mask the scores before the softmax, or divide by the sum alone.",
        passes=("shape", "finite", "masked weights are 0", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="masked-scores-zero",
        title="Masked scores set to 0",
        symptom="Masked keys still get weight, often more than kept keys with a negative score.",
        reason="Your masked scores become 0 or something tiny, such as −1e-9, but exp(0) = 1, so a masked key "
        "still gets its share.",
        fix="Set the masked scores to −inf, whose exponential is 0.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="zero-scores-masked",
        title="Scores of 0 taken for masked ones",
        symptom="The result is right as long as no score is 0. A key whose score is 0 is treated like a later one.",
        reason="You set the later scores to 0 and then mask whatever is 0, but a score that counts may be 0 as "
        "well.",
        fix="Let the mask say which scores are hidden, not the scores.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="mask-fill-tiny",
        title="−1e-9 in place of −1e9",
        symptom="Masked keys get weight as if their score were 0.",
        reason="You fill with −1e-9, which is almost 0, and exp(0) = 1 still gets its share.",
        fix="Fill with `-np.inf`, which cannot be mistyped into something small.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="mask-fill-with-smallest-score",
        title="Masked scores set to the smallest score",
        symptom="Masked keys keep a small weight.",
        reason="You fill with the smallest score that occurs, which is a score like any other and gets its share.",
        fix="Fill with `-np.inf`.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="mask-fill-not-negative-enough",
        title="A fill value that scores can reach",
        symptom="In a row whose kept scores lie far below the fill value, masked keys get the weight; if you "
        "remove it, nothing is left.",
        reason="You fill the masked scores with a number such as −10 or −1e4, or add it to them, but the "
        "kept scores of a row may be just as low.",
        fix="Fill with −inf, below which no score can lie.",
        passes=(
            "shape",
            "finite",
            "rows sum to 1",
            "small logits",
            "no mask",
            "all-True mask",
            "masked weights are 0",
        ),
    ),
    Pitfall(
        slug="mask-added-as-0-1",
        title="The mask added as 0 and 1",
        symptom="Masked keys lose a little weight, by a factor e before the rows are normalised.",
        reason="You add 1 to the kept scores and 0 to the others, which prefers the kept ones but hides nothing.",
        fix="Put −inf in place of the masked scores, with `np.where` or PyTorch's `masked_fill`; do not add "
        "the mask.",
        passes=("shape", "finite", "rows sum to 1", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="zero-times-infinity",
        title="0 times infinity",
        symptom="Everything is NaN as soon as there is a mask, even one that hides nothing.",
        reason="You multiply by −inf to hide the masked scores, but for the kept ones that is 0 · (−inf), which is "
        "NaN.",
        fix="Choose with `np.where(mask, scores, -np.inf)`, which multiplies nothing.",
        passes=("shape", "no mask"),
    ),
    Pitfall(
        slug="none-not-handled",
        title="None is not handled",
        symptom="There is NaN or an error when the argument is left out.",
        reason="You use the argument without testing for None, its default.",
        fix="Test it first: `if mask is not None:`.",
        passes=("shape", "boolean", "masked weights are 0", "small logits", "all-True mask", "no padding"),
    ),
    Pitfall(
        slug="mask-truth-value",
        title="`if mask:`",
        symptom="There is a ValueError: the truth value of an array with more than one element is ambiguous.",
        reason="You ask whether the mask is true, but an array of many entries is neither true nor false.",
        fix="Ask whether there is a mask: `if mask is not None:`.",
        passes=("no mask",),
    ),
    Pitfall(
        slug="mask-transposed",
        title="The mask's axes exchanged",
        symptom="There is an error when n ≠ m. When n = m, a causal mask hides the past.",
        reason="You transpose the mask, so what was said about query i and key j is applied to query j and key i.",
        fix="Use the mask as it comes: one row for each query, and one column for each key.",
        passes=("shape at n = m", "no mask"),
    ),
    Pitfall(
        slug="first-mask-for-all-sequences",
        title="The first sequence's mask for all",
        symptom="The first sequence is right, but the others are masked by its length.",
        reason="You take entry 0 of the mask, but each sequence has its own padding.",
        fix="Keep the axis of the batch, and let it broadcast over heads and queries.",
        passes=(
            "shape",
            "boolean",
            "finite",
            "rows sum to 1",
            "no mask",
            "all-True mask",
            "one sequence",
            "no keep",
        ),
    ),
    Pitfall(
        slug="mask-repeated-in-wrong-order",
        title="Masks repeated in the order of the heads",
        symptom="The result is right with one head, one sequence or one mask for all. Otherwise heads get "
        "the mask of another sequence.",
        reason="You fold the heads into the batch with all heads of a sequence in a row, but repeat the masks as "
        "a whole, so a sequence gets the masks of others.",
        fix="Repeat each mask for the heads of its sequence, with `np.repeat` or PyTorch's `repeat_interleave`; or "
        "do not fold, and let the mask broadcast.",
        passes=("shape", "finite", "no mask", "all-True mask", "one head", "one sequence"),
    ),
    Pitfall(
        slug="mask-axis-kept-in-loop",
        title="A mask with four axes inside a loop over heads",
        symptom="The result has one axis too many, and each sequence occurs once for each mask.",
        reason="You go through the heads one by one, so the scores have three axes, but the mask still has "
        "the axis of the heads and makes NumPy pair every sequence with every mask.",
        fix="Drop the axis in the loop: `mask[:, 0]`.",
        passes=("no mask", "finite"),
    ),
    Pitfall(
        slug="mask-for-first-head-only",
        title="Only the first head is masked",
        symptom="The result is right with one head. With several, the others attend to everything.",
        reason="You mask head 0 only, but what a query may not see must stay hidden from all its heads.",
        fix="Let the mask broadcast over the heads.",
        passes=("shape", "finite", "no mask", "all-True mask", "one head"),
    ),
    Pitfall(
        slug="always-causal",
        title="A causal mask that nobody asked for",
        symptom="Without a mask, the first queries give no weight to the last keys.",
        reason="You hide later keys when no mask is given, but no mask means that nothing is hidden.",
        fix="Leave the scores alone when the mask is None.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "small logits", "all-True mask"),
    ),
    Pitfall(
        slug="causal-missing",
        title="The causal mask is missing",
        symptom="The result for a token depends on later ones; the training loss becomes too good to be true.",
        reason="You do not hide what comes later in the attention, or another step mixes the tokens, so the model "
        "reads the token that it should predict.",
        fix="Let query i attend to key j only where j ≤ i, and let no other step mix tokens.",
        passes=("shape", "boolean", "every row keeps a key"),
    ),
    Pitfall(
        slug="causal-size-from-batch",
        title="The mask as large as the batch",
        symptom="There is an error, or, for one sequence, no mask at all: a single True broadcasts to "
        "everything.",
        reason="You build the causal mask from the first axis, but that counts sequences, not tokens.",
        fix="Take the number of tokens: `n = X.shape[1]`.",
        passes=(),
    ),
    Pitfall(
        slug="causal-transposed",
        title="The future in place of the past",
        symptom="The first query sees everything, and the last one sees only itself.",
        reason="You keep j ≥ i, so each token sees what comes later and nothing of what came before.",
        fix="Keep j ≤ i, the lower triangle: a row is a query.",
        passes=("shape", "boolean"),
    ),
    Pitfall(
        slug="causal-hides-self",
        title="A token does not see itself",
        symptom="A token does not attend to itself. The first query has no key at all, so its row is NaN, unless "
        "something stands in for it.",
        reason="You keep j < i, but a token may attend to its own position, and the first token has no other key.",
        fix="Keep j ≤ i, the diagonal included.",
        passes=("shape", "boolean"),
    ),
    Pitfall(
        slug="causal-sees-next",
        title="A token sees the next one",
        symptom="Only the token right after the query leaks, but the training loss falls to almost nothing.",
        reason="You keep j ≤ i + 1, and the next token is exactly the one to be predicted.",
        fix="Keep j ≤ i: when n = m, the triangle with its diagonal and nothing above.",
        passes=("shape", "boolean", "every row keeps a key"),
    ),
    Pitfall(
        slug="causal-top-left",
        title="Lined up at the first key",
        symptom="The mask is right when n = m. With more keys than queries, the queries do not see the "
        "latest keys.",
        reason="You line the first query up with the first key, but the queries are the last n of the m positions.",
        fix="Line the last query up with the last key: keep j ≤ i + (m − n).",
        passes=("shape", "boolean", "every row keeps a key", "n = m"),
    ),
    Pitfall(
        slug="causal-offset-reversed",
        title="The sign of the offset reversed",
        symptom="The mask is right when n = m. With more keys than queries, the first rows are empty.",
        reason="You subtract m − n, but with more keys than queries each query sees more keys, not fewer.",
        fix="Add the offset: keep j ≤ i + (m − n).",
        passes=("shape", "boolean", "n = m"),
    ),
    Pitfall(
        slug="square-mask-assumed",
        title="As many keys as queries assumed",
        symptom="The mask is right when n = m. Otherwise it has n columns and does not fit the scores.",
        reason="You build a square mask, or return one from an earlier call, but with a cache there are more keys "
        "than queries.",
        fix="Build a mask of shape (n, m).",
        passes=("shape at n = m", "boolean", "n = m"),
    ),
    Pitfall(
        slug="mask-shape-transposed",
        title="Keys in the rows of the mask",
        symptom="The mask has shape (m, n) instead of (n, m). When n = m, it shows the future instead of "
        "the past.",
        reason="You put the keys into the rows, but the scores have one row for each query.",
        fix="Build a mask of shape (n, m): `np.arange(n)[:, None]` for the queries, and `np.arange(m)` for "
        "the keys.",
        passes=("shape at n = m", "boolean"),
    ),
    Pitfall(
        slug="mask-with-extra-axes",
        title="Axes that nobody asked for",
        symptom="The mask has a shape such as (1, 1, n, m) instead of (n, m).",
        reason="You add axes for a batch and for heads, but a mask that is the same for all needs neither, and the "
        "contract says (n, m).",
        fix="Return shape (n, m), which broadcasts over everything that leads.",
        passes=("boolean", "every row keeps a key"),
    ),
    Pitfall(
        slug="mask-not-boolean",
        title="Numbers in place of booleans",
        symptom="The mask holds 0.0 and 1.0, so `~mask` fails, and adding it to the scores hides nothing.",
        reason="You return numbers, which code that expects True and False may add or multiply without an error.",
        fix="Make the array with dtype=bool, or by a comparison.",
        passes=("shape",),
    ),
    Pitfall(
        slug="additive-mask",
        title="0 and −inf in place of booleans",
        symptom="The mask holds 0.0 where a key is kept and −inf where it is hidden.",
        reason="You return a mask that is meant to be added to the scores; to `np.where` its 0 means False and "
        "its −inf means True, the opposite.",
        fix="Return a boolean mask, True = may attend.",
        passes=("shape",),
    ),
    Pitfall(
        slug="padding-off-by-one",
        title="The first padding token is kept",
        symptom="The mask is right for sequences without padding. In the others, queries attend to one padding "
        "token.",
        reason="You compare with `<=`, but positions count from 0, so position `length` is already padding.",
        fix="Compare with `<`.",
        passes=("shape", "boolean", "every row keeps a key", "no padding"),
    ),
    Pitfall(
        slug="padding-hides-last-token",
        title="The last real token is hidden",
        symptom="Every sequence loses its last token, and a sequence of length 1 has no key at all.",
        reason="You take 1 off the length, but positions count from 0, so `position < length` is already right.",
        fix="Compare the position with the length itself.",
        passes=("shape", "boolean"),
    ),
    Pitfall(
        slug="padding-on-the-left",
        title="The padding is taken to come first",
        symptom="The number of kept tokens is right, but they are the wrong tokens.",
        reason="You keep the last positions, but a sequence starts at position 0 and the padding fills up its end.",
        fix="Keep the positions below the length.",
        passes=("shape", "boolean", "every row keeps a key", "no padding"),
    ),
    Pitfall(
        slug="padding-at-the-end-assumed",
        title="The padding is taken to come last",
        symptom="The mask is right where all padding is at the end. Elsewhere padding is kept and real tokens are "
        "hidden.",
        reason="You count the real tokens of a sequence, which does not tell where they stand.",
        fix="Use `keep` itself: `keep[:, None, None, :]`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep"),
    ),
    Pitfall(
        slug="padding-without-broadcast-axes",
        title="No axes for heads and queries",
        symptom="The mask has shape (batch, max_len). Applied to the scores, it gives an error, or acts on "
        "another axis if sizes agree.",
        reason="You return (batch, max_len), which NumPy lines up with queries and keys, not with batch and keys.",
        fix="Add two axes: `[:, None, None, :]` gives (batch, 1, 1, max_len).",
        passes=("boolean", "every row keeps a key"),
    ),
    Pitfall(
        slug="mask-batch-on-head-axis",
        title="The batch lined up with the heads",
        symptom="There is an error, or some heads are masked by another sequence's padding.",
        reason="Your mask lacks the axis of the heads, or you fold heads and sequences in another order than the "
        "masks.",
        fix="Add an axis of size 1 for the heads, (batch, 1, …, m), and keep batch and heads as two axes.",
        passes=("boolean", "every row keeps a key", "no keep"),
    ),
    Pitfall(
        slug="padding-on-query-axis",
        title="Padding hides queries, not keys",
        symptom="Real tokens still attend to padding, and the rows of padding are empty and become NaN.",
        reason="You put the padding on the axis of the queries, but no query may read a padding key.",
        fix="Put the tokens of `keep` on the last axis: `keep[:, None, None, :]`.",
        passes=("boolean", "no keep"),
    ),
    Pitfall(
        slug="padding-masks-queries-too",
        title="Padding hides keys and queries",
        symptom="The rows of padding are empty: they become NaN, which spreads through the next layer, or the "
        "mean of all values.",
        reason="You hide padding queries as well, so they have no key at all; their output is not used in any "
        "case.",
        fix="Hide the padding keys only.",
        passes=("boolean", "no keep"),
    ),
    Pitfall(
        slug="max-len-ignored",
        title="As wide as the longest sequence",
        symptom="The mask is right when one sequence is full. Otherwise it is narrower than the scores.",
        reason="You take the width from the longest sequence, but the arrays are max_len wide.",
        fix="Count the positions up to max_len.",
        passes=("boolean", "every row keeps a key", "no padding"),
    ),
    Pitfall(
        slug="masks-or-combined",
        title="`or` in place of `and`",
        symptom="Tokens attend to later real tokens, and to earlier padding.",
        reason="You let a key through if either mask allows it, but both must.",
        fix="Combine the masks with `&`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep"),
    ),
    Pitfall(
        slug="padding-replaces-causal",
        title="The padding mask replaces the causal one",
        symptom="The mask is right without `keep`. With it, tokens attend to later ones.",
        reason="You return the padding mask alone as soon as there is one, so the future is no longer hidden.",
        fix="Combine the masks with `&`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep"),
    ),
    Pitfall(
        slug="padding-missing",
        title="The padding is not hidden",
        symptom="The mask is right without padding. Otherwise tokens attend to padding that comes before "
        "them.",
        reason="You do not use `keep`, so padding that is not later than the query stays visible.",
        fix="Combine the causal mask with `keep[:, None, None, :]` by `&`.",
        passes=("shape", "boolean", "every row keeps a key", "no keep", "no padding"),
    ),
    Pitfall(
        slug="keep-inverted",
        title="`keep` taken to mark the padding",
        symptom="Real tokens are hidden, and without padding every row is empty.",
        reason="You hide where `keep` is True, but it marks the real tokens.",
        fix="Use `keep` as it is, without `~`.",
        passes=("shape", "boolean", "no keep"),
    ),
    Pitfall(
        slug="mask-fill-overflows-half",
        title="−1e9 in float16",
        symptom="The result is right in float32. In float16 there is an error about a value that overflows.",
        reason="You fill with a number that float16 cannot represent: its lowest one is −65,504.",
        fix="Fill with −∞ or with `torch.finfo(scores.dtype).min`.",
        passes=("shape", "finite", "rows sum to 1", "masked weights are 0", "small logits"),
    ),
    Pitfall(
        slug="empty-row-nan",
        title="NaN for a query without keys",
        symptom="The row of a query that may attend to nothing is NaN, and the NaN spreads from there to "
        "the whole loss.",
        reason="You fill a whole row with −∞, and its softmax is 0/0.",
        fix="Leave such a row finite, and set its weights to 0 after the softmax.",
        passes=("shape", "masked weights are 0", "small logits", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="empty-row-uniform",
        title="A query without keys attends to everything",
        symptom="The output of a query that may attend to nothing is the mean of all values, padding included.",
        reason="You give all keys of the row the same low score, and the softmax looks at differences only.",
        fix="Set the weights of masked keys to 0 after the softmax as well.",
        passes=("shape", "finite", "rows sum to 1", "small logits", "no mask", "all-True mask"),
    ),
    Pitfall(
        slug="nan-gradient-on-empty-row",
        title="NaN replaced in the output only",
        symptom="The outputs are right, but after one step of training all parameters are NaN.",
        reason="You replace NaN after it has arisen, and in the backward pass NaN times 0 is NaN again.",
        fix="Avoid NaN: keep such a row finite before the softmax.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="in-place-breaks-autograd",
        title="The weights overwritten in place",
        symptom="The outputs are right, but `backward()` raises an error about a variable that was modified "
        "in place.",
        reason="You write into the result of the softmax, which its backward pass still needs.",
        fix="Make a new tensor: `masked_fill` without the underscore, dropout without `inplace=True`.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="mask-not-sliced",
        title="The longest mask for every length",
        symptom="The result is right for sequences of exactly max_len tokens. Shorter ones raise an error.",
        reason="You use the whole mask of max_len tokens, but there are n queries and n keys.",
        fix="Cut it to size: `mask[:n, :n]`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="mask-of-first-call",
        title="The first call's mask for all calls",
        symptom="The results are right until a longer sequence comes.",
        reason="You keep the mask that the first call needed, but the next one may have more tokens.",
        fix="Keep the mask for max_len tokens, and cut it to size at each call.",
        passes=("shape", "finite", "right values"),
    ),
    Pitfall(
        slug="first-mask-kept",
        title="A mask kept for later calls",
        symptom="The first call is right, but later calls, or some of them, use its mask in place of what they are "
        "given.",
        reason="You keep a mask in the layer for later calls, but each call has its own mask, or none.",
        fix="Use the `mask` that `forward` was given, and keep none in `self`.",
        passes=("shape", "finite", "no mask", "all-True mask", "right values"),
    ),
)
