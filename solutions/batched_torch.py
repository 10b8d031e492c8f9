# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: batched_torch, version: "1.1"}
# ---

# %% role="author"
from checks import check_close, check_equal, check_unchanged, filled, loaded
from types import SimpleNamespace

import numpy as np

from mha_grader.testing import (
    CallError,
    Mismatch,
    attribute_of,
    construct,
    decided_qkv,
    expect,
    expect_close,
    expect_gradients,
    expect_trained,
    expect_unchanged,
    filled,
    gradients,
    high_qkv,
    installed,
    keep,
    load_parameters,
    low_qkv,
    output_of,
    pair_of,
    parameters_of,
    part,
    random_mask,
    reload,
    scalar_qkv,
    seed_torch,
    tensor,
    twins,
    undecided_qkv,
    wide_qkv,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # All heads at once, in PyTorch
#
# You build the multi-head attention that models are trained with: one product makes the queries of all heads, one
# transposition gives each head its own, and one batched product computes the attention of all heads and sequences.
# You then deal with half precision, queries that have nothing to attend to, gradients, dropout, and a mask that
# moves with the layer.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `attention` | {points attention} | 3 | 5 | 40 |
# | 2 | `MultiHeadAttention` | {points MultiHeadAttention} | 3 | 5 | 45 |
# | 3 | `CausalSelfAttention` | {points CausalSelfAttention} | 3 | 4 | 30 |
# | 4 | `from_builtin` | {points from_builtin} | 2 | 3 | 25 |
# | 5 | `sdpa_attention` | {points sdpa_attention} | 2 | 4 | 15 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the names and the parameters, and run the check below. It prints `ok`, or
# one sentence that says what is wrong. The layers may use your `attention`, and `from_builtin` your
# `MultiHeadAttention`; a mistake costs the points of its own item only. You may add cells and methods. Keep the
# other files of this folder beside the notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right. The tests write their own numbers into a layer's parameters,
# so it does not matter how you initialise them. Use PyTorch; `nn.MultiheadAttention` itself is not an answer to
# items 2 and 3: its parameters have other names.
#
# `batch` counts sequences, `n` counts queries, and `m` counts keys and values. `d_model` is the width of the layer,
# `d_k` that of a head's queries and keys, and `d_v` that of its values. No function changes its arguments in place.
# In a **mask**, `True` means that the query *may* attend to the key. A query that may attend to **nothing** is not
# an error: its weights and its output are 0, and every gradient stays finite.

# %% role="given" id="imports"
import torch
from torch import nn

# %% role="show" id="imports_for_checks"
from checks import (
    check_CausalSelfAttention,
    check_MultiHeadAttention,
    check_attention,
    check_from_builtin,
    check_sdpa_attention,
)

# %% role="check"
VIEWED_AT_FIRST = (
    "view went straight to (b, h, n, d_k) and mixed up tokens: view as (b, n, h, d_k) first, then transpose"
)
VIEWED_AT_LAST = (
    "the heads were joined without transposing back to (b, n, h, d_k) first, which mixes up tokens"
)
VIEWED_AT_ONCE = f"{VIEWED_AT_FIRST}; do the reverse at the end"

# %% [markdown] id="given_text"
# **Given:** `head_dim` from the assignment on multi-head attention. Its code is in `given.py` beside this
# notebook. Use it where you like.

# %% role="given" id="given_head_dim"
from mha_lib.heads import head_dim

# %% [markdown] id="attention_text"
# ## 1. `attention`: one head, safe in every precision
#
# **Points** {points attention} · **Book** *Batched attention*, section *One kernel*, and *Masks and fused kernels*
#
# The formula and the shapes are those that you know:
#
# $$\operatorname{attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V.$$
#
# Three things are new. The tensors may be in half precision: the largest `float16` is 65,504, and a `bfloat16` has
# about three significant digits. A query may have no key at all, for example in a sequence of padding alone. And
# gradients must pass through.
#
# <details><summary>Hint: the mask</summary>
#
# `scores.masked_fill(where, value)` puts `value` where `where` is `True`, the opposite of what this mask says:
# `~mask` inverts it. It returns a new tensor; `masked_fill_`, with an underscore, writes in place.
# </details>
#
# <details><summary>Hint: half precision</summary>
#
# −1e9 does not exist in `float16`. Minus infinity exists in every precision, and so does
# `torch.finfo(scores.dtype).min`.
# </details>
#
# <details><summary>Hint: a query without keys</summary>
#
# The softmax of a row of −∞ is NaN. If you *add* −∞ to the scores and replace NaN in the weights, the output
# is right, but gradients are NaN; after `masked_fill` they are finite. If you replace NaN in the output only, the
# gradient of V is NaN either way. You avoid NaN altogether if you give such a
# row finite scores and set its weights to 0 after the softmax. `mask.any(dim=-1, keepdim=True)` tells which rows
# have a key. Do not write into the weights in place: the backward pass of the softmax still needs them.
# </details>

# %% role="solution" item="attention"
from mha_lib.torch_attention import attention

# %% role="test" item="attention"
Q = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])  # (n, d_k) = (2, 4)
K = torch.tensor(
    [[1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0]]
).log()  # (m, d_k) = (3, 4)
V = torch.tensor([[4.0, 0.0], [0.0, 8.0], [2.0, 2.0]])  # (m, d_v) = (3, 2)
output, weights = attention(Q, K, V)
check_close(
    "weights",
    weights,
    torch.tensor([[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]]),
    mistakes={
        "the scores were not divided by √d_k": [[0.1667, 0.1667, 0.6667], [0.8182, 0.0909, 0.0909]],
        "the scores were divided by d_k, not by its square root": [
            [0.2929, 0.2929, 0.4142],
            [0.4641, 0.2679, 0.2679],
        ],
    },
)
check_close("output", output, torch.tensor([[2.0, 3.0], [2.8, 2.0]]))

batch = [tensor.expand(5, 2, *tensor.shape) for tensor in (Q, K, V)]  # (batch, heads, …)
check_close(
    "output with leading axes",
    attention(*batch)[0],
    torch.tensor([[2.0, 3.0], [2.8, 2.0]]).expand(5, 2, 2, 2),
)

mask = torch.tensor([[True, True, False], [False, True, True]])  # (n, m)
check_close(
    "weights under a mask",
    attention(Q, K, V, mask)[1],
    torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]),
    mistakes={
        "the mask is the wrong way round: True means that the query may attend": [
            [0.0, 0.0, 1.0],
            [1.0, 0.0, 0.0],
        ],
        "the mask has no effect: masked_fill returns a new tensor": [[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]],
        "the mask came after the softmax, so the weights no longer sum to 1": [
            [0.25, 0.25, 0.0],
            [0.0, 0.2, 0.2],
        ],
    },
)

mask = torch.tensor([[True, True, False], [False, False, False]])  # the second query has no key
inputs = [tensor.clone().requires_grad_() for tensor in (Q, K, V)]
output, weights = attention(*inputs, mask)
check_close(
    "weights of a query without keys",
    weights,
    torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]),
    mistakes={
        "the query attends equally to all keys; it should attend to none": [
            [0.5, 0.5, 0],
            [1 / 3, 1 / 3, 1 / 3],
        ]
    },
)
check_close("output of a query without keys", output, torch.tensor([[2.0, 4.0], [0.0, 0.0]]))
(output.sum() + (weights**2).sum()).backward()
infinite = sum(not tensor.grad.isfinite().all() for tensor in inputs)
check_equal("gradients of Q, K and V with inf or NaN in them", torch.tensor(infinite), torch.tensor(0))

halves = [tensor.to(torch.float16) for tensor in (Q, K, V)]
check_close(
    "output in float16",
    attention(*halves, mask)[0],
    torch.tensor([[2.0, 4.0], [0.0, 0.0]], dtype=torch.float16),
    tolerance=5e-3,
)
check_unchanged("attention leaves its arguments alone", attention, Q, K, V, mask)
### BEGIN HIDDEN TESTS

import torch


def expect_output(*arrays, tolerance=1e-5):
    arguments = [tensor(array) for array in arrays]
    expect_close(output_of(attention(*arguments)), reference.attention(*arguments)[0], tolerance)


def expect_weights(*arrays):
    arguments = [tensor(array) for array in arrays]
    weights = pair_of(attention(*arguments))[1]
    expect_close(weights, reference.attention(*arguments)[1], what="weights")


@part(
    points=1,
    example="attention(torch.ones(1, 1), torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [10.0]]))",
)
def values(rng):
    "Each output is the average of the values, with the softmax of the query's scores as weights."
    expect_output(*scalar_qkv(rng))


