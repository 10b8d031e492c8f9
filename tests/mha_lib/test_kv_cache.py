import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mha_lib.kv_cache import CachedAttention, kv_cache_bytes
from mha_lib.multi_head import causal_multi_head_attention

seeds = st.integers(0, 2**32 - 1)


def random_weights(rng, d_model):
    return [rng.normal(size=(d_model, d_model)) / np.sqrt(d_model) for _ in range(4)]


def by_torch(X, W_Q, W_K, W_V, W_O, num_heads):
    """PyTorch's own layer under its own causal mask, on the whole sequence."""
    W_Q, W_K, W_V, W_O = (torch.from_numpy(W.T.copy()) for W in (W_Q, W_K, W_V, W_O))
    layer = nn.MultiheadAttention(len(W_O), num_heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([W_Q, W_K, W_V]))
        layer.out_proj.weight.copy_(W_O)
        mask = nn.Transformer.generate_square_subsequent_mask(X.shape[1], dtype=torch.float64)
        x = torch.from_numpy(X)
        return layer.eval()(x, x, x, attn_mask=mask, need_weights=False)[0].numpy()


def in_chunks(layer, X, sizes):
    ends = np.cumsum(sizes)
    return np.concatenate(
        [layer.forward(X[:, end - t : end]) for t, end in zip(sizes, ends, strict=True)], axis=1
    )


@pytest.mark.parametrize("sizes", [[7], [1] * 7, [3, 4], [1, 5, 1], [2, 2, 2, 1]])
def test_any_chunks_equal_torch_on_the_whole(rng, sizes):
    X, weights = rng.normal(size=(2, 7, 12)), random_weights(rng, 12)
    got = in_chunks(CachedAttention(*weights, num_heads=3), X, sizes)
    np.testing.assert_allclose(got, by_torch(X, *weights, 3), atol=1e-12)


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 3))
def test_any_chunks_equal_causal_attention_on_the_whole(seed, sizes, num_heads, batch):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(batch, sum(sizes), num_heads * 2)), random_weights(rng, num_heads * 2)
    got = in_chunks(CachedAttention(*weights, num_heads), X, sizes)
    expected = causal_multi_head_attention(X, *weights, num_heads)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_after_a_reset_nothing_is_remembered_and_another_batch_may_come(rng):
    weights = random_weights(rng, 6)
    layer = CachedAttention(*weights, num_heads=2)
    layer.forward(rng.normal(size=(3, 4, 6)))
    layer.reset()
    X = rng.normal(size=(2, 5, 6))
    np.testing.assert_allclose(in_chunks(layer, X, [2, 3]), by_torch(X, *weights, 2), atol=1e-12)


def test_each_layer_remembers_by_itself(rng):
    X, weights, others = rng.normal(size=(2, 5, 6)), random_weights(rng, 6), random_weights(rng, 6)
    layer, other = CachedAttention(*weights, num_heads=2), CachedAttention(*others, num_heads=3)
    outputs = []
    for end in range(1, 6):
        outputs.append(layer.forward(X[:, end - 1 : end]))
        other.forward(X[:, end - 1 : end])
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), by_torch(X, *weights, 2), atol=1e-12)


def test_chunks_and_weights_are_not_changed(rng):
    arrays = [rng.normal(size=(2, 5, 6)), *random_weights(rng, 6)]
    copies = [array.copy() for array in arrays]
    layer = CachedAttention(*arrays[1:], num_heads=2)
    layer.forward(arrays[0])
    layer.forward(arrays[0])
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_the_cache_is_as_large_as_is_counted(rng):
    batch, n, num_heads, d_k = 3, 5, 2, 4
    layer = CachedAttention(*random_weights(rng, num_heads * d_k), num_heads)
    layer.forward(rng.normal(size=(batch, n, num_heads * d_k)))
    assert layer.K.nbytes + layer.V.nbytes == kv_cache_bytes(batch, n, 1, num_heads, d_k, bytes_per_value=8)


@pytest.mark.parametrize(
    ("sizes", "gibibytes"),
    [
        ((1, 4096, 32, 32, 128), 2.0),  # Llama 2 7B
        ((1, 4096, 80, 8, 128), 1.25),  # Llama 2 70B, which shares each key head among eight query heads
        ((64, 2**20, 126, 8, 128, 1), 64 * 2**20 * 126 * 8 * 128 * 2 / 2**30),
    ],
)
def test_known_models(sizes, gibibytes):
    assert type(kv_cache_bytes(*sizes)) is int
    assert kv_cache_bytes(*sizes) == gibibytes * 2**30
