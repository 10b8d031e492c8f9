"""Rotary positions against complex numbers and whole matrices; the sliding window against a loop."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_lib.masks import causal_mask
from mha_lib.positions import rotary, sliding_window_mask

widths = st.integers(1, 6).map(lambda half: 2 * half)


def tokens(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_complex_numbers(x, positions, base):
    """Each pair as one complex number, times e^(i · angle)."""
    half = x.shape[-1] // 2
    angles = positions[..., None] * torch.tensor([base ** (-2 * i / (2 * half)) for i in range(half)])
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * angles.double()).unsqueeze(-3)
    return torch.cat([turned.real, turned.imag], dim=-1)


def by_matrices(vector, position, base):
    """One (d_k, d_k) rotation matrix for one token, written out entry by entry."""
    d_k = len(vector)
    matrix = torch.zeros(d_k, d_k, dtype=torch.float64)
    for i in range(d_k // 2):
        angle = torch.tensor(position * base ** (-2 * i / d_k), dtype=torch.float64)
        j = i + d_k // 2
        matrix[i, i] = matrix[j, j] = angle.cos()
        matrix[i, j], matrix[j, i] = -angle.sin(), angle.sin()
    return matrix @ vector


@given(widths, st.integers(0, 1000), st.sampled_from([10000.0, 500.0, 1e6]))
def test_rotary_is_multiplication_by_a_complex_number(d_k, start, base):
    x, positions = tokens(2, 3, 5, d_k), torch.arange(start, start + 5)
    assert torch.allclose(rotary(x, positions, base), by_complex_numbers(x, positions, base), atol=1e-4)


@pytest.mark.parametrize("d_k", [2, 4, 6, 10])
def test_rotary_is_a_rotation_matrix_for_each_token(d_k):
    x, positions = tokens(2, 3, 4, d_k), torch.tensor([0, 7, 3, 50])
    turned = rotary(x, positions, base=100.0)
    for b in range(2):
        for head in range(3):
            for i, position in enumerate(positions.tolist()):
                expected = by_matrices(x[b, head, i], position, 100.0)
                assert torch.allclose(turned[b, head, i], expected, atol=1e-12)


def test_each_sequence_may_have_positions_of_its_own():
    x, positions = tokens(2, 3, 5, 6), torch.tensor([[0, 1, 2, 3, 4], [9, 2, 2, 30, 7]])
    turned = rotary(x, positions)
    for b in range(2):
        assert torch.equal(turned[[b]], rotary(x[[b]], positions[b]))


@given(widths, st.integers(0, 50), st.integers(-20, 20))
def test_scores_depend_on_the_distance_alone_and_lengths_do_not_change(d_k, start, distance):
    q, k = tokens(1, 2, 1, d_k, seed=1), tokens(1, 2, 1, d_k, seed=2)

    def score(position):
        here, there = torch.tensor([position]), torch.tensor([position + distance])
        return rotary(q, here) @ rotary(k, there).mT

    assert torch.allclose(score(20), score(20 + start), atol=1e-9)
    assert torch.allclose(rotary(q, torch.tensor([start])).norm(dim=-1), q.norm(dim=-1))


def test_turning_twice_adds_positions_and_position_0_changes_nothing():
    x, positions = tokens(2, 3, 5, 6), torch.arange(5)
    assert torch.equal(rotary(x, 0 * positions), x)
    assert torch.allclose(rotary(rotary(x, positions), 3 * positions), rotary(x, 4 * positions))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_stays_and_far_positions_are_not_rounded(dtype):
    x, positions = tokens(1, 2, 3, 8), torch.tensor([0, 1000, 100_001])
    turned = rotary(x.to(dtype), positions)
    assert turned.dtype == dtype
    tolerance = 8 * torch.finfo(dtype).eps
    assert torch.allclose(turned.double(), rotary(x, positions), atol=tolerance, rtol=tolerance)


def test_the_gradient_is_turned_back():
    x, positions = tokens(2, 3, 4, 6).requires_grad_(), torch.tensor([0, 1, 5, 9])
    assert torch.autograd.gradcheck(lambda x: rotary(x, positions), x)
    cotangent = tokens(2, 3, 4, 6, seed=3)
    (gradient,) = torch.autograd.grad(rotary(x, positions), x, cotangent)
    assert torch.allclose(gradient, rotary(cotangent, -positions))


def test_an_odd_width_is_told_with_the_number():
    with pytest.raises(ValueError, match="d_k=5 is odd"):
        rotary(tokens(1, 1, 2, 5), torch.arange(2))


@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 9))
def test_the_window_equals_a_loop(n, more, window):
    m = n + more
    mask = sliding_window_mask(n, m, window)
    assert mask.dtype == torch.bool
    assert mask.shape == (n, m)
    for i in range(n):
        own = i + m - n  # the key that lines up with query i
        assert mask[i].nonzero().flatten().tolist() == list(range(max(0, own - window + 1), own + 1))


@given(st.integers(1, 6), st.integers(0, 6))
def test_a_window_over_everything_is_the_causal_mask_and_one_of_1_the_token_itself(n, more):
    assert torch.equal(sliding_window_mask(n, n + more, n + more), torch.from_numpy(causal_mask(n, n + more)))
    assert torch.equal(sliding_window_mask(n, n, 1), torch.eye(n, dtype=torch.bool))


@pytest.mark.parametrize("window", [0, -3])
def test_a_window_without_keys_is_told_with_the_number(window):
    with pytest.raises(ValueError, match=f"window={window} "):
        sliding_window_mask(3, 4, window)