@part(
    points=1,
    needs="values",
    example="attention(torch.ones(2, 1), torch.tensor([[1.0]]), torch.tensor([[10.0]]))",
)
def other_sizes(rng):
    "There may be more queries than keys, equally many, a single query, or a single key."
    for n, m in ((7, 4), (6, 6), (1, 5), (5, 1), (1, 1)):
        expect_output(*scalar_qkv(rng, n=n, m=m))


@part(
    points=2,
    example="attention(torch.full((1, 4), 2.0), 2 * torch.eye(4)[:2], torch.tensor([[0.0], [10.0]]))",
)
def scale(rng):
    "The scores are divided by the square root of the width d_k of queries and keys."
    expect_output(*wide_qkv(rng))


@part(
    points=1,
    example="attention(torch.zeros(1, 2, 1, 3), torch.ones(1, 2, 2, 3), torch.arange(4.0).view(1, 2, 2, 1))",
)
def leading_axes(rng):
    "Each sequence and each head is treated by itself, with one leading axis, with two and with three."
    for leading in ((2,), (2, 3), (4, 2, 3)):
        expect_output(*decided_qkv(rng, *leading))
    expect_output(*decided_qkv(rng, 2, n=6, m=5))


@part(
    points=1,
    needs="leading_axes",
    example="attention(*[torch.arange(12.0).view(2, 3, 2, 1).transpose(1, 2)] * 3)",
)
def transposed_tensors(rng):
    "Q, K and V need not be contiguous: here they come from a transposition, as those of a layer's heads do."
    arguments = [tensor(array) for array in decided_qkv(rng, 2, 3)]  # (batch, heads, tokens, width)
    given = [  # the same, but in the memory the heads of a token lie side by side
        construct(attention, "torch.transpose", each.transpose(1, 2).contiguous(), 1, 2) for each in arguments
    ]
    expect_close(output_of(attention(*given)), reference.attention(*arguments)[0])


@part(points=1, needs=("scale", "leading_axes"))
def scale_in_a_batch(rng):
    "The width d_k is found on the last axis, however many axes there are, and with a mask as well."
    expect_output(*wide_qkv(rng, 2, 3))
    expect_output(
        *wide_qkv(rng, 2, 3), np.ones((5, 7), dtype=bool)
    )  # it hides nothing: only the scale is at stake


@part(points=1, example="attention(torch.zeros(1, 3), torch.ones(2, 3), torch.tensor([[0.0], [10.0]]))")
def weights(rng):
    "The second result is the weights, one row for each query."
    for arrays in (scalar_qkv(rng), decided_qkv(rng, 2), decided_qkv(rng, 2, 3), scalar_qkv(rng, n=1, m=1)):
        expect_weights(*arrays)


@part(
    points=1,
    example="attention(torch.zeros(1, 1), torch.tensor([[-3.0], [1.0], [2.0]]), "
    "torch.tensor([[0.0], [10.0], [70.0]]), torch.tensor([[True, True, False]]))",
)
def mask(rng):
    "A query averages over the keys for which its row of the mask is True, and over no others."
    expect_output(*scalar_qkv(rng), random_mask(rng, 5, 7))


@part(
    points=1,
    needs="mask",
    example="attention(torch.zeros(2, 1), torch.zeros(2, 1), torch.tensor([[4.0], [8.0]]), "
    "torch.tensor([[True, False], [True, False]]))",
)
def mask_with_as_many_keys_as_queries(rng):
    "The rule also holds at n = m, where queries and keys could be exchanged, and with a key that no query sees."
    expect_output(*scalar_qkv(rng, n=6, m=6), np.insert(random_mask(rng, 6, 5), 3, False, axis=1))


@part(
    points=2,
    example="attention(torch.zeros(2, 1, 1, 1), torch.ones(2, 1, 2, 1), torch.arange(4.0).view(2, 1, 2, 1), "
    "torch.tensor([[[[True, False]]], [[[False, True]]]]))",
)
def mask_for_each_sequence(rng):
    "A mask (n, m) applies to all sequences; (batch, 1, n, m), or (batch, 1, 1, m) for padding, gives each its own."
    expect_output(*undecided_qkv(rng, 2, 3), random_mask(rng, 5, 7))
    expect_output(*undecided_qkv(rng, 2, 3), random_mask(rng, 2, 1, 5, 7))
    expect_output(*undecided_qkv(rng, 2, 3), random_mask(rng, 2, 1, 1, 7))


@part(
    points=1,
    needs="weights",
    example="attention(torch.zeros(1, 1), torch.zeros(3, 1), torch.zeros(3, 1), "
    "torch.tensor([[True, True, False]]))",
)
def masked_weights(rng):
    "The returned weights are those after the mask: 0 where it is False, with sum 1."
    expect_weights(*scalar_qkv(rng), random_mask(rng, 5, 7))


@part(
    points=1,
    example="attention(torch.tensor([[-200.0]]), torch.full((3, 1), 100.0), "
    "torch.tensor([[0.0], [10.0], [70.0]]), torch.tensor([[True, True, False]]))",
)
def scores_far_below_zero(rng):
    "A masked key gets no weight even if the scores of the others are about -20,000, or nearly 30 below its own."
    expect_output(*low_qkv(rng), random_mask(rng, 5, 7), tolerance=1e-2)
    expect_output(*far_above_qkv(rng))


def far_above_qkv(rng):
    # The score of the last key, which the mask hides, lies nearly 30 above those of the others.
    mask, K = random_mask(rng, 5, 7), rng.normal(size=(7, 1)) / 10.0
    mask[:, -1], mask[:, 0], K[-1] = False, True, 29.5
    return np.ones((5, 1)), K, rng.normal(size=(7, 1)), mask


@part(
    points=1,
    example="attention(torch.tensor([[100.0]]), torch.full((2, 1), 30.0), torch.tensor([[0.0], [10.0]]))",
)
def large_scores(rng):
    "Scores in the thousands, of either sign, do not overflow."
    expect_output(*high_qkv(rng), tolerance=1e-2)
    Q, K, V = scalar_qkv(rng, 2, 3)
    try:
        expect_output(Q, K, V)
    except (CallError, Mismatch):
        return  # leading axes are the matter of other parts
    K = 100.0 + K / 100.0
    K[1] -= 130.0  # the scores of a sequence and of a head lie thousands from those of the others
    K[:, 1] += 60.0
    expect_output(np.full((2, 3, 5, 1), 50.0), K, V, tolerance=1e-2)


@part(
    points=2,
    example="attention(torch.zeros(1, 1), torch.zeros(2, 1), torch.tensor([[4.0], [8.0]]), "
    "torch.tensor([[False, False]]))[0]",
)
def nothing_to_attend_to(rng):
    "The output of a query that may attend to nothing is 0, and the other outputs are right."
    expect_output(*scalar_qkv(rng), random_mask(rng, 5, 7, empty_rows=2))
    mask = random_mask(rng, 2, 1, 5, 7, empty_rows=2)
    mask[1] = False  # a sequence that is all padding
    expect_output(*undecided_qkv(rng, 2, 3), mask)


@part(
    points=1,
    needs=("masked_weights", "nothing_to_attend_to"),
    example="attention(torch.zeros(1, 1), torch.zeros(2, 1), torch.zeros(2, 1), "
    "torch.tensor([[False, False]]))[1]",
)
def no_weights(rng):
    "The weights of a query that may attend to nothing are 0."
    expect_weights(*scalar_qkv(rng), random_mask(rng, 5, 7, empty_rows=2))


def expect_gradients_of_tokens(rng, *arrays):
    arguments = [tensor(array) for array in arrays]
    expect_gradients(rng, attention, reference.attention, arguments, [0, 1, 2])


@part(points=1)
def gradient(rng):
    "Gradients of the output reach Q, K and V."
    expect_gradients_of_tokens(rng, *scalar_qkv(rng))


@part(points=1)
def gradient_with_nothing_to_attend_to(rng):
    "All gradients are finite and right, even if some queries may attend to nothing."
    expect_gradients_of_tokens(rng, *scalar_qkv(rng), random_mask(rng, 5, 7, empty_rows=2))


def half_qkv(rng, dtype, largest=3):
    Q, K, V = (
        rng.uniform(low, high, size=(rows, 1))
        for low, high, rows in ((-largest, largest, 5), (-largest, largest, 7), (0, 1, 7))
    )
    return [tensor(array).to(dtype) for array in (Q, K, V)]


def expect_half(rng, dtype, tolerance):
    # A mask may not hide scores far above those that it keeps.
    for largest, mask in ((3, (tensor(random_mask(rng, 5, 7)),)), (10, ())):
        arguments = half_qkv(rng, dtype, largest)
        got = output_of(attention(*arguments, *mask))
        expected = reference.attention(*[each.double() for each in arguments], *mask)[0].to(dtype)
        expect_close(got, expected, tolerance)


