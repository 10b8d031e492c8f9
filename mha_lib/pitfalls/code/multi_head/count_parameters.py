"""Mistakes in `count_parameters`."""

from mha_lib.pitfalls.code import mistake


@mistake("parameters-times-heads", "multi_head.count_parameters")
def count_parameters_times_heads(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: full matrices for every head."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * num_heads * d_model**2 + 2 * kv_heads * d_model**2
    biases = 2 * num_heads * d_model + 2 * kv_heads * d_model
    return weights + biases if bias else weights


@mistake("parameters-block-diagonal", "multi_head.count_parameters")
def count_parameters_block_diagonal(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: a head has d_k × d_k matrices, as if it read d_k features only."""
    d_k = d_model // num_heads
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * num_heads * d_k**2 + 2 * kv_heads * d_k**2
    biases = 2 * num_heads * d_k + 2 * kv_heads * d_k
    return weights + biases if bias else weights


@mistake("parameters-of-one-head", "multi_head.count_parameters")
def count_parameters_one_head_alone(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: the parameters of one head."""
    d_k = d_model // num_heads
    return 4 * d_model * d_k + 4 * d_k if bias else 4 * d_model * d_k


@mistake("parameters-without-output", "multi_head.count_parameters")
def count_parameters_without_output(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: W_O is left out."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model // num_heads)
    weights = d_model**2 + 2 * d_model * kv_width
    return weights + d_model + 2 * kv_width if bias else weights


@mistake("parameters-ignore-kv-heads", "multi_head.count_parameters")
def count_parameters_kv_heads_ignored(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: `num_kv_heads` is not used."""
    return 4 * d_model**2 + 4 * d_model if bias else 4 * d_model**2


@mistake("one-kv-head-by-default", "multi_head.count_parameters")
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


@mistake("only-keys-shared", "multi_head.count_parameters")
def count_parameters_only_keys_shared(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: the values keep as many heads as the queries."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    k_width = kv_heads * (d_model // num_heads)
    weights = 3 * d_model**2 + d_model * k_width
    return weights + 3 * d_model + k_width if bias else weights


@mistake("parameters-without-bias", "multi_head.count_parameters")
def count_parameters_bias_ignored(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: `bias` is not used."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    return 2 * d_model**2 + 2 * d_model * kv_heads * (d_model // num_heads)


@mistake("bias-always-counted", "multi_head.count_parameters")
def count_parameters_bias_always(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: biases are counted also where there are none."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model // num_heads)
    return 2 * d_model**2 + 2 * d_model * kv_width + 2 * d_model + 2 * kv_width


@mistake("biases-ignore-kv-heads", "multi_head.count_parameters")
def count_parameters_full_width_biases(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: all four biases are d_model wide, also those of fewer keys and values."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * d_model**2 + 2 * d_model * kv_heads * (d_model // num_heads)
    return weights + 4 * d_model if bias else weights


@mistake("one-bias-for-the-layer", "multi_head.count_parameters")
def count_parameters_one_bias(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: one bias for the whole layer."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    weights = 2 * d_model**2 + 2 * d_model * kv_heads * (d_model // num_heads)
    return weights + d_model if bias else weights


@mistake("count-not-whole", "multi_head.count_parameters")
def count_parameters_not_whole(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> float:
    """Wrong: `/` makes the count a float."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model / num_heads)
    weights = 2 * d_model**2 + 2 * d_model * kv_width
    return weights + 2 * d_model + 2 * kv_width if bias else weights
