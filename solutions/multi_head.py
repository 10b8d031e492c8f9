# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: multi_head, version: "1.2"}
# ---

# %% role="author"
from checks import check_close, check_number, check_raises, check_unchanged
from types import SimpleNamespace

from mha_grader.testing import (
    CallError,
    Mismatch,
    decided_layer,
    expect,
    expect_close,
    expect_number,
    expect_raises,
    expect_unchanged,
    expect_whole,
    number_of,
    output_of,
    part,
    random_layer,
    random_mask,
    undecided_layer,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # Several heads: the mathematics
#
# You build the layer that runs several heads at once. It projects the tokens, splits the projections into heads,
# lets every head attend, concatenates the results and projects them once more. Then you count its parameters and
# its operations.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `head_dim` | {points head_dim} | 1 | 3 | 10 |
# | 2 | `split_heads` | {points split_heads} | 3 | 5 | 20 |
# | 3 | `combine_heads` | {points combine_heads} | 2 | 5 | 10 |
# | 4 | `multi_head_attention` | {points multi_head_attention} | 4 | 5 | 45 |
# | 5 | `causal_multi_head_attention` | {points causal_multi_head_attention} | 2 | 4 | 10 |
# | 6 | `cross_attention` | {points cross_attention} | 2 | 4 | 15 |
# | 7 | `count_parameters` | {points count_parameters} | 2 | 3 | 20 |
# | 8 | `attention_flops` | {points attention_flops} | 3 | 3 | 20 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the name and the parameters, and run the check below. It prints `ok`, or one
# sentence that says what is wrong. You may use your earlier items in later ones, but you need none of them; a
# mistake costs the points of its own item only. You may add cells. Keep the other files of this folder beside the
# notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right, a loop as well as one line. Use NumPy and nothing else.
#
# `batch` counts sequences, `n` counts queries, and `m` counts keys and values; `heads` is `num_heads` in code.
# `d_model` is the width of the layer, and `d_k` = `d_model / heads` that of one head. No function changes its
# arguments in place. In a **mask**, `True` means that the query *may* attend to the key. **Head i owns the
# columns** from `i*d_k` up to, but not including, `(i+1)*d_k`; heads count from 0.

# %% role="given" id="imports"
import numpy as np

# %% role="show" id="imports_for_checks"
import matplotlib.pyplot as plt
from checks import (
    check_attention_flops,
    check_causal_multi_head_attention,
    check_combine_heads,
    check_count_parameters,
    check_cross_attention,
    check_head_dim,
    check_multi_head_attention,
    check_split_heads,
)

# %% [markdown] id="earlier_text"
# **Given:** `softmax`, `attention` and `causal_mask` from the previous assignment. Their code is in `given.py`
# beside this notebook. Use them as they are.

# %% role="given" id="earlier"
from mha_lib.attention import softmax, attention
from mha_lib.masks import causal_mask

# %% [markdown] id="head_dim_text"
# ## 1. `head_dim`: how wide a head is
#
# **Points** {points head_dim} · **Book** *Several heads*, section *The width of a head*
#
# The heads share the `d_model` features, so each is `d_k = d_model / num_heads` wide. If that is not a whole
# number, there is no such layer, and an early error that names both numbers saves a long search.
#
# <details><summary>Hint</summary>
#
# `%` gives the remainder of a division, and `//` the whole quotient. What is `-8 % 4`? What is `8 % 0`? So which
# question comes first?
# </details>

# %% role="solution" item="head_dim"
from mha_lib.heads import head_dim

# %% role="test" item="head_dim"
check_number(
    "512 features, 8 heads",
    head_dim(512, 8),
    64,
    mistakes={"that is the number of heads": 8, "that is the width of the whole layer": 512},
)
check_number("one head gets everything", head_dim(6, 1), 6)
check_raises("7 features, 2 heads", head_dim, 7, 2, error=ValueError, mentions=(7, 2))
check_raises("a negative width", head_dim, -8, 4, error=ValueError, mentions=(-8, 4))
check_raises("no head", head_dim, 8, 0, error=ValueError, mentions=(8, 0))
### BEGIN HIDDEN TESTS


WIDTH = "the width of a head"


@part(points=2, example="head_dim(12, 3)")
def values(rng):
    "The width of a head times the number of heads is d_model."
    d_k, heads = int(rng.integers(9, 99)), int(rng.integers(2, 9))
    for d_model, num_heads in [(d_k * heads, heads), (768, 12), (5, 1), (1, 1), (heads, heads)]:
        expect_number(head_dim(d_model, num_heads), d_model // num_heads, WIDTH)


@part(points=1, needs="values", example="head_dim(12, 3)")
def whole_number(rng):
    "The width is an int, not a float."
    expect_whole(head_dim(768, 12), WIDTH)


@part(points=2, needs="values", example="head_dim(7, 2)")
def does_not_divide(rng):
    "If the heads cannot share the features equally, as in head_dim(7, 2), there is a ValueError."
    for d_model, num_heads in [(7, 2), (10, 4), (3, 5), (768, int(rng.choice([5, 7, 10, 11])))]:
        expect_raises(head_dim, d_model, num_heads, error="ValueError")


@part(points=2, needs="values", example="head_dim(8, 0)")
def not_positive(rng):
    "A number that is 0 or negative, as in head_dim(-8, 4), head_dim(-8, -4) or head_dim(8, 0), gives a ValueError."
    number = int(rng.integers(2, 9))
    for d_model, num_heads in [(-8, 4), (8, -4), (-8, -4), (0, number), (number, 0), (0, 0)]:
        expect_raises(head_dim, d_model, num_heads, error="ValueError")


@part(points=1, needs=("does_not_divide", "not_positive"), example="head_dim(7, 2)")
def message(rng):
    "The text of the error contains both numbers, for head_dim(7, 2), head_dim(-8, 4) and head_dim(8, -4) alike."
    heads = int(rng.choice([23, 34, 58]))
    # No number contains the digits of the other one.
    for d_model, num_heads in [(7001, heads), (-6 * heads, heads), (701, -heads)]:
        mentions = str(d_model), str(num_heads)
        expect_raises(head_dim, d_model, num_heads, error="ValueError", mentions=mentions)


### END HIDDEN TESTS

# %% [markdown] id="split_heads_text"
# ## 2. `split_heads`: from features to heads
#
# **Points** {points split_heads} · **Book** *Several heads*, section *From features to heads*
#
# The features of a token are cut into blocks of `d_k`, one for each head. Afterwards the axis of the heads stands
# *before* that of the tokens: each head is a matrix of tokens, and `@` works on the last two axes.
#
# <details><summary>Hint: one reshape is not enough</summary>
#
# A reshape never changes the *order* of the entries. Read the entries of `x` row by row, then those of the
# expected result: the order differs. Which shape can you reach by cutting only the last axis? Which two axes are
# then in the wrong order?
# </details>
#
# <details><summary>Hint: without any reshape</summary>
#
# `x[:, :, i * d_k : (i + 1) * d_k]` is head i. `np.stack` puts the heads together; mind its argument `axis`.
# Slices never complain about a remainder.
# </details>

# %% role="solution" item="split_heads"
from mha_lib.heads import split_heads

# %% role="test" item="split_heads"
x = np.array([[[10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 23.0], [30.0, 31.0, 32.0, 33.0]]])  # (1, 3, 4)
check_close(
    "two heads of three tokens",
    split_heads(x, 2),
    [[[[10, 11], [20, 21], [30, 31]], [[12, 13], [22, 23], [32, 33]]]],
    mistakes={
        "one reshape gives the shape, but head 0 holds all of token 0 and half of token 1": [
            [[[10, 11], [12, 13], [20, 21]], [[22, 23], [30, 31], [32, 33]]]
        ],
        "the heads alternate, feature by feature; each should have its own block": [
            [[[10, 12], [20, 22], [30, 32]], [[11, 13], [21, 23], [31, 33]]]
        ],
        "the axis of the heads comes after that of the tokens": [
            [[[10, 11], [12, 13]], [[20, 21], [22, 23]], [[30, 31], [32, 33]]]
        ],
        "the axis of the heads comes before that of the batch": [
            [[[10, 11], [20, 21], [30, 31]]],
            [[[12, 13], [22, 23], [32, 33]]],
        ],
    },
)
check_close("one head", split_heads(x, 1), x[:, None])
check_raises("four features, three heads", split_heads, x, 3)
check_unchanged("split_heads leaves its argument alone", lambda x: split_heads(x, 2), x)
### BEGIN HIDDEN TESTS


def expect_split(rng, batch, n, heads, d_k):
    x = rng.normal(size=(batch, n, heads * d_k))
    expect_close(split_heads(x, heads), reference.split_heads(x, heads))


@part(points=1, example="split_heads(np.arange(6.0).reshape(1, 1, 6), 2)")
def one_token(rng):
    "Head i gets the i-th block of features of a single token."
    expect_split(rng, batch=4, n=1, heads=3, d_k=5)


@part(points=3, example="split_heads(np.arange(12.0).reshape(1, 3, 4), 2)")
def values(rng):
    "Each head gets its block of features of every token, even if there is only one sequence or one head."
    expect_split(rng, batch=2, n=5, heads=3, d_k=4)
    expect_split(rng, batch=1, n=4, heads=3, d_k=2)
    expect_split(rng, batch=3, n=4, heads=1, d_k=5)
    expect_split(rng, batch=3, n=4, heads=2, d_k=7)
    expect_split(rng, batch=2, n=3, heads=5, d_k=1)


@part(points=1, needs="values")
def does_not_divide(rng):
    "If the features cannot be shared equally, as with 7 features and 2 heads, there is an error."
    expect_raises(split_heads, rng.normal(size=(2, 6, 7)), 2)
    expect_raises(split_heads, rng.normal(size=(3, 5, 8)), 3)
    expect_raises(split_heads, rng.normal(size=(2, 8, 4)), 8)  # more heads than features


@part(points=1, needs="values")
def input_unchanged(rng):
    "The caller's array is unchanged, its shape included."
    split_heads(rng.normal(size=(2, 5, 12)), 3)
    expect_unchanged(split_heads, "split_heads")


### END HIDDEN TESTS

# %% [markdown] id="combine_heads_text"
# ## 3. `combine_heads`: and back
#
# **Points** {points combine_heads} · **Book** *Several heads*, section *From heads to features*
#
# After attention, each token has one result from each head. They are concatenated, head 0 first. Nothing is added
# up or averaged, so no head's result is lost.
#
# <details><summary>Hint</summary>
#
# Undo the two steps of `split_heads` in the opposite order. Or concatenate `x[:, 0]`, `x[:, 1]`, … with
# `np.concatenate`.
# </details>

# %% role="solution" item="combine_heads"
from mha_lib.heads import combine_heads

# %% role="test" item="combine_heads"
x = np.array([[[[10.0, 11.0], [20.0, 21.0], [30.0, 31.0]], [[12.0, 13.0], [22.0, 23.0], [32.0, 33.0]]]])
check_close(
    "two heads of three tokens",
    combine_heads(x),
    [[[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]],
    mistakes={
        "one reshape gives the shape, but the first row holds two tokens of head 0": [
            [[10, 11, 20, 21], [30, 31, 12, 13], [22, 23, 32, 33]]
        ],
        "the heads alternate, feature by feature; each should have its own block": [
            [[10, 12, 11, 13], [20, 22, 21, 23], [30, 32, 31, 33]]
        ],
        "the heads were averaged; they should be concatenated": [[[11, 12], [21, 22], [31, 32]]],
        "the heads were added up; they should be concatenated": [[[22, 24], [42, 44], [62, 64]]],
    },
)
check_close(
    "two sequences, three heads of width 1",
    combine_heads(np.array([[[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]], np.ones((3, 2, 1))])),
    [[[1, 3, 5], [2, 4, 6]], [[1, 1, 1], [1, 1, 1]]],
)
check_unchanged("combine_heads leaves its argument alone", combine_heads, x)
### BEGIN HIDDEN TESTS


def expect_combined(rng, batch, heads, n, d_k):
    x = rng.normal(size=(batch, heads, n, d_k))
    expect_close(combine_heads(x), reference.combine_heads(x))


@part(points=1, example="combine_heads(np.arange(6.0).reshape(1, 3, 1, 2))")
def one_token(rng):
    "The heads of a single token are concatenated, head 0 first."
    expect_combined(rng, batch=5, heads=4, n=1, d_k=3)


@part(points=3, example="combine_heads(np.arange(12.0).reshape(1, 2, 3, 2))")
def values(rng):
    "Each token gets the concatenated features of all heads, even if there is only one sequence or one head."
    expect_combined(rng, batch=2, heads=3, n=5, d_k=4)
    expect_combined(rng, batch=1, heads=3, n=4, d_k=2)
    expect_combined(rng, batch=3, heads=1, n=4, d_k=5)
    expect_combined(rng, batch=3, heads=2, n=4, d_k=7)
    expect_combined(rng, batch=2, heads=5, n=3, d_k=1)


@part(points=1, needs="values")
def undoes_split_heads(rng):
    "combine_heads undoes split_heads."
    x = rng.normal(size=(3, 4, 10))
    expect_close(combine_heads(reference.split_heads(x, 2)), x)


@part(points=1, needs="values")
def input_unchanged(rng):
    "The caller's array is unchanged, its shape included."
    combine_heads(rng.normal(size=(2, 3, 5, 4)))
    expect_unchanged(combine_heads, "combine_heads")


### END HIDDEN TESTS

# %% [markdown] id="see_reshape"
# **Look at it.** The most common mistake here gives the right shape and no error, and a second mistake undoes it
# without a trace. Below, the tens digit gives the token and the ones digit the feature. Which tokens does head 0
# get, and what comes back?

# %% role="show" id="show_reshape"
tokens = 10 * np.arange(1, 5)[:, None] + np.arange(6)  # (n, d_model) = (4, 6)
right = split_heads(tokens[None], 3)  # (batch, heads, n, d_k) = (1, 3, 4, 2)
wrong = tokens[None].reshape(1, 3, 4, 2)
print("tokens\n", tokens)
print("head 0 of split_heads: two features of every token\n", right[0, 0])
print("head 0 of one reshape: two tokens, and nothing of the others\n", wrong[0, 0])
print("split_heads and combine_heads undo each other:", np.array_equal(combine_heads(right)[0], tokens))
print("two reshapes undo each other as well:         ", np.array_equal(wrong.reshape(4, 6), tokens))

# %% [markdown] id="multi_head_attention_text"
# ## 4. `multi_head_attention`: the whole layer
#
# **Points** {points multi_head_attention} · **Book** *Several heads*, section *The whole layer*
#
# Three projections of the same tokens make queries, keys and values, each as wide as the layer:
#
# $$Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V.$$
#
# They are split into heads, every head attends, and `W_O` projects the concatenated results:
#
# $$\operatorname{head}_i = \operatorname{softmax}\!\left(\frac{Q_i K_i^\top}{\sqrt{d_k}}\right) V_i,$$
#
# $$\text{output} = \left[\operatorname{head}_0 \; \cdots \; \operatorname{head}_{h-1}\right] W_O.$$
#
# $Q_i$ holds the head's columns of the *projection*, and each column is computed from *all* features of a token:
# the input is not cut. The scores are divided by the root of the width of **one head**.
#
# <details><summary>Hint: with the pieces that you have</summary>
#
# `attention` takes any leading axes, including `(batch, heads)`. So: project, split, attend, combine, project. Five
# lines are enough.
# </details>
#
# <details><summary>Hint: without split_heads and combine_heads</summary>
#
# Loop over the heads. Head i needs `X @ W_Q[:, i * d_k : (i + 1) * d_k]`, and the same columns of `W_K` and
# `W_V`; `np.concatenate(..., axis=-1)` joins the results. Inside the loop there is no axis for heads, so a mask
# `(batch, 1, n, n)` must lose it, too.
# </details>

# %% role="solution" item="multi_head_attention"
from mha_lib.multi_head import multi_head_attention

# %% role="test" item="multi_head_attention"
X = np.array([[[3.0, 0.0, 9.0, 0.0], [6.0, 3.0, 0.0, 9.0], [9.0, 0.0, 0.0, 9.0]]])  # (batch, n, d_model)
W_Q = np.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
W_K = np.diag([0.0, 0.0, 1.0, 1.0])  # in head 1, token 0 looks for the tokens 1 and 2; the rest is undecided
W_V = np.array([[1.0, 0, 0, 2], [0, 1, -2, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
W_O = np.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
check_close(
    "two heads",
    multi_head_attention(X, W_Q, W_K, W_V, W_O, 2),
    [[[6, 7, 12, 15], [6, 7, 10, 12], [6, 7, 10, 12]]],
    mistakes={
        "the last projection, W_O, is missing": [[[6, 1, -3, 15], [6, 1, -2, 12], [6, 1, -2, 12]]],
        "W_O was transposed": [[[7, 1, -3, 12], [7, 1, -2, 10], [7, 1, -2, 10]]],
        "W_Q, W_K and W_V were transposed": [[[18, 13, 0, 0], [18, 13, 0, 0], [18, 13, 0, 0]]],
        "one reshape cut the features into heads, which mixes tokens": [
            [[3, 6, 11, 10], [3, 6, 11, 10], [3, 6, 11, 10]]
        ],
        "one reshape merged the heads, which mixes tokens": [
            [[6, 7, 7, 1], [6, 7, 12, 15], [-2, 10, 10, 12]]
        ],
        "the reshapes before and after undo each other, but in between tokens are mixed": [
            [[3, 6, 6, 3], [3, 6, 11, 10], [1, 11, 11, 10]]
        ],
        "a head saw only its own slice of the features of X; it should see all of them": [
            [[6, 7, 0, 0], [6, 7, 0, 0], [6, 7, 0, 0]]
        ],
        "W_Q and W_K have changed places": [[[6, 7, 10, 12], [6, 7, 6, 6], [6, 7, 6, 6]]],
        "there is only one head, with all features": [[[7.5, 9, 12, 15], [6, 7, 10, 12], [6, 7, 10, 12]]],
        "X was added; that comes later, in the block around this layer": [
            [[9, 7, 21, 15], [12, 10, 10, 21], [15, 7, 10, 21]]
        ],
    },
)

# Both tokens ask 2 of every key; the keys are log 3 and 0. So the scores are 2·log 3 / √4 = log 3 and 0, the
# weights 3/4 and 1/4, and 3/4 · 4 + 1/4 · 8 = 5. Head 1 has scores of 0 and averages: (4 + 8) / 2 = 6.
X = np.zeros((1, 2, 8))
X[0, :, 0], X[0, 0, 1], X[0, :, 2] = 2.0, np.log(3.0), [4.0, 8.0]
W_Q, W_K, W_V = np.zeros((3, 8, 8))
W_Q[0, 0] = W_K[1, 0] = W_V[2, 0] = W_V[2, 4] = 1.0
check_close(
    "the scale",
    multi_head_attention(X, W_Q, W_K, W_V, np.eye(8), 2),
    [[[5, 0, 0, 0, 6, 0, 0, 0], [5, 0, 0, 0, 6, 0, 0, 0]]],
    mistakes={
        "the scores were not divided": [[[4.4, 0, 0, 0, 6, 0, 0, 0], [4.4, 0, 0, 0, 6, 0, 0, 0]]],
        "the scores were divided by √d_model; it should be the width of one head": [
            [[5.26, 0, 0, 0, 6, 0, 0, 0], [5.26, 0, 0, 0, 6, 0, 0, 0]]
        ],
        "the scores were divided by d_k, not by its square root": [
            [[5.4641, 0, 0, 0, 6, 0, 0, 0], [5.4641, 0, 0, 0, 6, 0, 0, 0]]
        ],
    },
)

X = np.array([[[2.0, 0.0], [4.0, 8.0]], [[1.0, 3.0], [5.0, 5.0]]])  # (batch, n, d_model) = (2, 2, 2)
zeros, ones = np.zeros((2, 2)), np.eye(2)  # all scores are 0: each token averages over what it may see
mask = np.array([[[[True, False], [True, True]]], [[[True, True], [False, True]]]])  # (batch, 1, n, n)
check_close(
    "a mask for each sequence",
    multi_head_attention(X, zeros, zeros, ones, ones, 2, mask=mask),
    [[[2, 0], [3, 4]], [[3, 4], [5, 5]]],
    mistakes={
        "the mask has no effect, or the masked scores became 0": [[[3, 4], [3, 4]], [[3, 4], [3, 4]]],
        "the mask came after the softmax, so the weights no longer sum to 1": [
            [[1, 0], [3, 4]],
            [[3, 4], [2.5, 2.5]],
        ],
        "both sequences got the mask of the first one": [[[2, 0], [3, 4]], [[1, 3], [3, 4]]],
        "heads got the masks of sequences: which axis of the mask lines up with which axis of the scores?": [
            [[2, 4], [3, 8]],
            [[1, 4], [3, 5]],
        ],
    },
)
check_unchanged(
    "multi_head_attention leaves its arguments alone",
    lambda *arguments: multi_head_attention(*arguments, 2),
    *(X, ones, ones, ones, ones),
)
### BEGIN HIDDEN TESTS


def expect_output(*arguments, tolerance=1e-5):
    expected = reference.multi_head_attention(*arguments)
    expect_close(output_of(multi_head_attention(*arguments)), expected, tolerance)


def with_scores(rng, queries, keys):
    # One head in which token i asks queries[i] of every key, and token j offers keys[j].
    X = np.stack([queries, keys, rng.normal(size=len(keys))], axis=-1)[None]  # (1, n, 3)
    W_Q, W_K = np.zeros((2, 3, 3))
    W_Q[0, 0], W_K[1, 0] = np.sqrt(3.0), 1.0
    return X, W_Q, W_K, np.eye(3), np.eye(3), 1


@part(
    points=2,
    example="multi_head_attention(np.array([[[1.0, 2.0], [3.0, 6.0]]]), np.zeros((2, 2)), np.zeros((2, 2)), "
    "np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [3.0, 1.0]]), 1)",
)
def one_head(rng):
    "With one head, the layer projects the tokens, attends, and projects the result."
    expect_output(*decided_layer(rng, batch=1, n=7, num_heads=1, d_k=4))


@part(
    points=3,
    example="multi_head_attention(np.array([[[1.0, 2.0, 9.0, 0.0], [3.0, 4.0, 0.0, 9.0]]]), "
    "np.diag([0.0, 0.0, 1.0, 1.0]), np.diag([0.0, 0.0, 1.0, 1.0]), np.eye(4), np.eye(4), 2)",
)
def several_heads(rng):
    "Each head attends with its own columns of the projections, and all tokens take part in every head."
    expect_output(*decided_layer(rng, batch=1, n=7, num_heads=3, d_k=4))
    expect_output(*decided_layer(rng, batch=1, n=5, num_heads=2, d_k=4))


@part(
    points=1,
    example="multi_head_attention(np.arange(8.0).reshape(2, 2, 2), np.zeros((2, 2)), np.zeros((2, 2)), "
    "np.eye(2), np.eye(2), 2)",
)
def batch(rng):
    "Each sequence of a batch is treated by itself."
    expect_output(*decided_layer(rng, batch=2, n=7, num_heads=3, d_k=4))


@part(
    points=2,
    example="multi_head_attention(np.array([[[2.0, 1.0, 0.0, 4.0], [2.0, 0.0, 0.0, 8.0]]]), "
    "np.diag([1.0, 0.0, 0.0, 0.0]), np.eye(4)[[1, 0, 2, 3]] * [1.0, 0.0, 0.0, 0.0], "
    "np.eye(4)[[3, 2, 1, 0]], np.eye(4), 2)",
)
def scale(rng):
    "The scores of a head are divided by the square root of its own width."
    X, W_Q, W_K, _, _, heads = random_layer(rng, batch=1, n=5, num_heads=3, d_k=8)
    expect_output(X, W_Q, W_K, np.eye(24), np.eye(24), heads)


@part(points=2)
def all_together(rng):
    "The output is right for any tokens, even a single one, and any weights and number of heads."
    expect_output(*random_layer(rng, batch=2, n=5, num_heads=3, d_k=4))
    expect_output(*random_layer(rng, batch=3, n=4, num_heads=2, d_k=7))
    expect_output(*random_layer(rng, batch=2, n=3, num_heads=5, d_k=1))
    expect_output(*random_layer(rng, batch=3, n=1, num_heads=2, d_k=4))


@part(
    points=2,
    example="multi_head_attention(np.array([[[1.0], [3.0], [8.0]]]), np.zeros((1, 1)), np.zeros((1, 1)), "
    "np.eye(1), np.eye(1), 1, np.tri(3, dtype=bool))",
)
def mask(rng):
    "A query averages over the keys for which its row of the mask is True, and over no others."
    expect_output(*undecided_layer(rng, batch=1, n=7, num_heads=1, d_k=3), random_mask(rng, 7, 7))


@part(
    points=1,
    example="multi_head_attention(np.arange(8.0).reshape(2, 2, 2), np.zeros((2, 2)), np.zeros((2, 2)), "
    "np.eye(2), np.eye(2), 2, mask=np.tri(2, dtype=bool))",
)
def one_mask_for_all(rng):
    "A mask of shape (n, n) applies to every sequence and every head; it may be passed by name, as mask=…"
    expect_output(*undecided_layer(rng, batch=3, n=5, num_heads=2, d_k=4), random_mask(rng, 5, 5))
    layer, mask = undecided_layer(rng, batch=2, n=7, num_heads=3, d_k=2), random_mask(rng, 7, 7)
    expect_close(
        output_of(multi_head_attention(*layer, mask=mask)), reference.multi_head_attention(*layer, mask)
    )


@part(
    points=2,
    example="multi_head_attention(np.arange(8.0).reshape(2, 2, 2), np.zeros((2, 2)), np.zeros((2, 2)), "
    "np.eye(2), np.eye(2), 2, np.array([[[[True, False], [True, True]]], [[[True, True], [False, True]]]]))",
)
def mask_for_each_sequence(rng):
    "A mask (batch, 1, n, n), or (batch, 1, 1, n) for padding, gives each sequence its own, the same for all heads."
    expect_output(*undecided_layer(rng, batch=3, n=5, num_heads=2, d_k=4), random_mask(rng, 3, 1, 5, 5))
    expect_output(*undecided_layer(rng, batch=2, n=5, num_heads=2, d_k=3), random_mask(rng, 2, 1, 5, 5))
    expect_output(*undecided_layer(rng, batch=3, n=1, num_heads=2, d_k=4), np.ones((3, 1, 1, 1), bool))
    expect_output(*undecided_layer(rng, batch=3, n=5, num_heads=2, d_k=4), random_mask(rng, 3, 1, 1, 5))


@part(points=1, needs=("all_together", "mask"))
def all_together_with_a_mask(rng):
    "Under a mask the output is right for any tokens and weights."
    expect_output(*random_layer(rng, batch=2, n=5, num_heads=3, d_k=4), random_mask(rng, 5, 5))
    expect_output(*random_layer(rng, batch=2, n=7, num_heads=3, d_k=4), random_mask(rng, 2, 1, 7, 7))


@part(points=1, needs=("one_head", "mask"))
def scores_far_below_zero(rng):
    "A masked key gets no weight even if the scores of the others are about -20,000, or nearly 30 below its own."
    queries = np.array([-20000.0, 100.0, -20000.0, -1.0, 5000.0])
    expect_output(*with_scores(rng, queries, np.ones(5)), random_mask(rng, 5, 5), tolerance=1e-2)
    mask = random_mask(rng, 5, 5)
    mask[:, 2], mask[:, 3] = False, True
    expect_output(*with_scores(rng, np.ones(5), np.array([0.0, 0.0, 29.5, 0.0, 0.0])), mask)


@part(points=1, needs="one_head")
def large_scores(rng):
    "Scores in the thousands, of either sign, do not overflow."
    queries = np.array([3000.0, -3000.0, 0.0, 3000.0, -3000.0])
    keys = rng.permutation([1.0, 1.0, 1.0, 1.0 - 28 / 3000, 1.0 - 28 / 3000])
    expect_output(*with_scores(rng, queries, keys), tolerance=1e-2)
    X, W_Q, W_K, W_V, W_O, heads = random_layer(rng, batch=2, n=5, num_heads=3, d_k=4)
    try:
        expect_output(X, W_Q, W_K, W_V, W_O, heads)
    except (CallError, Mismatch):
        return  # several heads are the matter of other parts
    # A feature that is 1 for every token lifts all scores of one head by thousands, and lowers those of another.
    X[..., 0], W_Q[0], W_K[0] = 1.0, np.repeat([90.0, 0.0, -90.0], 4), np.repeat([30.0, 0.0, 30.0], 4)
    W_Q[1:], W_K[1:] = W_Q[1:] / 100.0, W_K[1:] / 100.0
    expect_output(X, W_Q, W_K, W_V, W_O, heads, tolerance=1e-2)


@part(points=1, needs="all_together")
def order_of_tokens(rng):
    "Tokens in another order give the same outputs in that order: attention knows no positions."
    X, *rest = random_layer(rng, batch=2, n=7, num_heads=3, d_k=4)
    expected, order = reference.multi_head_attention(X, *rest), rng.permutation(7)
    expect_close(output_of(multi_head_attention(X[:, order], *rest)), expected[:, order])


@part(points=1, needs="one_head", example="multi_head_attention(np.ones((1, 2, 2)), *np.ones((4, 2, 2)), 2)")
def output_alone(rng):
    "The output comes alone, not in a tuple."
    result = multi_head_attention(*decided_layer(rng, batch=1, n=5, num_heads=1, d_k=4))
    expect(isinstance(result, np.ndarray), "multi_head_attention should return one array, the output")


@part(points=1, needs="one_head")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    multi_head_attention(*random_layer(rng, batch=2, n=5, num_heads=3, d_k=4))
    expect_unchanged(multi_head_attention, "multi_head_attention")
    for shape in ((5, 5), (2, 1, 5, 5)):
        layer = random_layer(rng, batch=2, n=5, num_heads=3, d_k=4)
        multi_head_attention(*layer, random_mask(rng, *shape))
        expect_unchanged(multi_head_attention, "multi_head_attention")


### END HIDDEN TESTS

# %% [markdown] id="see_heads"
# ## What the heads can do
#
# **Book** *Several heads*, section *What several heads can do*
#
# One head could not report the contents of *two* other positions. Two heads can. The weights below are written by
# hand. Each token holds its content (four random numbers) and its position (a one-hot vector). Head 0 attends to
# the position before its own, and head 1 to the one before that (the first positions wrap around). Both return the
# content, and `W_O` puts the result of head 0 into the first four columns of the output and that of head 1 into the
# next four.

# %% role="show" id="show_two_heads"
rng = np.random.default_rng(0)
n, width, d_k = 6, 4, 8  # d_model = 16: four columns for the content, six for the position, six to spare
X = np.zeros((1, n, 16))
X[0, :, :width] = rng.normal(size=(n, width))
X[0, :, width : width + n] = np.eye(n)
W_Q, W_K, W_V, W_O = np.zeros((4, 16, 16))
for i, back in enumerate([1, 2]):
    columns = slice(i * d_k, i * d_k + n)
    W_Q[width : width + n, columns] = 90.0 * np.roll(np.eye(n), -back, axis=1)
    W_K[width : width + n, columns] = np.eye(n)
    W_V[:width, i * d_k : i * d_k + width] = np.eye(width)
    W_O[i * d_k : i * d_k + width, i * width : (i + 1) * width] = np.eye(width)

weights = attention(split_heads(X @ W_Q, 2), split_heads(X @ W_K, 2), split_heads(X @ W_V, 2))[1]
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2))
for i in range(2):
    axes[i].imshow(weights[0, i], cmap="Blues", vmin=0, vmax=1)
    axes[i].set(title=f"head {i}", xlabel="key", ylabel="query")
figure.tight_layout()
plt.show()

output = multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)
for i, back in enumerate([1, 2]):
    error = np.abs(output[0, back:, i * width : (i + 1) * width] - X[0, :-back, :width]).max()
    print(f"columns {i * width} to {i * width + 3} are the content {back} before, up to {error:.0e}")

# %% [markdown] id="see_features"
# **Every head reads all features.** Many texts say that head 0 sees the first `d_k` features of a token, and head 1
# the next ones. Below, we change one feature of one token by 1; the table shows how far each head's output moves,
# before `W_O`. If a head saw only its own features, there would be zeros.
#
# **`W_O` in blocks.** Concatenating the heads and multiplying by `W_O` equals multiplying each head by its own
# rows of `W_O` and summing. So heads *are* summed, but only after each had its own projection. The last line
# shows the difference between the two ways.

# %% role="show" id="show_features"
X, (W_Q, W_K, W_V, W_O) = rng.normal(size=(1, 5, 6)), rng.normal(size=(4, 6, 6)) / np.sqrt(6)


def heads_of(X):
    """What the three heads find, before W_O: (batch, heads, n, d_k)."""
    return attention(split_heads(X @ W_Q, 3), split_heads(X @ W_K, 3), split_heads(X @ W_V, 3))[0]


print("feature changed   head 0   head 1   head 2")
for feature in range(6):
    changed = X.copy()
    changed[0, 0, feature] += 1.0
    moved = np.abs(heads_of(changed) - heads_of(X)).max(axis=(0, 2, 3))  # (heads,)
    print(f"{feature:15d}", *(f"{distance:8.2f}" for distance in moved))

blocks = W_O.reshape(3, 2, 6)  # (heads, d_k, d_model)
difference = (heads_of(X) @ blocks).sum(axis=1) - combine_heads(heads_of(X)) @ W_O
print(f"\nsum over heads of head_i @ its rows of W_O: the same up to {np.abs(difference).max():.0e}")

# %% [markdown] id="causal_multi_head_attention_text"
# ## 5. `causal_multi_head_attention`: without looking ahead
#
# **Points** {points causal_multi_head_attention} · **Book** *Several heads*, section *Causal self-attention*
#
# A language model predicts each token from the tokens before it. In its layers, token i may attend to the tokens
# 0 to i, in every head.
#
# <details><summary>Hint</summary>
#
# `causal_mask` is given. Which axis of `X` gives its size?
# </details>

# %% role="solution" item="causal_multi_head_attention"
from mha_lib.multi_head import causal_multi_head_attention

# %% role="test" item="causal_multi_head_attention"
X = np.array([[[3.0, 0.0], [5.0, 4.0], [10.0, 2.0]]])  # (batch, n, d_model) = (1, 3, 2)
zeros, ones = np.zeros((2, 2)), np.eye(2)
check_close(
    "running averages",
    causal_multi_head_attention(X, zeros, zeros, ones, ones, 2),
    [[[3, 0], [4, 2], [6, 2]]],
    mistakes={
        "nothing is hidden, or hidden scores became 0, which is a score like any other": [
            [[6, 2], [6, 2], [6, 2]]
        ],
        "a token sees what comes later, not what came before": [[[6, 2], [7.5, 3], [10, 2]]],
        "a token sees one position ahead": [[[4, 2], [6, 2], [6, 2]]],
        "the mask came after the softmax, so the weights no longer sum to 1": [
            [[1, 0], [2.6667, 1.3333], [6, 2]]
        ],
    },
)
check_close(
    "two sequences",
    causal_multi_head_attention(np.concatenate([X, -X]), zeros, zeros, ones, ones, 2),
    [[[3, 0], [4, 2], [6, 2]], [[-3, 0], [-4, -2], [-6, -2]]],
)
### BEGIN HIDDEN TESTS


def expect_output(*arguments):
    expected = reference.causal_multi_head_attention(*arguments)
    expect_close(output_of(causal_multi_head_attention(*arguments)), expected)


@part(
    points=3,
    example="causal_multi_head_attention(np.array([[[3.0], [5.0], [10.0]]]), np.zeros((1, 1)), "
    "np.zeros((1, 1)), np.eye(1), np.eye(1), 1)",
)
def past_only(rng):
    "With scores of 0, the output of token i is the average of the tokens 0 to i."
    expect_output(*undecided_layer(rng, batch=1, n=7, num_heads=1, d_k=3))
    expect_output(*undecided_layer(rng, batch=1, n=1, num_heads=1, d_k=4))


@part(
    points=2,
    example="causal_multi_head_attention(np.array([[[1.0, 2.0, 9.0, 0.0], [3.0, 4.0, 0.0, 9.0]]]), "
    "np.diag([0.0, 0.0, 1.0, 1.0]), np.diag([0.0, 0.0, 1.0, 1.0]), np.eye(4), np.eye(4), 2)",
)
def several_heads(rng):
    "Each head of each sequence attends by itself, to the past only."
    expect_output(*decided_layer(rng, batch=1, n=5, num_heads=2, d_k=4))
    expect_output(*decided_layer(rng, batch=2, n=7, num_heads=3, d_k=4))


@part(points=2)
def all_together(rng):
    "The output is right for any tokens, weights and number of heads."
    expect_output(*random_layer(rng, batch=2, n=5, num_heads=3, d_k=8))
    expect_output(*random_layer(rng, batch=3, n=4, num_heads=2, d_k=7))
    expect_output(*random_layer(rng, batch=1, n=130, num_heads=2, d_k=5))


@part(points=1, needs="past_only")
def later_tokens_do_not_matter(rng):
    "A change of the last tokens changes no earlier output."
    X, *rest = undecided_layer(rng, batch=1, n=7, num_heads=1, d_k=3)
    expected = reference.causal_multi_head_attention(X, *rest)[:, :4]
    X[:, 4:] = rng.normal(size=(1, 3, 3))
    got = output_of(causal_multi_head_attention(X, *rest))
    right_shape = isinstance(got, np.ndarray) and got.shape == X.shape
    expect(right_shape, "the output should have the shape of X")
    expect_close(got[:, :4], expected, what="the output of the first tokens")


@part(
    points=1,
    needs="past_only",
    example="causal_multi_head_attention(np.ones((1, 2, 2)), *np.ones((4, 2, 2)), 2)",
)
def output_alone(rng):
    "The output comes alone, not in a tuple."
    result = causal_multi_head_attention(*undecided_layer(rng, batch=1, n=5, num_heads=1, d_k=3))
    expect(isinstance(result, np.ndarray), "causal_multi_head_attention should return one array, the output")


@part(points=1, needs="past_only")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    causal_multi_head_attention(*random_layer(rng, batch=2, n=5, num_heads=3, d_k=4))
    expect_unchanged(causal_multi_head_attention, "causal_multi_head_attention")


### END HIDDEN TESTS

# %% [markdown] id="cross_attention_text"
# ## 6. `cross_attention`: from one text to another
#
# **Points** {points cross_attention} · **Book** *Several heads*, section *Cross-attention*
#
# In translation, the text that is written attends to the text that is read. The formula stays the same. But queries
# come from one text, and keys and values from the other:
#
# $$Q = X W_Q, \qquad K = M W_K, \qquad V = M W_V,$$
#
# where $M$ is the *memory*, the text that is attended to. It has its own length.
#
# <details><summary>Hint</summary>
#
# Start from your `multi_head_attention`. For each line, decide: does it use the tokens of `X` or those of
# `memory`? If you reshape by hand, mind the two lengths.
# </details>

# %% role="solution" item="cross_attention"
from mha_lib.multi_head import cross_attention

# %% role="test" item="cross_attention"
X = np.array([[[5.0, 5.0, 0.0, 9.0], [7.0, 7.0, 9.0, 0.0]]])  # (batch, n, d_model) = (1, 2, 4)
memory = np.array([[[3.0, 0.0, 9.0, 0.0], [6.0, 3.0, 0.0, 9.0], [9.0, 6.0, 9.0, 0.0]]])  # (batch, m, d_model)
W_Q = W_K = np.diag([0.0, 0.0, 1.0, 1.0])  # head 0 averages, head 1 looks for the same mark (9, 0 or 0, 9)
W_V = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]])  # both heads bring the first two
W_O = np.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
check_close(
    "two tokens of X, three of the memory",
    cross_attention(X, memory, W_Q, W_K, W_V, W_O, 2),
    [[[6, 9, 9, 3], [6, 9, 9, 3]]],
    mistakes={
        "the memory is not used: keys and values come from X": [[[6, 12, 10, 5], [6, 12, 14, 7]]],
        "the last projection, W_O, is missing": [[[6, 3, 6, 3], [6, 3, 6, 3]]],
        "the tokens attend to X as well as to the memory": [[[6, 10.2, 11, 4], [6, 10.2, 10.6667, 4.3333]]],
    },
)
longer = np.concatenate([memory, memory], axis=1)  # (batch, m, d_model) = (1, 6, 4)
check_close(
    "every token of the memory twice changes nothing",
    cross_attention(X, longer, W_Q, W_K, W_V, W_O, 2),
    [[[6, 9, 9, 3], [6, 9, 9, 3]]],
)
first, third = np.zeros((4, 4)), np.zeros((4, 4))
first[0, 0], third[2, 0] = 1.0, 1.0
check_close(
    "a head of width 2 with scores √2·log(3) and 0, which become log(3) and 0",
    cross_attention(
        np.array([[[np.sqrt(2.0), 0.0, 0.0, 0.0]]]),
        np.array([[[np.log(3.0), 0.0, 4.0, 0.0], [0.0, 0.0, 8.0, 0.0]]]),
        *(first, first, third, np.eye(4), 2),
    ),
    [[[5.0, 0.0, 0.0, 0.0]]],
    mistakes={
        "the scores were not divided by √d_k": [[[4.6982, 0.0, 0.0, 0.0]]],
        "the scores were divided by the root of d_model, not of d_k": [[[5.26, 0.0, 0.0, 0.0]]],
    },
)
check_unchanged(
    "cross_attention leaves its arguments alone",
    lambda *arguments: cross_attention(*arguments, 2),
    *(X, memory, W_Q, W_K, W_V, W_O),
)
### BEGIN HIDDEN TESTS


