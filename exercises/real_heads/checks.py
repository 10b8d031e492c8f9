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
def check_bert_attention(bert_attention):
    __tracebackhide__ = True
    x = np.array([[[1.0, 2.0], [3.0, 4.0]]])  # (batch, n, d_model) = (1, 2, 2)
    zero = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    value = {"weight": np.array([[0.0, 1.0], [2.0, 0.0]]), "bias": np.array([0.0, 10.0])}
    dense = {"weight": np.eye(2), "bias": np.array([0.5, 0.0])}
    output, attention_weights = bert_attention(x, {"query": zero, "key": zero, "value": value, "dense": dense}, 2)
    check_close(
        "output",
        output,
        [[[3.5, 14.0], [3.5, 14.0]]],
        mistakes={
            "x @ W was computed, but the weights are stored as (out, in)": [[[6.5, 12.0], [6.5, 12.0]]],
            "no bias was added": [[[3.0, 4.0], [3.0, 4.0]]],
            "the bias of the values was not added": [[[3.5, 4.0], [3.5, 4.0]]],
            "dense, or its bias, was left out": [[[3.0, 14.0], [3.0, 14.0]]],
            "x was added to the output": [[[4.5, 16.0], [6.5, 18.0]]],
        },
    )
    check_close("attention weights", attention_weights, np.full((1, 2, 2, 2), 0.5))

    x = np.array([[[np.log(3), 4.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]]])  # (1, 2, 4), for one head with d_k = 4
    zero, one = np.zeros((4, 4)), np.eye(4)
    weights = {
        "query": {"weight": zero, "bias": np.array([2.0, 0.0, 0.0, 0.0])},  # every query is [2, 0, 0, 0]
        "key": {"weight": one, "bias": np.zeros(4)},
        "value": {"weight": one, "bias": np.zeros(4)},
        "dense": {"weight": np.fliplr(np.diag([1.0, 2.0, 3.0, 4.0])), "bias": np.zeros(4)},
    }
    output, attention_weights = bert_attention(x, weights, 1)
    check_close(
        "attention weights of one head with d_k = 4",
        attention_weights,
        [[[[0.75, 0.25], [0.75, 0.25]]]],
        mistakes={
            "the scores were not divided by √d_k": [[[[0.9, 0.1], [0.9, 0.1]]]],
            "all scores of a query seem equal; the bias makes every query [2, 0, 0, 0]": [
                [[[0.5, 0.5], [0.5, 0.5]]]
            ],
        },
    )
    third = 0.75 * np.log(3)
    check_close(
        "its output",
        output,
        [[[0.0, 0.0, 15.0, 4 * third], [0.0, 0.0, 15.0, 4 * third]]],
        mistakes={
            "dense was not transposed": [[[0.0, 0.0, 10.0, third]] * 2],
            "dense has no effect": [[[third, 5.0, 0.0, 0.0]] * 2],
        },
    )
    mask = np.array([[True, True], [False, True]])  # (n, n)
    check_close(
        "attention weights under a mask",
        bert_attention(x, weights, 1, mask=mask)[1],
        [[[[0.75, 0.25], [0.0, 1.0]]]],
        mistakes={
            "the mask has no effect": [[[[0.75, 0.25], [0.75, 0.25]]]],
            "rows and columns of the mask are exchanged: row i belongs to query i": [
                [[[1.0, 0.0], [0.75, 0.25]]]
            ],
            "the masked score became 0, but a score of 0 is a score like any other": [
                [[[0.75, 0.25], [0.5, 0.5]]]
            ],
            "the mask came after the softmax, so the weights no longer sum to 1": [[[[0.75, 0.25], [0.0, 0.25]]]],
        },
    )
    check_unchanged(
        "bert_attention leaves x alone", lambda x: bert_attention(x, weights, 1), np.arange(8.0).reshape(1, 2, 4)
    )


@one_line
def check_offset_score(offset_score):
    __tracebackhide__ = True
    attention_weights = np.array(
        [
            [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.7, 0.1]],
            [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]],
        ]
    )  # (heads, n, n) = (2, 3, 3)
    check_close(
        "the token before",
        offset_score(attention_weights, -1),
        [0.8, 0.3],
        mistakes={
            "this is the next token: rows are queries, and key i + offset is in the same row": [0.0, 0.4],
            "the sum was divided by n, but one token has no token before it": [0.5333, 0.2],
            "this is the sum, not the mean": [1.6, 0.6],
            "the first token has no token before it; the last one does not count": [0.5333, 0.2667],
        },
    )
    check_close("the token itself", offset_score(attention_weights, 0), [0.4, 1 / 3])
    check_close("two tokens further", offset_score(attention_weights, 2), [0.0, 0.2])
    check_unchanged("offset_score leaves the weights alone", lambda w: offset_score(w, 1), attention_weights)


