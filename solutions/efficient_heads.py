# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: efficient_heads, version: "1.3"}
# ---

# %% role="author"
from checks import check_close, check_number, check_unchanged
from types import SimpleNamespace

from mha_grader.testing import (
    CallError,
    decided_layer,
    expect,
    expect_close,
    expect_equal,
    expect_number,
    expect_unchanged,
    heads_alone,
    keep,
    number_of,
    part,
    random_layer,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # Heads that are shared, cached and pruned
#
# A model that writes text generates one token at a time, and each new token attends to all earlier ones. The
# arithmetic of the heads is then cheap; reading their keys and values from memory takes the time. You build the
# three usual remedies: query heads *share* keys and values, a *cache* keeps keys and values from token to
# token, and heads that do little are *pruned*.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `grouped_query_attention` | {points grouped_query_attention} | 3 | 5 | 25 |
# | 2 | `kv_cache_bytes` | {points kv_cache_bytes} | 1 | 4 | 10 |
# | 3 | `CachedAttention` | {points CachedAttention} | 4 | 5 | 40 |
# | 4 | `pruned_attention` | {points pruned_attention} | 2 | 4 | 15 |
# | 5 | `prune_heads` | {points prune_heads} | 3 | 4 | 25 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the names and the parameters, and run the check below. It prints `ok`, or
# one sentence that says what is wrong. No item needs your code from another one. You may add cells. Keep the other
# files of this folder beside the notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right, a loop as well as one line. Use NumPy and nothing else.
#
# `batch` counts sequences, `n` tokens, `t` the tokens of one chunk, `m` the tokens so far, `num_heads` query heads,
# and `num_kv_heads` key heads and as many value heads. `d_model` is the width of the layer, and `d_k` that of a
# head. Weights are used as `X @ W`. Head i, counted from 0, owns the columns `i*d_k … (i+1)*d_k - 1` of its
# projection and the same *rows* of `W_O`. No function changes its arguments in place.

# %% role="given" id="imports"
from collections.abc import Sequence

import numpy as np

# %% role="show" id="imports_for_checks"
import matplotlib.pyplot as plt
from checks import (
    check_CachedAttention,
    check_grouped_query_attention,
    check_kv_cache_bytes,
    check_prune_heads,
    check_pruned_attention,
)

# %% [markdown] id="given_text"
# **Given:** the code that you built before. It is in `given.py` beside this notebook. You may use all of it, or
# write your own.

# %% role="given" id="given_pieces"
from mha_lib.attention import softmax, attention
from mha_lib.masks import causal_mask
from mha_lib.heads import head_dim, split_heads, combine_heads

# %% [markdown] id="grouped_query_attention_text"
# ## 1. `grouped_query_attention`: several query heads share keys and values
#
# **Points** {points grouped_query_attention} · **Book** *Efficient heads*, section *Sharing keys and values*
#
# In multi-head attention each query head has its own key head and value head. In *grouped-query* attention there
# are fewer of these, and neighbouring query heads share one. If all share a single one, it is *multi-query*
# attention. With 6 query heads and 3 key heads, a group has 6 / 3 = 2 query heads:
#
# | query head | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | uses key head and value head | 0 | 0 | 1 | 1 | 2 | 2 |
#
# <details><summary>Hint: where the heads are</summary>
#
# `split_heads` works at any width: give it `num_kv_heads` for keys and values. Then you have queries
# `(batch, num_heads, n, d_k)` and keys `(batch, num_kv_heads, n, d_k)`.
# </details>
#
# <details><summary>Hint: from few heads to many</summary>
#
# Compare `np.repeat([0, 1, 2], 2)` with `np.tile([0, 1, 2], 2)`. Which of them gives the row of the table above?
# Both also work along one axis of an array.
# </details>

# %% role="solution" item="grouped_query_attention"
from mha_lib.grouped_query import grouped_query_attention

# %% role="test" item="grouped_query_attention"
X = np.array([[[4.0, 40.0, np.log(3), 1.0], [8.0, 80.0, 0.0, 1.0]]])  # (batch, n, d_model) = (1, 2, 4)
W_Q, W_K, W_V = np.zeros((4, 4)), np.zeros((4, 2)), np.zeros((4, 2))
W_Q[3, 1] = W_Q[3, 3] = 1.0
W_K[2, 0], W_K[2, 1] = 1.0, -1.0
W_V[0, 0] = W_V[1, 1] = 1.0
check_close(
    "four query heads, two key heads",
    grouped_query_attention(X, W_Q, W_K, W_V, np.eye(4), 4, 2),
    [[[6.0, 5.0, 60.0, 70.0], [6.0, 5.0, 60.0, 70.0]]],
    mistakes={
        "key heads come in the order 0, 1, 0, 1; neighbours should share one": [[[6.0, 70.0, 6.0, 70.0]] * 2],
        "all query heads use key head 0": [[[6.0, 5.0, 6.0, 5.0]] * 2],
        "all query heads use the mean of the key heads": [[[33.0] * 4] * 2],
    },
)
check_close(
    "the heads go through W_O",
    grouped_query_attention(X, W_Q, W_K, W_V, np.fliplr(np.eye(4)), 4, 2),
    [[[70.0, 60.0, 5.0, 6.0], [70.0, 60.0, 5.0, 6.0]]],
    mistakes={"W_O has no effect": [[[6.0, 5.0, 60.0, 70.0]] * 2]},
)
X = np.array([[[np.log(3), 1.0, 4.0, 0.0], [0.0, 1.0, 8.0, 0.0]]])
W_Q, W_K, W_V = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
W_Q[1, 0], W_K[0, 0], W_V[2, 0] = 2.0, 1.0, 1.0
check_close(
    "one head with d_k = 4",
    grouped_query_attention(X, W_Q, W_K, W_V, np.eye(4), 1, 1),
    [[[5.0, 0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0]]],
    mistakes={"the scores were not divided by √d_k": [[[4.4, 0.0, 0.0, 0.0]] * 2]},
)
check_close(
    "two query heads and one key head with d_k = 2",
    grouped_query_attention(
        np.array([[[1.0, 2.0, 3.0, 4.0]]]), np.eye(4), np.eye(4, 2), np.eye(4, 2), np.eye(4), 2, 1
    ),
    [[[1.0, 2.0, 1.0, 2.0]]],
    mistakes={"single features were repeated, not whole heads": [[[1.0, 1.0, 2.0, 2.0]]]},
)
check_unchanged(
    "grouped_query_attention leaves its arguments alone",
    lambda *arrays: grouped_query_attention(*arrays, 2, 2),
    *(X, W_Q, W_K, W_V, np.eye(4)),
)
### BEGIN HIDDEN TESTS


def decided(rng, batch=1, num_kv_heads=6, n=7):
    layer = decided_layer(rng, batch, n, num_heads=6, d_k=3, num_kv_heads=num_kv_heads, apart=300.0)
    return *heads_alone(layer), num_kv_heads


def expect_output(arguments):
    expect_close(grouped_query_attention(*arguments), reference.grouped_query_attention(*arguments))


@part(
    points=2,
    example="grouped_query_attention(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.eye(2), np.eye(2), "
    "np.array([[1.0, 2.0], [10.0, 20.0]]), np.eye(2), 2, 2)",
)
def as_many_key_heads(rng):
    "With as many key heads as query heads, the layer is multi-head attention."
    expect_output(decided(rng))


@part(
    points=3,
    example="grouped_query_attention(np.array([[[0.0, 1.0, 2.0, 3.0], [2.0, 1.0, 1.0, 0.0]]]), np.eye(4), "
    "np.eye(4)[:, :2], np.eye(4)[:, :2], np.eye(4), 4, 2)",
)
def groups(rng):
    "Neighbouring query heads share a key head and a value head, group by group."
    expect_output(decided(rng, num_kv_heads=3))
    expect_output(decided(rng, num_kv_heads=2))


@part(
    points=1,
    example="grouped_query_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.eye(2), np.eye(2)[:, :1], "
    "np.eye(2)[:, :1], np.eye(2), 2, 1)",
)
def one_key_head(rng):
    "With a single key head and value head, all query heads use it."
    expect_output(decided(rng, num_kv_heads=1))


@part(
    points=1,
    example="grouped_query_attention(np.array([[[2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]), np.eye(4), "
    "np.eye(4), np.eye(4), np.eye(4), 1, 1)",
)
def scale(rng):
    "The scores are divided by the square root of the width d_k of a head."
    expect_output((*heads_alone(random_layer(rng, batch=1, n=5, num_heads=2, d_k=16)), 2))


@part(
    points=1,
    needs=("scale", "groups"),
    example="grouped_query_attention(np.eye(8)[None, :2], 2.0 * np.eye(8), 2.0 * np.eye(8)[:, :4], "
    "np.eye(8)[:, :4], np.eye(8), 4, 2)",
)
def scale_in_groups(rng):
    "The width d_k is d_model / num_heads, even with fewer key heads."
    for num_kv_heads in (2, 1):
        W_Q = rng.normal(size=(32, 32)) / np.sqrt(32)
        W_K, W_V = rng.normal(size=(2, 32, 8 * num_kv_heads)) / np.sqrt(32)
        expect_output((rng.normal(size=(2, 5, 32)), W_Q, W_K, W_V, np.eye(32), 4, num_kv_heads))


@part(
    points=1,
    example="grouped_query_attention(np.array([[[1.0, 2.0]]]), np.eye(2), np.eye(2), np.eye(2), "
    "np.array([[0.0, 1.0], [10.0, 0.0]]), 2, 2)",
)
def output_projection(rng):
    "The concatenated heads are multiplied by W_O."
    X, W_Q, W_K, W_V, _, *numbers = decided(rng)
    expect_output((X, W_Q, W_K, W_V, rng.normal(size=(18, 18)), *numbers))


@part(
    points=1,
    example="grouped_query_attention(np.array([[[1.0, 2.0]], [[3.0, 4.0]]]), np.eye(2), np.eye(2), np.eye(2), "
    "np.eye(2), 2, 2)",
)
def batch(rng):
    "Each sequence of a batch is treated by itself, even one of a single token."
    expect_output(decided(rng, batch=3))
    expect_output(decided(rng, batch=2, n=1))


@part(
    points=1,
    needs=("groups", "batch"),
    example="grouped_query_attention(np.arange(8.0).reshape(2, 1, 4), np.eye(4), np.eye(4)[:, :2], "
    "np.eye(4)[:, :2], np.eye(4), 4, 2)",
)
def groups_in_a_batch(rng):
    "Each sequence of a batch has its own keys and values, even where heads share them."
    expect_output(decided(rng, batch=2, num_kv_heads=3))
    expect_output(decided(rng, batch=3, num_kv_heads=2))


@part(points=1, needs="as_many_key_heads")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    grouped_query_attention(*decided(rng))
    expect_unchanged(grouped_query_attention, "grouped_query_attention")


### END HIDDEN TESTS

# %% [markdown] id="kv_cache_bytes_text"
# ## 2. `kv_cache_bytes`: the size of the cache
#
# **Points** {points kv_cache_bytes} · **Book** *Efficient heads*, section *The cache in bytes*
#
# A model that writes keeps the keys and the values of all tokens so far, in every layer: the *KV cache*. It reads
# all of it for every new token. Queries are used once and need not be kept.
#
# <details><summary>Hint</summary>
#
# The result is a product. How many arrays does a layer keep?
# </details>

# %% role="solution" item="kv_cache_bytes"
from mha_lib.kv_cache import kv_cache_bytes

# %% role="test" item="kv_cache_bytes"
check_number(
    "kv_cache_bytes(1, 3, 2, 1, 4)",
    kv_cache_bytes(1, 3, 2, 1, 4),
    96,
    mistakes={
        "one array or one layer is counted, or numbers in place of bytes": 48,
        "three arrays were counted, but queries are not kept": 144,
        "scores between tokens were counted": 72,
    },
)
check_number("four bytes a number", kv_cache_bytes(1, 3, 2, 1, 4, bytes_per_value=4), 192)
check_number("five sequences", kv_cache_bytes(5, 3, 2, 1, 4), 480)
check_number("three key heads", kv_cache_bytes(1, 3, 2, 3, 4), 288)
### BEGIN HIDDEN TESTS


NUMBER = "the number of bytes"


def bytes_of(sizes, *bytes_per_value):
    # One forgotten factor costs the part about the values, not those about the size of a number. So the count may
    # be off, but each size (but one, perhaps) must double it alone, and all together must multiply it as often.
    def count(doubled):
        factors = [2 * size if place in doubled else size for place, size in enumerate(sizes)]
        return number_of(kv_cache_bytes(*factors, *bytes_per_value), NUMBER)

    once = count([])
    others = [more for more in map(count, [[0], [1], [2], [3], [4]]) if more != 2 * once]
    expect(once > 0 and len(others) <= 1, f"{NUMBER} is not right")
    expect_as_many(count(range(5)), 16 * (others[0] if others else 2 * once))
    return once


def expect_as_many(number, other):
    expect(number == other, f"{NUMBER} is not right")


def some_sizes(rng):
    return [int(size) for size in rng.permutation([2, 3, 5, 7, 11])]


@part(points=2, example="kv_cache_bytes(2, 3, 5, 7, 11, 2)")
def values(rng):
    "Keys and values are counted in each layer, for each sequence, token and key head."
    for _ in range(3):
        sizes = (*some_sizes(rng), 2)
        expect_number(kv_cache_bytes(*sizes), reference.kv_cache_bytes(*sizes), NUMBER)


@part(points=1, example="kv_cache_bytes(1, 1, 1, 1, 1)")
def default_size(rng):
    "Without bytes_per_value, a number takes two bytes."
    sizes = some_sizes(rng)
    expect_as_many(bytes_of(sizes), bytes_of(sizes, 2))


@part(points=1, example="kv_cache_bytes(1, 1, 1, 1, 1, 4)")
def other_sizes(rng):
    "With bytes_per_value, a number takes that many bytes."
    sizes = some_sizes(rng)
    expect_as_many(bytes_of(sizes, 4), 4 * bytes_of(sizes, 1))
    expect_as_many(bytes_of(sizes, 8), 8 * bytes_of(sizes, 1))


@part(points=1, needs="values", example="kv_cache_bytes(3**9, 3**9, 3**5, 3**5, 3**7, 2)")
def whole_number(rng):
    "The result is an int, and it is exact even when it is large."
    sizes = [3 ** int(power) for power in rng.permutation([9, 9, 5, 5, 7])]
    expect_equal(kv_cache_bytes(*sizes, 2), reference.kv_cache_bytes(*sizes), NUMBER)


### END HIDDEN TESTS

# %% [markdown] id="see_kv_cache_bytes"
# **Look at it.** Llama 2 70B has 80 layers and 64 query heads of width 128, which share 8 key heads. The cell
# shows the cache of one sequence for these, without sharing, and with one key head. The weights of the model take
# about 140 GB in 16 bits.
#
# What does sharing cost? Ainslie and others (2023, table 1) measured a T5 model with 64 heads. With 64 key heads,
# its average score was 47.2 and its inference time 1.51 (in the paper's unit). With 8 key heads, the score was 47.1
# and the time 0.28. With one key head, the score was 46.6 and the time 0.24.

# %% role="show" id="print_kv_cache_bytes"
print("GB of cache:     64 key heads    8 key heads    1 key head")
for n in (1_000, 4_000, 32_000, 128_000):
    sizes = [kv_cache_bytes(1, n, 80, num_kv_heads, 128) / 1e9 for num_kv_heads in (64, 8, 1)]
    print(f"n = {n:7,d} " + " ".join(f"{size:14.2f}" for size in sizes))

# %% [markdown] id="CachedAttention_text"
# ## 3. `CachedAttention`: attention with a cache
#
# **Points** {points CachedAttention} · **Book** *Efficient heads*, section *The cache*
#
# Under a causal mask later tokens never change the keys and values of earlier ones. So they are computed once and
# kept. A new token needs only its own query, key and value; the cache holds all earlier keys and values. Tokens
# come in *chunks* of any length: perhaps first the whole question, then the answer, token by token.
#
# <details><summary>Hint: what to keep</summary>
#
# Keep the keys and values of all tokens so far, both as `(batch, heads, m, d_k)`. `np.concatenate` joins old and
# new along the axis of the tokens. What is there before the first chunk?
# </details>
#
# <details><summary>Hint: the mask</summary>
#
# There are t queries and m keys, and the queries belong to the *last* t of the m tokens. See what
# `causal_mask(2, 5)` gives.
# </details>

# %% role="solution" item="CachedAttention"
from mha_lib.kv_cache import CachedAttention

# %% role="test" item="CachedAttention"
zero, one = np.zeros((2, 2)), np.eye(2)
tokens = np.array(
    [[[2.0, 0.0], [4.0, 6.0], [6.0, 3.0], [0.0, 7.0], [8.0, 4.0]]]
)  # (batch, n, d_model) = (1, 5, 2)
means = np.array([[[2.0, 0.0], [3.0, 3.0], [4.0, 3.0], [3.0, 4.0], [4.0, 4.0]]])
layer = CachedAttention(zero, zero, one, one, num_heads=2)
check_close(
    "one chunk",
    layer.forward(tokens),
    means,
    mistakes={"tokens see later ones: the mask is missing": [[[4.0, 4.0]] * 5]},
)
layer.reset()
for i in range(5):
    check_close(
        f"token by token, token {i}",
        layer.forward(tokens[:, i : i + 1]),
        means[:, i : i + 1],
        mistakes={
            "nothing is remembered": tokens[:, i : i + 1],
            "the token sees only the first key": tokens[:, :1] if i else np.nan * tokens[:, :1],
            "only the last chunk is in the cache": tokens[:, max(i - 1, 0) : i + 1].mean(
                axis=1, keepdims=True
            ),
        },
    )
layer.reset()
check_close("first chunk of two", layer.forward(tokens[:, :2]), means[:, :2])
check_close(
    "second chunk of two",
    layer.forward(tokens[:, 2:]),
    means[:, 2:],
    mistakes={
        "the chunk's tokens are lined up with the first keys, not with the last": [[[2, 0], [3, 3], [4, 3]]],
        "tokens of the chunk see later ones: the mask is missing": [[[4.0, 4.0]] * 3],
        "nothing is remembered": [[[6.0, 3.0], [3.0, 5.0], [14 / 3, 14 / 3]]],
    },
)
pair = np.array([[[np.log(3), 1.0, 4.0, 0.0], [0.0, 1.0, 8.0, 0.0]]])
W_Q, W_K, W_V = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
W_Q[1, 0], W_K[0, 0], W_V[2, 0] = 2.0, 1.0, 1.0
check_close(
    "one head with d_k = 4 and a W_O that turns the features round",
    CachedAttention(W_Q, W_K, W_V, np.fliplr(np.eye(4)), num_heads=1).forward(pair),
    [[[0.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 5.0]]],
    mistakes={
        "the scores were not divided by √d_k": [[[0.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 4.4]]],
        "W_O has no effect": [[[4.0, 0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0]]],
    },
)
layer = CachedAttention(zero, zero, one, one, num_heads=2)
check_close(
    "two sequences", layer.forward(np.concatenate([tokens, -tokens])), np.concatenate([means, -means])
)
two = [CachedAttention(zero, zero, one, one, num_heads=1) for _ in range(2)]
two[0].forward(tokens)
check_close("another object", two[1].forward(tokens), means)
check_unchanged("forward leaves the chunk alone", CachedAttention(one, one, one, one, 1).forward, tokens)
### BEGIN HIDDEN TESTS

import contextlib


def decided(rng, batch=1, n=7):
    X, *weights = heads_alone(decided_layer(rng, batch, n, num_heads=3, d_k=3))
    return X, weights


def forget(*layers):
    # A cache that belongs to the class costs the part about two objects, not every part after the first.
    for layer in layers:
        with contextlib.suppress(CallError):
            layer.reset()


def expect_outputs(layer, X, weights, *sizes):
    # The chunks are of these sizes; the reference gets the whole sequence at once.
    ends = np.cumsum(sizes)
    try:
        chunks = [layer.forward(X[:, end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    finally:
        forget(layer)
    expected = reference.CachedAttention(*weights).forward(X)
    for number, (chunk, size, end) in enumerate(zip(chunks, sizes, ends, strict=True), start=1):
        expect_close(chunk, expected[:, end - size : end], what=f"the output for chunk {number}")


def expect_last(layer, X, weights):
    # The last token of a chunk attends to all of it: whether the mask is right is the matter of other parts.
    try:
        output = layer.forward(X)
    finally:
        forget(layer)
    expected = reference.CachedAttention(*weights).forward(X)
    shape = getattr(output, "shape", None)
    expect(
        shape == expected.shape, f"the output should have shape {expected.shape}, but it has shape {shape}"
    )
    expect_close(output[:, -1], expected[:, -1], what="the output for the last token")


@part(
    points=2,
    example="CachedAttention(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), np.eye(1), 1)"
    ".forward(np.array([[[2.0], [4.0], [9.0]]]))",
)
def one_chunk(rng):
    "The output for the first chunk is that of causal multi-head attention."
    X, weights = decided(rng)
    expect_outputs(CachedAttention(*weights), X, weights, 7)


@part(
    points=2,
    example="list(map(CachedAttention(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), np.eye(1), 1).forward, "
    "[np.array([[[2.0]]]), np.array([[[4.0]]]), np.array([[[9.0]]])]))[2]",
)
def token_by_token(rng):
    "One token at a time, the layer gives the outputs of causal attention on the whole sequence."
    X, weights = decided(rng)
    expect_outputs(CachedAttention(*weights), X, weights, 1, 1, 1, 1, 1, 1, 1)


@part(
    points=2,
    example="list(map(CachedAttention(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), np.eye(1), 1).forward, "
    "[np.array([[[2.0], [4.0]]]), np.array([[[9.0], [1.0]]])]))[1]",
)
def chunks(rng):
    "In chunks of any size, the layer gives the outputs of causal attention on the whole sequence."
    X, weights = decided(rng, n=11)
    expect_outputs(CachedAttention(*weights), X, weights, *rng.permutation([2, 3, 4]), 2)
    expect_outputs(CachedAttention(*weights), X, weights, 1, 5, *rng.permutation([1, 4]))
    X, weights = decided(rng, n=131)
    expect_outputs(CachedAttention(*weights), X, weights, 100, 1, 29, 1)


@part(
    points=1,
    example="CachedAttention(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), np.eye(1), 1)"
    ".forward(np.array([[[2.0], [4.0]], [[10.0], [30.0]]]))",
)
def batch(rng):
    "Each sequence of a batch is treated by itself."
    X, weights = decided(rng, batch=3, n=5)
    expect_last(CachedAttention(*weights), X, weights)


@part(
    points=1,
    needs=("token_by_token", "batch"),
    example="list(map(CachedAttention(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), np.eye(1), 1).forward, "
    "[np.array([[[2.0]], [[10.0]]]), np.array([[[4.0]], [[30.0]]])]))[1]",
)
def batch_with_a_past(rng):
    "Each sequence of a batch has its own past, on which the scale does not depend."
    X, weights = decided(rng, batch=3, n=4)
    expect_outputs(CachedAttention(*weights), X, weights, 1, 1, 1, 1)
    X, *weights = heads_alone(random_layer(rng, batch=3, n=5, num_heads=2, d_k=16))
    layer = CachedAttention(*weights)
    try:
        at_once = layer.forward(X)[:, -1:]  # the student's own, since the scale has a part of its own
        layer.reset()
        layer.forward(X[:, :4])
        last = layer.forward(X[:, 4:])
    finally:
        forget(layer)
    expect_close(last, at_once, what="the output for the last token")


@part(
    points=1,
    example="CachedAttention(np.eye(4), np.eye(4), np.eye(4), np.eye(4), 1)"
    ".forward(np.array([[[0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]]))",
)
def scale(rng):
    "The scores are divided by the square root of the width d_k of a head."
    X, *weights = heads_alone(random_layer(rng, batch=1, n=5, num_heads=2, d_k=16))
    expect_last(CachedAttention(*weights), X, weights)


@part(
    points=1,
    example="CachedAttention(np.eye(2), np.eye(2), np.eye(2), np.array([[0.0, 1.0], [10.0, 0.0]]), 2)"
    ".forward(np.array([[[1.0, 2.0]]]))",
)
def output_projection(rng):
    "The concatenated heads are multiplied by W_O."
    X, (W_Q, W_K, W_V, _, num_heads) = decided(rng)
    weights = (W_Q, W_K, W_V, rng.normal(size=(9, 9)), num_heads)
    expect_last(CachedAttention(*weights), X, weights)


@part(points=1, needs=("one_chunk", "token_by_token"))
def reset(rng):
    "After a reset the layer is as if it were new, and the next batch may have another size."
    X, weights = decided(rng, batch=1)
    layer = CachedAttention(*weights)
    layer.reset()  # it may come at any time
    layer.forward(X)
    layer.reset()
    X, _ = decided(rng, batch=1, n=5)
    expect_outputs(layer, X, weights, 5)  # it resets as well
    X, _ = decided(rng, batch=2, n=5)
    expect_last(layer, X, weights)


@part(points=1, needs="token_by_token")
def two_objects(rng):
    "Two objects that are used in turn do not see each other's tokens."
    X, weights = decided(rng)
    Y, other_weights = decided(rng)
    layer, other = CachedAttention(*weights), CachedAttention(*other_weights)
    outputs = []
    try:
        for i in range(3):
            outputs.append(layer.forward(X[:, i : i + 1]))
            other.forward(Y[:, i : i + 1])
    finally:
        forget(layer, other)
    expected = reference.CachedAttention(*weights).forward(X)
    for i, output in enumerate(outputs):
        expect_close(output, expected[:, i : i + 1], what=f"the output for token {i}")
    outputs = []
    for between in (0, 3):  # the student's own, since the mask of a chunk has parts of its own
        layer, other = CachedAttention(*weights), CachedAttention(*other_weights)
        try:
            layer.forward(X[:, :2])
            for i in range(between):
                other.forward(Y[:, i : i + 1])
            outputs.append(layer.forward(X[:, 2:5]))
        except CallError:  # and so has an error
            if not between:
                return
            raise
        finally:
            forget(layer, other)
    alone, in_turn = outputs
    expect_close(in_turn, alone, what="the output for a chunk of three tokens")


@part(points=1, needs="one_chunk")
def inputs_unchanged(rng):
    "The caller's arrays, weights and chunk, are unchanged, and so is an output when the next chunk comes."
    X, weights = decided(rng)
    layer = CachedAttention(*weights)
    expect_unchanged(layer, "Making an object")
    forward = layer.forward
    try:
        forward(X)
        expect_unchanged(forward, "forward")
    finally:
        forget(layer)
    try:
        kept = keep(forward, X)
        before = kept.copy()
        with contextlib.suppress(CallError):  # whether there is a next output is the matter of other parts
            forward(X)
        after = kept.copy()
    finally:
        forget(layer)
    expect_close(after, before, what="the output of a chunk, when the next one has come,")


### END HIDDEN TESTS

# %% [markdown] id="see_cache"
# **Look at it.** How many dot products of a query with a key does it take to write n tokens, one at a time? With
# a cache, token i is compared with i keys. Without one, everything earlier is computed again for every new token.

# %% role="show" id="plot_cache"
lengths = np.arange(1, 201)
with_cache = np.cumsum(lengths)  # token i asks i keys
without = np.cumsum(lengths * (lengths + 1) // 2)  # all tokens so far ask again
figure, axes = plt.subplots(figsize=(5.5, 3.2))
axes.loglog(
    lengths, without, "s--", markevery=[0, 1, 3, 9, 29, 99, 199], label="everything again for each token"
)
axes.loglog(lengths, with_cache, "o-", markevery=[0, 1, 3, 9, 29, 99, 199], label="with a cache")
axes.set(xlabel="tokens written", ylabel="dot products for each head", title="What a cache saves")
axes.legend()
figure.tight_layout()
plt.show()
print(f"for 200 tokens, {without[-1] / with_cache[-1]:.0f} times as many")

# %% [markdown] id="pruned_attention_text"
# ## 4. `pruned_attention`: heads that are narrower than the model
#
# **Points** {points pruned_attention} · **Book** *Efficient heads*, section *Taking heads out*
#
# When heads are removed from a layer, the others keep their width. So the remaining heads together are narrower
# than the model: `num_heads * d_k` is no longer `d_model`. (In some models it never was: the 16 heads of Gemma
# 7B, each of width 256, are together wider than its 3,072 features.)
#
# <details><summary>Hint</summary>
#
# Write multi-head attention as usual, then look at every place where a width is computed. Which array has the
# right one?
# </details>

# %% role="solution" item="pruned_attention"
from mha_lib.pruning import pruned_attention

# %% role="test" item="pruned_attention"
X = np.array([[[1.0, 2.0, 9.0, 9.0], [3.0, 4.0, 9.0, 9.0]]])  # (batch, n, d_model) = (1, 2, 4)
W_V = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])  # (d_model, num_heads * d_k) = (4, 2)
W_O = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])  # (2, 4)
zero = np.zeros((4, 2))
check_close(
    "one head of width 2 in a layer of width 4",
    pruned_attention(X, zero, zero, W_V, W_O, 1),
    [[[0.0, 0.0, 2.0, 3.0], [0.0, 0.0, 2.0, 3.0]]],
)
W_Q, W_K = np.zeros((4, 2)), np.zeros((4, 2))
W_Q[2, 0], W_K[0, 0] = (
    np.sqrt(2.0) * np.log(3.0) / 18.0,
    1.0,
)  # scores √2·log(3)/2 and 3·√2·log(3)/2, before the scale
check_close(
    "the same head with other scores",
    pruned_attention(X, W_Q, W_K, W_V, W_O, 1),
    [[[0.0, 0.0, 2.5, 3.5], [0.0, 0.0, 2.5, 3.5]]],
    mistakes={
        "the scores were divided by the root of d_model / num_heads, not of d_k": [
            [[0.0, 0.0, 2.37, 3.37]] * 2
        ],
        "the scores were not divided by √d_k": [[[0.0, 0.0, 2.651, 3.651]] * 2],
    },
)
check_close(
    "three such heads, which together are wider than the model",
    pruned_attention(X, *(np.tile(W, 3) for W in (W_Q, W_K, W_V)), np.tile(W_O / 3.0, (3, 1)), 3),
    [[[0.0, 0.0, 2.5, 3.5], [0.0, 0.0, 2.5, 3.5]]],
    mistakes={
        "the scores were divided by the root of the width of all heads together": [
            [[0.0, 0.0, 2.3069, 3.3069]] * 2
        ],
    },
)
check_close(
    "three heads of width 1",
    pruned_attention(
        np.array([[[1.0, 2.0, 3.0, 4.0], [3.0, 6.0, 9.0, 12.0]]]),
        *(np.zeros((4, 3)), np.zeros((4, 3)), np.eye(4, 3), np.eye(3, 4), 3),
    ),
    [[[2.0, 4.0, 6.0, 0.0], [2.0, 4.0, 6.0, 0.0]]],
)
check_unchanged(
    "pruned_attention leaves its arguments alone",
    lambda *arrays: pruned_attention(*arrays, 1),
    *(X, W_Q, W_K, W_V, W_O),
)
### BEGIN HIDDEN TESTS


def decided(rng, batch=1, num_heads=4, n=7):
    # So far apart that only the part about the scale can see a wrong one.
    return heads_alone(decided_layer(rng, batch, n, num_heads=num_heads, d_k=3, d_model=12, apart=80.0))


def expect_output(arguments):
    expect_close(pruned_attention(*arguments), reference.pruned_attention(*arguments))


@part(
    points=2,
    example="pruned_attention(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.eye(2), np.eye(2), "
    "np.array([[1.0, 2.0], [10.0, 20.0]]), np.eye(2), 2)",
)
def full_width(rng):
    "If the heads together are as wide as the model, the layer is multi-head attention."
    expect_output(decided(rng))


@part(
    points=1,
    example="pruned_attention(np.array([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), np.zeros((3, 2)), "
    "np.zeros((3, 2)), np.eye(3, 2), np.eye(2, 3), 2)",
)
def narrower(rng):
    "Heads that together are narrower than the model keep their own width."
    expect_output(decided(rng, num_heads=2))
    expect_output(decided(rng, num_heads=1))


@part(
    points=1,
    example="pruned_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.zeros((2, 3)), np.zeros((2, 3)), "
    "np.ones((2, 3)), np.eye(3, 2), 3)",
)
def wider(rng):
    "Heads may together be wider than the model."
    X, W_Q, W_K, W_V, W_O, num_heads = decided(rng, num_heads=5)
    expect_output((X, W_Q, W_K, W_V, rng.normal(size=W_O.shape), num_heads))  # it reads all heads


@part(
    points=1,
    example="pruned_attention(np.array([[[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]), np.ones((3, 2)), np.ones((3, 2)), "
    "np.eye(3, 2), np.eye(2, 3), 1)",
)
def scale(rng):
    "The scores are divided by the square root of the heads' own width."
    X, weights = rng.normal(size=(1, 5, 60)), rng.normal(size=(3, 60, 24)) / np.sqrt(30)
    expect_output((X, *weights, np.eye(24, 60), 3))


@part(
    points=1,
    example="pruned_attention(np.array([[[1.0, 2.0]]]), np.eye(2), np.eye(2), np.eye(2), "
    "np.array([[0.0, 1.0], [10.0, 0.0]]), 2)",
)
def output_projection(rng):
    "The concatenated heads are multiplied by W_O."
    X, W_Q, W_K, W_V, _, num_heads = decided(rng)
    expect_output((X, W_Q, W_K, W_V, rng.normal(size=(12, 12)), num_heads))


@part(
    points=1,
    example="pruned_attention(np.array([[[1.0, 2.0]], [[3.0, 4.0]]]), np.eye(2), np.eye(2), np.eye(2), "
    "np.eye(2), 2)",
)
def batch(rng):
    "Each sequence of a batch is treated by itself, even one of a single token."
    expect_output(decided(rng, batch=2))
    expect_output(decided(rng, batch=3, n=1))


@part(
    points=1,
    needs=("narrower", "batch"),
    example="pruned_attention(np.arange(12.0).reshape(2, 2, 3), np.zeros((3, 2)), np.zeros((3, 2)), "
    "np.eye(3, 2), np.eye(2, 3), 2)",
)
def narrower_in_a_batch(rng):
    "Narrower heads, too, treat each sequence of a batch by itself."
    expect_output(decided(rng, batch=3, num_heads=2))
    expect_output(decided(rng, batch=2, num_heads=1))


@part(points=1, needs="full_width")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    pruned_attention(*decided(rng))
    expect_unchanged(pruned_attention, "pruned_attention")


### END HIDDEN TESTS

# %% [markdown] id="prune_heads_text"
# ## 5. `prune_heads`: removing heads
#
# **Points** {points prune_heads} · **Book** *Efficient heads*, section *Taking heads out*
#
# A trained model keeps much of its quality when some of its heads are removed (Michel and others 2019; Voita and
# others 2019). A head that is only masked still costs time and memory, so its part of the weights is cut out.
#
# Head i owns the columns `i*d_k … (i+1)*d_k - 1` of `W_Q`, `W_K` and `W_V`, which make its queries, keys and
# values, and the *rows* of `W_O` with the same numbers, which read its output.
#
# <details><summary>Hint: all at once</summary>
#
# If you remove head 0 first, head 3 becomes head 2. So first find out which columns stay, and then take them all
# at once.
# </details>
#
# <details><summary>Hint: which columns</summary>
#
# A list of numbers or a boolean array picks columns: `W[:, columns]`. `np.repeat([True, False], 3)` gives three
# times `True` and three times `False`.
# </details>

# %% role="solution" item="prune_heads"
from mha_lib.pruning import prune_heads

# %% role="test" item="prune_heads"


def ascending(W):
    # The heads that are left may stand in any order.
    return np.sort(W, axis=1) if isinstance(W, np.ndarray) and W.ndim == 2 else W


W = np.arange(1.0, 9.0).reshape(1, 8)  # (d_model, num_heads * d_k) = (1, 8): four heads of width 2
pruned = prune_heads(W, 10 * W, 100 * W, W.T, 4, [1])
check_close(
    "W_Q without head 1, its columns in ascending order",
    ascending(pruned[0]),
    [[1.0, 2.0, 5.0, 6.0, 7.0, 8.0]],
    mistakes={
        "the heads are counted from 0, not from 1": [[3.0, 4.0, 5.0, 6.0, 7.0, 8.0]],
        "the columns of a head are adjacent": [[1.0, 3.0, 4.0, 5.0, 7.0, 8.0]],
    },
)
check_close("W_K without head 1, in the order of W_Q", pruned[1], 10 * pruned[0])
check_close("W_V without head 1, in the order of W_Q", pruned[2], 100 * pruned[0])
check_close("W_O without head 1, in the order of W_Q", pruned[3], pruned[0].T)
check_number(
    "number of heads that are left",
    pruned[4],
    3,
    mistakes={"this is the number before pruning": 4, "this is the number of removed heads": 1},
)
check_close(
    "W_K without heads 0 and 2, its columns in ascending order",
    ascending(prune_heads(W, 10 * W, 100 * W, W.T, 4, [0, 2])[1]),
    [[30.0, 40.0, 70.0, 80.0]],
    mistakes={
        "after the first head is removed, the numbers of the others change": [[30.0, 40.0, 50.0, 60.0]],
        "only the first head of the list was removed": [[30.0, 40.0, 50.0, 60.0, 70.0, 80.0]],
    },
)
check_close("W_Q without any change", ascending(prune_heads(W, W, W, W.T, 4, [])[0]), W)
check_unchanged(
    "prune_heads leaves its arguments alone", lambda *arrays: prune_heads(*arrays, 4, [1, 3]), W, W, W, W.T
)
### BEGIN HIDDEN TESTS


def some_layer(rng, d_model=15, num_heads=5, d_k=3):
    into, out = (d_model, num_heads * d_k), (num_heads * d_k, d_model)
    return [rng.normal(size=shape) / np.sqrt(d_model) for shape in (into, into, into, out)]


def five_of(result):
    five = isinstance(result, tuple | list) and len(result) == 5
    expect(five, "prune_heads should return five values, (W_Q, W_K, W_V, W_O, new_num_heads)")
    return result[:4], result[4]


def expect_pruned(rng, weights, num_heads, heads):
    # The forward pass decides, so that the heads that are left may be in any order. How many there are is
    # read from the weights: the number that is returned has a part of its own.
    smaller, _ = five_of(prune_heads(*weights, num_heads, heads))
    names = ("W_Q", "W_K", "W_V", "W_O")
    for name, W in zip(names, smaller, strict=True):
        expect(isinstance(W, np.ndarray) and W.ndim == 2, f"{name} should be an array with two axes")
        expect(W.dtype.kind == "f" and np.isfinite(W).all(), f"{name} should hold finite numbers")
    d_model, d_k = len(weights[0]), weights[0].shape[1] // num_heads
    rows, width = smaller[0].shape
    whole = rows == d_model and width >= d_k and width % d_k == 0
    expect(
        whole, f"W_Q has shape {smaller[0].shape}: it should hold all rows, and whole heads of width {d_k}"
    )
    for name, W, shape in zip(names[1:], smaller[1:], [(rows, width)] * 2 + [(width, rows)], strict=True):
        expect(W.shape == shape, f"{name} should have shape {shape} to fit W_Q, but it has shape {W.shape}")
    X = rng.normal(size=(2, 7, d_model))
    silent = np.repeat(np.isin(np.arange(num_heads), heads), d_k)
    W_O = np.where(silent[:, None], 0.0, weights[3])
    expected = reference.pruned_attention(X, *weights[:3], W_O, num_heads)
    got = reference.pruned_attention(X, *smaller, width // d_k)
    expect_close(got, expected, what="attention with your weights")


@part(
    points=2,
    example="prune_heads(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), np.ones((1, 6)), np.ones((1, 6)), "
    "np.ones((6, 1)), 3, [2])",
)
def one_head(rng):
    "Without one of its heads, the layer gives the output of the other heads."
    expect_pruned(rng, some_layer(rng), 5, [int(rng.integers(2, 5))])


@part(
    points=2,
    example="prune_heads(np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones((1, 4)), np.ones((1, 4)), np.ones((4, 1)), "
    "4, [0, 2])",
)
def several_heads(rng):
    "Several heads can be removed at once, listed in any order, in a list or a tuple."
    heads = [int(head) for head in rng.permutation([1, 2, 3])[:2]]
    expect_pruned(rng, some_layer(rng), 5, sorted(heads))
    expect_pruned(rng, some_layer(rng), 5, sorted(heads, reverse=True))
    expect_pruned(rng, some_layer(rng), 5, (3, 0, 4))


@part(
    points=1,
    example="prune_heads(np.array([[1.0, 2.0]]), np.ones((1, 2)), np.ones((1, 2)), np.ones((2, 1)), 2, [])",
)
def no_head(rng):
    "With an empty list, the layer stays as it is."
    expect_pruned(rng, some_layer(rng), 5, [])


@part(
    points=1,
    example="prune_heads(np.arange(18.0).reshape(3, 6), np.ones((3, 6)), np.ones((3, 6)), np.ones((6, 3)), "
    "3, [1])",
)
def pruned_before(rng):
    "A layer whose heads are narrower than the model can be pruned as well."
    expect_pruned(rng, some_layer(rng, d_model=16, num_heads=4), 4, [2])


@part(points=1, needs="one_head")
def smaller(rng):
    "The weights lose exactly the columns and rows of the removed heads."
    weights, _ = five_of(prune_heads(*some_layer(rng), 5, [1, 3]))
    shapes = [W.shape if isinstance(W, np.ndarray) else None for W in weights]
    expected = [(15, 9)] * 3 + [(9, 15)]
    expect(shapes == expected, f"the shapes should be {expected}, but they are {shapes}")


@part(points=1, needs="one_head")
def number_of_heads(rng):
    "The fifth value is how many heads are left."
    _, left = five_of(prune_heads(*some_layer(rng), 5, [4, 1]))
    expect_equal(left, 3, what="the number of heads")


@part(points=1, needs="one_head")
def inputs_unchanged(rng):
    "The caller's arrays and list are unchanged."
    prune_heads(*some_layer(rng), 5, [1, 3, 0])
    expect_unchanged(prune_heads, "prune_heads")


### END HIDDEN TESTS

# %% [markdown] id="see_pruning"
# **Look at it.** A layer has eight heads; each head's rows of `W_O` are two thirds as large as those of the
# previous head. Heads are removed one after the other, the least important first or the most important first, and
# the plot shows how far the output moves. In a later assignment, *The heads of a trained model*, you measure the
# importance of real heads.

# %% role="show" id="plot_pruning"
rng = np.random.default_rng(0)
num_heads, d_k, d_model = 8, 4, 32
layer = [rng.normal(size=(d_model, d_model)) / np.sqrt(d_model) for _ in range(4)]
layer[3] *= np.repeat((2 / 3) ** np.arange(num_heads), d_k)[:, None]  # head 0 counts most
X = rng.normal(size=(4, 12, d_model))
full = pruned_attention(X, *layer, num_heads)


def change(heads):
    """How far the output moves, relative to its size."""
    return np.linalg.norm(
        pruned_attention(X, *prune_heads(*layer, num_heads, heads)) - full
    ) / np.linalg.norm(full)


figure, axes = plt.subplots(figsize=(5.5, 3.2))
for label, marker, order in [
    ("most important first", "s--", list(range(8))),
    ("least important first", "o-", list(range(7, -1, -1))),
]:
    axes.plot(range(8), [change(order[:count]) for count in range(8)], marker, label=label)
axes.set(xlabel="heads removed, of 8", ylabel="relative change of the output", title="Which heads go matters")
axes.legend()
figure.tight_layout()
plt.show()

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check efficient_heads.ipynb` runs the hidden tests on your code.
