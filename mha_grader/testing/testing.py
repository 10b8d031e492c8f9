"""What hidden tests are written with.

A hidden test is a cell of ordinary Python in the instructor's notebook. It defines *parts*:

    @part(points=3, example="softmax(np.array([[1.0, 2.0], [3.0, 5.0]]))")
    def values(rng):
        "Every row is the exponentials of its logits divided by their sum."
        x = rng.normal(size=(3, 7))
        expect_close(softmax(x), reference.softmax(x))

Inside a hidden test these names are there without an import: `np`, everything public in this module, the
student's items by name (`softmax` above is a proxy: calling it runs the student's code in another process),
and `reference`, the instructor's solutions by name. The docstring says what the part proves; students read
it when the part fails. `example` is an expression over the item and `np` on a small *public* input; its
result is shown to students, expected and got, when no known misconception explains the failure.

A part passes only if its body returns. What the `expect_…` functions put into `Mismatch` is shown to
students: shapes, types and sizes of differences, never a value of a hidden input.

A mistake should cost the parts that are about it, and no others. The `…_qkv` and `…_layer` functions make
inputs for that: with *decided* ones a wrong scale makes no difference, with *undecided* ones only the mask does.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mha_grader.sandbox.wire import Opaque
from mha_grader.testing import candidates
from mha_lib import pitfalls

__all__ = [
    "CallError",
    "Mismatch",
    "attribute_of",
    "checker_parts",
    "construct",
    "decided_layer",
    "decided_qkv",
    "expect",
    "expect_answer",
    "expect_boolean",
    "expect_close",
    "expect_equal",
    "expect_gradients",
    "expect_number",
    "expect_raises",
    "expect_unchanged",
    "expect_whole",
    "filled",
    "gradients",
    "heads_alone",
    "high_qkv",
    "keep",
    "load_parameters",
    "low_qkv",
    "mask_of",
    "number_of",
    "output_of",
    "pair_of",
    "parameters_of",
    "part",
    "part_for_each",
    "random_layer",
    "random_mask",
    "reload",
    "scalar_qkv",
    "stored_layer",
    "stored_text",
    "tensor",
    "twins",
    "undecided_layer",
    "undecided_qkv",
    "wide_qkv",
]


MAX_FILLED = 100_000  # numbers in the module of a public example, which is small


class Mismatch(Exception):  # noqa: N818 - it is a verdict, not a fault
    """The student's result is not what was expected. The message may be shown to the student."""


class CallError(Exception):
    """Calling the student's code gave no result.

    Attributes:
        kind: `error` (it raised), `timeout`, `memory`, or `died` (the process ended).
        type_names: names of the exception's class and its bases, most special first (`error` only).
        text: the exception's own text. It may repeat a hidden input: never show it to a student.
        line: line of the student's cell, counted from 1, where it was raised, if known.
    """

    def __init__(self, kind: str, type_names: Sequence[str] = (), text: str = "", line: int | None = None):
        super().__init__(kind, tuple(type_names), text, line)
        self.kind, self.type_names, self.text, self.line = kind, tuple(type_names), text, line


