"""Mistakes in the projections: from tokens to queries, keys and values, and from heads to the output.

Not here, since no input tells it from `projection-transposed`: giving each head its own *columns* of W_O,
transposed, in place of its rows. And projecting with rows of W_Q, W_K and W_V in place of columns is
`weights-applied-transposed`.
"""

import numpy as np

from mha_lib import multi_head as right
from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.pitfalls.derived import causal_around, for_one_head
from mha_lib.pitfalls.pitfall import Pitfall

Array = np.ndarray

# --- self-attention ----------------------------------------------------------------------------------------


def multi_head_attention_weights_transposed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_Q, W_K and W_V are transposed, as if they were stored as (d_out, d_in)."""
    Q, K, V = (split_heads(X @ W.T, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_output_transposed(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_O is transposed."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O.T  # (batch, n, d_model)


def multi_head_attention_value_used_as_key(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_V makes the keys as well; W_K is not used."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_V, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_queries_and_keys_swapped(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_K makes the queries and W_Q the keys."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_K, W_Q, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_keys_and_values_exchanged(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_V makes the keys and W_K the values."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_V, W_K))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_shared_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: W_Q makes queries, keys and values."""
    Q = K = V = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_no_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the tokens themselves are queries, keys and values."""
    Q = K = V = split_heads(X, num_heads)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_nonlinear_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: negative entries of queries, keys and values are cut off."""
    projected = (np.maximum(X @ W, 0) for W in (W_Q, W_K, W_V))  # (batch, n, d_model)
    Q, K, V = (split_heads(features, num_heads) for features in projected)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_no_output_projection(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the heads are returned side by side, without W_O."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads)  # (batch, n, d_model)


def multi_head_attention_input_sliced(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: a head sees only its own slice of the features of `X`."""
    d_k = X.shape[-1] // num_heads
    heads = []
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (X[..., own] @ W[own, own] for W in (W_Q, W_K, W_V))  # (batch, n, d_k)
        head, _ = attention(Q, K, V, for_one_head(mask))  # (batch, n, d_k)
        heads.append(head)
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)


def multi_head_attention_same_columns(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: every head takes the first d_k columns of the weights."""
    d_k = X.shape[-1] // num_heads
    Q, K, V = (X @ W[:, :d_k] for W in (W_Q, W_K, W_V))  # (batch, n, d_k)
    heads = []
    for _ in range(num_heads):
        head, _ = attention(Q, K, V, for_one_head(mask))  # (batch, n, d_k)
        heads.append(head)
    return np.concatenate(heads, axis=-1) @ W_O  # (batch, n, d_model)


def multi_head_attention_weights_reshaped(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: reshaping to (heads, d_model, d_k) cuts the weights into blocks of rows, not of columns."""
    d_model = X.shape[-1]
    parts = (num_heads, d_model, d_model // num_heads)
    Q, K, V = (X[:, None] @ W.reshape(parts) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_fused_qkv_misread(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: [W_Q W_K W_V] lies side by side, but is read as if each head had its own three in a row."""
    batch, n, d_model = X.shape
    QKV = X @ np.concatenate([W_Q, W_K, W_V], axis=1)  # (batch, n, 3 * d_model)
    QKV = QKV.reshape(batch, n, num_heads, 3, d_model // num_heads)
    Q, K, V = QKV.transpose(3, 0, 2, 1, 4)  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_residual_added(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> Array:
    """Wrong: the tokens are added to the output."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V, mask)  # (batch, heads, n, d_k)
    return X + combine_heads(heads) @ W_O  # (batch, n, d_model)


def multi_head_attention_weights_returned_too(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int, mask: Array | None = None
) -> tuple[Array, Array]:
    """Wrong: a pair is returned in place of the output alone."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, weights = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    return combine_heads(heads) @ W_O, weights  # (batch, n, d_model), (batch, heads, n, n)


# --- cross-attention ---------------------------------------------------------------------------------------


def cross_attention_weights_transposed(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_Q, W_K and W_V are transposed, as if they were stored as (d_out, d_in)."""
    Q = split_heads(X @ W_Q.T, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W.T, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_value_used_as_key(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_V makes the keys as well; W_K is not used."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K = V = split_heads(memory @ W_V, num_heads)  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_queries_and_keys_swapped(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_K makes the queries and W_Q the keys."""
    Q = split_heads(X @ W_K, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_Q, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_keys_and_values_exchanged(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: W_V makes the keys and W_K the values."""
    return right.cross_attention(X, memory, W_Q, W_V, W_K, W_O, num_heads)


def cross_attention_residual_added(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the tokens that ask are added to the output."""
    return X + right.cross_attention(X, memory, W_Q, W_K, W_V, W_O, num_heads)


def cross_attention_no_output_projection(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the heads are returned side by side, without W_O."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads)  # (batch, n, d_model)


def cross_attention_memory_ignored(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: self-attention; `memory` is not used."""
    Q, K, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_roles_swapped(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the memory asks, and the tokens of `X` are attended to."""
    Q = split_heads(memory @ W_Q, num_heads)  # (batch, heads, m, d_k)
    K, V = (split_heads(X @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, n, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, m, d_k)
    return combine_heads(heads) @ W_O  # (batch, m, d_model)


def cross_attention_all_from_memory(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the memory attends to itself; `X` is not used."""
    Q, K, V = (split_heads(memory @ W, num_heads) for W in (W_Q, W_K, W_V))  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, m, d_k)
    return combine_heads(heads) @ W_O  # (batch, m, d_model)


def cross_attention_values_from_input(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the values come from `X`; if n ≠ m they do not even fit the weights."""
    Q, V = (split_heads(X @ W, num_heads) for W in (W_Q, W_V))  # (batch, heads, n, d_k)
    K = split_heads(memory @ W_K, num_heads)  # (batch, heads, m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_memory_appended(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: the tokens of `X` are attended to as well."""
    seen = np.concatenate([X, memory], axis=1)  # (batch, n + m, d_model)
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(seen @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, n + m, d_k)
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_first_memory_for_all(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: every sequence looks at the memory of the first one."""
    return right.cross_attention(
        X, np.repeat(memory[:1], len(X), axis=0), W_Q, W_K, W_V, W_O, num_heads
    )  # (batch, n, d_model)


def cross_attention_memory_length_assumed(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> Array:
    """Wrong: keys and values are reshaped as if the memory were as long as `X`."""
    batch, n, d_model = X.shape
    d_k = d_model // num_heads
    Q, K, V = (
        (features @ W).reshape(batch, n, num_heads, d_k).transpose(0, 2, 1, 3)  # (batch, heads, n, d_k)
        for features, W in [(X, W_Q), (memory, W_K), (memory, W_V)]
    )
    heads, _ = attention(Q, K, V)  # (batch, heads, n, d_k)
    return combine_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention_weights_returned_too(
    X: Array, memory: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int
) -> tuple[Array, Array]:
    """Wrong: a pair is returned in place of the output alone."""
    Q = split_heads(X @ W_Q, num_heads)  # (batch, heads, n, d_k)
    K, V = (split_heads(memory @ W, num_heads) for W in (W_K, W_V))  # (batch, heads, m, d_k)
    heads, weights = attention(Q, K, V)  # (batch, heads, n, d_k), (batch, heads, n, m)
    return combine_heads(heads) @ W_O, weights  # (batch, n, d_model), (batch, heads, n, m)


PITFALLS = (
    Pitfall(
        slug="weights-applied-transposed",
        title="`X @ W.T` in place of `X @ W`",
        symptom="Right shapes, since the weights are square; wrong numbers everywhere.",
        reason="You transpose the weights, as for a linear layer of PyTorch, which stores (d_out, d_in), but here "
        "they are stored as (d_in, d_out).",
        fix="Multiply with the weights as they are: `X @ W_Q`.",
        passes=("shape", "finite"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_weights_transposed,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_weights_transposed),
            "multi_head.cross_attention": cross_attention_weights_transposed,
        },
    ),
    Pitfall(
        slug="projection-transposed",
        title="W_O transposed",
        symptom="Right shapes, since W_O is square; wrong numbers everywhere.",
        reason="You multiply with the transpose of W_O, or give each head its columns where it owns rows, so the "
        "features of the heads go to the wrong places.",
        fix="Multiply the heads, side by side, with W_O as it is.",
        passes=("shape", "finite"),
        variants={"multi_head.multi_head_attention": multi_head_attention_output_transposed},
    ),
    Pitfall(
        slug="value-used-as-key",
        title="The values used as keys",
        symptom="The output does not change with W_K.",
        reason="You compare the queries with the values, but what a token offers is not what it can be found by; "
        "that is why keys have weights of their own.",
        fix="Make the keys with W_K.",
        passes=("shape", "finite"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_value_used_as_key,
            "multi_head.cross_attention": cross_attention_value_used_as_key,
        },
    ),
    Pitfall(
        slug="queries-and-keys-swapped",
        title="W_Q and W_K exchanged",
        symptom="The scores of query i and key j stand where those of query j and key i belong.",
        reason="You make the queries with W_K and the keys with W_Q, so that each token is asked what it "
        "should ask.",
        fix="Make the queries with W_Q and the keys with W_K.",
        passes=("shape", "finite"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_queries_and_keys_swapped,
            "multi_head.cross_attention": cross_attention_queries_and_keys_swapped,
        },
    ),
    Pitfall(
        slug="keys-and-values-exchanged",
        title="W_K and W_V exchanged",
        symptom="What decides where a token looks is what it should bring, and the other way round.",
        reason="You make the keys with W_V and the values with W_K, so that a token is found by what it should "
        "bring, and brings what it should be found by.",
        fix="Make the keys with W_K and the values with W_V.",
        passes=("shape", "finite"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_keys_and_values_exchanged,
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_attention_keys_and_values_exchanged
            ),
            "multi_head.cross_attention": cross_attention_keys_and_values_exchanged,
        },
    ),
    Pitfall(
        slug="shared-projection",
        title="One projection for queries, keys and values",
        symptom="The scores are symmetric, and most tokens attend to themselves.",
        reason="You use the same projection three times, so a token can only look for what it is itself.",
        fix="Make queries, keys and values with W_Q, W_K and W_V, each with its own.",
        passes=("shape", "finite"),
        variants={"multi_head.multi_head_attention": multi_head_attention_shared_projection},
    ),
    Pitfall(
        slug="no-projection",
        title="The tokens themselves as queries, keys and values",
        symptom="The output does not change with W_Q, W_K and W_V; each head sees one slice of the features.",
        reason="You split the tokens and not their projections, so a head reads a fixed slice of the features and "
        "has nothing to learn.",
        fix="Project first, with all features, and split the result: `split_heads(X @ W_Q, num_heads)`.",
        passes=("shape", "finite"),
        variants={"multi_head.multi_head_attention": multi_head_attention_no_projection},
    ),
    Pitfall(
        slug="nonlinear-projection",
        title="An activation in the projections",
        symptom="No query, key or value is negative, so no score is.",
        reason="You put an activation (here a ReLU) behind the projections, which are linear in the formula; "
        "without negative entries no key can be turned down.",
        fix="Leave the activation out: `X @ W_Q`.",
        passes=("shape", "finite"),
        variants={"multi_head.multi_head_attention": multi_head_attention_nonlinear_projection},
    ),
    Pitfall(
        slug="no-output-projection",
        title="W_O is missing",
        symptom="The output does not change with W_O; what head i found stands in columns of its own.",
        reason="You return the heads side by side, but it is W_O that lets the output features draw on all heads.",
        fix="Multiply the heads, side by side, with W_O.",
        passes=("shape", "finite"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_no_output_projection,
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_attention_no_output_projection
            ),
            "multi_head.cross_attention": cross_attention_no_output_projection,
        },
    ),
    Pitfall(
        slug="input-sliced-per-head",
        title="Each head sees a slice of the input",
        symptom="Right with one head; with several, most of each weight matrix has no effect.",
        reason="You cut the features of X into one slice for each head, but every head reads all features; "
        "only what "
        "it makes of them is d_k wide.",
        fix="Project all of X, with the head's own columns of the weights, or project once and split the result.",
        passes=("shape", "finite", "one head"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_input_sliced,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_input_sliced),
        },
    ),
    Pitfall(
        slug="same-columns-for-every-head",
        title="Every head takes the same columns",
        symptom="Right with one head; with several, all heads find the same.",
        reason="You take the first d_k columns for every head, so you run one head several times.",
        fix="Head i owns the columns from i*d_k to (i+1)*d_k.",
        passes=("shape", "finite", "one head"),
        variants={"multi_head.multi_head_attention": multi_head_attention_same_columns},
    ),
    Pitfall(
        slug="weights-reshaped-without-transpose",
        title="Weights reshaped into heads",
        symptom="Right with one head; with several, each head mixes up the entries of the weights.",
        reason="You reshape (d_model, d_model) to (heads, d_model, d_k), which goes through the entries row by row "
        "and tears the columns apart.",
        fix="Reshape to (d_model, heads, d_k), which cuts the columns into blocks, and then move the axis of the "
        "heads to the front.",
        passes=("shape", "finite", "one head"),
        variants={"multi_head.multi_head_attention": multi_head_attention_weights_reshaped},
    ),
    Pitfall(
        slug="fused-qkv-misread",
        title="The fused projection read in the wrong order",
        symptom="Right with one head; with several, queries, keys and values of different heads are mixed.",
        reason="You lay all queries, all keys and all values side by side and then read them as if each "
        "head's three "
        "lay together.",
        fix="Cut the 3 * d_model columns into three parts first, and each part into heads: reshape to (batch, "
        "n, 3, "
        "heads, d_k).",
        passes=("shape", "finite", "one head"),
        variants={"multi_head.multi_head_attention": multi_head_attention_fused_qkv_misread},
    ),
    Pitfall(
        slug="residual-added",
        title="The tokens added to the output",
        symptom="The output is off by exactly X.",
        reason="You add the residual connection, which belongs to the block around the attention, not to the "
        "attention.",
        fix="Return the projected heads alone.",
        passes=("shape", "finite"),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_residual_added,
            "multi_head.causal_multi_head_attention": causal_around(multi_head_attention_residual_added),
            "multi_head.cross_attention": cross_attention_residual_added,
        },
    ),
    Pitfall(
        slug="weights-returned-too",
        title="The weights returned as well",
        symptom="A tuple where an array is expected.",
        reason="You return a pair, but the contract asks for the output alone.",
        fix="Return the output only.",
        passes=(),
        variants={
            "multi_head.multi_head_attention": multi_head_attention_weights_returned_too,
            "multi_head.causal_multi_head_attention": causal_around(
                multi_head_attention_weights_returned_too
            ),
            "multi_head.cross_attention": cross_attention_weights_returned_too,
        },
    ),
    Pitfall(
        slug="memory-ignored",
        title="Self-attention in place of cross-attention",
        symptom="The output does not change with the memory.",
        reason="You make keys and values from X, so the tokens attend to one another and never to the memory.",
        fix="Make keys and values from the memory: `memory @ W_K` and `memory @ W_V`.",
        passes=("shape", "finite"),
        variants={"multi_head.cross_attention": cross_attention_memory_ignored},
    ),
    Pitfall(
        slug="cross-roles-swapped",
        title="The memory asks",
        symptom="One output for each token of the memory, m of them in place of n.",
        reason="You make queries from the memory and keys and values from X, but it is X that asks and that "
        "gets an "
        "output for each token.",
        fix="Queries come from X, keys and values from the memory.",
        passes=("shape at n = m", "finite"),
        variants={"multi_head.cross_attention": cross_attention_roles_swapped},
    ),
    Pitfall(
        slug="all-from-memory",
        title="The memory attends to itself",
        symptom="The output does not change with X and has one row for each token of the memory.",
        reason="You make the queries from the memory as well, so nothing of X is used.",
        fix="Make the queries from X: `X @ W_Q`.",
        passes=("shape at n = m", "finite"),
        variants={"multi_head.cross_attention": cross_attention_all_from_memory},
    ),
    Pitfall(
        slug="values-from-input",
        title="Keys from the memory, values from X",
        symptom="An error when n ≠ m; when n = m, the tokens read one another at places found in the memory.",
        reason="You look at the keys of the memory and then read the values of X, but a key and its value "
        "belong to "
        "the same token.",
        fix="Make both keys and values from the memory.",
        passes=("shape at n = m",),
        variants={"multi_head.cross_attention": cross_attention_values_from_input},
    ),
    Pitfall(
        slug="memory-appended-to-input",
        title="Attention to X and the memory together",
        symptom="The tokens of X take weight away from the memory.",
        reason="You attend to X and the memory laid end to end, but in cross-attention only the memory is "
        "looked at.",
        fix="Make keys and values from the memory alone.",
        passes=("shape", "finite"),
        variants={"multi_head.cross_attention": cross_attention_memory_appended},
    ),
    Pitfall(
        slug="first-memory-for-all-sequences",
        title="The first sequence's memory for all",
        symptom="The first sequence is right; the others look at its memory.",
        reason="You take entry 0 of the memory, but each sequence of the batch has a memory of its own.",
        fix="Keep the axis of the batch: `memory @ W_K` projects all sequences at once.",
        passes=("shape", "shape at n = m", "finite"),
        variants={"multi_head.cross_attention": cross_attention_first_memory_for_all},
    ),
    Pitfall(
        slug="memory-length-assumed",
        title="The memory taken to be as long as X",
        symptom="Right when n = m; otherwise an error about reshaping.",
        reason="You reshape keys and values with the length of X, but the memory has a length of its own.",
        fix="Read the number of keys from the memory: `memory.shape[1]`.",
        passes=("shape at n = m", "n = m"),
        variants={"multi_head.cross_attention": cross_attention_memory_length_assumed},
    ),
)