def expect_output(*arguments):
    expected = reference.cross_attention(*arguments)
    expect_close(output_of(cross_attention(*arguments)), expected)


def with_memory(n, tokens, *layer):
    # The first n tokens ask, the others are the memory.
    return tokens[:, :n], tokens[:, n:], *layer


@part(
    points=2,
    example="cross_attention(np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0], [60.0]]]), "
    "np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), np.eye(1), 1)",
)
def from_memory(rng):
    "With scores of 0, every token of X gets the average of the memory, even where n and m differ."
    expect_output(*with_memory(3, *undecided_layer(rng, batch=1, n=8, num_heads=1, d_k=4)))
    expect_output(*with_memory(7, *undecided_layer(rng, batch=1, n=11, num_heads=1, d_k=3)))


@part(
    points=2,
    example="cross_attention(np.array([[[5.0, 0.0, 9.0]]]), np.array([[[1.0, 9.0, 0.0], [3.0, 0.0, 9.0]]]), "
    "np.diag([0.0, 1.0, 1.0]), np.diag([0.0, 1.0, 1.0]), np.eye(3), np.array([[1.0, 2, 0], [0, 1, 0], "
    "[0, 0, 1]]), 1)",
)
def one_head(rng):
    "With one head, queries come from X, and keys and values from the memory, each through its own weights."
    expect_output(*with_memory(5, *decided_layer(rng, batch=1, n=10, num_heads=1, d_k=4)))