class Callee(Protocol):
    """A student's function as a hidden test sees it, wherever it runs."""

    changed: tuple[str, ...]  # which arguments the last call changed in place: "0", "1", … or a keyword

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with plain data; returns plain data or raises `CallError`."""


@dataclass(frozen=True)
class Part:
    """One named part of a hidden test."""

    name: str
    points: float
    needs: tuple[str, ...]
    example: str | None
    proves: str
    run: Callable[[np.random.Generator], None]


def part(
    points: float, *, needs: str | Sequence[str] = (), example: str | None = None
) -> Callable[[Callable[[np.random.Generator], None]], Part]:
    """Make a part of the decorated function, which gets a random generator with a secret seed.

    Args:
        points: what the part is worth; a literal number, since the notebook's points are read from the text.
        needs: names of parts of the same item without which this one is not run.
        example: expression on a public input, see the module's docstring.

    Raises:
        ValueError: if the function has no docstring to say what it proves, or the points are not positive.
    """

    def decorate(run: Callable[[np.random.Generator], None]) -> Part:
        if not run.__doc__:
            raise ValueError(f"part {run.__name__!r} has no docstring: say in one sentence what it proves")
        if not points > 0:
            raise ValueError(f"part {run.__name__!r} is worth {points} points; it must be worth more than 0")
        return Part(
            name=run.__name__.replace("_", " "),
            points=float(points),
            needs=tuple(name.replace("_", " ") for name in ([needs] if isinstance(needs, str) else needs)),
            example=example,
            proves=" ".join(run.__doc__.split()),
            run=run,
        )

    return decorate


def part_for_each(check: Callable[[str], None], *, points: float, proves: Mapping[str, str]) -> list[Part]:
    """A part for each of several questions that are checked in the same way, for instance for short answers.

    Args:
        check: raises `Mismatch` if the student's answer to this question is not right.
        points: what each part is worth; a literal number.
        proves: what the part about a question proves, by question; written out, since the points are read from
            the text.
    """

    def about(question: str) -> Callable[[np.random.Generator], None]:
        return lambda rng: check(question)

    return [
        Part(question.replace("_", " "), float(points), (), None, words, about(question))
        for question, words in proves.items()
    ]


def checker_parts(check: Any, item: str, *, right: float, each: float) -> list[Part]:
    """Parts that judge a student's checker by the right styles and the known mistakes of an item.

    The checker meets them in a secret order, all mixed, so that it can go by nothing but what they do. The
    first part is that it accepts every right style, and some mistake is caught at all; on it rests one part
    for each mistake: that it is caught.

    Args:
        check: the checker.
        item: the checked item as `assignment.item`.
        right: points of the first part.
        each: points for each mistake.
    """
    judged: dict[str, dict[str, Any]] = {}

    def accepts_what_is_right(rng: np.random.Generator) -> None:
        """Every right way of writing the function is accepted, and not everything."""
        specs = candidates.right(item) + candidates.wrong(item)
        for spec in rng.permutation(specs).tolist():
            judged[spec] = check.check(spec)
        refused = [spec for spec in candidates.right(item) if not judged[spec]["accepted"]]
        if refused and all(_raised(verdict)[0] == "NotImplementedError" for verdict in judged.values()):
            raise CallError("error", ["NotImplementedError"])
        if refused:
            error, text = _raised(judged[refused[0]])
            raise Mismatch(
                f"your check rejects {len(refused)} of {len(candidates.right(item))} right ways of writing it, for "
                f"instance the one called “{refused[0].split('/', 2)[2]}”, with {error}{text and ': '}{text}"
            )
        if all(judged[spec]["accepted"] for spec in candidates.wrong(item)):
            told = any(verdict.get("returned") for verdict in judged.values())
            raise Mismatch(f"your check accepts everything{RETURNED if told else ''}")

    def catches(spec: str) -> Callable[[np.random.Generator], None]:
        def caught(rng: np.random.Generator) -> None:
            if judged[spec]["accepted"]:
                told = RETURNED if judged[spec]["returned"] else ""
                raise Mismatch(f"your check accepts a function with this mistake{told}")

        return caught

    parts = [part(points=right)(accepts_what_is_right)]
    for spec in candidates.wrong(item):
        slug = spec.split("/", 2)[2]
        title = pitfalls.BANK[slug].title
        proves = f"The mistake “{title}” ({slug}) is caught."
        parts.append(Part(f"catches {slug}", each, (parts[0].name,), None, proves, catches(spec)))
    return parts


RETURNED = " (it returned a value; it should raise an error)"


def _raised(verdict: dict[str, Any]) -> tuple[str, str]:
    """The class and the text of the error with which a checker rejected; both may be anything that it chose."""
    error, text = verdict.get("error"), verdict.get("text")
    name = error[0] if isinstance(error, list) and error and isinstance(error[0], str) else "an error"
    return name[:80], " ".join(text[:200].split()) if isinstance(text, str) else ""


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
        raise Mismatch(f"{what} should be {kind} of shape {shape}, but it is {_describe(got)}")
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
            raise Mismatch(f"{what} should be an array of shape {expected.shape}, but it is {_describe(got)}")
        if got.dtype.kind != expected.dtype.kind:
            raise Mismatch(f"{what} should have dtype {expected.dtype}, but its dtype is {got.dtype}")
        if got.shape != expected.shape:
            raise Mismatch(f"{what} should have shape {expected.shape}, but it has shape {got.shape}")
        if not np.array_equal(got, expected):
            raise Mismatch(f"{what} differs in {np.count_nonzero(got != expected)} of {got.size} entries")
        return
    if isinstance(got, np.ndarray) and got.shape == ():
        got = got.item()
    if type(got) is not type(expected):
        raise Mismatch(f"{what} should be {_describe(expected)}, but it is {_describe(got)}")
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
    if isinstance(right, str):
        letter = isinstance(answer, str) and len(answer.strip()) == 1
        expect(letter, f"{name} should be one letter in quotation marks, and nothing else")
        expect(answer.strip().lower() == right, f"{name} is not the right choice")
    else:
        number = number_of(answer, name)
        expect(right - tolerance <= number <= right + tolerance, f"{name} is not the right number")


def number_of(result: Any, what: str) -> int | float:
    """The number that a result is, whole or not: whether it is an int may have a part of its own.

    Raises:
        Mismatch: if it is no number, or a boolean.
    """
    if isinstance(result, np.ndarray) and result.shape == ():
        result = result.item()
    expect(type(result) in (int, float), f"{what} should be a number, without quotation marks or brackets")
    return result


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
        raise Mismatch(f"the mask should be a boolean array, but it is {_describe(result)}")
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
    expect(pair, f"two results should come back, (output, weights), but what came is {_describe(result)}")
    return result[0], result[1]


def load_parameters(module: Any, parameters: dict[str, Any]) -> None:
    """Copy arrays or tensors into the parameters of the student's module, by dotted path.

    A bias of zeros may be missing: that costs the parts in which biases are not 0, and no others.

    Raises:
        Mismatch: if it has no such parameter, or one of another shape.
        CallError: if it timed out or its process ended.
    """
    try:
        module.load_parameters(parameters)
        return
    except CallError as error:
        if error.kind != "error":
            raise
    for name, value in parameters.items():  # one by one, to see which
        try:
            module.load_parameters({name: value})
        except CallError as error:
            if error.kind != "error":
                raise
            if name.endswith("bias") and not value.any():
                continue
            shape = tuple(np.shape(as_array(value)))
            raise Mismatch(f"it has no parameter {name} of shape {shape}, which it should have") from None


def twins(tested: Any, reference: Any, parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A module of the student's and one of the reference's, made alike, with the same numbers, in eval mode.

    Args:
        tested: the student's class.
        reference: the reference's class.
        parameters: tensors by dotted path.
        args: what both are made with.
        kwargs: what both are made with, by name.

    Raises:
        Mismatch: if the student's module lacks a parameter.
        CallError: if it cannot be made.
    """
    module, expected = tested(*args, **kwargs), reference(*args, **kwargs)
    load_parameters(module, parameters)
    expected.load_state_dict(parameters)
    module.eval()
    return module, expected.eval()


