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
from torch import nn


VIEWED_AT_FIRST = (
    "view went straight to (b, h, n, d_k) and mixed up tokens: view as (b, n, h, d_k) first, then transpose"
)
VIEWED_AT_LAST = (
    "the heads were joined without transposing back to (b, n, h, d_k) first, which mixes up tokens"
)
VIEWED_AT_ONCE = f"{VIEWED_AT_FIRST}; do the reverse at the end"


@one_line
def check_attention(attention):
    __tracebackhide__ = True
    Q = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])  # (n, d_k) = (2, 4)
    K = torch.tensor(
        [[1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0]]
    ).log()  # (m, d_k) = (3, 4)
    V = torch.tensor([[4.0, 0.0], [0.0, 8.0], [2.0, 2.0]])  # (m, d_v) = (3, 2)
    output, weights = attention(Q, K, V)
    check_close(
        "weights",
        weights,
        torch.tensor([[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]]),
        mistakes={
            "the scores were not divided by √d_k": [[0.1667, 0.1667, 0.6667], [0.8182, 0.0909, 0.0909]],
            "the scores were divided by d_k, not by its square root": [
                [0.2929, 0.2929, 0.4142],
                [0.4641, 0.2679, 0.2679],
            ],
        },
    )
    check_close("output", output, torch.tensor([[2.0, 3.0], [2.8, 2.0]]))

    batch = [tensor.expand(5, 2, *tensor.shape) for tensor in (Q, K, V)]  # (batch, heads, …)
    check_close(
        "output with leading axes",
        attention(*batch)[0],
        torch.tensor([[2.0, 3.0], [2.8, 2.0]]).expand(5, 2, 2, 2),
    )

    mask = torch.tensor([[True, True, False], [False, True, True]])  # (n, m)
    check_close(
        "weights under a mask",
        attention(Q, K, V, mask)[1],
        torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]),
        mistakes={
            "the mask is the wrong way round: True means that the query may attend": [
                [0.0, 0.0, 1.0],
                [1.0, 0.0, 0.0],
            ],
            "the mask has no effect: masked_fill returns a new tensor": [[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]],
            "the mask came after the softmax, so the weights no longer sum to 1": [
                [0.25, 0.25, 0.0],
                [0.0, 0.2, 0.2],
            ],
        },
    )

    mask = torch.tensor([[True, True, False], [False, False, False]])  # the second query has no key
    inputs = [tensor.clone().requires_grad_() for tensor in (Q, K, V)]
    output, weights = attention(*inputs, mask)
    check_close(
        "weights of a query without keys",
        weights,
        torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]),
        mistakes={
            "the query attends equally to all keys; it should attend to none": [
                [0.5, 0.5, 0],
                [1 / 3, 1 / 3, 1 / 3],
            ]
        },
    )
    check_close("output of a query without keys", output, torch.tensor([[2.0, 4.0], [0.0, 0.0]]))
    (output.sum() + (weights**2).sum()).backward()
    infinite = sum(not tensor.grad.isfinite().all() for tensor in inputs)
    check_equal("gradients of Q, K and V with inf or NaN in them", torch.tensor(infinite), torch.tensor(0))

    halves = [tensor.to(torch.float16) for tensor in (Q, K, V)]
    check_close(
        "output in float16",
        attention(*halves, mask)[0],
        torch.tensor([[2.0, 4.0], [0.0, 0.0]], dtype=torch.float16),
        tolerance=5e-3,
    )
    check_unchanged("attention leaves its arguments alone", attention, Q, K, V, mask)