@part(
    points=2,
    example="cross_attention(np.array([[[5.0, 5.0, 0.0, 9.0]]]), np.array([[[1.0, 2.0, 9.0, 0.0], "
    "[3.0, 4.0, 0.0, 9.0]]]), np.diag([0.0, 0.0, 1.0, 1.0]), np.diag([0.0, 0.0, 1.0, 1.0]), np.eye(4), "
    "np.eye(4), 2)",
)
def several_heads(rng):
    "Each head of each sequence attends by itself."
    # As many tokens on both sides: that the lengths may differ is the matter of other parts.
    expect_output(*with_memory(5, *decided_layer(rng, batch=1, n=10, num_heads=2, d_k=4)))
    expect_output(*with_memory(7, *decided_layer(rng, batch=2, n=14, num_heads=3, d_k=4)))


@part(points=2)
def all_together(rng):
    "The output is right for any tokens, weights and heads, and for a single token in X or in the memory."
    expect_output(*with_memory(5, *random_layer(rng, batch=2, n=12, num_heads=3, d_k=8)))
    expect_output(*with_memory(6, *random_layer(rng, batch=3, n=10, num_heads=2, d_k=7)))
    expect_output(*with_memory(1, *random_layer(rng, batch=2, n=5, num_heads=3, d_k=4)))
    expect_output(*with_memory(6, *random_layer(rng, batch=3, n=7, num_heads=2, d_k=4)))
    expect_output(*with_memory(1, *random_layer(rng, batch=2, n=2, num_heads=3, d_k=2)))


