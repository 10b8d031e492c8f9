"""The assignment `transformer_block`: what is paid for once, and the answers."""

import torch

from mha_lib import pitfalls, transformer


def test_a_mistake_in_the_feed_forward_network_is_not_paid_for_twice(lost):
    class Block(transformer.TransformerBlock):
        def __init__(self, d_model, num_heads, d_ff, norm_first=True):
            super().__init__(d_model, num_heads, d_ff, norm_first)
            wrong = pitfalls.variants("transformer_block", "FeedForward")["relu-instead-of-gelu"]
            self.feed_forward = wrong(d_model, d_ff)

    assert lost("TransformerBlock", Block) == {"whole block"}


# The answers


def test_the_answers_are_what_a_run_gives(assignment):
    right = assignment.reference.answers
    block = transformer.TransformerBlock(512, 8, 2048)
    assert sum(parameter.numel() for parameter in block.parameters()) == right["parameters"]
    for depth, num_heads, question in ((6, 1, "reach"), (1, 6, "reach_with_heads")):
        x = torch.randn(1, 16, 12, requires_grad=True)
        near = torch.ones(16, 16, dtype=torch.bool).tril().triu(-2)
        y = x
        for _ in range(depth):
            y = transformer.TransformerBlock(12, num_heads, 20)(y, near)
        (y[0, -1] * torch.randn(12)).sum().backward()
        seen = [15 - i for i in range(16) if x.grad[0, i].any()]
        assert max(seen) == right[question]
