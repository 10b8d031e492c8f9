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
import math


def numbers(*shape, start):
    """Numbers that are the same for everyone."""
    return (1.7 * torch.arange(float(math.prod(shape))) + start).sin().view(shape)


latent_layer = [  # x and W_Q, W_DKV, W_UK, W_UV, W_O: d_model = 6, two heads, d_k = 4, d_v = 2, d_c = 3
    numbers(*shape, start=start)
    for start, shape in enumerate([(1, 3, 6), (6, 8), (6, 3), (3, 8), (3, 4), (4, 6)])
]
latent_output = torch.tensor([-1.8047, -0.8404, 2.0212, 0.3195, -2.1036, 0.2226])  # of the first token


@one_line
def check_rotary(rotary):
    __tracebackhide__ = True
    x = torch.tensor([[[[1.0, 1.0, 0.0, 0.0]]]])  # (batch, heads, n, d_k) = (1, 1, 1, 4)
    check_close(
        "the worked example",
        rotary(x, torch.tensor([10]), base=100.0),
        torch.tensor([[[[-0.8391, 0.5403, -0.5440, 0.8415]]]]),
        tolerance=1e-3,
        mistakes={
            "neighbouring features are paired, but feature 0 belongs with feature 2": [
                [[[-0.2950, -1.3831, 0.0, 0.0]]]
            ],
            "the pairs are rotated the other way": [[[[-0.8391, 0.5403, 0.5440, -0.8415]]]],
            "all pairs are rotated by the same angle": [[[[-0.8391, -0.8391, -0.5440, -0.5440]]]],
            "cosine and sine are exchanged": [[[[-0.5440, 0.8415, -0.8391, 0.5403]]]],
            "the exponent should be −2i/d_k; this is −i/d_k": [[[[-0.8391, -0.9998, -0.5440, -0.0206]]]],
        },
    )
    x = torch.arange(24.0).view(1, 2, 3, 4).sin()  # (batch, heads, n, d_k)
    check_unchanged("rotary leaves its arguments alone", rotary, x, torch.tensor([0, 1, 2]))
    check_close("a token at position 0 stays as it is", rotary(x, torch.tensor([0, 1, 2]))[:, :, 0], x[:, :, 0])
    check_close(
        "the last tokens of a longer sequence",
        rotary(x, torch.tensor([7, 8, 9]))[0, 0, 2],
        torch.tensor([-0.6772, 0.5003, 0.9034, -0.9589]),
        tolerance=1e-3,
        mistakes={
            "the tokens were counted from 0; the angles should use positions": [0.0830, 0.4320, 1.1260, -0.9915],
        },
    )
    both = rotary(
        x.expand(2, 2, 3, 4), torch.tensor([[0, 1, 2], [7, 8, 9]])
    )  # each sequence has its own positions
    check_close("positions of each sequence", both[1], rotary(x, torch.tensor([7, 8, 9]))[0])
    check_raises(
        "an odd width is refused",
        rotary,
        torch.ones(1, 1, 2, 5),
        torch.arange(2),
        error=ValueError,
        mentions=(5,),
    )


@one_line
def check_sliding_window_mask(sliding_window_mask):
    __tracebackhide__ = True
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    check_equal(
        "a window of one",
        sliding_window_mask(4, 4, window=1),
        torch.eye(4, dtype=torch.bool),
        mistakes={
            "the window holds one key too many: the query's own key counts": causal.triu(-1),
            "no key on the left is hidden: this is the causal mask": causal,
        },
    )
    check_equal(
        "a window of two",
        sliding_window_mask(3, 4, window=2),
        torch.tensor([[True, True, False, False], [False, True, True, False], [False, False, True, True]]),
        mistakes={
            "the left edge is lined up with the first key: it lacks m − n": [
                [True, True, False, False],
                [True, True, True, False],
                [False, True, True, True],
            ],
            "the first query is lined up with the first key": [
                [True, False, False, False],
                [True, True, False, False],
                [False, True, True, False],
            ],
            "no key on the left is hidden: this is the causal mask": [
                [True, True, False, False],
                [True, True, True, False],
                [True, True, True, True],
            ],
        },
    )
    check_equal(
        "a window that holds everything",
        sliding_window_mask(5, 5, window=9),
        torch.ones(5, 5, dtype=torch.bool).tril(),
    )
    check_raises("a window of size 0 is refused", sliding_window_mask, 3, 4, 0, error=ValueError, mentions=(0,))