@part(points=1, needs=("from_memory", "one_head"))
def order_of_memory(rng):
    "The memory in another order gives the same output: attention knows no positions."
    X, memory, *rest = with_memory(5, *decided_layer(rng, batch=1, n=12, num_heads=1, d_k=4))
    expected = reference.cross_attention(X, memory, *rest)
    got = output_of(cross_attention(X, memory[:, rng.permutation(7)], *rest))
    expect_close(got, expected)


@part(
    points=1,
    needs="from_memory",
    example="cross_attention(np.ones((1, 2, 2)), np.ones((1, 3, 2)), *np.ones((4, 2, 2)), 2)",
)
def output_alone(rng):
    "The output comes alone, not in a tuple."
    result = cross_attention(*with_memory(3, *undecided_layer(rng, batch=1, n=8, num_heads=1, d_k=4)))
    expect(isinstance(result, np.ndarray), "cross_attention should return one array, the output")


@part(points=1, needs="from_memory")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    cross_attention(*with_memory(5, *random_layer(rng, batch=2, n=12, num_heads=3, d_k=4)))
    expect_unchanged(cross_attention, "cross_attention")


### END HIDDEN TESTS

# %% [markdown] id="count_parameters_text"
# ## 7. `count_parameters`: what must be stored
#
# **Points** {points count_parameters} · **Book** *Several heads*, section *What it costs*
#
# More heads make each head narrower. Does the layer then have more parameters, fewer, or the same number? Count.
#
# Some models save memory: several query heads *share* one head of keys and values (you will build this later).
# There are `num_heads` query heads, but only `num_kv_heads` heads of keys and as many of values, each as wide as
# before. `W_K` and `W_V` become narrower; `W_Q` and `W_O` stay.
#
# **Worked example.**
#
# ```python
# count_parameters(6, 3)                       # 144 = 4 · (6·6)
# count_parameters(6, 3, num_kv_heads=1)       # 96 = 6·6 + 6·2 + 6·2 + 6·6      W_Q, W_K, W_V, W_O
# ```
#
# <details><summary>Hint</summary>
#
# Write down the shapes of the four matrices. Which have a column for each feature of each *query* head, and which
# for each feature of each *key* head?
# </details>

