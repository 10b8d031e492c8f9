import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mha_lib.attention import attention, softmax

sizes = st.integers(1, 5)
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_softmax_equals_torch_on_every_axis(rng, axis):
    x = rng.normal(size=(3, 5, 7), scale=4)
    expected = torch.softmax(torch.from_numpy(x), dim=axis).numpy()
    np.testing.assert_allclose(softmax(x, axis=axis), expected, atol=1e-12)


def test_softmax_defaults_to_the_last_axis(rng):
    x = rng.normal(size=(2, 3, 5))
    np.testing.assert_array_equal(softmax(x), softmax(x, axis=2))


@pytest.mark.parametrize("size", [1e4, 1e300])
def test_softmax_of_rows_that_lie_far_apart(size):
    x = np.array([[0.0, 1.0, 3.0], [size, size, size], [-size, -size, -size], [-size / 2, size / 2, 0.0]])
    e = np.exp([0.0, 1.0, 3.0])
    expected = np.array([e / e.sum(), [1 / 3] * 3, [1 / 3] * 3, [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(softmax(x), expected, atol=1e-15)


def test_softmax_gives_weight_zero_to_minus_infinity():
    np.testing.assert_array_equal(softmax(np.array([-np.inf, 2.0, -np.inf, 2.0])), [0.0, 0.5, 0.0, 0.5])


def test_softmax_of_integers():
    np.testing.assert_allclose(softmax(np.array([[7, 7], [0, 0]])), 0.5)


@given(arrays(np.float64, array_shapes(max_dims=4, max_side=5), elements=st.floats(-1e4, 1e4)), st.data())
def test_softmax_is_a_distribution(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    weights = softmax(x, axis=axis)
    assert weights.shape == x.shape
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=axis), 1.0)


@given(arrays(np.float64, (3, 4), elements=st.floats(-50, 50)), st.floats(-1e4, 1e4))
def test_softmax_does_not_change_when_all_logits_are_shifted(x, shift):
    np.testing.assert_allclose(softmax(x + shift), softmax(x), atol=1e-9)


def random_case(rng, leading=(2, 3), n=5, m=7, d_k=4, d_v=6):
    """Q, K, V and a mask whose rows all keep a key."""
    Q = rng.normal(size=(*leading, n, d_k))
    K = rng.normal(size=(*leading, m, d_k))
    V = rng.normal(size=(*leading, m, d_v))
    mask = rng.random((n, m)) < 0.6
    mask[np.arange(n), rng.integers(m, size=n)] = True
    return Q, K, V, mask


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 3, 1, 2)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_torch(rng, leading, masked):
    Q, K, V, mask = random_case(rng, leading)
    mask = mask if masked else None
    output, weights = attention(Q, K, V, mask)
    tensors = [torch.from_numpy(a) for a in (Q, K, V)]
    keep = None if mask is None else torch.from_numpy(mask)
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=keep).numpy()
    assert weights.shape == (*leading, 5, 7)
    np.testing.assert_allclose(output, expected, atol=1e-12)
    np.testing.assert_allclose(weights @ V, expected, atol=1e-12)


def test_attention_by_hand_with_one_query_at_a_time(rng):
    Q, K, V, mask = random_case(rng, leading=())
    output, weights = attention(Q, K, V, mask)
    for i in range(5):
        kept = np.flatnonzero(mask[i])
        e = np.array([np.exp(sum(Q[i] * K[j]) / 2.0) for j in kept])  # √d_k = 2
        np.testing.assert_allclose(weights[i, kept], e / e.sum(), atol=1e-12)
        np.testing.assert_allclose(output[i], sum(w * V[j] for w, j in zip(e / e.sum(), kept, strict=True)))
        assert (weights[i, ~mask[i]] == 0).all()


def test_attention_with_a_mask_for_each_sequence_equals_attention_sequence_by_sequence(rng):
    Q, K, V, _ = random_case(rng)
    mask = rng.random((2, 1, 5, 7)) < 0.6
    mask[..., 0] = True
    output, weights = attention(Q, K, V, mask)
    for b in range(2):
        expected, expected_weights = attention(Q[b], K[b], V[b], mask[b])
        np.testing.assert_allclose(output[b], expected, atol=1e-12)
        np.testing.assert_allclose(weights[b], expected_weights, atol=1e-12)


def test_attention_with_scores_of_a_thousand_and_more(rng):
    Q, K, V, mask = random_case(rng)
    Q, K = 40 * Q, 40 * K
    tensors = [torch.from_numpy(a) for a in (Q, K, V)]
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=torch.from_numpy(mask))
    np.testing.assert_allclose(attention(Q, K, V, mask)[0], expected.numpy(), atol=1e-9)


def test_attention_in_a_row_whose_kept_scores_are_all_very_low():
    Q, K = np.array([[2.0]]), np.array([[-1e4], [-1e4], [-1e4]])
    V = np.array([[3.0], [5.0], [100.0]])
    output, weights = attention(Q, K, V, np.array([[True, True, False]]))
    np.testing.assert_array_equal(weights, [[0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(output, [[4.0]])


@given(sizes, sizes, sizes, sizes, seeds)
def test_weights_of_every_query_sum_to_one_and_masked_keys_get_none(n, m, d_k, d_v, seed):
    Q, K, V, mask = random_case(np.random.default_rng(seed), (2,), n, m, d_k, d_v)
    output, weights = attention(Q, K, V, mask)
    assert output.shape == (2, n, d_v)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    assert (weights[:, ~mask] == 0).all()


@given(sizes, sizes, seeds)
def test_keys_and_values_may_come_in_any_order(n, m, seed):
    rng = np.random.default_rng(seed)
    Q, K, V, mask = random_case(rng, (2,), n, m)
    order = rng.permutation(m)
    expected, expected_weights = attention(Q, K, V, mask)
    output, weights = attention(Q, K[:, order], V[:, order], mask[:, order])
    np.testing.assert_allclose(output, expected, atol=1e-12)
    np.testing.assert_allclose(weights, expected_weights[..., order], atol=1e-12)


@given(sizes, sizes, seeds)
def test_what_a_masked_key_and_its_value_hold_does_not_matter(n, m, seed):
    rng = np.random.default_rng(seed)
    Q, K, V, mask = random_case(rng, (), n, m + 1)
    mask[:, 0], mask[:, 1] = False, True
    before, _ = attention(Q, K, V, mask)
    K[0], V[0] = rng.normal(size=4, scale=9), rng.normal(size=6, scale=9)
    np.testing.assert_array_equal(attention(Q, K, V, mask)[0], before)


def test_inputs_are_not_changed(rng):
    arguments = random_case(rng)
    copies = [a.copy() for a in arguments]
    attention(*arguments)
    softmax(arguments[0])
    for argument, copy in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(argument, copy)