@part(
    points=1,
    example="attention(torch.zeros(1, 1).half(), torch.zeros(2, 1).half(), torch.ones(2, 1).half(), "
    "torch.tensor([[True, False]]))",
)
def float16(rng):
    "In float16, under a mask, nothing overflows, and the output has dtype float16."
    expect_half(rng, torch.float16, 5e-3)


@part(
    points=1,
    example="attention(torch.zeros(1, 1).bfloat16(), torch.zeros(2, 1).bfloat16(), "
    "torch.ones(2, 1).bfloat16(), torch.tensor([[True, False]]))",
)
def bfloat16(rng):
    "In bfloat16, under a mask, the output is right within 0.03 and has dtype bfloat16."
    expect_half(rng, torch.bfloat16, 3e-2)


@part(
    points=1,
    needs="values",
    example="attention(torch.zeros(1, 1).double(), torch.zeros(2, 1).double(), torch.ones(2, 1).double())",
)
def float64(rng):
    "In float64 the output is in float64."
    arguments = [tensor(array).double() for array in scalar_qkv(rng)]
    expect_close(output_of(attention(*arguments)), reference.attention(*arguments)[0])


@part(
    points=1,
    needs="weights",
    example="attention(torch.zeros(1, 1).half(), torch.zeros(2, 1).half(), torch.ones(2, 1).half())[1]",
)
def dtype_of_weights(rng):
    "The output and the weights have the dtype of the arguments, under a mask as well, even in half precision."
    everything = torch.ones(5, 7, dtype=torch.bool)  # it hides nothing: only the dtype is at stake
    for dtype, tolerance in ((torch.float16, 5e-3), (torch.bfloat16, 3e-2), (torch.float64, 1e-5)):
        arguments = half_qkv(rng, dtype)
        right = reference.attention(*[each.double() for each in arguments])
        # What is too low for float16 is the matter of another part.
        for mask in ((),) if dtype == torch.float16 else ((), (everything,)):
            got = pair_of(attention(*arguments, *mask))
            expect_close(got[1], right[1].to(dtype), tolerance, what="weights")
            expect_close(got[0], right[0].to(dtype), tolerance)


@part(points=1, needs="values")
def order_of_keys_does_not_matter(rng):
    "Keys and values in another order give the same output: attention knows no positions."
    Q, K, V = map(tensor, scalar_qkv(rng))
    order = rng.permutation(7)
    expect_close(output_of(attention(Q, K[order], V[order])), reference.attention(Q, K, V)[0])


@part(points=1, needs=("values", "mask"))
def inputs_unchanged(rng):
    "The caller's tensors are unchanged."
    for arrays in (wide_qkv(rng), [*wide_qkv(rng), random_mask(rng, 5, 7, empty_rows=2)]):
        attention(*map(tensor, arrays))
        expect_unchanged(attention, "attention")


### END HIDDEN TESTS

# %% [markdown] id="MultiHeadAttention_text"
# ## 2. `MultiHeadAttention`: the layer
#
# **Points** {points MultiHeadAttention} ·
# **Book** *Batched attention*, sections *From a loop to one product* and
# *Dropout belongs between softmax and values*
#
# In a loop over heads, head i has its own projection, `(d_model, d_k)`. If you put the projections of all heads
# side by side, one product makes the queries of all: **head i owns the features `i*d_k` to `(i+1)*d_k - 1`**. Then
# each head gets its own axis:
#
# | | shape |
# |---|---|
# | `q_proj(x)` | `(batch, n, d_model)` |
# | cut the last axis | `(batch, n, heads, d_k)` |
# | exchange `n` and `heads`, attend | `(batch, heads, n, d_k)` |
# | exchange back, concatenate, `out_proj` | `(batch, n, d_model)` |
#
# <details><summary>Hint: cutting and exchanging</summary>
#
# `x.unflatten(-1, (heads, d_k))` cuts the last axis, `x.transpose(1, 2)` exchanges two axes, and `x.flatten(2)`
# joins the last two. `view` or `reshape` straight to `(batch, heads, n, d_k)` gives the right shape and the wrong
# numbers: it keeps the order in memory, where a token's heads lie side by side.
# </details>
#
# <details><summary>Hint: dropout</summary>
#
# An `nn.Dropout` made in `__init__` knows whether the layer is in training. Apply it to the weights, before they
# are multiplied by the values.
# </details>

# %% role="solution" item="MultiHeadAttention"
from mha_lib.torch_attention import MultiHeadAttention

# %% role="test" item="MultiHeadAttention"
worked = {f"{name}.weight": torch.eye(4) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
worked |= {f"{name}.bias": torch.zeros(4) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
worked |= {"q_proj.weight": torch.zeros(4, 4), "q_proj.bias": torch.tensor([2.0, 0.0, 0.0, 2.0]).sqrt()}
layer = loaded(MultiHeadAttention(d_model=4, num_heads=2), worked)
x = torch.tensor([[[1.0, 4.0, 8.0, 1.0], [3.0, 8.0, 0.0, 1.0]]])  # (batch, n, d_model) = (1, 2, 4)
x[..., [0, 3]] = x[..., [0, 3]].log()
check_close(
    "output of the worked example",
    layer(x),
    torch.tensor([[[0.8240, 7.0, 4.0, 0.0]] * 2]),
    tolerance=1e-3,
    mistakes={
        "the scores were not divided by √d_k": [[[0.9068, 7.3018, 4.0, 0.0]] * 2],
        "the scores were divided by the root of d_model; it should be that of d_k": [
            [[0.7516, 6.7365, 4.0, 0.0]] * 2
        ],
        "the features were cut into heads without exchanging the axes of tokens and heads": [
            [[0.0, 8.0, 0.8240, 7.0]] * 2,
        ],
        VIEWED_AT_ONCE: [[[7.9973, 0.0013, 0.1439, 3.9281], [0.8240, 6.0, 1.0982, 7.9973]]],
        VIEWED_AT_FIRST: [[[7.9973, 0.0013, 0.8240, 6.0], [0.1439, 3.9281, 1.0982, 7.9973]]],
        VIEWED_AT_LAST: [[[0.8240, 7.0, 0.8240, 7.0], [4.0, 0.0, 4.0, 0.0]]],
    },
)
mask = torch.tensor([[True, False], [False, False]])  # (n, n): the second token has no key
check_close(
    "output under a mask", layer(x, mask), torch.tensor([[[0.0, 4.0, 8.0, 0.0], [0.0, 0.0, 0.0, 0.0]]])
)

layer = filled(MultiHeadAttention(6, 3, dropout=1.0))  # with numbers that are the same for everyone
x = torch.arange(30.0).view(1, 5, 6).sin()  # (batch, n, d_model)
layer.eval()
check_close(
    "output with other numbers, in eval mode",
    layer(x)[0, :2],
    torch.tensor(
        [
            [-1.2601, -1.1621, 1.0712, 1.4572, -0.7545, -1.6328],
            [-1.2329, -1.2138, 1.0385, 1.5054, -0.7165, -1.6769],
        ]
    ),
    tolerance=1e-3,
)
layer.train()
check_close(
    "in training, with all weights dropped",
    layer(x),
    layer.out_proj.bias.detach().expand(1, 5, 6),
    mistakes={"dropout came after the output projection, whose bias is lost": torch.zeros(1, 5, 6)},
)
check_unchanged("the layer leaves its input alone", layer, x)
### BEGIN HIDDEN TESTS

import torch

NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")


def numbers(rng, d_model, num_heads, scores="any", biases=False):
    """Numbers for a layer's parameters.

    With scores "any" the weights are random. With "by kind" the first features of a token tell its kind, each
    kind asks each head for one kind, and scores are 0 for it and far below 0 for the others, on any scale.
    With "equal" all scores are 0, so that only a mask tells the tokens apart.
    """
    d_k = d_model // num_heads
    weights = rng.normal(size=(4, d_model, d_model)) / d_model**0.5  # each (out, in)
    if scores == "by kind":
        asked = rng.integers(d_k, size=(num_heads, d_k))
        weights[:2] = 0.0
        weights[0, :, :d_k] = 300.0 * (np.eye(d_k)[:, asked] - 1.0).swapaxes(0, 1).reshape(d_model, d_k)
        weights[1, :, :d_k] = np.tile(np.eye(d_k), (num_heads, 1))
    if scores == "equal":
        weights[0] = 0.0
    found = {f"{name}.weight": weight for name, weight in zip(NAMES, weights, strict=True)}
    found |= {f"{name}.bias": rng.normal(size=d_model) * biases for name in NAMES}
    return {name: tensor(value) for name, value in found.items()}


def tokens(rng, batch, n, d_model, num_heads=1):
    """Random, but for the first d_k features, which tell the token's kind."""
    d_k = d_model // num_heads
    x = rng.normal(size=(batch, n, d_model))
    x[..., :d_k] = np.eye(d_k)[rng.integers(d_k, size=(batch, n))]
    return tensor(x)


def layers(rng, d_model=6, num_heads=1, scores="by kind", biases=False, **options):
    """A student's layer and the reference, with the same numbers."""
    parameters = numbers(rng, d_model, num_heads, scores, biases)
    return twins(MultiHeadAttention, reference.MultiHeadAttention, parameters, d_model, num_heads, **options)


def expect_output(pair, *arguments):
    layer, expected = pair
    expect_close(output_of(layer(*arguments)), expected(*arguments))


@part(points=2, example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None])")
def values(rng):
    "With one head and equal scores, each token gets the mean of all values, projected back."
    expect_output(layers(rng, scores="equal"), tokens(rng, 2, 5, 6))


@part(points=1, example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None])")
def queries_and_keys(rng):
    "With one head, a token attends to the keys that match its query, and gets their values."
    expect_output(layers(rng), tokens(rng, 2, 5, 6))


