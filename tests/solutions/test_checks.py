"""What the visible checks tell a student."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from mha_grader import testing
from mha_grader.testing.proxies import Recorder, local

SPEC = importlib.util.spec_from_file_location("checks", Path(__file__).parents[2] / "solutions" / "checks.py")
checks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(checks)


def noted():
    """What has been found right since this was called last."""
    found = [*checks._passed]
    checks._passed.clear()
    return found


@pytest.fixture(autouse=True)
def nothing_noted():
    noted()


def complaint(check, *arguments, **options):
    with pytest.raises(AssertionError) as caught:
        check("the result", *arguments, **options)
    return str(caught.value)


def test_a_right_array_is_ok():
    checks.check_close("the weights", np.array([[0.25, 0.75]], dtype=np.float32), [[0.25, 0.75]])
    checks.check_equal("the mask", np.array([[True, False]]), [[True, False]])
    assert noted() == ["the weights", "the mask"]


def test_a_wrong_array_is_shown_beside_the_right_one_with_the_first_difference():
    text = complaint(checks.check_close, np.array([[0.25, 0.5], [0.0, 1.0]]), [[0.25, 0.75], [0.0, 1.0]])
    assert text.startswith("the result: not as expected; first difference at [0, 1]")
    assert "\n  expected, shape (2, 2), dtype float64:" in text
    assert "[[0.25 0.75]" in text
    assert "[[0.25 0.5 ]" in text
    assert "first difference at [0, 1]: expected 0.75, got 0.5" in text


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        (None, [1.0], "got None: is a return missing?"),
        ((np.ones(1), np.ones(1)), [1.0], "got a tuple of 2"),
        ([1.0], [1.0], "got a list of 1"),
        ("text", [1.0], "got a str"),
        (np.ones((3, 2)), np.ones((2, 3)), "maybe: the last two axes are swapped"),
        (np.ones((1, 6)), np.ones((2, 3)), "the number of entries is right, but the shape is not"),
        (np.ones(2), np.ones(3), "the shape is not right"),
        (np.array([np.nan, 1.0]), [0.5, 0.5], "maybe: an exponential overflowed"),
        (np.array([2.0, 6.0]), [1.0, 3.0], "every entry is 2 times what it should be"),
        (
            np.array([[0.5, 0.2], [0.5, 0.8]]),
            [[0.6, 0.4], [0.1, 0.9]],
            "it sums to 1 along axis 0, but it should",
        ),
        (np.array([[0.1, 0.3], [0.4, 0.2]]), [[0.6, 0.4], [0.1, 0.9]], "all entries together sum to 1"),
        (np.array([[0.1, 0.3], [0.4, 0.3]]), [[0.6, 0.4], [0.1, 0.9]], "but it sums to 0.4, 0.7"),
        (np.array([True, False]), [1.0, 0.0], "the dtype should be float64"),
        (np.array([1j, 0]), [1.0, 0.0], "the dtype should be float64"),
    ],
)
def test_a_wrong_number_is_explained_in_words(got, expected, words):
    assert words in complaint(checks.check_close, got, expected)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (np.array([1.0, 0.0]), "the shape is right, but the dtype should be bool"),
        (np.array([False, True]), "True means that the query may attend"),
        (np.array([True, True]), "first difference at [1]: expected False, got True"),
    ],
)
def test_a_wrong_mask_is_explained_in_words(got, words):
    assert words in complaint(checks.check_equal, got, [True, False])


def test_a_known_mistake_is_named_and_another_is_not():
    mistakes = {"you forgot the root": [0.333, 0.667], "you added": [5.0, 6.0]}
    text = complaint(checks.check_close, np.array([1 / 3, 2 / 3]), [0.25, 0.75], mistakes=mistakes)
    assert "maybe: you forgot the root" in text
    assert "you added" not in text


def test_a_function_that_changes_its_argument_is_told_which():
    def in_place(a, b):
        b -= 1.0

    text = complaint(checks.check_unchanged, in_place, np.zeros(2), np.zeros(3))
    assert "argument 2 was changed in place" in text
    checks.check_unchanged("the function", lambda a: a - 1.0, np.zeros(2))
    assert noted() == ["the function"]


def test_where_a_tensor_is_expected_a_tensor_must_come():
    right = torch.tensor([0.25, 0.75])
    checks.check_close("the weights", right.clone().requires_grad_(), right)
    checks.check_close("in half", right.bfloat16(), right.bfloat16())
    checks.check_equal("the mask", right > 0.5, torch.tensor([False, True]))
    assert noted() == ["the weights", "in half", "the mask"]
    assert "expected a tensor of shape (2,), got an array of shape (2,)" in complaint(
        checks.check_close, right.numpy(), right
    )
    assert "of dtype torch.float32, got one of dtype torch.float64" in complaint(
        checks.check_close, right.double(), right
    )
    assert "first difference at [1]: expected 0.75, got 0.5" in complaint(
        checks.check_close, torch.tensor([0.25, 0.5]), right
    )


def test_a_tensor_that_is_changed_in_place_is_told():
    assert "argument 1 was changed" in complaint(checks.check_unchanged, lambda a: a.add_(1), torch.zeros(2))


class Pair(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = torch.nn.LayerNorm(width), torch.nn.Linear(width, width)

    def forward(self, x):
        return self.linear(self.norm(x))


def test_students_and_grader_fill_a_module_alike():
    x = torch.arange(6.0).view(2, 3)
    stand_in = testing.filled(Recorder(local(Pair=Pair)).bind("Pair", Pair)(3))
    assert torch.equal(checks.filled(Pair(3))(x), stand_in(x))


KINDS = {"width": "number", "effect": "abc"}


def test_answers_are_listed_whether_given_or_not(capsys):
    checks.check_kinds({"width": None, "effect": "b"}, KINDS)
    assert capsys.readouterr().out == "todo width: no answer yet\nhave effect: 'b', a choice\n"
    for number in (0.5, np.float32(0.5), np.array(0.5), torch.tensor(0.5)):
        checks.check_kinds({"width": number}, KINDS)
        assert capsys.readouterr().out == "have width: 0.5, a number\ntodo effect: no answer yet\n"


@pytest.mark.parametrize("choice", ["b", "B", " b "])
def test_a_choice_that_earns_its_points_is_of_the_right_kind(choice):
    testing.expect_answer({"effect": choice}, {"effect": "b"}, "effect")
    checks.check_kinds({"effect": choice}, KINDS)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (None, "answers should be a dict"),
        ({"width": "64"}, "answers['width'] is '64', but it should be a number"),
        ({"width": True}, "should be a number"),
        ({"width": np.array([0.5])}, "should be a number"),
        ({"width": torch.tensor(True)}, "should be a number"),
        ({"width": float("nan")}, "should be a number"),
        ({"effect": "ab"}, 'should be one of "a", "b", "c"'),
        ({"effect": 2}, 'should be one of "a", "b", "c"'),
        ({"depth": 3}, "answers['depth']: there is no such question"),
    ],
)
def test_answers_of_another_kind_are_named(answers, words):
    with pytest.raises(AssertionError) as caught:
        checks.check_kinds(answers, KINDS)
    assert words in str(caught.value)


def refuse(*numbers):
    raise ValueError(f"no good: {numbers}")


def test_a_right_number_and_a_right_error_are_ok():
    checks.check_number("the width", np.int64(64), 64)
    checks.check_raises("7 among 2", refuse, 7, 2, error=ValueError, mentions=(7, 2))
    assert noted() == ["the width", "7 among 2"]


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (None, "expected the number 64, got None: is a return missing?"),
        (True, "expected the number 64, got a bool"),
        (np.ones((2, 3)), "expected the number 64, got an array of shape (2, 3)"),
        (64.0, "it should be a whole number (an int), not a float"),
        (8, "maybe: that is the number of heads"),
        (9, "expected 64, got 9"),
    ],
)
def test_a_wrong_count_is_explained_in_words(got, words):
    assert words in complaint(checks.check_number, got, 64, mistakes={"that is the number of heads": 8})


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (lambda *numbers: 3, {}, "no error was raised\n  it returned: 3"),
        (lambda *numbers: np.zeros(2), {}, "it returned: [0. 0.]"),
        (refuse, {"error": TypeError}, "expected TypeError, but ValueError was raised: no good: (7, 2)"),
        (refuse, {"error": ValueError, "mentions": (7, 35, 49)}, "should mention 35 and 49"),
    ],
)
def test_a_missing_or_wrong_error_is_explained_in_words(function, options, words):
    assert words in complaint(checks.check_raises, function, 7, 2, **options)


@pytest.fixture
def shell(capsys):
    """What a cell shows in a shell of IPython, as a notebook's kernel has one."""
    shell = InteractiveShell()
    shell.colors = "nocolor"
    shell.user_ns["checks"] = checks

    def run(source):
        shell.run_cell(source)
        return "".join(capsys.readouterr())

    return run


