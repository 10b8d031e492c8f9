import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mha_lib.masks import causal_mask, padding_mask
from mha_lib.multi_head import (
    causal_multi_head_attention,
    cross_attention,
    multi_head_attention,
    multi_head_attention_by_loop,
)

sizes = st.integers(1, 4)
seeds = st.integers(0, 2**32 - 1)


def random_weights(rng, d_model):
    return [rng.normal(size=(d_model, d_model)) / np.sqrt(d_model) for _ in range(4)]


def builtin_with(weights, num_heads):
    """PyTorch's own layer in float64 with these weights; its `nn.Linear` stores them transposed."""
    W_Q, W_K, W_V, W_O = (torch.from_numpy(W.T.copy()) for W in weights)
    layer = nn.MultiheadAttention(len(W_O), num_heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([W_Q, W_K, W_V]))
        layer.out_proj.weight.copy_(W_O)
    return layer.eval()


def run_builtin(layer, X, memory, mask=None):
    X, memory = torch.from_numpy(X), torch.from_numpy(memory)
    ignore = None if mask is None else torch.from_numpy(~mask)  # its True means "ignore"
    with torch.no_grad():
        return layer(X, memory, memory, attn_mask=ignore, need_weights=False)[0].numpy()


@pytest.mark.parametrize("num_heads", [1, 2, 3, 4, 12])
def test_self_attention_equals_torch(rng, num_heads):
    X, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    expected = run_builtin(builtin_with(weights, num_heads), X, X)
    np.testing.assert_allclose(multi_head_attention(X, *weights, num_heads), expected, atol=1e-12)


def test_causal_attention_equals_torch(rng):
    X, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    expected = run_builtin(builtin_with(weights, 3), X, X, causal_mask(5))
    np.testing.assert_allclose(causal_multi_head_attention(X, *weights, 3), expected, atol=1e-12)
    np.testing.assert_allclose(multi_head_attention(X, *weights, 3, causal_mask(5)), expected, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(5, 7), (7, 5), (1, 4)])
def test_cross_attention_equals_torch(rng, n, m):
    X, memory, weights = rng.normal(size=(2, n, 12)), rng.normal(size=(2, m, 12)), random_weights(rng, 12)
    expected = run_builtin(builtin_with(weights, 3), X, memory)
    np.testing.assert_allclose(cross_attention(X, memory, *weights, 3), expected, atol=1e-12)


def test_cross_attention_to_itself_is_self_attention(rng):
    X, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    np.testing.assert_allclose(cross_attention(X, X, *weights, 3), multi_head_attention(X, *weights, 3))


def test_a_mask_for_each_sequence_equals_running_the_sequences_apart(rng):
    X, weights = rng.normal(size=(3, 5, 12)), random_weights(rng, 12)
    lengths = [5, 2, 4]
    output = multi_head_attention(X, *weights, 2, padding_mask(np.array(lengths), 5))
    for b, length in enumerate(lengths):
        alone = multi_head_attention(X[b : b + 1, :length], *weights, 2)
        np.testing.assert_allclose(output[b, :length], alone[0], atol=1e-12)


@given(sizes, sizes, sizes, sizes, seeds, st.sampled_from(["none", "causal", "sequence"]))
def test_the_loop_over_heads_equals_all_heads_at_once(batch, n, num_heads, d_k, seed, kind):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(batch, n, num_heads * d_k)), random_weights(rng, num_heads * d_k)
    per_sequence = (rng.random((batch, 1, n, n)) < 0.5) | np.eye(n, dtype=bool)
    mask = {"none": None, "causal": causal_mask(n), "sequence": per_sequence}[kind]
    by_loop = multi_head_attention_by_loop(X, *weights, num_heads, mask)
    np.testing.assert_allclose(by_loop, multi_head_attention(X, *weights, num_heads, mask), atol=1e-10)


@given(sizes, sizes, seeds)
def test_tokens_in_another_order_give_the_outputs_in_that_order(batch, n, seed):
    rng = np.random.default_rng(seed)
    X, weights, order = rng.normal(size=(batch, n, 6)), random_weights(rng, 6), rng.permutation(n)
    expected = multi_head_attention(X, *weights, 2)[:, order]
    np.testing.assert_allclose(multi_head_attention(X[:, order], *weights, 2), expected, atol=1e-10)


@given(st.integers(2, 6), st.data(), seeds)
def test_nothing_leaks_from_the_future(n, data, seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(2, n, 6)), random_weights(rng, 6)
    t = data.draw(st.integers(1, n - 1))
    before = causal_multi_head_attention(X, *weights, 3)
    X[:, t:] = rng.normal(size=(2, n - t, 6), scale=9)
    after = causal_multi_head_attention(X, *weights, 3)
    np.testing.assert_array_equal(after[:, :t], before[:, :t])
    assert not np.allclose(after[:, t:], before[:, t:])


@given(seeds)
def test_the_order_of_the_heads_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, (W_Q, W_K, W_V, W_O) = rng.normal(size=(2, 5, 6)), random_weights(rng, 6)
    columns = np.arange(6).reshape(3, 2)[rng.permutation(3)].ravel()  # whole heads change places
    expected = multi_head_attention(X, W_Q, W_K, W_V, W_O, 3)
    moved = multi_head_attention(X, W_Q[:, columns], W_K[:, columns], W_V[:, columns], W_O[columns], 3)
    np.testing.assert_allclose(moved, expected, atol=1e-10)


def test_every_head_reads_all_features(rng):
    X, (W_Q, W_K, W_V, _) = rng.normal(size=(1, 5, 6)), random_weights(rng, 6)
    before = multi_head_attention(X, W_Q, W_K, W_V, np.eye(6), 3)
    X[..., 5] += 1.0  # a feature in the last head's block
    change = np.abs(multi_head_attention(X, W_Q, W_K, W_V, np.eye(6), 3) - before)
    assert (change.max(axis=(0, 1)) > 1e-3).all()


@pytest.mark.parametrize(
    "function", [multi_head_attention, causal_multi_head_attention, multi_head_attention_by_loop]
)
def test_a_width_that_does_not_divide_is_an_error(rng, function):
    X, weights = rng.normal(size=(2, 5, 10)), random_weights(rng, 10)
    with pytest.raises(ValueError, match=r"d_model=10 .*num_heads=4"):
        function(X, *weights, 4)


def test_inputs_are_not_changed(rng):
    arguments = [rng.normal(size=(2, 5, 6)), *random_weights(rng, 6)]
    mask = causal_mask(5)
    copies = [a.copy() for a in arguments]
    multi_head_attention(*arguments, 2, mask)
    multi_head_attention_by_loop(*arguments, 2, mask)
    causal_multi_head_attention(*arguments, 2)
    cross_attention(arguments[0], *arguments, 2)
    for argument, copy in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(argument, copy)
    np.testing.assert_array_equal(mask, causal_mask(5))