@part(points=1, needs="values", example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None, :1])")
def one_token(rng):
    "A sequence may have a single token, which attends to itself."
    for batch in (3, 1):
        expect_output(layers(rng, scores="equal"), tokens(rng, batch, 1, 6))


@part(points=2, example="filled(MultiHeadAttention(4, 2))(torch.eye(4)[None, :3])")
def several_heads(rng):
    "Head i works with the features i*d_k to (i+1)*d_k - 1 of queries, keys and values."
    for batch, n, d_model, num_heads in [(2, 5, 12, 3), (3, 4, 10, 5), (2, 5, 3, 3)]:
        expect_output(layers(rng, d_model, num_heads), tokens(rng, batch, n, d_model, num_heads))


@part(points=1, needs="values")
def transposed_input(rng):
    "The input need not be contiguous: here it comes from a transposition."
    layer, expected = layers(rng, scores="equal")
    x = tokens(rng, 2, 5, 6)
    given = construct(layer, "torch.transpose", x.transpose(0, 1).contiguous(), 0, 1)
    expect_close(output_of(layer(given)), expected(x))


@part(
    points=2,
    needs="queries_and_keys",
    example="filled(MultiHeadAttention(4, 2))(torch.eye(4)[None, :3])",
)
def scores(rng):
    "The scores are divided by the root of the width of one head."
    expect_output(layers(rng, 6, 1, "any"), tensor(rng.normal(size=(2, 5, 6))))
    pair, x = layers(rng, 12, 3, "any"), tensor(rng.normal(size=(2, 5, 12)))
    expect_output(pair, x)
    expect_output(pair, x, torch.ones(5, 5, dtype=torch.bool))  # it hides nothing: only the scale is at stake


@part(points=1, needs="values", example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None])")
def biases(rng):
    "All four linear layers have a bias and use it, in each head its own features."
    expect_output(layers(rng, 1, 1, "any", biases=True), tensor(rng.normal(size=(2, 5, 1))))
    # A token that is alone attends to itself, on any scale.
    expect_output(layers(rng, 12, 3, "any", biases=True), tensor(rng.normal(size=(2, 1, 12))))


@part(
    points=2,
    example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None], "
    "torch.tensor([[True, False], [True, True]]))",
)
def mask(rng):
    "Under a mask of shape (n, n) a token attends to the tokens for which its row is True."
    expect_output(layers(rng, scores="equal"), tokens(rng, 2, 5, 6), tensor(random_mask(rng, 5, 5)))


@part(points=1, needs=("values", "mask"))
def another_mask_at_each_call(rng):
    "Each call uses its own mask and number of tokens, and a call without a mask uses none, whatever came before."
    pair, x = layers(rng, scores="equal"), tokens(rng, 2, 5, 6)
    for _ in range(2):
        expect_output(pair, x, tensor(random_mask(rng, 5, 5)))
    expect_output(pair, x)
    for n in (4, 7):
        expect_output(pair, tokens(rng, 3, n, 6))


@part(
    points=1,
    needs="several_heads",
    example="filled(MultiHeadAttention(4, 2))(torch.eye(4).view(2, 2, 4), "
    "torch.tensor([[[[True, False]] * 2], [[[False, True]] * 2]]))",
)
def mask_for_each_sequence(rng):
    "A mask of shape (batch, 1, n, n) gives each sequence its own mask, the same for all heads."
    expect_output(layers(rng, 12, 3, "equal"), tokens(rng, 2, 5, 12, 3), tensor(random_mask(rng, 2, 1, 5, 5)))


@part(
    points=1,
    needs="mask",
    example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None], "
    "torch.tensor([[True, True], [False, False]]))",
)
def nothing_to_attend_to(rng):
    "A token that may attend to nothing gets the bias of the output projection."
    mask = random_mask(rng, 5, 5, empty_rows=2)
    expect_output(layers(rng, scores="equal"), tokens(rng, 2, 5, 6), tensor(mask))
    expect_output(layers(rng, scores="equal"), tokens(rng, 1, 5, 6), tensor(mask[None, None]))


WEIGHTS = [f"{name}.weight" for name in NAMES]


@part(points=1, needs="scores")
def gradient(rng):
    "Gradients of the output reach the input and the weights of all four linear layers, in training as well."
    layer, expected = layers(rng, scores="any")
    expect_gradients(rng, layer, expected, [tensor(rng.normal(size=(2, 5, 6)))], [0, *WEIGHTS])
    layer, _ = layers(rng, dropout=0.5)
    layer.train()
    seed_torch(layer, int(rng.integers(1000)))
    found = gradients(layer, [tensor(rng.normal(size=(2, 5, 6)))], [0, *WEIGHTS], torch.ones(2, 5, 6))
    arrive = all(gradient is not None and bool(gradient.isfinite().all()) for gradient in found)
    expect(arrive, "in training, with dropout, not all gradients arrive, or some are not finite")


@part(points=1, needs="nothing_to_attend_to")
def gradient_with_nothing_to_attend_to(rng):
    "All gradients are finite and right, even if a token may attend to nothing."
    layer, expected = layers(rng, scores="any", d_model=1)
    arguments = [tensor(rng.normal(size=(2, 5, 1))), tensor(random_mask(rng, 5, 5, empty_rows=1))]
    expect_gradients(rng, layer, expected, arguments, [0, *WEIGHTS])


@part(points=1, needs="values")
def no_dropout_by_default(rng):
    "Without a dropout argument there is no dropout, not even in training and not even if another layer has one."
    layer, expected = layers(rng, scores="equal")
    MultiHeadAttention(6, 1, dropout=1.0)
    layer.train()
    expect_output((layer, expected), tokens(rng, 2, 5, 6))


@part(points=1, needs="values")
def no_dropout_in_eval_mode(rng):
    "In eval mode the output equals the output without dropout, whatever the probability is."
    expect_output(layers(rng, scores="equal", dropout=1.0), tokens(rng, 2, 5, 6))


@part(points=1, needs="biases")
def everything_dropped(rng):
    "In training, with dropout=1.0, nothing but the bias of the output projection is left."
    layer, expected = layers(rng, biases=True, dropout=1.0)
    layer.train()
    expect_close(output_of(layer(tokens(rng, 2, 5, 6))), expected.out_proj.bias.expand(2, 5, 6))


@part(points=1, needs=("several_heads", "mask"))
def dropout_of_weights(rng):
    "Dropout removes weights, in each head independently, and the others are multiplied by 1/(1 - dropout)."
    parameters = numbers(rng, 8, 2) | {"out_proj.weight": torch.eye(8)}
    layer, expected = twins(MultiHeadAttention, reference.MultiHeadAttention, parameters, 8, 2, dropout=0.5)
    layer.train()
    seed_torch(layer, int(rng.integers(1000)))
    x, only_itself = tensor(rng.normal(size=(3, 9, 8))), torch.eye(9, dtype=torch.bool)
    got, single = output_of(layer(x, only_itself)), expected(x, only_itself).detach()
    expect_close(got, single, tolerance=np.inf)  # the shape, and no NaN
    # A token has a single weight in each head, so that all of its head's features go together.
    blocks = [values.view(3, 9, 2, 4) for values in (got, single)]
    dropped = (blocks[0].abs() <= 1e-5).all(dim=-1)  # (batch, n, heads)
    doubled = ((blocks[0] - 2 * blocks[1]).abs() <= 1e-4).all(dim=-1)
    kept = ((blocks[0] - blocks[1]).abs() <= 1e-4).all(dim=-1)
    expect(not kept.all(), "in training nothing was dropped")
    expect(
        not (dropped | kept).all(), "the weights that are not dropped should be multiplied by 1/(1 - dropout)"
    )
    expect((dropped | doubled).all(), "something other than weights was dropped")
    expect(dropped.any() and doubled.any(), "all weights of all tokens were dropped or kept together")


