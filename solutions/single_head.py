# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: single_head, version: "1.1"}
# ---

# %% role="author"
from checks import check_close, check_equal, check_kinds, check_unchanged
from types import SimpleNamespace

from mha_grader.testing import (
    CallError,
    Mismatch,
    decided_qkv,
    expect,
    expect_answer,
    expect_boolean,
    expect_close,
    expect_unchanged,
    high_qkv,
    low_qkv,
    mask_of,
    output_of,
    pair_of,
    part,
    part_for_each,
    random_mask,
    scalar_qkv,
    undecided_qkv,
    wide_qkv,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # One head of attention, and what it cannot do
#
# You build one attention head in NumPy: the softmax, the weighted sum of the values, and the masks. Then you find
# the limit of a single head, the reason why the next assignment has several.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `softmax` | {points softmax} | 2 | 5 | 15 |
# | 2 | `attention` | {points attention} | 3 | 5 | 30 |
# | 3 | `causal_mask` | {points causal_mask} | 2 | 5 | 15 |
# | 4 | `padding_mask` | {points padding_mask} | 1 | 4 | 10 |
# | 5 | `decoder_mask` | {points decoder_mask} | 2 | 4 | 10 |
# | 6 | `answers` | {points answers} | 3 | 4 | 30 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the name and the parameters, and run the check below. It prints `ok`, or one
# sentence that says what is wrong. No item needs your code from another one. `attention` may use your `softmax`,
# and `decoder_mask` your `causal_mask`; a mistake there costs its own points only. You may add cells. Keep the
# other files of this folder beside the notebook.
#
# **How it is graded.** Hidden tests try other sizes and numbers, part by part; each part that passes earns its
# points. Any code that meets the contract is right, a loop as well as one line. Use NumPy and nothing else.
#
# `batch` counts sequences, `n` counts queries, and `m` counts keys and values. `d_k` is the width of a head's
# queries and keys, and `d_v` that of its values. No function changes its arguments in place. In a **mask**, `True`
# means that the query *may* attend to the key.

# %% role="given" id="imports"
import numpy as np

# %% role="show" id="imports_for_checks"
import matplotlib.pyplot as plt
from checks import (
    check_answers,
    check_attention,
    check_causal_mask,
    check_decoder_mask,
    check_padding_mask,
    check_softmax,
)

# %% [markdown] id="softmax_text"
# ## 1. `softmax`: from scores to weights
#
# **Points** {points softmax} · **Book** *One head*, section *Softmax*
#
# A head compares a query with every key. Each comparison gives one number, the *score* or *logit*. The softmax
# turns a row of logits $x$ into weights that sum to 1: entry $i$ becomes $e^{x_i} / \sum_j e^{x_j}$.
#
# <details><summary>Hint: large logits</summary>
#
# `np.exp(1000.0)` is infinite, and infinity divided by infinity is NaN. What happens to the quotient if you
# subtract the same number from all logits of a row? Which number makes the largest exponential harmless? Is it
# the same for each row?
# </details>
#
# <details><summary>Hint: the axis</summary>
#
# `np.sum(x, axis=axis)` drops the axis that it sums over. Which argument of `np.sum` and `np.max` keeps it with
# size 1?
# </details>

# %% role="solution" item="softmax"
from mha_lib.attention import softmax

# %% role="test" item="softmax"
logits = np.log([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]])  # (2, 3)
check_close(
    "softmax of two rows",
    softmax(logits),
    [[0.125, 0.25, 0.625], [0.375, 0.375, 0.25]],
    mistakes={
        "one sum was taken over the whole matrix; each row needs its own": [
            [0.0625, 0.125, 0.3125],
            [0.1875, 0.1875, 0.125],
        ],
        "each column sums to 1; by default each row should": [
            [0.25, 0.4, 0.7143],
            [0.75, 0.6, 0.2857],
        ],
    },
)
check_close(
    "softmax along axis 0",
    softmax(np.log([[1.0, 2.0, 5.0], [3.0, 2.0, 5.0]]), axis=0),
    [[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]],
)
check_close("softmax of large logits", softmax(np.array([1000.0, 1000.0])), [0.5, 0.5])
check_unchanged("softmax leaves its argument alone", softmax, logits)
### BEGIN HIDDEN TESTS


@part(points=2, example="softmax(np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]]))")
def values(rng):
    "Each row of a matrix becomes its exponentials, divided by their sum."
    x = rng.normal(size=(5, 7))
    expect_close(softmax(x), reference.softmax(x))


@part(points=1, example="softmax(np.array([[[0.0, 1.0], [2.0, 2.0], [5.0, 3.0]]]))")
def any_number_of_axes(rng):
    "The default axis is the last one, however many axes there are and even if some have size 1."
    for shape in [(6,), (2, 5, 3), (3, 2, 4, 5), (1, 5), (3, 1)]:
        x = rng.normal(size=shape)
        expect_close(softmax(x), reference.softmax(x))


