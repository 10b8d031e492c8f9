"""What a student reads: never a hidden input, and something to try."""

import numpy as np
import pytest
import torch

from mha_grader.grading.explain import Example, difference, explain, first_difference
from mha_grader.grading.judge import Verdict
from mha_grader.grading.messages import RAISED, section_of
from mha_grader.sandbox.wire import Opaque
from mha_grader.testing.parts import Part
from mha_grader.testing.proxies import Recorder, local
from mha_lib.pitfalls import BANK


def tried(expression, function, reference):
    function = Recorder(local(f=function)).bind("f", function)
    return difference(expression, Example("f", function, reference))


def test_the_first_difference_stands_with_its_place():
    text = tried("f(np.arange(3.0))", lambda x: x + (x > 1), lambda x: x)
    assert text == "Try it yourself: f(np.arange(3.0))\nat index [2] of the result: expected 2, got 3"


def test_a_wrong_number_is_told_before_a_wrong_kind():
    expression = "f(np.arange(2.0))"
    text = tried(expression, lambda x: np.ones(2), lambda x: x > 0)
    assert text == f"Try it yourself: {expression}\nat index [0] of the result: expected False, got 1"
    assert "expected dtype bool" in tried(expression, lambda x: x, lambda x: x > 0)


def test_an_error_on_the_example_is_told_with_its_text():
    assert "ZeroDivisionError: division by zero" in tried("f(1)", lambda x: x / 0, lambda x: x)


def test_an_error_that_should_be_there_is_told():
    def refuses(x):
        raise ValueError(f"{x} is too small")

    assert "expected a ValueError, got 1" in tried("f(1)", lambda x: x, refuses)
    assert f"expected a ValueError; {RAISED} ZeroDivisionError" in tried("f(1)", lambda x: x / 0, refuses)
    assert "your code raises a ValueError, as it should; its text is: 1 is too small" in tried(
        "f(1)", refuses, refuses
    )


def test_a_result_that_cannot_be_looked_into_is_told():
    assert "expected 3" in tried("f(1)[1]", lambda x: None, lambda x: (1, 3))


def test_right_on_the_example_is_said():
    assert "your answer is right" in tried("f(1)", lambda x: x, lambda x: x)


class Scale(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x)


class Shifted(Scale):
    def forward(self, x):
        return self.linear(x) + 1


def test_a_module_is_tried_with_numbers_that_are_the_same_for_everyone():
    expression = "filled(f(2))(torch.ones(1, 2))"
    assert "your answer is right" in tried(expression, Scale, Scale)
    assert "at index [0, 0] of the result: expected " in tried(expression, Shifted, Scale)


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        (torch.ones(3), torch.ones(3, 1), "expected shape (3, 1), got shape (3,)"),
        (torch.ones(3), torch.ones(3).double(), "expected dtype torch.float64, got dtype torch.float32"),
        (np.ones(3), torch.ones(3), "expected a tensor of shape (3,), got an array of shape (3,)"),
        (torch.ones(3), np.ones(3), "expected an array of shape (3,), got a tensor of shape (3,)"),
        (np.ones(3), np.ones((3, 1)), "expected shape (3, 1), got shape (3,)"),
        (np.ones(3), np.ones(3, bool), "expected dtype bool, got dtype float64"),
        (None, np.ones(3), "is a return missing"),
        (Opaque("generator"), np.ones(3), "generator"),
        ((np.ones(2),), (np.ones(2), np.ones(2)), "expected 2 values, got a tuple of 1"),
        ((np.ones(2), np.zeros(2)), (np.ones(2), np.ones(2)), "at index [0] of value 1 of the result"),
        (np.array(np.nan), np.array(1.0), "expected 1, got nan"),
        (3, 4, "expected 4, got 3"),
        (True, 1, "expected 1, got True"),
    ],
)
def test_differences_in_words(got, expected, words):
    assert words in first_difference(got, expected)


@pytest.mark.parametrize("value", [np.ones((2, 3)), np.float64(2), (np.ones(2), np.zeros(1)), 3, "text"])
def test_the_same_has_no_difference(value):
    again = np.asarray(value) if isinstance(value, np.generic) else value
    assert first_difference(again, value) is None


def test_of_a_known_mistake_the_place_in_the_book_is_told():
    part = Part("scale", 2.0, (), "The scores are divided.", None, lambda rng: None)
    message = explain(Verdict(part, "fail", "Not shown."), "no-scale", None).message
    assert message.startswith(f"{BANK['no-scale'].title} (no-scale). ")
    assert message.endswith(" The book runs it: Pitfalls: scale, pitfalls_scale.html#no-scale.")


def test_a_family_of_two_words_has_a_page_too():
    assert section_of("offset-summed") == (
        "Pitfalls: reading heads",
        "pitfalls_reading_heads.html#offset-summed",
    )


class Huge(Scale):
    def state_dict(self):
        return {"x.weight": np.zeros(2**20, np.int8)}


def test_a_module_that_says_it_is_huge_is_not_filled():
    text = tried("filled(f(2))(torch.ones(1, 2))", Huge, Scale)
    assert "expected tensor" in text
    assert RAISED not in text
