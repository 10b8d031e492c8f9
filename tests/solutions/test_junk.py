"""Junk is a verdict on the student, never a crash of the grader."""

from itertools import chain, repeat

import numpy as np
import pytest
import torch
from torch import nn

from .conftest import ITEMS, LOADED

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
# the assignments in which tensors are asked for
TENSORS = ("batched_torch", "transformer_block", "modern_heads", "language_model")


def kind(name, item):
    """What an item is: "answers", "checker", "function", "class" or "layer", a class of PyTorch's kind."""
    right = getattr(LOADED[name].reference, item)
    if isinstance(right, type):
        return "layer" if issubclass(right, nn.Module) else "class"
    if not callable(right):
        return "answers"
    return "checker" if item.startswith("check_") else "function"


def items(wanted, tensors):
    return [
        (name, item) for name, item in ITEMS if kind(name, item) == wanted and (name in TENSORS) == tensors
    ]


FUNCTIONS = items("function", tensors=False)
TURNING = [(name, item) for name, item in FUNCTIONS if name in ("single_head", "multi_head")]
MOST = {
    "batched_torch": 0.5,
    "transformer_block": 0.99,
}  # the share that may be earned if the first results are right
LAYERS = [(name, item, MOST[name]) for name, item in items("layer", tensors=True) if name in MOST]


# Functions


@pytest.mark.parametrize(("name", "item"), FUNCTIONS)
def test_a_function_of_junk_earns_nothing(judge_item, name, item):
    for value in JUNK:
        row = judge_item(name, item, lambda *arguments, **options: value)  # noqa: B023 - called at once
        assert row.score == 0, value
        assert set(row.statuses.values()) <= {"fail", "not-run"}, value


@pytest.mark.parametrize(("name", "item"), items("function", tensors=True))
def test_a_function_of_junk_in_the_place_of_tensors_earns_nothing(judge_item, name, item):
    for value in TORCH_JUNK:
        row = judge_item(name, item, lambda *arguments, **options: value)  # noqa: B023
        assert row.score == 0, value


@pytest.mark.parametrize(
    ("name", "item"),
    [
        *FUNCTIONS,
        ("batched_torch", "from_builtin"),
        *((name, item) for name, item in items("function", tensors=True) if name == "modern_heads"),
    ],
)
@pytest.mark.parametrize("place", [0, -1])
def test_a_function_that_gives_an_argument_back_earns_nothing(judge_item, name, item, place):
    assert judge_item(name, item, lambda *arguments, **options: arguments[place]).score == 0


@pytest.mark.parametrize(("name", "item"), TURNING)
@pytest.mark.parametrize("right_calls", [1, 2, 3])
def test_a_function_that_turns_to_junk_is_a_verdict_too(judge_item, name, item, right_calls):
    right = getattr(LOADED[name].reference, item)
    for value in JUNK:
        results = chain(repeat(right, right_calls), repeat(lambda *a, **options: value))  # noqa: B023
        row = judge_item(name, item, lambda *a, **options: next(results)(*a, **options))  # noqa: B023
        assert row.score < row.max_score, value
        assert set(row.statuses.values()) <= {"pass", "fail", "not-run"}, value


# Objects


@pytest.mark.parametrize(("name", "item"), items("class", tensors=False))
def test_an_object_that_returns_junk_earns_nothing(judge_item, name, item):
    for value in JUNK:

        class Layer:
            def __init__(self, *arguments):
                pass

            def forward(self, chunk, value=value):
                return value

            def reset(self):
                pass

        row = judge_item(name, item, Layer)
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
def test_a_class_that_is_no_such_layer_earns_nothing(judge_item, name, item, junk):
    assert judge_item(name, item, junk).score == 0


@pytest.mark.parametrize(("name", "item", "most"), LAYERS)
@pytest.mark.parametrize("right_calls", [1, 2])
def test_a_layer_whose_results_become_junk_earns_little(judge_item, name, item, most, right_calls):
    for value in TORCH_JUNK:
        row = judge_item(name, item, turning(getattr(LOADED[name].reference, item), right_calls, value))
        assert row.score <= most * row.max_score, value


@pytest.mark.parametrize(("name", "item"), [layer[:2] for layer in LAYERS])
def test_a_layer_whose_results_are_junk_earns_nothing_and_is_taken_for_no_known_mistake(
    name_mistakes, name, item
):
    for value in TORCH_JUNK:
        row = name_mistakes(name, item, turning(getattr(LOADED[name].reference, item), 0, value))
        assert row.score == 0, value
        assert row.slugs == {}, value


def turning(right, right_calls, value):
    """A layer that gives this value after so many right results."""

    class Layer(right):
        calls = 0

        def forward(self, *arguments):
            type(self).calls += 1
            return super().forward(*arguments) if type(self).calls <= right_calls else value

    return Layer
