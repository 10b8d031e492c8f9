"""The items that ask for short answers: what is right, what is wrong, and what is no answer."""

import numpy as np
import pytest
import torch

from .conftest import ITEMS

WRONG = {
    "single_head": {
        "variance": [10, 1, None, "100", True, [100], np.array([100.0]), float("nan"), 10**400, -(10**400)],
        "scaled_variance": [0.1, 100, 1j],
        "wrong_scale_deviation": [0.125, 8, 2.83],
        "wrong_scale_effect": ["a", "c", "", "ab", 1, b"b"],
        "one_head_share": [1, 0.25, float("inf")],
        "three_heads_share": [0.2, 3, 1],
        "wider_head": ["a", "b", {}],
        "half_and_half": ["a", "c"],
    },
    "transformer_block": {
        "pre_norm_of_nothing": ["b", "c", "", "ab", 1],
        "post_norm_of_nothing": ["a", "c", None],
        "norms_on_the_path": [0, 12, "24", True, float("nan"), 10**400],
        "size_with_depth": ["b", "c"],
        "mixing": ["b", "c"],
        "reach": [2, 6, 13, 18, [12], np.array([12.0])],
        "reach_with_heads": [12, 6, 3],
        "parameters": [3145728, 4 * 512**2, 3150336, 1j],  # without biases and norms; without the norms
    },
    "modern_heads": {
        "without_positions": ["a", "c", ""],
        "shifted": ["b", "c", 1],
        "wrong_pairs": ["a", "c", None],
        "window_reach": [40, 36, 8, 7, "35", float("nan")],
        "numbers_kept": [2048, 64, 4096 * 32, True],
        "numbers_kept_latent": [512, 4096, 10**400],
        "absorbed_scale": [16, 64, 45.25, 0.125],
        "largest_score": [1, 8, 144, [12]],
        "off_by_one": [1, 3, 0.25],
    },
    "real_heads": {
        "previous_layer": [1, None, "0", float("nan")],
        "previous_head": [3, 1],
        "next_layer": [2, 0],
        "next_head": [9, 7],
        "next_score": [0.61, 1.0, 0.55],
        "their_students": ["a", "c", 1],
        "agreement_head": [0, 2],
        "too_wide": ["a", "c", ""],
        "most_important": [10, 2],
        "key_bias": ["a", "b"],
    },
}
ROUNDED = {
    "single_head": {
        "wrong_scale_deviation": 0.354,
        "one_head_share": np.float32(0.2),
        "variance": np.int64(100),
        "three_heads_share": np.array(0.6),
        "wider_head": " C ",
    },
    "transformer_block": {
        "reach": 12.0,
        "norms_on_the_path": torch.tensor(24),
        "parameters": np.int64(3152384),
        "mixing": "A",
    },
    "modern_heads": {"window_reach": 35.0, "off_by_one": np.float32(0.75), "shifted": "A "},
    "real_heads": {"next_score": 0.59, "next_head": np.int64(8), "too_wide": " B "},
}
QUESTIONS = [(name, question) for name, questions in WRONG.items() for question in questions]


@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=".".join)
def test_a_wrong_answer_costs_its_own_point(loaded, lost_by, name, question):
    right = loaded[name].reference.answers
    for wrong in WRONG[name][question]:
        lost = lost_by(name, "answers", right | {question: wrong})
        assert lost == {question.replace("_", " ")}, wrong


def test_wrong_answers_are_tried_in_every_assignment_that_asks_for_answers():
    assert set(WRONG) == set(ROUNDED) == {name for name, item in ITEMS if item == "answers"}


@pytest.mark.parametrize("name", WRONG)
def test_every_question_is_graded(loaded, judge_item, name):
    right = loaded[name].reference.answers
    assert set(right) == set(WRONG[name])
    assert judge_item(name, "answers", right).score == len(right)


@pytest.mark.parametrize("name", WRONG)
def test_answers_may_be_rounded_and_written_large(loaded, lost_by, name):
    assert lost_by(name, "answers", loaded[name].reference.answers | ROUNDED[name]) == set()


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("junk", [None, [], "text", 3, {}, {1: 2}], ids=repr)
def test_answers_that_are_no_answers_earn_nothing(judge_item, name, junk):
    row = judge_item(name, "answers", junk)
    assert row.score == 0
    assert set(row.statuses.values()) == {"fail"}


def test_a_verdict_on_an_answer_says_what_was_answered_and_what_was_asked_for(judge_item):
    answers = dict.fromkeys(WRONG["single_head"], None) | {
        "variance": "ten",
        "wider_head": 3,
        "half_and_half": "a",
    }
    reasons = judge_item("single_head", "answers", answers | {"scaled_variance": 8}).reasons
    assert reasons["variance"].startswith("answers['variance'], which is 'ten', should be a number")
    assert reasons["wider head"].startswith("answers['wider_head'], which is 3, should be one letter")
    assert reasons["half and half"] == "answers['half_and_half'], which is 'a', is not the right choice"
    assert reasons["scaled variance"] == "answers['scaled_variance'], which is 8, is not the right number"
    assert reasons["one head share"] == "answers['one_head_share'] is empty"


@pytest.mark.parametrize("name", WRONG)
def test_a_verdict_on_an_answer_does_not_give_it_away(loaded, judge_item, name):
    row = judge_item(name, "answers", dict.fromkeys(WRONG[name], 7.5))
    text = " ".join(row.reasons.values())
    for question, answer in loaded[name].reference.answers.items():
        assert str(answer) not in text.replace(question, "").split()
