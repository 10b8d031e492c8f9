import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from mha_lib.counting import count_parameters
from mha_lib.grouped_query import grouped_query_attention
from mha_lib.multi_head import multi_head_attention

seeds = st.integers(0, 2**32 - 1)


def random_weights(rng, num_heads, num_kv_heads, d_k):
    d_model = num_heads * d_k
    widths = [d_model, num_kv_heads * d_k, num_kv_heads * d_k, d_model]
    return [rng.normal(size=(d_model, width)) / np.sqrt(d_model) for width in widths]


def by_torch(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads):
    """PyTorch's kernel, which itself pairs query heads with the fewer key heads."""
    X, W_Q, W_K, W_V, W_O = (torch.from_numpy(array) for array in (X, W_Q, W_K, W_V, W_O))
    Q = (X @ W_Q).unflatten(-1, (num_heads, -1)).transpose(1, 2)
    K, V = ((X @ W).unflatten(-1, (num_kv_heads, -1)).transpose(1, 2) for W in (W_K, W_V))
    heads = scaled_dot_product_attention(Q, K, V, enable_gqa=True)
    return (heads.transpose(1, 2).flatten(2) @ W_O).numpy()


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
def test_it_equals_torch(rng, num_kv_heads):
    X, weights = rng.normal(size=(2, 5, 24)), random_weights(rng, 6, num_kv_heads, d_k=4)
    expected = by_torch(X, *weights, 6, num_kv_heads)
    got = grouped_query_attention(X, *weights, num_heads=6, num_kv_heads=num_kv_heads)
    np.testing.assert_allclose(got, expected, atol=1e-12)


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_it_is_multi_head_attention_with_the_shared_columns_written_out(seed, num_kv_heads, group, d_k):
    rng = np.random.default_rng(seed)
    num_heads = num_kv_heads * group
    W_Q, W_K, W_V, W_O = random_weights(rng, num_heads, num_kv_heads, d_k)
    X = rng.normal(size=(2, 4, num_heads * d_k))
    of_head = [slice(i // group * d_k, (i // group + 1) * d_k) for i in range(num_heads)]
    full_K, full_V = (np.concatenate([W[:, columns] for columns in of_head], axis=1) for W in (W_K, W_V))
    expected = multi_head_attention(X, W_Q, full_K, full_V, W_O, num_heads)
    got = grouped_query_attention(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_a_head_of_values_reaches_its_own_query_heads_only(rng):
    W_Q, W_K, W_V, _ = random_weights(rng, num_heads=6, num_kv_heads=3, d_k=2)
    X, other = rng.normal(size=(2, 5, 12)), W_V.copy()
    other[:, 2:4] += 1.0  # value head 1 belongs to the query heads 2 and 3: columns 4 … 7
    first, second = (grouped_query_attention(X, W_Q, W_K, W, np.eye(12), 6, 3) for W in (W_V, other))
    assert (np.abs(first - second).max(axis=(0, 1)) > 0.1).tolist() == [4 <= c < 8 for c in range(12)]


def test_its_weights_are_as_many_as_are_counted(rng):
    weights = random_weights(rng, num_heads=6, num_kv_heads=2, d_k=4)
    assert sum(W.size for W in weights) == count_parameters(24, num_heads=6, num_kv_heads=2)


def test_inputs_are_not_changed(rng):
    arrays = [rng.normal(size=(2, 5, 12)), *random_weights(rng, num_heads=6, num_kv_heads=3, d_k=2)]
    copies = [array.copy() for array in arrays]
    grouped_query_attention(*arrays, 6, 3)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
