"""Checks for the cells of this notebook: they say what was expected, what your code gave, and what may be wrong.

This file belongs beside the notebook. You need not read or change it, and you do not hand it in.
"""

import copy
import functools
import inspect
import sys

import numpy as np


class CheckFailed(AssertionError):  # noqa: N818
    """A check that is not met. Jupyter shows only its sentences: the first says what is wrong, the others give
    details."""

    def _render_traceback_(self):
        return str(self).splitlines()


_passed = []  # what the check that runs has found right


def one_line(function):
    """Make one check of several: it reports on all of them in one line, or on each with details=True."""
    name = function.__name__
    call = f"{name}({', '.join(inspect.signature(function).parameters)}, details=True)"

    @functools.wraps(function)
    def check(*pieces, details=False):
        __tracebackhide__ = True
        _passed.clear()
        try:
            function(*pieces)
        except CheckFailed as failure:
            if details:
                raise CheckFailed("\n".join([*map("ok   {}".format, _passed), str(failure)])) from None
            raise CheckFailed(f"{str(failure).splitlines()[0]}\n  To see more, run {call}") from None
        if details:
            print(*map("ok   {}".format, _passed), sep="\n")
        elif _passed:
            print(f"ok   {name.partition('_')[2]} ({len(_passed)} check{'s' * (len(_passed) > 1)})")

    return check


def check_close(what, got, expected, tolerance=1e-5, mistakes=None):
    """Pass if `got` has the shape and, up to `tolerance`, the numbers of `expected`; else say why not.

    Args:
        what: what is checked, in words.
        got: your result.
        expected: the right result. If it is a tensor, yours must be one, of the same dtype.
        tolerance: how far a number may be off.
        mistakes: what other results would mean: a dict from words to the wrong result.

    Raises:
        CheckFailed: if it is not right.
    """
    __tracebackhide__ = True
    got, expected = _arrays(what, got, expected)
    _check(what, got, np.asarray(expected, dtype=float), tolerance, mistakes or {})


def check_equal(what, got, expected, mistakes=None):
    """Pass if `got` has the shape, the kind and the entries of `expected`; else say why not.

    Use it for masks and whole numbers. The arguments are those of `check_close`.

    Raises:
        CheckFailed: if it is not right.
    """
    __tracebackhide__ = True
    got, expected = _arrays(what, got, expected)
    _check(what, got, np.asarray(expected), 0, mistakes or {})


def check_number(what, got, expected, mistakes=None):
    """Pass if `got` is the whole number `expected`; else say why not.

    Args:
        what: what is checked, in words.
        got: your result.
        expected: the right result.
        mistakes: what other results would mean: a dict from words to the wrong number.

    Raises:
        CheckFailed: if it is not right.
    """
    __tracebackhide__ = True
    if not _is_number(got):
        raise CheckFailed(f"{what}: expected the number {expected}, got {_describe(got)}")
    if isinstance(got, int | np.integer) and got == expected:
        _passed.append(what)
        return
    lines = [f"maybe: {words}" for words, wrong in (mistakes or {}).items() if got == wrong]
    if got == expected:
        lines.append("the value is right, but it should be a whole number (an int), not a float")
    raise CheckFailed("\n  ".join([f"{what}: expected {expected}, got {got}", *lines]))


def check_raises(what, function, *arguments, error=Exception, mentions=()):
    """Pass if calling the function with these arguments raises the error; else say what happened.

    Args:
        what: what is checked, in words.
        function: your function.
        arguments: what it is called with.
        error: the class of the error.
        mentions: what the error's text should contain.

    Raises:
        CheckFailed: if it returns, raises another error, or the text lacks something.
    """
    __tracebackhide__ = True
    try:
        got = function(*arguments)
    except error as caught:
        missing = [str(word) for word in mentions if str(word) not in str(caught)]
        if missing:
            raise CheckFailed(
                f"{what}: the error's text should mention {' and '.join(missing)}\n  it is: {caught}"
            ) from None
        _passed.append(what)
        return
    except Exception as caught:
        raise CheckFailed(
            f"{what}: expected {error.__name__}, but {type(caught).__name__} was raised: {caught}"
        ) from None
    shown = "\n  ".join(_show(got)).strip() if isinstance(got, np.ndarray) else repr(got)
    raise CheckFailed(f"{what}: expected an error, but no error was raised\n  it returned: {shown}")