def reload(pair: tuple[Any, Any], parameters: dict[str, Any]) -> tuple[Any, Any]:
    """The twins with other numbers, which the student's module gets through its own `load_state_dict`.

    Raises:
        CallError: if that fails.
    """
    module, expected = pair
    module.load_state_dict(parameters, strict=False)  # it may have buffers of its own
    expected.load_state_dict(parameters)
    return pair


def gradients(callee: Any, args: Sequence[Any], wrt: Sequence[int | str], cotangent: Any) -> list[Any]:
    """Gradients of sum(cotangent · output), by autograd in the student's process; None where unused.

    Args:
        callee: a student's function, module or method; of several outputs the first is taken.
        args: its arguments, of which some may be objects that the student's process keeps.
        wrt: positions of arguments, and dotted paths of the module's parameters.
        cotangent: tensor of the output's shape.

    Raises:
        CallError: if the call or the backward pass failed.
    """
    return list(callee.gradients(args, wrt, cotangent))


def expect_gradients(
    rng: np.random.Generator,
    callee: Any,
    expected: Any,
    args: Sequence[Any],
    wrt: Sequence[int | str],
    tolerance: float = 1e-4,
) -> None:
    """Gradients of a random weighting of the output are those of the reference.

    Args:
        rng: draws the weighting.
        callee: a student's function or module; of several outputs the first is taken.
        expected: the reference's.
        args: arguments for both.
        wrt: positions of arguments, and dotted paths of the module's parameters.
        tolerance: as in `expect_close`.

    Raises:
        Mismatch: if a gradient does not arrive, or is not right.
        CallError: if the call or the backward pass failed.
    """
    import torch

    names = list(inspect.signature(getattr(expected, "forward", expected)).parameters)
    leaves = {key: args[key].clone().requires_grad_() for key in wrt if isinstance(key, int)}
    output = output_of(expected(*[leaves.get(index, value) for index, value in enumerate(args)]))
    cotangent = tensor(rng.normal(size=output.shape))
    sources = [leaves[key] if isinstance(key, int) else expected.get_parameter(key) for key in wrt]
    right = torch.autograd.grad((output * cotangent).sum(), sources)
    for key, got, wanted in zip(wrt, gradients(callee, args, wrt, cotangent), right, strict=True):
        name = names[key] if isinstance(key, int) else key
        expect(got is not None, f"no gradient reaches {name}: the chain of tensors is cut somewhere")
        expect_close(got, wanted, tolerance, what=f"the gradient of {name}")