@part(points=1, needs="several_heads")
def a_draw_for_each_weight(rng):
    "Dropout draws each weight independently: for each head, query, key and sequence, at each call."
    batch, n, num_heads = 2, 5, 3
    d_model = n * num_heads
    # All scores are equal, and in each head the value of token j is 1 in feature j and 0 elsewhere, so that what
    # comes out are the weights. By chance a draw would seem to be shared less than once in 10^20 times.
    eye = torch.eye(d_model)
    parameters = {f"{name}.bias": torch.zeros(d_model) for name in NAMES}
    parameters |= {"q_proj.weight": 0.0 * eye, "k_proj.weight": eye, "out_proj.weight": eye}
    parameters["v_proj.weight"] = eye[:n].repeat(num_heads, 1)
    layer, _ = twins(
        MultiHeadAttention, reference.MultiHeadAttention, parameters, d_model, num_heads, dropout=0.5
    )
    layer.train()
    seed_torch(layer, int(rng.integers(1000)))
    x, calls = eye[:n].expand(batch, n, d_model).contiguous(), []
    for _ in range(2):
        got = output_of(layer(x))
        expect_close(got, torch.zeros(batch, n, d_model), tolerance=np.inf)  # the shape, and no NaN
        calls.append(got.view(batch, n, num_heads, n).abs() > 1e-5)
    kept = torch.stack(calls)  # (calls, batch, query, heads, key)
    for axis, shared in enumerate(("calls", "sequences", "queries", "heads", "keys")):
        alike = (kept == kept.narrow(axis, 0, 1)).all()
        expect(not alike, f"in training the same weights were dropped for all {shared}, or none")
    # Of these 300 draws, so many that the share is off by 0.18 happen less than once in 10^9 times.
    share = float(kept.double().mean())
    expect(abs(share - 0.5) < 0.18, "with dropout=0.5 about half of the weights should be dropped")


@part(points=1, needs="values")
def moves_to_another_dtype(rng):
    "After .double() the layer takes and returns float64."
    layer, expected = layers(rng, scores="equal")
    layer.double()
    expect_output((layer, expected.double()), tokens(rng, 2, 5, 6).double())


@part(points=1, needs="values")
def state_dict(rng):
    "The layer uses what load_state_dict loads for the four linear layers, and trains these and nothing else."
    pair = layers(rng, scores="equal")
    expect_output(pair, tokens(rng, 2, 5, 6))
    reload(pair, numbers(rng, 6, 1, "equal"))
    expect_output(pair, tokens(rng, 2, 5, 6))
    expect_trained(pair[0], *[(6, 6), (6,)] * 4)


@part(points=1, needs="queries_and_keys")
def order_of_tokens_does_not_matter(rng):
    "Tokens in another order give the outputs in that order."
    layer, expected = layers(rng)
    x, order = tokens(rng, 2, 5, 6), rng.permutation(5)
    expect_close(output_of(layer(x[:, order])), expected(x)[:, order])


@part(points=1, needs="values", example="filled(MultiHeadAttention(2, 1))(torch.eye(2)[None])")
def output_alone(rng):
    "The output comes alone, not in a tuple."
    result = layers(rng)[0](tokens(rng, 2, 5, 6))
    expect(not isinstance(result, tuple | list), "forward should return one tensor, the output")


@part(points=1, needs=("values", "mask"))
def input_unchanged(rng):
    "The caller's tensors are unchanged."
    layer, _ = layers(rng)
    layer(tokens(rng, 2, 5, 6), tensor(random_mask(rng, 5, 5)))
    expect_unchanged(layer, "the layer")


### END HIDDEN TESTS

# %% [markdown] id="see_batch"
# **Look at it.** The cell computes the same attention twice: all heads in one batched product, and one head after
# the other. The results are equal, and every line needs the same number of multiplications, since more heads are
# narrower. Only the number of calls from Python grows, and with short sequences the calls take most of the time.
# The times are the best of five, on one core.

# %% role="show" id="measure_batch"
import time

torch.set_num_threads(1)  # one core, so that only the two ways are compared


def best_time(function, *arguments):
    """The least of five times, in milliseconds."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        with torch.no_grad():
            function(*arguments)
        times.append(1000 * (time.perf_counter() - begin))
    return min(times)


def all_heads(Q, K, V):
    return attention(Q, K, V)[0]


def one_by_one(Q, K, V):
    heads = [attention(Q[:, i], K[:, i], V[:, i])[0] for i in range(Q.shape[1])]
    return torch.stack(heads, dim=1)


for heads in (1, 4, 16, 64):
    qkv = [torch.randn(2, heads, 16, 256 // heads) for _ in range(3)]  # (batch, heads, n, d_k)
    off = (all_heads(*qkv) - one_by_one(*qkv)).abs().max()
    times = f"together {best_time(all_heads, *qkv):6.2f} ms, one by one {best_time(one_by_one, *qkv):6.2f} ms"
    print(f"{heads:3} heads: {times}, difference at most {off:.0e}")

# %% [markdown] id="CausalSelfAttention_text"
# ## 3. `CausalSelfAttention`: one product, no looking ahead
#
# **Points** {points CausalSelfAttention} ·
# **Book** *Batched attention*, sections *One product for all three* and *A mask that moves along*
#
# In a language model every token attends to itself and to earlier ones. The mask is always the same, so the layer
# stores it. Queries, keys and values come from the same `x`, so one linear layer can make all three: its output
# holds **first all queries, then all keys, then all values**, each `d_model` wide and cut into heads as before.
#
# **Worked example.** One head, one feature: `qkv_proj.weight` is 0 for query and key, so all scores are 0, and 1
# for the value. Each output is the mean of the tokens so far.
#
# ```python
# x = torch.tensor([[[2.0], [4.0], [9.0]]])
# # output: [[[2.0], [3.0], [5.0]]]      2, (2+4)/2, (2+4+9)/3
# ```
#
# <details><summary>Hint: moving the mask</summary>
#
# `self.register_buffer("causal", mask, persistent=False)` makes the mask a buffer: it moves with the layer, is not
# a parameter, and is not in the state dict. Or make the mask in `forward`, on the device of `x`. A mask in a plain
# attribute stays where it was made.
# </details>
#
# <details><summary>Hint: three from one</summary>
#
# `chunk(3, dim=-1)` cuts the last axis into three equal parts.
# </details>

# %% role="solution" item="CausalSelfAttention"
from mha_lib.torch_attention import CausalSelfAttention

# %% role="test" item="CausalSelfAttention"
layer = loaded(
    CausalSelfAttention(d_model=1, num_heads=1, max_len=4),
    {
        "qkv_proj.weight": torch.tensor([[0.0], [0.0], [1.0]]),
        "qkv_proj.bias": torch.tensor([1.0, 0.0, 0.0]),
        "out_proj.weight": torch.ones(1, 1),
        "out_proj.bias": torch.zeros(1),
    },
)
x = torch.tensor([[[2.0], [4.0], [9.0]]])  # (batch, n, d_model) = (1, 3, 1)
check_close(
    "output of the worked example",
    layer(x),
    torch.tensor([[[2.0], [3.0], [5.0]]]),
    mistakes={
        "every token sees all tokens": [[[5.0], [5.0], [5.0]]],
        "a token sees what comes after it, not what came before": [[[5.0], [6.5], [9.0]]],
        "a token does not see itself": [[[0.0], [2.0], [3.0]]],
        "a token sees the next one as well": [[[3.0], [5.0], [5.0]]],
    },
)

layer = filled(CausalSelfAttention(6, 3, max_len=5))  # with numbers that are the same for everyone
x = torch.arange(30.0).view(1, 5, 6).sin()  # (batch, n, d_model)
last = torch.tensor([-3.2216, 0.5724, 3.2200, -0.0455, -3.0654, -0.3795])
check_close(
    "output for the last of five tokens",
    layer(x)[0, 4],
    last,
    tolerance=1e-3,
    mistakes={
        VIEWED_AT_ONCE: [1.5316, 0.1095, -1.5833, -0.1008, 1.7319, 0.1935],
        VIEWED_AT_FIRST: [-0.4749, 0.9519, 0.5142, -0.7169, -0.4321, 0.5761],
        VIEWED_AT_LAST: [-1.0965, 0.1839, 1.0529, 0.1092, -0.8816, -0.2986],
    },
)
check_close("the first two tokens do not depend on the others", layer(x[:, :2]), layer(x)[:, :2])
check_close("the same in float64", layer.double()(x.double())[0, 4], last.double(), tolerance=1e-3)
### BEGIN HIDDEN TESTS


def numbers(rng, d_model, equal=True, biases=False):
    found = {
        "qkv_proj.weight": rng.normal(size=(3 * d_model, d_model)) / d_model**0.5,
        "qkv_proj.bias": rng.normal(size=3 * d_model) * biases,
        "out_proj.weight": rng.normal(size=(d_model, d_model)) / d_model**0.5,
        "out_proj.bias": rng.normal(size=d_model) * biases,
    }
    if equal:  # all queries are 0, so that all scores are, and each token averages what it sees
        found["qkv_proj.weight"][:d_model] = 0.0
    return {name: tensor(value) for name, value in found.items()}


def layers(rng, d_model=6, num_heads=1, max_len=5, equal=True, biases=False):
    """A student's layer and the reference, with the same numbers."""
    parameters = numbers(rng, d_model, equal, biases)
    return twins(CausalSelfAttention, reference.CausalSelfAttention, parameters, d_model, num_heads, max_len)


