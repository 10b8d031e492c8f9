"""Laws tell their mistake in every form, and nothing else; forms lose points and get the name of their mistake."""

import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mha_grader.course.assignment import load_assignment
from mha_grader.grading.replay import Memory
from mha_grader.quality.kill_table import PUBLIC_SECRET, judge
from mha_grader.testing.proxies import Recorder, local
from mha_lib import pitfalls
from mha_lib.pitfalls import one_head
from mha_lib.pitfalls.code import LAWS, MISTAKES
from mha_lib.pitfalls.examples import items
from mha_lib.styles import styles

pytestmark = pytest.mark.filterwarnings("ignore")  # as where students' code runs
MASKS = np.ones((2, 1, 1, 1), dtype=bool)
COURSE = Path(__file__).parents[3]
FORMS = [  # sorted, since items are in the order in which modules were imported: each form is here or in the soak
    (place, name)
    for place in sorted(MISTAKES.items())
    for name in pitfalls.forms(*place.split("."))
    if "/" in name
]


def laws_of(place):
    return pitfalls.laws(*place.split("."))


def tell(place, slug, code, steps):
    """Whether a law tells its mistake from code, which is called as a student's is."""
    item = place.partition(".")[2]
    tested = Recorder(local(**{item: code})).bind(item, items()[place].right)
    try:
        return laws_of(place)[slug](tested, steps)
    except Exception:  # as when a hand-in is graded
        return False


class EveryPart:
    """Steps of any part: several heads, two objects, each probability of dropout, in training or in eval mode.

    There is a mask in training, and none in eval mode.
    """

    def __init__(self, item, train, dropout):
        self.request = {
            "target": item,
            "method": "train" if train else None,
            "args": [],
            "kwargs": {
                "num_heads": 2,
                "heads": [0, 1],
                "mask": MASKS if train else None,
                **({"dropout": 0.5} if dropout else {}),
            },
        }


def parts(place):
    """Steps of the kinds of parts that the item's laws tell apart; dropout matters only where there is some."""
    item = place.partition(".")[2]
    chances = (False, True) if "dropout" in inspect.signature(items()[place].right).parameters else (False,)
    return [[EveryPart(item, train, dropout)] * 2 for train in (False, True) for dropout in chances]


def told(place, slug, codes):
    """The names of the codes in which a law tells its mistake, in some part."""
    kinds = parts(place)
    return {name for name, code in codes.items() if any(tell(place, slug, code, steps) for steps in kinds)}


@pytest.mark.parametrize("place", LAWS.items())
def test_right_code_breaks_no_law(place):
    right = {"reference": items()[place].right, **styles(*place.split("."))}
    assert {slug: found for slug in laws_of(place) if (found := told(place, slug, right))} == {}


@pytest.mark.parametrize("place", LAWS.items())
@pytest.mark.parametrize("known", [pitfalls.variants, pytest.param(pitfalls.forms, marks=pytest.mark.soak)])
def test_no_other_mistake_breaks_a_law(place, known):
    wrong = known(*place.split("."))
    for slug in laws_of(place):
        others = {name: code for name, code in wrong.items() if name.partition("/")[0] != slug}
        assert told(place, slug, others) == set(), slug


SOME_FORMS = [  # of each item, and one in twelve of all
    pytest.param(*form, marks=() if number % 12 == 0 or form[0] != FORMS[number - 1][0] else pytest.mark.soak)
    for number, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("place", "name"), SOME_FORMS)
def test_a_form_loses_points_and_gets_the_name_of_its_mistake(place, name):
    assignment, item = place.split(".")
    code = pitfalls.forms(assignment, item)[name]
    row = judge(load_assignment(COURSE, assignment), item, "pitfall", name, code, PUBLIC_SECRET, Memory())
    assert row.score < row.max_score
    assert set(row.slugs.values()) == {name.partition("/")[0]}


def test_laws_ask_a_function_for_the_same_output_once_and_each_function_anew():
    asked = []

    def attend(tested, Q, K, V, mask):
        asked.append(tested)
        return tested(Q) @ V[: Q.shape[-1]]

    def one(Q):
        return Q

    def other(Q):
        return 2 * Q

    head = one_head.Head(attend)
    Q, K, V = np.eye(3), np.eye(3), np.eye(3)
    for tested in (one, other, one):
        output = replace(head, tested=tested).output(Q, K, V)
        assert (output == tested(Q)).all()
    assert asked == [one, other]
    replace(head, tested=one).output(Q, K, V, np.ones((3, 3), dtype=bool))
    replace(head, tested=one).output(Q, K, V.astype(np.float32))
    assert asked == [one, other, one, one]
