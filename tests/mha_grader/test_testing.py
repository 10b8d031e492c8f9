"""The expectations accept what is right, refuse everything else, and never tell a hidden value."""

import numpy as np
import pytest
import torch

from mha_grader import testing
from mha_grader.tested import Recorder, local
from mha_grader.testing import Mismatch, expect_close, expect_equal, expect_raises, expect_unchanged
from mha_grader.wire import Opaque


def stand_in(function):
    return Recorder(local(f=function)).bind("f", function)


SECRET = np.array([[31.4159, 27.1828, 16.1803]])


def test_close_within_the_tolerance():
    expect_close(SECRET + 9e-6, SECRET)
    expect_close(SECRET.astype(np.float32), SECRET)
    expect_close(np.array([[1, 2]]), [[1, 2]])
    expect_close(SECRET + 9e-3, SECRET, 1e-2)
    expect_close(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (SECRET + 2e-5, "off by more than 1e-05"),
        (SECRET[0], r"should have shape \(1, 3\), but it has shape \(3,\)"),
        (SECRET.T, "should have shape"),
        (SECRET * np.nan, "NaN or infinite"),
        (SECRET * np.inf, "NaN or infinite"),
        (SECRET > 0, "dtype is bool"),
        (SECRET.tolist(), "a list of 1"),
        (None, "return missing"),
        (Opaque("generator"), "generator"),
        (31.4, "float"),
        ((SECRET, SECRET), "a tuple of 2"),
        (torch.tensor(SECRET), "a tensor"),
    ],
)
def test_what_is_not_close_is_refused_without_telling_the_values(got, words):
    with pytest.raises(Mismatch, match=words) as caught:
        expect_close(got, SECRET)
    for number in ("31.4", "27.18", "16.18"):
        assert number not in str(caught.value)


@pytest.mark.parametrize("value", [3, "text", True, np.array([[True, False]]), np.array([1, 2])])
def test_equal_is_equal(value):
    expect_equal(value, value)


def test_integers_of_numpy_count_as_integers():
    expect_equal(np.array(3), 3)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (4, 3),
        (3.0, 3),
        (True, 1),
        (1, True),
        ("a", "b"),
        (None, 3),
        (np.array([1.0, 0.0]), np.array([True, False])),
        (np.array([1, 0]), np.array([True, False])),
        (np.array([True, True]), np.array([True, False])),
        (np.array([[True, False]]), np.array([True, False])),
        ([True, False], np.array([True, False])),
    ],
)
def test_what_is_not_equal_is_refused(got, expected):
    with pytest.raises(Mismatch):
        expect_equal(got, expected)


def failing(error):
    def function():
        raise error

    return stand_in(function)


def test_an_error_is_expected_by_class_and_words():
    expect_raises(failing(ValueError("7 by 2")), error="ValueError", mentions=["7", "2"])
    expect_raises(failing(UnicodeError("x")), error="ValueError")
    for callee, words in [
        (stand_in(lambda: 1), "raised none"),
        (failing(TypeError("7 by 2")), "raised TypeError"),
        (failing(ValueError("7")), "mention 2"),
    ]:
        with pytest.raises(Mismatch, match=words):
            expect_raises(callee, error="ValueError", mentions=["7", "2"])


def test_a_timeout_is_no_expected_error():
    def callee():
        raise testing.CallError("timeout")

    with pytest.raises(testing.CallError):
        expect_raises(callee)


def test_changed_arguments_are_named():
    def scribble(x, *, y):
        y[0] = 1

    function = stand_in(scribble)
    function(np.zeros(2), y=np.zeros(2))
    with pytest.raises(Mismatch, match=r"changed its argument.* y in place"):
        expect_unchanged(function)


def test_a_tensor_is_expected_with_its_dtype():
    expected = torch.tensor(SECRET, dtype=torch.bfloat16)
    expect_close(expected + 0, expected, 3e-2)
    for got, words in [
        (expected.float(), "should have dtype torch.bfloat16"),
        (SECRET, "should be a tensor"),
        (expected[0], "should have shape"),
        (expected * float("nan"), "NaN"),
        (expected + 1, "off by more"),
    ]:
        with pytest.raises(Mismatch, match=words):
            expect_close(got, expected, 3e-2)
