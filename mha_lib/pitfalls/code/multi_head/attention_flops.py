"""Mistakes in `attention_flops`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_lib import counting as right
from mha_lib.pitfalls.code import law, mistake


@mistake("multiply-add-counted-as-one", "multi_head.attention_flops")
def attention_flops_multiply_add_as_one(n: int, d_model: int) -> int:
    """Wrong: a multiplication with its addition is counted as 1."""
    return 4 * n * d_model**2 + 2 * n**2 * d_model


@mistake("flops-without-projections", "multi_head.attention_flops")
def attention_flops_without_projections(n: int, d_model: int) -> int:
    """Wrong: only scores and weighted values are counted."""
    return 4 * n**2 * d_model


@mistake("flops-without-output", "multi_head.attention_flops")
def attention_flops_without_output(n: int, d_model: int) -> int:
    """Wrong: the product with W_O is left out."""
    return 6 * n * d_model**2 + 4 * n**2 * d_model


@mistake("flops-of-one-projection", "multi_head.attention_flops")
def attention_flops_one_projection(n: int, d_model: int) -> int:
    """Wrong: one projection is counted for all four."""
    return 2 * n * d_model**2 + 4 * n**2 * d_model


@mistake("flops-of-projections-only", "multi_head.attention_flops")
def attention_flops_projections_only(n: int, d_model: int) -> int:
    """Wrong: scores and weighted values are left out."""
    return 8 * n * d_model**2


@mistake("flops-without-mixing", "multi_head.attention_flops")
def attention_flops_without_mixing(n: int, d_model: int) -> int:
    """Wrong: the scores are counted, the weighted values are not."""
    return 8 * n * d_model**2 + 2 * n**2 * d_model


@mistake("flops-causal", "multi_head.attention_flops")
def attention_flops_causal_half(n: int, d_model: int) -> int:
    """Wrong: only keys that are not later are counted, though there is no mask."""
    return 8 * n * d_model**2 + 2 * n * (n + 1) * d_model


@mistake("flops-sizes-exchanged", "multi_head.attention_flops")
def attention_flops_sizes_exchanged(n: int, d_model: int) -> int:
    """Wrong: `n` and `d_model` have changed places."""
    return 8 * d_model * n**2 + 4 * d_model**2 * n


@mistake("flops-of-softmax-counted", "multi_head.attention_flops")
def attention_flops_softmax_counted(n: int, d_model: int) -> int:
    """Wrong: the exponential, the sum and the division of each score are counted as well."""
    return 8 * n * d_model**2 + 4 * n**2 * d_model + 3 * n**2


@mistake("flops-of-backward-too", "multi_head.attention_flops")
def attention_flops_backward_too(n: int, d_model: int) -> int:
    """Wrong: the backward pass is counted, which costs twice the forward pass."""
    return 3 * (8 * n * d_model**2 + 4 * n**2 * d_model)


@mistake("count-not-whole", "multi_head.attention_flops")
def attention_flops_not_whole(n: int, d_model: int) -> float:
    """Wrong: a float."""
    return 8.0 * n * d_model**2 + 4.0 * n**2 * d_model


# --- other forms -------------------------------------------------------------------------------------------


@mistake("flops-causal", "multi_head.attention_flops", form="earlier-only")
def attention_flops_earlier_keys(n: int, d_model: int) -> int:
    """Wrong: only earlier keys are counted."""
    return 8 * n * d_model**2 + 2 * n * (n - 1) * d_model


@mistake("flops-sizes-exchanged", "multi_head.attention_flops", form="in-attention")
def attention_flops_attention_exchanged(n: int, d_model: int) -> int:
    """Wrong: `n` and `d_model` have changed places in scores and weighted values."""
    return 8 * n * d_model**2 + 4 * n * d_model**2


@mistake("flops-sizes-exchanged", "multi_head.attention_flops", form="in-projections")
def attention_flops_projections_exchanged(n: int, d_model: int) -> int:
    """Wrong: `n` and `d_model` have changed places in the projections."""
    return 8 * n**2 * d_model + 4 * n**2 * d_model


@mistake("multiply-add-counted-as-one", "multi_head.attention_flops", form="in-projections")
def attention_flops_projections_as_one(n: int, d_model: int) -> int:
    """Wrong: in the projections a multiplication with its addition is counted as 1."""
    return 4 * n * d_model**2 + 4 * n**2 * d_model


@mistake("count-not-whole", "multi_head.attention_flops", form="of-numpy")
def attention_flops_numpy_float(n: int, d_model: int) -> np.float64:
    """Wrong: a float of NumPy."""
    return np.float64(right.attention_flops(n, d_model))


@mistake("count-overflows", "multi_head.attention_flops", form="of-32-bits")
def attention_flops_in_32_bits(n: int, d_model: int) -> np.int32:
    """Wrong: integers of 32 bits hold no more than about 2·10⁹."""
    products = [(n, d_model, d_model)] * 4 + [(n, d_model, n), (n, n, d_model)]
    each = np.prod(products, axis=1, dtype=np.int32)  # (6,)
    return np.int32(np.sum(2 * each, dtype=np.int32))


@law("flops-of-softmax-counted", "multi_head.attention_flops")
def a_few_for_each_score(tested: Any, steps: Sequence[Any]) -> bool:
    """Too much by the same small number for each of the n² scores, however wide the model is."""
    extra = {(tested(n, d) - right.attention_flops(n, d)) / n**2 for n, d in ((8, 4), (16, 4), (16, 32))}
    return len(extra) == 1 and 0 < extra.pop() <= 10
