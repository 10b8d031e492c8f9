"""A wrong answer is recognised by what it does, and only if it does exactly that."""

import numpy as np
import pytest
import torch

from mha_grader.grading.diagnose import recognise as recognise_mistakes
from mha_grader.grading.diagnose import same_value
from mha_grader.grading.judge import Verdict
from mha_grader.sandbox.wire import Opaque
from mha_grader.testing.errors import CallError
from mha_grader.testing.modules import SEED
from mha_grader.testing.parts import Part
from mha_grader.testing.proxies import Step

VARIANTS = {
    "adds-two": lambda x: x + 2,
    "triples": lambda x: 3 * x,
    "raises": lambda x: x["key"],
    "scribbles": lambda x: np.add(x, 2, out=x),
}


try:
    VARIANTS["raises"](np.ones(1))
except IndexError as raised:
    TEXT = str(raised)


def recognise(item, verdicts, variants, reference=lambda x: -7 * x):
    return recognise_mistakes(item, verdicts, variants, reference)


def verdict(name, status, *steps):
    return Verdict(Part(name, 1.0, (), "proves", None, lambda rng: None), status, "", steps)


def call(x, result=None, **fields):
    arguments = {"method": None, "args": [np.asarray(x, float)], "kwargs": {}, "keep": None}
    request = {"op": "call", "target": "f", **arguments}
    return Step(request, None if result is None else np.asarray(result), **fields)


# From here on what comes rests on random draws.
DRAW = Step({"op": "call", "target": SEED, "method": None, "args": [1], "kwargs": {}, "keep": 1})


def test_the_variant_that_gives_the_same_is_named():
    assert recognise("f", [verdict("a", "fail", call([1, 2], [3.0, 4.0]))], VARIANTS) == {"a": "adds-two"}


def test_rounding_is_no_difference_and_a_difference_is():
    calls = [call([1, 2], np.float32([3.0000001, 4.0]))]
    assert recognise("f", [verdict("a", "fail", *calls)], VARIANTS) == {"a": "adds-two"}
    assert recognise("f", [verdict("a", "fail", call([1, 2], [3.01, 4.0]))], VARIANTS) == {}


def test_numbers_in_place_of_booleans_hide_no_other_mistake():
    variants = {"reversed": lambda x: x < 2, "numbers": lambda x: 1 * (x > 2)}
    hidden = verdict("a", "fail", call([1, 2, 3], [1.0, 0.0, 0.0]))
    assert recognise("f", [hidden], variants) == {"a": "reversed"}
    assert recognise("f", [verdict("a", "fail", call([1, 3], [0, 1]))], variants) == {"a": "numbers"}


def test_all_calls_of_a_part_must_agree():
    calls = [call([1, 2], [3.0, 4.0]), call([5, 6], [5.0, 6.0])]
    assert recognise("f", [verdict("a", "fail", *calls)], VARIANTS) == {}


def test_other_parts_decide_between_variants_that_agree_on_one():
    ambiguous = verdict("a", "fail", call([1], [3.0]))  # 1 + 2 = 3 · 1
    telling = verdict("b", "fail", call([5], [15.0]))
    assert recognise("f", [ambiguous], VARIANTS) == {"a": "adds-two"}
    assert recognise("f", [ambiguous, telling], VARIANTS) == {"a": "triples", "b": "triples"}
    passed = verdict("b", "pass", call([5], [15.0]))  # a part that passed tells as well
    assert recognise("f", [ambiguous, passed], VARIANTS) == {"a": "triples"}


def test_a_variant_that_raises_is_known_by_its_error():
    types = ["IndexError", "LookupError", "Exception", "BaseException"]
    error = CallError("error", types, TEXT)
    assert recognise("f", [verdict("a", "error", call([1], error=error))], VARIANTS) == {"a": "raises"}
    other = CallError("error", ["TypeError", "Exception", "BaseException"], TEXT)
    assert recognise("f", [verdict("a", "error", call([1], error=other))], VARIANTS) == {}
    assert recognise("f", [verdict("a", "timeout", call([1], error=CallError("timeout")))], VARIANTS) == {}


