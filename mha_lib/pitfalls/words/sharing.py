"""Mistakes in sharing keys and values among query heads, in remembering them, and in counting their bytes."""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="kv-tiled",
        title="Key heads assigned in turn",
        symptom="The shape is right. The numbers are right with one key head and with as many as query "
        "heads, and wrong in between.",
        reason="Your query heads get the key heads in the order 0, 1, …, 0, 1, …, but neighbours share one: query "
        "head i uses key head i // group.",
        fix="Repeat each key head in place, with `np.repeat(K, group, axis=1)`, not `np.tile`.",
        passes=("shape", "finite", "one key head", "as many key heads"),
    ),
    Pitfall(
        slug="kv-not-repeated",
        title="Key heads not given to their query heads",
        symptom="The shapes do not fit, unless there is one key head or as many as query heads.",
        reason="You multiply many query heads with fewer key heads, and NumPy stretches an axis only if its size "
        "is 1.",
        fix="Repeat each key head and value head for its group of query heads.",
        passes=("one key head", "as many key heads"),
    ),
    Pitfall(
        slug="kv-values-not-repeated",
        title="Keys repeated, values not",
        symptom="The weights are right, but their shape does not fit the values.",
        reason="You repeat the key heads only, but query heads of a group share the values as well.",
        fix="Do the same with V as with K.",
        passes=("one key head", "as many key heads"),
    ),
    Pitfall(
        slug="kv-repeated-on-sequence-axis",
        title="Tokens repeated in place of heads",
        symptom="The number of key heads does not fit. With a single key head nothing shows, since the "
        "copies of a key share its weight.",
        reason="You repeat along the axis of the tokens, or along another one, so the number of key heads "
        "stays as it was.",
        fix="Repeat along the axis of the heads: axis 1 of `(batch, heads, n, d_k)`.",
        passes=("one key head", "as many key heads"),
    ),
    Pitfall(
        slug="kv-repeated-on-feature-axis",
        title="Single features repeated in place of heads",
        symptom="The shape is right, but the numbers are wrong unless there are as many key heads as query "
        "heads.",
        reason="You repeat each feature before the heads are split, so a head gets copies of a part of its "
        "features.",
        fix="Split into heads first, then repeat along axis 1 of `(batch, heads, n, d_k)`.",
        passes=("shape", "finite", "as many key heads"),
    ),
    Pitfall(
        slug="kv-repeated-too-often",
        title="Repeated by the number of key heads",
        symptom="The shapes do not fit, unless there is one key head.",
        reason="You repeat each key head `num_kv_heads` times, but it needs one copy for each query head of its "
        "group.",
        fix="Repeat `num_heads // num_kv_heads` times.",
        passes=("one key head",),
    ),
    Pitfall(
        slug="kv-first-head-for-all",
        title="One key head serves all",
        symptom="The shape is right, but only one key head or one value head has an effect.",
        reason="You give one key head or value head to all query heads, which is right only if there is no other.",
        fix="Give each group of query heads its own key head.",
        passes=("shape", "finite", "one key head"),
    ),
    Pitfall(
        slug="kv-index-by-number-of-heads",
        title="`i // num_kv_heads` as the key head of query head i",
        symptom="The result is right only if a group has as many query heads as there are key heads. With as "
        "many key heads as query heads, the first one serves all. With few, the index is out of bounds.",
        reason="You divide the number of the query head by the number of key heads, or take a remainder, but "
        "you should divide it by the number of query heads in a group.",
        fix="Use key head `i // (num_heads // num_kv_heads)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="scale-by-kv-width",
        title="Divided by √(d_model / num_kv_heads)",
        symptom="The shape is right. The result is right with as many key heads as query heads; with fewer, "
        "the weights are too even or too sharp.",
        reason="You compute the width of a head from the number of key heads or from the width of W_K, but all "
        "heads, including those of keys, are d_model / num_heads wide.",
        fix="Divide by the root of the last axis of Q or K after they were split.",
        passes=("shape", "finite", "as many key heads"),
    ),
    Pitfall(
        slug="kv-averaged",
        title="The mean of the key heads serves all",
        symptom="The shape is right, but all query heads see the same keys or the same values.",
        reason="You average or add the key heads or value heads, but each group of query heads has one to itself.",
        fix="Repeat each key head for its own group, and leave out the mean.",
        passes=("shape", "finite", "one key head"),
    ),
    Pitfall(
        slug="kv-split-into-query-heads",
        title="Keys split into as many heads as queries",
        symptom="The keys are narrower than the queries, so the product fails unless there are as many key "
        "heads as query heads.",
        reason="You split queries and keys into the same number of heads, but queries hold `num_heads` heads "
        "and keys only `num_kv_heads`.",
        fix="Split queries with `num_heads`, keys and values with `num_kv_heads`, then repeat the heads.",
        passes=("as many key heads",),
    ),
    Pitfall(
        slug="cache-mask-offset",
        title="The chunk lined up with the wrong keys",
        symptom="The first chunk is right. Later tokens see too few of the earlier tokens, or see later "
        "ones.",
        reason="Your mask lines the chunk's first token up with the first key, or shifts it by a wrong "
        "number of tokens, but a chunk is the end of the tokens so far.",
        fix="Let the last query line up with the last key: j ≤ i + (m − t).",
        passes=("shape", "finite", "one chunk"),
    ),
    Pitfall(
        slug="cache-masks-first-chunk-only",
        title="No mask once the cache holds something",
        symptom="The outputs are right for a single chunk, and token by token. In longer chunks, tokens see "
        "the next ones.",
        reason="You leave the mask out as soon as there is a cache, which is right only for chunks of one token.",
        fix="Mask every chunk: `causal_mask(t, m)` hides nothing from a single token.",
        passes=("shape", "finite", "one chunk", "token by token"),
    ),
    Pitfall(
        slug="cache-keeps-last-chunk",
        title="Only one chunk is stored",
        symptom="The result is right for two chunks. From the third on, tokens are forgotten.",
        reason="You store the keys of one chunk or one token, not all keys so far.",
        fix="Store the keys and values after you have joined them to the old ones.",
        passes=("shape", "finite", "one chunk", "two chunks"),
    ),
    Pitfall(
        slug="cache-never-used",
        title="Each chunk by itself",
        symptom="The result is right for a single chunk. Token by token, every token sees only itself.",
        reason="You compute each chunk without the keys and values of the chunks before.",
        fix="Join the stored keys and values to the new ones before the attention.",
        passes=("shape", "finite", "one chunk"),
    ),
    Pitfall(
        slug="cache-newest-first",
        title="New keys put before the old ones",
        symptom="The outputs are right token by token, where nothing is masked, and wrong in longer chunks.",
        reason="You put the new keys before the old ones, so the mask hides the wrong ones.",
        fix="Join them in the order of the sequence: old ones first.",
        passes=("shape", "finite", "one chunk", "token by token"),
    ),
    Pitfall(
        slug="cache-wrong-axis",
        title="Old and new keys joined along the wrong axis",
        symptom="The first chunk is right. At the second, shapes do not fit.",
        reason="You join along an axis other than that of the tokens, so there seem to be more heads, sequences or "
        "features, and not more tokens.",
        fix="In `(batch, heads, n, d_k)` the tokens are on axis 2, in `(batch, n, d_model)` on axis 1.",
        passes=("one chunk",),
    ),
    Pitfall(
        slug="cache-keys-only",
        title="Keys cached, values not",
        symptom="The first chunk is right. At the second, there are more weights than values.",
        reason="You store only the keys, but each cached key needs its value as well.",
        fix="Store and join K and V alike.",
        passes=("one chunk",),
    ),
    Pitfall(
        slug="cache-returns-all-tokens",
        title="Outputs of other tokens returned",
        symptom="The results get longer and longer, or hold a single token.",
        reason="You return the outputs of all tokens so far, or only that of the last one, but the contract "
        "asks for those of the chunk.",
        fix="Ask for the chunk's tokens only: its queries, or the last t rows of the output.",
        passes=("one chunk",),
    ),
    Pitfall(
        slug="cache-not-reset",
        title="reset does not forget",
        symptom="The first sequence is right. The next one sees tokens of the first or places where they were, or "
        "gives an error.",
        reason="After `reset()` your object still holds something of the sequence before: keys, values or their "
        "shape.",
        fix="Put the cache back into the state that `__init__` gives it.",
        passes=("shape", "finite", "one chunk", "two chunks", "token by token"),
    ),
    Pitfall(
        slug="cache-offset-not-reset",
        title="reset forgets the tokens, not their number",
        symptom="The first sequence is right. After a reset, the tokens of a chunk see later ones.",
        reason="You count the past tokens in an attribute of its own, and `reset` does not set it back to 0.",
        fix="Take the number of past tokens from the cache itself.",
        passes=("shape", "finite", "one chunk", "two chunks", "token by token"),
    ),
    Pitfall(
        slug="result-overwritten-later",
        title="An output that the next call overwrites",
        symptom="Each output is right when it comes. Kept outputs all become the newest one.",
        reason="You return an array that the object keeps, and write into it at the next call.",
        fix="Return a new array each time.",
        passes=("shape", "finite", "one chunk", "two chunks"),
    ),
    Pitfall(
        slug="cache-shared-between-objects",
        title="One cache for all objects",
        symptom="One object alone is right. Two that are used in turn see each other's tokens.",
        reason="Your cache belongs to the class, or is a global variable, so all objects write into the same one.",
        fix="Make it in `__init__`, as an attribute of `self`.",
        passes=("shape", "finite", "one chunk", "two chunks", "token by token"),
    ),
    Pitfall(
        slug="cache-bytes-keys-only",
        title="Keys counted, values not",
        symptom="The result is half of what it should be.",
        reason="You count one array, but each layer keeps keys and values.",
        fix="Multiply by 2.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-with-queries",
        title="Queries counted too",
        symptom="The result is one and a half times what it should be.",
        reason="You count queries, but the queries of earlier tokens are never needed again.",
        fix="Multiply by 2, for keys and values, not by 3.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-of-one-layer",
        title="One layer counted",
        symptom="The result is too small by a factor of the number of layers.",
        reason="You count one layer, but each layer has its own keys and values.",
        fix="Multiply by `num_layers`.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-of-one-sequence",
        title="One sequence counted",
        symptom="The result is too small by a factor of the batch size.",
        reason="You count one sequence, but each sequence of the batch has its own tokens.",
        fix="Multiply by `batch`.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-of-one-head",
        title="One key head counted",
        symptom="The result is too small by a factor of the number of key heads, which seems to make no "
        "difference.",
        reason="You count one head, but each key head and value head is stored.",
        fix="Multiply by `num_kv_heads`.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-of-one-token",
        title="One token counted",
        symptom="The result is too small by a factor of n.",
        reason="You count one token, but the cache stores the keys and values of all tokens.",
        fix="Multiply by `n`.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-without-width",
        title="A key counted as one number",
        symptom="The result is too small by a factor of d_k.",
        reason="You count keys and values, but each of them has d_k numbers.",
        fix="Multiply by `d_k`.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-of-fixed-values",
        title="A fixed number of bytes for each value",
        symptom="The result is the same for every `bytes_per_value`. If you count two bytes, it is right by "
        "default, and wrong for float32.",
        reason="You count a fixed number of bytes for each value, but the caller may ask for another number.",
        fix="Multiply by `bytes_per_value`.",
        passes=("default size",),
    ),
    Pitfall(
        slug="cache-bytes-as-number-of-values",
        title="Values counted, not bytes",
        symptom="The result is too small by a factor of `bytes_per_value`.",
        reason="You count numbers, but each of them takes `bytes_per_value` bytes.",
        fix="Multiply by `bytes_per_value`.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-of-scores",
        title="The n × n weights counted",
        symptom="The result grows with the square of n.",
        reason="You count something for each pair of tokens, but the weights are not stored: a token's row "
        "is used once.",
        fix="Count keys and values, which are `d_k` wide, for n tokens.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-in-bits",
        title="Bits in place of bytes",
        symptom="The result is eight times what it should be, or an eighth of it.",
        reason="You convert bits and bytes, but `bytes_per_value` is in bytes already, and so is the result.",
        fix="Leave out the factor of 8.",
        passes=(),
    ),
    Pitfall(
        slug="cache-bytes-in-mebibytes",
        title="Mebibytes in place of bytes",
        symptom="The result is a fraction where a whole number is expected.",
        reason="You convert to larger units, but the result should be in bytes.",
        fix="Leave out the division.",
        passes=(),
    ),
)