def tokens(rng, *shape):
    return tensor(rng.normal(size=shape))


def expect_output(pair, x, tolerance=1e-5):
    layer, expected = pair
    expect_close(output_of(layer(x)), expected(x), tolerance)


@part(points=1, example="filled(CausalSelfAttention(4, 2, 1))(torch.eye(4)[None, :1])")
def one_token(rng):
    "A single token gets its own values, projected back: the last third of qkv_proj holds the values."
    expect_output(layers(rng, 12, 3, 1), tokens(rng, 2, 1, 12))


@part(points=2, example="filled(CausalSelfAttention(2, 1, 3))(torch.eye(3)[None, :, :2])")
def one_head(rng):
    "With one head and equal scores, each token gets the mean of the values up to its own."
    expect_output(layers(rng), tokens(rng, 2, 5, 6))


@part(points=2, example="filled(CausalSelfAttention(4, 2, 3))(torch.eye(4)[None, :3])")
def several_heads(rng):
    "Head i works with the features i*d_k to (i+1)*d_k - 1 of queries, keys and values."
    expect_output(layers(rng, 12, 3), tokens(rng, 2, 5, 12))
    expect_output(layers(rng, 10, 5, 4), tokens(rng, 3, 4, 10))


@part(points=2, needs="one_head", example="filled(CausalSelfAttention(4, 2, 3))(torch.eye(4)[None, :3])")
def scores(rng):
    "The first third of qkv_proj makes queries, and the second makes keys; scores are divided by √d_k."
    expect_output(layers(rng, equal=False), tokens(rng, 2, 5, 6))
    expect_output(layers(rng, 12, 3, equal=False), tokens(rng, 2, 5, 12))


@part(points=2, needs="one_head", example="filled(CausalSelfAttention(2, 1, 3))(torch.eye(2)[None])")
def shorter_sequences(rng):
    "n may be smaller than max_len, and may change from call to call."
    pair = layers(rng, max_len=8)
    for n in (3, 7, 1, 8):
        expect_output(pair, tokens(rng, 2, n, 6))


@part(points=1, needs="one_head", example="filled(CausalSelfAttention(2, 1, 3))(torch.eye(2)[None])")
def biases(rng):
    "Both linear layers have a bias and use it, in each head its own features."
    expect_output(layers(rng, 1, 1, equal=False, biases=True), tokens(rng, 2, 5, 1))
    # A token that is alone attends to itself, on any scale.
    expect_output(layers(rng, 12, 3, 1, equal=False, biases=True), tokens(rng, 2, 1, 12))


@part(points=1, needs="one_head")
def nothing_leaks_from_the_future(rng):
    "A change of the last tokens, however large, changes no earlier output."
    layer, expected = layers(rng)
    x = tokens(rng, 2, 5, 6)
    before = expected(x)
    x[:, 3:] = 100.0 * tokens(rng, 2, 2, 6)
    got = output_of(layer(x))
    expect_close(got, before, tolerance=np.inf)  # the shape, and no NaN
    expect_close(got[:, :3], before[:, :3])


@part(points=1, needs="scores")
def gradient(rng):
    "In training there is no dropout, and gradients of the output reach the input and the weights of both layers."
    layer, expected = layers(rng, equal=False)
    layer.train()
    expect_gradients(rng, layer, expected, [tokens(rng, 2, 5, 6)], [0, "qkv_proj.weight", "out_proj.weight"])


@part(points=1, needs="one_head")
def moves_to_another_dtype(rng):
    "After .double() the layer takes and returns float64, and after .bfloat16() it takes and returns bfloat16."
    for move, tolerance in (("double", 1e-5), ("bfloat16", 0.1)):
        layer, expected = layers(rng)
        getattr(layer, move)()
        x = getattr(tokens(rng, 2, 5, 6), move)()
        expect_close(output_of(layer(x)), expected.double()(x.double()).to(x.dtype), tolerance)


@part(points=2, needs="one_token")
def moves_to_another_device(rng):
    "After .to(device) all that the layer needs is on that device."
    layer, _ = layers(rng)
    layer(tokens(rng, 2, 5, 6))  # what is made at the first call has to move as well
    layer.to("meta")  # the device that every machine has: shapes without numbers
    x = construct(layer, "torch.empty", 2, 5, 6, device="meta")
    try:
        keep(layer, x)
    except CallError as error:
        if error.kind != "error":
            raise
        mixed = "device" in error.text and "cpu" in error.text
        expect(not mixed, "after .to(device) something that the layer needs is still on the CPU")
        # Right code may fail there for another reason: it looks at a number.


@part(points=1, needs="one_token")
def nothing_else_is_trained(rng):
    "An optimiser is given the weights and biases of the two linear layers, and no mask."
    layer, _ = layers(rng)
    expect_trained(layer, (18, 6), (18,), (6, 6), (6,))


@part(points=1, needs="one_head")
def state_dict(rng):
    "The layer uses what load_state_dict loads under the names of the linear layers, even after a call."
    pair = layers(rng)
    expect_output(pair, tokens(rng, 2, 5, 6))
    expect_output(reload(pair, numbers(rng, 6)), tokens(rng, 2, 5, 6))


@part(points=1, needs="one_head", example="filled(CausalSelfAttention(2, 1, 3))(torch.eye(2)[None])")
def output_alone(rng):
    "The output comes alone, not in a tuple."
    result = layers(rng)[0](tokens(rng, 2, 5, 6))
    expect(not isinstance(result, tuple | list), "forward should return one tensor, the output")


@part(points=1, needs="one_head")
def input_unchanged(rng):
    "The caller's tensor is unchanged."
    layer, _ = layers(rng)
    layer(tokens(rng, 2, 5, 6))
    expect_unchanged(layer, "the layer")


### END HIDDEN TESTS

# %% [markdown] id="from_builtin_text"
# ## 4. `from_builtin`: the weights of PyTorch's own layer
#
# **Points** {points from_builtin} · **Book** *Batched attention*, section *PyTorch's own layer*
#
# `nn.MultiheadAttention` computes what your layer computes and stores its weights in another way:
#
# | attribute | |
# |---|---|
# | `in_proj_weight` | `(3*d_model, d_model)`: the weights for all queries, then all keys, then all values |
# | `in_proj_bias` | `(3*d_model,)` in the same order, or `None` |
# | `out_proj` | a linear layer; its `bias` may be `None` |
# | `embed_dim`, `num_heads`, `dropout` | what it was made with; `dropout` is a number |
# | `training` | `True` in training, `False` in eval mode |
# | `batch_first` | whether *it* takes `(batch, n, d_model)` or `(n, batch, d_model)` |
#
# The item builds on your `MultiHeadAttention`. But most parts of the test read the weights by their names, so you
# can earn their points before your layer computes the right thing.
#
# <details><summary>Hint: copying</summary>
#
# `with torch.no_grad(): a.copy_(b)` writes the numbers of `b` into the parameter `a`, which stays a parameter.
# `load_state_dict` does the same for a whole module.
# </details>

# %% role="solution" item="from_builtin" may_use="MultiheadAttention"
from mha_lib.torch_attention import from_builtin

# %% role="test" item="from_builtin"
builtin = filled(nn.MultiheadAttention(6, 3, dropout=0.25, batch_first=True)).double().eval()
layer = from_builtin(builtin)
for number, name in enumerate(("q_proj", "k_proj", "v_proj")):
    check_close(
        f"{name}.weight",
        getattr(layer, name).weight,
        builtin.in_proj_weight[6 * number : 6 * number + 6].detach(),
    )
x = torch.arange(30.0).view(1, 5, 6).sin().double()  # (batch, n, d_model)
check_close("output", layer(x), builtin(x, x, x)[0].detach())
check_equal(
    "the mode is kept",
    torch.tensor(int(layer.training)),
    torch.tensor(0),
    mistakes={"the new layer is in training mode (1); the built-in one is in eval mode (0)": 1},
)

