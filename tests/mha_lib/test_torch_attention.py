import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mha_lib import attention as numpy_attention
from mha_lib import multi_head
from mha_lib.torch_attention import (
    CausalSelfAttention,
    MultiHeadAttention,
    attention,
    from_builtin,
    sdpa_attention,
)

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 5)


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(7)


def random_qkv(leading=(2, 3), n=5, m=7, d_k=4, d_v=6, dtype=torch.float64):
    return (
        torch.randn(*leading, n, d_k, dtype=dtype),
        torch.randn(*leading, m, d_k, dtype=dtype),
        torch.randn(*leading, m, d_v, dtype=dtype),
    )


def random_mask(*shape):
    """A mask in which every row keeps a key."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def with_empty_row(mask):
    mask = mask.clone()
    mask[..., 2, :] = False
    return mask


MASK_SHAPES = [(5, 7), (2, 1, 5, 7), (2, 1, 1, 7), (2, 3, 5, 7), (1, 7), (7,)]


# --- attention ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 3, 1, 2)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_torch_and_numpy(leading, masked):
    Q, K, V = random_qkv(leading)
    mask = random_mask(5, 7) if masked else None
    output, weights = attention(Q, K, V, mask)
    expected = nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    torch.testing.assert_close(output, expected)
    arrays = [None if t is None else t.numpy() for t in (Q, K, V, mask)]
    expected_output, expected_weights = numpy_attention.attention(*arrays)
    np.testing.assert_allclose(output.numpy(), expected_output, atol=1e-12)
    np.testing.assert_allclose(weights.numpy(), expected_weights, atol=1e-12)


@pytest.mark.parametrize("shape", MASK_SHAPES)
def test_sdpa_attention_equals_attention_for_every_shape_of_mask(shape):
    Q, K, V = random_qkv()
    mask = random_mask(*shape)
    torch.testing.assert_close(sdpa_attention(Q, K, V, mask), attention(Q, K, V, mask)[0])


@given(sizes, sizes, sizes, sizes, st.lists(sizes, max_size=3), st.floats(0, 1), seeds)
def test_sdpa_attention_equals_attention(n, m, d_k, d_v, leading, density, seed):
    torch.manual_seed(seed)
    Q, K, V = random_qkv(leading, n, m, d_k, d_v)
    mask = torch.rand(n, m) < density
    torch.testing.assert_close(sdpa_attention(Q, K, V, mask), attention(Q, K, V, mask)[0])
    torch.testing.assert_close(sdpa_attention(Q, K, V), attention(Q, K, V)[0])


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7)])
def test_a_query_that_may_attend_to_nothing_gets_zeros(shape):
    Q, K, V = random_qkv()
    full, empty = random_mask(*shape), with_empty_row(random_mask(*shape))
    output, weights = attention(Q, K, V, empty)
    assert (weights[..., 2, :] == 0).all()
    assert (output[..., 2, :] == 0).all()
    assert (sdpa_attention(Q, K, V, empty)[..., 2, :] == 0).all()
    rows = [0, 1, 3, 4]
    weights_of_others = attention(Q, K, V, torch.where(empty.any(-1, keepdim=True), empty, full))[1]
    torch.testing.assert_close(weights[..., rows, :], weights_of_others[..., rows, :])
    torch.testing.assert_close(weights[..., rows, :].sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))


def test_a_sequence_of_nothing_but_padding_gets_zeros():
    Q, K, V = random_qkv()
    mask = torch.tensor([True, False])[:, None, None, None].expand(2, 1, 1, 7)
    output, weights = attention(Q, K, V, mask)
    assert (output[1] == 0).all()
    assert (weights[1] == 0).all()
    torch.testing.assert_close(output[0], attention(Q, K, V)[0][0])
    torch.testing.assert_close(sdpa_attention(Q, K, V, mask), output)


@pytest.mark.parametrize("mask", ["none", "full", "empty rows"])
def test_gradients_equal_finite_differences(mask):
    Q, K, V = (t.requires_grad_() for t in random_qkv((2,), n=3, m=4, d_k=2, d_v=3))
    rows = random_mask(3, 4)
    keep = {"none": None, "full": rows, "empty rows": with_empty_row(rows)}[mask]
    assert torch.autograd.gradcheck(lambda Q, K, V: attention(Q, K, V, keep), (Q, K, V))
    assert torch.autograd.gradcheck(lambda Q, K, V: sdpa_attention(Q, K, V, keep), (Q, K, V))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_gradients_are_finite_when_a_row_is_empty(dtype):
    Q, K, V = (t.requires_grad_() for t in random_qkv(dtype=dtype))
    output, weights = attention(Q, K, V, with_empty_row(random_mask(5, 7)))
    (output.sum() + weights.square().sum()).backward()
    assert all(t.grad.isfinite().all() for t in (Q, K, V))
    assert (Q.grad[..., 2, :] == 0).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 5e-3), (torch.bfloat16, 3e-2)])
def test_half_precision_with_dot_products_of_a_hundred(dtype, tolerance):
    Q, K, V = random_qkv(dtype=dtype)
    Q = Q / Q.norm(dim=-1, keepdim=True) * 10
    K = K / K.norm(dim=-1, keepdim=True) * 9.9  # |q · k| <= 99
    mask = with_empty_row(random_mask(5, 7))
    output, weights = attention(Q, K, V, mask)
    assert output.dtype == weights.dtype == dtype
    expected_output, expected_weights = attention(Q.double(), K.double(), V.double(), mask)
    torch.testing.assert_close(weights.double(), expected_weights, atol=tolerance, rtol=0)
    torch.testing.assert_close(output.double(), expected_output, atol=tolerance, rtol=0)
    torch.testing.assert_close(
        sdpa_attention(Q, K, V, mask).double(), expected_output, atol=tolerance, rtol=0
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_results_have_the_dtype_of_the_inputs(dtype):
    Q, K, V = random_qkv(dtype=dtype)
    output, weights = attention(Q, K, V)
    assert output.dtype == weights.dtype == sdpa_attention(Q, K, V).dtype == dtype


def test_a_row_whose_kept_scores_are_all_very_low():
    Q = torch.tensor([[2.0]])
    K = torch.tensor([[-1e4], [-1e4], [-1e4]])
    V = torch.tensor([[3.0], [5.0], [100.0]])
    mask = torch.tensor([[True, True, False]])
    assert attention(Q, K, V, mask)[0].tolist() == [[4.0]]
    assert sdpa_attention(Q, K, V, mask).tolist() == [[4.0]]


def test_inputs_of_attention_are_not_changed():
    arguments = (*random_qkv(), with_empty_row(random_mask(5, 7)))
    copies = [t.clone() for t in arguments]
    attention(*arguments)
    sdpa_attention(*arguments)
    for argument, before in zip(arguments, copies, strict=True):
        assert torch.equal(argument, before)


# --- MultiHeadAttention ------------------------------------------------------------------------------------


def random_builtin(d_model=12, num_heads=3, **options):
    """PyTorch's own layer with random weights *and* random biases (it starts with zero biases)."""
    builtin = nn.MultiheadAttention(d_model, num_heads, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in builtin.parameters():
            parameter.normal_(std=0.4)
    return builtin


def output_of_builtin(builtin, x, mask=None):
    """Batch-first in and out, and a mask in which True means "may attend"."""
    if not builtin.batch_first:
        x = x.transpose(0, 1)
    ignore = None
    if mask is not None:
        ignore = (~mask).expand(len(mask), builtin.num_heads, *mask.shape[2:]).flatten(0, 1)
    output, _ = builtin(x, x, x, attn_mask=ignore, need_weights=False)
    return output if builtin.batch_first else output.transpose(0, 1)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_from_builtin_equals_the_builtin(batch_first, bias):
    builtin = random_builtin(batch_first=batch_first, bias=bias).eval()
    layer, x = from_builtin(builtin), torch.randn(2, 5, 12, dtype=torch.float64)
    torch.testing.assert_close(layer(x), output_of_builtin(builtin, x))
    mask = random_mask(2, 1, 5, 5)
    torch.testing.assert_close(layer(x, mask), output_of_builtin(builtin, x, mask))
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    expected = output_of_builtin(builtin, x, causal.expand(2, 1, 5, 5))
    torch.testing.assert_close(layer(x, causal), expected)


def test_from_builtin_copies():
    builtin = random_builtin(dropout=0.25)
    layer = from_builtin(builtin)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    with torch.no_grad():
        for parameter in builtin.parameters():
            parameter.zero_()
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in layer.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("training", [False, True])
def test_from_builtin_keeps_dtype_dropout_and_mode(dtype, training):
    builtin = nn.MultiheadAttention(6, 2, dropout=0.25).to(dtype).train(training)
    layer = from_builtin(builtin)
    assert {parameter.dtype for parameter in layer.parameters()} == {dtype}
    assert layer.dropout.p == 0.25
    assert all(module.training == training for module in layer.modules())


def test_from_builtin_without_bias_has_zero_biases():
    layer = from_builtin(random_builtin(bias=False))
    assert all((layer.get_submodule(f"{name}_proj").bias == 0).all() for name in ("q", "k", "v", "out"))


@given(sizes, sizes, sizes, sizes, seeds)
def test_the_layer_equals_the_numpy_reference(batch, n, num_heads, d_k, seed):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(num_heads * d_k, num_heads).double()
    for linear in (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj):
        nn.init.zeros_(linear.bias)
    x = torch.randn(batch, n, num_heads * d_k, dtype=torch.float64)
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    weights = [layer.get_submodule(name).weight.detach().numpy().T for name in names]
    expected = multi_head.multi_head_attention(x.numpy(), *weights, num_heads)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, atol=1e-10)