@one_line
def check_MultiHeadAttention(MultiHeadAttention):
    __tracebackhide__ = True
    worked = {f"{name}.weight": torch.eye(4) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
    worked |= {f"{name}.bias": torch.zeros(4) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
    worked |= {"q_proj.weight": torch.zeros(4, 4), "q_proj.bias": torch.tensor([2.0, 0.0, 0.0, 2.0]).sqrt()}
    layer = loaded(MultiHeadAttention(d_model=4, num_heads=2), worked)
    x = torch.tensor([[[1.0, 4.0, 8.0, 1.0], [3.0, 8.0, 0.0, 1.0]]])  # (batch, n, d_model) = (1, 2, 4)
    x[..., [0, 3]] = x[..., [0, 3]].log()
    check_close(
        "output of the worked example",
        layer(x),
        torch.tensor([[[0.8240, 7.0, 4.0, 0.0]] * 2]),
        tolerance=1e-3,
        mistakes={
            "the scores were not divided by √d_k": [[[0.9068, 7.3018, 4.0, 0.0]] * 2],
            "the scores were divided by the root of d_model; it should be that of d_k": [
                [[0.7516, 6.7365, 4.0, 0.0]] * 2
            ],
            "the features were cut into heads without exchanging the axes of tokens and heads": [
                [[0.0, 8.0, 0.8240, 7.0]] * 2,
            ],
            VIEWED_AT_ONCE: [[[7.9973, 0.0013, 0.1439, 3.9281], [0.8240, 6.0, 1.0982, 7.9973]]],
            VIEWED_AT_FIRST: [[[7.9973, 0.0013, 0.8240, 6.0], [0.1439, 3.9281, 1.0982, 7.9973]]],
            VIEWED_AT_LAST: [[[0.8240, 7.0, 0.8240, 7.0], [4.0, 0.0, 4.0, 0.0]]],
        },
    )
    mask = torch.tensor([[True, False], [False, False]])  # (n, n): the second token has no key
    check_close(
        "output under a mask", layer(x, mask), torch.tensor([[[0.0, 4.0, 8.0, 0.0], [0.0, 0.0, 0.0, 0.0]]])
    )

    layer = filled(MultiHeadAttention(6, 3, dropout=1.0))  # with numbers that are the same for everyone
    x = torch.arange(30.0).view(1, 5, 6).sin()  # (batch, n, d_model)
    layer.eval()
    check_close(
        "output with other numbers, in eval mode",
        layer(x)[0, :2],
        torch.tensor(
            [
                [-1.2601, -1.1621, 1.0712, 1.4572, -0.7545, -1.6328],
                [-1.2329, -1.2138, 1.0385, 1.5054, -0.7165, -1.6769],
            ]
        ),
        tolerance=1e-3,
    )
    layer.train()
    check_close(
        "in training, with all weights dropped",
        layer(x),
        layer.out_proj.bias.detach().expand(1, 5, 6),
        mistakes={"dropout came after the output projection, whose bias is lost": torch.zeros(1, 5, 6)},
    )
    check_unchanged("the layer leaves its input alone", layer, x)


@one_line
def check_CausalSelfAttention(CausalSelfAttention):
    __tracebackhide__ = True
    layer = loaded(
        CausalSelfAttention(d_model=1, num_heads=1, max_len=4),
        {
            "qkv_proj.weight": torch.tensor([[0.0], [0.0], [1.0]]),
            "qkv_proj.bias": torch.tensor([1.0, 0.0, 0.0]),
            "out_proj.weight": torch.ones(1, 1),
            "out_proj.bias": torch.zeros(1),
        },
    )
    x = torch.tensor([[[2.0], [4.0], [9.0]]])  # (batch, n, d_model) = (1, 3, 1)
    check_close(
        "output of the worked example",
        layer(x),
        torch.tensor([[[2.0], [3.0], [5.0]]]),
        mistakes={
            "every token sees all tokens": [[[5.0], [5.0], [5.0]]],
            "a token sees what comes after it, not what came before": [[[5.0], [6.5], [9.0]]],
            "a token does not see itself": [[[0.0], [2.0], [3.0]]],
            "a token sees the next one as well": [[[3.0], [5.0], [5.0]]],
        },
    )

    layer = filled(CausalSelfAttention(6, 3, max_len=5))  # with numbers that are the same for everyone
    x = torch.arange(30.0).view(1, 5, 6).sin()  # (batch, n, d_model)
    last = torch.tensor([-3.2216, 0.5724, 3.2200, -0.0455, -3.0654, -0.3795])
    check_close(
        "output for the last of five tokens",
        layer(x)[0, 4],
        last,
        tolerance=1e-3,
        mistakes={
            VIEWED_AT_ONCE: [1.5316, 0.1095, -1.5833, -0.1008, 1.7319, 0.1935],
            VIEWED_AT_FIRST: [-0.4749, 0.9519, 0.5142, -0.7169, -0.4321, 0.5761],
            VIEWED_AT_LAST: [-1.0965, 0.1839, 1.0529, 0.1092, -0.8816, -0.2986],
        },
    )
    check_close("the first two tokens do not depend on the others", layer(x[:, :2]), layer(x)[:, :2])
    check_close("the same in float64", layer.double()(x.double())[0, 4], last.double(), tolerance=1e-3)


@one_line
def check_from_builtin(from_builtin):
    __tracebackhide__ = True
    builtin = filled(nn.MultiheadAttention(6, 3, dropout=0.25, batch_first=True)).double().eval()
    layer = from_builtin(builtin)
    for number, name in enumerate(("q_proj", "k_proj", "v_proj")):
        check_close(
            f"{name}.weight",
            getattr(layer, name).weight,
            builtin.in_proj_weight[6 * number : 6 * number + 6].detach(),
        )
    x = torch.arange(30.0).view(1, 5, 6).sin().double()  # (batch, n, d_model)
    check_close("output", layer(x), builtin(x, x, x)[0].detach())
    check_equal(
        "the mode is kept",
        torch.tensor(int(layer.training)),
        torch.tensor(0),
        mistakes={"the new layer is in training mode (1); the built-in one is in eval mode (0)": 1},
    )

    builtin = filled(nn.MultiheadAttention(6, 3, bias=False))  # takes (n, batch, d_model)
    x = torch.arange(30.0).view(1, 5, 6).sin()  # (batch, n, d_model)
    expected = builtin(*[x.transpose(0, 1)] * 3)[0].transpose(0, 1).detach()
    check_close(
        "output, from a layer without biases that takes (n, batch, d_model)", from_builtin(builtin)(x), expected
    )


@one_line
def check_sdpa_attention(sdpa_attention):
    __tracebackhide__ = True
    Q = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])  # (n, d_k) = (2, 4)
    K = torch.tensor(
        [[1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0]]
    ).log()  # (m, d_k) = (3, 4)
    V = torch.tensor([[4.0, 0.0], [0.0, 8.0], [2.0, 2.0]])  # (m, d_v) = (3, 2)
    check_close(
        "output",
        sdpa_attention(Q, K, V),
        torch.tensor([[2.0, 3.0], [2.8, 2.0]]),
        mistakes={
            "the scores are scaled twice: the kernel scales them itself": [[2.0, 3.1716], [2.3923, 2.6795]]
        },
    )
    mask = torch.tensor([[True, True, False], [False, True, True]])  # (n, m)
    check_close(
        "output under a mask",
        sdpa_attention(Q, K, V, mask),
        torch.tensor([[2.0, 4.0], [1.0, 5.0]]),
        mistakes={
            "the mask is the wrong way round": [[2.0, 2.0], [4.0, 0.0]],
            "the mask has no effect": [[2.0, 3.0], [2.8, 2.0]],
        },
    )
    mask = torch.tensor([[True, True, False], [False, False, False]])  # the second query has no key
    check_close(
        "output of a query without keys", sdpa_attention(Q, K, V, mask), torch.tensor([[2.0, 4.0], [0.0, 0.0]])
    )
