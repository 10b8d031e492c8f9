"""Mistakes in running a trained model's attention, and in reading off what its heads do.

Not here, since no input shows it: leaving out the bias of the keys. It adds the same number to all scores of a
query, and the softmax does not see that.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mha_lib import real_heads as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray
Weights = Mapping[str, Mapping[str, Array]]

# --- weights as they are stored ----------------------------------------------------------------------------


def bert_weights_not_transposed(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: `x @ W`, but the weights are stored as (out, in)."""
    Q, K, V = (
        split_heads(x @ weights[name]["weight"] + weights[name]["bias"], num_heads)
        for name in ("query", "key", "value")
    )  # (batch, heads, n, d_k) each
    heads, maps = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    W_O, b_O = weights["dense"]["weight"], weights["dense"]["bias"]
    return combine_heads(heads) @ W_O + b_O, maps


def bert_dense_not_transposed(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the first three weights are transposed, the last one is not."""
    output, maps = heads_side_by_side(x, weights, num_heads, mask)
    return output @ weights["dense"]["weight"] + weights["dense"]["bias"], maps


def bert_biases_forgotten(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: no bias is added anywhere."""
    bare = {name: {**pair, "bias": np.zeros(1)} for name, pair in weights.items()}
    return right.bert_attention(x, bare, num_heads, mask)


def bert_dense_bias_forgotten(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the last bias is not added."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return output - weights["dense"]["bias"], maps


def bert_bias_before_weight(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the bias is added to the input, before the weight."""
    moved = {
        name: {"weight": each["weight"], "bias": each["weight"] @ each["bias"]}
        for name, each in weights.items()
    }
    return right.bert_attention(x, moved, num_heads, mask)


def bert_one_map_for_all_heads(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: the maps are averaged over the heads before they are returned."""
    output, maps = right.bert_attention(x, weights, num_heads, mask)
    return output, maps.mean(axis=1)


def heads_side_by_side(
    x: Array, weights: Weights, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """All heads side by side, `(batch, n, d_model)`, before `dense`; and the maps."""
    Q, K, V = (
        split_heads(x @ weights[name]["weight"].T + weights[name]["bias"], num_heads)
        for name in ("query", "key", "value")
    )
    heads, maps = attention(Q, K, V, mask)
    return combine_heads(heads), maps


# --- where a head looks ------------------------------------------------------------------------------------


def offset_sign_turned(attention_weights: Array, offset: int) -> Array:
    """Wrong: what is read is the weight of key i − offset: maps transposed, or the sign turned round."""
    return np.diagonal(attention_weights, -offset, axis1=1, axis2=2).mean(axis=1)


def offset_ignored(attention_weights: Array, offset: int) -> Array:
    """Wrong: the weight of a token on itself, whatever the offset."""
    return np.diagonal(attention_weights, axis1=1, axis2=2).mean(axis=1)


def offset_divided_by_n(attention_weights: Array, offset: int) -> Array:
    """Wrong: the sum is divided by the number of all queries."""
    diagonal = np.diagonal(attention_weights, offset, axis1=1, axis2=2)  # (heads, n - |offset|)
    return diagonal.sum(axis=1) / attention_weights.shape[-1]


def offset_summed(attention_weights: Array, offset: int) -> Array:
    """Wrong: the sum, not the mean."""
    return np.diagonal(attention_weights, offset, axis1=1, axis2=2).sum(axis=1)


def offset_wraps_around(attention_weights: Array, offset: int) -> Array:
    """Wrong: the first token is taken to have the last one before it."""
    n = attention_weights.shape[-1]
    i = np.arange(n)
    return attention_weights[:, i, (i + offset) % n].mean(axis=1)


def offset_negative_index(attention_weights: Array, offset: int) -> Array:
    """Wrong: keys beyond the end are left out, but a negative index counts from the end."""
    n = attention_weights.shape[-1]
    i = np.array([i for i in range(n) if i + offset < n])
    return attention_weights[:, i, i + offset].mean(axis=1)


def offset_averaged_over_heads(attention_weights: Array, offset: int) -> Array:
    """Wrong: the heads are averaged, and one number for each token is left."""
    return np.diagonal(attention_weights, offset, axis1=1, axis2=2).mean(axis=0)  # (n - |offset|,)


def offset_first_axes(attention_weights: Array, offset: int) -> Array:
    """Wrong: the diagonal of the axes 0 and 1, heads and queries, which is NumPy's default."""
    return np.diagonal(attention_weights, offset).mean(axis=-1)


def offset_by_largest_weight(attention_weights: Array, offset: int) -> Array:
    """Wrong: the share of queries that look there most, not how much they look."""
    n = attention_weights.shape[-1]
    hits = attention_weights.argmax(axis=-1) == np.arange(n) + offset  # (heads, n)
    return hits.sum(axis=1) / (n - abs(offset))


# --- single heads ------------------------------------------------------------------------------------------


def kept_heads_removed(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the listed heads are the ones that are silent."""
    others = [head for head in range(num_heads) if head not in keep]
    return right.keep_heads(x, weights, num_heads, others)


def kept_heads_counted_from_one(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the first head is taken to be number 1."""
    return right.keep_heads(x, weights, num_heads, [head - 1 for head in keep])


def kept_first_listed_only(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: one head contributes, however many are listed."""
    return right.keep_heads(x, weights, num_heads, keep[:1])


def kept_interleaved(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: head i is taken to own every num_heads-th column."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    kept = np.isin(np.arange(heads.shape[-1]) % num_heads, keep)
    return heads * kept @ weights["dense"]["weight"].T + weights["dense"]["bias"]


def kept_rows_of_dense(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: rows of `dense` are silenced, but these belong to the features of the output."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    d_k = heads.shape[-1] // num_heads
    kept = np.repeat(np.isin(np.arange(num_heads), keep), d_k)
    W = weights["dense"]["weight"] * kept[:, None]
    return heads @ W.T + weights["dense"]["bias"]


def kept_dense_bias_with_each_head(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: outputs of single heads are summed, and each brings the bias of `dense` along."""
    outputs = [right.keep_heads(x, weights, num_heads, [head]) for head in keep]
    return np.sum(outputs, axis=0)


def kept_without_dense_bias(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the bias of `dense` is left out."""
    return right.keep_heads(x, weights, num_heads, keep) - weights["dense"]["bias"]


def kept_value_bias_left(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the weights of the values are silenced, but not their bias, so that silent heads still add it."""
    W = weights["value"]["weight"]
    kept = np.repeat(np.isin(np.arange(num_heads), keep), len(W) // num_heads)
    value = {"weight": W * kept[:, None], "bias": weights["value"]["bias"]}
    return right.bert_attention(x, {**weights, "value": value}, num_heads)[0]


def kept_queries_silenced(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: the queries are silenced, and a head without a question takes the mean of all values."""
    W = weights["query"]["weight"]
    kept = np.repeat(np.isin(np.arange(num_heads), keep), len(W) // num_heads)
    query = {"weight": W * kept[:, None], "bias": weights["query"]["bias"] * kept}
    return right.bert_attention(x, {**weights, "query": query}, num_heads)[0]


def kept_rescaled(x: Array, weights: Weights, num_heads: int, keep: Sequence[int]) -> Array:
    """Wrong: what is left is enlarged to make up for what is gone, as dropout does."""
    bias = weights["dense"]["bias"]
    kept = right.keep_heads(x, weights, num_heads, keep) - bias
    return kept * num_heads / len(keep) + bias


# --- importance --------------------------------------------------------------------------------------------


def changes(x: Array, weights: Weights, num_heads: int) -> Array:
    """What each head adds to the output, `(heads, batch, n, d_model)`."""
    bias = weights["dense"]["bias"]
    return np.stack([right.keep_heads(x, weights, num_heads, [head]) - bias for head in range(num_heads)])


def importance_squared(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the square of the norm."""
    return (changes(x, weights, num_heads) ** 2).sum(axis=-1).mean(axis=(1, 2))


def importance_absolute_sum(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the sum of the absolute values is another norm."""
    return np.abs(changes(x, weights, num_heads)).sum(axis=-1).mean(axis=(1, 2))


def importance_averaged_over_features(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the root of the *mean* square over the features, not of the sum."""
    squares = changes(x, weights, num_heads) ** 2  # (heads, batch, n, d_model)
    return np.sqrt(squares.mean(axis=-1)).mean(axis=(1, 2))


def importance_summed_over_tokens(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the sum over all tokens, which grows with the text."""
    return np.linalg.norm(changes(x, weights, num_heads), axis=-1).sum(axis=(1, 2))


def importance_norm_of_everything(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: one norm over all tokens and features, which grows with the text."""
    return np.sqrt((changes(x, weights, num_heads) ** 2).sum(axis=(1, 2, 3)))


def importance_mean_before_norm(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the mean change of the tokens, in which they cancel each other, and then its norm."""
    change = changes(x, weights, num_heads).mean(axis=(1, 2))  # (heads, d_model)
    return np.linalg.norm(change, axis=-1)


def importance_root_mean_square(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the root of the mean square over the tokens, in which large ones count for more."""
    squares = changes(x, weights, num_heads) ** 2  # (heads, batch, n, d_model)
    return np.sqrt(squares.sum(axis=-1).mean(axis=(1, 2)))


def importance_largest_token(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the token that changes most."""
    return np.linalg.norm(changes(x, weights, num_heads), axis=-1).max(axis=(1, 2))


def importance_for_each_sequence(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the mean over the tokens of the first sequence only."""
    norms = np.linalg.norm(changes(x[:1], weights, num_heads), axis=-1)
    return norms.mean(axis=(1, 2))


def importance_of_head_alone(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the length of the output when the head is alone, with the bias of `dense` in it."""
    heads = range(num_heads)
    outputs = [right.keep_heads(x, weights, num_heads, [head]) for head in heads]
    return np.array([np.linalg.norm(output, axis=-1).mean() for output in outputs])


def importance_of_the_rest(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the length of the output without the head, not how far it has moved."""
    rest = [[i for i in range(num_heads) if i != head] for head in range(num_heads)]
    outputs = [right.keep_heads(x, weights, num_heads, others) for others in rest]
    return np.array([np.linalg.norm(output, axis=-1).mean() for output in outputs])


def importance_by_lengths(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the difference of the lengths with and without the head, which is blind to a turn."""
    full, _ = right.bert_attention(x, weights, num_heads)  # (batch, n, d_model)
    without = full - changes(x, weights, num_heads)  # (heads, batch, n, d_model)
    shorter = np.linalg.norm(full, axis=-1) - np.linalg.norm(without, axis=-1)
    return np.abs(shorter).mean(axis=(1, 2))


def importance_before_dense(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the length of what the head finds, before `dense` has weighed it."""
    heads, _ = heads_side_by_side(x, weights, num_heads)  # (batch, n, d_model)
    heads = split_heads(heads, num_heads)  # (batch, heads, n, d_k)
    return np.linalg.norm(heads, axis=-1).mean(axis=(0, 2))


def importance_silenced_for_good(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: heads are silenced in the caller's weights, and no later head is measured with them."""
    full, _ = right.bert_attention(x, weights, num_heads)  # (batch, n, d_model)
    d_k = full.shape[-1] // num_heads
    importance = []
    for head in range(num_heads):
        weights["dense"]["weight"][:, head * d_k : (head + 1) * d_k] = 0.0
        change = full - right.bert_attention(x, weights, num_heads)[0]  # (batch, n, d_model)
        importance.append(np.linalg.norm(change, axis=-1).mean())
    return np.array(importance)


def importance_relative(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: shares that sum to 1."""
    norms = np.linalg.norm(changes(x, weights, num_heads), axis=-1)
    norms = norms.mean(axis=(1, 2))  # (heads,)
    return norms / norms.sum()


def importance_one_number(x: Array, weights: Weights, num_heads: int) -> Array:
    """Wrong: the mean over the heads as well."""
    norms = np.linalg.norm(changes(x, weights, num_heads), axis=-1)
    return norms.mean(keepdims=True)[0, 0]  # (1,)


BERT, OFFSET = "real_heads.bert_attention", "real_heads.offset_score"
KEEP, IMPORTANCE = "real_heads.keep_heads", "real_heads.head_importance"

PITFALLS = (
    Pitfall(
        slug="stored-weights-not-transposed",
        title="`x @ W` with weights stored as (out, in)",
        symptom="Right shapes, since the weights are square; wrong numbers everywhere.",
        reason="You multiply with the weights as they are, but a linear layer of PyTorch stores (out, in), "
        "and its row j makes feature j.",
        fix="Multiply with the transpose: `x @ W.T + b`.",
        passes=("shape", "finite", "rows sum to 1"),
        variants={BERT: bert_weights_not_transposed},
    ),
    Pitfall(
        slug="dense-not-transposed",
        title="The last weight not transposed",
        symptom="Right maps; the output has the right shape and wrong numbers.",
        reason="You transpose the weights of queries, keys and values, but `dense` is stored in the same way.",
        fix="Multiply with the transpose of `dense` too.",
        passes=("shape", "finite", "rows sum to 1", "maps"),
        variants={BERT: bert_dense_not_transposed},
    ),
    Pitfall(
        slug="biases-forgotten",
        title="No biases",
        symptom="Right where all biases are 0.",
        reason="You leave out the biases, but a trained model has learnt them and counts on them.",
        fix='Add `weights[name]["bias"]` after each of the four products.',
        passes=("shape", "finite", "rows sum to 1", "all biases 0"),
        variants={BERT: bert_biases_forgotten},
    ),
    Pitfall(
        slug="dense-bias-forgotten",
        title="The bias of `dense` is missing",
        symptom="Every output is off by the same vector.",
        reason="You leave out the last bias, but it belongs to the output, whichever heads contribute.",
        fix='Add `weights["dense"]["bias"]` once, after the product with the weight.',
        passes=("shape", "finite", "rows sum to 1", "maps", "all biases 0"),
        variants={BERT: bert_dense_bias_forgotten, KEEP: kept_without_dense_bias},
    ),
    Pitfall(
        slug="bias-before-weight",
        title="The bias added before the weight",
        symptom="Right where all biases are 0.",
        reason="You add the bias to what goes in, but it belongs to what comes out.",
        fix="Write `x @ W.T + b`.",
        passes=("shape", "finite", "rows sum to 1", "all biases 0"),
        variants={BERT: bert_bias_before_weight},
    ),
    Pitfall(
        slug="maps-averaged-over-heads",
        title="One map for all heads",
        symptom="A right output; the maps have lost the axis of the heads.",
        reason="You average the maps over the heads, as PyTorch's layer does unless it is told not to, and "
        "then no head can be looked at by itself.",
        fix="Return the weights of all heads.",
        passes=("finite", "rows sum to 1"),
        variants={BERT: bert_one_map_for_all_heads},
    ),
    Pitfall(
        slug="offset-sign-turned",
        title="The weight of the other neighbour",
        symptom="A head that looks back seems to look ahead; offset 0 is right.",
        reason="You read the weight of key i − offset, for example because you exchanged the rows, which are "
        "queries, with the columns, which are keys.",
        fix="Read entry (i, i + offset): with offset −1 it stands below the diagonal.",
        passes=("shape", "finite", "offset 0"),
        variants={OFFSET: offset_sign_turned},
    ),
    Pitfall(
        slug="offset-ignored",
        title="The diagonal, whatever the offset",
        symptom="The same result for all offsets.",
        reason="You read what each token gives to itself, but the offset says which neighbour is meant.",
        fix="Hand the offset on to `np.diagonal`.",
        passes=("shape", "finite", "offset 0"),
        variants={OFFSET: offset_ignored},
    ),
    Pitfall(
        slug="offset-divided-by-n",
        title="Divided by the number of all queries",
        symptom="A little too small, the more so the larger the offset.",
        reason="You divide by n, but some queries have no key at that offset and are not counted.",
        fix="Take the mean over the n − |offset| queries that have one.",
        passes=("shape", "finite", "offset 0", "direction"),
        variants={OFFSET: offset_divided_by_n},
    ),
    Pitfall(
        slug="offset-summed",
        title="The sum in place of the mean",
        symptom="Numbers above 1.",
        reason="You sum over the queries, so long sequences get larger scores.",
        fix="Take the mean.",
        passes=("shape", "finite", "direction"),
        variants={OFFSET: offset_summed},
    ),
    Pitfall(
        slug="offset-wraps-around",
        title="The ends joined to a ring",
        symptom="A little off: the first token is taken to stand behind the last.",
        reason="You count positions round the end, but the first token has no token before it.",
        fix="Leave out the queries that have no such key.",
        passes=("shape", "finite", "offset 0", "direction"),
        variants={OFFSET: offset_wraps_around},
    ),
    Pitfall(
        slug="offset-negative-index",
        title="Negative indices count from the end",
        symptom="Right for positive offsets; for negative ones the first tokens look at the last.",
        reason="You leave out keys beyond the end but not those before the start, and there NumPy counts "
        "from the end.",
        fix="Leave out queries with i + offset below 0 as well.",
        passes=("shape", "finite", "offset 0", "direction"),
        variants={OFFSET: offset_negative_index},
    ),
    Pitfall(
        slug="offset-averaged-over-heads",
        title="Heads averaged, tokens kept",
        symptom="One number for each token in place of each head.",
        reason="You average over the heads, but the scores should tell the heads apart.",
        fix="Take the mean over the queries, and keep the axis of the heads.",
        passes=("finite",),
        variants={OFFSET: offset_averaged_over_heads},
    ),
    Pitfall(
        slug="offset-first-axes",
        title="The diagonal of heads and queries",
        symptom="The wrong shape, and numbers that mean nothing.",
        reason="You take the diagonal of the first two axes, which is what `np.diagonal` does unless it is "
        "told otherwise, but queries and keys are the last two.",
        fix="Name the axes: `np.diagonal(…, axis1=1, axis2=2)`.",
        passes=(),
        variants={OFFSET: offset_first_axes},
    ),
    Pitfall(
        slug="offset-by-largest-weight",
        title="Counted where the largest weight is",
        symptom="0 or 1 for clear heads, where the mean weight says how clear they are.",
        reason="You count the queries that look there most, but asked for is how much weight they put there.",
        fix="Average the weights themselves.",
        passes=("shape", "finite", "direction"),
        variants={OFFSET: offset_by_largest_weight},
    ),
    Pitfall(
        slug="kept-heads-removed",
        title="The listed heads are silent",
        symptom="The output lacks the heads that should be there.",
        reason="You silence the listed heads, but the list says which ones stay.",
        fix="Turn the condition round.",
        passes=("shape", "finite"),
        variants={KEEP: kept_heads_removed},
    ),
    Pitfall(
        slug="kept-heads-counted-from-one",
        title="Kept heads counted from 1",
        symptom="The head before each listed one contributes.",
        reason="You take the first head to be number 1, but in code heads are counted from 0.",
        fix="Let head i own the columns from i · d_k on.",
        passes=("shape", "finite"),
        variants={KEEP: kept_heads_counted_from_one},
    ),
    Pitfall(
        slug="kept-first-listed-only",
        title="Only the first listed head contributes",
        symptom="Right for one head, too little for several.",
        reason="You use one head, but the list may hold several.",
        fix="Keep the columns of all listed heads.",
        passes=("shape", "finite", "one head kept"),
        variants={KEEP: kept_first_listed_only},
    ),
    Pitfall(
        slug="kept-interleaved",
        title="Every num_heads-th column kept",
        symptom="The right shape; a bit of every head contributes.",
        reason="You take head i to own the columns i, i + num_heads, …, but its columns stand side by side.",
        fix="Keep the columns i · d_k … (i + 1) · d_k − 1.",
        passes=("shape", "finite", "all heads kept"),
        variants={KEEP: kept_interleaved},
    ),
    Pitfall(
        slug="rows-of-dense-silenced",
        title="Rows of `dense` in place of columns",
        symptom="Some features of the output are nothing but bias.",
        reason="You silence rows of `dense`, but it is stored as (out, in), so that a head owns columns of it.",
        fix="Silence columns: `weight[:, columns]`.",
        passes=("shape", "finite", "all heads kept"),
        variants={KEEP: kept_rows_of_dense},
    ),
    Pitfall(
        slug="dense-bias-with-each-head",
        title="The bias of `dense` once for each head",
        symptom="Right for one head; with several, off by the bias, as often as there are further heads.",
        reason="You add up the outputs of single heads, and each brings the bias of `dense` along.",
        fix="Add up what comes before the bias, and add the bias once.",
        passes=("shape", "finite", "one head kept", "all biases 0"),
        variants={KEEP: kept_dense_bias_with_each_head},
    ),
    Pitfall(
        slug="value-bias-left",
        title="Silent heads still add the bias of their values",
        symptom="Right where the biases are 0; else the silent heads shift the output.",
        reason="You set the weights of the values to zero but not their bias, and a mean of equal biases is "
        "that bias.",
        fix="Silence the head after the attention, or its columns of `dense`.",
        passes=("shape", "finite", "all heads kept"),
        variants={KEEP: kept_value_bias_left},
    ),
    Pitfall(
        slug="queries-silenced",
        title="Queries silenced in place of heads",
        symptom="Silent heads still add the mean of all values.",
        reason="You set the queries to zero, so that all scores are equal, and a head with equal weights "
        "still passes on the mean of its values.",
        fix="Silence what the head gives, not what it asks.",
        passes=("shape", "finite", "all heads kept"),
        variants={KEEP: kept_queries_silenced},
    ),
    Pitfall(
        slug="kept-heads-rescaled",
        title="What is left made larger",
        symptom="Too large by the ratio of all heads to the kept ones.",
        reason="You enlarge what is left, as dropout does in training, but a removed head is simply not there.",
        fix="Leave out the factor.",
        passes=("shape", "finite", "all heads kept"),
        variants={KEEP: kept_rescaled},
    ),
    Pitfall(
        slug="importance-squared",
        title="The square of the change",
        symptom="Large heads seem larger than they are, and small ones smaller.",
        reason="You take the square of the norm, but asked for is the norm.",
        fix="Take the root before you average.",
        passes=("shape", "finite"),
        variants={IMPORTANCE: importance_squared},
    ),
    Pitfall(
        slug="importance-absolute-sum",
        title="Absolute values summed",
        symptom="Larger numbers in a similar order.",
        reason="You sum absolute values over the features, but the Euclidean norm is the root of the sum of "
        "squares.",
        fix="Use `np.linalg.norm(change, axis=-1)`.",
        passes=("shape", "finite"),
        variants={IMPORTANCE: importance_absolute_sum},
    ),
    Pitfall(
        slug="importance-averaged-over-features",
        title="Averaged over the features",
        symptom="All numbers too small by the same factor, √d_model.",
        reason="You average the squares over the features, but the Euclidean norm sums them.",
        fix="Sum over the features and average over the tokens.",
        passes=("shape", "finite", "order of heads"),
        variants={IMPORTANCE: importance_averaged_over_features},
    ),
    Pitfall(
        slug="importance-summed-over-tokens",
        title="Summed over the tokens",
        symptom="All numbers too large by the number of tokens.",
        reason="You sum over the tokens, so that longer texts make every head look more important.",
        fix="Take the mean over all tokens of all sequences.",
        passes=("shape", "finite", "one token", "order of heads"),
        variants={IMPORTANCE: importance_summed_over_tokens},
    ),
    Pitfall(
        slug="importance-norm-of-everything",
        title="One norm over tokens and features",
        symptom="Too large, and growing with the length of the text.",
        reason="You take one norm over all numbers, but each token has a change of its own.",
        fix="Take the norm over the last axis only, then the mean.",
        passes=("shape", "finite", "one token"),
        variants={IMPORTANCE: importance_norm_of_everything},
    ),
    Pitfall(
        slug="importance-mean-before-norm",
        title="The mean taken before the norm",
        symptom="Too small: changes in different directions cancel.",
        reason="You average the changes of the tokens and then take the norm, but opposite changes are "
        "changes too.",
        fix="Take the norm for each token first, then the mean.",
        passes=("shape", "finite", "one token"),
        variants={IMPORTANCE: importance_mean_before_norm},
    ),
    Pitfall(
        slug="importance-root-mean-square",
        title="Root of the mean square over the tokens",
        symptom="A little too large; right if all tokens change equally.",
        reason="You average squares over the tokens, so that tokens with large changes count for more.",
        fix="Average the norms themselves.",
        passes=("shape", "finite", "one token"),
        variants={IMPORTANCE: importance_root_mean_square},
    ),
    Pitfall(
        slug="importance-largest-token",
        title="The token that changes most",
        symptom="Too large; right for a single token.",
        reason="You take the largest change, but asked for is the mean over all tokens.",
        fix="Replace the maximum by the mean.",
        passes=("shape", "finite", "one token"),
        variants={IMPORTANCE: importance_largest_token},
    ),
    Pitfall(
        slug="importance-of-first-sequence",
        title="Only the first sequence counted",
        symptom="Right for one sequence.",
        reason="You look at the first sequence only, but the mean is over the tokens of all of them.",
        fix="Take the mean over the axes of sequences and of tokens.",
        passes=("shape", "finite", "one token", "one sequence"),
        variants={IMPORTANCE: importance_for_each_sequence},
    ),
    Pitfall(
        slug="importance-of-head-alone",
        title="The output of the head alone",
        symptom="Right where the bias of `dense` is 0; else it is in every number.",
        reason="You measure the output when only this head is there, and that includes the bias of `dense`, "
        "which no head adds.",
        fix="Compare the full output with the output without the head.",
        passes=("shape", "finite", "all biases 0"),
        variants={IMPORTANCE: importance_of_head_alone},
    ),
    Pitfall(
        slug="importance-of-the-rest",
        title="The output without the head",
        symptom="Important heads get small numbers.",
        reason="You measure what is left, but asked for is how far the output has moved.",
        fix="Subtract the output without the head from the full one.",
        passes=("shape", "finite"),
        variants={IMPORTANCE: importance_of_the_rest},
    ),
    Pitfall(
        slug="importance-by-lengths",
        title="The difference of two lengths",
        symptom="Too small: an output that turns without getting longer seems unchanged.",
        reason="You compare the length of the output with and without the head, but the change is the length "
        "of their difference.",
        fix="Subtract the outputs first, then take the norm.",
        passes=("shape", "finite"),
        variants={IMPORTANCE: importance_by_lengths},
    ),
    Pitfall(
        slug="importance-before-dense",
        title="Measured before `dense`",
        symptom="The right shape; heads whose output is hardly used look as important as others.",
        reason="You measure what a head finds, but how much of it reaches the output is up to its columns of "
        "`dense`.",
        fix="Measure the change of the output.",
        passes=("shape", "finite"),
        variants={IMPORTANCE: importance_before_dense},
    ),
    Pitfall(
        slug="heads-silenced-for-good",
        title="Heads silenced in the caller's weights",
        symptom="The first head is right; the numbers grow from head to head, and a second call gives zeros.",
        reason="You set a head's weights to 0 in the arrays that you were given, perhaps through a copy of the "
        "dict, which holds the same arrays, so each head that was silenced stays so.",
        fix="Make a new array for what you silence: `W * columns`, or `W.copy()` first.",
        passes=("shape", "finite"),
        variants={IMPORTANCE: importance_silenced_for_good},
    ),
    Pitfall(
        slug="importance-relative",
        title="Shares of the whole",
        symptom="Numbers that sum to 1.",
        reason="You divide by the sum over the heads, but asked for are lengths.",
        fix="Leave out the division.",
        passes=("shape", "finite", "order of heads"),
        variants={IMPORTANCE: importance_relative},
    ),
    Pitfall(
        slug="importance-averaged-over-heads",
        title="One number for the whole layer",
        symptom="A single number.",
        reason="You average over the heads as well, but each head should get a number of its own.",
        fix="Average over sequences and tokens only.",
        passes=("finite",),
        variants={IMPORTANCE: importance_one_number},
    ),
)