def test_the_parameters_have_the_agreed_names_and_shapes():
    shapes = {name: tuple(value.shape) for name, value in MultiHeadAttention(12, 3).state_dict().items()}
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    assert shapes == {f"{n}.weight": (12, 12) for n in names} | {f"{n}.bias": (12,) for n in names}


def test_tokens_in_another_order_give_the_outputs_in_that_order():
    layer, x, order = MultiHeadAttention(12, 3).double(), torch.randn(2, 5, 12).double(), torch.randperm(5)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


def test_an_empty_row_gives_the_bias_of_the_output_projection():
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    output = layer(x, with_empty_row(random_mask(2, 1, 5, 5)))
    torch.testing.assert_close(output[:, 2], layer.out_proj.bias.expand(2, 12))
    output.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_gradients_of_the_layer_equal_finite_differences():
    layer = MultiHeadAttention(4, 2).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = with_empty_row(random_mask(2, 1, 3, 3))
    assert torch.autograd.gradcheck(lambda x: layer(x, mask), x)


def test_the_layer_takes_inputs_that_are_not_contiguous():
    layer, x = MultiHeadAttention(12, 3), torch.randn(5, 2, 12).transpose(0, 1)
    torch.testing.assert_close(layer(x), layer(x.contiguous()))


def test_dropout_acts_in_training_only():
    layer, x = MultiHeadAttention(12, 3, dropout=0.5), torch.randn(2, 5, 12)
    plain = MultiHeadAttention(12, 3)
    plain.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer.eval()(x), plain(x))
    layer.train()
    assert not torch.allclose(layer(x), layer(x))


