# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: pitfalls, version: "1.2"}
# ---

# %% role="author"
from checks import check_close, check_equal, check_unchanged
from types import SimpleNamespace

from mha_grader.testing import checker_parts, expect, expect_close, pair_of, part, part_for_each

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # Pitfalls: find them, repair them, and write the test that catches them
#
# Wrong attention rarely crashes. It returns an array of the right shape, the loss goes down, and the model is a
# little worse than it should be. You read code that is wrong in exactly one way, repair it, name mistakes by
# what they do, and write the checks that would have caught them.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `repaired_scale` | {points repaired_scale} | 2 | 5 | 10 |
# | 2 | `repaired_mask` | {points repaired_mask} | 2 | 5 | 10 |
# | 3 | `repaired_split` | {points repaired_split} | 3 | 5 | 10 |
# | 4 | `repaired_merge` | {points repaired_merge} | 3 | 5 | 10 |
# | 5 | `repaired_causal` | {points repaired_causal} | 2 | 4 | 10 |
# | 6 | `diagnosis` | {points diagnosis} | 3 | 4 | 30 |
# | 7 | `check_attention` | {points check_attention} | 4 | 5 | 45 |
# | 8 | `check_split_heads` | {points check_split_heads} | 3 | 4 | 20 |
# | 9 | `check_multi_head_attention` | {points check_multi_head_attention} | 4 | 5 | 40 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the name and the parameters, and run the check below. It prints `ok`, or one
# sentence that says what is wrong. No item needs your code from another one, but you may use it. You may add cells.
# Keep the other files of this folder beside the notebook.
#
# The checks of items 6 to 9 print a line for each thing that they try: `ok` or `no`.
#
# **How it is graded.** Your repaired functions meet the tests of earlier assignments, part by part. Your checks
# get functions that they can call but not read: correct ones in many styles, which they must accept, and known
# mistakes, which they should reject. Each rejected mistake earns points, but only if your check accepts every
# correct function. A call that the contract does not allow raises a `ValueError`, whatever the function. Use NumPy
# and nothing else.
#
# The words are those of earlier assignments: `batch` counts sequences, `n` queries and `m` keys; a head is `d_k`
# wide, its values are `d_v` wide, and the layer is `d_model` wide. Masks are boolean, `True` = may attend. No
# function changes its arguments in place.

# %% role="given" id="imports"
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

Array = np.ndarray

# %% role="show" id="imports_for_checks"
from checks import (
    check_diagnosis,
    check_repaired_causal,
    check_repaired_mask,
    check_repaired_merge,
    check_repaired_scale,
    check_repaired_split,
    try_check_attention,
    try_check_multi_head_attention,
    try_check_split_heads,
)

# %% [markdown] id="given_text"
# **Given:** `softmax` and `head_dim` from earlier assignments. Their code is in `given.py` beside this
# notebook.

# %% role="given" id="given_pieces"
from mha_lib.attention import softmax
from mha_lib.heads import head_dim

# %% [markdown] id="repaired_scale_text"
# ## 1. `repaired_scale`
#
# **Points** {points repaired_scale} · **Book** *One head*, section *Why √d_k*
#
# The function below passed every test with matrices. Then it went into a model.

# %% role="given" id="broken_scale"
from mha_lib.pitfalls.code.single_head.attention import attention_scale_by_axis_one as broken_scale

# %% [markdown] id="repaired_scale_contract"
# Repair it: the contract is that of `attention` in *One head of attention*.
#
# <details><summary>Hint</summary>
#
# What is `Q.shape[1]` for `Q` of shape `(n, d_k)`, and what is it for `(batch, n, d_k)`?
# </details>

# %% role="solution" item="repaired_scale"
from mha_lib.attention import attention as repaired_scale

