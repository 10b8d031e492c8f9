"""Mistakes in `count_parameters`."""

from collections.abc import Callable, Sequence
from typing import Any

from mha_lib import counting as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import none_is_an_error


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


@mistake("parameters-output-narrowed", "multi_head.count_parameters")
def count_parameters_output_narrowed(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> int:
    """Wrong: W_O has as few rows as W_K and W_V have columns."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    kv_width = kv_heads * (d_model // num_heads)
    weights = d_model**2 + 3 * d_model * kv_width
    return weights + 2 * d_model + 2 * kv_width if bias else weights


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


@mistake("count-not-whole", "multi_head.count_parameters", form="with-biases")
def count_parameters_biases_not_whole(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> float:
    """Wrong: with biases the count becomes a float."""
    count = right.count_parameters(d_model, num_heads, num_kv_heads, bias)
    return float(count) if bias else count


@mistake("count-not-whole", "multi_head.count_parameters", form="with-sharing")
def count_parameters_sharing_not_whole(
    d_model: int, num_heads: int, num_kv_heads: int | None = None, bias: bool = False
) -> float:
    """Wrong: with fewer heads of keys and values the count becomes a float."""
    count = right.count_parameters(d_model, num_heads, num_kv_heads, bias)
    return count if num_kv_heads is None else float(count)


# --- laws --------------------------------------------------------------------------------------------------

Count = Callable[
    [int, int, int, int], int
]  # of d_model, heads, heads of keys and values, and width of a head
WEIGHTS: dict[str, Count] = {
    "right": lambda d, h, kv, k: 2 * d * d + 2 * d * kv * k,
    "whole layer in each head": lambda d, h, kv, k: 4 * h * d * d,
    "full projections in each head": lambda d, h, kv, k: (h + 2 * kv + 1) * d * d,
    "full keys and values in each head": lambda d, h, kv, k: (2 + 2 * kv) * d * d,
    "full matrices in each head": lambda d, h, kv, k: (2 * h + 2 * kv) * d * d,
    "blocks": lambda d, h, kv, k: (2 * h + 2 * kv) * k * k,
    "blocks but for W_O": lambda d, h, kv, k: d * d + (h + 2 * kv) * k * k,
    "one head": lambda d, h, kv, k: 4 * d * k,
    "one head and W_O": lambda d, h, kv, k: 3 * d * k + d * d,
    "no W_O": lambda d, h, kv, k: d * d + 2 * d * kv * k,
    "no W_O, all heads": lambda d, h, kv, k: 3 * d * d,
    "all heads": lambda d, h, kv, k: 4 * d * d,
    "keys alone shared": lambda d, h, kv, k: 3 * d * d + d * kv * k,
    "W_O narrowed": lambda d, h, kv, k: d * d + 3 * d * kv * k,
}
BIASES: dict[str, Count] = {
    "right": lambda d, h, kv, k: 2 * d + 2 * kv * k,
    "none": lambda d, h, kv, k: 0,
    "full": lambda d, h, kv, k: 4 * d,
    "no output": lambda d, h, kv, k: d + 2 * kv * k,
    "three full": lambda d, h, kv, k: 3 * d,
    "output alone": lambda d, h, kv, k: d,
    "one number": lambda d, h, kv, k: 1,
    "four numbers": lambda d, h, kv, k: 4,
    "keys alone": lambda d, h, kv, k: 2 * d + kv * k,
    "head": lambda d, h, kv, k: k,
    "heads": lambda d, h, kv, k: 4 * k,
    "one head and W_O": lambda d, h, kv, k: 3 * k + d,
    "times heads": lambda d, h, kv, k: (2 * h + 2 * kv) * d,
    "whole layer in each head": lambda d, h, kv, k: 4 * h * d,
    "full projections in each head": lambda d, h, kv, k: (h + 2 * kv + 1) * d,
    "full keys and values in each head": lambda d, h, kv, k: (2 + 2 * kv) * d,
    "keys shared": lambda d, h, kv, k: 3 * d + kv * k,
}
SAYS = {  # what the weights say; the biases follow them, or are right
    "parameters-times-heads": [name for name in WEIGHTS if "in each head" in name],
    "parameters-block-diagonal": ["blocks", "blocks but for W_O"],
    "parameters-of-one-head": ["one head", "one head and W_O"],
    "parameters-without-output": ["no W_O", "no W_O, all heads"],
    "parameters-ignore-kv-heads": ["all heads"],
    "only-keys-shared": ["keys alone shared"],
    "parameters-output-narrowed": ["W_O narrowed"],
}
TOO_FEW = ("no output", "output alone", "one number", "four numbers", "keys alone", "head", "heads")
EXAMPLES = ((24, 4, 2), (30, 5, 1), (42, 6, 3))  # d_model, heads, heads of keys and values


def counted(tested: Any, bias: bool) -> list[int]:
    """What is counted in the examples."""
    return [tested(*sizes, bias) for sizes in EXAMPLES]


def known(counts: dict[str, Count], found: Sequence[int]) -> list[str]:
    """The names of the counts that give these numbers."""
    sizes = [(d, h, kv, d // h) for d, h, kv in EXAMPLES]
    return [name for name, count in counts.items() if [count(*each) for each in sizes] == list(found)]


def weights_are(names: Sequence[str]) -> Callable[[Any, Sequence[Any]], bool]:
    """A law: the weights are counted in one of these ways, and the biases in some way that is known."""

    def of_part(tested: Any, steps: Sequence[Any]) -> bool:
        weights, both = counted(tested, False), counted(tested, True)
        return bool({*known(WEIGHTS, weights)} & {*names}) and bool(
            known(BIASES, [one - other for one, other in zip(both, weights, strict=True)])
        )

    return of_part


for slug, names in SAYS.items():
    law(slug, "multi_head.count_parameters")(weights_are(names))


@law("one-bias-for-the-layer", "multi_head.count_parameters")
def too_few_biases(tested: Any, steps: Sequence[Any]) -> bool:
    """The weights are right, and some biases are missing."""
    weights, both = counted(tested, False), counted(tested, True)
    biases = known(BIASES, [one - other for one, other in zip(both, weights, strict=True)])
    return "right" in known(WEIGHTS, weights) and bool({*biases} & {*TOO_FEW})


law("none-not-handled", "multi_head.count_parameters")(none_is_an_error)