def check_unchanged(what, function, *arguments):
    """Pass if calling the function leaves its arguments as they were.

    Raises:
        CheckFailed: if it changes one in place.
    """
    __tracebackhide__ = True
    copies = copy.deepcopy(arguments)
    function(*copies)
    for number, (after, before) in enumerate(zip(copies, arguments, strict=True), start=1):
        if not np.array_equal(after, before):
            raise CheckFailed(
                f"{what}: argument {number} was changed in place\n"
                "  Operations such as x -= … write into the caller's array; make a new one: x = x - …"
            )
    _passed.append(what)


def filled(module):
    """Put numbers into a module's weights and biases that are the same for everyone, and return the module."""
    import torch

    with torch.no_grad():
        for name, parameter in module.named_parameters():
            k = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_((0.5 * torch.sin(1.3 * k + sum(map(ord, name)))).view(parameter.shape))
    return module


def loaded(module, values):
    """Put these numbers into a module's weights and biases, by their names, and return the module.

    Args:
        module: your module.
        values: a dict from names such as `q_proj.weight` to tensors. Other names in the module are left alone.

    Raises:
        CheckFailed: if the module lacks one of the names, or has another shape there.
    """
    __tracebackhide__ = True
    own = module.state_dict()
    missing = [name for name in values if name not in own]
    if missing:
        has = ", ".join(own) or "none"
        raise CheckFailed(f"the module has no {', '.join(missing)}\n  it has: {has}")
    for name, value in values.items():
        if own[name].shape != value.shape:
            wanted, found = tuple(value.shape), tuple(own[name].shape)
            raise CheckFailed(f"{name} should have shape {wanted}, but it has shape {found}")
    module.load_state_dict(values, strict=False)
    return module


def check_kinds(answers, kinds):
    """Print your answers, and check that each is of the right kind, not that it is right.

    Args:
        answers: a dict of your answers.
        kinds: a dict from the name of each question to "number" or to the letters to choose from; capitals and
            spaces do not matter, as in grading.

    Raises:
        CheckFailed: if an answer is of another kind.
    """
    __tracebackhide__ = True
    if not isinstance(answers, dict):
        raise CheckFailed(f"answers should be a dict, but it is a {type(answers).__name__}")
    problems = [f"answers[{name!r}]: there is no such question" for name in answers if name not in kinds]
    for name, kind in kinds.items():
        answer = answers.get(name)
        if answer is None:
            print(f"todo {name}: no answer yet")
        elif kind == "number" and _is_number(answer):
            print(f"have {name}: {_plain(answer)}, a number")
        elif kind != "number" and isinstance(answer, str) and answer.strip().lower() in tuple(kind):
            print(f"have {name}: {answer!r}, a choice")
        else:
            wanted = "a number, such as 0.5" if kind == "number" else f"one of {_choices(kind)}"
            problems.append(f"answers[{name!r}] is {answer!r}, but it should be {wanted}")
    if problems:
        raise CheckFailed("\n  ".join(problems))


def _arrays(what, got, expected):
    """Tensors as arrays; anything else as it is."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(expected, torch.Tensor):
        return got, expected
    shape, dtype = tuple(expected.shape), expected.dtype
    if not isinstance(got, torch.Tensor):
        raise CheckFailed(f"{what}: expected a tensor of shape {shape}, got {_describe(got)}")
    if got.dtype != dtype:
        raise CheckFailed(f"{what}: expected a tensor of dtype {dtype}, got one of dtype {got.dtype}")
    got, expected = got.detach(), expected.detach()
    if dtype.is_floating_point:
        got, expected = got.double(), expected.double()
    return got.numpy(), expected.numpy()


def _is_number(value):
    value = _plain(value)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(np.isfinite(value))


def _plain(value):
    """An array or a tensor without axes as the number in it; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def _choices(letters):
    return ", ".join(f'"{letter}"' for letter in letters)