@part(points=2, example="softmax(np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]]), 0)")
def axis_argument(rng):
    "The weights sum to 1 along the axis that the caller asks for, however far apart what lies along it is."
    x = rng.normal(size=(4, 5, 3))
    for axis, weights in [(axis, softmax(x, axis)) for axis in (0, 1, 2, -2, -3)]:
        expect_close(weights, reference.softmax(x, axis))
    vector = rng.normal(size=6)
    for axis in (0, -1):
        expect_close(softmax(vector, axis), reference.softmax(vector, axis))
    far = rng.normal(size=(4, 6)) + np.array([[1e4], [0.0], [-1e4], [30.0]])
    try:
        expect_close(softmax(far), reference.softmax(far), tolerance=1e-2)
    except (CallError, Mismatch):
        return  # that rows may lie far apart is the matter of another part
    expect_close(softmax(far.T.copy(), 0), reference.softmax(far.T, 0), tolerance=1e-2)


@part(points=2, example="softmax(np.array([2000.0, 2000.0, 2001.0]))")
def large_logits(rng):
    "Logits in the thousands, of either sign, give the same weights as small ones with the same differences."
    small = rng.normal(size=6)  # one row, so that this part is about size alone
    for shift in (3000.0, -3000.0):
        expect_close(softmax(small + shift), reference.softmax(small + shift), tolerance=1e-2)


@part(points=2, example="softmax(np.array([[10000.0, 10000.0, 10001.0], [0.0, 0.0, 1.0]]))")
def rows_far_apart(rng):
    "A row's weights depend on that row alone, even when another row lies 10,000 above it."
    x = rng.normal(size=(4, 6)) + np.array([[1e4], [0.0], [-1e4], [30.0]])
    expect_close(softmax(x), reference.softmax(x), tolerance=1e-2)


@part(points=1, example="softmax(np.array([0.0, 1000.0]))")
def logits_far_apart_in_a_row(rng):
    "Nothing overflows if the logits of a row are thousands apart, and a logit 12 below the largest still counts."
    x = rng.permutation(np.array([-3000.0, 0.0, 0.5, 3000.0, 3000.7]))
    rows = x, x[::-1].copy(), rng.permutation(np.array([0.0, 0.2, 1000.0]))
    for row, weights in [(row, softmax(row)) for row in rows]:
        expect_close(weights, reference.softmax(row), tolerance=1e-2)
    x = rng.permutation(np.array([-12.0, -4.0, 0.0]))
    expect_close(softmax(x), reference.softmax(x))


@part(points=1, needs="values")
def input_unchanged(rng):
    "The caller's array is unchanged."
    for axis in (-1, 0):
        softmax(rng.normal(size=(3, 5)), axis)
        expect_unchanged(softmax, "softmax")


### END HIDDEN TESTS

# %% [markdown] id="attention_text"
# ## 2. `attention`: the head itself
#
# **Points** {points attention} · **Book** *One head*, section *Scaled dot-product attention*
#
# A head takes the dot product of every query with every key, divides it by $\sqrt{d_k}$, and turns the scores of
# each query into weights. The output is the sum of the values under these weights:
#
# $$\operatorname{attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# <details><summary>Hint: leading axes</summary>
#
# `@` multiplies the last two axes and pairs all the others. `K.T` reverses *all* axes, so it is right for
# matrices only: look at `np.swapaxes`.
# </details>
#
# <details><summary>Hint: the mask</summary>
#
# Which score gets a weight of exactly 0 from the softmax? `np.where(mask, a, b)` takes `a` where the mask is
# `True`, and broadcasts.
# </details>

# %% role="solution" item="attention"
from mha_lib.attention import attention

# %% role="test" item="attention"
Q = np.array([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])  # (n, d_k) = (2, 4)
K = np.log([[1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0]])  # (m, d_k) = (3, 4)
V = np.array([[4.0, 0.0], [0.0, 8.0], [2.0, 2.0]])  # (m, d_v) = (3, 2)
output, weights = attention(Q, K, V)
check_close(
    "weights",
    weights,
    [[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]],
    mistakes={
        "the scores were not divided by √d_k": [[0.1667, 0.1667, 0.6667], [0.8182, 0.0909, 0.0909]],
        "the scores were divided by d_k, not by its square root": [
            [0.2929, 0.2929, 0.4142],
            [0.4641, 0.2679, 0.2679],
        ],
        "these are the scores; the softmax is missing": [[0.0, 0.0, 0.6931], [1.0986, 0.0, 0.0]],
    },
)
check_close("output", output, [[2.0, 3.0], [2.8, 2.0]])

mask = np.array([[True, True, False], [False, True, True]])  # (n, m)
output, weights = attention(Q, K, V, mask=mask)
check_close(
    "weights under a mask",
    weights,
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]],
    mistakes={
        "the mask is the wrong way round: True means that the query may attend": [
            [0.0, 0.0, 1.0],
            [1.0, 0.0, 0.0],
        ],
        "the mask has no effect": [[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]],
        "the mask came after the softmax, so the weights no longer sum to 1": [
            [0.25, 0.25, 0.0],
            [0.0, 0.2, 0.2],
        ],
        "masked scores became 0, but a score of 0 is a score like any other": [
            [0.3333, 0.3333, 0.3333],
            [0.3333, 0.3333, 0.3333],
        ],
    },
)
check_close("output under a mask", output, [[2.0, 4.0], [1.0, 5.0]])

