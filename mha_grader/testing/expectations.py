"""What a part expects of a result; each `expect_…` raises `Mismatch` with words that a student may read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from mha_grader.testing.errors import CallError, Mismatch
from mha_grader.testing.values import as_array, describe, is_tensor, show


class Callee(Protocol):
    """A student's function as a hidden test sees it, wherever it runs."""

    changed: tuple[str, ...]  # which arguments the last call changed in place: "0", "1", … or a keyword

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with plain data; returns plain data or raises `CallError`."""


def expect(condition: bool, message: str) -> None:
    """Raise `Mismatch(message)` unless the condition holds."""
    if not condition:
        raise Mismatch(message)


def expect_close(got: Any, expected: Any, tolerance: float = 1e-5, what: str = "the output") -> None:
    """The array has exactly the expected shape, is finite, and no entry is off by more than `tolerance`.

    If a tensor is expected, it must be a tensor of the same dtype. Else the dtype is not compared beyond its
    kind: integers and floats pass, booleans, text and complex do not.

    Raises:
        Mismatch: with the shapes, or the largest difference and where it stands.
    """
    kind = "a tensor" if is_tensor(expected) else "an array"
    if is_tensor(expected) and is_tensor(got) and got.dtype != expected.dtype:
        raise Mismatch(f"{what} should have dtype {expected.dtype}, but its dtype is {got.dtype}")
    if not (is_tensor(got) if is_tensor(expected) else isinstance(got, np.ndarray)):
        shape = tuple(np.shape(expected))
        raise Mismatch(f"{what} should be {kind} of shape {shape}, but it is {describe(got)}")
    got, expected = as_array(got), np.asarray(as_array(expected), dtype=np.float64)
    if got.dtype.kind not in "iuf":
        raise Mismatch(f"{what} should hold real numbers, but its dtype is {got.dtype}")
    if got.shape != expected.shape:
        raise Mismatch(f"{what} should have shape {expected.shape}, but it has shape {got.shape}")
    got = got.astype(np.float64)
    if not np.isfinite(got).all():
        raise Mismatch(f"{what} has {np.count_nonzero(~np.isfinite(got))} entries that are NaN or infinite")
    difference = np.abs(got - expected)
    if difference.size and difference.max() > tolerance:
        worst = tuple(int(i) for i in np.unravel_index(difference.argmax(), difference.shape))
        raise Mismatch(
            f"{what} has the right shape {got.shape}, but {np.count_nonzero(difference > tolerance)} of "
            f"{got.size} entries are off by more than {tolerance:g}; the largest difference is "
            f"{difference.max():.3g} at index {worst}"
        )


def expect_equal(got: Any, expected: Any, what: str = "the result") -> None:
    """Same kind of value and equal: for integers, text, and arrays of booleans or integers.

    A Python integer and a NumPy integer scalar are the same; a boolean is not an integer.

    Raises:
        Mismatch: with what was expected and what came, in kind and shape.
    """
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray):
            raise Mismatch(f"{what} should be an array of shape {expected.shape}, but it is {describe(got)}")
        if got.dtype.kind != expected.dtype.kind:
            raise Mismatch(f"{what} should have dtype {expected.dtype}, but its dtype is {got.dtype}")
        if got.shape != expected.shape:
            raise Mismatch(f"{what} should have shape {expected.shape}, but it has shape {got.shape}")
        if not np.array_equal(got, expected):
            raise Mismatch(f"{what} differs in {np.count_nonzero(got != expected)} of {got.size} entries")
        return
    got = _scalar(got)
    if type(got) is not type(expected):
        raise Mismatch(f"{what} should be {describe(expected)}, but it is {describe(got)}")
    if got != expected:
        raise Mismatch(f"{what} is not right")


def expect_answer(answers: Any, expected: Mapping[str, Any], question: str, tolerance: float = 0.005) -> None:
    """One of a dict of short answers is right: a number, or a choice of one letter.

    Args:
        answers: what the student's cell defines.
        expected: the right answers. A text stands for a choice, in which capitals and spaces do not matter.
        question: which answer is meant.
        tolerance: how far off a number may be.

    Raises:
        Mismatch: if it is missing, of another kind or not right.
    """
    expect(isinstance(answers, dict), "answers should be a dict")
    name, answer, right = f"answers[{question!r}]", answers.get(question), expected[question]
    expect(answer is not None, f"{name} is empty")
    given = f"{name}, which is {show(answer)},"
    if isinstance(right, str):
        letter = isinstance(answer, str) and len(answer.strip()) == 1
        expect(letter, f"{given} should be one letter in quotation marks, and nothing else")
        expect(answer.strip().lower() == right, f"{given} is not the right choice")
    else:
        number = number_of(answer, given)
        expect(right - tolerance <= number <= right + tolerance, f"{given} is not the right number")


def number_of(result: Any, what: str) -> int | float:
    """The finite number that a result is, whole or not: whether it is an int may have a part of its own.

    Raises:
        Mismatch: if it is no number, a boolean, infinite or NaN.
    """
    number = _scalar(result)
    expect(type(number) in (int, float), f"{what} should be a number, without quotation marks or brackets")
    expect(type(number) is int or math.isfinite(number), f"{what} should be finite, but it is {number}")
    return number


def _scalar(value: Any) -> Any:
    """An array or tensor without axes as the number in it, everything else as it is."""
    array = as_array(value)
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else value


def expect_number(result: Any, expected: float, what: str) -> None:
    """The result is this number, whole or not: whether it is an int may have a part of its own.

    Raises:
        Mismatch: if it is no number, or another one.
    """
    expect(number_of(result, what) == expected, f"{what} is not right")


def expect_whole(result: Any, what: str) -> None:
    """The result is an int, whatever number it is.

    Raises:
        Mismatch: if it is not.
    """
    expect(type(number_of(result, what)) is int, f"{what} should be an int, but it is a float")


def mask_of(result: Any) -> np.ndarray:
    """The mask that a result is, of booleans or of numbers: the dtype may have a part of its own.

    Raises:
        Mismatch: if it is no array, or holds something else.
    """
    if not (isinstance(result, np.ndarray) and result.dtype.kind in "biuf"):
        raise Mismatch(f"the mask should be a boolean array, but it is {describe(result)}")
    return result


def expect_boolean(result: Any) -> None:
    """The mask that a result is holds booleans, not numbers.

    Raises:
        Mismatch: if it does not, or is no mask.
    """
    dtype = mask_of(result).dtype
    expect(dtype.kind == "b", f"the mask should be boolean, but its dtype is {dtype}")


def output_of(result: Any) -> Any:
    """The first of a pair, else the result itself: how many come back may have a part of its own."""
    return result[0] if isinstance(result, tuple | list) and len(result) == 2 else result


def pair_of(result: Any) -> tuple[Any, Any]:
    """The output and the weights.

    Raises:
        Mismatch: if these are not two.
    """
    pair = isinstance(result, tuple | list) and len(result) == 2
    expect(pair, f"it should return two results, (output, weights), but it returned {describe(result)}")
    return result[0], result[1]


def expect_unchanged(callee: Callee, what: str = "The function") -> None:
    """The last call of `callee` left its arguments as they were."""
    if callee.changed:
        changed = " and ".join(map(_in_words, callee.changed))
        raise Mismatch(f"{what} changed its {changed} in place")


def _in_words(argument: str) -> str:
    """An argument that is named by its place, counted from 0, or by its keyword."""
    ordinals = dict(enumerate(("first", "second", "third", "fourth", "fifth", "sixth", "seventh")))
    place = int(argument) if argument.isdecimal() else None
    return f"{ordinals[place]} argument" if place in ordinals else f"argument {argument}"


def expect_raises(
    callee: Callee, *args: Any, error: str = "Exception", mentions: Sequence[str] = (), **kwargs: Any
) -> None:
    """Calling `callee` raises the error (by class name; a subclass will do) and its text mentions every word.

    The message repeats neither the arguments nor the words: they may hold hidden numbers. Give the part an example.

    Raises:
        Mismatch: if it returned, raised something else, or the text lacks one of `mentions`.
        CallError: if it timed out or its process ended.
    """
    wanted = "an error" if error == "Exception" else f"a {error}"
    try:
        callee(*args, **kwargs)
    except CallError as caught:
        if caught.kind != "error":
            raise
        if error not in caught.type_names:
            raise Mismatch(f"it should raise {wanted}, but it raised {caught.type_names[0]}") from None
        if any(word not in caught.text for word in mentions):
            raise Mismatch("the error's text does not mention all that it should") from None
        return
    raise Mismatch(f"it should raise {wanted}, but it raised no error")