def test_errors_of_one_type_alone_are_no_likeness():
    types = ["IndexError", "LookupError", "Exception", "BaseException"]
    always = verdict("a", "error", call([1], error=CallError("error", types, "always")))
    assert recognise("f", [always], VARIANTS) == {}


def test_an_error_with_another_text_beside_right_results_is_no_likeness():
    def two_axes(x):
        return x.T if x.ndim < 3 else np.zeros(3)[5]

    types = ["IndexError", "LookupError", "Exception", "BaseException"]
    cube = np.ones((2, 2, 2))
    right = call([[1, 2]], [[1.0], [2.0]])
    for text, found in [
        ("too many values to unpack", {}),
        ("index 4 is out of bounds for axis 0 with size 2", {"a": "matrices"}),  # whatever the sizes
    ]:
        steps = (right, call(cube, error=CallError("error", types, text)))
        variants = {"matrices": two_axes}
        assert (
            recognise("f", [verdict("a", "error", *steps)], variants, lambda x: np.swapaxes(x, -1, -2))
            == found
        )


def test_of_two_mistakes_that_nothing_tells_apart_none_is_named():
    def otherwise(value):
        return lambda x: np.where(x > 4, 1.0, np.where(x == 2, x, value))

    variants = {"nothing": otherwise(0.0), "three": otherwise(3.0)}
    ground, failed = verdict("ground", "pass", call([2], [2.0])), verdict("a", "fail", call([5], [1.0]))
    drawn = verdict(
        "b", "not-run", DRAW, call([0.5], [0.7])
    )  # which neither gives, and which contradicts nothing
    assert recognise("f", [ground, failed, drawn], {"three": variants["three"]}, np.abs) == {"a": "three"}
    assert recognise("f", [ground, failed, drawn], variants, np.abs) == {}
    same = recognise("f", [ground, failed], variants, np.abs)  # in all that was seen
    assert same == {"a": "nothing"}


def test_a_mistake_that_draws_as_right_code_does_explains_nothing():
    def draws(x):
        return torch.rand(1).numpy()

    torch.manual_seed(1)
    hidden = verdict("a", "fail", DRAW, call([1], draws(1)), call([2], draws(2)))
    assert recognise("f", [hidden], {"draws": lambda x: draws(x)}, draws) == {}
    assert recognise("f", [hidden], {"draws": draws}, lambda x: draws(x) + 1) == {"a": "draws"}


def test_of_forms_of_one_mistake_nothing_needs_to_tell_which_it_is():
    forms = {"doubles": lambda x: 2 * x, "doubles/squares": lambda x: x * x}
    steps = verdict("a", "fail", call([2], [4.0]))
    drawn = verdict("b", "not-run", DRAW, call([5], [0.7]))
    assert recognise("f", [steps, drawn], forms) == {"a": "doubles"}
    assert recognise("f", [verdict("a", "fail", call([3], [9.0]))], forms) == {"a": "doubles"}


@pytest.mark.parametrize("status", ["pass", "fail", "not-run"])
def test_no_mistake_is_named_against_a_step_of_any_other_part(status):
    right = np.abs
    failed = verdict("a", "fail", call([-1], [1.0]))
    other = verdict("b", status, call([-4], [4.0] if status == "pass" else [5.0]))
    variants = {"squares": np.square}  # 16 for -4, which is neither
    assert recognise("f", [failed], variants, lambda x: x) == {"a": "squares"}
    assert recognise("f", [failed, other], variants, lambda x: x if x[0] > -2 else right(x)) == {}
    no_effect = verdict("b", status, call([1], [1.0] if status == "pass" else [5.0]))  # 1² is 1
    assert recognise("f", [failed, no_effect], variants, lambda x: x) == {"a": "squares"}