# %% role="test" item="repaired_scale" borrow="single_head.attention" share=0.25
Q = np.array([[[2.0, 0.0, 0.0, 0.0]], [[0.0, 2.0, 0.0, 0.0]]])  # (batch, n, d_k) = (2, 1, 4)
K = np.log([[[3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]] * 2)  # (batch, m, d_k) = (2, 2, 4)
V = np.array([[[4.0], [8.0]]] * 2)  # (batch, m, d_v) = (2, 2, 1)
output, weights = repaired_scale(Q, K, V)
check_close(
    "weights of two sequences",
    weights,
    [[[0.75, 0.25]], [[0.5, 0.5]]],
    mistakes={"the scale is still taken from another axis than the last": [[[0.9, 0.1]], [[0.5, 0.5]]]},
)
check_close("output of two sequences", output, [[[5.0]], [[6.0]]])
check_unchanged("repaired_scale leaves its arguments alone", repaired_scale, Q, K, V)
### BEGIN HIDDEN TESTS


@part(
    points=1,
    example="repaired_scale(np.ones((1, 2, 4)), np.eye(4)[None], np.arange(4.0).reshape(1, 4, 1) ** 2)",
)
def mended(rng):
    "The mistake is repaired: the scores are divided by √d_k, even in a batch."
    # Values as wide as keys: only the axis is at stake here.
    Q, K, V = (rng.normal(size=(2, tokens, 3)) for tokens in (5, 7, 7))
    output, _ = pair_of(repaired_scale(Q, K, V))
    expect_close(output, reference.repaired_scale(Q, K, V)[0])


### END HIDDEN TESTS

# %% [markdown] id="repaired_mask_text"
# ## 2. `repaired_mask`
#
# **Points** {points repaired_mask} · **Book** *One head*, section *Masks*
#
# Masked keys get no weight here, as they should. Something else is lost.

# %% role="given" id="broken_mask"
from mha_lib.pitfalls.code.single_head.attention import attention_mask_after_softmax as broken_mask

# %% [markdown] id="repaired_mask_contract"
# Repair it, with the same contract.
#
# <details><summary>Hint</summary>
#
# Print the sums of the rows of `broken_mask`'s weights under a mask.
# </details>

# %% role="solution" item="repaired_mask"
from mha_lib.attention import attention as repaired_mask

# %% role="test" item="repaired_mask" borrow="single_head.attention" share=0.25
Q, K = np.zeros((1, 4)), np.ones((4, 4))  # (n, d_k), (m, d_k)
V = np.array([[4.0], [8.0], [16.0], [32.0]])  # (m, d_v)
mask = np.array([[True, True, False, False]])  # (n, m)
output, weights = repaired_mask(Q, K, V, mask)
check_close(
    "weights under a mask",
    weights,
    [[0.5, 0.5, 0.0, 0.0]],
    mistakes={"the weights no longer sum to 1": [[0.25, 0.25, 0.0, 0.0]]},
)
check_close("output under a mask", output, [[6.0]])
### BEGIN HIDDEN TESTS


@part(
    points=1,
    example="repaired_mask(np.zeros((1, 2)), np.ones((2, 2)), np.array([[4.0], [8.0]]), np.array([[True, False]]))",
)
def mended(rng):
    "The mistake is repaired: the weights of a query sum to 1, even under a mask."
    # Each token sees two others and itself, in both directions: only what the weights sum to is at stake here.
    near = np.abs(np.arange(7) - np.arange(7)[:, None]) % 6 <= 1  # (n, n), on a ring
    order = rng.permutation(7)
    mask = near[order][:, order]
    Q, K, V = np.zeros((7, 1)), rng.normal(size=(7, 1)), 5.0 + rng.normal(size=(7, 3))
    output, _ = pair_of(repaired_mask(Q, K, V, mask))
    expect_close(output, reference.repaired_mask(Q, K, V, mask)[0], tolerance=0.05)


### END HIDDEN TESTS

# %% [markdown] id="repaired_split_text"
# ## 3. `repaired_split`
#
# **Points** {points repaired_split} · **Book** *Several heads*, section *From features to heads*
#
# The shape is right, and so is the number of entries. But whose features are they?

# %% role="given" id="broken_split"
from mha_lib.pitfalls.code.multi_head.split_heads import split_heads_without_transpose as broken_split

# %% [markdown] id="repaired_split_contract"
# Repair it: the contract is that of `split_heads` in *Several heads*, its error included.
#
# <details><summary>Hint</summary>
#
# A reshape never moves a number in memory. Number the features 0, 1, 2, … of two tokens and look where they go.
# </details>

# %% role="solution" item="repaired_split"
from mha_lib.heads import split_heads as repaired_split

# %% role="test" item="repaired_split" borrow="multi_head.split_heads" share=0.5
x = np.array([[[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]]])  # (batch, n, d_model) = (1, 2, 4)
check_close(
    "two heads of two tokens",
    repaired_split(x, 2),
    [[[[0.0, 1.0], [10.0, 11.0]], [[2.0, 3.0], [12.0, 13.0]]]],
    mistakes={
        "head 0 got all features of token 0, and head 1 those of token 1": [
            [[[0.0, 1.0], [2.0, 3.0]], [[10.0, 11.0], [12.0, 13.0]]]
        ]
    },
)
### BEGIN HIDDEN TESTS


@part(points=1, example="repaired_split(np.arange(8.0).reshape(1, 2, 4), 2)")
def mended(rng):
    "The mistake is repaired: head i holds its own features of every token."
    x = rng.normal(size=(2, 3, 20))
    expect_close(repaired_split(x, 5), reference.repaired_split(x, 5))


### END HIDDEN TESTS

# %% [markdown] id="repaired_merge_text"
# ## 4. `repaired_merge`
#
# **Points** {points repaired_merge} · **Book** *Several heads*, section *From heads to features*
#
# This function does the reverse. It undoes the broken splitting above, so a round trip reveals nothing.

# %% role="given" id="broken_merge"
from mha_lib.pitfalls.code.multi_head.combine_heads import combine_heads_without_transpose as broken_merge

# %% [markdown] id="repaired_merge_contract"
# Repair it: the contract is that of `combine_heads` in *Several heads*.
#
# <details><summary>Hint</summary>
#
# Which two axes must be neighbours before they can become one?
# </details>

# %% role="solution" item="repaired_merge"
from mha_lib.heads import combine_heads as repaired_merge

# %% role="test" item="repaired_merge" borrow="multi_head.combine_heads" share=0.5
x = np.array(
    [[[[0.0, 1.0], [10.0, 11.0]], [[2.0, 3.0], [12.0, 13.0]]]]
)  # (batch, heads, n, d_k) = (1, 2, 2, 2)
check_close(
    "two sequences, three heads of width 1, merged",
    repaired_merge(np.array([[[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]], np.ones((3, 2, 1))])),
    [[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]],
)
check_close(
    "two heads of two tokens, merged",
    repaired_merge(x),
    [[[0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]]],
    mistakes={
        "a token got one head's features of both tokens": [[[0.0, 1.0, 10.0, 11.0], [2.0, 3.0, 12.0, 13.0]]]
    },
)
### BEGIN HIDDEN TESTS


@part(points=1, example="repaired_merge(np.arange(8.0).reshape(1, 2, 2, 2))")
def mended(rng):
    "The mistake is repaired: a token's row holds what all heads have for that token."
    x = rng.normal(size=(2, 5, 3, 4))
    expect_close(repaired_merge(x), reference.repaired_merge(x))


### END HIDDEN TESTS

# %% [markdown] id="repaired_causal_text"
# ## 5. `repaired_causal`
#
# **Points** {points repaired_causal} · **Book** *One head*, section *Masks*
#
# In training this mask is right. In generation, where one new query meets all the keys so far, the model forgets
# everything but the first token.

# %% role="given" id="broken_causal"
from mha_lib.pitfalls.code.single_head.causal_mask import causal_mask_top_left as broken_causal

# %% [markdown] id="repaired_causal_contract"
# Repair it: the contract is that of `causal_mask` in *One head of attention*.
#
# <details><summary>Hint</summary>
#
# What should the mask for `n = 1` and `m = 3` be? What is it?
# </details>

# %% role="solution" item="repaired_causal"
from mha_lib.masks import causal_mask as repaired_causal

# %% role="test" item="repaired_causal" borrow="single_head.causal_mask" share=0.5
check_equal("as many keys as queries", repaired_causal(3), np.tri(3, dtype=bool))
check_equal(
    "one query and three keys",
    repaired_causal(1, 3),
    [[True, True, True]],
    mistakes={"the first query is still lined up with the first key": [[True, False, False]]},
)
### BEGIN HIDDEN TESTS


@part(points=1, example="repaired_causal(2, 4)")
def mended(rng):
    "The mistake is repaired: the last query is lined up with the last key."
    mask = repaired_causal(3, 8)
    expect_close(mask * 1.0 if isinstance(mask, np.ndarray) else mask, reference.repaired_causal(3, 8) * 1.0)


### END HIDDEN TESTS

# %% [markdown] id="diagnosis_text"
# ## 6. `diagnosis`: name the mistake
#
# **Points** {points diagnosis} · **Book** *The pitfalls*, section *From the symptom to the candidates*; the pages
# *Softmax* to *Heads* of the catalogue
#
# Below are eight functions, each wrong in one way. Read them, run them, and name the mistake of each. `case_a` to
# `case_c` should be `attention`, `case_d` `causal_mask`, `case_e` `decoder_mask`, `case_f` `softmax`, and `case_g`
# and `case_h` `multi_head_attention`. The cases e, g and h call your own `repaired_causal`, `repaired_scale` and
# `repaired_split`, under the names `causal_mask`, `attention` and `split_heads`. The names of the mistakes are
# listed below the cases.

# %% role="given" id="case_a"
from mha_lib.pitfalls.code.single_head.attention import attention_scale_by_dk as case_a

# %% role="given" id="case_b"
from mha_lib.pitfalls.code.single_head.attention import attention_mask_added_as_0_1 as case_b

# %% role="given" id="case_c"
from mha_lib.pitfalls.code.single_head.attention import attention_softmax_over_queries as case_c

# %% role="given" id="case_d"
from mha_lib.pitfalls.code.single_head.causal_mask import causal_mask_hides_self as case_d

# %% role="given" id="case_e"
from mha_lib.pitfalls.code.single_head.decoder_mask import decoder_mask_or_combined as case_e

# %% role="given" id="case_f"
from mha_lib.pitfalls.code.single_head.softmax import softmax_global_max_subtraction as case_f

# %% role="given" id="own_pieces"
attention, split_heads, causal_mask = repaired_scale, repaired_split, repaired_causal

# %% role="given" id="given_for_one_head"
from mha_lib.pitfalls.derived import for_one_head

# %% role="given" id="case_g"
from mha_lib.pitfalls.code.multi_head.multi_head_attention import multi_head_attention_input_sliced as case_g

# %% role="given" id="case_h"
from mha_lib.pitfalls.code.multi_head.multi_head_attention import multi_head_attention_summed as case_h

# %% [markdown] id="diagnosis_choices"
# `diagnosis` is a dict from the letter of a case to one of these names.
#
# | name | what the code does |
# |---|---|
# | `"causal-hides-self"` | a token may not attend to itself |
# | `"causal-sees-next"` | a token may attend to the next one |
# | `"global-max-subtraction"` | one maximum is subtracted from all rows |
# | `"heads-summed"` | the outputs of the heads are added, not concatenated |
# | `"input-sliced-per-head"` | each head reads only its own slice of the input |
# | `"mask-added-as-0-1"` | the mask is added to the scores as 0 and 1 |
# | `"mask-inverted"` | True is taken to mean "hide" |
# | `"masks-or-combined"` | one of two masks is enough to see a key |
# | `"no-max-subtraction"` | large logits overflow |
# | `"no-scale"` | the scores are not divided |
# | `"scale-by-dk"` | the scores are divided by d_k |
# | `"shared-projection"` | all heads use the same projection |
# | `"softmax-over-queries"` | the softmax runs along the queries |
# | `"softmax-whole-matrix"` | the softmax runs over all scores at once |
#
# <details><summary>Hint</summary>
#
# Do not only read. Call the function and the right one with small numbers, and look where they differ first.
# </details>

# %% role="solution" item="diagnosis"
diagnosis = {"a": None, "b": None, "c": None, "d": None, "e": None, "f": None, "g": None, "h": None}
### BEGIN SOLUTION
diagnosis = {
    "a": "scale-by-dk",
    "b": "mask-added-as-0-1",
    "c": "softmax-over-queries",
    "d": "causal-hides-self",
    "e": "masks-or-combined",
    "f": "global-max-subtraction",
    "g": "input-sliced-per-head",
    "h": "heads-summed",
}
### END SOLUTION

# %% role="test" item="diagnosis"
CHOICES = [
    "causal-hides-self",
    "causal-sees-next",
    "global-max-subtraction",
    "heads-summed",
    "input-sliced-per-head",
    "mask-added-as-0-1",
    "mask-inverted",
    "masks-or-combined",
    "no-max-subtraction",
    "no-scale",
    "scale-by-dk",
    "shared-projection",
    "softmax-over-queries",
    "softmax-whole-matrix",
]
for letter in "abcdefgh":
    named = diagnosis.get(letter) if isinstance(diagnosis, dict) else None
    if named is None:
        print(f"todo case {letter}: no name yet")
    elif named in CHOICES:
        print(f"ok   case {letter}: one of the names")
    else:
        print(f"no   case {letter}: {named!r} is not one of the names")
### BEGIN HIDDEN TESTS


from mha_lib.pitfalls import BANK


def expect_case(case):
    letter = case[-1]
    expect(isinstance(diagnosis, dict), "diagnosis should be a dict")
    answer = diagnosis.get(letter)
    expect(isinstance(answer, str), f"diagnosis[{letter!r}] should be one of the names, in quotation marks")
    slug = answer.strip().lower().replace("_", "-")
    expect(slug in BANK, f"diagnosis[{letter!r}] is not one of the names")
    expect(slug == reference.diagnosis[letter], f"case {letter} has another mistake")


parts = part_for_each(
    expect_case,
    points=1,
    proves={
        "case_a": "The mistake of case a is recognised.",
        "case_b": "The mistake of case b is recognised.",
        "case_c": "The mistake of case c is recognised.",
        "case_d": "The mistake of case d is recognised.",
        "case_e": "The mistake of case e is recognised.",
        "case_f": "The mistake of case f is recognised.",
        "case_g": "The mistake of case g is recognised.",
        "case_h": "The mistake of case h is recognised.",
    },
)


### END HIDDEN TESTS

# %% [markdown] id="check_attention_text"
# ## 7. `check_attention`: write the test
#
# **Points** {points check_attention} · **Book** *One head*; the pages *Softmax*, *Attention*, *Scale* and *Mask*
# of the pitfalls
#
# Now you write the test, and the grader hands it functions. This check accepts what is right, and rejects a wrong
# shape and nothing else:
#
# **Worked example.**
#
# ```python
# def check_attention(candidate):
#     output, weights = candidate(np.ones((3, 4)), np.ones((5, 4)), np.ones((5, 2)))
#     assert output.shape == (3, 2) and weights.shape == (3, 5)
# ```
#
# <details><summary>Hint: which inputs?</summary>
#
# Go through the mistakes that you know. For each, ask which input makes a difference: does it need a batch?
# different sizes? a mask? one mask for each sequence? large scores? a look at the arguments after the call?
# </details>
#
# <details><summary>Hint: what to compare with?</summary>
#
# Compute the right values in the slow and obvious way, one query at a time.
# </details>

# %% role="solution" item="check_attention"
from mha_lib.checkers import check_attention


# %% role="check"
def judge(check, what, candidate, right):
    try:
        check(candidate)
        accepted = True
    except NotImplementedError:
        raise
    except Exception:
        accepted = False
    verdict = "accepts" if accepted else "rejects"
    print("ok  " if accepted == right else "no  ", f"{check.__name__} {verdict} {what}")


# %% role="test" item="check_attention"


def uniform_weights(Q, K, V, mask=None):
    allowed = np.broadcast_to(True if mask is None else mask, (*Q.shape[:-1], K.shape[-2]))
    weights = allowed / allowed.sum(axis=-1, keepdims=True)
    return weights @ V, weights


judge(check_attention, "a function that returns None", lambda Q, K, V, mask=None: None, right=False)
judge(check_attention, "weights that are all equal", uniform_weights, right=False)
judge(check_attention, "broken_scale", broken_scale, right=False)
judge(check_attention, "broken_mask", broken_mask, right=False)
judge(check_attention, "your repaired_scale", repaired_scale, right=True)
### BEGIN HIDDEN TESTS

parts = checker_parts(check_attention, "single_head.attention", right=1, each=0.25)

### END HIDDEN TESTS

# %% [markdown] id="check_split_heads_text"
# ## 8. `check_split_heads`
#
# **Points** {points check_split_heads} · **Book** *Several heads*, section *From features to heads*
#
# Write the check for item 3. Item 7 has an example of the form.
#
# <details><summary>Hint</summary>
#
# A test at `n = num_heads` cannot see everything. A test of zeros sees nothing at all.
# </details>

# %% role="solution" item="check_split_heads"
from mha_lib.checkers import check_split_heads

# %% role="test" item="check_split_heads"
judge(check_split_heads, "a function that returns zeros", lambda x, h: np.zeros((1, h, 1, 1)), right=False)
judge(check_split_heads, "broken_split", broken_split, right=False)
judge(check_split_heads, "your repaired_split", repaired_split, right=True)
### BEGIN HIDDEN TESTS

parts = checker_parts(check_split_heads, "multi_head.split_heads", right=1, each=0.5)

### END HIDDEN TESTS

# %% [markdown] id="check_multi_head_attention_text"
# ## 9. `check_multi_head_attention`
#
# **Points** {points check_multi_head_attention} · **Book** *Several heads*, section *The whole layer*
#
# Write the check for the whole layer. Item 7 has an example of the form.
#
# <details><summary>Hint</summary>
#
# Which mistakes cannot be seen with one head? With a batch of one? With an identity matrix as a weight? With
# symmetric weights? Choose sizes of which no two are equal, and random weights.
# </details>

# %% role="solution" item="check_multi_head_attention"
from mha_lib.checkers import check_multi_head_attention

# %% role="test" item="check_multi_head_attention"
judge(
    check_multi_head_attention,
    "a function that returns its input",
    lambda X, W_Q, W_K, W_V, W_O, num_heads, mask=None: X,
    right=False,
)


def one_head_at_a_time(X, W_Q, W_K, W_V, W_O, num_heads, mask=None):
    # It is right, if your repaired_scale is.
    output, d_k = 0.0, X.shape[-1] // num_heads
    for i in range(num_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        seen = mask if mask is None or mask.ndim == 2 else mask[:, 0]
        head, _ = repaired_scale(X @ W_Q[:, own], X @ W_K[:, own], X @ W_V[:, own], seen)
        output = output + head @ W_O[own]
    return output


judge(check_multi_head_attention, "one head at a time", one_head_at_a_time, right=True)
judge(check_multi_head_attention, "case_g", case_g, right=False)
judge(check_multi_head_attention, "case_h", case_h, right=False)
### BEGIN HIDDEN TESTS

parts = checker_parts(check_multi_head_attention, "multi_head.multi_head_attention", right=1, each=0.25)

### END HIDDEN TESTS

# %% [markdown] id="end"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check pitfalls.ipynb` runs the hidden tests on your code.
