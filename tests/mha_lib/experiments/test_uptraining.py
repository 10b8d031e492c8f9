import copy

import numpy as np
import pytest
import torch

from mha_lib.experiments.uptraining import SharedHeads, share_kv_heads, train_shared, uptrain
from mha_lib.grouped_query import grouped_query_attention
from mha_lib.torch_attention import MultiHeadAttention


def test_pooling_is_the_mean_of_the_blocks_of_a_group():
    shared = SharedHeads(num_heads=6, num_kv_heads=2)
    full = torch.randn(6 * 4, 5)
    pooled = shared.right_inverse(full)
    expected = np.stack([full.numpy().reshape(6, 4, 5)[i : i + 3].mean(0) for i in (0, 3)])
    np.testing.assert_allclose(pooled.numpy(), expected.reshape(8, 5), atol=1e-6)
    assert torch.equal(shared.right_inverse(full[:, 0]), pooled[:, 0])  # a bias


def test_spreading_gives_every_head_its_groups_block_and_pooling_undoes_it():
    shared = SharedHeads(num_heads=6, num_kv_heads=2)
    pooled = torch.randn(2 * 4, 5)
    full = shared(pooled)
    for head in range(6):
        assert torch.equal(full[4 * head : 4 * head + 4], pooled[4 * (head // 3) : 4 * (head // 3) + 4])
    torch.testing.assert_close(shared.right_inverse(full), pooled)


def test_the_number_of_groups_must_divide_the_heads():
    with pytest.raises(ValueError, match=r"6.*4"):
        SharedHeads(num_heads=6, num_kv_heads=4)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
def test_a_layer_with_shared_heads_is_grouped_query_attention(num_kv_heads):
    torch.manual_seed(0)
    layer = MultiHeadAttention(24, 6).double()
    for projection in (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj):
        torch.nn.init.zeros_(projection.bias)
    before, x = copy.deepcopy(layer), torch.randn(2, 5, 24, dtype=torch.float64)
    share_kv_heads(layer, num_kv_heads)
    W_Q, W_O = (p.weight.detach().numpy().T for p in (layer.q_proj, layer.out_proj))
    W_K, W_V = (p.parametrizations.weight.original.detach().numpy().T for p in (layer.k_proj, layer.v_proj))
    expected = grouped_query_attention(x.numpy(), W_Q, W_K, W_V, W_O, 6, num_kv_heads)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, atol=1e-12)
    assert torch.allclose(layer(x), before(x)) == (num_kv_heads == 6)


def test_shared_weights_are_trained_as_one():
    torch.manual_seed(0)
    layer = MultiHeadAttention(24, 6)
    share_kv_heads(layer, 2)
    layer(torch.randn(2, 5, 24)).square().mean().backward()
    original = layer.v_proj.parametrizations.weight.original
    assert original.shape == original.grad.shape == (8, 24)
    assert original.grad.abs().min() > 0


def test_a_seed_gives_the_same_numbers_again_and_leaves_the_callers_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, again = (uptrain((2,), steps=5, extra=2, seed=4) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    assert first == again
    assert train_shared(1, steps=3, seed=4) == train_shared(1, steps=3, seed=4)