def test_an_error_in_another_part_may_hide_the_mistake():
    error = CallError("error", ["TypeError", "Exception", "BaseException"], "another mistake")
    crashed = verdict("b", "error", call([5], error=error))
    failed = verdict("a", "fail", call([1, 2], [3.0, 4.0]))
    assert recognise("f", [failed, crashed], VARIANTS) == {"a": "adds-two"}
    hung = verdict("b", "timeout", call([5], error=CallError("timeout")))
    assert recognise("f", [failed, hung], VARIANTS) == {"a": "adds-two"}


def test_an_error_that_is_asked_for_contradicts_code_without_one():
    def refuses(x):
        raise ValueError(x)

    types = ["AssertionError", "Exception", "BaseException"]
    refused = verdict("b", "pass", call([5], error=CallError("error", types, "no")))
    failed = verdict("a", "fail", call([1, 2], [3.0, 4.0]))
    assert recognise("f", [failed, refused], VARIANTS, refuses) == {}


def test_a_mask_that_broadcasting_makes_the_same_hides_no_other_mistake():
    variants = {"reversed": lambda x: x < 2}
    tall = np.array([[True, False, False]] * 2)
    assert recognise("f", [verdict("a", "fail", call([1, 2, 3], tall))], variants, lambda x: x > 2) == {
        "a": "reversed"
    }
    numbers = {"adds-two": VARIANTS["adds-two"]}
    assert recognise("f", [verdict("a", "fail", call([1, 2], [[3.0, 4.0]]))], numbers) == {}


def test_a_law_tells_a_mistake_whatever_its_numbers():
    asked = []

    def negative(tested, steps):
        asked.append(tested(np.ones(1)))
        return all((step.value < 0).all() for step in steps)

    def fails(tested, steps):
        raise ValueError

    below, above = verdict("a", "fail", call([1], [-3.0])), verdict("b", "fail", call([1], [3.0]))
    passed = verdict("c", "pass", call([2], [-14.0]))
    laws = {"negative": negative, "fails": fails}
    found = recognise_mistakes(
        "f", [below, above, passed], VARIANTS, lambda x: -7 * x, laws=laws, tested=lambda x: x
    )
    assert found == {"a": "negative"}
    assert len(asked) == 2, "of parts that passed nothing is asked"
    laws["other"] = negative
    assert recognise_mistakes("f", [below], {}, lambda x: -7 * x, laws=laws, tested=lambda x: x) == {}, (
        "two laws say different things"
    )


def test_a_variant_is_not_replayed_behind_a_step_that_contradicts_it():
    replayed = []

    def wrong(x):
        replayed.append(x)
        return x + 1

    steps = [call([number], [0.0]) for number in range(5)]
    assert (
        recognise("f", [verdict("a", "fail", *steps), verdict("b", "fail", *steps)], {"wrong": wrong}) == {}
    )
    assert len(replayed) == 1


def test_the_mistake_that_explains_more_failures_goes_before_one_that_agrees_where_nothing_failed():
    variants = {"no-sign": lambda x: np.abs(x), "squares": lambda x: x * x}
    one = verdict("a", "fail", call([-1], [1.0]))  # which both give
    two = verdict("b", "fail", call([-3], [9.0]))
    passed = [verdict(f"p{n}", "pass", call([n], [float(n)])) for n in (0, 1)]
    found = recognise("f", [one, two, *passed], variants, lambda x: x)
    assert found == {"a": "squares", "b": "squares"}


def test_a_likeness_in_a_later_part_counts_only_if_the_first_part_agrees():
    ground = verdict("ground", "fail", call([1, 2], [0.0, 0.0]))
    later = verdict("later", "fail", call([5], [7.0]))
    assert recognise("f", [ground, later], VARIANTS) == {}
    assert recognise("f", [verdict("ground", "pass", call([1], [3.0])), later], VARIANTS) == {
        "later": "adds-two"
    }


def test_the_text_of_an_error_decides_between_variants_that_raise_the_same():
    def slice_error(x):
        raise IndexError("another text")

    types = ["IndexError", "LookupError", "Exception", "BaseException"]
    steps = [call([1], error=CallError("error", types, "another text"))]
    variants = VARIANTS | {"raises-otherwise": slice_error}
    assert recognise("f", [verdict("a", "error", *steps)], variants) == {"a": "raises-otherwise"}