def keep(callee: Any, *args: Any, **kwargs: Any) -> Any:
    """Call something of the student's; the result stays in the student's process, as an object.

    Such an object can be called, its methods can, and it can be an argument of further calls.

    Raises:
        CallError: if the call gave no result.
    """
    return callee.keep(*args, **kwargs)


def construct(beside: Any, path: str, *args: Any, **kwargs: Any) -> Any:
    """Call something of an installed package in the student's process; the result stays there, as an object.

    Args:
        beside: any function, class or object of the student's.
        path: where to find what is called, for example `torch.nn.MultiheadAttention`.
        args: its arguments.
        kwargs: its arguments by name.

    Raises:
        CallError: if the call gave no result.
    """
    return beside.construct(path, *args, **kwargs)


def attribute_of(kept: Any, *names: str) -> Any:
    """An attribute, if it is plain data, of an object that stays in the student's process; of several, a tuple.

    Raises:
        CallError: if there is none.
    """
    return construct(kept, "operator.attrgetter", *names)(kept)


def parameters_of(module: Any, *names: str) -> list[tuple[Any, ...]]:
    """Attributes of each parameter of the student's module, as its `parameters()` gives them.

    Args:
        module: the student's module.
        names: attributes that are plain data, for example `requires_grad`, `is_leaf`, `shape`.

    Raises:
        Mismatch: if what comes back is something else.
        CallError: if that failed.
    """
    read = construct(module, "operator.attrgetter", *names)
    found = construct(module, "builtins.map", read, keep(module.parameters))
    rows = construct(module, "builtins.list", found).copy()
    rows = [row if len(names) > 1 else (row,) for row in rows] if isinstance(rows, list) else [()]
    alike = all(isinstance(row, tuple) and len(row) == len(names) for row in rows)
    expect(alike, "parameters() should give the layer's parameters")
    return rows


def filled(module: Any) -> Any:
    """The student's module, with numbers in its weights and biases that are the same for everyone.

    For public examples. Students have the same function in `checks`, beside their notebook.
    """
    shapes = {name: np.shape(as_array(value)) for name, value in module.state_dict().items()}
    numbers = sum(map(math.prod, shapes.values()))
    expect(numbers <= MAX_FILLED, "the module of the example has too many numbers")
    module.load_parameters(
        {
            name: 0.5 * np.sin(1.3 * np.arange(math.prod(shape)) + sum(map(ord, name))).reshape(shape)
            for name, shape in shapes.items()
            if name.endswith((".weight", ".bias"))
        }
    )
    return module


def random_mask(rng: np.random.Generator, *shape: int, empty_rows: int = 0) -> np.ndarray:
    """A mask in which each row has a True and a False, but for `empty_rows` rows of False alone."""
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    mask = rng.permuted(mask, axis=-1)
    if empty_rows:
        mask[..., rng.permutation(shape[-2])[:empty_rows], :] = False
    return mask