batch = [np.broadcast_to(array, (5, 2, *array.shape)) for array in (Q, K, V)]  # (batch, heads, …)
output, weights = attention(*batch)
check_close("output with leading axes", output, np.broadcast_to([[2.0, 3.0], [2.8, 2.0]], (5, 2, 2, 2)))
check_unchanged("attention leaves its arguments alone", attention, Q, K, V)
### BEGIN HIDDEN TESTS


def expect_output(*arguments, tolerance=1e-5):
    expect_close(output_of(attention(*arguments)), reference.attention(*arguments)[0], tolerance)


@part(points=1, example="attention(np.ones((1, 1)), np.array([[0.0], [1.0]]), np.array([[0.0], [10.0]]))")
def values(rng):
    "Each output is the average of the values, with the softmax of the query's scores as weights."
    expect_output(*scalar_qkv(rng))


@part(
    points=1,
    needs="values",
    example="attention(np.array([[1.0], [2.0], [3.0]]), np.array([[0.0], [1.0]]), np.array([[0.0], [10.0]]))",
)
def other_lengths(rng):
    "There may be more queries than keys, equally many, a single query, or a single key."
    for n, m in [(8, 3), (6, 6), (1, 4), (5, 1), (1, 1)]:
        expect_output(*scalar_qkv(rng, n=n, m=m))


@part(
    points=2,
    example="attention(np.eye(4)[:2] * 2.0, np.eye(4)[:3] * 2.0, np.array([[0.0], [10.0], [70.0]]))",
)
def scale(rng):
    "The scores are divided by the square root of the width d_k of queries and keys."
    expect_output(*wide_qkv(rng))


@part(points=1, example="attention(np.zeros((2, 1, 3)), np.ones((2, 2, 3)), np.arange(4.0).reshape(2, 2, 1))")
def batch(rng):
    "Each sequence of a batch is treated by itself, with fewer queries than keys or more."
    expect_output(*decided_qkv(rng, 2))
    expect_output(*decided_qkv(rng, 2, n=6, m=5))


@part(
    points=1,
    example="attention(np.zeros((2, 1, 2, 1, 3)), np.ones((2, 1, 2, 2, 3)), "
    "np.arange(8.0).reshape(2, 1, 2, 2, 1))",
)
def batch_and_heads(rng):
    "With two leading axes or more, each of the matrices is treated by itself."
    expect_output(*decided_qkv(rng, 2, 3))
    expect_output(*decided_qkv(rng, 2, 1, 3))
    expect_output(*decided_qkv(rng, 2, 1, 3, 2))


@part(points=1, needs=("scale", "batch_and_heads"))
def scale_in_a_batch(rng):
    "The width d_k is found on the last axis, however many axes there are, and with a mask as well."
    expect_output(*wide_qkv(rng, 2, 3))
    expect_output(
        *wide_qkv(rng, 2, 3), np.ones((5, 7), dtype=bool)
    )  # it hides nothing: only the scale is at stake


@part(
    points=1, example="attention(np.array([[1.0], [2.0]]), np.array([[0.0], [1.0], [3.0]]), np.ones((3, 1)))"
)
def weights(rng):
    "The second result is the weights, one row for each query."
    for arguments in (
        scalar_qkv(rng),
        decided_qkv(rng, 2),
        decided_qkv(rng, 2, 3),
        scalar_qkv(rng, n=1, m=1),
    ):
        expected = reference.attention(*arguments)[1]
        expect_close(pair_of(attention(*arguments))[1], expected, what="weights")


@part(
    points=1,
    example="attention(np.zeros((1, 1)), np.array([[-3.0], [1.0], [2.0]]), "
    "np.array([[0.0], [10.0], [70.0]]), np.array([[True, True, False]]))",
)
def mask(rng):
    "A query averages over the keys for which its row of the mask is True, and over no others."
    expect_output(*scalar_qkv(rng), random_mask(rng, 5, 7))


@part(
    points=1,
    needs="mask",
    example="attention(np.zeros((2, 1)), np.zeros((2, 1)), np.array([[0.0], [10.0]]), np.tri(2, dtype=bool))",
)
def square_mask(rng):
    "With as many queries as keys, a row of the mask still belongs to a query: a causal mask hides later keys."
    expect_output(*scalar_qkv(rng, n=6, m=6), np.tri(6, dtype=bool))
    expect_output(*scalar_qkv(rng, n=5, m=5), random_mask(rng, 5, 5))


@part(
    points=1,
    example="attention(np.zeros((2, 1, 1)), np.ones((2, 2, 1)), np.arange(4.0).reshape(2, 2, 1), "
    "mask=np.array([[True, False]]))",
)
def one_mask_for_all(rng):
    "A mask of shape (n, m) applies to every sequence and every head; it may be passed by name, as mask=…"
    mask = random_mask(rng, 5, 7)
    expect_output(*undecided_qkv(rng, 2), mask)
    arguments = undecided_qkv(rng, 2, 3)
    expect_close(output_of(attention(*arguments, mask=mask)), reference.attention(*arguments, mask)[0])


@part(
    points=2,
    example="attention(np.zeros((2, 1, 1, 1)), np.ones((2, 1, 2, 1)), np.arange(4.0).reshape(2, 1, 2, 1), "
    "np.array([[[[True, False]]], [[[False, True]]]]))",
)
def mask_for_each_sequence(rng):
    "A mask of shape (batch, 1, n, m) gives each sequence its own mask, the same for all heads."
    expect_output(*undecided_qkv(rng, 2, 3), random_mask(rng, 2, 1, 5, 7))
    expect_output(*undecided_qkv(rng, 2, 3), random_mask(rng, 2, 1, 1, 7))