def test_dropout_of_everything_leaves_the_bias_of_the_output_projection():
    layer = MultiHeadAttention(12, 3, dropout=1.0)
    torch.testing.assert_close(layer(torch.randn(2, 5, 12)), layer.out_proj.bias.expand(2, 5, 12))


def test_dropout_drops_whole_weights_and_doubles_the_others():
    layer = MultiHeadAttention(12, 1, dropout=0.5)
    nn.init.eye_(layer.out_proj.weight)
    x = torch.randn(2, 9, 12)
    output = layer(x, torch.eye(9, dtype=torch.bool))  # a single weight of 1 for each token
    values, bias = layer.v_proj(x), layer.out_proj.bias
    dropped = torch.isclose(output, bias, atol=1e-6).all(dim=-1)  # (batch, n)
    doubled = torch.isclose(output, 2 * values + bias, atol=1e-6).all(dim=-1)  # (batch, n)
    assert (dropped ^ doubled).all()
    assert dropped.any()
    assert doubled.any()


def test_dropout_keeps_the_mean():
    layer, x = MultiHeadAttention(12, 3, dropout=0.5), torch.randn(1, 5, 12)
    mean = layer(x.expand(4000, 5, 12)).mean(dim=0)
    torch.testing.assert_close(mean, layer.eval()(x)[0], atol=0.05, rtol=0)


