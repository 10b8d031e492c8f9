"""Weak checks of the items of `transformer_block`."""

from mha_lib.pitfalls.weak_checks import weak_check
from mha_lib.pitfalls.weak_checks.batched_torch import (
    ALL,
    check_finite,
    check_shape,
    layer_outputs,
    right_under,
)
from mha_lib.transformer import FeedForward, TransformerBlock

feed_forward_outputs = layer_outputs(FeedForward, 6, 10)

check_shape("transformer_block.FeedForward", FeedForward, feed_forward_outputs)
check_finite("transformer_block.FeedForward", feed_forward_outputs)

BLOCK = "transformer_block.TransformerBlock"
block_outputs = layer_outputs(TransformerBlock, 6, 2, 10)
block_is_right = right_under(TransformerBlock, block_outputs)

check_shape(BLOCK, TransformerBlock, block_outputs)
check_finite(BLOCK, block_outputs)
weak_check("no mask", BLOCK)(block_is_right)
weak_check("all-True mask", BLOCK)(right_under(TransformerBlock, block_outputs, ALL))
weak_check("right values", BLOCK)(block_is_right)
