import copy

import pytest
import torch
from torch import nn

from mha_lib.torch_attention import from_builtin
from mha_lib.transformer import FeedForward, TransformerBlock


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(7)


def random_builtin(norm_first, d_model=12, num_heads=3, d_ff=20):
    """PyTorch's own block with random numbers in all its parameters, those of the norms included."""
    builtin = nn.TransformerEncoderLayer(
        d_model,
        num_heads,
        d_ff,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=norm_first,
        dtype=torch.float64,
    )
    with torch.no_grad():
        for parameter in builtin.parameters():
            parameter.normal_(std=0.4)
    return builtin


def block_like(builtin):
    """The course's block with copies of the parameters of PyTorch's."""
    d_model, d_ff = builtin.linear1.in_features, builtin.linear1.out_features
    block = TransformerBlock(d_model, builtin.self_attn.num_heads, d_ff, norm_first=builtin.norm_first)
    block.attention = from_builtin(builtin.self_attn)
    block.feed_forward.up, block.feed_forward.down = copy.deepcopy((builtin.linear1, builtin.linear2))
    block.norm1, block.norm2 = copy.deepcopy((builtin.norm1, builtin.norm2))
    return block


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_a_block_equals_torchs_own(norm_first, training):
    builtin = random_builtin(norm_first).train(training)
    block, x = block_like(builtin), torch.randn(2, 5, 12, dtype=torch.float64)
    torch.testing.assert_close(block(x), builtin(x))
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(block(x, causal), builtin(x, src_mask=~causal))
    keep = torch.arange(5) < torch.tensor([3, 5])[:, None]  # (batch, n)
    padded = block(x, keep[:, None, None, :].expand(2, 1, 5, 5))
    expected = builtin(x, src_key_padding_mask=~keep)
    torch.testing.assert_close(padded[keep], expected[keep])


@pytest.mark.parametrize("norm_first", [True, False])
def test_gradients_equal_those_of_torchs_own_block(norm_first):
    builtin = random_builtin(norm_first)
    block, x = block_like(builtin), torch.randn(2, 5, 12, dtype=torch.float64)
    (block(x) ** 2).sum().backward()
    (builtin(x) ** 2).sum().backward()
    pairs = [
        (block.feed_forward.up, builtin.linear1),
        (block.feed_forward.down, builtin.linear2),
        (block.norm1, builtin.norm1),
        (block.norm2, builtin.norm2),
        (block.attention.out_proj, builtin.self_attn.out_proj),
    ]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
        torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


def test_a_block_starts_as_pre_norm_with_layer_norms_of_the_agreed_eps():
    block = TransformerBlock(12, 3, 20)
    assert block.norm_first
    assert block.norm1.eps == block.norm2.eps == 1e-5


def test_the_parameters_have_the_agreed_names_and_shapes():
    shapes = {name: tuple(value.shape) for name, value in TransformerBlock(12, 3, 20).state_dict().items()}
    linears = {f"attention.{name}_proj": (12, 12) for name in ("q", "k", "v", "out")}
    linears |= {"feed_forward.up": (20, 12), "feed_forward.down": (12, 20)}
    expected = {f"{name}.weight": shape for name, shape in linears.items()}
    expected |= {f"{name}.bias": shape[:1] for name, shape in linears.items()}
    expected |= {f"norm{i}.{name}": (12,) for i in (1, 2) for name in ("weight", "bias")}
    assert shapes == expected


def test_a_pre_norm_block_that_adds_nothing_passes_its_input_on():
    block, x = TransformerBlock(12, 3, 20), torch.randn(2, 5, 12)
    for linear in (block.attention.out_proj, block.feed_forward.down):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    assert torch.equal(block(x), x)
    block.norm_first = False
    torch.testing.assert_close(block(x).mean(dim=-1), torch.zeros(2, 5), atol=1e-6, rtol=0)
    torch.testing.assert_close(block(x).var(dim=-1, correction=0), torch.ones(2, 5), atol=1e-3, rtol=0)


def test_the_feed_forward_network_treats_every_token_by_itself():
    layer, x = FeedForward(12, 20).double(), torch.randn(2, 5, 12, dtype=torch.float64)
    torch.testing.assert_close(layer(x)[1, 3], layer(x[1, 3]))


def test_the_feed_forward_network_uses_the_exact_gelu():
    layer, x = FeedForward(1, 1).double(), torch.linspace(-3, 3, 13, dtype=torch.float64)[:, None]
    for linear in (layer.up, layer.down):
        nn.init.ones_(linear.weight)
        nn.init.zeros_(linear.bias)
    exact = x * (1 + torch.erf(x / 2**0.5)) / 2
    torch.testing.assert_close(layer(x), exact)


def test_tokens_in_another_order_give_the_outputs_in_that_order():
    block, x, order = TransformerBlock(12, 3, 20).double(), torch.randn(2, 5, 12).double(), torch.randperm(5)
    torch.testing.assert_close(block(x[:, order]), block(x)[:, order])


def test_a_width_that_does_not_divide_is_an_error():
    with pytest.raises(ValueError, match=r"d_model=10 .*num_heads=4: 10 / 4 = 2\.5"):
        TransformerBlock(10, 4, 20)
