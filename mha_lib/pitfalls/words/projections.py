"""Mistakes in the projections: from tokens to queries, keys and values, and from heads to the output.

Not here, since no input tells it from `projection-transposed`: giving each head its own *columns* of W_O,
transposed, in place of its rows. And projecting with rows of W_Q, W_K and W_V in place of columns is
`weights-applied-transposed`.
"""

from mha_lib.pitfalls.words.pitfall import Pitfall

PITFALLS = (
    Pitfall(
        slug="weights-applied-transposed",
        title="`X @ W.T` in place of `X @ W`",
        symptom="The shapes are right, since the weights are square, but the numbers are wrong everywhere.",
        reason="You transpose the weights, as for a PyTorch linear layer, which stores (d_out, d_in), but here "
        "they are stored as (d_in, d_out).",
        fix="Multiply by the weights as they are: `X @ W_Q`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="projection-transposed",
        title="W_O transposed",
        symptom="The shapes are right, since W_O is square, but the numbers are wrong everywhere.",
        reason="You multiply by the transpose of W_O, or give each head its columns where it owns rows, so the "
        "features of the heads go to the wrong places.",
        fix="Multiply the concatenated heads by W_O as it is.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="value-used-as-key",
        title="The values used as keys",
        symptom="The output does not change with the keys.",
        reason="You compare the queries with the values, but attention finds a token by its key and reads its "
        "value.",
        fix="Compare the queries with the keys, which W_K makes in a layer.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="queries-and-keys-swapped",
        title="W_Q and W_K exchanged",
        symptom="The score of query i and key j is the one that query j and key i should have.",
        reason="You make the queries with W_K and the keys with W_Q, so the query and the key of each token "
        "are exchanged.",
        fix="Make the queries with W_Q and the keys with W_K.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="keys-and-values-exchanged",
        title="W_K and W_V exchanged",
        symptom="The scores come from what should be the values, and the output consists of what should be "
        "the keys.",
        reason="You make the keys with W_V and the values with W_K, but W_K makes what the queries are "
        "compared with, and W_V what the output consists of.",
        fix="Make the keys with W_K and the values with W_V.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="shared-projection",
        title="One projection for queries, keys and values",
        symptom="The scores are symmetric, and most tokens attend to themselves.",
        reason="You use one projection for two or all three of queries, keys and values, so they cannot be "
        "learned separately.",
        fix="Make queries, keys and values with W_Q, W_K and W_V, each with its own.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="no-projection",
        title="The tokens themselves as queries, keys and values",
        symptom="The output does not change with some or all of W_Q, W_K and W_V, and each head sees one "
        "slice of the features.",
        reason="You split the tokens and not their projections, so a head reads a fixed slice of the "
        "features and has nothing to learn there.",
        fix="Project first, with all features, and split the result: `split_heads(X @ W_Q, num_heads)`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="nonlinear-projection",
        title="An activation in the projections",
        symptom="No query, key or value is negative, so no score is.",
        reason="You put an activation (such as a ReLU) after a projection, which is linear in the formula; without "
        "negative entries, no key can get a negative score.",
        fix="Leave the activation out: `X @ W_Q`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="no-output-projection",
        title="W_O is missing",
        symptom="The output (perhaps of a single head only) does not change with W_O, and the result of head i is "
        "in its own columns.",
        reason="You return the concatenated heads, or a single head as it is, but W_O lets each output feature "
        "draw on all features of the heads.",
        fix="Multiply the concatenated heads by W_O.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="input-sliced-per-head",
        title="Each head sees a slice of the input",
        symptom="The result is right with one head. With several, most of each weight matrix has no effect.",
        reason="You cut the features of X into one slice for each head, but every head reads all features; only "
        "its projections are d_k wide.",
        fix="Project all of X, with the head's own columns of the weights, or project once and split the result.",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="same-columns-for-every-head",
        title="Every head takes the same columns",
        symptom="The result is right with one head. With several, the heads share columns that each should "
        "have for itself.",
        reason="You take the same d_k columns of a projection for every head.",
        fix="Give head i the columns from i*d_k to (i+1)*d_k.",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="weights-reshaped-without-transpose",
        title="Weights reshaped into heads",
        symptom="The result is right with one head. With several, each head mixes up the entries of the "
        "weights.",
        reason="You reshape (d_model, d_model) to (heads, d_model, d_k), which goes through the entries row by row "
        "and tears the columns apart.",
        fix="Reshape to (d_model, heads, d_k), which cuts the columns into blocks, and then move the axis of the "
        "heads to the front.",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="fused-qkv-misread",
        title="The fused projection read in the wrong order",
        symptom="The result is right with one head. With several, queries, keys and values of different "
        "heads are mixed.",
        reason="The columns hold all queries, then all keys, then all values, but you read them as if the query, "
        "key and value of each head were adjacent.",
        fix="Cut the 3 * d_model columns into three parts first, and each part into heads: reshape to (batch, n, "
        "3, heads, d_k).",
        passes=("shape", "finite", "one head"),
    ),
    Pitfall(
        slug="residual-added",
        title="The tokens added to the output",
        symptom="The output is off by exactly X.",
        reason="You add the residual connection, which belongs to the block around the attention, not to the "
        "attention.",
        fix="Return the projected heads alone.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="weights-returned-too",
        title="The weights returned as well",
        symptom="The result is a tuple where an array is expected.",
        reason="You return a pair, but the contract asks for the output alone.",
        fix="Return the output only.",
        passes=(),
    ),
    Pitfall(
        slug="memory-ignored",
        title="Self-attention in place of cross-attention",
        symptom="The output does not change with the memory.",
        reason="You make keys and values from X, so the tokens attend to one another and never to the memory.",
        fix="Make keys and values from the memory: `memory @ W_K` and `memory @ W_V`.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="cross-roles-swapped",
        title="Queries from the memory, keys and values from X",
        symptom="There is one output for each token of the memory, so m of them instead of n.",
        reason="You make queries from the memory and keys and values from X, but each token of X needs a "
        "query and gets an output.",
        fix="Make the queries from X, and the keys and values from the memory.",
        passes=("shape at n = m", "finite"),
    ),
    Pitfall(
        slug="all-from-memory",
        title="The memory attends to itself",
        symptom="The output does not change with X and has one row for each token of the memory.",
        reason="You make the queries from the memory as well, so nothing of X is used.",
        fix="Make the queries from X: `X @ W_Q`.",
        passes=("shape at n = m", "finite"),
    ),
    Pitfall(
        slug="values-from-input",
        title="Keys from the memory, values from X",
        symptom="There is an error when n ≠ m. When n = m, each token reads from X at the positions that it found "
        "in the memory.",
        reason="You look at the keys of the memory and then read the values of X, but a key and its value belong "
        "to the same token.",
        fix="Make both keys and values from the memory.",
        passes=("shape at n = m",),
    ),
    Pitfall(
        slug="memory-appended-to-input",
        title="Attention to X and the memory together",
        symptom="The tokens of X take weight away from the memory.",
        reason="You attend to X and the memory together, but cross-attention looks only at the memory.",
        fix="Make keys and values from the memory alone.",
        passes=("shape", "finite"),
    ),
    Pitfall(
        slug="first-memory-for-all-sequences",
        title="The first sequence's memory for all",
        symptom="The first sequence is right, but the others look at its memory.",
        reason="You take entry 0 of the memory, but each sequence of the batch has its own memory.",
        fix="Keep the axis of the batch: `memory @ W_K` projects all sequences at once.",
        passes=("shape", "shape at n = m", "finite"),
    ),
    Pitfall(
        slug="memory-length-assumed",
        title="The memory taken to be as long as X",
        symptom="The result is right when n = m. Otherwise there is an error about reshaping.",
        reason="You reshape keys and values with the length of X, but the memory has its own length.",
        fix="Read the number of keys from the memory: `memory.shape[1]`.",
        passes=("shape at n = m", "n = m"),
    ),
)