@one_line
def check_latent_attention(latent_attention):
    __tracebackhide__ = True
    x = torch.tensor([[[2.0, 0.0], [4.0, 0.0]]])  # (batch, n, d_model) = (1, 2, 2)
    W_Q, W_DKV = torch.zeros(2, 2), torch.tensor([[1.0], [0.0]])  # (d_model, heads * d_k), (d_model, d_c)
    W_UK, W_UV, W_O = torch.ones(1, 2), torch.tensor([[1.0, 10.0]]), torch.eye(2)
    means = torch.tensor([[[3.0, 30.0], [3.0, 30.0]]])
    check_close(
        "the worked example",
        latent_attention(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads=2),
        means,
        mistakes={"the values were made with W_UK, like the keys; use W_UV": [[[3.0, 3.0], [3.0, 3.0]]]},
    )

    check_close(
        "output with widths that all differ",
        latent_attention(*latent_layer, num_heads=2)[0, 0],
        latent_output,
        tolerance=1e-3,
    )
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    check_close(
        "under a causal mask the first token stands alone",
        latent_attention(*latent_layer, 2, causal)[:, :1],
        latent_attention(latent_layer[0][:, :1], *latent_layer[1:], 2),
    )
    check_unchanged("latent_attention leaves its arguments alone", latent_attention, *latent_layer, 2, causal)


@one_line
def check_latent_attention_absorbed(latent_attention_absorbed):
    __tracebackhide__ = True
    check_close(
        "the worked example of item 3",
        latent_attention_absorbed(
            torch.tensor([[[2.0, 0.0], [4.0, 0.0]]]),
            torch.zeros(2, 2),
            torch.tensor([[1.0], [0.0]]),
            torch.ones(1, 2),
            torch.tensor([[1.0, 10.0]]),
            torch.eye(2),
            num_heads=2,
        ),
        torch.tensor([[[3.0, 30.0], [3.0, 30.0]]]),
    )
    check_close(
        "output with widths that all differ",
        latent_attention_absorbed(*latent_layer, num_heads=2)[0, 0],
        latent_output,
        tolerance=1e-3,
    )
    large = torch.tensor([[[3.0, 1e9], [3.0, -1e9]]])  # (batch, n, d_model) = (1, 2, 2)
    check_close(
        "where a value would overflow",
        latent_attention_absorbed(
            large,
            torch.zeros(2, 1),
            torch.eye(2),
            torch.tensor([[1.0], [0.0]]),
            torch.tensor([[1.0], [1e30]]),
            torch.ones(1, 2),
            num_heads=1,
        ),
        torch.full((1, 2, 2), 3.0),
    )
    check_close(
        "where a key would overflow",
        latent_attention_absorbed(
            large,
            torch.zeros(2, 1),
            torch.eye(2),
            torch.tensor([[0.0], [1e30]]),
            torch.tensor([[1.0], [0.0]]),
            torch.ones(1, 2),
            num_heads=1,
        ),
        torch.full((1, 2, 2), 3.0),
    )


@one_line
def check_qk_norm_attention(qk_norm_attention):
    __tracebackhide__ = True
    q = torch.tensor([[[[5.0, 0.0]]]])  # (batch, heads, n, d_k) = (1, 1, 1, 2)
    k = torch.tensor([[[[7.0, 0.0], [0.0, 9.0]]]])  # (batch, heads, m, d_k) = (1, 1, 2, 2)
    v = torch.tensor([[[[4.0], [0.0]]]])  # (batch, heads, m, d_v)
    g = torch.tensor([[[3.0]]]).log()  # (heads, 1, 1)
    check_close(
        "the worked example",
        qk_norm_attention(q, k, v, g),
        torch.tensor([[[[3.0]]]]),
        mistakes={
            "the scores are still divided by √d_k": [[[[2.7398]]]],
            "g is missing: the scores are the cosines": [[[[2.9242]]]],
            "the queries are not divided by their length": [[[[3.9836]]]],
            "the keys are not divided by their length": [[[[3.9982]]]],
        },
    )
    check_close(
        "longer queries and keys change nothing",
        qk_norm_attention(10 * q, 3 * k, v, g),
        torch.tensor([[[[3.0]]]]),
    )
    check_close(
        "a query of zeros sees all keys alike", qk_norm_attention(0 * q, k, v, g), torch.tensor([[[[2.0]]]])
    )
    two_heads = [tensor.expand(1, 2, *tensor.shape[2:]) for tensor in (q, k, v)]
    check_close(
        "each head has a g of its own",
        qk_norm_attention(*two_heads, torch.tensor([[[3.0]], [[1.0]]]).log()),
        torch.tensor([[[[3.0]], [[2.0]]]]),
    )
    check_close(
        "under a mask", qk_norm_attention(q, k, v, g, torch.tensor([[False, True]])), torch.tensor([[[[0.0]]]])
    )
    check_unchanged("qk_norm_attention leaves its arguments alone", qk_norm_attention, q, k, v, g)


@one_line
def check_answers(answers):
    __tracebackhide__ = True
    check_kinds(
        answers,
        {
            "without_positions": "abc",
            "shifted": "abc",
            "wrong_pairs": "abc",
            "window_reach": "number",
            "numbers_kept": "number",
            "numbers_kept_latent": "number",
            "absorbed_scale": "number",
            "largest_score": "number",
            "off_by_one": "number",
        },
    )