@part(
    points=1,
    example="attention(np.zeros((1, 1, 2, 1)), np.ones((1, 1, 2, 1)), np.array([[[[0.0], [10.0]]]]), "
    "np.array([[[[True, False]]]]))",
)
def mask_for_all_queries(rng):
    "A mask of shape (batch, 1, 1, m), as for padding, applies to every query of a sequence."
    expect_output(*undecided_qkv(rng, 1, 3), random_mask(rng, 1, 1, 1, 7))


@part(
    points=1,
    needs="weights",
    example="attention(np.zeros((1, 1)), np.zeros((3, 1)), np.zeros((3, 1)), np.array([[True, True, False]]))",
)
def masked_weights(rng):
    "The returned weights are those after the mask: 0 where it is False, with sum 1."
    tokens, mask = scalar_qkv(rng), random_mask(rng, 5, 7)
    expected = reference.attention(*tokens, mask)[1]
    expect_close(pair_of(attention(*tokens, mask))[1], expected, what="weights")


@part(
    points=1,
    example="attention(np.array([[-200.0]]), np.full((3, 1), 100.0), np.array([[0.0], [10.0], [70.0]]), "
    "np.array([[True, True, False]]))",
)
def scores_far_below_zero(rng):
    "A masked key gets no weight even if the scores of all the others are about -20,000."
    expect_output(*low_qkv(rng), random_mask(rng, 5, 7), tolerance=1e-2)


@part(
    points=1,
    needs="mask",
    example="attention(np.array([[1.0]]), np.array([[0.0], [0.0], [25.0]]), np.array([[0.0], [10.0], [70.0]]), "
    "np.array([[True, True, False]]))",
)
def masked_scores_far_above(rng):
    "The weights of the kept keys sum to 1 even where a masked score lies nearly 30 above theirs."
    mask = random_mask(rng, 5, 7)
    mask[:, -1] = False
    mask[:, 0] = True
    K = rng.normal(size=(7, 1)) / 10.0
    K[-1] = 29.5
    expect_output(np.ones((5, 1)), K, rng.normal(size=(7, 1)), mask)


@part(
    points=1,
    example="attention(np.array([[100.0]]), np.array([[30.0], [29.99]]), np.array([[0.0], [10.0]]))",
)
def large_scores(rng):
    "Scores in the thousands, of either sign, do not overflow."
    Q, K, V = high_qkv(rng)
    expect_output(Q, K, V, tolerance=1e-2)
    K[:3] -= 60.0  # now the scores of one query lie 6,000 apart
    expect_output(Q, K, V, tolerance=1e-2)
    heads = scalar_qkv(rng, 2, 3)
    try:
        expect_output(*heads)
    except (CallError, Mismatch):
        return  # leading axes are the matter of other parts
    K = 100.0 + heads[1] / 100.0
    K[1] -= 130.0  # and now those of a sequence and a head lie thousands from those of the others
    K[:, 1] += 60.0
    expect_output(np.full((2, 3, 5, 1), 50.0), K, heads[2], tolerance=1e-2)


@part(points=1, needs="mask")
def what_is_masked_does_not_matter(rng):
    "Keys and values that are masked for all queries change no output, however large they are."
    (Q, K, V), mask = scalar_qkv(rng), random_mask(rng, 5, 7)
    mask[:, 2], mask[:, 4] = False, True
    expected = reference.attention(Q, K, V, mask)[0]
    K[2], V[2] = K[2] + 1.0, 1e6
    expect_close(output_of(attention(Q, K, V, mask)), expected)


@part(points=1, needs="values")
def order_of_keys_does_not_matter(rng):
    "Keys and values in another order give the same output: attention knows no positions."
    Q, K, V = scalar_qkv(rng)
    expected = reference.attention(Q, K, V)[0]
    order = rng.permutation(7)
    expect_close(output_of(attention(Q, K[order], V[order])), expected)


@part(points=1, needs=("values", "mask"))
def inputs_unchanged(rng):
    "The caller's arrays are unchanged."
    attention(*decided_qkv(rng))
    expect_unchanged(attention, "attention")
    mask = random_mask(rng, 5, 7)
    mask[:, 3], mask[:, 4] = False, True
    attention(*wide_qkv(rng), mask)
    expect_unchanged(attention, "attention")


### END HIDDEN TESTS

# %% [markdown] id="see_attention"
# **Look at it.** Each token below *is* something (its key) and *looks for* something (its query): a noun looks
# for its adjective, an adjective for its noun, and a verb or an article for nouns. Each row of the map holds the
# weights of one token. Two nouns match the query of "watched": each gets almost half of the weight.

# %% role="show" id="plot_weights"
WORDS = ["the", "small", "cat", "watched", "a", "bird"]
KINDS = {"article": 0, "adjective": 1, "noun": 2, "verb": 3}
is_a = [KINDS[kind] for kind in ("article", "adjective", "noun", "verb", "article", "noun")]
looks_for = [KINDS[kind] for kind in ("noun", "noun", "adjective", "noun", "noun", "adjective")]


