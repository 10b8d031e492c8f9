import numpy as np
import pytest
import torch

from mha_lib.attention import attention
from mha_lib.experiments.head_symmetry import MATRICES, Head, map_distance, start, train_pair
from mha_lib.experiments.one_layer import CONTENT, N


def test_a_head_is_its_attention_times_its_block(rng):
    torch.manual_seed(0)
    head = Head(d_in=5, d_k=3, d_out=4)
    x = rng.normal(size=(2, 6, 5))
    W_Q, W_K, W_V, W_O = (getattr(head, name).detach().numpy() for name in MATRICES)
    expected, expected_weights = attention(x @ W_Q, x @ W_K, x @ W_V)
    output, weights = head(torch.from_numpy(x))
    assert np.allclose(output.detach().numpy(), expected @ W_O)
    assert np.allclose(weights.detach().numpy(), expected_weights)


def test_a_pair_starts_the_given_share_of_the_way_apart():
    def started(apart, **kwargs):
        torch.manual_seed(5)
        return start(apart, d_k=3, d_out=7, **kwargs)

    first, independent = started(1.0)
    _, between = started(0.25)
    _, only = started(0.25, differ_in=("W_O",))
    assert first.W_Q.shape == (CONTENT + N, 3)
    for name in MATRICES:
        a, b = getattr(first, name), getattr(independent, name)
        assert not torch.equal(a, b)
        assert torch.allclose(getattr(between, name), 0.75 * a + 0.25 * b)
        assert torch.equal(getattr(only, name), getattr(between, name) if name == "W_O" else a)


@pytest.mark.parametrize("d_k", [3, 20])
def test_heads_that_start_equal_stay_equal_to_the_last_bit(d_k):
    pair = train_pair(0, d_k, steps=60)
    assert pair.parameters == 0
    assert not pair.distance.any()
    assert np.array_equal(*pair.weights)


@pytest.mark.parametrize("differ_in", [("W_O",), ("W_Q",), MATRICES])
def test_a_difference_in_any_matrix_grows_and_both_tokens_are_named(differ_in):
    pair = train_pair(1e-3, differ_in=differ_in, steps=200)
    assert pair.distance[0] < 1e-3
    assert pair.distance[-1] > 0.6
    assert pair.all_right > 0.95
    assert pair.weights.shape == (2, N, N)
    assert len(pair.distance) == 201


def test_asked_for_one_token_both_heads_look_at_it():
    pair = train_pair(1, offsets=(-1,), steps=200)
    on_previous = [np.roll(weights, 1, axis=1).diagonal().mean() for weights in pair.weights]
    assert min(on_previous) > 0.4
    assert pair.all_right > 0.99


def test_the_distance_of_weights_is_the_share_that_has_to_move():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    other = torch.tensor([[0.0, 0.0, 1.0], [0.5, 0.25, 0.25]])
    assert map_distance(weights, other) == pytest.approx((1 + 0.25) / 2)
    assert map_distance(other, other) == 0
