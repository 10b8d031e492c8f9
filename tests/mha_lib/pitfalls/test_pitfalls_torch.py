"""The mistakes that need PyTorch go unnoticed where the bank says so.

That they differ from the right code and from each other is what the hidden tests prove; that they are called
like it, and say what is wrong, stands in `test_pitfalls_catalogue.py`.
"""

import pytest
import torch
from torch import nn

from mha_grader.sandbox.requests import find
from mha_lib import torch_attention, transformer
from mha_lib.pitfalls import BANK, CHECKS_OF_ITEMS, batched_torch, transformer_block, variants

FUNCTIONS = ("attention", "from_builtin", "sdpa_attention")
MODULES = {
    "batched_torch": (torch_attention, (*FUNCTIONS, "MultiHeadAttention", "CausalSelfAttention")),
    "transformer_block": (transformer, ("FeedForward", "TransformerBlock")),
}
REFERENCE = {
    (assignment, item): getattr(module, item)
    for assignment, (module, items) in MODULES.items()
    for item in items
}
EVERY_VARIANT = [(*key, slug) for key in REFERENCE for slug in variants(*key)]
SIZES = {
    "MultiHeadAttention": (6, 1),
    "CausalSelfAttention": (6, 1, 5),
    "FeedForward": (6, 10),
    "TransformerBlock": (6, 2, 10),
}


# --- what the code gives on harmless inputs: one head, eval mode, fresh numbers, every query with a key -----


def inputs(*sizes):
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(*size, generator=generator) for size in sizes]


def results(item, code, right, mask=None):
    """The outputs of a function or layer, as a tuple."""
    torch.manual_seed(3)
    if item in ("attention", "sdpa_attention"):
        output = code(*inputs((2, 5, 4), (2, 5, 4), (2, 5, 4)), mask)
    elif item == "from_builtin":
        builtin = nn.MultiheadAttention(6, 2, batch_first=True).eval()
        layer = code(builtin)
        output = layer.eval()(*inputs((2, 5, 6)))
    else:
        layer, like = code(*SIZES[item]), right(*SIZES[item])
        for name, value in like.named_parameters():
            parameter = find(layer, name)
            if parameter is not None:  # a layer without bias has none
                parameter.data.copy_(value)
        output = layer.eval()(*inputs((2, 5, 6)), *([mask] if mask is not None else []))
    return output if isinstance(output, tuple) else (output,)


def close(got, expected):
    return all(
        one.shape == other.shape and torch.allclose(one, other, atol=1e-5)
        for one, other in zip(got, expected, strict=True)
    )


MASK = torch.ones(5, 5, dtype=torch.bool).tril()
ALL = torch.ones(5, 5, dtype=torch.bool)


def passes(check, item, wrong, right):
    mask = {"all-True mask": ALL, "masked weights are 0": MASK}.get(check)
    got, expected = results(item, wrong, right, mask), results(item, right, right, mask)
    if check == "shape":
        return [each.shape for each in got] == [each.shape for each in expected]
    if check == "finite":
        return all(each.isfinite().all() for each in got)
    if check == "rows sum to 1":
        return torch.allclose(got[1].sum(dim=-1), torch.ones(2, 5), atol=1e-5)
    if check == "masked weights are 0":
        return bool((got[1][:, ~MASK] == 0).all())
    assert check in ("no mask", "all-True mask", "small logits", "right values")
    return close(got, expected)


def checks_of(assignment, item):
    return CHECKS_OF_ITEMS.get(f"{assignment}.{item}", ("shape", "finite"))  # one is shown in no example


@pytest.mark.parametrize(("assignment", "item"), REFERENCE)
def test_right_code_passes_every_weak_check(assignment, item):
    right = REFERENCE[assignment, item]
    assert [check for check in checks_of(assignment, item) if not passes(check, item, right, right)] == []


ONLY_IN_TORCH = [case for case in EVERY_VARIANT if not BANK[case[2]].variants]  # others: tested in NumPy


@pytest.mark.parametrize(("assignment", "item", "slug"), ONLY_IN_TORCH)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(assignment, item, slug):
    wrong, right = variants(assignment, item)[slug], REFERENCE[assignment, item]
    named = [check for check in BANK[slug].passes if check in checks_of(assignment, item)]
    assert [check for check in named if not passes(check, item, wrong, right)] == []


@pytest.mark.parametrize("slug", sorted({slug for _, _, slug in ONLY_IN_TORCH}))
def test_what_the_bank_names_can_be_checked(slug):
    places = [(assignment, item) for assignment, item, found in ONLY_IN_TORCH if found == slug]
    assert set(BANK[slug].passes) <= {check for place in places for check in checks_of(*place)}


@pytest.mark.parametrize(
    ("steps", "right", "sizes"),
    [
        (batched_torch.MultiHeadInSteps, torch_attention.MultiHeadAttention, (6, 2)),
        (batched_torch.CausalInSteps, torch_attention.CausalSelfAttention, (6, 2, 5)),
        (transformer_block.BlockWithFormula, transformer.TransformerBlock, (6, 2, 10)),
    ],
)
def test_a_layer_in_steps_is_right(steps, right, sizes):
    layer, like = steps(*sizes), right(*sizes)
    for parameter, own in zip(like.parameters(), layer.parameters(), strict=True):
        parameter.data.normal_()
        own.data.copy_(parameter)
    x = inputs((3, 5, 6))[0]
    assert torch.allclose(layer(x), like(x), atol=1e-5)
