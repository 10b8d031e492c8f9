import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from mha_lib.multi_head import multi_head_attention
from mha_lib.pruning import prune_heads, pruned_attention


def random_weights(rng, d_model, num_heads, d_k):
    into, out = (d_model, num_heads * d_k), (num_heads * d_k, d_model)
    return [rng.normal(size=size) / np.sqrt(d_model) for size in (into, into, into, out)]


def by_torch(X, W_Q, W_K, W_V, W_O, num_heads, removed=()):
    """PyTorch's kernel; what the removed heads would add is set to zero before W_O."""
    X, W_Q, W_K, W_V, W_O = (torch.from_numpy(array) for array in (X, W_Q, W_K, W_V, W_O))
    Q, K, V = ((X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2) for W in (W_Q, W_K, W_V))
    heads = scaled_dot_product_attention(Q, K, V)
    heads[:, list(removed)] = 0.0
    return (heads.transpose(1, 2).flatten(2) @ W_O).numpy()


@pytest.mark.parametrize("num_heads", [1, 3, 5])
def test_attention_of_any_width_equals_torch(rng, num_heads):
    X, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12, num_heads, d_k=4)
    np.testing.assert_allclose(
        pruned_attention(X, *weights, num_heads), by_torch(X, *weights, num_heads), atol=1e-12
    )


def test_at_full_width_it_is_multi_head_attention(rng):
    X, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12, num_heads=3, d_k=4)
    np.testing.assert_array_equal(
        pruned_attention(X, *weights, 3), multi_head_attention(X, *weights, num_heads=3)
    )


@given(st.integers(0, 2**32 - 1), st.permutations(range(5)), st.integers(0, 4), st.integers(1, 3))
def test_a_pruned_layer_is_the_full_one_with_those_heads_silent(seed, order, count, d_k):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(2, 4, 6)), random_weights(rng, 6, num_heads=5, d_k=d_k)
    removed = order[:count]
    *smaller, left = prune_heads(*weights, num_heads=5, heads=removed)
    assert type(left) is int
    assert left == 5 - count
    assert [W.shape for W in smaller] == [(6, left * d_k)] * 3 + [(left * d_k, 6)]
    expected = by_torch(X, *weights, 5, removed)
    np.testing.assert_allclose(pruned_attention(X, *smaller, left), expected, atol=1e-12)


def test_a_pruned_layer_can_be_pruned_again(rng):
    X, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12, num_heads=4, d_k=3)
    twice = prune_heads(*prune_heads(*weights, 4, heads=[1]), heads=[2])  # 2 is what was head 3
    expected = by_torch(X, *weights, 4, removed=[1, 3])
    np.testing.assert_allclose(pruned_attention(X, *twice), expected, atol=1e-12)


def test_inputs_are_not_changed_and_not_shared(rng):
    weights, heads = random_weights(rng, 6, num_heads=3, d_k=2), [2, 0]
    copies = [W.copy() for W in weights]
    for W in prune_heads(*weights, 3, heads)[:4]:
        W += 1.0
    assert heads == [2, 0]
    for W, copy in zip(weights, copies, strict=True):
        np.testing.assert_array_equal(W, copy)