def scalar_qkv(rng: np.random.Generator, *leading: int, n: int = 5, m: int = 7) -> list[np.ndarray]:
    """Q, K and V of width 1: dividing by the root of a width does nothing, so they do not test the scale."""
    return [rng.normal(size=(*leading, tokens, 1)) for tokens in (n, m, m)]


def wide_qkv(rng: np.random.Generator, *leading: int) -> list[np.ndarray]:
    """Q, K and V of ordinary size and with d_k = 24, so that only the right scale gives the right weights."""
    return [rng.normal(size=(*leading, *size)) for size in ((5, 24), (7, 24), (7, 6))]


def low_qkv(rng: np.random.Generator) -> list[np.ndarray]:
    """Q, K and V of width 1; the scores of two queries are about -20,000, those of a row close to each other."""
    Q = np.array([[-200.0], [1.0], [-200.0], [-1.0], [50.0]])
    return [Q, 100.0 + rng.normal(size=(7, 1)) / 100.0, rng.normal(size=(7, 1))]


def high_qkv(rng: np.random.Generator) -> list[np.ndarray]:
    """Q, K and V of width 1; scores are in the thousands, of either sign, those of a row close to each other."""
    Q = np.array([[100.0], [-100.0], [0.0], [100.0], [-1.0]])
    return [Q, 30.0 + rng.normal(size=(7, 1)) / 100.0, rng.normal(size=(7, 1))]


def decided_qkv(
    rng: np.random.Generator, *leading: int, n: int = 5, m: int = 7, d_k: int = 4, d_v: int = 6
) -> list[np.ndarray]:
    """Q, K and V in which each query asks for one kind of key: 0 for it, far below 0 for others, on any scale."""
    of_key = rng.permuted(np.broadcast_to(np.arange(m) % d_k, (*leading, m)), axis=-1)  # (..., m)
    asked = rng.integers(d_k, size=(*leading, n))  # (..., n)
    one_hot = np.eye(d_k)
    return [300.0 * (one_hot[asked] - 1.0), one_hot[of_key], rng.normal(size=(*leading, m, d_v))]


def undecided_qkv(
    rng: np.random.Generator, *leading: int, n: int = 5, m: int = 7, d_v: int = 6
) -> list[np.ndarray]:
    """Q, K and V with which all scores are 0, so that only a mask tells the keys apart."""
    K, V = rng.normal(size=(*leading, m, 1)), rng.normal(size=(*leading, m, d_v))
    return [np.zeros((*leading, n, 1)), K, V]


def random_layer(rng: np.random.Generator, batch: int, n: int, num_heads: int, d_k: int) -> tuple[Any, ...]:
    """Tokens, W_Q, W_K, W_V, W_O and the number of heads: queries, keys and outputs of ordinary size."""
    d_model = num_heads * d_k
    X, weights = rng.normal(size=(batch, n, d_model)), rng.normal(size=(4, d_model, d_model))
    return X, *(weights / np.sqrt(d_model)), num_heads


def decided_layer(
    rng: np.random.Generator,
    batch: int,
    n: int,
    num_heads: int,
    d_k: int,
    *,
    num_kv_heads: int | None = None,
    d_model: int | None = None,
    apart: float = 28.0,
) -> tuple[Any, ...]:
    """Tokens, W_Q, W_K, W_V, W_O and the number of heads; each query asks for one kind of key, on any scale.

    The first three features of a token tell its kind, of which there are three. In each head it looks for tokens
    of the next kind, or of the one before: their scores are 0, and the others are so much lower that they get no
    weight, whichever scale somebody takes for the right one. With n a multiple of 3, a softmax over queries would
    go unnoticed.

    Args:
        rng: draws all of it.
        batch, n: number of sequences and of tokens.
        num_heads, d_k: number and width of the query heads, which are 3 or more wide.
        num_kv_heads: number of heads of keys and values. None: `num_heads`.
        d_model: number of features. None: as wide as the heads together.
        apart: how much lower the other scores are on the right scale. Up to 30 suit masks that act after the
            exponential.
    """
    kv_heads, width = num_kv_heads or num_heads, num_heads * d_k
    d_model, kinds = d_model or width, np.eye(3)
    X = rng.normal(size=(batch, n, d_model))
    X[..., :3] = kinds[rng.permuted(np.broadcast_to(np.arange(n) % 3, (batch, n)), axis=-1)]
    W_Q, W_K = np.zeros((d_model, width)), np.zeros((d_model, kv_heads * d_k))
    for i in range(num_heads):
        shift = (
            i // (num_heads // kv_heads) + (-1) ** i
        )  # its key head turns the kinds by the first of the two
        W_Q[:3, i * d_k : i * d_k + 3] = apart * np.sqrt(d_k) * (np.roll(kinds, shift, axis=1) - 1.0)
    for j in range(kv_heads):
        W_K[:3, j * d_k : j * d_k + 3] = np.roll(kinds, j, axis=1)
    W_V = rng.normal(size=(d_model, kv_heads * d_k)) / np.sqrt(d_model)
    W_O = rng.normal(size=(width, d_model)) / np.sqrt(width)
    return X, W_Q, W_K, W_V, W_O, num_heads


