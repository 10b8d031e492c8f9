"""Junk is a verdict on the student, never a crash of the grader."""

from itertools import chain, repeat

import numpy as np
import pytest
import torch
from torch import nn

JUNK = [  # results that are none, where an array or a number is asked for
    None,
    "text",
    True,
    3.5,
    10**6,
    -(10**400),
    float("nan"),
    (),
    [],
    {},
    np.array(1.5),
    np.array("text"),
    np.array([1j, 2j]),
    np.full((2, 3), np.nan),
    np.ones((2, 3, 4, 5)),
    np.ones((2, 3, 4, 5, 6)),
    np.ones((0, 4)),
    (np.ones(2), None),
    (None, np.ones(2)),
    (np.ones(2), np.ones(3)),
    (np.ones(2),) * 3,
    (np.ones(2),) * 5,
    (np.ones((15, 0)),) * 4 + (0,),
    (np.ones((15, 12)),) * 4 + (4,),
    object(),
]
TORCH_JUNK = [  # and where a tensor is
    *(value for value in JUNK if not isinstance(value, tuple)),
    torch.tensor(1.0),
    torch.ones(2, 3) > 0,
    torch.full((2, 5, 6), float("nan")),
    torch.ones(2, 3, 4, 5, 6),
    torch.ones(0, 4),
    (torch.ones(2), None),
    (None, torch.ones(2)),
    torch.ones(2, 5, 6).numpy(),
]
FUNCTIONS = {
    "single_head": ("softmax", "attention", "causal_mask", "padding_mask", "decoder_mask"),
    "multi_head": (
        "head_dim",
        "split_heads",
        "combine_heads",
        "multi_head_attention",
        "causal_multi_head_attention",
        "cross_attention",
        "count_parameters",
        "attention_flops",
    ),
    "efficient_heads": ("grouped_query_attention", "kv_cache_bytes", "pruned_attention", "prune_heads"),
    "real_heads": ("bert_attention", "offset_score", "keep_heads", "head_importance"),
}
ON_TENSORS = {
    "batched_torch": ("attention", "from_builtin", "sdpa_attention"),
    "modern_heads": (
        "rotary",
        "sliding_window_mask",
        "latent_attention",
        "latent_attention_absorbed",
        "qk_norm_attention",
    ),
}
TURNING = [(name, item) for name in ("single_head", "multi_head") for item in FUNCTIONS[name]]
LAYERS = [  # with the share that may be earned if the first results are right
    ("batched_torch", "MultiHeadAttention", 0.5),
    ("batched_torch", "CausalSelfAttention", 0.5),
    ("transformer_block", "FeedForward", 0.99),
    ("transformer_block", "TransformerBlock", 0.99),
]


# Functions


@pytest.mark.parametrize(("name", "item"), [(name, item) for name in FUNCTIONS for item in FUNCTIONS[name]])
def test_a_function_of_junk_earns_nothing(grade_item, name, item):
    for value in JUNK:
        row = grade_item(name, item, lambda *arguments, **options: value)  # noqa: B023 - called at once
        assert row.score == 0, value
        assert set(row.statuses.values()) <= {"fail", "not-run"}, value


@pytest.mark.parametrize(
    ("name", "item"), [(name, item) for name, items in ON_TENSORS.items() for item in items]
)
def test_a_function_of_junk_in_the_place_of_tensors_earns_nothing(grade_item, name, item):
    for value in TORCH_JUNK:
        row = grade_item(name, item, lambda *arguments, **options: value)  # noqa: B023
        assert row.score == 0, value


@pytest.mark.parametrize(
    ("name", "item"),
    [(name, item) for name in FUNCTIONS for item in FUNCTIONS[name]]
    + [("batched_torch", "from_builtin")]
    + [("modern_heads", item) for item in ON_TENSORS["modern_heads"]],
)
@pytest.mark.parametrize("place", [0, -1])
def test_a_function_that_gives_an_argument_back_earns_nothing(grade_item, name, item, place):
    assert grade_item(name, item, lambda *arguments, **options: arguments[place]).score == 0


@pytest.mark.parametrize(("name", "item"), TURNING)
@pytest.mark.parametrize("right_calls", [1, 2, 3])
def test_a_function_that_turns_to_junk_is_a_verdict_too(loaded, grade_item, name, item, right_calls):
    right = getattr(loaded[name].reference, item)
    for value in JUNK:
        results = chain(repeat(right, right_calls), repeat(lambda *a, **options: value))  # noqa: B023
        row = grade_item(name, item, lambda *a, **options: next(results)(*a, **options))  # noqa: B023
        assert row.score < row.max_score, value
        assert set(row.statuses.values()) <= {"pass", "fail", "not-run"}, value


# Objects


def test_an_object_that_returns_junk_earns_nothing(grade_item):
    for value in JUNK:

        class Layer:
            def __init__(self, *arguments):
                pass

            def forward(self, chunk, value=value):
                return value

            def reset(self):
                pass

        row = grade_item("efficient_heads", "CachedAttention", Layer)
        assert row.score == 0, value
        assert set(row.statuses.values()) <= {"fail", "not-run"}, value


class NoModule:
    def __init__(self, *sizes, **options):
        pass


class Bare(nn.Module):
    def __init__(self, *sizes, **options):
        super().__init__()


@pytest.mark.parametrize(("name", "item"), [layer[:2] for layer in LAYERS])
@pytest.mark.parametrize("junk", [NoModule, Bare, lambda *sizes, **options: 3, nn.Linear, nn.Bilinear])
def test_a_class_that_is_no_such_layer_earns_nothing(grade_item, name, item, junk):
    assert grade_item(name, item, junk).score == 0


@pytest.mark.parametrize(("name", "item", "most"), LAYERS)
@pytest.mark.parametrize("right_calls", [0, 1, 2])
def test_a_layer_whose_results_are_or_become_junk_earns_little(
    loaded, grade_item, name, item, most, right_calls
):
    for value in TORCH_JUNK:

        class Layer(getattr(loaded[name].reference, item)):
            calls = 0

            def forward(self, *arguments, value=value):
                type(self).calls += 1
                return super().forward(*arguments) if type(self).calls <= right_calls else value

        row = grade_item(name, item, Layer)
        assert row.score <= (most * row.max_score if right_calls else 0), value
        assert right_calls or row.slugs == {}, value
