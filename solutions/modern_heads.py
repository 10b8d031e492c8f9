# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: modern_heads, version: "1.1"}
# ---

# %% role="author"
from checks import check_close, check_equal, check_kinds, check_raises, check_unchanged
from types import SimpleNamespace

import numpy as np

from mha_grader.testing import (
    CallError,
    Mismatch,
    decided_layer,
    expect,
    expect_answer,
    expect_close,
    expect_gradients,
    expect_raises,
    expect_unchanged,
    output_of,
    part,
    part_for_each,
    random_layer,
    random_mask,
    tensor,
    undecided_layer,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # Heads in today's models
#
# The heads of 2017 know nothing about order, cache a key and a value for every head and token, and put no limit on
# their scores. You build what most models use instead: rotary positions, a sliding window, keys and values from
# one small latent vector (and the trick that avoids forming them), and queries and keys of length 1.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `rotary` | {points rotary} | 3 | 5 | 35 |
# | 2 | `sliding_window_mask` | {points sliding_window_mask} | 2 | 4 | 15 |
# | 3 | `latent_attention` | {points latent_attention} | 3 | 4 | 30 |
# | 4 | `latent_attention_absorbed` | {points latent_attention_absorbed} | 4 | 3 | 40 |
# | 5 | `qk_norm_attention` | {points qk_norm_attention} | 2 | 4 | 20 |
# | 6 | `answers` | {points answers} | 3 | 4 | 25 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the names and the parameters, and run the check below. It prints `ok`, or
# one sentence that says what is wrong. No item needs your code from another one. You may add cells and functions.
# Keep the other files of this folder beside the notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right.
#
# `batch` counts sequences, `n` queries, `m` keys and values, and `num_heads` heads. `d_model` is the width of the
# layer, `d_k` that of a head's queries and keys, `d_v` that of its values, and `d_c` that of the latent vectors.
# Tensors are in `float32` unless a docstring says otherwise. No function changes its arguments in place. In a
# **mask**, `True` means that the query *may* attend to the key; every query has at least one key.

# %% role="given" id="imports"
import torch
from torch import nn

# %% role="show" id="imports_for_checks"
import math

import matplotlib.pyplot as plt
from checks import (
    check_answers,
    check_latent_attention,
    check_latent_attention_absorbed,
    check_qk_norm_attention,
    check_rotary,
    check_sliding_window_mask,
)

# %% [markdown] id="given_text"
# **Given:** `attention` from the assignment on batched attention. Its code is in `given.py` beside this notebook.
# Use it where you like.

# %% role="given" id="given_attention"
from mha_lib.torch_attention import attention

# %% [markdown] id="rotary_text"
# ## 1. `rotary`: positions that rotate queries and keys
#
# **Points** {points rotary} · **Book** *Position and heads*, section *Rotary positions*
#
# The features of a query are taken in pairs, and each pair is a point of a plane. For a token at position p, each
# pair is rotated by an angle that grows with p. Keys are rotated in the same way. In the dot product of a query at
# position p and a key at position r the two angles are subtracted, so the score depends on p − r alone.
#
# There are two conventions for pairs. Here it is the **half-split** one: features i and i + d_k/2 are a pair, for
# i from 0 to d_k/2 − 1. (The other, *interleaved*, pairs features 2i and 2i + 1. Weights trained with one do not
# work with the other.) Pair i of a token at position p is rotated by the angle θ:
#
# $$\theta = p \cdot \text{base}^{-2i/d_k}, \qquad
# (a, b) \mapsto (a\cos\theta - b\sin\theta,\; a\sin\theta + b\cos\theta).$$
#
# **Worked example.** Four features make two pairs: (0, 2) and (1, 3). With `base=100.0` they rotate by p and by p
# · 100^(−2/4) = p/10.
#
# ```python
# x = torch.tensor([[[[1.0, 1.0, 0.0, 0.0]]]])                # (batch, heads, n, d_k) = (1, 1, 1, 4)
# rotary(x, torch.tensor([10]), base=100.0)
# # [[[[-0.8391, 0.5403, -0.5440, 0.8415]]]]                   cos 10, cos 1, sin 10, sin 1
# ```
#
# <details><summary>Hint: shapes</summary>
#
# `positions[..., None] * speeds` has the shape `(n, d_k/2)` or `(batch, n, d_k/2)`. The second needs an axis for
# the heads before it can meet `x`: `unsqueeze(-3)` inserts one, and does no harm to the first.
# </details>
#
# <details><summary>Hint: halves</summary>
#
# `first, second = x.chunk(2, dim=-1)` cuts the features into halves, and `torch.cat([...], dim=-1)` joins two
# halves.
# </details>

# %% role="solution" item="rotary"
from mha_lib.positions import rotary

# %% role="test" item="rotary"
x = torch.tensor([[[[1.0, 1.0, 0.0, 0.0]]]])  # (batch, heads, n, d_k) = (1, 1, 1, 4)
check_close(
    "the worked example",
    rotary(x, torch.tensor([10]), base=100.0),
    torch.tensor([[[[-0.8391, 0.5403, -0.5440, 0.8415]]]]),
    tolerance=1e-3,
    mistakes={
        "neighbouring features are paired, but feature 0 belongs with feature 2": [
            [[[-0.2950, -1.3831, 0.0, 0.0]]]
        ],
        "the pairs are rotated the other way": [[[[-0.8391, 0.5403, 0.5440, -0.8415]]]],
        "all pairs are rotated by the same angle": [[[[-0.8391, -0.8391, -0.5440, -0.5440]]]],
        "cosine and sine are exchanged": [[[[-0.5440, 0.8415, -0.8391, 0.5403]]]],
        "the exponent should be −2i/d_k; this is −i/d_k": [[[[-0.8391, -0.9998, -0.5440, -0.0206]]]],
    },
)
x = torch.arange(24.0).view(1, 2, 3, 4).sin()  # (batch, heads, n, d_k)
check_unchanged("rotary leaves its arguments alone", rotary, x, torch.tensor([0, 1, 2]))
check_close("a token at position 0 stays as it is", rotary(x, torch.tensor([0, 1, 2]))[:, :, 0], x[:, :, 0])
check_close(
    "the last tokens of a longer sequence",
    rotary(x, torch.tensor([7, 8, 9]))[0, 0, 2],
    torch.tensor([-0.6772, 0.5003, 0.9034, -0.9589]),
    tolerance=1e-3,
    mistakes={
        "the tokens were counted from 0; the angles should use positions": [0.0830, 0.4320, 1.1260, -0.9915],
    },
)
both = rotary(
    x.expand(2, 2, 3, 4), torch.tensor([[0, 1, 2], [7, 8, 9]])
)  # each sequence has its own positions
check_close("positions of each sequence", both[1], rotary(x, torch.tensor([7, 8, 9]))[0])
check_raises(
    "an odd width is refused",
    rotary,
    torch.ones(1, 1, 2, 5),
    torch.arange(2),
    error=ValueError,
    mentions=(5,),
)
### BEGIN HIDDEN TESTS

import torch


def features(rng, *shape):
    return tensor(rng.normal(size=shape))


def expect_turned(x, positions, *base):
    got = rotary(x, tensor(positions), *base)
    if isinstance(got, torch.Tensor) and got.is_floating_point():
        got = got.float()  # the dtype has a part of its own
    expect_close(got, reference.rotary(x, tensor(positions), *base), tolerance=1e-4)


ONE = "rotary(torch.ones(1, 1, 3, 2), torch.arange(3))"


@part(points=2, example=ONE)
def one_pair(rng):
    "With two features there is one pair, which is rotated by the position itself."
    expect_turned(features(rng, 2, 3, 5, 2), np.arange(5))
    expect_turned(features(rng, 1, 3, 2, 2), np.arange(2))


@part(points=2, example="rotary(torch.arange(4.0).view(1, 1, 1, 4), torch.tensor([1]), 1.0)")
def pairs(rng):
    "Features i and i + d_k/2 are a pair; with base 1 all pairs are rotated by the same angle."
    expect_turned(features(rng, 2, 3, 5, 6), np.arange(5), 1.0)
    expect_turned(features(rng, 3, 1, 4, 8), np.arange(4), 1.0)


@part(points=2, needs="pairs", example="rotary(torch.ones(1, 1, 2, 4), torch.tensor([0, 5]))")
def speeds(rng):
    "Pair i is rotated by the position times base^(−2i/d_k), with base 10,000 by default."
    for d_k in (4, 6, 10):
        expect_turned(features(rng, 2, 3, 5, d_k), np.arange(5))


@part(points=1, needs="pairs", example="rotary(torch.ones(1, 1, 2, 4), torch.tensor([0, 5]), 100.0)")
def other_bases(rng):
    "The argument base is used."
    for base in (100.0, 500000.0):
        expect_turned(features(rng, 2, 3, 5, 6), np.arange(5), base)


@part(points=2, needs="one_pair", example="rotary(torch.ones(1, 1, 2, 2), torch.tensor([3, 5]))")
def any_positions(rng):
    "Positions need not start at 0 or be consecutive, as when a cache holds earlier tokens."
    expect_turned(features(rng, 2, 3, 5, 2), rng.choice(np.arange(1, 500), 5, replace=False))
    expect_turned(features(rng, 2, 3, 5, 2), np.arange(5) + rng.integers(5, 100))
    expect_turned(features(rng, 4, 3, 4, 2), np.arange(4) + rng.integers(5, 100))  # as many as sequences
    expect_turned(features(rng, 2, 4, 4, 2), np.arange(4) + rng.integers(5, 100))  # as many as heads


@part(
    points=1,
    needs="one_pair",
    example="rotary(torch.ones(2, 1, 2, 2), torch.tensor([[0, 1], [3, 4]]))",
)
def positions_of_each_sequence(rng):
    "Positions of shape (batch, n) give each sequence its own positions."
    for heads in (3, 2):
        expect_turned(features(rng, 3, heads, 5, 2), rng.choice(np.arange(1, 500), (3, 5), replace=False))
    expect_turned(features(rng, 4, 2, 4, 2), rng.choice(np.arange(1, 500), (4, 4), replace=False))


@part(points=1, needs="one_pair", example="rotary(torch.ones(1, 1, 2, 3), torch.arange(2))")
def odd_width(rng):
    "An odd d_k raises a ValueError whose text mentions it."
    expect_raises(rotary, features(rng, 2, 3, 4, 7), torch.arange(4), error="ValueError", mentions=("7",))
    wide = features(rng, 1, 2, 3, 1001)
    expect_raises(rotary, wide, torch.arange(3), error="ValueError", mentions=("1001",))
    expect_raises(rotary, features(rng, 1, 2, 3, 1), torch.arange(3), error="ValueError", mentions=("1",))


@part(
    points=1,
    needs="one_pair",
    example="rotary(torch.ones(1, 1, 2, 2), torch.arange(2)).dtype == torch.float32",
)
def dtype(rng):
    "The result has the dtype of x: float32 for float32, and float64 for float64."
    for move in (torch.float32, torch.float64):
        x = features(rng, 2, 3, 5, 2).to(move)
        expect_close(rotary(x, torch.arange(5)), reference.rotary(x, torch.arange(5)), tolerance=1e-4)


@part(points=1, needs="one_pair")
def gradient(rng):
    "Gradients reach x, and are right."
    arguments = [features(rng, 2, 3, 5, 2), torch.arange(5)]
    expect_gradients(rng, rotary, reference.rotary, arguments, [0])


@part(points=1, needs="one_pair")
def input_unchanged(rng):
    "The caller's tensors are unchanged."
    rotary(features(rng, 2, 3, 5, 2), torch.arange(5))
    expect_unchanged(rotary, "rotary")


### END HIDDEN TESTS

# %% [markdown] id="see_rotary"
# **Look at it.** The plot shows the score of the same query and the same key at growing distances. Each curve has
# its query at another position. The curves coincide: the score depends on the distance alone.

# %% role="show" id="plot_rotary"
torch.manual_seed(0)
query, key = torch.ones(1, 1, 1, 64), torch.ones(1, 1, 1, 64)
distances = torch.arange(100)
fig, ax = plt.subplots(figsize=(7, 3))
for start, style in ((100, "-"), (1000, "--"), (5000, ":")):
    turned = rotary(query, torch.tensor([start]))
    keys = rotary(key.expand(1, 1, 100, 64), start - distances)
    ax.plot(distances, (turned * keys).sum(-1).squeeze(), style, label=f"query at {start}")
ax.set(xlabel="tokens between query and key", ylabel="score", title="scores depend on the distance alone")
ax.legend()
plt.show()

# %% [markdown] id="sliding_window_mask_text"
# ## 2. `sliding_window_mask`: a limit on how far back a query sees
#
# **Points** {points sliding_window_mask} · **Book** *Position and heads*, section *Windows and sinks*
#
# A head that sees only the last w tokens needs at most w keys in its cache, however long the text is. Many models
# give most layers a window and let every few layers see everything.
#
# <details><summary>Hint</summary>
#
# How far back is key j, seen from query i? Query i lines up with key i + m − n. `torch.arange` and `[:, None]`
# give a table of all distances at once.
# </details>

# %% role="solution" item="sliding_window_mask"
from mha_lib.positions import sliding_window_mask

# %% role="test" item="sliding_window_mask"
causal = torch.ones(4, 4, dtype=torch.bool).tril()
check_equal(
    "a window of one",
    sliding_window_mask(4, 4, window=1),
    torch.eye(4, dtype=torch.bool),
    mistakes={
        "the window holds one key too many: the query's own key counts": causal.triu(-1),
        "no key on the left is hidden: this is the causal mask": causal,
    },
)
check_equal(
    "a window of two",
    sliding_window_mask(3, 4, window=2),
    torch.tensor([[True, True, False, False], [False, True, True, False], [False, False, True, True]]),
    mistakes={
        "the left edge is lined up with the first key: it lacks m − n": [
            [True, True, False, False],
            [True, True, True, False],
            [False, True, True, True],
        ],
        "the first query is lined up with the first key": [
            [True, False, False, False],
            [True, True, False, False],
            [False, True, True, False],
        ],
        "no key on the left is hidden: this is the causal mask": [
            [True, True, False, False],
            [True, True, True, False],
            [True, True, True, True],
        ],
    },
)
check_equal(
    "a window that holds everything",
    sliding_window_mask(5, 5, window=9),
    torch.ones(5, 5, dtype=torch.bool).tril(),
)
check_raises("a window of size 0 is refused", sliding_window_mask, 3, 4, 0, error=ValueError, mentions=(0,))
### BEGIN HIDDEN TESTS

import torch


def expect_mask(n, m, window):
    got = sliding_window_mask(n, m, window)
    if isinstance(got, torch.Tensor):
        got = got.float()  # the dtype has a part of its own
    expect_close(got, reference.sliding_window_mask(n, m, window).float(), 0, what="the mask")


@part(points=2, example="sliding_window_mask(4, 4, 2)")
def as_many_keys_as_queries(rng):
    "A query sees itself and the window − 1 keys before it."
    for n, window in ((7, 3), (9, 4), (5, 2)):
        expect_mask(n, n, window)


@part(points=1, example="sliding_window_mask(3, 3, 1)")
def window_of_one(rng):
    "With a window of 1 a query sees its own key alone."
    expect_mask(6, 6, 1)


@part(points=2, needs="as_many_keys_as_queries", example="sliding_window_mask(2, 4, 2)")
def more_keys_than_queries(rng):
    "With more keys than queries the last query lines up with the last key."
    for n, m, window in ((3, 8, 3), (1, 6, 2), (4, 5, 2)):
        expect_mask(n, m, window)


@part(points=1, needs="as_many_keys_as_queries", example="sliding_window_mask(3, 3, 5)")
def wide_window(rng):
    "A window that holds all keys hides only later keys."
    for n, m, window in ((5, 5, 5), (5, 5, 50), (2, 6, 7)):
        expect_mask(n, m, window)


@part(points=1, needs="as_many_keys_as_queries", example="sliding_window_mask(2, 2, 1)")
def boolean(rng):
    "The mask is boolean."
    got = sliding_window_mask(4, 6, 3)
    expect(got.dtype == torch.bool, f"the mask should be boolean, but its dtype is {got.dtype}")


@part(points=1, needs="as_many_keys_as_queries", example="sliding_window_mask(2, 2, 0)")
def window_of_nothing(rng):
    "A window below 1 raises a ValueError whose text mentions it."
    expect_raises(sliding_window_mask, 4, 6, 0, error="ValueError", mentions=("0",))
    expect_raises(sliding_window_mask, 4, 6, -7, error="ValueError", mentions=("7",))
    expect_raises(sliding_window_mask, 4, 6, -7000, error="ValueError", mentions=("7000",))


### END HIDDEN TESTS

# %% [markdown] id="latent_attention_text"
# ## 3. `latent_attention`: keys and values from one narrow vector
#
# **Points** {points latent_attention} · **Book** *Heads since 2023*, section *Latent attention*
#
# An ordinary cache keeps the keys and values of all heads for every token. Latent attention keeps one vector
# instead, c = x W_DKV, narrower than all of them together, and makes the keys and values of every head from it:
#
# $$c = x W_{DKV}, \qquad K = c\,W_{UK}, \qquad V = c\,W_{UV}, \qquad Q = x W_Q.$$
#
# D stands for *down*, U for *up*. The rest is multi-head attention.
#
# <details><summary>Hint</summary>
#
# `unflatten(-1, (num_heads, -1))` cuts the last axis into heads of whatever width they have.
# </details>


# %% role="check"
def numbers(*shape, start):
    """Numbers that are the same for everyone."""
    return (1.7 * torch.arange(float(math.prod(shape))) + start).sin().view(shape)


latent_layer = [  # x and W_Q, W_DKV, W_UK, W_UV, W_O: d_model = 6, two heads, d_k = 4, d_v = 2, d_c = 3
    numbers(*shape, start=start)
    for start, shape in enumerate([(1, 3, 6), (6, 8), (6, 3), (3, 8), (3, 4), (4, 6)])
]
latent_output = torch.tensor([-1.8047, -0.8404, 2.0212, 0.3195, -2.1036, 0.2226])  # of the first token

# %% role="solution" item="latent_attention"
from mha_lib.modern_heads import latent_attention

# %% role="test" item="latent_attention"
x = torch.tensor([[[2.0, 0.0], [4.0, 0.0]]])  # (batch, n, d_model) = (1, 2, 2)
W_Q, W_DKV = torch.zeros(2, 2), torch.tensor([[1.0], [0.0]])  # (d_model, heads * d_k), (d_model, d_c)
W_UK, W_UV, W_O = torch.ones(1, 2), torch.tensor([[1.0, 10.0]]), torch.eye(2)
means = torch.tensor([[[3.0, 30.0], [3.0, 30.0]]])
check_close(
    "the worked example",
    latent_attention(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads=2),
    means,
    mistakes={"the values were made with W_UK, like the keys; use W_UV": [[[3.0, 3.0], [3.0, 3.0]]]},
)

check_close(
    "output with widths that all differ",
    latent_attention(*latent_layer, num_heads=2)[0, 0],
    latent_output,
    tolerance=1e-3,
)
causal = torch.ones(3, 3, dtype=torch.bool).tril()
check_close(
    "under a causal mask the first token stands alone",
    latent_attention(*latent_layer, 2, causal)[:, :1],
    latent_attention(latent_layer[0][:, :1], *latent_layer[1:], 2),
)
check_unchanged("latent_attention leaves its arguments alone", latent_attention, *latent_layer, 2, causal)
### BEGIN HIDDEN TESTS

import torch


def latent(rng, layer, d_c=5):
    """A latent layer that gives what an ordinary one gives: its latents hold what the keys are made of.

    The values are made of all latents, and are 1 apart or so. W_DKV keeps the first three features, which the keys
    of `decided_layer` are made of.
    """
    X, W_Q, W_K, _, W_O, num_heads = layer
    d_model, width = W_Q.shape
    W_DKV = rng.normal(size=(d_model, d_c))
    W_DKV[:, :3], W_DKV[:3] = 0.0, 0.0
    W_DKV[:3, :3] = np.eye(3)
    W_UK = np.zeros((d_c, width))
    W_UK[:3] = W_K[:3]
    W_UV = rng.normal(size=(d_c, len(W_O))) / np.sqrt(d_c)
    return [*map(tensor, (X, W_Q, W_DKV, W_UK, W_UV, W_O)), num_heads]


def drawn(rng, batch, n, d_model, num_heads, d_k, d_v, d_c):
    """A latent layer of random numbers, whose widths can be any."""
    shapes = [(d_model, num_heads * d_k), (d_model, d_c), (d_c, num_heads * d_k), (d_c, num_heads * d_v)]
    weights = [rng.normal(size=shape) / shape[0] ** 0.5 for shape in (*shapes, (num_heads * d_v, d_model))]
    return [*map(tensor, (2.0 * rng.normal(size=(batch, n, d_model)), *weights)), num_heads]


def expect_output(*arguments):
    expect_close(
        output_of(latent_attention(*arguments)), reference.latent_attention(*arguments), tolerance=1e-4
    )


@part(
    points=2,
    example="latent_attention(torch.eye(2)[None], torch.zeros(2, 2), torch.tensor([[1.0], [2.0]]), "
    "torch.ones(1, 2), torch.tensor([[1.0, 3.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0]]), 1)",
)
def values(rng):
    "With one head and queries of 0, each token gets the mean of all values c W_UV, multiplied by W_O."
    expect_output(*latent(rng, undecided_layer(rng, 2, 5, 1, 6)))
    expect_output(*latent(rng, undecided_layer(rng, 3, 1, 1, 4)))


@part(
    points=2,
    example="latent_attention(torch.eye(2)[None], 50 * torch.eye(2), torch.tensor([[1.0], [2.0]]), "
    "torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, 3.0]]), torch.eye(2), 1)",
)
def queries_and_keys(rng):
    "With one head, a token attends to the keys c W_UK that match its query x W_Q, and gets their values."
    expect_output(*latent(rng, decided_layer(rng, 2, 5, 1, 6)))


@part(
    points=2,
    example="latent_attention(torch.eye(2)[None], 0 * torch.eye(2), torch.tensor([[1.0], [2.0]]), "
    "torch.ones(1, 2), torch.tensor([[1.0, 3.0]]), torch.eye(2), 2)",
)
def several_heads(rng):
    "Head i works with its own columns of queries, keys and values, made from all of c."
    expect_output(*latent(rng, decided_layer(rng, 2, 5, 3, 4)))
    expect_output(*latent(rng, decided_layer(rng, 1, 4, 2, 5), d_c=7))


@part(
    points=2,
    needs="queries_and_keys",
    example="latent_attention(torch.eye(4)[None], 2 * torch.eye(4), torch.eye(4)[:, :2], torch.eye(4)[:2], "
    "torch.eye(4)[:2], torch.eye(4), 1)",
)
def scale(rng):
    "The scores are divided by the root of the width d_k of one head's queries and keys."
    expect_output(*drawn(rng, 2, 5, 6, 1, 6, 6, 3))


@part(points=1, needs=("scale", "several_heads"))
def all_together(rng):
    "The output is right with several heads and scores of every size."
    expect_output(*drawn(rng, 2, 5, 12, 3, 4, 4, 7))


@part(points=2, needs="values")
def widths(rng):
    "The widths of heads come from the weights: heads·d_k need not be d_model, and d_v need not be d_k."
    expect_output(*drawn(rng, 2, 5, 6, 2, 5, 4, 3))
    expect_output(*drawn(rng, 2, 4, 8, 2, 1, 3, 9))


@part(
    points=1,
    needs="values",
    example="latent_attention(torch.eye(2)[None], torch.zeros(2, 2), torch.tensor([[1.0], [2.0]]), "
    "torch.ones(1, 2), torch.tensor([[1.0, 3.0]]), torch.eye(2), 1, torch.tensor([[True, False], [True, True]]))",
)
def mask(rng):
    "Under a mask of shape (n, n) a token attends to the tokens for which its row is True."
    expect_output(*latent(rng, undecided_layer(rng, 2, 5, 1, 6)), tensor(random_mask(rng, 5, 5)))
    # Whether the scores are right has parts of its own.
    arguments, everything = drawn(rng, 2, 5, 6, 1, 6, 6, 3), torch.ones(5, 5, dtype=torch.bool)
    without = output_of(latent_attention(*arguments))
    expect_close(
        output_of(latent_attention(*arguments, everything)), without, 1e-4, "the output with all keys"
    )


@part(points=1, needs="mask")
def mask_for_each_sequence(rng):
    "A mask of shape (batch, 1, n, n) gives each sequence its own mask, the same for all heads."
    expect_output(*latent(rng, undecided_layer(rng, 2, 5, 3, 4)), tensor(random_mask(rng, 2, 1, 5, 5)))


@part(points=1, needs="scale")
def gradient(rng):
    "Gradients of the output reach x and all five weights."
    arguments = drawn(rng, 2, 5, 6, 1, 6, 6, 3)
    expect_gradients(rng, latent_attention, reference.latent_attention, arguments, range(6), tolerance=1e-3)


@part(points=1, needs="values")
def inputs_unchanged(rng):
    "The caller's tensors are unchanged, and the output comes alone."
    result = latent_attention(*latent(rng, random_layer(rng, 2, 5, 1, 6)), tensor(random_mask(rng, 5, 5)))
    expect_unchanged(latent_attention, "latent_attention")
    expect(not isinstance(result, tuple | list), "latent_attention should return one tensor, the output")


### END HIDDEN TESTS

# %% [markdown] id="latent_attention_absorbed_text"
# ## 4. `latent_attention_absorbed`: the same without a key or a value
#
# **Points** {points latent_attention_absorbed} · **Book** *Heads since 2023*, section *The absorbed form*
#
# A cache of c saves memory. But if the model makes the keys and values of all earlier tokens from it for every
# new token, this adds a lot of work. It need not do so: a score is
#
# $$q \cdot (c\,W_{UK}) = (q\,W_{UK}^\top) \cdot c,$$
#
# so you can apply W_UK to the query, once, and compare the result with c itself. The values can wait as well: first
# average the c's, then multiply the average by W_UV. Keys and values are never formed.
#
# **Worked example.** The second feature of the two tokens, ±1e9, is their latent. Multiplied by 1e30, it does not
# fit into `float32`, but the average of the two latents is 0.
#
# ```python
# x = torch.tensor([[[3.0, 1e9], [3.0, -1e9]]])
# W_UK, W_UV = torch.tensor([[0.0], [1e30]]), torch.tensor([[1.0], [1e30]])
# latent_attention_absorbed(x, torch.zeros(2, 1), torch.eye(2), W_UK, W_UV, torch.ones(1, 2), num_heads=1)
# # [[[3.0, 3.0], [3.0, 3.0]]]
# ```
#
# <details><summary>Hint: each head's block</summary>
#
# Head i's block of W_UK consists of its columns i·d_k to (i+1)·d_k − 1. For a batched product the blocks need an
# axis of their own: `W_UK.unflatten(-1, (num_heads, -1))` is `(d_c, heads, d_k)`; `permute` gives the order that
# you need. A `reshape` straight to `(heads, …)` gives the right shape and the wrong numbers.
# </details>
#
# <details><summary>Hint: the scale</summary>
#
# The compared vectors are now d_c wide, but the score is still that of a query and a key of width d_k. The given
# `attention` divides by the root of the width that it sees.
# </details>

# %% role="solution" item="latent_attention_absorbed"
from mha_lib.modern_heads import latent_attention_absorbed

# %% role="test" item="latent_attention_absorbed" borrow="modern_heads.latent_attention" share=0.5
check_close(
    "the worked example of item 3",
    latent_attention_absorbed(
        torch.tensor([[[2.0, 0.0], [4.0, 0.0]]]),
        torch.zeros(2, 2),
        torch.tensor([[1.0], [0.0]]),
        torch.ones(1, 2),
        torch.tensor([[1.0, 10.0]]),
        torch.eye(2),
        num_heads=2,
    ),
    torch.tensor([[[3.0, 30.0], [3.0, 30.0]]]),
)
check_close(
    "output with widths that all differ",
    latent_attention_absorbed(*latent_layer, num_heads=2)[0, 0],
    latent_output,
    tolerance=1e-3,
)
large = torch.tensor([[[3.0, 1e9], [3.0, -1e9]]])  # (batch, n, d_model) = (1, 2, 2)
check_close(
    "where a value would overflow",
    latent_attention_absorbed(
        large,
        torch.zeros(2, 1),
        torch.eye(2),
        torch.tensor([[1.0], [0.0]]),
        torch.tensor([[1.0], [1e30]]),
        torch.ones(1, 2),
        num_heads=1,
    ),
    torch.full((1, 2, 2), 3.0),
)
check_close(
    "where a key would overflow",
    latent_attention_absorbed(
        large,
        torch.zeros(2, 1),
        torch.eye(2),
        torch.tensor([[0.0], [1e30]]),
        torch.tensor([[1.0], [0.0]]),
        torch.ones(1, 2),
        num_heads=1,
    ),
    torch.full((1, 2, 2), 3.0),
)
### BEGIN HIDDEN TESTS


def overflowing(rng, of_keys, of_values):
    """One head and two tokens, whose last latent is huge and of either sign; queries are 0, so both weigh 1/2."""
    x = rng.normal(size=(2, 2, 3))
    x[..., 2] = [1e9, -1e9]
    W_UK, W_UV = rng.normal(size=(2, 3, 3))
    W_UK[2], W_UV[2] = of_keys, of_values
    weights = (np.zeros((3, 3)), np.eye(3), W_UK, W_UV, np.eye(3))
    return [*map(tensor, (x, *weights)), 1]


def expect_finite(arguments):
    got = output_of(latent_attention_absorbed(*arguments))
    expect_close(got, reference.latent_attention_absorbed(*arguments), tolerance=1e-4)


@part(
    points=2,
    example="latent_attention_absorbed(torch.tensor([[[1e9], [-1e9]]]), torch.zeros(1, 1), torch.eye(1), "
    "torch.tensor([[1e30]]), torch.zeros(1, 1), torch.eye(1), 1)",
)
def no_key_is_formed(rng):
    "Keys that would overflow do no harm, since they are never formed."
    expect_finite(overflowing(rng, 1e30, 0.0))


@part(
    points=2,
    example="latent_attention_absorbed(torch.tensor([[[1e9], [-1e9]]]), torch.zeros(1, 1), torch.eye(1), "
    "torch.zeros(1, 1), torch.tensor([[1e30]]), torch.eye(1), 1)",
)
def no_value_is_formed(rng):
    "Values that would overflow do no harm, since the latents are averaged."
    expect_finite(overflowing(rng, 0.0, 1e30))


### END HIDDEN TESTS

# %% [markdown] id="see_latent"
# **Look at it.** The cell counts the numbers that one token leaves in the cache of one layer: keys and values of
# all heads, those of heads that share, and the latent. The sizes are those of DeepSeek-V2, whose latents are 512
# wide; its positions need one more key of width 64, which all heads share.

# %% role="show" id="measure_latent"
heads, width = 128, 128
kept = {
    "all heads": 2 * heads * width,
    "8 heads of keys and values": 2 * 8 * width,
    "1 head of keys and values": 2 * width,
    "latent, and a key for positions": 512 + 64,
}
for name, numbers_kept in kept.items():
    print(f"{name:32} {numbers_kept:6} numbers a token")

# %% [markdown] id="qk_norm_attention_text"
# ## 5. `qk_norm_attention`: scores from angles alone
#
# **Points** {points qk_norm_attention} · **Book** *Heads since 2023*, section *Scores that stay small*
#
# In training, queries and keys can become longer and longer, and their scores larger, until the softmax saturates
# and no gradient passes. If we divide queries and keys by their lengths, a score is the cosine of the angle
# between them, at most 1. Each head multiplies its cosines by a learned number g, which takes the place of
# 1/√d_k.
#
# <details><summary>Hint</summary>
#
# `q.norm(dim=-1, keepdim=True)` is the length of each query. If you use the given `attention`, remember that it
# divides by √d_k.
# </details>

# %% role="solution" item="qk_norm_attention"
from mha_lib.modern_heads import qk_norm_attention

# %% role="test" item="qk_norm_attention"
q = torch.tensor([[[[5.0, 0.0]]]])  # (batch, heads, n, d_k) = (1, 1, 1, 2)
k = torch.tensor([[[[7.0, 0.0], [0.0, 9.0]]]])  # (batch, heads, m, d_k) = (1, 1, 2, 2)
v = torch.tensor([[[[4.0], [0.0]]]])  # (batch, heads, m, d_v)
g = torch.tensor([[[3.0]]]).log()  # (heads, 1, 1)
check_close(
    "the worked example",
    qk_norm_attention(q, k, v, g),
    torch.tensor([[[[3.0]]]]),
    mistakes={
        "the scores are still divided by √d_k": [[[[2.7398]]]],
        "g is missing: the scores are the cosines": [[[[2.9242]]]],
        "the queries are not divided by their length": [[[[3.9836]]]],
        "the keys are not divided by their length": [[[[3.9982]]]],
    },
)
check_close(
    "longer queries and keys change nothing",
    qk_norm_attention(10 * q, 3 * k, v, g),
    torch.tensor([[[[3.0]]]]),
)
check_close(
    "a query of zeros sees all keys alike", qk_norm_attention(0 * q, k, v, g), torch.tensor([[[[2.0]]]])
)
two_heads = [tensor.expand(1, 2, *tensor.shape[2:]) for tensor in (q, k, v)]
check_close(
    "each head has a g of its own",
    qk_norm_attention(*two_heads, torch.tensor([[[3.0]], [[1.0]]]).log()),
    torch.tensor([[[[3.0]], [[2.0]]]]),
)
check_close(
    "under a mask", qk_norm_attention(q, k, v, g, torch.tensor([[False, True]])), torch.tensor([[[[0.0]]]])
)
check_unchanged("qk_norm_attention leaves its arguments alone", qk_norm_attention, q, k, v, g)
### BEGIN HIDDEN TESTS

import torch


def qkv(rng, batch=2, heads=1, n=5, m=7, d_k=1, d_v=6):
    """Queries and keys of many lengths. If they are 1 wide, their cosines are 1 and −1."""
    q, k = rng.normal(size=(batch, heads, n, d_k)), rng.normal(size=(batch, heads, m, d_k))
    q, k = q + 0.3 * np.sign(q), k + 0.3 * np.sign(k)  # none is too short for the 1e-6
    return [tensor(array) for array in (q, k, 0.5 + rng.normal(size=(batch, heads, m, d_v)))]


def factors(rng, heads):
    return tensor(rng.permutation(np.linspace(1.5, 4.0, heads))[:, None, None])


def expect_output(*arguments, tolerance=1e-4):
    got = output_of(qk_norm_attention(*arguments))
    expect_close(got, reference.qk_norm_attention(*arguments), tolerance)


@part(
    points=2,
    example="qk_norm_attention(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 2, 2), torch.tensor([[[[0.0], [10.0]]]]), "
    "torch.tensor([[[2.0]]]))",
)
def equal_scores(rng):
    "If all keys point in the same direction, each query gets the mean of the values."
    q, k, v = qkv(rng, heads=3, d_k=4)
    direction = k[:, :, :1]
    expect_output(q, direction.expand_as(k).contiguous(), v, factors(rng, 3))


@part(
    points=2,
    needs="equal_scores",
    example="qk_norm_attention(torch.tensor([[[[2.0]]]]), torch.tensor([[[[3.0], [-5.0]]]]), "
    "torch.tensor([[[[0.0], [10.0]]]]), torch.tensor([[[1.0]]]))",
)
def lengths(rng):
    "Queries and keys of width 1 count by their signs alone, however long they are."
    expect_output(*qkv(rng), tensor(np.full((1, 1, 1), 1.5)))


@part(
    points=2,
    needs="equal_scores",
    example="qk_norm_attention(torch.tensor([[[[3.0, 4.0]]]]), torch.tensor([[[[5.0, 0.0], [0.0, 5.0]]]]), "
    "torch.tensor([[[[0.0], [10.0]]]]), torch.tensor([[[2.0]]]))",
)
def cosines(rng):
    "The scores are cosines times g, and nothing is divided by √d_k."
    expect_output(*qkv(rng, d_k=5), factors(rng, 1))
    expect_output(*qkv(rng, heads=2, n=6, m=6, d_k=3, d_v=2), torch.full((2, 1, 1), 2.5))


@part(
    points=1,
    needs="lengths",
    example="qk_norm_attention(torch.ones(1, 2, 1, 1), torch.tensor([[[[1.0], [-1.0]]] * 2]).view(1, 2, 2, 1), "
    "torch.tensor([[[[0.0], [10.0]]] * 2]).view(1, 2, 2, 1), torch.tensor([[[0.0]], [[1.0]]]))",
)
def g_of_each_head(rng):
    "Each head multiplies its cosines by its own g, which may be negative or large."
    for heads in (3, 2):
        expect_output(*qkv(rng, heads=heads), factors(rng, heads))
    try:
        expect_output(*qkv(rng, d_k=2), factors(rng, 1))
    except (CallError, Mismatch):
        return  # cosines of vectors that are wider are the matter of another part
    # Some factors are negative, or so large that keys whose angles hardly differ get other weights.
    q, k, v = qkv(rng, heads=3, d_k=1)
    near = 1.0 + tensor(0.15 * rng.normal(size=(2, 3, 7, 1)))
    q, k = torch.cat([q.abs(), q.abs()], dim=-1), torch.cat([k.abs(), k.abs() * near], dim=-1)
    expect_output(q, k, v, tensor(rng.permutation([-150.0, -2.0, 180.0])[:, None, None]), tolerance=1e-3)


@part(
    points=1,
    needs="equal_scores",
    example="qk_norm_attention(torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 2, 2), "
    "torch.tensor([[[[0.0], [10.0]]]]), torch.tensor([[[2.0]]]))",
)
def vectors_of_zeros(rng):
    "A query or key of zeros has only scores of 0, and nothing becomes NaN; short ones count like long ones."
    q, k, v = qkv(rng)
    q[:, :, 1], k[:, :, 2] = 0.0, 0.0
    g = tensor(np.full((1, 1, 1), 1.5))
    expect_output(q, k, v, g)
    for short_q, short_k in ((3e-4 * q, k), (q, 3e-4 * k)):  # the shortest ones are 1e-4 long
        got = output_of(qk_norm_attention(short_q, short_k, v, g))
        expect_close(got, reference.qk_norm_attention(short_q, short_k, v, g), tolerance=0.02)


@part(
    points=1,
    needs="equal_scores",
    example="qk_norm_attention(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 1), torch.tensor([[[[0.0], [10.0]]]]), "
    "torch.tensor([[[1.0]]]), torch.tensor([[True, False]]))",
)
def mask(rng):
    "A query averages over the keys for which its row of the mask is True."
    q, k, v = qkv(rng, heads=2)
    expect_output(q, k.abs(), v, factors(rng, 2), tensor(random_mask(rng, 5, 7)))
    q, k, v = qkv(rng)
    low = tensor(np.full((1, 1, 1), 180.0))  # all scores are far below 0
    expect_output(-q.abs(), k.abs(), v, low, tensor(random_mask(rng, 5, 7)), tolerance=3e-3)
    # Whether the scores are right has parts of its own.
    arguments, everything = [*qkv(rng, heads=2, d_k=3), factors(rng, 2)], torch.ones(5, 7, dtype=torch.bool)
    without = output_of(qk_norm_attention(*arguments))
    expect_close(
        output_of(qk_norm_attention(*arguments, everything)), without, 1e-4, "the output with all keys"
    )


@part(points=1, needs="mask")
def mask_for_each_sequence(rng):
    "A mask of shape (batch, 1, n, m) gives each sequence its own mask, the same for all heads."
    q, k, v = qkv(rng, heads=3)
    expect_output(q, k.abs(), v, factors(rng, 3), tensor(random_mask(rng, 2, 1, 5, 7)))


@part(points=1, needs="cosines")
def gradient(rng):
    "Gradients of the output reach q, k, v and g."
    arguments = [*qkv(rng, heads=2, d_k=3), factors(rng, 2)]
    expect_gradients(rng, qk_norm_attention, reference.qk_norm_attention, arguments, range(4), tolerance=1e-3)


@part(points=1, needs="equal_scores")
def inputs_unchanged(rng):
    "The caller's tensors are unchanged, and the output comes alone."
    result = qk_norm_attention(*qkv(rng, heads=2, d_k=3), factors(rng, 2), tensor(random_mask(rng, 5, 7)))
    expect_unchanged(qk_norm_attention, "qk_norm_attention")
    expect(not isinstance(result, tuple | list), "qk_norm_attention should return one tensor, the output")


### END HIDDEN TESTS

# %% [markdown] id="answers_text"
# ## 6. `answers`: nine short questions
#
# **Points** {points answers} · **Book** *Position and heads*, sections *Blind to order* and *Windows and sinks*
#
# Replace each `None` by a number (an absolute error of 0.005 is allowed) or, for a choice, by one letter in
# quotation marks, "b" or "B". Each answer is worth one point. From question 5 on, the chapter *Heads since 2023*
# helps as well; your functions can answer, too.
#
# **Positions.**
#
# 1. `without_positions`: multi-head attention without positions and without a mask gets the same tokens in
#    another order. What does it return?
#     * `"a"`: the same outputs, in the same order as before
#     * `"b"`: the same outputs, in the new order of the tokens
#     * `"c"`: other outputs
# 2. `shifted`: `rotary` rotates queries and keys. All positions are 100 larger than before. What happens to the
#    attention weights?
#     * `"a"`: they stay the same
#     * `"b"`: they become more even
#     * `"c"`: they become sharper
# 3. `wrong_pairs`: weights were trained with interleaved pairs (2i, 2i + 1). The model runs with the half-split
#    `rotary` of item 1. What makes it right again?
#     * `"a"`: nothing is needed: rotations keep all lengths
#     * `"b"`: the same reordering of columns within each head, in W_Q and in W_K
#     * `"c"`: the angles with the other sign
# 4. `window_reach`: five layers are stacked, each with a window of 8. How many positions back is the farthest
#    token that the last layer's output can depend on?
#
# **Keys and values.**
#
# 5. `numbers_kept`: a layer has 32 heads of width 64. How many numbers does its cache keep for each token?
# 6. `numbers_kept_latent`: the same layer has latents of width 256 and no positions. How many numbers does it keep?
# 7. `absorbed_scale`: a layer with 32 heads of width 64 and latents of width 256 uses the absorbed form. By which
#    number does it divide the dot products?
#
# **Scores.**
#
# 8. `largest_score`: a head normalises its queries and keys as in item 5, and its g is 12. How large can its
#    largest score be?
# 9. `off_by_one`: a softmax *off by one* adds 1 to its denominator: exp(sᵢ) / (1 + Σⱼ exp(sⱼ)). A query sees
#    three keys, all with score 0. What do its weights sum to?
#
# <details><summary>Hint: reach</summary>
#
# In one layer the farthest key stands window − 1 positions back. In the next layer, the token at this key has
# itself seen equally far back.
# </details>

# %% role="solution" item="answers"
answers = {
    "without_positions": None,
    "shifted": None,
    "wrong_pairs": None,
    "window_reach": None,
    "numbers_kept": None,
    "numbers_kept_latent": None,
    "absorbed_scale": None,
    "largest_score": None,
    "off_by_one": None,
}
### BEGIN SOLUTION
answers = {
    "without_positions": "b",  # each output belongs to its token, wherever that stands
    "shifted": "a",  # scores depend on distances alone
    "wrong_pairs": "b",  # scores are sums over features, in any order that queries and keys share
    "window_reach": 5 * (8 - 1),
    "numbers_kept": 2 * 32 * 64,  # keys and values
    "numbers_kept_latent": 256,
    "absorbed_scale": 8,  # the root of d_k = 64
    "largest_score": 12,  # at a cosine of 1
    "off_by_one": 0.75,  # 3 / (1 + 3)
}
### END SOLUTION

# %% role="test" item="answers"
check_kinds(
    answers,
    {
        "without_positions": "abc",
        "shifted": "abc",
        "wrong_pairs": "abc",
        "window_reach": "number",
        "numbers_kept": "number",
        "numbers_kept_latent": "number",
        "absorbed_scale": "number",
        "largest_score": "number",
        "off_by_one": "number",
    },
)
### BEGIN HIDDEN TESTS


parts = part_for_each(
    lambda question: expect_answer(answers, reference.answers, question),
    points=1,
    proves={
        "without_positions": "This question asks what attention without positions returns for reordered tokens.",
        "shifted": "This question asks what a shift of all positions does under rotary positions.",
        "wrong_pairs": "This question asks how to convert weights from the other pairing convention.",
        "window_reach": "This question asks how far back a stack of layers with windows reaches.",
        "numbers_kept": "This question asks how many numbers an ordinary cache keeps for a token.",
        "numbers_kept_latent": "This question asks how many numbers a cache of latents keeps for a token.",
        "absorbed_scale": "This question asks what scores are divided by in the absorbed form.",
        "largest_score": "This question asks how large scores can be with normalised queries and keys.",
        "off_by_one": "This question asks what the weights of a softmax off by one sum to.",
    },
)


### END HIDDEN TESTS

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check modern_heads.ipynb` runs the hidden tests on your code.
