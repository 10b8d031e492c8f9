"""The items of `transformer_block`, and small inputs that expose mistakes in them."""

from typing import Any

import torch

from mha_lib import transformer
from mha_lib.pitfalls.examples import Code, item
from mha_lib.pitfalls.examples.batched_torch import numbered

FEED_FORWARD = item("transformer_block.FeedForward", transformer.FeedForward)


@FEED_FORWARD.example
def one_feature(FeedForward: Code) -> Any:
    """One feature; `up` passes it on, `down` multiplies by 100."""
    layer = FeedForward(1, 1)
    with torch.no_grad():
        for linear, factor in ((layer.up, 1.0), (layer.down, 100.0)):
            linear.weight.fill_(factor)
            linear.bias.zero_()
    return layer(torch.tensor([[-1.0], [1.0], [2.0]]))


TRANSFORMER_BLOCK = item("transformer_block.TransformerBlock", transformer.TransformerBlock)


@TRANSFORMER_BLOCK.example
def pre_norm_by_default(TransformerBlock: Code) -> Any:
    """Three tokens; nothing is said about the norm."""
    block = numbered(TransformerBlock(4, 2, 8))
    return block(torch.tensor([[[1.0, 2, 0, 4], [0, 3, 1, 1], [2, 0, 1, 5]]]))


@TRANSFORMER_BLOCK.example
def post_norm(TransformerBlock: Code) -> Any:
    """Three tokens, normalised after each sum."""
    block = numbered(TransformerBlock(4, 2, 8, norm_first=False))
    return block(torch.tensor([[[1.0, 2, 0, 4], [0, 3, 1, 1], [2, 0, 1, 5]]]))


@TRANSFORMER_BLOCK.example
def small_numbers(TransformerBlock: Code) -> Any:
    """Tokens that hardly vary, so that the epsilon of the norm counts."""
    block = numbered(TransformerBlock(4, 2, 8, norm_first=False))
    for part in (block.attention, block.feed_forward):
        for parameter in part.parameters():
            parameter.data.zero_()
    return block(torch.tensor([[[0.001, 0.002, 0.0, 0.004]]]))


@TRANSFORMER_BLOCK.example
def later_tokens_hidden(TransformerBlock: Code) -> Any:
    """Only the first of three tokens may be attended to."""
    block = numbered(TransformerBlock(4, 2, 8))
    x = torch.tensor([[[1.0, 2, 0, 4], [0, 3, 1, 1], [2, 0, 1, 5]]])
    return block(x, torch.tensor([True, False, False]).expand(3, 3))
