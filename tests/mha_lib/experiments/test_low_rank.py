import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_lib.attention import attention, softmax
from mha_lib.experiments.low_rank import (
    centred_logs,
    closest_head,
    head_weights,
    misplaced_weight,
    pointing_head,
    trained_head,
)


def random_case(rng, n=6, d_model=9):
    return rng.normal(size=(n, d_model)), softmax(rng.normal(size=(n, n)))


def test_the_weights_are_those_of_attention(rng):
    X, W_Q, W_K = rng.normal(size=(5, 7)), rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    assert np.allclose(head_weights(X, W_Q, W_K), attention(X @ W_Q, X @ W_K, X)[1])


@given(seed=st.integers(0, 10**6), n=st.integers(2, 8))
def test_width_n_minus_1_forms_any_positive_weights_exactly(seed, n):
    X, P = random_case(np.random.default_rng(seed), n, n + 3)
    assert np.allclose(head_weights(X, *closest_head(P, X, n - 1)), P, atol=1e-9)


@given(seed=st.integers(0, 10**6), d_k=st.integers(1, 4))
def test_no_head_is_closer_in_centred_logs_than_the_closest_one(seed, d_k):
    rng = np.random.default_rng(seed)
    X, P = random_case(rng)

    def squares(W_Q, W_K):
        return np.square(centred_logs(head_weights(X, W_Q, W_K)) - centred_logs(P)).sum()

    W_Q, W_K = closest_head(P, X, d_k)
    assert W_Q.shape == W_K.shape == (9, d_k)
    best = squares(W_Q, W_K)
    assert best == pytest.approx(np.square(np.linalg.svd(centred_logs(P))[1][d_k:]).sum())
    for size in (1e-3, 1e-1, 1):
        near = W_Q + size * rng.normal(size=W_Q.shape), W_K + size * rng.normal(size=W_K.shape)
        assert squares(*near) >= best


def test_centred_logs_give_the_weights_back_and_lose_one_rank(rng):
    _, P = random_case(rng)
    assert np.allclose(softmax(centred_logs(P)), P)
    assert np.linalg.matrix_rank(np.log(P)) == 6
    assert np.linalg.matrix_rank(centred_logs(P)) == 5


def test_two_dimensions_point_at_any_keys_also_at_one_twice(rng):
    X, _ = random_case(rng)
    targets = np.array([3, 0, 5, 5, 1, 2])
    assert misplaced_weight(np.eye(6)[targets], head_weights(X, *pointing_head(targets, X))) < 1e-9


@given(seed=st.integers(0, 10**6), length=st.floats(0.1, 1e3))
def test_a_head_of_width_1_has_its_largest_weight_on_one_of_two_keys(seed, length):
    rng = np.random.default_rng(seed)
    X, _ = random_case(rng)
    W_Q, W_K = length * rng.normal(size=(9, 1)), rng.normal(size=(9, 1))
    scores = (X @ W_Q) @ (X @ W_K).T
    assert len(set(scores.argmax(axis=1))) <= 2


def test_training_needs_width_for_blends_and_two_dimensions_for_pointing(rng):
    X, P = random_case(rng)
    narrow, wide = (misplaced_weight(P, head_weights(X, *trained_head(P, X, d_k))) for d_k in (1, 5))
    assert wide < 0.02 < 0.1 < narrow
    pointing = np.eye(6)[rng.permutation(6)]
    line, plane = (
        misplaced_weight(pointing, head_weights(X, *trained_head(pointing, X, d_k))) for d_k in (1, 2)
    )
    assert plane < 0.05 < 0.4 < line


def test_misplaced_weight_is_0_for_equal_and_1_for_disjoint_weights():
    P = np.array([[1.0, 0, 0], [0, 0.5, 0.5]])
    Q = np.array([[0.0, 1, 0], [0, 0.5, 0.5]])
    assert misplaced_weight(P, P) == 0
    assert misplaced_weight(P, Q) == 0.5