def plot_weights(weights, title):
    figure, axes = plt.subplots(figsize=(4.5, 4))
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    axes.set(title=title, xlabel="key", ylabel="query")
    axes.set_xticks(range(len(WORDS)), WORDS, rotation=45)
    axes.set_yticks(range(len(WORDS)), WORDS)
    for (i, j), weight in np.ndenumerate(weights):
        axes.text(j, i, f"{weight:.2f}", ha="center", va="center", color="white" if weight > 0.6 else "black")
    figure.tight_layout()
    plt.show()


keys = np.eye(4)[is_a]  # (n, d_k) = (6, 4)
queries = 6.0 * np.eye(4)[looks_for]  # (n, d_k)
plot_weights(attention(queries, keys, keys)[1], "who looks at whom")

# %% [markdown] id="causal_mask_text"
# ## 3. `causal_mask`: no looking ahead
#
# **Points** {points causal_mask} · **Book** *One head*, section *Masks*
#
# A model that predicts the next token must not see it. So a query may attend to its own position and to earlier
# ones. When a model generates token by token, the queries are only the *newest* `n` of `m` positions: the **last
# query lines up with the last key**, and the first query already has m − n keys before it.
#
# <details><summary>Hint</summary>
#
# Compare a column of row numbers with a row of column numbers: you get a whole matrix. Or use `np.tri` with its
# argument `k`; mind the dtype.
# </details>

# %% role="solution" item="causal_mask"
from mha_lib.masks import causal_mask

# %% role="test" item="causal_mask"
check_equal(
    "causal_mask(3)",
    causal_mask(3),
    [[True, False, False], [True, True, False], [True, True, True]],
    mistakes={
        "a query should see its own position too": [
            [False, False, False],
            [True, False, False],
            [True, True, False],
        ],
        "a query sees one position ahead": [[True, True, False], [True, True, True], [True, True, True]],
        "rows and columns are swapped: row i is query i": [
            [True, True, True],
            [False, True, True],
            [False, False, True],
        ],
    },
)
check_equal(
    "causal_mask(2, 3)",
    causal_mask(2, 3),
    [[True, True, False], [True, True, True]],
    mistakes={
        "the first query is lined up with the first key; the last should line up with the last": [
            [True, False, False],
            [True, True, False],
        ]
    },
)
### BEGIN HIDDEN TESTS


def expect_mask(*sizes):
    mask, expected = mask_of(causal_mask(*sizes)), reference.causal_mask(*sizes)
    if mask.ndim > 2 and mask.size == expected.size:  # axes of size 1: the shape has a part of its own, too
        mask = mask.reshape(mask.shape[-2:])
    expect_close((mask != 0) * 1, expected, what="the mask")


@part(points=2, example="causal_mask(4)")
def as_many_keys_as_queries(rng):
    "With n = m, query i may attend to keys 0 to i."
    for n in (1, 5, int(rng.integers(6, 12)), 130):
        expect_mask(n)
        expect_mask(n, n)


@part(points=2, example="causal_mask(2, 5)")
def more_keys_than_queries(rng):
    "With n < m, the last query lines up with the last key."
    for n in (1, 3, int(rng.integers(4, 9))):
        expect_mask(n, n + int(rng.integers(1, 6)))


@part(points=1, needs="as_many_keys_as_queries", example="causal_mask(2)")
def shape(rng):
    "The shape is (n, m)."
    shape = mask_of(causal_mask(4)).shape
    expect(shape == (4, 4), f"causal_mask(4) should have the shape (4, 4), not {shape}")


@part(points=1, needs="as_many_keys_as_queries", example="causal_mask(2)")
def boolean(rng):
    "The entries are True and False, not numbers."
    expect_boolean(causal_mask(4))


### END HIDDEN TESTS

# %% [markdown] id="padding_mask_text"
# ## 4. `padding_mask`: no looking at padding
#
# **Points** {points padding_mask} · **Book** *One head*, section *Masks*
#
# To fit sequences of different lengths into one array, the short ones are padded at their end. No query may
# attend to padding. The mask depends on the sequence and on the key, not on the head or the query: hence the two
# axes of size 1 in its shape.
#
# <details><summary>Hint</summary>
#
# Position j is real if j is smaller than the length. Give `lengths` the shape `(batch, 1, 1, 1)` and let the
# comparison broadcast.
# </details>

# %% role="solution" item="padding_mask"
from mha_lib.masks import padding_mask

# %% role="test" item="padding_mask"
check_equal(
    "padding_mask([2, 4, 1], 4)",
    padding_mask(np.array([2, 4, 1]), 4),
    [[[[True, True, False, False]]], [[[True, True, True, True]]], [[[True, False, False, False]]]],
    mistakes={
        "one position too many counts as real: a sequence of length 2 has the positions 0 and 1": [
            [[[True, True, True, False]]],
            [[[True, True, True, True]]],
            [[[True, True, False, False]]],
        ]
    },
)
### BEGIN HIDDEN TESTS


def lengths_for(rng, batch, max_len):
    return rng.permutation(np.concatenate([[1, max_len], rng.integers(1, max_len + 1, size=batch - 2)]))