builtin = filled(nn.MultiheadAttention(6, 3, bias=False))  # takes (n, batch, d_model)
x = torch.arange(30.0).view(1, 5, 6).sin()  # (batch, n, d_model)
expected = builtin(*[x.transpose(0, 1)] * 3)[0].transpose(0, 1).detach()
check_close(
    "output, from a layer without biases that takes (n, batch, d_model)", from_builtin(builtin)(x), expected
)
### BEGIN HIDDEN TESTS

import torch

D_MODEL, NUM_HEADS = 12, 3
NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")


def builtins(rng, batch_first=True, bias=True, **options):
    """PyTorch's own layer in the student's process and here, with the same numbers, in eval mode."""
    size = {"in_proj_weight": (3 * D_MODEL, D_MODEL), "out_proj.weight": (D_MODEL, D_MODEL)}
    if bias:
        size |= {"in_proj_bias": (3 * D_MODEL,), "out_proj.bias": (D_MODEL,)}
    parameters = {name: tensor(0.3 * rng.normal(size=shape)) for name, shape in size.items()}
    options |= {"batch_first": batch_first, "bias": bias}
    theirs = installed(from_builtin, "torch.nn.MultiheadAttention")
    return twins(theirs, torch.nn.MultiheadAttention, parameters, D_MODEL, NUM_HEADS, **options)


def converted(builtin):
    # Seeded, so that numbers that a student's layer happens to start with are the same at every grading.
    seed_torch(from_builtin, 7)
    return keep(from_builtin, builtin)


def expect_state(layer, here, *wanted):
    """The layer's state dict holds these pieces of the built-in layer, under the names of the contract."""
    blocks = dict(zip(NAMES[:3], here.in_proj_weight.chunk(3), strict=True))
    right = {f"{name}.weight": block for name, block in blocks.items()}
    right["out_proj.weight"] = here.out_proj.weight
    if here.in_proj_bias is not None:
        right |= dict(zip([f"{n}.bias" for n in NAMES[:3]], here.in_proj_bias.chunk(3), strict=True))
        right["out_proj.bias"] = here.out_proj.bias
    else:
        right |= {f"{name}.bias": torch.zeros(D_MODEL, dtype=here.in_proj_weight.dtype) for name in NAMES}
    found = layer.state_dict()
    expect(isinstance(found, dict), "from_builtin should return a MultiHeadAttention")
    expect(
        "in_proj_weight" not in found, "from_builtin returned the built-in layer, not a MultiHeadAttention"
    )
    for name in wanted:
        expect(name in found, f"the layer has no {name} in its state dict")
        expect_close(found[name], right[name], what=name)


def expect_same_output(layer, here, x):
    fed = x if here.batch_first else x.transpose(0, 1)
    got = layer(x)
    expected = here(fed, fed, fed, need_weights=False)[0]
    expect_close(got, expected if here.batch_first else expected.transpose(0, 1))


@part(points=3)
def projections(rng):
    "q_proj, k_proj and v_proj have the weights that in_proj_weight stacks in this order."
    builtin, here = builtins(rng)
    expect_state(converted(builtin), here, "q_proj.weight", "k_proj.weight", "v_proj.weight")


@part(points=1)
def output_projection(rng):
    "out_proj has the weight of the built-in layer's out_proj."
    builtin, here = builtins(rng)
    expect_state(converted(builtin), here, "out_proj.weight")


@part(points=1)
def biases(rng):
    "All four biases are those of the built-in layer."
    builtin, here = builtins(rng)
    expect_state(converted(builtin), here, *[f"{name}.bias" for name in NAMES])


@part(points=2)
def same_output(rng):
    "The new layer computes what a built-in layer with batch_first=True computes."
    builtin, here = builtins(rng)
    layer = converted(builtin)
    layer.eval()
    expect_same_output(layer, here, tensor(rng.normal(size=(2, 5, D_MODEL))))


@part(points=1, needs="same_output")
def built_in_layer_with_the_sequence_first(rng):
    "The new layer takes (batch, n, d_model) even if the built-in one takes (n, batch, d_model)."
    builtin, here = builtins(rng, batch_first=False)
    layer = converted(builtin)
    layer.eval()
    expect_same_output(layer, here, tensor(rng.normal(size=(2, 5, D_MODEL))))


@part(points=2, needs=("projections", "output_projection"))
def built_in_layer_without_biases(rng):
    "If the built-in layer has no biases, the new one has biases of 0."
    builtin, here = builtins(rng, bias=False)
    expect_state(converted(builtin), here, *[f"{name}.bias" for name in NAMES])


@part(points=1, needs="projections")
def weights_are_copies(rng):
    "Later changes to the built-in layer do not affect the new one."
    builtin, here = builtins(rng)
    layer = converted(builtin)
    before = layer.state_dict()
    load_parameters(builtin, {name: torch.zeros(value.shape) for name, value in here.state_dict().items()})
    expect_state(layer, here, *[f"{name}.weight" for name in NAMES])
    after = layer.state_dict()
    for name in [f"{name}.bias" for name in NAMES]:  # whether they are right is the matter of another part
        if name in before:
            expect_close(after[name], before[name], what=name)


@part(points=1, needs="projections")
def built_in_layer_unchanged(rng):
    "The built-in layer is unchanged: its weights, its dtype and its mode."
    builtin, here = builtins(rng, dropout=1.0)
    builtin.train()
    converted(builtin)
    found = builtin.state_dict()
    expect(isinstance(found, dict), "the built-in layer has lost its state dict")
    for name, value in here.state_dict().items():
        expect_close(found.get(name), value, what=name)
    x = tensor(rng.normal(size=(2, 5, D_MODEL)))
    outputs = builtin(x, x, x)
    expect(
        isinstance(outputs, tuple) and len(outputs) == 2, "the built-in layer does not return a pair any more"
    )
    expect_close(outputs[0], here.out_proj.bias.expand(2, 5, D_MODEL), what="its output in training")


@part(points=1, needs="projections")
def dtype(rng):
    "A layer in float64 gives a layer in float64."
    builtin, here = builtins(rng)
    builtin.double()
    layer = converted(builtin)
    expect_state(layer, here.double(), "q_proj.weight", "out_proj.weight")
    found = layer.state_dict()
    for name in [f"{name}.bias" for name in NAMES]:
        expect(name not in found or found[name].dtype == torch.float64, f"{name} has the wrong dtype")


@part(points=1, needs="same_output")
def dropout(rng):
    "The probability of dropout is that of the built-in layer."
    builtin, here = builtins(rng, dropout=1.0)
    layer = converted(builtin)
    layer.train()
    nothing = here.out_proj.bias.detach().expand(2, 5, D_MODEL)
    expect_close(layer(tensor(rng.normal(size=(2, 5, D_MODEL)))), nothing)
    builtin, here = builtins(rng, dropout=0.5)
    layer = converted(builtin)
    layer.train()
    got = layer(tensor(rng.normal(size=(2, 5, D_MODEL))))
    bias = here.out_proj.bias.detach().expand(2, 5, D_MODEL)
    expect_close(got, bias, tolerance=np.inf)  # the shape, and no NaN
    all_dropped = bool(((got - bias).abs() <= 1e-5).all())
    expect(not all_dropped, "with dropout=0.5 all weights were dropped")


@part(points=1, needs="same_output")
def mode(rng):
    "The new layer has the mode of the built-in one, training or eval."
    builtin, _ = builtins(rng, dropout=1.0)
    x = tensor(rng.normal(size=(2, 5, D_MODEL)))
    for name, training in (("eval", False), ("train", True)):
        getattr(builtin, name)()
        layer = converted(builtin)
        expect(
            attribute_of(layer, "training") is training,
            "the new layer is in another mode than the built-in one",
        )
        # With dropout=1.0 no output rests on a draw.
        before = layer(x)
        getattr(layer, name)()
        expect_close(
            layer(x), before, what="the output after the layer is set to the mode in which it should be"
        )


@part(points=1, needs="projections")
def can_be_trained(rng):
    "Gradients reach the parameters of the new layer, and these are leaves, as an optimiser requires."
    builtin, _ = builtins(rng)
    x = tensor(rng.normal(size=(2, 5, D_MODEL)))
    names, layer = [f"{name}.weight" for name in NAMES], converted(builtin)
    for name, found in zip(names, gradients(layer, [x], names, x), strict=True):
        expect(found is not None, f"no gradient reaches {name}")
    found = parameters_of(layer, "is_leaf", "requires_grad")
    leaves = all(is_leaf for is_leaf, _ in found)
    expect(leaves, "an optimiser refuses a parameter that is not a leaf: it was computed from other tensors")
    expect(
        all(trained for _, trained in found), "a parameter does not require gradients, so it is not trained"
    )