def test_a_state_dict_goes_round():
    layer, other = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12)
    assert not torch.allclose(layer(x), other(x))
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(x), layer(x))
    torch.testing.assert_close(copy.deepcopy(layer)(x), layer(x))


# --- CausalSelfAttention -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 8])
def test_causal_attention_equals_multi_head_attention_with_a_causal_mask(n):
    causal, layer = CausalSelfAttention(12, 3, max_len=8).double(), MultiHeadAttention(12, 3).double()
    with torch.no_grad():
        for name, tensor in causal.qkv_proj.named_parameters():
            for linear, block in zip(
                (layer.q_proj, layer.k_proj, layer.v_proj), tensor.chunk(3), strict=True
            ):
                linear.get_parameter(name).copy_(block)
    layer.out_proj = causal.out_proj
    x = torch.randn(2, n, 12, dtype=torch.float64)
    torch.testing.assert_close(causal(x), layer(x, torch.ones(n, n, dtype=torch.bool).tril()))


@given(st.integers(2, 8), st.data(), seeds)
def test_nothing_leaks_from_the_future(n, data, seed):
    torch.manual_seed(seed)
    layer, x = CausalSelfAttention(6, 2, max_len=8), torch.randn(2, n, 6)
    t = data.draw(st.integers(1, n - 1))
    before = layer(x)
    x[:, t:] = 9 * torch.randn(2, n - t, 6)
    after = layer(x)
    assert torch.equal(after[:, :t], before[:, :t])
    assert not torch.allclose(after[:, t:], before[:, t:])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_to_moves_everything(dtype):
    layer = CausalSelfAttention(12, 3, max_len=8).to(dtype)
    assert layer(torch.randn(2, 5, 12, dtype=dtype)).dtype == dtype
    meta = CausalSelfAttention(12, 3, max_len=8).to("meta")
    assert meta(torch.randn(2, 5, 12, device="meta")).shape == (2, 5, 12)


def test_the_state_dict_holds_the_agreed_parameters_only():
    layer, other = CausalSelfAttention(12, 3, max_len=8), CausalSelfAttention(12, 3, max_len=5)
    shapes = {name: tuple(value.shape) for name, value in layer.state_dict().items()}
    assert shapes == {
        "qkv_proj.weight": (36, 12),
        "qkv_proj.bias": (36,),
        "out_proj.weight": (12, 12),
        "out_proj.bias": (12,),
    }
    other.load_state_dict(layer.state_dict())  # another max_len is no obstacle
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(other(x), layer(x))


@pytest.mark.parametrize("make", [lambda: MultiHeadAttention(10, 4), lambda: CausalSelfAttention(10, 4, 8)])
def test_a_width_that_does_not_divide_is_an_error(make):
    with pytest.raises(ValueError, match=r"d_model=10 .*num_heads=4: 10 / 4 = 2\.5"):
        make()