@part(points=1, example="padding_mask(np.array([1, 2]), 3)")
def values(rng):
    "The mask is True for exactly the first lengths[b] positions of sequence b."
    lengths = lengths_for(rng, 5, 8)
    mask = mask_of(padding_mask(lengths, 8))
    expect(mask.size == 40, f"5 sequences of 8 positions should give 40 entries, but it has {mask.size}")
    expected = reference.padding_mask(lengths, 8).reshape(5, 8)
    expect_close((mask != 0).reshape(5, 8) * 1, expected, what="the mask")


@part(points=1, needs="values", example="padding_mask(np.array([1, 2]), 4)")
def room_to_spare(rng):
    "The last axis has max_len positions, even if no sequence is that long."
    lengths = lengths_for(rng, 5, 6)
    mask, expected = mask_of(padding_mask(lengths, 9)), reference.padding_mask(lengths, 9)
    expect(mask.size == 45, f"5 sequences of 9 positions should give 45 entries, but it has {mask.size}")
    expect_close((mask != 0).reshape(expected.shape) * 1, expected, what="the mask")


def mask_with_both():
    # A mask whose only fault is where exactly it changes still has the right shape and kind.
    mask = mask_of(padding_mask(np.array([7, 2, 4]), 7))
    entries = (mask != 0).reshape(3, -1)
    both = bool(entries[:, 0].all() and entries[0].all() and not entries[1:, -1].any())
    expect(both, "the first token of each sequence should be kept, and the last of a short one should not")
    return mask


@part(points=1, example="padding_mask(np.array([1, 2]), 3)")
def shape(rng):
    "The shape is (batch, 1, 1, max_len): it broadcasts over heads and queries."
    shape = mask_with_both().shape
    expect(shape == (3, 1, 1, 7), f"3 sequences of 7 positions should give shape (3, 1, 1, 7), not {shape}")
    shape = mask_of(padding_mask(np.array([6]), 6)).shape
    expect(shape == (1, 1, 1, 6), f"1 sequence of 6 positions should give shape (1, 1, 1, 6), not {shape}")
    shape = mask_of(padding_mask(np.array([1, 1]), 1)).shape
    expect(shape == (2, 1, 1, 1), f"2 sequences of 1 position should give shape (2, 1, 1, 1), not {shape}")


@part(points=1, example="padding_mask(np.array([1, 2]), 3)")
def boolean(rng):
    "The entries are True and False, not numbers."
    expect_boolean(mask_with_both())


@part(points=1, needs="values")
def input_unchanged(rng):
    "The caller's array of lengths is unchanged."
    padding_mask(lengths_for(rng, 5, 8), 8)
    expect_unchanged(padding_mask, "padding_mask")


### END HIDDEN TESTS

# %% [markdown] id="decoder_mask_text"
# ## 5. `decoder_mask`: no looking ahead or at padding
#
# **Points** {points decoder_mask} · **Book** *One head*, section *Masks*
#
# In a batch of texts of different lengths both rules hold at once: a query may attend to a key only if the key is
# not later **and** is a real token.
#
# <details><summary>Hint</summary>
#
# `&` combines two boolean arrays entry by entry and broadcasts. On which axis of `(batch, heads, n, n)` do the
# keys lie? Put `keep` there, with axes of size 1 in all other places.
# </details>

# %% role="solution" item="decoder_mask"
from mha_lib.masks import decoder_mask

# %% role="test" item="decoder_mask"
keep = np.array([[True, True, False], [True, True, True]])  # (batch, n) = (2, 3)
check_equal(
    "decoder_mask(3, keep)",
    np.broadcast_to(decoder_mask(3, keep), (2, 1, 3, 3)),
    [
        [[[True, False, False], [True, True, False], [True, True, False]]],
        [[[True, False, False], [True, True, False], [True, True, True]]],
    ],
    mistakes={
        "padding is masked, but the future is not": [
            [[[True, True, False], [True, True, False], [True, True, False]]],
            [[[True, True, True], [True, True, True], [True, True, True]]],
        ],
        "the future is masked, but padding is not": [
            [[[True, False, False], [True, True, False], [True, True, True]]],
            [[[True, False, False], [True, True, False], [True, True, True]]],
        ],
        "a key is kept if one of the rules allows it; both must": [
            [[[True, True, False], [True, True, False], [True, True, True]]],
            [[[True, True, True], [True, True, True], [True, True, True]]],
        ],
        "queries that are padding were masked; keys should be": [
            [[[True, False, False], [True, True, False], [False, False, False]]],
            [[[True, False, False], [True, True, False], [True, True, True]]],
        ],
    },
)
check_equal(
    "decoder_mask(2)", np.broadcast_to(decoder_mask(2), (1, 1, 2, 2)), [[[[True, False], [True, True]]]]
)
check_unchanged("decoder_mask leaves keep alone", lambda keep: decoder_mask(3, keep), keep)
### BEGIN HIDDEN TESTS


def expect_mask(n, *keep, batch=3, heads=2):
    mask, full = mask_of(decoder_mask(n, *keep)), (batch, heads, n, n)
    sizes = (1,) * (4 - mask.ndim) + mask.shape
    fits = len(sizes) == 4 and all(size in (1, wanted) for size, wanted in zip(sizes, full, strict=True))
    expect(fits, f"a mask of shape {mask.shape} does not broadcast to (batch, heads, n, n) = {full}")
    expected = np.broadcast_to(reference.decoder_mask(n, *keep), full)
    expect_close(np.broadcast_to(mask != 0, full) * 1, expected, what="the mask")


