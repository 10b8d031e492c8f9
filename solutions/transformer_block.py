# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: transformer_block, version: "1.2"}
# ---

# %% role="author"
from checks import check_close, check_kinds, check_unchanged, filled, loaded
from types import SimpleNamespace

import numpy as np

from mha_grader.testing import (
    expect_answer,
    expect_close,
    expect_gradients,
    expect_unchanged,
    filled,
    part,
    part_for_each,
    random_mask,
    reload,
    seed_torch,
    tensor,
    twins,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # Build the Transformer block
#
# A Transformer block has two sublayers: attention, in which tokens exchange information, and a feed-forward
# network, which changes every token by itself. Two ideas make deep stacks of blocks possible: the residual
# connection, which adds the output of a sublayer to its input, and layer normalisation. You build the block in
# both of its forms, and find out what stacking can do that more heads cannot.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `FeedForward` | {points FeedForward} | 1 | 4 | 15 |
# | 2 | `TransformerBlock` | {points TransformerBlock} | 3 | 5 | 40 |
# | 3 | `answers` | {points answers} | 2 | 4 | 25 |
# | 4 | `depth` | {points depth} | 3 | 5 | 15 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the names and the parameters, and run the check below. It prints `ok`, or
# one sentence that says what is wrong. You may add cells and methods. Keep the other files of this folder beside
# the notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right. The tests write their own numbers into a layer's parameters,
# those of the norms included, so the parameters must have the given names.
#
# `batch` counts sequences and `n` counts tokens. `d_model` is the width of a token, and `d_ff` the width inside the
# feed-forward network. No layer changes its input in place. In a **mask**, `True` means that the query *may*
# attend to the key.

# %% role="given" id="imports"
import torch
from torch import nn

# %% role="show" id="imports_for_checks"
import matplotlib.pyplot as plt
from checks import check_FeedForward, check_TransformerBlock, check_answers, loaded

# %% [markdown] id="given_text"
# **Given:** `MultiHeadAttention` from earlier assignments, and the two functions that it calls. Their
# code is in `given.py` beside this notebook.

# %% role="given" id="given_attention"
from mha_lib.heads import head_dim
from mha_lib.torch_attention import MultiHeadAttention, attention

# %% [markdown] id="FeedForward_text"
# ## 1. `FeedForward`: every token by itself
#
# **Points** {points FeedForward} · **Book** *The Transformer block*, section *The feed-forward sublayer*
#
# The network has two linear layers with a non-linearity between them. It is applied to each token alone: `up`
# widens the token, and `down` makes it narrow again. The non-linearity is the GELU, x·Φ(x), where Φ(x) is the
# probability that a standard normal number is below x. For large x it is close to x, for very negative x it is
# close to 0, and it is smooth where the older ReLU has a corner.
#
# <details><summary>Hint</summary>
#
# `nn.GELU()` is a module, and `nn.functional.gelu` is a function. What is the default of their argument
# `approximate`?
# </details>

# %% role="solution" item="FeedForward"
from mha_lib.transformer import FeedForward

# %% role="test" item="FeedForward"
ones = {"up.weight": torch.ones(1, 1), "down.weight": torch.ones(1, 1)}
ones |= {"up.bias": torch.zeros(1), "down.bias": torch.zeros(1)}
layer = loaded(FeedForward(d_model=1, d_ff=1), ones)
x = torch.tensor([[[-1.0], [0.0], [1.0], [10.0]]])  # (batch, n, d_model) = (1, 4, 1)
check_close(
    "output of the worked example",
    layer(x),
    torch.tensor([[[-0.158655], [0.0], [0.841345], [10.0]]]),
    mistakes={
        "this is the ReLU, which is 0 below 0": [[[0.0], [0.0], [1.0], [10.0]]],
        "there is no non-linearity between the layers": [[[-1.0], [0.0], [1.0], [10.0]]],
        "this is the approximation by tanh": [[[-0.158808], [0.0], [0.841192], [10.0]]],
        "this is the SiLU, x times the logistic function": [[[-0.268941], [0.0], [0.731059], [9.999546]]],
    },
)
layer = filled(FeedForward(3, 5))  # with numbers that are the same for everyone
x = torch.arange(6.0).view(1, 2, 3).sin()  # (batch, n, d_model)
right = torch.tensor([[[0.2567, -0.2743, -0.3561], [0.0551, -0.5413, -0.6760]]])
check_close("output with other numbers", layer(x), right, tolerance=1e-3)
check_unchanged("the layer leaves its input alone", layer, x)
### BEGIN HIDDEN TESTS


def numbers(rng, d_model=6, d_ff=10, bent=False, biases=False):
    """Numbers for the parameters. Unless it is `bent`, all that reaches the curve is far above 0."""
    up = rng.normal(size=(d_ff, d_model)) / d_model**0.5
    found = {
        "up.weight": up if bent else rng.uniform(0.3, 0.6, size=up.shape),
        "up.bias": rng.normal(size=d_ff) * biases,
        "down.weight": rng.normal(size=(d_model, d_ff)) / d_ff**0.5,
        "down.bias": rng.normal(size=d_model) * biases,
    }
    return {name: tensor(value) for name, value in found.items()}


def positive(rng):
    return tensor(rng.uniform(5.0, 8.0, size=(2, 5, 6)))  # (batch, n, d_model)


def layers(rng, d_ff=10, **options):
    """A student's layer and the reference, with the same numbers."""
    return twins(FeedForward, reference.FeedForward, numbers(rng, d_ff=d_ff, **options), 6, d_ff)


def expect_output(pair, x, tolerance=1e-3):
    layer, expected = pair
    expect_close(layer(x), expected(x), tolerance)


@part(points=2, example="filled(FeedForward(2, 3))(10 + torch.eye(2)[None])")
def values(rng):
    "Each token passes through up and down; here the non-linearity gets inputs above 10, which it leaves unchanged."
    expect_output(layers(rng), positive(rng))


@part(points=1, needs="values", example="filled(FeedForward(2, 3))(10 + torch.eye(2)[None, :1])")
def one_token(rng):
    "A sequence may have a single token, and a batch a single sequence."
    expect_output(layers(rng), positive(rng)[:, :1])
    expect_output(layers(rng), positive(rng)[:1])


@part(points=1, needs="values", example="filled(FeedForward(2, 3))(torch.eye(2)[None])")
def curve(rng):
    "Between up and down there is a GELU; here any approximation within 0.01 will do."
    expect_output(layers(rng, bent=True), tensor(rng.normal(size=(2, 5, 6))), tolerance=1e-2)


@part(points=1, needs="curve", example="filled(FeedForward(2, 3))(torch.eye(2)[None])")
def exact_gelu(rng):
    "The GELU is the exact one."
    expect_output(layers(rng, bent=True), tensor(2.0 * rng.normal(size=(2, 5, 6))), tolerance=1e-5)


@part(points=1, needs="values", example="filled(FeedForward(2, 3))(10 + torch.eye(2)[None])")
def biases(rng):
    "Both linear layers have a bias and use it, even where d_ff is smaller than d_model."
    expect_output(layers(rng, biases=True), positive(rng))
    expect_output(layers(rng, d_ff=4, biases=True), positive(rng))


@part(points=1, needs="values")
def no_dropout(rng):
    "In training the output is the same as in eval mode."
    layer, expected = layers(rng)
    layer.train()
    seed_torch(layer, int(rng.integers(1000)))
    expect_output((layer, expected), positive(rng))


@part(points=1, needs="values")
def gradient(rng):
    "Gradients of the output reach the input and the weights of both linear layers."
    layer, expected = layers(rng)
    x = positive(rng)
    layer(x)
    if layer.changed:  # then autograd cannot work, and that costs the part about the input alone
        return
    expect_gradients(rng, layer, expected, [x], [0, "up.weight", "down.weight"], tolerance=1e-2)


@part(points=1, needs="values")
def registered(rng):
    "load_state_dict and .double() find both linear layers."
    layer, expected = reload(layers(rng), numbers(rng))
    layer.double()
    expect_output((layer, expected.double()), positive(rng).double())


@part(points=1, needs="values")
def input_unchanged(rng):
    "The caller's tensor is unchanged."
    layer, _ = layers(rng)
    layer(positive(rng))
    expect_unchanged(layer, "the layer")


### END HIDDEN TESTS

# %% [markdown] id="see_gelu"
# **Look at it.** Your layer with one feature and all weights 1 is the GELU itself; here it is beside the ReLU.
# They differ most around ±0.75. The GELU falls below 0 for negative numbers before it returns to 0.

# %% role="show" id="plot_gelu"
ones, zero = torch.ones(1, 1), torch.zeros(1)
numbers = {"up.weight": ones, "up.bias": zero, "down.weight": ones, "down.bias": zero}
curve = loaded(FeedForward(1, 1), numbers)
at = torch.linspace(-4, 4, 161)
figure, axes = plt.subplots(figsize=(5, 3.2))
axes.plot(at, curve(at[None, :, None]).detach()[0, :, 0], label="GELU: your layer")
axes.plot(at, at.relu(), "--", label="ReLU")
axes.set(xlabel="x", ylabel="what comes out")
axes.legend()
figure.tight_layout()
plt.show()

# %% [markdown] id="TransformerBlock_text"
# ## 2. `TransformerBlock`: two sublayers, two forms
#
# **Points** {points TransformerBlock} · **Book** *The Transformer block*, section *Before or after*
#
# Let A be the attention and F the feed-forward network. The output of each is *added* to its input; the two forms
# differ in where they normalise.
#
# | | pre-norm (most models today) | post-norm (the first Transformer) |
# |---|---|---|
# | attention | x ← x + A(norm1(x)) | x ← norm1(x + A(x)) |
# | feed-forward | x ← x + F(norm2(x)) | x ← norm2(x + F(x)) |
#
# In the pre-norm form A and F read the normalised tokens, but the residual connection carries x itself.
#
# **Worked example.** Let every weight and bias of `out_proj` and `down` be 0, so that A and F give 0. A pre-norm
# block returns x unchanged. A post-norm block normalises it twice.
#
# ```python
# x = torch.tensor([[[2.0, 4.0]]])
# # pre-norm: [[[2.0, 4.0]]]       post-norm: [[[-1.0, 1.0]]]
# ```
#
# <details><summary>Hint: which line is wrong?</summary>
#
# `x = self.norm1(x)`, then `x = x + self.attention(x)`: the residual connection starts from the normalised
# tokens, and x itself is lost. Try it on the worked example.
# </details>

# %% role="solution" item="TransformerBlock"
from mha_lib.transformer import TransformerBlock

# %% role="test" item="TransformerBlock"
x = torch.tensor([[[2.0, 4.0]]])  # (batch, n, d_model) = (1, 1, 2)
nothing = {f"{name}.weight": torch.zeros(2, 2) for name in ("attention.out_proj", "feed_forward.down")}
nothing |= {f"{name}.bias": torch.zeros(2) for name in ("attention.out_proj", "feed_forward.down")}
for norm_first, expected in ((True, [[[2.0, 4.0]]]), (False, [[[-1.0, 1.0]]])):
    block = loaded(TransformerBlock(2, 1, 2, norm_first=norm_first), nothing)
    check_close(
        f"a block that adds nothing, norm_first={norm_first}",
        block(x),
        torch.tensor(expected),
        tolerance=1e-4,
        mistakes={
            "the residual connection starts after the norm, or this is the other form": [[[-1.0, 1.0]]],
            "nothing is normalised, or this is the other form": [[[2.0, 4.0]]],
            "there is no residual connection": [[[0.0, 0.0]]],
        },
    )

x = torch.arange(12.0).view(1, 3, 4).sin()  # (batch, n, d_model)
pre_norm, post_norm = [1.2692, 0.2608, -0.9817, -1.4872], [-0.4186, 0.8263, 0.2906, -0.5923]
for norm_first, expected in ((True, pre_norm), (False, post_norm)):
    block = filled(TransformerBlock(4, 2, 6, norm_first))  # with numbers that are the same for everyone
    check_close(
        f"last token of a block with other numbers, norm_first={norm_first}",
        block(x)[0, 2],
        torch.tensor(expected),
        tolerance=1e-3,
    )
causal = torch.ones(3, 3, dtype=torch.bool).tril()
check_close("under a causal mask the first token stands alone", block(x, causal)[:, :1], block(x[:, :1]))
check_unchanged("the block leaves its input alone", block, x, causal)
### BEGIN HIDDEN TESTS


LINEARS = {"attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.out_proj"}


def tokens(rng, *shape):
    return tensor(2.0 * rng.normal(size=shape))


def numbers(rng, d_model, d_ff, without=(), bent=False, norms_alike=True):
    """Numbers for all parameters; those of the output layer of the sublayers in `without` are 0.

    Unless it is `bent`, the feed-forward network works where its curve is a straight line, whichever it is. If it
    is, its weights are large enough to tell one curve from another.
    `norms_alike` gives both norms the same numbers.
    """
    found = {f"{name}.weight": rng.normal(size=(d_model, d_model)) / d_model**0.5 for name in sorted(LINEARS)}
    size = 1.0 if bent else 0.3
    found["feed_forward.up.weight"] = size * rng.normal(size=(d_ff, d_model)) / d_model**0.5
    found["feed_forward.down.weight"] = size * rng.normal(size=(d_model, d_ff)) / d_ff**0.5
    for name in ("norm1", "norm2"):
        found[f"{name}.weight"] = rng.uniform(0.5, 1.5, size=d_model)
    for name in [name for name in found if name.endswith("weight")]:
        found[name.replace("weight", "bias")] = 0.5 * rng.normal(size=len(found[name]))
    if not bent:
        found["feed_forward.up.bias"] = 10.0 + found["feed_forward.up.bias"]
    if norms_alike:
        found["norm2.weight"], found["norm2.bias"] = found["norm1.weight"], found["norm1.bias"]
    for half in without:
        for kind in ("weight", "bias"):
            found[f"{half}.{kind}"] *= 0.0
    return {name: tensor(value) for name, value in found.items()}


ATTENTION, FEED_FORWARD = "attention.out_proj", "feed_forward.down"


def blocks(rng, *options, num_heads=2, **kind):
    """A student's block and the reference, with the same numbers."""
    parameters = numbers(rng, 6, 10, **kind)
    return twins(TransformerBlock, reference.TransformerBlock, parameters, 6, num_heads, 10, *options)


def expect_output(pair, *arguments, tolerance=1e-4):
    block, expected = pair
    expect_close(block(*arguments), expected(*arguments), tolerance)


@part(points=2, example="filled(TransformerBlock(4, 2, 6, True))(torch.eye(4)[None, :3])")
def pre_norm_attention(rng):
    "Pre-norm, with a second sublayer that adds nothing: x + A(norm1(x))."
    for num_heads in (2, 3):
        expect_output(blocks(rng, True, num_heads=num_heads, without=[FEED_FORWARD]), tokens(rng, 2, 5, 6))


@part(points=2, example="filled(TransformerBlock(4, 2, 6, True))(torch.eye(4)[None, :3])")
def pre_norm_feed_forward(rng):
    "Pre-norm, with a first sublayer that adds nothing: x + F(norm2(x))."
    expect_output(blocks(rng, True, without=[ATTENTION]), tokens(rng, 2, 5, 6))


@part(
    points=2,
    needs=("pre_norm_attention", "pre_norm_feed_forward"),
    example="filled(TransformerBlock(4, 2, 6, True))(torch.eye(4)[None, :3])",
)
def pre_norm(rng):
    "Pre-norm: the second sublayer gets the result of the first."
    expect_output(blocks(rng, True), tokens(rng, 2, 5, 6))


@part(points=2, example="filled(TransformerBlock(4, 2, 6, False))(torch.eye(4)[None, :3])")
def post_norm_attention(rng):
    "Post-norm, with a second sublayer that adds nothing: norm2(y) with y = norm1(x + A(x))."
    expect_output(blocks(rng, False, without=[FEED_FORWARD]), tokens(rng, 2, 5, 6))


@part(points=2, example="filled(TransformerBlock(4, 2, 6, False))(torch.eye(4)[None, :3])")
def post_norm_feed_forward(rng):
    "Post-norm, with a first sublayer that adds nothing: norm2(y + F(y)) with y = norm1(x)."
    expect_output(blocks(rng, False, without=[ATTENTION]), tokens(rng, 2, 5, 6))


@part(
    points=1,
    needs="pre_norm_attention",
    example="filled(TransformerBlock(4, 2, 6, True))(torch.eye(4)[None, :1])",
)
def one_token(rng):
    "A sequence may have a single token, and a batch a single sequence."
    expect_output(blocks(rng, True, without=[FEED_FORWARD]), tokens(rng, 3, 1, 6))
    expect_output(blocks(rng, True, without=[FEED_FORWARD]), tokens(rng, 1, 5, 6))


@part(
    points=1,
    needs=("post_norm_attention", "post_norm_feed_forward"),
    example="filled(TransformerBlock(4, 2, 6, False))(torch.eye(4)[None, :3])",
)
def post_norm(rng):
    "Post-norm: the second sublayer gets the result of the first, and norm1 and norm2 differ."
    expect_output(blocks(rng, False), tokens(rng, 2, 5, 6))
    expect_output(blocks(rng, False, norms_alike=False), tokens(rng, 2, 5, 6))


@part(
    points=1,
    needs="pre_norm_attention",
    example="filled(TransformerBlock(4, 2, 6))(torch.eye(4)[None, :3])",
)
def pre_norm_by_default(rng):
    "By default a block is pre-norm."
    expect_output(blocks(rng, without=[FEED_FORWARD]), tokens(rng, 2, 5, 6))


@part(
    points=1,
    needs="post_norm_attention",
    example="filled(TransformerBlock(4, 2, 6, False))(torch.eye(4)[None, :2], "
    "torch.tensor([[True, False], [True, True]]))",
)
def mask(rng):
    "The attention of a post-norm block gets the mask, one for all sequences or one for each."
    for shape in ((5, 5), (2, 1, 5, 5)):
        pair = blocks(rng, False, without=[FEED_FORWARD])
        expect_output(pair, tokens(rng, 2, 5, 6), tensor(random_mask(rng, *shape)))
    low = numbers(rng, 6, 10, without=[FEED_FORWARD])
    low["attention.q_proj.weight"] *= 40.0  # the scores of what is kept may be far below 0
    pair = twins(TransformerBlock, reference.TransformerBlock, low, 6, 2, 10, False)
    expect_output(pair, tokens(rng, 2, 5, 6), tensor(random_mask(rng, 5, 5)))


@part(
    points=1,
    needs="pre_norm_attention",
    example="filled(TransformerBlock(4, 2, 6, True))(torch.eye(4)[None, :2], "
    "torch.tensor([[True, False], [True, True]]))",
)
def mask_in_pre_norm(rng):
    "The attention of a pre-norm block gets the mask as well, one for all sequences or one for each."
    for shape in ((5, 5), (2, 1, 5, 5)):
        pair = blocks(rng, True, without=[FEED_FORWARD])
        expect_output(pair, tokens(rng, 2, 5, 6), tensor(random_mask(rng, *shape)))


@part(points=1, needs="mask_in_pre_norm")
def another_mask_at_each_call(rng):
    "Each call uses its own mask, and a call without a mask uses none, whatever came before."
    pair, x = blocks(rng, True, without=[FEED_FORWARD]), tokens(rng, 2, 5, 6)
    for _ in range(2):
        expect_output(pair, x, tensor(random_mask(rng, 5, 5)))
    expect_output(pair, x)
    block, expected = blocks(rng, False)
    before, _, after = block(x), block(x, tensor(random_mask(rng, 5, 5))), block(x)
    expect_close(
        before, expected(x), tolerance=np.inf
    )  # the shape, and no NaN: the post-norm form has other parts
    expect_close(after, before, tolerance=1e-4)


@part(points=2, example="filled(TransformerBlock(4, 2, 6, True))(torch.eye(4)[None, :3])")
def two_norms(rng):
    "norm1 belongs to the attention, and norm2 to the feed-forward network."
    expect_output(blocks(rng, True, norms_alike=False), tokens(rng, 2, 5, 6))


@part(points=1, needs=("pre_norm_attention", "pre_norm_feed_forward"))
def epsilon(rng):
    "The epsilon of both norms is 1e-5: it counts when the features of a token are almost equal."
    for half in (ATTENTION, FEED_FORWARD):
        expect_output(blocks(rng, True, without=[half]), 1.5e-3 * tokens(rng, 2, 5, 6))


@part(points=1, needs="pre_norm")
def whole_block(rng):
    "The non-linearity of the feed-forward network is the exact GELU."
    expect_output(blocks(rng, True, bent=True), tokens(rng, 2, 5, 6), tolerance=3e-5)


@part(points=1, needs="pre_norm_attention")
def no_dropout(rng):
    "In training the output is the same as in eval mode, in both forms and under a mask as well."
    block, expected = blocks(rng, True, without=[FEED_FORWARD])
    x, mask = tokens(rng, 2, 5, 6), tensor(random_mask(rng, 5, 5))
    block.train()
    seed_torch(block, int(rng.integers(1000)))
    expect_output((block, expected), x)
    for norm_first in (False, True):
        block, expected = blocks(rng, norm_first)
        for given in ([x], [x, mask]):
            block.train()
            in_training = block(*given)
            block.eval()
            in_eval_mode = block(*given)  # the student's own, since masks and forms have parts of their own
            expect_close(in_eval_mode, expected(x), tolerance=np.inf)  # the shape, and no NaN
            expect_close(in_training, in_eval_mode, tolerance=1e-4)


@part(points=1, needs=("pre_norm", "post_norm_attention", "post_norm_feed_forward"))
def gradient(rng):
    "Gradients of the output reach the input and all parameters, in both forms."
    for norm_first in (False, True):
        block, expected = blocks(rng, norm_first)
        x = tokens(rng, 2, 5, 6)
        block(x)
        if block.changed:  # then autograd cannot work, and that costs the part about the input alone
            return
        names = [name for name, _ in expected.named_parameters()]
        expect_gradients(rng, block, expected, [x], [0, *names], tolerance=1e-3)


@part(points=1, needs="post_norm_attention")
def registered(rng):
    "load_state_dict and .double() find everything that the block has."
    pair = blocks(rng, False, without=[FEED_FORWARD])
    block, expected = reload(pair, numbers(rng, 6, 10, without=[FEED_FORWARD]))
    block.double()
    expect_output((block, expected.double()), tokens(rng, 2, 5, 6).double())


@part(points=1, needs="post_norm_attention")
def order_of_tokens_does_not_matter(rng):
    "Tokens in another order give the outputs in that order."
    block, expected = blocks(rng, False, without=[FEED_FORWARD])
    x, order = tokens(rng, 2, 5, 6), rng.permutation(5)
    expect_close(block(x[:, order]), expected(x)[:, order], tolerance=1e-4)


@part(points=1, needs="pre_norm_attention")
def input_unchanged(rng):
    "The caller's tensors are unchanged."
    for norm_first in (False, True):
        block, _ = blocks(rng, norm_first)
        block(tokens(rng, 2, 5, 6), tensor(random_mask(rng, 5, 5)))
        expect_unchanged(block, "the block")


### END HIDDEN TESTS

# %% [markdown] id="see_stack"
# **Look at it.** The cell stacks twenty-four fresh blocks and prints the standard deviation of the tokens'
# entries on the way up. In the pre-norm stack every block adds to it and nothing reduces it; hence such a stack
# has one more norm at its end. In the post-norm stack every block ends in a norm.

# %% role="show" id="measure_stack"
torch.manual_seed(0)
start = torch.randn(8, 10, 32)  # (batch, n, d_model)
for norm_first in (True, False):
    x, sizes = start, []
    for _ in range(24):
        x = TransformerBlock(32, 4, 128, norm_first)(x)
        sizes.append(x.std().item())
    shown = "   ".join(f"{sizes[depth - 1]:.2f}" for depth in (1, 6, 12, 24))
    print(f"{'pre-norm' if norm_first else 'post-norm':10}  after 1, 6, 12, 24 blocks:   {shown}")

# %% [markdown] id="see_reach"
# **Depth is not the same as heads.** Under the mask below a token sees itself and the one before it. What does
# the last token depend on? Where its gradient is not 0, a change of that input changes the output. In one layer,
# a head fetches what a token *is*. In the next layer it fetches what that token has *found*, and so on. More
# heads fetch more at once, but from no further away.

# %% role="show" id="measure_reach"


def reach(depth, num_heads, n=8):
    """The positions, counted back from the last token, that its output depends on."""
    torch.manual_seed(0)
    x = torch.randn(1, n, 16, requires_grad=True)  # (batch, n, d_model)
    near = torch.ones(n, n, dtype=torch.bool).tril().triu(-1)  # each token, and the one before it
    y = x
    for _ in range(depth):
        y = TransformerBlock(16, num_heads, 32)(y, near)
    y[0, -1].sum().backward()
    return [n - 1 - i for i in range(n) if x.grad[0, i].abs().sum() > 0][::-1]


for depth, num_heads in ((1, 1), (1, 8), (2, 1), (4, 1)):
    print(
        f"{depth} block(s), {num_heads} head(s): the last token depends on those {reach(depth, num_heads)} back"
    )

# %% [markdown] id="answers_text"
# ## 3. `answers`: eight short questions
#
# **Points** {points answers} · **Book** *The Transformer block*, sections *Before or after* and *Depth and heads*
#
# Replace each `None` by a number (an absolute error of 0.005 is allowed) or, for a choice, by one letter in
# quotation marks, "b" or "B". Each answer is worth one point.
#
# **The two forms.** In the first two questions, all weights and biases of `out_proj` and `down` are 0.
#
# 1. `pre_norm_of_nothing`: what does a pre-norm block return for x?
#     * `"a"`: x
#     * `"b"`: norm2(norm1(x))
#     * `"c"`: 0
# 2. `post_norm_of_nothing`: and a post-norm block? (The choices are the same.)
# 3. `norms_on_the_path`: twelve *post-norm* blocks are stacked. How many norms does a token pass on its way
#    through the stack, along the residual connections?
# 4. `size_with_depth`: what happens to the size of the tokens as fresh *pre-norm* blocks are stacked?
#     * `"a"`: it grows
#     * `"b"`: it stays the same, since every block normalises
#     * `"c"`: it shrinks
#
# **Depth and heads.**
#
# 5. `mixing`: what lets a token learn something about another one?
#     * `"a"`: the attention alone
#     * `"b"`: the feed-forward network alone
#     * `"c"`: both
# 6. `reach`: under a mask every token sees itself and the *two* tokens before it. Six blocks are stacked. How
#    many positions back is the farthest token that an output can depend on?
# 7. `reach_with_heads`: the mask is the same, but there is only *one* block, with six heads. How many positions
#    back is the farthest token now?
# 8. `parameters`: how many parameters does one block have with d_model = 512, 8 heads and d_ff = 2048, biases and
#    norms included?
#
# <details><summary>Hint: parameters</summary>
#
# The attention has four linear layers and the feed-forward network two, each with weights and a bias. A norm has a
# weight and a bias for each feature. Or count in your block: `sum(p.numel() for p in block.parameters())`.
# </details>

# %% role="solution" item="answers"
answers = {
    "pre_norm_of_nothing": None,
    "post_norm_of_nothing": None,
    "norms_on_the_path": None,
    "size_with_depth": None,
    "mixing": None,
    "reach": None,
    "reach_with_heads": None,
    "parameters": None,
}
### BEGIN SOLUTION
answers = {
    "pre_norm_of_nothing": "a",
    "post_norm_of_nothing": "b",
    "norms_on_the_path": 24,  # two in each block
    "size_with_depth": "a",  # every block adds to it
    "mixing": "a",  # the feed-forward network sees one token at a time
    "reach": 12,  # each block adds two positions
    "reach_with_heads": 2,  # all heads see the same tokens
    # attention, feed-forward network, norms
    "parameters": 4 * (512**2 + 512) + (512 * 2048 + 2048) + (2048 * 512 + 512) + 2 * 2 * 512,
}
### END SOLUTION

# %% role="test" item="answers"
check_kinds(
    answers,
    {
        "pre_norm_of_nothing": "abc",
        "post_norm_of_nothing": "abc",
        "norms_on_the_path": "number",
        "size_with_depth": "abc",
        "mixing": "abc",
        "reach": "number",
        "reach_with_heads": "number",
        "parameters": "number",
    },
)
### BEGIN HIDDEN TESTS


parts = part_for_each(
    lambda question: expect_answer(answers, reference.answers, question),
    points=1,
    proves={
        "pre_norm_of_nothing": "This question asks what a pre-norm block does if its sublayers add nothing.",
        "post_norm_of_nothing": "This question asks what a post-norm block does if its sublayers add nothing.",
        "norms_on_the_path": "This question asks how often post-norm blocks normalise the residual stream.",
        "size_with_depth": "This question asks how large tokens become in a pre-norm stack.",
        "mixing": "This question asks which sublayer lets tokens exchange information.",
        "reach": "This question asks how far a stack of blocks sees under a narrow mask.",
        "reach_with_heads": "This question asks how far one block with many heads sees under a narrow mask.",
        "parameters": "This question asks how many parameters a block has.",
    },
)


### END HIDDEN TESTS

# %% [markdown] id="depth_text"
# ## 4. `depth`: why heads do not replace depth
#
# **Points** {points depth} · **Book** *The Transformer block*, section *Depth and heads*
#
# A friend wants a model that runs faster: "Six blocks wait for each other. I take one block with six times as
# many heads, each as wide as before, and they all run at the same time. It can compute as much." Explain in at
# most 150 words, to somebody who knows what a head is, why this does not hold. Put your text in place of the line
# below.
#
# **A person marks this one.** What earns points:
#
# {criteria depth}
#
# <details><summary>Hint</summary>
#
# What are the queries, keys and values of the second block made from? And those of the second head?
# </details>

# %% [markdown] role="answer" item="depth"
# All heads of one block read the same tokens, as they came in. However many there are, a query is made from what
# one token is, and a key and a value from what another one is.
#
# In a stack, the second block reads what the first has written. There a key can be made from what its token has
# *found* in the first block. So a query can look for "the token whose predecessor is like me": the first block
# tells each token its predecessor, and the second one finds it. In one block a key knows its own token only, and
# not what stood before it, whatever the number of heads.
#
# The narrow mask above shows it too. If every token sees itself and the two before it, six blocks reach twelve
# back, and one block with six heads reaches two.

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check transformer_block.ipynb` runs the hidden tests on your code.
