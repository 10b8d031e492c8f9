import numpy as np
import pytest

from mha_lib.experiments.two_tokens import (
    most_second_tokens,
    named_by_weights_that_speak,
    pairs_of,
    smaller_and_larger,
)


@pytest.mark.parametrize("vocabulary", [2, 3, 8, 11])
def test_equal_weights_name_the_smaller_and_the_larger_token_of_every_pair(vocabulary):
    assert np.array_equal(smaller_and_larger(vocabulary), np.sort(pairs_of(vocabulary), axis=1))


@pytest.mark.parametrize("first_weight", [0.5, 0.6, 0.9])
@pytest.mark.parametrize("vocabulary", [2, 3])
def test_a_head_that_looks_more_at_the_first_token_names_the_second_in_half_of_the_pairs_and_a_little_more(
    vocabulary, first_weight
):
    assert most_second_tokens(vocabulary, first_weight) == vocabulary * (vocabulary + 1) // 2


@pytest.mark.parametrize("vocabulary", [2, 3])
def test_the_token_with_the_larger_weight_can_always_be_named(vocabulary):
    assert most_second_tokens(vocabulary, 0.4) == vocabulary**2


def test_no_read_out_that_is_drawn_or_trained_beats_the_bound_with_eight_tokens():
    vocabulary, rng = 8, np.random.default_rng(0)
    pairs = pairs_of(vocabulary)
    best = 0
    for first_weight in (0.5, 0.6, 0.75):
        mixture = first_weight * np.eye(8)[pairs[:, 0]] + (1 - first_weight) * np.eye(8)[pairs[:, 1]]
        for start in (-np.eye(8), np.diag(np.arange(1.0, 9)), rng.normal(size=(8, 8))):
            read_out = start.copy()
            for _ in range(300):  # the perceptron's rule, on all pairs at once
                named = (mixture @ read_out).argmax(axis=1)
                best = max(best, int((named == pairs[:, 1]).sum()))
                wrong = np.eye(8)[pairs[:, 1]] - np.eye(8)[named]  # (pairs, 8)
                read_out += 0.03 * mixture.T @ wrong
    assert 28 <= best <= 36


@pytest.mark.parametrize("vocabulary", [2, 3, 8])
def test_weights_that_depend_on_the_tokens_name_both_tokens_of_every_pair(vocabulary):
    assert np.array_equal(named_by_weights_that_speak(vocabulary), pairs_of(vocabulary))
