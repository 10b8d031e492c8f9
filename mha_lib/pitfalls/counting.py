"""Mistakes in counting parameters and floating-point operations."""

from mha_lib.pitfalls.pitfall import Pitfall

# --- parameters --------------------------------------------------------------------------------------------


def count_parameters_times_heads(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: full matrices for every head."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * num_heads * d_model**2 + 2 * kv_heads * d_model**2
    biases = 2 * num_heads * d_model + 2 * kv_heads * d_model
    return weights + biases if bias else weights


def count_parameters_block_diagonal(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: a head has d_k × d_k matrices, as if it read d_k features only."""
    d_k = d_model // num_heads
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * num_heads * d_k**2 + 2 * kv_heads * d_k**2
    biases = 2 * num_heads * d_k + 2 * kv_heads * d_k
    return weights + biases if bias else weights


def count_parameters_one_head_alone(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: the parameters of one head."""
    d_k = d_model // num_heads
    return 4 * d_model * d_k + 4 * d_k if bias else 4 * d_model * d_k


def count_parameters_without_output(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: W_O is left out."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model // num_heads)
    weights = d_model**2 + 2 * d_model * kv_width
    return weights + d_model + 2 * kv_width if bias else weights


def count_parameters_kv_heads_ignored(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: `num_kv_heads` is not used."""
    return 4 * d_model**2 + 4 * d_model if bias else 4 * d_model**2


def count_parameters_one_kv_head_by_default(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: without `num_kv_heads`, all heads share one head of keys and values."""
    kv_width = (num_kv_heads or 1) * (d_model // num_heads)
    weights = 2 * d_model**2 + 2 * d_model * kv_width
    return weights + 2 * d_model + 2 * kv_width if bias else weights


def count_parameters_none_not_handled(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: None times a number is an error."""
    kv_width = num_kv_heads * (d_model // num_heads)  # type: ignore[operator]
    weights = 2 * d_model**2 + 2 * d_model * kv_width
    return weights + 2 * d_model + 2 * kv_width if bias else weights


def count_parameters_only_keys_shared(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: the values keep as many heads as the queries."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    k_width = kv_heads * (d_model // num_heads)
    weights = 3 * d_model**2 + d_model * k_width
    return weights + 3 * d_model + k_width if bias else weights


def count_parameters_bias_ignored(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: `bias` is not used."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    return 2 * d_model**2 + 2 * d_model * kv_heads * (d_model // num_heads)


def count_parameters_bias_always(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: biases are counted also where there are none."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model // num_heads)
    return 2 * d_model**2 + 2 * d_model * kv_width + 2 * d_model + 2 * kv_width


def count_parameters_full_width_biases(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: all four biases are d_model wide, also those of fewer keys and values."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * d_model**2 + 2 * d_model * kv_heads * (d_model // num_heads)
    return weights + 4 * d_model if bias else weights


def count_parameters_one_bias(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: one bias for the whole layer."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * d_model**2 + 2 * d_model * kv_heads * (d_model // num_heads)
    return weights + d_model if bias else weights


def count_parameters_not_whole(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> float:
    """Wrong: `/` makes the count a float."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model / num_heads)
    weights = 2 * d_model**2 + 2 * d_model * kv_width
    return weights + 2 * d_model + 2 * kv_width if bias else weights


# --- floating-point operations -----------------------------------------------------------------------------


def attention_flops_multiply_add_as_one(n: int, d_model: int) -> int:
    """Wrong: a multiplication with its addition is counted as 1."""
    return 4 * n * d_model**2 + 2 * n**2 * d_model


def attention_flops_without_projections(n: int, d_model: int) -> int:
    """Wrong: only scores and weighted values are counted."""
    return 4 * n**2 * d_model


def attention_flops_without_output(n: int, d_model: int) -> int:
    """Wrong: the product with W_O is left out."""
    return 6 * n * d_model**2 + 4 * n**2 * d_model


def attention_flops_one_projection(n: int, d_model: int) -> int:
    """Wrong: one projection is counted for all four."""
    return 2 * n * d_model**2 + 4 * n**2 * d_model


def attention_flops_projections_only(n: int, d_model: int) -> int:
    """Wrong: scores and weighted values are left out."""
    return 8 * n * d_model**2


def attention_flops_without_mixing(n: int, d_model: int) -> int:
    """Wrong: the scores are counted, the weighted values are not."""
    return 8 * n * d_model**2 + 2 * n**2 * d_model


def attention_flops_causal_half(n: int, d_model: int) -> int:
    """Wrong: only keys that are not later are counted, though there is no mask."""
    return 8 * n * d_model**2 + 2 * n * (n + 1) * d_model


def attention_flops_sizes_exchanged(n: int, d_model: int) -> int:
    """Wrong: `n` and `d_model` have changed places."""
    return 8 * d_model * n**2 + 4 * d_model**2 * n


def attention_flops_softmax_counted(n: int, d_model: int) -> int:
    """Wrong: the exponential, the sum and the division of each score are counted as well."""
    return 8 * n * d_model**2 + 4 * n**2 * d_model + 3 * n**2


def attention_flops_backward_too(n: int, d_model: int) -> int:
    """Wrong: the backward pass is counted, which costs twice the forward pass."""
    return 3 * (8 * n * d_model**2 + 4 * n**2 * d_model)


def attention_flops_not_whole(n: int, d_model: int) -> float:
    """Wrong: a float."""
    return 8.0 * n * d_model**2 + 4.0 * n**2 * d_model


PITFALLS = (
    Pitfall(
        slug="parameters-times-heads",
        title="Full matrices for every head",
        symptom="The count grows with the number of heads.",
        reason="You multiply by the number of heads, but each head is only d_model / num_heads wide, so together "
        "they have one full matrix.",
        fix="Count one (d_model, num_heads * d_k) matrix for all heads together.",
        passes=("one head",),
        variants={"multi_head.count_parameters": count_parameters_times_heads},
    ),
    Pitfall(
        slug="parameters-block-diagonal",
        title="Matrices of d_k × d_k",
        symptom="The count shrinks with the number of heads.",
        reason="You count d_k inputs for each head, but a head reads all d_model features.",
        fix="Count d_model × d_k for each head's projection.",
        passes=("one head",),
        variants={"multi_head.count_parameters": count_parameters_block_diagonal},
    ),
    Pitfall(
        slug="parameters-of-one-head",
        title="One head counted",
        symptom="The count is too small by the number of heads.",
        reason="You count one head's matrices, but the layer has num_heads of them.",
        fix="Multiply d_model × d_k by the number of heads.",
        passes=("one head",),
        variants={"multi_head.count_parameters": count_parameters_one_head_alone},
    ),
    Pitfall(
        slug="parameters-without-output",
        title="W_O left out",
        symptom="Three quarters of the right number.",
        reason="You count three matrices, but W_O is the fourth.",
        fix="Add d_model × d_model for W_O, and d_model for its bias.",
        passes=(),
        variants={"multi_head.count_parameters": count_parameters_without_output},
    ),
    Pitfall(
        slug="parameters-ignore-kv-heads",
        title="num_kv_heads has no effect",
        symptom="The count is the same however many heads share keys and values.",
        reason="You count as many heads of keys and values as of queries, but when query heads share them, W_K and "
        "W_V are narrower.",
        fix="Make W_K and W_V num_kv_heads * d_k wide.",
        passes=("one head", "no sharing"),
        variants={"multi_head.count_parameters": count_parameters_kv_heads_ignored},
    ),
    Pitfall(
        slug="one-kv-head-by-default",
        title="None taken for one head of keys and values",
        symptom="Right when num_kv_heads is given; too small when it is not.",
        reason="You take None for 1, but it stands for as many heads of keys and values as of queries.",
        fix="Set it first: `if num_kv_heads is None: num_kv_heads = num_heads`.",
        passes=("one head",),
        variants={"multi_head.count_parameters": count_parameters_one_kv_head_by_default},
    ),
    Pitfall(
        slug="only-keys-shared",
        title="Fewer heads of keys, but not of values",
        symptom="Half the saving that sharing brings.",
        reason="You make W_K narrower and leave W_V as it is, but keys and values are shared together.",
        fix="Make both W_K and W_V num_kv_heads * d_k wide.",
        passes=("one head", "no sharing"),
        variants={"multi_head.count_parameters": count_parameters_only_keys_shared},
    ),
    Pitfall(
        slug="parameters-without-bias",
        title="The biases left out",
        symptom="The count is the same with and without biases.",
        reason="You count weights only, but with `bias=True` each of the four projections has a bias as well.",
        fix="Add one parameter for each output of each projection.",
        passes=("one head", "no sharing", "no biases"),
        variants={"multi_head.count_parameters": count_parameters_bias_ignored},
    ),
    Pitfall(
        slug="bias-always-counted",
        title="Biases counted where there are none",
        symptom="A little too much unless `bias=True`.",
        reason="You add the biases in any case, but by default the projections have none.",
        fix="Add them only if `bias` is true.",
        passes=(),
        variants={"multi_head.count_parameters": count_parameters_bias_always},
    ),
    Pitfall(
        slug="biases-ignore-kv-heads",
        title="Full-width biases for fewer keys and values",
        symptom="Right unless there are both biases and fewer heads of keys and values.",
        reason="You count d_model biases for keys and values, but a projection has as many biases as outputs.",
        fix="Count num_kv_heads * d_k biases for the keys, and as many for the values.",
        passes=("one head", "no sharing", "no biases"),
        variants={"multi_head.count_parameters": count_parameters_full_width_biases},
    ),
    Pitfall(
        slug="one-bias-for-the-layer",
        title="One bias for the whole layer",
        symptom="Too small with biases.",
        reason="You count the bias of one projection, but each of the four has its own.",
        fix="Add one parameter for each output of each of the four projections.",
        passes=("one head", "no sharing", "no biases"),
        variants={"multi_head.count_parameters": count_parameters_one_bias},
    ),
    Pitfall(
        slug="count-not-whole",
        title="A count that is a float",
        symptom="A float, for instance 576.0 in place of 576.",
        reason="You return a float, but what is counted is a whole number, and large floats are rounded.",
        fix="Use whole numbers throughout, and divide with `//`.",
        passes=(),
        variants={
            "multi_head.count_parameters": count_parameters_not_whole,
            "multi_head.attention_flops": attention_flops_not_whole,
        },
    ),
    Pitfall(
        slug="multiply-add-counted-as-one",
        title="Multiplication and addition counted as one",
        symptom="Exactly half of the right number.",
        reason="You count multiply-adds, but the contract counts the multiplication and the addition: 2.",
        fix="Count 2 for each entry that is multiplied and added up.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_multiply_add_as_one},
    ),
    Pitfall(
        slug="flops-without-projections",
        title="The projections left out",
        symptom="Far too little for short sequences.",
        reason="You count scores and weighted values only, but the four projections cost 8·n·d_model², most of the "
        "work as long as n is below 2·d_model.",
        fix="Add the products with W_Q, W_K, W_V and W_O.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_without_projections},
    ),
    Pitfall(
        slug="flops-without-output",
        title="The product with W_O left out",
        symptom="6·n·d_model² for the projections in place of 8·n·d_model².",
        reason="You count three projections, but the product with W_O is the fourth.",
        fix="Count four products of (n, d_model) with (d_model, d_model).",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_without_output},
    ),
    Pitfall(
        slug="flops-of-one-projection",
        title="One projection counted",
        symptom="2·n·d_model² for the projections in place of 8·n·d_model².",
        reason="You count one projection, but there are four: W_Q, W_K, W_V and W_O.",
        fix="Count four products of (n, d_model) with (d_model, d_model).",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_one_projection},
    ),
    Pitfall(
        slug="flops-of-projections-only",
        title="Scores and weighted values left out",
        symptom="The count grows with n in proportion, while the true one grows faster.",
        reason="You count the projections only, but every query meets every key, twice: for its score and for its "
        "value.",
        fix="Add 4·n²·d_model for Q Kᵀ and for the weights times V.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_projections_only},
    ),
    Pitfall(
        slug="flops-without-mixing",
        title="The weights times V left out",
        symptom="2·n²·d_model in place of 4·n²·d_model.",
        reason="You count the scores, but the product of the weights with the values costs as much again.",
        fix="Count both products, 2·n²·d_model each.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_without_mixing},
    ),
    Pitfall(
        slug="flops-causal",
        title="Half the keys counted",
        symptom="About half of 4·n²·d_model.",
        reason="You count only keys that are not later, but there is no mask here, and most code computes masked "
        "scores all the same.",
        fix="Count n keys for each of the n queries.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_causal_half},
    ),
    Pitfall(
        slug="flops-sizes-exchanged",
        title="n and d_model exchanged",
        symptom="Right only when n = d_model.",
        reason="You square the wrong number: the projections cost n·d_model², the scores n²·d_model.",
        fix="Write down the sizes of each product: (n, d_model) with (d_model, d_model), and (n, d_k) with "
        "(d_k, n).",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_sizes_exchanged},
    ),
    Pitfall(
        slug="flops-of-softmax-counted",
        title="The softmax counted",
        symptom="Too much by a few n².",
        reason="You count the softmax, which the contract leaves out, since it is no matrix product.",
        fix="Count the matrix products only.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_softmax_counted},
    ),
    Pitfall(
        slug="flops-of-backward-too",
        title="The backward pass counted",
        symptom="Three times the right number.",
        reason="You count forward and backward pass, but the contract asks for the forward pass.",
        fix="Count each product once.",
        passes=(),
        variants={"multi_head.attention_flops": attention_flops_backward_too},
    ),
)