def _check(what, got, expected, tolerance, mistakes):
    __tracebackhide__ = True
    if not isinstance(got, np.ndarray):
        raise CheckFailed(f"{what}: expected an array of shape {expected.shape}, got {_describe(got)}")
    if _same(got, expected, tolerance):
        _passed.append(what)
        return
    named = [
        f"maybe: {words}"
        for words, wrong in mistakes.items()
        if _same(got, np.asarray(wrong, expected.dtype), max(tolerance, 1e-3))
    ]
    first, *others = [*named, *_clues(got, expected, tolerance)]
    lines = [
        f"{what}: not as expected; {first}",
        f"expected, shape {expected.shape}, dtype {expected.dtype}:",
        *_show(expected),
        f"got, shape {got.shape}, dtype {got.dtype}:",
        *_show(got),
        *others,
    ]
    raise CheckFailed("\n  ".join(lines))


def _same(got, expected, tolerance):
    """Equal in shape, in kind (booleans are not numbers), and in every entry up to the tolerance."""
    if got.shape != expected.shape or not _comparable(got, expected):
        return False
    if expected.dtype == bool:
        return bool(np.array_equal(got, expected))
    return bool(np.all(np.abs(got.astype(float) - expected) <= tolerance))


def _comparable(got, expected):
    return (got.dtype == bool) == (expected.dtype == bool) and got.dtype.kind in "biuf"


def _show(array):
    text = np.array2string(array, precision=4, suppress_small=True, threshold=60)
    return [f"  {line}" for line in text.splitlines() if line.strip()]


def _describe(value):
    if value is None:
        return "None: is a return missing?"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"a {type(value).__name__}"


def _clues(got, expected, tolerance):
    """What can be said in words about a wrong array, from the array alone."""
    if got.shape != expected.shape:
        if got.ndim >= 2 and np.swapaxes(got, -1, -2).shape == expected.shape:
            return ["maybe: the last two axes are swapped"]
        if got.size == expected.size:
            return ["the number of entries is right, but the shape is not"]
        return ["the shape is not right"]
    if not _comparable(got, expected):
        return [f"the shape is right, but the dtype should be {expected.dtype}"]
    if expected.dtype == bool:
        clues = [_first_difference(got, expected, got != expected)]
        if np.array_equal(got, ~expected):
            clues.append(
                "maybe: True and False are the wrong way round; True means that the query may attend"
            )
        return clues
    got = got.astype(float)
    if not np.all(np.isfinite(got)):
        return ["maybe: an exponential overflowed, or a sum was 0; see where NaN or inf first comes up"]
    clues = [_first_difference(got, expected, np.abs(got - expected) > tolerance)]
    if got.size and np.all(expected != 0):
        factors = got / expected
        if np.ptp(factors) <= 1e-4 * abs(factors.flat[0]):
            clues.append(f"every entry is {factors.flat[0]:.4g} times what it should be")
    return clues + _sum_clues(got, expected)


def _first_difference(got, expected, wrong):
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    places = ", ".join(map(str, index))
    return f"first difference at [{places}]: expected {_number(expected[index])}, got {_number(got[index])}"


def _number(value):
    return str(value) if value.dtype == bool else f"{value:.6g}"


def _sum_clues(got, expected):
    """Weights should sum to 1 along some axis: tell if they do so along another one, or along none."""
    right = [axis for axis in range(expected.ndim) if np.allclose(expected.sum(axis), 1)]
    if not right or any(np.allclose(got.sum(axis), 1) for axis in right):
        return []
    for axis in range(got.ndim):
        if np.allclose(got.sum(axis), 1):
            return [f"it sums to 1 along axis {axis}, but it should do so along axis {right[-1]}"]
    if np.isclose(got.sum(), 1):
        return ["all entries together sum to 1, but each row should sum to 1 by itself"]
    sums = ", ".join(f"{number:.4g}" for number in got.sum(right[-1]).flat[:4])
    return [f"along axis {right[-1]} it should sum to 1, but it sums to {sums}"]