### END HIDDEN TESTS

# %% [markdown] id="sdpa_attention_text"
# ## 5. `sdpa_attention`: PyTorch's own kernel
#
# **Points** {points sdpa_attention} ·
# **Book** *Batched attention*, section *One kernel*, and *Masks and fused kernels*
#
# `torch.nn.functional.scaled_dot_product_attention` computes the output of attention in one kernel, which on a
# GPU need not store the n·m scores. It returns no weights, divides by √d_k itself, and has its own options:
# `attn_mask`, `dropout_p`, `is_causal` and `scale`. In its boolean masks `True` means "may attend", as here, but
# not in `nn.MultiheadAttention`.
#
# <details><summary>Hint</summary>
#
# Let a query without keys attend to all of them, and set its output to 0 afterwards.
# </details>

# %% role="solution" item="sdpa_attention" asks_for="scaled_dot_product_attention"
from mha_lib.torch_attention import sdpa_attention

# %% role="test" item="sdpa_attention"
Q = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])  # (n, d_k) = (2, 4)
K = torch.tensor(
    [[1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0]]
).log()  # (m, d_k) = (3, 4)
V = torch.tensor([[4.0, 0.0], [0.0, 8.0], [2.0, 2.0]])  # (m, d_v) = (3, 2)
check_close(
    "output",
    sdpa_attention(Q, K, V),
    torch.tensor([[2.0, 3.0], [2.8, 2.0]]),
    mistakes={
        "the scores are scaled twice: the kernel scales them itself": [[2.0, 3.1716], [2.3923, 2.6795]]
    },
)
mask = torch.tensor([[True, True, False], [False, True, True]])  # (n, m)
check_close(
    "output under a mask",
    sdpa_attention(Q, K, V, mask),
    torch.tensor([[2.0, 4.0], [1.0, 5.0]]),
    mistakes={
        "the mask is the wrong way round": [[2.0, 2.0], [4.0, 0.0]],
        "the mask has no effect": [[2.0, 3.0], [2.8, 2.0]],
    },
)
mask = torch.tensor([[True, True, False], [False, False, False]])  # the second query has no key
check_close(
    "output of a query without keys", sdpa_attention(Q, K, V, mask), torch.tensor([[2.0, 4.0], [0.0, 0.0]])
)
### BEGIN HIDDEN TESTS

import torch


def expect_output(*arrays):
    arguments = [tensor(array) for array in arrays]
    expect_close(sdpa_attention(*arguments), reference.attention(*arguments)[0])


@part(
    points=2,
    example="sdpa_attention(torch.ones(1, 1), torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [10.0]]))",
)
def values(rng):
    "Each output is the average of the values, with the softmax of the query's scores as weights."
    expect_output(*scalar_qkv(rng))


@part(
    points=1,
    example="sdpa_attention(torch.full((1, 4), 2.0), 2 * torch.eye(4)[:2], torch.tensor([[0.0], [10.0]]))",
)
def scale(rng):
    "The scores are divided by √d_k once, with a mask or without, and there may be any number of leading axes."
    for leading in ((), (2,), (2, 3), (4, 2, 3)):
        expect_output(*wide_qkv(rng, *leading))
    everything = np.ones((5, 7), dtype=bool)  # it hides nothing: only the scale is at stake
    expect_output(*wide_qkv(rng), everything)


@part(
    points=1,
    needs="values",
    example="sdpa_attention(torch.ones(2, 1), torch.tensor([[1.0]]), torch.tensor([[10.0]]))",
)
def other_sizes(rng):
    "There may be more queries than keys, equally many, a single query, or a single key."
    for n, m in ((7, 4), (6, 6), (1, 5), (5, 1), (1, 1)):
        expect_output(*scalar_qkv(rng, n=n, m=m))


@part(
    points=1,
    example="sdpa_attention(torch.zeros(1, 1), torch.tensor([[-3.0], [1.0], [2.0]]), "
    "torch.tensor([[0.0], [10.0], [70.0]]), torch.tensor([[True, True, False]]))",
)
def mask(rng):
    "A query averages over the keys for which its row of the mask is True, and over no others."
    expect_output(*scalar_qkv(rng), random_mask(rng, 5, 7))


@part(
    points=1,
    needs="mask",
    example="sdpa_attention(torch.zeros(2, 1), torch.zeros(2, 1), torch.tensor([[4.0], [8.0]]), "
    "torch.tensor([[True, False], [True, False]]))",
)
def mask_with_as_many_keys_as_queries(rng):
    "The rule also holds at n = m, and with a key that no query sees, even if it scores nearly 30 above the others."
    mask = np.insert(random_mask(rng, 6, 5), 3, False, axis=1)
    expect_output(*scalar_qkv(rng, n=6, m=6), mask)
    K = rng.normal(size=(6, 1)) / 10.0
    K[3] = 29.5
    expect_output(np.ones((6, 1)), K, rng.normal(size=(6, 1)), mask)


@part(
    points=1,
    example="sdpa_attention(torch.zeros(2, 1, 1, 1), torch.ones(2, 1, 2, 1), "
    "torch.arange(4.0).view(2, 1, 2, 1), torch.tensor([[[[True, False]]], [[[False, True]]]]))",
)
def mask_for_each_sequence(rng):
    "A mask (n, m) applies to all sequences; (batch, 1, n, m), or (batch, 1, 1, m) for padding, gives each its own."
    expect_output(*scalar_qkv(rng, 2, 3), random_mask(rng, 5, 7))
    expect_output(*scalar_qkv(rng, 2, 3), random_mask(rng, 2, 1, 5, 7))
    expect_output(*scalar_qkv(rng, 2, 3), random_mask(rng, 2, 1, 1, 7))


@part(
    points=2,
    needs="mask",
    example="sdpa_attention(torch.zeros(1, 1), torch.zeros(2, 1), torch.tensor([[4.0], [8.0]]), "
    "torch.tensor([[False, False]]))",
)
def nothing_to_attend_to(rng):
    "The output of a query that may attend to nothing is 0, and the other outputs are right."
    expect_output(*scalar_qkv(rng), random_mask(rng, 5, 7, empty_rows=2))
    expect_output(*scalar_qkv(rng, 2, 3), random_mask(rng, 2, 1, 5, 7, empty_rows=2))


@part(points=1, needs="nothing_to_attend_to")
def gradient(rng):
    "All gradients are finite and right, even if some queries may attend to nothing."
    arguments = [*map(tensor, scalar_qkv(rng)), tensor(random_mask(rng, 5, 7, empty_rows=2))]
    expect_gradients(rng, sdpa_attention, reference.attention, arguments, [0, 1, 2])


@part(
    points=1,
    needs="mask",
    example="sdpa_attention(torch.zeros(1, 1).half(), torch.zeros(2, 1).half(), torch.ones(2, 1).half(), "
    "torch.tensor([[True, False]]))",
)
def other_dtypes(rng):
    "The output has the dtype of the arguments, in float16, bfloat16 and float64."
    for dtype, tolerance in ((torch.float16, 5e-3), (torch.bfloat16, 3e-2), (torch.float64, 1e-5)):
        arguments = [tensor(rng.uniform(size=size)).to(dtype) for size in [(5, 1), (7, 1), (7, 1)]]
        mask = tensor(random_mask(rng, 5, 7))
        got = sdpa_attention(*arguments, mask)
        expected = reference.attention(*[each.double() for each in arguments], mask)[0].to(dtype)
        expect_close(got, expected, tolerance)


@part(points=1, needs="mask")
def inputs_unchanged(rng):
    "The caller's tensors are unchanged."
    for arrays in (wide_qkv(rng), [*wide_qkv(rng), random_mask(rng, 5, 7, empty_rows=2)]):
        sdpa_attention(*map(tensor, arrays))
        expect_unchanged(sdpa_attention, "sdpa_attention")


### END HIDDEN TESTS

# %% [markdown] id="see_kernel"
# **Look at it.** Your attention stores all scores; the kernel works through them in tiles and keeps none. Twice
# the tokens make four times the scores. The times are the best of five, on one core.

# %% role="show" id="measure_kernel"
for n in (128, 256, 512, 1024):
    qkv = [torch.randn(1, 8, n, 32) for _ in range(3)]  # (batch, heads, n, d_k)
    times = (
        f"yours {best_time(all_heads, *qkv):7.2f} ms, the kernel {best_time(sdpa_attention, *qkv):7.2f} ms"
    )
    print(f"n = {n:4}: {8 * n * n * 4 / 2**20:5.1f} MiB of scores; {times}")

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check batched_torch.ipynb` runs the hidden tests on your code.
