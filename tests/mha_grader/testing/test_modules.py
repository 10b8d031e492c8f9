"""Modules of the student's stay in the student's process: they are made, filled, called and asked for gradients."""

import numpy as np
import pytest
import torch

from mha_grader.testing import (
    CallError,
    Mismatch,
    expect_close,
    expect_gradients,
    installed,
    load_parameters,
    reload,
    seed_torch,
    twins,
)
from mha_grader.testing.proxies import Recorder, local


def stand_in(function):
    return Recorder(local(f=function)).bind("f", function)


class Line(torch.nn.Module):
    """A linear layer and dropout."""

    def __init__(self, width, bias=True, slope=1.0):
        super().__init__()
        self.linear, self.dropout = torch.nn.Linear(width, width, bias=bias), torch.nn.Dropout(0.5)
        self.slope = slope

    def forward(self, x, by=1.0):
        return self.slope * by * self.dropout(self.linear(x))


def line(**options):
    return Recorder(local(f=lambda width: Line(width, **options))).bind("f", Line)


def parameters(bias):
    return {"linear.weight": torch.arange(9.0).view(3, 3), "linear.bias": torch.full((3,), bias)}


def test_twins_have_the_same_numbers_and_drop_nothing():
    module, expected = twins(line(), Line, parameters(bias=2.0), 3)
    x = torch.arange(6.0).view(2, 3)
    expect_close(module(x), x @ torch.arange(9.0).view(3, 3).T + 2.0)
    expect_close(expected(x), x @ torch.arange(9.0).view(3, 3).T + 2.0)


def test_twins_of_a_module_without_biases_have_the_same_numbers_where_biases_are_zero():
    module, expected = twins(line(bias=False), Line, parameters(bias=0.0), 3)
    x = torch.arange(6.0).view(2, 3)
    expect_close(module(x), expected(x))
    with pytest.raises(Mismatch, match=r"no parameter linear.bias of shape \(3,\)"):
        twins(line(bias=False), Line, parameters(bias=1.0), 3)


def test_twins_can_be_made_of_an_installed_class():
    weights = {"weight": torch.arange(6.0).view(2, 3), "bias": torch.ones(2)}
    module, expected = twins(installed(stand_in(len), "torch.nn.Linear"), torch.nn.Linear, weights, 3, 2)
    expect_close(module(torch.ones(4, 3)), torch.tensor([4.0, 13.0]).expand(4, 2))
    expect_close(module(torch.ones(4, 3)), expected(torch.ones(4, 3)))


def test_a_module_is_made_once_whether_that_or_filling_it_fails_or_not():
    made = []

    def once(width, fail, **options):
        made.append(width)
        return 1 / 0 if fail else Line(width, **options)

    tested = Recorder(local(f=once)).bind("f", Line)
    with pytest.raises(CallError, match="ZeroDivisionError"):
        twins(tested, Line, parameters(bias=0.0), 3, True)
    twins(tested, lambda width, fail, **options: Line(width), parameters(bias=0.0), 3, False, bias=False)
    twins(tested, lambda width, fail: Line(width), parameters(bias=0.0), 3, False)
    assert made == [3, 3, 3]


def test_random_numbers_start_as_with_pytorchs_own_seed():
    draw = stand_in(lambda: torch.rand(3))
    seed_torch(draw, 5)
    found = draw()
    torch.manual_seed(5)
    assert torch.equal(found, torch.rand(3))


def test_twins_get_other_numbers_through_the_modules_own_load_state_dict():
    module, expected = reload(twins(line(), Line, parameters(bias=2.0), 3), parameters(bias=5.0))
    x = torch.arange(6.0).view(2, 3)
    for found in (module(x), expected(x)):
        expect_close(found, x @ torch.arange(9.0).view(3, 3).T + 5.0)
    deaf = Recorder(local(f=type("Deaf", (Line,), {"load_state_dict": lambda *a, **o: None})))
    module, expected = reload(
        twins(deaf.bind("f", Line), Line, parameters(bias=2.0), 3), parameters(bias=5.0)
    )
    with pytest.raises(Mismatch, match="off by more"):
        expect_close(module(x), expected(x))


def test_a_missing_bias_matters_only_where_it_is_not_zero():
    module = line(bias=False)(3)
    load_parameters(module, parameters(bias=0.0))
    with pytest.raises(Mismatch, match=r"no parameter linear.bias of shape \(3,\)"):
        load_parameters(module, parameters(bias=1.0))
    with pytest.raises(Mismatch, match="no parameter other"):
        load_parameters(module, {"other": torch.zeros(3)})


def test_gradients_of_arguments_and_parameters_are_compared():
    rng, x = np.random.default_rng(0), torch.arange(6.0).view(2, 3)
    module, expected = twins(line(), Line, parameters(bias=2.0), 3)
    expect_gradients(rng, module, expected, [x, torch.tensor(3.0)], [0, 1, "linear.weight"])
    for key, words in [(1, "the gradient of by"), ("linear.weight", "the gradient of linear.weight")]:
        steep, expected = twins(line(slope=2.0), Line, parameters(bias=2.0), 3)
        with pytest.raises(Mismatch, match=words):
            expect_gradients(rng, steep, expected, [x, torch.tensor(3.0)], [key])
    cut = Recorder(local(f=lambda x, y: (x.detach() * y, 1.0))).bind("f", len)
    with pytest.raises(Mismatch, match="no gradient reaches x"):
        expect_gradients(rng, cut, lambda x, y: (x * y, None), [x, x], [0, 1])