def heads_alone(layer: tuple[Any, ...]) -> tuple[Any, ...]:
    """A layer whose W_O passes the heads on as they are, since W_O has a part of its own."""
    X, W_Q, W_K, W_V, W_O, num_heads = layer
    return X, W_Q, W_K, W_V, np.eye(*W_O.shape), num_heads


def stored_layer(
    rng: np.random.Generator, batch: int, n: int, num_heads: int, d_k: int, *, biased: Sequence[str] = ()
) -> tuple[Any, ...]:
    """A decided layer as PyTorch stores it: tokens, weights `(out, in)` with biases, the number of heads.

    The biases of those of `query`, `key`, `value` and `dense` that are `biased` are random, the others 0.
    """
    X, W_Q, W_K, W_V, W_O, num_heads = decided_layer(rng, batch, n, num_heads, d_k)
    weights = {"query": W_Q.T, "key": W_K.T, "value": W_V.T, "dense": W_O.T}
    biases = {name: rng.normal(size=len(W)) * (name in biased) for name, W in weights.items()}
    return X, {name: {"weight": W, "bias": biases[name]} for name, W in weights.items()}, num_heads


def stored_text(width: int, weight: str = "", bias: str = "") -> str:
    """The text of a stored layer's weights, for examples: `query`, `key`, `value` and `dense` are all alike.

    Args:
        width: d_model.
        weight: the text of an array. Empty: it passes everything on.
        bias: the text of an array. Empty: zeros.
    """
    weight, bias = weight or f"np.eye({width})", bias or f"np.zeros({width})"
    return f"dict.fromkeys(['query', 'key', 'value', 'dense'], {{'weight': {weight}, 'bias': {bias}}})"


def undecided_layer(
    rng: np.random.Generator, batch: int, n: int, num_heads: int, d_k: int
) -> tuple[Any, ...]:
    """Tokens, W_Q, W_K, W_V, W_O and the number of heads: all scores are 0, and nothing is projected."""
    d_model = num_heads * d_k
    zeros, ones = np.zeros((d_model, d_model)), np.eye(d_model)
    return rng.normal(size=(batch, n, d_model)), zeros, zeros, ones, ones, num_heads


def tensor(array: Any) -> Any:
    """The array as a tensor; floats become float32."""
    import torch

    made = torch.from_numpy(np.ascontiguousarray(array))
    return made.float() if made.is_floating_point() else made


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> Any:
    """A tensor as an array (bfloat16 widened), everything else as it is."""
    if not is_tensor(value):
        return value
    value = value.detach().cpu()
    return (value.double() if value.is_floating_point() else value).numpy()


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
    raise Mismatch(f"it should raise {wanted}, but it raised none")


def _describe(value: Any) -> str:
    """The kind of a value in words, without the value."""
    if value is None:
        return "None (is a return missing?)"
    if isinstance(value, np.ndarray) or is_tensor(value):
        kind = "an array" if isinstance(value, np.ndarray) else "a tensor"
        return f"{kind} of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Opaque):
        return f"of type {value.type_name}, which is not data"
    return f"of type {type(value).__name__}"