@one_line
def check_keep_heads(keep_heads):
    __tracebackhide__ = True
    zero = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    weights = {
        "query": zero,
        "key": zero,
        "value": {"weight": np.eye(2), "bias": np.array([0.0, 5.0])},
        "dense": {"weight": np.array([[1.0, 100.0], [10.0, 1000.0]]), "bias": np.array([0.5, 0.5])},
    }
    x = np.array([[[1.0, 2.0]]])  # (batch, n, d_model) = (1, 1, 2)
    check_close(
        "head 0 alone",
        keep_heads(x, weights, 2, [0]),
        [[[1.5, 10.5]]],
        mistakes={
            "head 0 is silent, but it should be the one that is kept": [[[700.5, 7000.5]]],
            "the bias of the silent head's values is still there": [[[501.5, 5010.5]]],
            "the bias of dense is missing": [[[1.0, 10.0]]],
            "a row of dense was silenced, but a head owns a column": [[[701.5, 0.5]]],
            "the silent head still adds the mean of its values": [[[701.5, 7010.5]]],
            "the kept head was made larger": [[[2.5, 20.5]]],
        },
    )
    check_close(
        "head 1 alone",
        keep_heads(x, weights, 2, [1]),
        [[[700.5, 7000.5]]],
        mistakes={"heads are counted from 0, not from 1": [[[1.5, 10.5]]]},
    )
    check_close(
        "both heads",
        keep_heads(x, weights, 2, [1, 0]),
        [[[701.5, 7010.5]]],
        mistakes={"the bias of dense was added once for each head": [[[702.0, 7011.0]]]},
    )
    zero, one = {"weight": np.zeros((4, 4)), "bias": np.zeros(4)}, {"weight": np.eye(4), "bias": np.zeros(4)}
    check_close(
        "head 1 of two heads with d_k = 2",
        keep_heads(
            np.array([[[3.0, 4.0, 5.0, 6.0]]]), {"query": zero, "key": zero, "value": one, "dense": one}, 2, [1]
        ),
        [[[0.0, 0.0, 5.0, 6.0]]],
        mistakes={"the features of a head stand side by side: i·d_k … (i+1)·d_k − 1": [[[0.0, 4.0, 0.0, 6.0]]]},
    )
    two = np.concatenate([x, -x], axis=1)  # (1, 2, 2)
    check_unchanged("keep_heads leaves x alone", lambda x: keep_heads(x, weights, 2, [0]), two)
    for name in ("query", "value", "dense"):
        check_unchanged(
            f"keep_heads leaves the weights of {name} alone",
            lambda W, name=name: keep_heads(x, {**weights, name: {"weight": W, "bias": np.zeros(2)}}, 2, [0]),
            np.ones((2, 2)),
        )


@one_line
def check_head_importance(head_importance):
    __tracebackhide__ = True
    zero = {"weight": np.zeros((4, 4)), "bias": np.zeros(4)}
    one = {"weight": np.eye(4), "bias": np.zeros(4)}
    weights = {"query": zero, "key": zero, "value": one, "dense": one}
    x = np.array([[[2.0, 4.0, 1.0, 2.0], [4.0, 4.0, -1.0, 2.0]]])  # (batch, n, d_model) = (1, 2, 4)
    check_close(
        "importance of two heads",
        head_importance(x, weights, 2),
        [5.0, 2.0],
        mistakes={
            "the root is missing: these are squares": [25.0, 4.0],
            "absolute values were summed, not squares": [7.0, 2.0],
            "the features were averaged, too": [2.5, 1.0],
            "the tokens were summed, not averaged": [10.0, 4.0],
            "this is one norm over all tokens": [7.0711, 2.8284],
            "this is how large the output is without the head, not how far it moves": [2.0, 5.0],
            "these are the shares of the heads": [0.7143, 0.2857],
        },
    )
    check_close(
        "two sequences",
        head_importance(np.concatenate([x, 3.0 * x]), weights, 2),
        [10.0, 4.0],
        mistakes={
            "only the first sequence was counted": [5.0, 2.0],
            "the sequences were summed, not averaged": [20.0, 8.0],
        },
    )
    zero3 = {"weight": np.zeros((6, 6)), "bias": np.zeros(6)}
    one3 = {"weight": np.eye(6), "bias": np.zeros(6)}
    check_close(
        "importance of three heads",
        head_importance(
            np.array([[[2.0, 4.0, 1.0, 2.0, 8.0, 6.0], [4.0, 4.0, -1.0, 2.0, 8.0, 6.0]]]),
            {"query": zero3, "key": zero3, "value": one3, "dense": one3},
            3,
        ),
        [5.0, 2.0, 10.0],
    )
    biased = {**weights, "dense": {"weight": 2.0 * np.eye(4), "bias": np.array([0.0, 0.0, 7.0, 7.0])}}
    check_close(
        "with a dense that doubles, and a bias",
        head_importance(x, biased, 2),
        [10.0, 4.0],
        mistakes={
            "the change was measured before dense": [5.0, 2.0],
            "the result includes the bias of dense, which no head adds": [14.0712, 13.0384],
        },
    )
    sharp = {**weights, "query": {"weight": 50.0 * np.eye(4), "bias": np.zeros(4)}, "key": one}
    far = np.array([[[3.0, 4.0, 1.0, 0.0], [-3.0, -4.0, -3.0, 0.0]]])  # each token attends to itself
    check_close(
        "tokens that change in opposite directions",
        head_importance(far, sharp, 2),
        [5.0, 2.0],
        mistakes={
            "the mean over the tokens came before the norm, and their changes cancelled": [0.0, 1.0],
            "squares were averaged over the tokens": [5.0, 2.2361],
            "this is the change of the token that changes most": [5.0, 3.0],
        },
    )
    check_unchanged("head_importance leaves x alone", lambda x: head_importance(x, weights, 2), x)


@one_line
def check_answers(answers):
    __tracebackhide__ = True
    check_kinds(
        answers,
        {
            "previous_layer": "number",
            "previous_head": "number",
            "next_layer": "number",
            "next_head": "number",
            "next_score": "number",
            "their_students": "abc",
            "agreement_head": "number",
            "too_wide": "abc",
            "most_important": "number",
            "key_bias": "abc",
        },
    )