def test_a_failing_check_shows_its_sentences_and_nothing_else(shell):
    out = shell("checks.check_close('the result', checks.np.array([0.25, 0.5]), [0.25, 0.75])")
    assert out.splitlines()[0].startswith("the result: not as expected; first difference at [1]")
    assert "Traceback" not in out
    assert "CheckFailed" not in out
    assert shell("checks.check_number('the width', 8, 64)") == "the width: expected 64, got 8\n"
    assert shell("checks.check_kinds({'width': 'x'}, {'width': 'number'})").startswith(
        "answers['width'] is 'x'"
    )


@pytest.mark.parametrize(
    "call",
    [
        "checks.check_close('the result', broken(checks.np.ones(2)), [0.25, 0.75])",
        "checks.check_unchanged('the function', broken, checks.np.ones(2))",
    ],
)
def test_an_error_of_ones_own_code_shows_its_frames_and_none_of_the_checks(shell, call):
    shell("def broken(x):\n    return x.no_such_thing")
    out = shell(call)
    assert "return x.no_such_thing" in out
    assert "AttributeError" in out
    assert "checks.py" not in out


@checks.one_line
def check_double(double, three=3):
    checks.check_number("twice two", double(2), 4, mistakes={"that is the square": 4.5})
    checks.check_close("twice an array", double(np.ones(2)), [2.0, 2.0], mistakes={"you added 2": [3.0, 3.0]})


def test_a_check_that_passes_is_one_line_and_more_if_asked(capsys):
    check_double(lambda x: 2 * x)
    assert capsys.readouterr().out == "ok   double (2 checks)\n"
    check_double(lambda x: 2 * x, details=True)
    assert capsys.readouterr().out == "ok   twice two\nok   twice an array\n"


def test_a_check_that_fails_is_one_sentence_and_a_way_to_more(capsys):
    text = complaint(lambda what, *arguments, **options: check_double(*arguments, **options), lambda x: x + 2)
    assert text.splitlines() == [
        "twice an array: not as expected; maybe: you added 2",
        "  To see more, run check_double(double, three, details=True)",
    ]
    assert capsys.readouterr().out == ""
    text = complaint(
        lambda what, *arguments, **options: check_double(*arguments, **options), lambda x: x + 2, details=True
    )
    assert text.splitlines()[0] == "ok   twice two"
    assert "expected, shape (2,), dtype float64:" in text


def test_what_a_student_prints_is_seen(capsys):
    def double(x):
        print("seen")
        return 2 * x

    check_double(double)
    assert capsys.readouterr().out == "seen\nseen\nok   double (2 checks)\n"
