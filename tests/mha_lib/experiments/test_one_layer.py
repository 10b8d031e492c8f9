import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_lib.attention import softmax
from mha_lib.experiments.one_layer import (
    CONTENT,
    CONTENT_OFFSETS,
    D_MODEL,
    AttentionLayer,
    N,
    at_offsets,
    best_explained_variance,
    recall_contents,
)


def pointing_at(offsets, n):
    """Weights (heads, n, n) with one head for each offset."""
    return np.stack([np.roll(np.eye(n), offset, axis=1) for offset in offsets])


@given(seed=st.integers(0, 10**6), heads=st.integers(1, 5), sharpness=st.floats(0, 30))
def test_no_position_only_weights_explain_more_than_heads_over_offsets(seed, heads, sharpness):
    logits = sharpness * np.random.default_rng(seed).normal(size=(heads, 7, 7))
    assert best_explained_variance(softmax(logits), (-1, 2, 3)) <= min(1, heads / 3) + 1e-9


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_a_head_for_an_offset_reaches_the_bound(heads):
    offsets = (-1, 2, 3)
    assert best_explained_variance(pointing_at(offsets[:heads], 7), offsets) == pytest.approx(heads / 3)


def test_blending_the_offsets_in_one_head_is_as_good_as_pointing_at_one():
    offsets = (-1, 2, 3)
    blend = np.tensordot([0.5, 0.3, 0.2], pointing_at(offsets, 7), axes=1)[None]  # (1, 7, 7)
    assert best_explained_variance(blend, offsets) == pytest.approx(1 / 3)


def test_weight_on_positions_that_nobody_asked_for_is_lost():
    uniform = np.full((1, 7, 7), 1 / 7)
    assert best_explained_variance(uniform, (-1, 2, 3)) == pytest.approx(1 / 7)


def test_a_second_head_equal_to_the_first_adds_nothing():
    twice = np.repeat(pointing_at((2,), 7), 2, axis=0)
    assert best_explained_variance(twice, (-1, 2, 3)) == pytest.approx(1 / 3)


def test_the_exact_share_is_what_a_least_squares_fit_finds(rng):
    weights = softmax(rng.normal(size=(2, 5, 5)))
    contents = rng.normal(size=(50_000, 5))
    squared_error = 0.0
    for i in range(5):
        mixtures, target = contents @ weights[:, i].T, contents[:, [(i - 1) % 5, (i + 2) % 5, (i + 3) % 5]]
        squared_error += np.linalg.lstsq(mixtures, target)[1].sum()
    fitted = 1 - squared_error / (50_000 * 5 * 3)
    assert best_explained_variance(weights, (-1, 2, 3)) == pytest.approx(fitted, abs=0.01)


def test_offsets_count_around_the_end():
    x = torch.arange(5)[None, :, None] * torch.tensor([1, 10])  # (1, 5, 2)
    assert at_offsets(x, (-2, 1))[0, 4].tolist() == [[2, 20], [0, 0]]


@pytest.mark.parametrize("hidden", [0, 12])
def test_every_number_of_heads_has_the_same_parameters(hidden):
    counts = {
        sum(p.numel() for p in AttentionLayer(6, heads, 5, hidden).parameters()) for heads in (1, 2, 8, 32)
    }
    assert len(counts) == 1


def test_values_come_from_x_and_weights_from_where():
    torch.manual_seed(0)
    layer = AttentionLayer(6, 2, 5)
    x, other, where = torch.randn(3, 3, 4, 6)
    (output, weights), (other_output, other_weights) = layer(x, where), layer(other, where)
    assert torch.equal(weights, other_weights)
    assert not torch.allclose(output, other_output)
    assert weights.shape == (3, 2, 4, 4)


def test_position_only_weights_are_the_same_for_every_sequence_and_within_the_bound():
    result = recall_contents(2, steps=60)
    assert result.weights.shape == (2, N, N)
    assert best_explained_variance(result.weights, CONTENT_OFFSETS) <= 2 / 4 + 1e-6
    assert result.explained <= best_explained_variance(result.weights, CONTENT_OFFSETS) + 0.01


def test_a_seed_gives_the_same_numbers_again_and_leaves_the_callers_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, again, other = (recall_contents(1, True, steps=5, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(torch.rand(1), expected)
    assert first.explained == again.explained
    assert np.array_equal(first.weights, again.weights)
    assert first.explained != other.explained


def test_the_layer_has_room_for_every_content_that_is_asked_for():
    assert len(CONTENT_OFFSETS) * CONTENT == D_MODEL
