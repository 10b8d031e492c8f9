"""Weak checks of the items of `batched_torch`: on harmless inputs, and with every query left a key."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib import torch_attention
from mha_lib.pitfalls.weak_checks import Check, Code, weak_check

# What code gives, as a tuple, under a mask or without one.
Run = Callable[[Code, Tensor | None], tuple[Tensor, ...]]

ALL = torch.ones(5, 5, dtype=torch.bool)
CAUSAL = ALL.tril()


def inputs(*sizes: tuple[int, ...]) -> list[Tensor]:
    """Random numbers of these sizes, always the same."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(*size, generator=generator) for size in sizes]


def as_tuple(output: Any) -> tuple[Tensor, ...]:
    """The output of a function or layer as a tuple."""
    return output if isinstance(output, tuple) else (output,)


def outputs(attention: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """What a function of queries, keys, values and mask gives."""
    return as_tuple(attention(*inputs((2, 5, 4), (2, 5, 4), (2, 5, 4)), mask))


def layer_outputs(right: Code, *sizes: int) -> Run:
    """What a layer of these sizes gives in eval mode, with the parameters of the right one."""

    def run(code: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            layer, like = code(*sizes), right(*sizes)
        for name, value in like.named_parameters():
            parameter = parameter_of(layer, name)
            if parameter is not None:  # a layer without bias has none
                parameter.data.copy_(value)
        return as_tuple(layer.eval()(*inputs((2, 5, 6)), *([] if mask is None else [mask])))

    return run


def parameter_of(layer: Any, name: str) -> Any:
    """A parameter by its name, also if PyTorch does not know that it is one; None if there is none."""
    for part in name.split("."):
        layer = getattr(layer, part, None)
    return layer


def copied_outputs(from_builtin: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """What the copy of a built-in layer gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        builtin = nn.MultiheadAttention(6, 2, batch_first=True).eval()
        copied = from_builtin(builtin)
    return as_tuple(copied.eval()(*inputs((2, 5, 6))))


def check_shape(item: str, right: Code, run: Run, mask: Tensor | None = None) -> None:
    """Register the check of the shapes, which are to be those of the right outputs."""
    weak_check("shape", item)(
        lambda code: [each.shape for each in run(code, mask)] == [each.shape for each in run(right, mask)]
    )


def check_finite(item: str, run: Run) -> None:
    """Register the check that the outputs are finite."""
    weak_check("finite", item)(lambda code: all(bool(each.isfinite().all()) for each in run(code, None)))


def right_under(right: Code, run: Run, mask: Tensor | None = None) -> Check:
    """The check: the outputs are right under this mask."""

    def check(code: Code) -> bool:
        got, expected = run(code, mask), run(right, mask)
        return len(got) == len(expected) and all(
            one.shape == other.shape and torch.allclose(one, other, atol=1e-5)
            for one, other in zip(got, expected, strict=True)
        )

    return check


# --- attention ---------------------------------------------------------------------------------------------

ATTENTION = "batched_torch.attention"
attention_is_right = right_under(torch_attention.attention, outputs)

check_shape(ATTENTION, torch_attention.attention, outputs, CAUSAL)
check_finite(ATTENTION, outputs)


@weak_check("rows sum to 1", ATTENTION)
def rows_sum_to_1(attention: Code) -> Any:
    """The weights of each query."""
    _, weights = outputs(attention)
    return torch.allclose(weights.sum(dim=-1), torch.ones(2, 5), atol=1e-5)


@weak_check("masked weights are 0", ATTENTION)
def masked_weights_are_0(attention: Code) -> Any:
    """The weights above the diagonal, under a causal mask."""
    _, weights = outputs(attention, CAUSAL)
    return (weights[:, ~CAUSAL] == 0).all()


weak_check("small logits", ATTENTION)(right_under(torch_attention.attention, outputs, CAUSAL))
weak_check("no mask", ATTENTION)(attention_is_right)
weak_check("all-True mask", ATTENTION)(right_under(torch_attention.attention, outputs, ALL))
weak_check("right values", ATTENTION)(attention_is_right)

# --- the other items ---------------------------------------------------------------------------------------

for item, right, run in (
    (
        "MultiHeadAttention",
        torch_attention.MultiHeadAttention,
        layer_outputs(torch_attention.MultiHeadAttention, 6, 1),
    ),
    (
        "CausalSelfAttention",
        torch_attention.CausalSelfAttention,
        layer_outputs(torch_attention.CausalSelfAttention, 6, 1, 5),
    ),
    ("from_builtin", torch_attention.from_builtin, copied_outputs),
):
    check_shape(f"batched_torch.{item}", right, run)
    check_finite(f"batched_torch.{item}", run)
    weak_check("right values", f"batched_torch.{item}")(right_under(right, run))

check_shape("batched_torch.sdpa_attention", torch_attention.sdpa_attention, outputs)
check_finite("batched_torch.sdpa_attention", outputs)