# %% role="solution" item="count_parameters"
from mha_lib.counting import count_parameters

# %% role="test" item="count_parameters"
check_number(
    "eight heads",
    count_parameters(16, 8),
    1024,
    mistakes={
        "each head got full matrices; together the heads have one": 8192,
        "W_O is missing": 768,
        "this is one head, or heads that read d_k features each; all eight should read all features": 128,
        "without num_kv_heads, there are as many heads of keys and values as of queries": 576,
    },
)
check_number("one head has as many", count_parameters(16, 1), 1024)
check_number(
    "eight heads of queries, two of keys and values",
    count_parameters(16, 8, num_kv_heads=2),
    640,
    mistakes={
        "num_kv_heads has no effect": 1024,
        "keys are shared, but values are not": 832,
        "W_O is missing": 384,
    },
)
check_number(
    "the same with biases",
    count_parameters(16, 8, num_kv_heads=2, bias=True),
    680,
    mistakes={
        "the biases are missing": 640,
        "keys and values have as many biases as columns, 4 each": 704,
        "each of the four projections has a bias": 656,
    },
)
### BEGIN HIDDEN TESTS


NUMBER = "the number of parameters"


def expect_count(*arguments, **options):
    right = reference.count_parameters(*arguments, **options)
    expect_number(count_parameters(*arguments, **options), right, NUMBER)


