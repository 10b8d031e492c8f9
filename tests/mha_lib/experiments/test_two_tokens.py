from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from mha_lib.experiments.two_tokens import (
    named_by_weights_that_speak,
    pairs_of,
    smaller_and_larger,
)


def most_second_tokens(vocabulary, first_weight):
    """Of how many ordered pairs a linear read-out can name the second token at most.

    Every set of pairs is tried, the large ones first; whether some read-out names the second token of all pairs
    of a set is a linear program. So it is exact, and slow beyond three tokens.
    """
    pairs = [(int(s), int(t)) for s, t in pairs_of(vocabulary)]
    for size in range(len(pairs), 0, -1):
        if any(some_read_out_names(chosen, vocabulary, first_weight) for chosen in combinations(pairs, size)):
            return size
    return 0


def some_read_out_names(pairs, vocabulary, first_weight):
    """Whether one matrix and bias put the second token of each pair ahead of all other tokens, by 1 or more."""
    rows = []
    for first, second in pairs:
        mixture = first_weight * np.eye(vocabulary)[first] + (1 - first_weight) * np.eye(vocabulary)[second]
        features = np.append(mixture, 1.0)  # the 1 is for the bias
        for other in set(range(vocabulary)) - {second}:
            sign = np.eye(vocabulary)[other] - np.eye(vocabulary)[second]  # (vocabulary,)
            rows.append(np.outer(sign, features).ravel())
    unknowns = vocabulary * (vocabulary + 1)
    found = linprog(np.zeros(unknowns), A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=(None, None))
    return bool(found.status == 0)


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