# The checks of this notebook's cells.
import torch


@one_line
def check_FeedForward(FeedForward):
    __tracebackhide__ = True
    ones = {"up.weight": torch.ones(1, 1), "down.weight": torch.ones(1, 1)}
    ones |= {"up.bias": torch.zeros(1), "down.bias": torch.zeros(1)}
    layer = loaded(FeedForward(d_model=1, d_ff=1), ones)
    x = torch.tensor([[[-1.0], [0.0], [1.0], [10.0]]])  # (batch, n, d_model) = (1, 4, 1)
    check_close(
        "output of the worked example",
        layer(x),
        torch.tensor([[[-0.158655], [0.0], [0.841345], [10.0]]]),
        mistakes={
            "this is the ReLU, which is 0 below 0": [[[0.0], [0.0], [1.0], [10.0]]],
            "there is no non-linearity between the layers": [[[-1.0], [0.0], [1.0], [10.0]]],
            "this is the approximation by tanh": [[[-0.158808], [0.0], [0.841192], [10.0]]],
            "this is the SiLU, x times the logistic function": [[[-0.268941], [0.0], [0.731059], [9.999546]]],
        },
    )
    layer = filled(FeedForward(3, 5))  # with numbers that are the same for everyone
    x = torch.arange(6.0).view(1, 2, 3).sin()  # (batch, n, d_model)
    right = torch.tensor([[[0.2567, -0.2743, -0.3561], [0.0551, -0.5413, -0.6760]]])
    check_close("output with other numbers", layer(x), right, tolerance=1e-3)
    check_unchanged("the layer leaves its input alone", layer, x)


@one_line
def check_TransformerBlock(TransformerBlock):
    __tracebackhide__ = True
    x = torch.tensor([[[2.0, 4.0]]])  # (batch, n, d_model) = (1, 1, 2)
    nothing = {f"{name}.weight": torch.zeros(2, 2) for name in ("attention.out_proj", "feed_forward.down")}
    nothing |= {f"{name}.bias": torch.zeros(2) for name in ("attention.out_proj", "feed_forward.down")}
    for norm_first, expected in ((True, [[[2.0, 4.0]]]), (False, [[[-1.0, 1.0]]])):
        block = loaded(TransformerBlock(2, 1, 2, norm_first=norm_first), nothing)
        check_close(
            f"a block that adds nothing, norm_first={norm_first}",
            block(x),
            torch.tensor(expected),
            tolerance=1e-4,
            mistakes={
                "the residual connection starts after the norm, or this is the other form": [[[-1.0, 1.0]]],
                "nothing is normalised, or this is the other form": [[[2.0, 4.0]]],
                "there is no residual connection": [[[0.0, 0.0]]],
            },
        )

    x = torch.arange(12.0).view(1, 3, 4).sin()  # (batch, n, d_model)
    pre_norm, post_norm = [1.2692, 0.2608, -0.9817, -1.4872], [-0.4186, 0.8263, 0.2906, -0.5923]
    for norm_first, expected in ((True, pre_norm), (False, post_norm)):
        block = filled(TransformerBlock(4, 2, 6, norm_first))  # with numbers that are the same for everyone
        check_close(
            f"last token of a block with other numbers, norm_first={norm_first}",
            block(x)[0, 2],
            torch.tensor(expected),
            tolerance=1e-3,
        )
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    check_close("under a causal mask the first token stands alone", block(x, causal)[:, :1], block(x[:, :1]))
    check_unchanged("the block leaves its input alone", block, x, causal)


@one_line
def check_answers(answers):
    __tracebackhide__ = True
    check_kinds(
        answers,
        {
            "pre_norm_of_nothing": "abc",
            "post_norm_of_nothing": "abc",
            "norms_on_the_path": "number",
            "size_with_depth": "abc",
            "mixing": "abc",
            "reach": "number",
            "reach_with_heads": "number",
            "parameters": "number",
        },
    )