@part(points=1, example="count_parameters(6, 1)")
def one_head(rng):
    "With one head: four matrices, W_O included."
    for d_model in (1, 512, int(rng.integers(9, 99))):
        expect_count(d_model, 1)


@part(points=2, example="count_parameters(6, 3)")
def several_heads(rng):
    "Every head reads all features, and the heads share the columns."
    for heads, d_k in [(2, 5), (12, 64), (int(rng.integers(3, 9)), int(rng.integers(9, 99)))]:
        expect_count(heads * d_k, heads)


@part(points=2, example="count_parameters(6, 3, 1)")
def shared_keys_and_values(rng):
    "With fewer heads of keys and values, W_K and W_V are narrower, and W_Q and W_O are not."
    for kv_heads, times, d_k in [(8, 4, 128), (1, 3, 5), (2, 3, int(rng.integers(9, 99)))]:
        expect_count(kv_heads * times * d_k, kv_heads * times, kv_heads)


@part(points=1, example="count_parameters(6, 3, bias=True)")
def biases(rng):
    "With biases, each of the four projections has one."
    for heads, d_k in [(1, 7), (12, 64), (int(rng.integers(3, 9)), int(rng.integers(9, 99)))]:
        expect_count(heads * d_k, heads, bias=True)


@part(points=1, needs="biases", example="count_parameters(6, 3, 1, True)")
def biases_of_shared_keys_and_values(rng):
    "A projection has as many biases as columns."
    for kv_heads, times, d_k in [(8, 4, 128), (1, 3, 5), (2, 3, int(rng.integers(9, 99)))]:
        expect_count(kv_heads * times * d_k, kv_heads * times, kv_heads, True)


