"""The assignment `batched_torch`: what each mistake costs, and what junk does."""

import pytest
from torch import nn

from mha_lib import pitfalls, torch_attention

LAYERS = ("MultiHeadAttention", "CausalSelfAttention")
FUNCTIONS = ("attention", "from_builtin", "sdpa_attention")


# A mistake costs the parts that are about it, and no others

EMPTY = {"nothing to attend to", "gradient with nothing to attend to"}
HEADS = {"several heads", "scores", "gradient"}
COSTS = [
    ("attention", "no-max-subtraction", {"large scores", "scores far below zero"}),
    ("attention", "no-scale", {"scale", "scale in a batch"}),
    ("attention", "scale-by-axis-one", {"scale in a batch"}),
    ("attention", "only-output-returned", {"weights", "masked weights", "no weights"}),
    ("attention", "mask-fill-not-negative-enough", {"scores far below zero"}),
    ("attention", "mask-fill-overflows-half", {"float16"}),
    ("attention", "empty-row-nan", EMPTY | {"no weights"}),
    ("attention", "empty-row-uniform", EMPTY | {"no weights"}),
    ("attention", "nan-gradient-on-empty-row", {"gradient with nothing to attend to"}),
    ("attention", "in-place-breaks-autograd", {"gradient with nothing to attend to"}),
    ("attention", "gradient-cut-off", {"gradient", "gradient with nothing to attend to"}),
    ("attention", "result-in-float32", {"float16", "bfloat16", "float64"}),
    ("MultiHeadAttention", "no-scale", {"scores", "gradient"}),
    (
        "MultiHeadAttention",
        "split-without-transpose",
        HEADS | {"mask for each sequence", "dropout of weights"},
    ),
    ("MultiHeadAttention", "mask-repeated-in-wrong-order", {"mask for each sequence"}),
    ("MultiHeadAttention", "mask-batch-on-head-axis", {"mask for each sequence"}),
    ("MultiHeadAttention", "weights-returned-too", {"output alone"}),
    ("MultiHeadAttention", "empty-row-uniform", EMPTY),
    ("MultiHeadAttention", "projection-without-bias", {"biases", "everything dropped"}),
    ("MultiHeadAttention", "heads-in-a-list", {"moves to another dtype", "state dict"}),
    ("MultiHeadAttention", "dropout-in-eval", {"no dropout in eval mode"}),
    ("MultiHeadAttention", "dropout-before-softmax", {"everything dropped", "dropout of weights"}),
    ("MultiHeadAttention", "dropout-on-heads", {"dropout of weights"}),
    ("MultiHeadAttention", "dropout-not-rescaled", {"dropout of weights"}),
    ("MultiHeadAttention", "dropout-by-default", {"no dropout by default"}),
    ("CausalSelfAttention", "no-scale", {"scores", "gradient"}),
    ("CausalSelfAttention", "merge-without-transpose", HEADS),
    ("CausalSelfAttention", "mask-not-a-buffer", {"moves to another device"}),
    ("CausalSelfAttention", "mask-not-sliced", {"shorter sequences"}),
    ("CausalSelfAttention", "mask-of-first-call", {"shorter sequences"}),
    ("CausalSelfAttention", "dtype-fixed", {"moves to another dtype"}),
    ("from_builtin", "batch-first-forgotten", {"built in layer with the sequence first"}),
    ("from_builtin", "bias-assumed", {"built in layer without biases"}),
    ("from_builtin", "biases-left-as-they-start", {"built in layer without biases"}),
    ("from_builtin", "weights-shared", {"weights are copies"}),
    ("from_builtin", "mode-lost", {"mode"}),
    ("from_builtin", "dtype-lost", {"dtype"}),
    ("from_builtin", "parameters-frozen", {"can be trained"}),
    ("from_builtin", "source-changed", {"built in layer unchanged"}),
    ("sdpa_attention", "no-scale", {"scale"}),
    ("sdpa_attention", "empty-row-uniform", {"nothing to attend to", "gradient"}),
    ("sdpa_attention", "result-in-float32", {"other dtypes"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(lost_to, item, slug, parts):
    assert lost_to(item, slug) == parts


def test_most_of_from_builtin_can_be_had_with_a_layer_that_computes_nothing(grade):
    class Unfinished(torch_attention.MultiHeadAttention):
        def forward(self, x, mask=None):
            raise NotImplementedError

    def from_builtin(builtin):
        layer = torch_attention.from_builtin(builtin)
        layer.__class__ = Unfinished
        return layer

    row = grade("from_builtin", from_builtin)
    assert row.score >= row.max_score / 2


def test_a_missing_parameter_is_named(grade):
    class Renamed(torch_attention.MultiHeadAttention):
        def __init__(self, d_model, num_heads, dropout=0.0):
            super().__init__(d_model, num_heads, dropout)
            self.W_Q, self.q_proj = self.q_proj, None

    row = grade("MultiHeadAttention", Renamed)
    assert "no parameter q_proj.weight of shape (6, 6)" in row.reasons["values"]
    assert row.slugs == {}


def test_code_that_looks_at_numbers_may_fail_on_a_device_without_any(lost):
    class Looks(torch_attention.CausalSelfAttention):
        def forward(self, x):
            output = super().forward(x)
            return output if output.abs().max() < 1e30 else output.nan_to_num()

    assert lost("CausalSelfAttention", Looks) == set()


def test_the_recognised_mistake_does_not_depend_on_the_name_of_the_class(grade):
    wrong = pitfalls.variants("batched_torch", "CausalSelfAttention")["mask-not-a-buffer"]
    renamed = type("CausalSelfAttention", (wrong,), {})
    row = grade("CausalSelfAttention", renamed)
    assert row.slugs == {"moves to another device": "mask-not-a-buffer"}


@pytest.mark.parametrize(
    ("merge", "slug"),
    [
        (lambda heads: heads.transpose(1, 2).flatten(2), "split-without-transpose"),
        (
            lambda heads: heads.reshape(heads.shape[0], -1, heads.shape[1] * heads.shape[3]),
            "heads-fold-by-reshape",
        ),
    ],
)
def test_a_view_without_transposition_is_named_whichever_way_the_heads_are_merged(grade, merge, slug):
    class Layer(torch_attention.MultiHeadAttention):
        def forward(self, x, mask=None):
            shape = (x.shape[0], self.num_heads, x.shape[1], self.d_k)
            Q, K, V = (linear(x).view(shape) for linear in (self.q_proj, self.k_proj, self.v_proj))
            weights = self.dropout(torch_attention.attention(Q, K, V, mask)[1])
            return self.out_proj(merge(weights @ V))

    assert set(grade("MultiHeadAttention", Layer).slugs.values()) == {slug}


# Junk is a verdict on the student, never a crash of the grader


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_nothing(grade, torch_junk, item):
    for value in torch_junk:
        row = grade(item, lambda *arguments, **options: value)  # noqa: B023 - called at once
        assert row.score == 0, value


@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_of_junk_earns_nothing(layer_of_junk, item):
    layer_of_junk(getattr(torch_attention, item), right_calls=0, most=0)


class NoModule:
    def __init__(self, *sizes, **options):
        pass


class Bare(nn.Module):
    def __init__(self, *sizes, **options):
        super().__init__()


@pytest.mark.parametrize("item", LAYERS)
@pytest.mark.parametrize("junk", [NoModule, Bare, lambda *sizes, **options: 3, nn.Linear])
def test_a_class_that_is_no_such_layer_earns_nothing(grade, item, junk):
    assert grade(item, junk).score == 0


@pytest.mark.parametrize("right_calls", [1, 2])
@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_that_turns_to_junk_is_a_verdict_too(layer_of_junk, item, right_calls):
    layer_of_junk(getattr(torch_attention, item), right_calls, most=0.5)
