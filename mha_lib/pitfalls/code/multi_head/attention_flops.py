"""Mistakes in `attention_flops`."""

from mha_lib.pitfalls.code import mistake


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