@part(points=1, example="decoder_mask(3)")
def all_tokens_real(rng):
    "Without keep, it is the causal mask."
    for n in (1, int(rng.integers(4, 9)), 130):
        expect_mask(n)


@part(points=2, example="decoder_mask(3, np.array([[True, True, False]]))")
def padding_at_the_end(rng):
    "A key that is later or is padding gets no attention; every other one does."
    lengths = rng.permutation([1, 3, 5, 7])
    expect_mask(7, np.arange(7) < lengths[:, None], batch=4)


@part(points=1, needs="padding_at_the_end", example="decoder_mask(3, np.array([[True, False, True]]))")
def padding_anywhere(rng):
    "Padding between real tokens is masked as well."
    keep = rng.random((4, 7)) < 0.5
    keep[:, 0], keep[0, 3], keep[0, 5] = True, False, True
    expect_mask(7, keep, batch=4)


@part(points=1, needs="padding_at_the_end", example="decoder_mask(2, np.array([[True, False]]))")
def boolean(rng):
    "The entries are True and False, not numbers, with keep as well as without it."
    expect_boolean(decoder_mask(5, np.arange(5) < np.array([[3], [5]])))
    try:
        without_keep = decoder_mask(5)
    except CallError:
        return  # another part asks whether that works
    expect_boolean(without_keep)


@part(points=1, needs="padding_at_the_end")
def input_unchanged(rng):
    "The caller's array keep is unchanged."
    decoder_mask(5, np.arange(5) < rng.permutation([2, 3, 5])[:, None])
    expect_unchanged(decoder_mask, "decoder_mask")


### END HIDDEN TESTS

# %% [markdown] id="see_masks"
# **Look at it.** The sentence is the same, read from left to right, with its last token as padding. Compare the
# rows with the first map: the other keys share what a masked key has lost.

# %% role="show" id="plot_masked_weights"
real = np.array([[True, True, True, True, True, False]])  # (batch, n)
seen = np.broadcast_to(decoder_mask(6, real), (1, 1, 6, 6))[0, 0]  # (n, n)
plot_weights(attention(queries, keys, keys, seen)[1], "the same under decoder_mask")

# %% [markdown] id="why_scale"
# ## Why divide by √d_k?
#
# **Book** *One head*, section *Why √d_k*
#
# If the entries of a query and a key are independent with mean 0 and variance 1, each product of two entries also
# has mean 0 and variance 1, and the dot product sums d_k of them. The cell measures the consequence: the variance
# of the scores before and after dividing, and the largest of ten weights, averaged over many queries. (Ten equal
# weights would be 0.1 each.)

# %% role="show" id="measure_scale"
rng = np.random.default_rng(0)
print("  d_k   variance of q·k   of q·k/√d_k   largest weight without scaling   with scaling")
for d_k in (4, 64, 1024):
    q, k = rng.normal(size=(500, 1, d_k)), rng.normal(size=(500, 10, d_k))
    scores = (q @ np.swapaxes(k, 1, 2))[:, 0]  # (500, 10)
    sharp, scaled = softmax(scores).max(axis=1).mean(), softmax(scores / np.sqrt(d_k)).max(axis=1).mean()
    variances = f"{scores.var():17.1f} {scores.var() / d_k:13.2f}"
    print(f"{d_k:5d} {variances} {sharp:32.2f} {scaled:14.2f}")

# %% [markdown] id="one_head_limit"
# ## What one head cannot do
#
# **Book** *One head*, section *What one head cannot do*, and *The limit of one head*
#
# A query has *one* row of weights in a head. If a token needs the contents of two positions, it gets one weighted
# sum of both, and no linear read-out can separate independent contents again.
#
# The cell measures this. Every position holds four independent random numbers, its *content*. The target at each
# position is the contents of the positions 1, 2, … k before it, side by side. The head's weights depend on
# positions alone. A linear read-out, fitted by least squares, predicts the target from the head's output. The
# cell prints the share of the target's variance that it explains: 1 is perfect, and 0 is no better than the mean.
#
# As long as the weights do not depend on the contents, **h heads explain at most h/k**, for h ≤ k: each head adds
# one weighted sum, and h sums hold h parts out of k.

# %% role="show" id="measure_one_head"
N, WIDTH = 10, 4
content = rng.normal(size=(2000, N, WIDTH))  # (batch, n, d_v)


def head(mixture):
    """One head that mixes the contents of the positions 1, 2, … before each position, with these weights."""
    scores = np.full((N, N), -50.0)
    for offset, weight in enumerate(mixture, start=1):
        scores += np.diag(np.full(N - offset, np.log(weight + 1e-20) + 50.0), -offset)
    queries = np.broadcast_to(scores * np.sqrt(N), (len(content), N, N))  # the keys are one-hot positions
    keys = np.broadcast_to(np.eye(N), (len(content), N, N))
    return attention(queries, keys, content)[0]  # (batch, n, d_v)


