"""The mistakes go unnoticed where the bank says so: they pass the weak checks that it names."""

import pytest
import torch

from mha_lib import torch_attention, transformer
from mha_lib.pitfalls import BANK, variants
from mha_lib.pitfalls.code.batched_torch.causal_self_attention import CausalInSteps
from mha_lib.pitfalls.code.batched_torch.multi_head_attention import MultiHeadInSteps
from mha_lib.pitfalls.code.transformer_block.transformer_block import BlockWithFormula
from mha_lib.pitfalls.examples import items
from mha_lib.pitfalls.weak_checks import passes, weak_check, weak_checks

CHECKS = {place: weak_checks(*place.split(".")) for place in items()}
VARIANTS = {place: variants(*place.split(".")) for place in CHECKS}

# Checks that the bank names, and that this item's variant does not pass.
FAILS = {
    # the heads of a narrower layer are not as wide as the model
    ("efficient_heads.pruned_attention", "no-output-projection"): {"shape"},
}


@pytest.mark.parametrize("place", CHECKS)
def test_right_code_passes_every_weak_check(place):
    right = items()[place].right
    assert [name for name, check in CHECKS[place].items() if not passes(check, right)] == []


@pytest.mark.parametrize("place", CHECKS)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(place):
    for slug, wrong in VARIANTS[place].items():
        named = {name: check for name, check in CHECKS[place].items() if name in BANK[slug].passes}
        failed = {name for name, check in named.items() if not passes(check, wrong)}
        assert failed == FAILS.get((place, slug), set()), slug


def test_what_the_bank_names_can_be_checked():
    for slug in BANK:
        checked = {name for place, checks in CHECKS.items() if slug in VARIANTS[place] for name in checks}
        assert set(BANK[slug].passes) <= checked, slug


def test_a_weak_check_fails_code_that_it_can_see_through():
    checks = weak_checks("single_head", "softmax")
    assert {name for name, check in checks.items() if passes(check, lambda x, axis=-1: x)} == {
        "shape",
        "finite",
    }


def test_a_weak_check_without_words_is_refused():
    with pytest.raises(ValueError, match="no words for the weak check 'shapes'"):
        weak_check("shapes", "single_head.softmax")


@pytest.mark.parametrize(
    ("steps", "right", "sizes"),
    [
        (MultiHeadInSteps, torch_attention.MultiHeadAttention, (6, 2)),
        (CausalInSteps, torch_attention.CausalSelfAttention, (6, 2, 5)),
        (BlockWithFormula, transformer.TransformerBlock, (6, 2, 10)),
    ],
)
def test_a_layer_in_steps_is_right(steps, right, sizes):
    torch.manual_seed(0)
    layer, like = steps(*sizes).double(), right(*sizes).double()
    for parameter, own in zip(like.parameters(), layer.parameters(), strict=True):
        parameter.data.normal_()
        own.data.copy_(parameter)
    x = torch.randn(3, 5, 6, dtype=torch.double)
    assert torch.allclose(layer(x), like(x))