def test_changing_the_input_is_part_of_what_a_variant_does():
    changed = verdict("a", "fail", call([7], [9.0], changed=("0",)))
    assert recognise("f", [changed], VARIANTS) == {"a": "scribbles"}


def test_right_results_with_a_changed_argument_are_told_by_the_change_alone():
    variants = {"input-changed-in-place": VARIANTS["scribbles"]}
    right, wrong = call([1], [-7.0], changed=("0",)), call([1], [5.0], changed=("0",))
    assert recognise("f", [verdict("a", "fail", right)], variants) == {"a": "input-changed-in-place"}
    assert recognise("f", [verdict("a", "fail", right)], VARIANTS) == {}  # no words for it in this item
    assert recognise("f", [verdict("a", "fail", wrong)], variants) == {}
    assert recognise("f", [verdict("a", "fail", call([1], [-7.0]))], variants) == {}


NO_GRAPH = CallError(
    "error", ["RuntimeError"], "element 0 of tensors does not require grad and has no grad_fn"
)


def gradient(value=None, **fields):
    arguments = {
        "method": None,
        "args": [torch.ones(2)],
        "kwargs": {},
        "wrt": [0],
        "cotangent": torch.ones(2),
    }
    return Step({"op": "gradients", "target": "f", **arguments}, value, **fields)


@pytest.mark.parametrize("step", [gradient([None]), gradient([torch.zeros(2)]), gradient(error=NO_GRAPH)])
def test_wrong_gradients_beside_right_results_mean_a_graph_that_is_cut(step):
    variants = {"gradient-cut-off": lambda x: (-7 * x).detach(), "unlike": lambda x: x}
    cut = verdict("b", "fail", call([1], [-7.0]), step)
    others = [verdict("a", "pass", call([1], [-7.0])), verdict("a", "fail", call([1], [5.0]))]
    assert recognise("f", [others[0], cut], variants) == {"b": "gradient-cut-off"}
    assert recognise("f", [others[1], cut], variants) == {}  # what is wrong there may be wrong here
    changed = verdict("a", "pass", call([1], [-7.0], changed=("0",)))
    assert recognise("f", [changed, cut], variants) == {}
    assert recognise("f", [cut], {"unlike": variants["unlike"]}) == {}


def test_gradients_that_are_no_numbers_or_right_say_nothing_of_the_graph():
    variants = {"gradient-cut-off": lambda x: x.detach()}
    for value in (torch.full((2,), float("nan")), torch.full((2,), -7.0)):
        assert recognise("f", [verdict("a", "fail", gradient([value]))], variants) == {}


def test_parts_that_called_nothing_are_left_alone():
    assert recognise("f", [verdict("a", "not-run"), verdict("b", "fail")], VARIANTS) == {}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (np.array([np.nan, 1]), np.array([np.nan, 1]), True),
        (np.array([np.nan, 1]), np.array([0.0, 1]), False),
        (np.array([np.inf]), np.array([np.inf]), True),
        (np.array([np.inf]), np.array([-np.inf]), False),
        (np.array([True]), np.array([1.0]), False),
        (np.array([1.0]), np.array([[1.0]]), False),
        ((np.array([1.0]), 2), (np.array([1.0]), 2), True),
        ((np.array([1.0]), 2), (np.array([1.0]),), False),
        (np.array([1.0]), 1.0, False),
        ({"a": np.array([1.0])}, {"a": np.array([1.0])}, True),
        ({"a": np.array([1.0])}, {"a": np.array([2.0])}, False),
        ({"a": np.array([1.0])}, {"b": np.array([1.0])}, False),
        (Opaque("Scale"), Opaque("Shifted"), True),
        (Opaque("Scale"), None, False),
        (1, 1.0, False),
    ],
)
def test_same_values(first, second, same):
    assert same_value(first, second) is same