@part(points=1, needs="several_heads", example="count_parameters(6, 3)")
def whole_number(rng):
    "The count is an int, not a float."
    for options in ({}, {"num_kv_heads": 4}, {"bias": True}):
        expect_whole(count_parameters(768, 12, **options), NUMBER)


### END HIDDEN TESTS

# %% [markdown] id="attention_flops_text"
# ## 8. `attention_flops`: what must be computed
#
# **Points** {points attention_flops} · **Book** *Several heads*, section *What it costs*
#
# The product of an `(a, b)` and a `(b, c)` matrix has a·c entries. Each is a sum of b products: b multiplications
# and b additions (the first adds to 0). So it takes 2·a·b·c floating-point operations. The docstring says which
# products count. The number of heads is not an argument: find out why.
#
# **Worked example.** With one token of width 1 there are four projections of 2 operations each, one score and one
# weighted value.
#
# ```python
# attention_flops(1, 1)       # 12 = 4·2 + 2 + 2
# attention_flops(2, 3)       # 192 = 4·(2·2·3·3) + 2·2·3·2 + 2·2·2·3
# ```
#
# <details><summary>Hint: the scores</summary>
#
# In one head, the scores are an `(n, d_k)` matrix times a `(d_k, n)` matrix. How much is that for all heads
# together, if h·d_k = d_model?
# </details>

