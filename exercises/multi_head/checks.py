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


@one_line
def check_head_dim(head_dim):
    __tracebackhide__ = True
    check_number(
        "512 features, 8 heads",
        head_dim(512, 8),
        64,
        mistakes={"that is the number of heads": 8, "that is the width of the whole layer": 512},
    )
    check_number("one head gets everything", head_dim(6, 1), 6)
    check_raises("7 features, 2 heads", head_dim, 7, 2, error=ValueError, mentions=(7, 2))
    check_raises("a negative width", head_dim, -8, 4, error=ValueError, mentions=(-8, 4))
    check_raises("no head", head_dim, 8, 0, error=ValueError, mentions=(8, 0))


@one_line
def check_split_heads(split_heads):
    __tracebackhide__ = True
    x = np.array([[[10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 23.0], [30.0, 31.0, 32.0, 33.0]]])  # (1, 3, 4)
    check_close(
        "two heads of three tokens",
        split_heads(x, 2),
        [[[[10, 11], [20, 21], [30, 31]], [[12, 13], [22, 23], [32, 33]]]],
        mistakes={
            "one reshape gives the shape, but head 0 holds all of token 0 and half of token 1": [
                [[[10, 11], [12, 13], [20, 21]], [[22, 23], [30, 31], [32, 33]]]
            ],
            "the heads alternate, feature by feature; each should have its own block": [
                [[[10, 12], [20, 22], [30, 32]], [[11, 13], [21, 23], [31, 33]]]
            ],
            "the axis of the heads comes after that of the tokens": [
                [[[10, 11], [12, 13]], [[20, 21], [22, 23]], [[30, 31], [32, 33]]]
            ],
            "the axis of the heads comes before that of the batch": [
                [[[10, 11], [20, 21], [30, 31]]],
                [[[12, 13], [22, 23], [32, 33]]],
            ],
        },
    )
    check_close("one head", split_heads(x, 1), x[:, None])
    check_raises("four features, three heads", split_heads, x, 3)
    check_unchanged("split_heads leaves its argument alone", lambda x: split_heads(x, 2), x)


