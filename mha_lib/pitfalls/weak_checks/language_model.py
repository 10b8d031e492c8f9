"""Weak checks of the items of `language_model`."""

import torch
from torch import Tensor

from mha_lib.language_model import LanguageModel
from mha_lib.pitfalls.weak_checks import Code
from mha_lib.pitfalls.weak_checks.batched_torch import check_finite, check_shape


def logits(model: Code, mask: Tensor | None = None) -> tuple[Tensor, ...]:
    """The logits of a fresh model for two texts."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        made = model(11, 8, 2, 2, 9)
    return (made(torch.arange(10).view(2, 5)),)


check_shape("language_model.LanguageModel", LanguageModel, logits)
check_finite("language_model.LanguageModel", logits)