# %% role="solution" item="attention_flops"
from mha_lib.counting import attention_flops

# %% role="test" item="attention_flops"
check_number(
    "three tokens of width 5",
    attention_flops(3, 5),
    780,
    mistakes={
        "a multiplication and an addition are 2 operations": 390,
        "the four projections are missing": 180,
        "the projection with W_O is missing": 630,
        "only the projections are counted": 600,
        "the weights times the values are missing": 690,
        "n and d_model are exchanged": 660,
        "half of the scores are missing; there is no mask": 720,
    },
)
check_number("one token of width 1", attention_flops(1, 1), 12)
### BEGIN HIDDEN TESTS


NUMBER = "the number of operations"


def flops_of(n, d_model):
    return number_of(attention_flops(n, d_model), NUMBER)


# The count is a·n + b·n². From the counts for n and 2·n tokens both a and b can be told, so that somebody who
# has the projections right and the scores wrong gets points for the projections.


@part(points=2, example="attention_flops(2, 3)")
def projections(rng):
    "The cost in proportion to the number of tokens is that of the four projections."
    for n, d_model in [(3, 512), (int(rng.integers(4, 99)), int(rng.integers(4, 99)))]:
        once, twice = flops_of(n, d_model), flops_of(2 * n, d_model)
        expect(4 * once - twice == 16 * n * d_model**2, "the cost of the projections is not right")


@part(points=2, example="attention_flops(2, 3)")
def scores_and_values(rng):
    "The cost that grows with the square of the number of tokens is that of the scores and the weighted values."
    for n, d_model in [(3, 512), (int(rng.integers(4, 99)), int(rng.integers(4, 99)))]:
        once, twice = flops_of(n, d_model), flops_of(2 * n, d_model)
        expect(twice - 2 * once == 8 * n**2 * d_model, "the cost of scores and weighted values is not right")


@part(points=1, needs=("projections", "scores_and_values"), example="attention_flops(2, 3)")
def all_together(rng):
    "The whole count is right."
    for n, d_model in [(1024, 768), (1, 1), (int(rng.integers(4, 99)), int(rng.integers(4, 99)))]:
        expect_number(attention_flops(n, d_model), reference.attention_flops(n, d_model), NUMBER)


@part(points=1, needs="all_together", example="attention_flops(2, 3)")
def whole_number(rng):
    "The count is an int, not a float."
    expect_whole(attention_flops(1024, 768), NUMBER)


### END HIDDEN TESTS

# %% [markdown] id="see_costs"
# **Look at it.** The first table splits the same layer into 1, 8, 64 and 512 heads. The second shows layers of
# published models; its last column compares them with the same layer without sharing. The figure shows the share
# of the work in scores and weighted values: it grows with the square of the length, and the projections only with
# the length. Where do they meet, and does this depend on the width?

# %% role="show" id="show_costs"
print("d_model = 512   heads    d_k   parameters")
for heads in (1, 8, 64, 512):
    print(f"{heads:21d} {512 // heads:6d} {count_parameters(512, heads):12,d}")

MODELS = {  # d_model, heads, heads of keys and values, biases
    "BERT-base": (768, 12, 12, True),
    "GPT-2": (768, 12, 12, True),
    "GPT-3": (12288, 96, 96, True),
    "Llama 2 7B": (4096, 32, 32, False),
    "Llama 2 70B": (8192, 64, 8, False),
}
print("\nmodel         d_model  heads  of K and V    d_k   parameters   without sharing: 100%")
for name, (d_model, heads, kv_heads, bias) in MODELS.items():
    count, full = (count_parameters(d_model, heads, kv, bias) for kv in (kv_heads, heads))
    sizes = f"{d_model:7d} {heads:6d} {kv_heads:11d} {d_model // heads:6d}"
    print(f"{name:12s} {sizes} {count:12,d} {count / full:23.1%}")

figure, axes = plt.subplots(figsize=(6, 3.5))
for d_model, style in [(256, "-"), (1024, "--"), (4096, ":")]:
    lengths = 2 ** np.arange(6, 17)
    shares = [1 - 8 * int(n) * d_model**2 / attention_flops(int(n), d_model) for n in lengths]
    axes.plot(lengths, shares, style, color="black", label=f"d_model = {d_model}")
    axes.plot(2 * d_model, 0.5, "o", color="black")
axes.axhline(0.5, linewidth=0.5, color="grey")
axes.set(xlabel="tokens n", ylabel="share of scores and values", ylim=(0, 1))
axes.set_xscale("log", base=2)
axes.set_title("half of the work at n = 2·d_model (dots)")
axes.legend()
figure.tight_layout()
plt.show()

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check multi_head.ipynb` runs the hidden tests on your code.