@one_line
def check_combine_heads(combine_heads):
    __tracebackhide__ = True
    x = np.array([[[[10.0, 11.0], [20.0, 21.0], [30.0, 31.0]], [[12.0, 13.0], [22.0, 23.0], [32.0, 33.0]]]])
    check_close(
        "two heads of three tokens",
        combine_heads(x),
        [[[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]],
        mistakes={
            "one reshape gives the shape, but the first row holds two tokens of head 0": [
                [[10, 11, 20, 21], [30, 31, 12, 13], [22, 23, 32, 33]]
            ],
            "the heads alternate, feature by feature; each should have its own block": [
                [[10, 12, 11, 13], [20, 22, 21, 23], [30, 32, 31, 33]]
            ],
            "the heads were averaged; they should be concatenated": [[[11, 12], [21, 22], [31, 32]]],
            "the heads were added up; they should be concatenated": [[[22, 24], [42, 44], [62, 64]]],
        },
    )
    check_close(
        "two sequences, three heads of width 1",
        combine_heads(np.array([[[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]], np.ones((3, 2, 1))])),
        [[[1, 3, 5], [2, 4, 6]], [[1, 1, 1], [1, 1, 1]]],
    )
    check_unchanged("combine_heads leaves its argument alone", combine_heads, x)


@one_line
def check_multi_head_attention(multi_head_attention):
    __tracebackhide__ = True
    X = np.array([[[3.0, 0.0, 9.0, 0.0], [6.0, 3.0, 0.0, 9.0], [9.0, 0.0, 0.0, 9.0]]])  # (batch, n, d_model)
    W_Q = np.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    W_K = np.diag([0.0, 0.0, 1.0, 1.0])  # in head 1, token 0 looks for the tokens 1 and 2; the rest is undecided
    W_V = np.array([[1.0, 0, 0, 2], [0, 1, -2, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    W_O = np.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
    check_close(
        "two heads",
        multi_head_attention(X, W_Q, W_K, W_V, W_O, 2),
        [[[6, 7, 12, 15], [6, 7, 10, 12], [6, 7, 10, 12]]],
        mistakes={
            "the last projection, W_O, is missing": [[[6, 1, -3, 15], [6, 1, -2, 12], [6, 1, -2, 12]]],
            "W_O was transposed": [[[7, 1, -3, 12], [7, 1, -2, 10], [7, 1, -2, 10]]],
            "W_Q, W_K and W_V were transposed": [[[18, 13, 0, 0], [18, 13, 0, 0], [18, 13, 0, 0]]],
            "one reshape cut the features into heads, which mixes tokens": [
                [[3, 6, 11, 10], [3, 6, 11, 10], [3, 6, 11, 10]]
            ],
            "one reshape merged the heads, which mixes tokens": [
                [[6, 7, 7, 1], [6, 7, 12, 15], [-2, 10, 10, 12]]
            ],
            "the reshapes before and after undo each other, but in between tokens are mixed": [
                [[3, 6, 6, 3], [3, 6, 11, 10], [1, 11, 11, 10]]
            ],
            "a head saw only its own slice of the features of X; it should see all of them": [
                [[6, 7, 0, 0], [6, 7, 0, 0], [6, 7, 0, 0]]
            ],
            "W_Q and W_K have changed places": [[[6, 7, 10, 12], [6, 7, 6, 6], [6, 7, 6, 6]]],
            "there is only one head, with all features": [[[7.5, 9, 12, 15], [6, 7, 10, 12], [6, 7, 10, 12]]],
            "X was added; that comes later, in the block around this layer": [
                [[9, 7, 21, 15], [12, 10, 10, 21], [15, 7, 10, 21]]
            ],
        },
    )

    # Both tokens ask 2 of every key; the keys are log 3 and 0. So the scores are 2·log 3 / √4 = log 3 and 0, the
    # weights 3/4 and 1/4, and 3/4 · 4 + 1/4 · 8 = 5. Head 1 has scores of 0 and averages: (4 + 8) / 2 = 6.
    X = np.zeros((1, 2, 8))
    X[0, :, 0], X[0, 0, 1], X[0, :, 2] = 2.0, np.log(3.0), [4.0, 8.0]
    W_Q, W_K, W_V = np.zeros((3, 8, 8))
    W_Q[0, 0] = W_K[1, 0] = W_V[2, 0] = W_V[2, 4] = 1.0
    check_close(
        "the scale",
        multi_head_attention(X, W_Q, W_K, W_V, np.eye(8), 2),
        [[[5, 0, 0, 0, 6, 0, 0, 0], [5, 0, 0, 0, 6, 0, 0, 0]]],
        mistakes={
            "the scores were not divided": [[[4.4, 0, 0, 0, 6, 0, 0, 0], [4.4, 0, 0, 0, 6, 0, 0, 0]]],
            "the scores were divided by √d_model; it should be the width of one head": [
                [[5.26, 0, 0, 0, 6, 0, 0, 0], [5.26, 0, 0, 0, 6, 0, 0, 0]]
            ],
            "the scores were divided by d_k, not by its square root": [
                [[5.4641, 0, 0, 0, 6, 0, 0, 0], [5.4641, 0, 0, 0, 6, 0, 0, 0]]
            ],
        },
    )

    X = np.array([[[2.0, 0.0], [4.0, 8.0]], [[1.0, 3.0], [5.0, 5.0]]])  # (batch, n, d_model) = (2, 2, 2)
    zeros, ones = np.zeros((2, 2)), np.eye(2)  # all scores are 0: each token averages over what it may see
    mask = np.array([[[[True, False], [True, True]]], [[[True, True], [False, True]]]])  # (batch, 1, n, n)
    check_close(
        "a mask for each sequence",
        multi_head_attention(X, zeros, zeros, ones, ones, 2, mask=mask),
        [[[2, 0], [3, 4]], [[3, 4], [5, 5]]],
        mistakes={
            "the mask has no effect, or the masked scores became 0": [[[3, 4], [3, 4]], [[3, 4], [3, 4]]],
            "the mask came after the softmax, so the weights no longer sum to 1": [
                [[1, 0], [3, 4]],
                [[3, 4], [2.5, 2.5]],
            ],
            "both sequences got the mask of the first one": [[[2, 0], [3, 4]], [[1, 3], [3, 4]]],
            "heads got the masks of sequences: which axis of the mask lines up with which axis of the scores?": [
                [[2, 4], [3, 8]],
                [[1, 4], [3, 5]],
            ],
        },
    )
    check_unchanged(
        "multi_head_attention leaves its arguments alone",
        lambda *arguments: multi_head_attention(*arguments, 2),
        *(X, ones, ones, ones, ones),
    )


@one_line
def check_causal_multi_head_attention(causal_multi_head_attention):
    __tracebackhide__ = True
    X = np.array([[[3.0, 0.0], [5.0, 4.0], [10.0, 2.0]]])  # (batch, n, d_model) = (1, 3, 2)
    zeros, ones = np.zeros((2, 2)), np.eye(2)
    check_close(
        "running averages",
        causal_multi_head_attention(X, zeros, zeros, ones, ones, 2),
        [[[3, 0], [4, 2], [6, 2]]],
        mistakes={
            "nothing is hidden, or hidden scores became 0, which is a score like any other": [
                [[6, 2], [6, 2], [6, 2]]
            ],
            "a token sees what comes later, not what came before": [[[6, 2], [7.5, 3], [10, 2]]],
            "a token sees one position ahead": [[[4, 2], [6, 2], [6, 2]]],
            "the mask came after the softmax, so the weights no longer sum to 1": [
                [[1, 0], [2.6667, 1.3333], [6, 2]]
            ],
        },
    )
    check_close(
        "two sequences",
        causal_multi_head_attention(np.concatenate([X, -X]), zeros, zeros, ones, ones, 2),
        [[[3, 0], [4, 2], [6, 2]], [[-3, 0], [-4, -2], [-6, -2]]],
    )


@one_line
def check_cross_attention(cross_attention):
    __tracebackhide__ = True
    X = np.array([[[5.0, 5.0, 0.0, 9.0], [7.0, 7.0, 9.0, 0.0]]])  # (batch, n, d_model) = (1, 2, 4)
    memory = np.array([[[3.0, 0.0, 9.0, 0.0], [6.0, 3.0, 0.0, 9.0], [9.0, 6.0, 9.0, 0.0]]])  # (batch, m, d_model)
    W_Q = W_K = np.diag([0.0, 0.0, 1.0, 1.0])  # head 0 averages, head 1 looks for the same mark (9, 0 or 0, 9)
    W_V = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]])  # both heads bring the first two
    W_O = np.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
    check_close(
        "two tokens of X, three of the memory",
        cross_attention(X, memory, W_Q, W_K, W_V, W_O, 2),
        [[[6, 9, 9, 3], [6, 9, 9, 3]]],
        mistakes={
            "the memory is not used: keys and values come from X": [[[6, 12, 10, 5], [6, 12, 14, 7]]],
            "the last projection, W_O, is missing": [[[6, 3, 6, 3], [6, 3, 6, 3]]],
            "the tokens attend to X as well as to the memory": [[[6, 10.2, 11, 4], [6, 10.2, 10.6667, 4.3333]]],
        },
    )
    longer = np.concatenate([memory, memory], axis=1)  # (batch, m, d_model) = (1, 6, 4)
    check_close(
        "every token of the memory twice changes nothing",
        cross_attention(X, longer, W_Q, W_K, W_V, W_O, 2),
        [[[6, 9, 9, 3], [6, 9, 9, 3]]],
    )
    first, third = np.zeros((4, 4)), np.zeros((4, 4))
    first[0, 0], third[2, 0] = 1.0, 1.0
    check_close(
        "a head of width 2 with scores √2·log(3) and 0, which become log(3) and 0",
        cross_attention(
            np.array([[[np.sqrt(2.0), 0.0, 0.0, 0.0]]]),
            np.array([[[np.log(3.0), 0.0, 4.0, 0.0], [0.0, 0.0, 8.0, 0.0]]]),
            *(first, first, third, np.eye(4), 2),
        ),
        [[[5.0, 0.0, 0.0, 0.0]]],
        mistakes={
            "the scores were not divided by √d_k": [[[4.6982, 0.0, 0.0, 0.0]]],
            "the scores were divided by the root of d_model, not of d_k": [[[5.26, 0.0, 0.0, 0.0]]],
        },
    )
    check_unchanged(
        "cross_attention leaves its arguments alone",
        lambda *arguments: cross_attention(*arguments, 2),
        *(X, memory, W_Q, W_K, W_V, W_O),
    )


@one_line
def check_count_parameters(count_parameters):
    __tracebackhide__ = True
    check_number(
        "eight heads",
        count_parameters(16, 8),
        1024,
        mistakes={
            "each head got full matrices; together the heads have one": 8192,
            "W_O is missing": 768,
            "this is one head, or heads that read d_k features each; all eight should read all features": 128,
            "without num_kv_heads, there are as many heads of keys and values as of queries": 576,
        },
    )
    check_number("one head has as many", count_parameters(16, 1), 1024)
    check_number(
        "eight heads of queries, two of keys and values",
        count_parameters(16, 8, num_kv_heads=2),
        640,
        mistakes={
            "num_kv_heads has no effect": 1024,
            "keys are shared, but values are not": 832,
            "W_O is missing": 384,
        },
    )
    check_number(
        "the same with biases",
        count_parameters(16, 8, num_kv_heads=2, bias=True),
        680,
        mistakes={
            "the biases are missing": 640,
            "keys and values have as many biases as columns, 4 each": 704,
            "each of the four projections has a bias": 656,
        },
    )


@one_line
def check_attention_flops(attention_flops):
    __tracebackhide__ = True
    check_number(
        "three tokens of width 5",
        attention_flops(3, 5),
        780,
        mistakes={
            "a multiplication and an addition are 2 operations": 390,
            "the four projections are missing": 180,
            "the projection with W_O is missing": 630,
            "only the projections are counted": 600,
            "the weights times the values are missing": 690,
            "n and d_model are exchanged": 660,
            "half of the scores are missing; there is no mask": 720,
        },
    )
    check_number("one token of width 1", attention_flops(1, 1), 12)
