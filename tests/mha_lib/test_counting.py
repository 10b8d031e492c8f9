import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mha_lib.counting import attention_flops, count_parameters
from mha_lib.torch_attention import MultiHeadAttention


def number_of_parameters(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("num_heads", [1, 3, 12])
def test_parameters_equal_those_of_torch(num_heads, bias):
    layer = nn.MultiheadAttention(12, num_heads, bias=bias)
    assert count_parameters(12, num_heads, bias=bias) == number_of_parameters(layer)


def test_parameters_equal_those_of_our_layer():
    assert count_parameters(12, 3, bias=True) == number_of_parameters(MultiHeadAttention(12, 3))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
def test_parameters_with_shared_keys_and_values(num_kv_heads, bias):
    d_model, num_heads, d_k = 24, 6, 4
    widths = [num_heads * d_k, num_kv_heads * d_k, num_kv_heads * d_k, d_model]  # W_Q, W_K, W_V, W_O
    layers = nn.ModuleList(nn.Linear(d_model, width, bias=bias) for width in widths)
    assert count_parameters(d_model, num_heads, num_kv_heads, bias) == number_of_parameters(layers)


def test_the_number_of_heads_does_not_change_the_number_of_parameters():
    assert {count_parameters(512, h) for h in (1, 8, 64, 512)} == {4 * 512**2}


def test_parameters_of_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match=r"d_model=10 .*num_heads=4"):
        count_parameters(10, 4)


@pytest.mark.parametrize(("n", "d_model", "num_heads"), [(5, 12, 3), (9, 6, 1), (1, 4, 4)])
def test_operations_equal_those_that_torch_counts(n, d_model, num_heads):
    layer, x = MultiHeadAttention(d_model, num_heads), torch.zeros(1, n, d_model)
    with FlopCounterMode(display=False) as counter:
        Q, K, V = (layer.split_heads(project(x)) for project in (layer.q_proj, layer.k_proj, layer.v_proj))
        heads = (Q @ K.transpose(-2, -1)).softmax(dim=-1) @ V
        layer.out_proj(heads.transpose(1, 2).flatten(2))
    assert type(attention_flops(n, d_model)) is int
    assert attention_flops(n, d_model) == counter.get_total_flops()


def test_scores_and_projections_cost_the_same_at_twice_the_width():
    d_model = 16
    projections = 8 * 32 * d_model**2
    assert attention_flops(2 * d_model, d_model) == 2 * projections