def explained(k, mixtures):
    """Share of variance that the heads with these mixtures explain, at positions with k predecessors."""
    given = np.concatenate([head(mixture)[:, k:] for mixture in mixtures], axis=-1)
    asked = np.concatenate([content[:, k - offset : N - offset] for offset in range(1, k + 1)], axis=-1)
    given, asked = given.reshape(-1, given.shape[-1]), asked.reshape(-1, asked.shape[-1])
    rest = asked - given @ np.linalg.lstsq(given, asked, rcond=None)[0]
    return 1 - rest.var() / asked.var()


print(f"k = 2, one head, mixed half and half: {explained(2, [[0.5, 0.5]]):.2f}")
print(f"k = 2, one head, mixed 0.9 and 0.1:   {explained(2, [[0.9, 0.1]]):.2f}")
print(f"k = 2, one head, all on the first:    {explained(2, [[1.0, 0.0]]):.2f}")
print(f"k = 2, two heads:                     {explained(2, [[1.0, 0.0], [0.0, 1.0]]):.2f}")
print(f"k = 4, one head:                      {explained(4, [[0.4, 0.3, 0.2, 0.1]]):.2f}")
print(f"k = 4, two heads:                     {explained(4, [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]):.2f}")

# %% [markdown] id="answers_text"
# ## 6. `answers`: eight short questions
#
# **Points** {points answers} · **Book** *One head*, section *Why √d_k*, and *The limit of one head*
#
# Replace each `None` by a number (0.5, not "1/2"; an absolute error of 0.005 is allowed) or, for a choice, by one
# letter in quotation marks, "b" or "B". Each answer is worth one point.
#
# **The scale.** The entries of q and k are independent with mean 0 and variance 1.
#
# 1. `variance`: a head has d_k = 100. What is the variance of q·k?
# 2. `scaled_variance`: and of q·k/√d_k?
# 3. `wrong_scale_deviation`: a layer has d_model = 512 and heads with d_k = 64. By mistake its scores are divided
#    by √d_model. What is the standard deviation of the scores?
# 4. `wrong_scale_effect`: what does that mistake do to the attention weights before training?
#     * `"a"`: they come too close to one-hot
#     * `"b"`: they come too close to equal
#     * `"c"`: nothing, since the softmax looks only at the order of the scores
#
# **The limit.** As above: the target is the contents of k other positions, side by side; the weights depend on
# positions alone; the read-out is linear.
#
# 5. `one_head_share`: k = 5. What share of the variance can one head explain at most?
# 6. `three_heads_share`: and three heads?
# 7. `wider_head`: k = 5 again, but *one* head has ten times the d_k and d_v. What happens to its limit?
#     * `"a"`: it is ten times as high, but at most 1
#     * `"b"`: it rises, but by less
#     * `"c"`: it stays
# 8. `half_and_half`: k = 2, and one head puts weight ½ on each of the two positions. What can a read-out learn
#    about their contents u and v?
#     * `"a"`: both, since both are in the output
#     * `"b"`: u + v, but not which part is u and which is v
#     * `"c"`: the larger of the two
#
# <details><summary>Hint: the scale</summary>
#
# Variances of independent numbers add up. Dividing by c divides the variance by c².
# </details>
#
# <details><summary>Hint: the limit</summary>
#
# Look at the printed shares and at the law. What does h count: numbers, or rows of weights?
# </details>

# %% role="solution" item="answers"
answers = {
    "variance": None,
    "scaled_variance": None,
    "wrong_scale_deviation": None,
    "wrong_scale_effect": None,
    "one_head_share": None,
    "three_heads_share": None,
    "wider_head": None,
    "half_and_half": None,
}
### BEGIN SOLUTION
answers = {
    "variance": 100,  # d_k products, each of variance 1
    "scaled_variance": 1,  # dividing by √d_k divides the variance by d_k
    "wrong_scale_deviation": np.sqrt(64 / 512),  # 0.354: √d_k / √d_model
    "wrong_scale_effect": "b",  # scores near 0 give weights near 1/m
    "one_head_share": 1 / 5,
    "three_heads_share": 3 / 5,
    "wider_head": "c",  # still one row of weights for each query
    "half_and_half": "b",
}
### END SOLUTION

# %% role="test" item="answers"
check_kinds(
    answers,
    {
        "variance": "number",
        "scaled_variance": "number",
        "wrong_scale_deviation": "number",
        "wrong_scale_effect": "abc",
        "one_head_share": "number",
        "three_heads_share": "number",
        "wider_head": "abc",
        "half_and_half": "abc",
    },
)
### BEGIN HIDDEN TESTS


parts = part_for_each(
    lambda question: expect_answer(answers, reference.answers, question),
    points=1,
    proves={
        "variance": "This question asks how the variance of a dot product grows with the width.",
        "scaled_variance": "This question asks what dividing the scores does to their variance.",
        "wrong_scale_deviation": "This question asks how large scores are after division by the wrong width.",
        "wrong_scale_effect": "This question asks what the size of the scores does to the weights.",
        "one_head_share": "This question asks how far one head gets if the target is five contents.",
        "three_heads_share": "This question asks how far three heads get if the target is five contents.",
        "wider_head": "This question asks whether the width of a head changes the limit of one head.",
        "half_and_half": "This question asks what the average of two contents reveals.",
    },
)


### END HIDDEN TESTS

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check single_head.ipynb` runs the hidden tests on your code.
