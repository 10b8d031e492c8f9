"""The assignment `transformer_block`: what each mistake costs, and what junk does."""

import pytest
import torch
from torch import nn

from mha_lib import pitfalls, transformer

LAYERS = ("FeedForward", "TransformerBlock")


# A mistake costs the parts that are about it, and no others

POST_NORM = {"post norm attention", "post norm feed forward", "post norm", "mask", "registered"}
POST_NORM |= {"order of tokens does not matter"}
COSTS = [
    ("FeedForward", "relu-instead-of-gelu", {"curve", "exact gelu"}),
    ("FeedForward", "activation-missing", {"curve", "exact gelu"}),
    ("FeedForward", "gelu-approximated", {"exact gelu"}),
    ("FeedForward", "projection-without-bias", {"biases"}),
    ("FeedForward", "dropout-by-default", {"no dropout"}),
    ("FeedForward", "heads-in-a-list", {"registered"}),
    ("FeedForward", "gradient-cut-off", {"gradient"}),
    ("TransformerBlock", "norm-first-ignored", POST_NORM),
    ("TransformerBlock", "norm-on-the-branch", POST_NORM),
    ("TransformerBlock", "post-norm-by-default", {"pre norm by default"}),
    (
        "TransformerBlock",
        "halves-in-parallel",
        {"pre norm", "post norm", "two norms", "whole block", "gradient"},
    ),
    ("TransformerBlock", "one-norm-for-both", {"two norms", "gradient"}),
    ("TransformerBlock", "norms-exchanged", {"two norms", "gradient"}),
    ("TransformerBlock", "norm-epsilon", {"epsilon"}),
    ("TransformerBlock", "mask-not-passed-on", {"mask", "mask in pre norm"}),
    ("TransformerBlock", "mask-inverted", {"mask", "mask in pre norm"}),
    ("TransformerBlock", "dropout-by-default", {"no dropout"}),
    ("TransformerBlock", "heads-in-a-list", {"registered"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(lost_to, item, slug, parts):
    assert lost_to(item, slug) == parts


def test_a_mistake_in_the_feed_forward_network_is_not_paid_for_twice(lost):
    class Block(transformer.TransformerBlock):
        def __init__(self, d_model, num_heads, d_ff, norm_first=True):
            super().__init__(d_model, num_heads, d_ff, norm_first)
            wrong = pitfalls.variants("transformer_block", "FeedForward")["relu-instead-of-gelu"]
            self.feed_forward = wrong(d_model, d_ff)

    assert lost("TransformerBlock", Block) == {"whole block"}


# Junk is a verdict on the student, never a crash of the grader


class Bare(nn.Module):
    def __init__(self, *sizes, **options):
        super().__init__()


@pytest.mark.parametrize("item", LAYERS)
@pytest.mark.parametrize("junk", [Bare, lambda *sizes, **options: 3, nn.Bilinear])
def test_a_class_that_is_no_such_layer_earns_nothing(grade, item, junk):
    assert grade(item, junk).score == 0


@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_of_junk_earns_nothing(layer_of_junk, item):
    layer_of_junk(getattr(transformer, item), right_calls=0, most=0)


@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_that_turns_to_junk_is_a_verdict_too(layer_of_junk, item):
    layer_of_junk(getattr(transformer, item), right_calls=2, most=0.99)


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
