"""The mistakes that need PyTorch go unnoticed where the bank says so.

That they differ from the right code and from each other is what the hidden tests prove; that they are called
like it, and say what is wrong, stands in `test_pitfalls_catalogue.py`.
"""

import pytest
import torch
from torch import nn

from mha_grader.operations import find
from mha_lib import torch_attention, transformer
from mha_lib.pitfalls import BANK, variants

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
    masks = {"no mask": None, "all-True mask": ALL, "masked weights are 0": MASK}
    mask = masks.get(check)
    got, expected = results(item, wrong, right, mask), results(item, right, right, mask)
    if check == "shape":
        return [each.shape for each in got] == [each.shape for each in expected]
    if check == "finite":
        return all(each.isfinite().all() for each in got)
    if item == "attention" and check == "rows sum to 1":
        return torch.allclose(got[1].sum(dim=-1), torch.ones(2, 5), atol=1e-5)
    if item == "attention" and check == "masked weights are 0":
        return bool((got[1][:, ~MASK] == 0).all())
    return close(got, expected)


ONLY_IN_TORCH = [case for case in EVERY_VARIANT if not BANK[case[2]].variants]  # others: tested in NumPy


@pytest.mark.parametrize(("assignment", "item", "slug"), ONLY_IN_TORCH)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(assignment, item, slug):
    wrong, right = variants(assignment, item)[slug], REFERENCE[assignment, item]
    failed = [check for check in BANK[slug].passes if not passes(check, item, wrong, right)]
    assert not failed
