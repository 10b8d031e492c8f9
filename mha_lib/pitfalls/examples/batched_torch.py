"""The items of `batched_torch`, and small inputs that expose mistakes in them."""

import math
from typing import Any

import torch
from torch import nn

from mha_lib import torch_attention
from mha_lib.pitfalls.examples import Code, item


def numbered(layer: nn.Module) -> Any:
    """The layer with numbers in its parameters that are the same at every run."""
    for index, parameter in enumerate(layer.parameters()):
        numbers = torch.arange(parameter.numel(), dtype=parameter.dtype).reshape(parameter.shape)
        parameter.data = ((3 * numbers + index) % 7 - 3) / math.sqrt(parameter.shape[-1])
    return layer


ATTENTION = item("batched_torch.attention", torch_attention.attention)


@ATTENTION.example
def a_query_without_keys(attention: Code) -> Any:
    """The second query may attend to nothing."""
    Q, K = torch.ones(2, 4), torch.ones(3, 4)
    V = torch.tensor([[10.0, 0], [0, 10], [10, 10]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    return attention(Q, K, V, mask)


@ATTENTION.example
def gradient_of_queries(attention: Code) -> Any:
    """The gradient of the queries."""
    Q = torch.tensor([[1.0, 2.0]], requires_grad=True)
    K = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    output, _ = attention(Q, K, K)
    output.square().sum().backward()
    return Q.grad


@ATTENTION.example
def gradient_without_keys(attention: Code) -> Any:
    """The gradient of the queries; the second may attend to nothing."""
    Q = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    K = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    output, _ = attention(Q, K, K, mask)
    output.square().sum().backward()
    return Q.grad


@ATTENTION.example
def half_precision(attention: Code) -> Any:
    """Half precision, with a mask: the weights."""
    Q, K = torch.ones(1, 4).half(), torch.ones(3, 4).half()
    _, weights = attention(Q, K, K, torch.tensor([[True, True, False]]))
    return weights


@ATTENTION.example
def dtype_of_the_output(attention: Code) -> Any:
    """The dtype of the output for inputs in float64."""
    Q = torch.ones(2, 4, dtype=torch.float64)
    output, _ = attention(Q, Q, Q)
    return output.dtype


@ATTENTION.example
def dtype_of_the_weights(attention: Code) -> Any:
    """The dtype of the weights for inputs in half precision."""
    Q = torch.ones(2, 4).half()
    _, weights = attention(Q, Q, Q)
    return weights.dtype


@ATTENTION.example
def transposed_heads(attention: Code) -> Any:
    """Two sequences, two heads; in memory the heads of a token lie side by side."""
    Q = (torch.arange(8.0) % 3).view(2, 2, 2, 1).transpose(1, 2)
    output, _ = attention(Q, Q, Q)
    return output


MULTI_HEAD_ATTENTION = item("batched_torch.MultiHeadAttention", torch_attention.MultiHeadAttention)


@MULTI_HEAD_ATTENTION.example
def names_of_parameters(MultiHeadAttention: Code) -> Any:
    """The parameters that an optimiser would be given."""
    layer = MultiHeadAttention(4, 2)
    return [name for name, _ in layer.named_parameters()]


@MULTI_HEAD_ATTENTION.example
def two_sequences(MultiHeadAttention: Code) -> Any:
    """Two sequences of three tokens, no dropout; numbered() fills the parameters."""
    layer = numbered(MultiHeadAttention(4, 2))
    x = torch.arange(24.0).reshape(2, 3, 4) % 5 / 2 - 1
    return layer(x)


@MULTI_HEAD_ATTENTION.example
def another_mask_the_second_time(MultiHeadAttention: Code) -> Any:
    """First under a mask that shows the first token only, then without a mask."""
    layer = numbered(MultiHeadAttention(4, 2))
    x = torch.arange(12.0).reshape(1, 3, 4) % 5 / 2 - 1
    layer(x, torch.tensor([True, False, False]).expand(3, 3))
    return layer(x)


@MULTI_HEAD_ATTENTION.example
def other_weights_the_second_time(MultiHeadAttention: Code) -> Any:
    """A layer that gets weights of 0 after the first call: its second output."""
    layer, x = numbered(MultiHeadAttention(2, 1)), torch.eye(2)[None]
    layer(x)
    with torch.no_grad():
        layer.v_proj.weight.zero_()
    return layer(x)


@MULTI_HEAD_ATTENTION.example
def everything_dropped(MultiHeadAttention: Code) -> Any:
    """In training, with every weight dropped: only the bias of out_proj is left."""
    layer = numbered(MultiHeadAttention(4, 2, dropout=1.0))
    return layer(torch.arange(12.0).reshape(1, 3, 4) % 5 / 2 - 1)


@MULTI_HEAD_ATTENTION.example
def evaluated(MultiHeadAttention: Code) -> Any:
    """In eval mode nothing is dropped."""
    layer = numbered(MultiHeadAttention(4, 2, dropout=1.0)).eval()
    return layer(torch.arange(12.0).reshape(1, 3, 4) % 5 / 2 - 1)


@MULTI_HEAD_ATTENTION.example
def half_dropped(MultiHeadAttention: Code) -> Any:
    """One token, so every head has one weight; in training, half of them dropped."""
    layer = numbered(MultiHeadAttention(4, 2, dropout=0.5))
    identity = {"weight": torch.eye(4), "bias": torch.zeros(4)}
    layer.out_proj.load_state_dict(identity)
    torch.manual_seed(0)
    return layer(torch.ones(1, 1, 4).expand(3, 1, 4))


CAUSAL_SELF_ATTENTION = item("batched_torch.CausalSelfAttention", torch_attention.CausalSelfAttention)


@CAUSAL_SELF_ATTENTION.example
def what_is_trained(CausalSelfAttention: Code) -> Any:
    """The parameters that an optimiser would be given."""
    layer = CausalSelfAttention(4, 2, max_len=3)
    return [name for name, _ in layer.named_parameters()]


@CAUSAL_SELF_ATTENTION.example
def as_long_as_allowed(CausalSelfAttention: Code) -> Any:
    """Three tokens, as many as max_len allows."""
    layer = numbered(CausalSelfAttention(4, 2, max_len=3))
    return layer(torch.arange(12.0).reshape(1, 3, 4) % 5 - 2)


@CAUSAL_SELF_ATTENTION.example
def shorter_than_allowed(CausalSelfAttention: Code) -> Any:
    """Two tokens, where three would be allowed."""
    layer = numbered(CausalSelfAttention(4, 2, max_len=3))
    return layer(torch.arange(8.0).reshape(1, 2, 4) % 5 - 2)


@CAUSAL_SELF_ATTENTION.example
def longer_the_second_time(CausalSelfAttention: Code) -> Any:
    """First two tokens, then three."""
    layer = numbered(CausalSelfAttention(4, 2, max_len=3))
    x = torch.arange(12.0).reshape(1, 3, 4) % 5 - 2
    layer(x[:, :2])
    return layer(x)


@CAUSAL_SELF_ATTENTION.example
def in_half_precision(CausalSelfAttention: Code) -> Any:
    """The layer is moved to bfloat16."""
    layer = CausalSelfAttention(4, 2, max_len=3).bfloat16()
    return layer(torch.ones(1, 3, 4).bfloat16()).dtype


@CAUSAL_SELF_ATTENTION.example
def on_another_device(CausalSelfAttention: Code) -> Any:
    """The layer is moved to another device ("meta" has shapes and no numbers, so that it needs no GPU)."""
    layer = CausalSelfAttention(4, 2, max_len=3).to("meta")
    return layer(torch.zeros(1, 3, 4, device="meta")).device


FROM_BUILTIN = item("batched_torch.from_builtin", torch_attention.from_builtin)


@FROM_BUILTIN.example
def same_output(from_builtin: Code) -> Any:
    """The largest difference from the output of the built-in layer."""
    torch.manual_seed(0)
    builtin = numbered(nn.MultiheadAttention(4, 2, batch_first=True))
    x = torch.arange(12.0).reshape(1, 3, 4) % 5 - 2
    return (from_builtin(builtin)(x) - builtin(x, x, x)[0]).abs().max()


@FROM_BUILTIN.example
def without_biases(from_builtin: Code) -> Any:
    """A built-in layer without biases: the largest bias of the new one."""
    torch.manual_seed(0)
    layer = from_builtin(nn.MultiheadAttention(4, 2, bias=False))
    return layer.q_proj.bias.abs().max()


@FROM_BUILTIN.example
def new_layer_changed(from_builtin: Code) -> Any:
    """The new layer's weights are set to zero: the largest weight of the old one."""
    builtin = numbered(nn.MultiheadAttention(4, 2))
    for parameter in from_builtin(builtin).parameters():
        parameter.data.zero_()
    return builtin.in_proj_weight.abs().max()


@FROM_BUILTIN.example
def dropout_mode_dtype(from_builtin: Code) -> Any:
    """Dropout, mode, dtype and whether the parameters can be trained."""
    builtin = nn.MultiheadAttention(4, 2, dropout=0.5).double().eval()
    layer = from_builtin(builtin)
    weight = layer.q_proj.weight
    return layer.dropout.p, layer.training, weight.dtype, weight.requires_grad


@FROM_BUILTIN.example
def given_to_an_optimiser(from_builtin: Code) -> Any:
    """Whether the weights are leaves, which is what an optimiser takes."""
    layer = from_builtin(nn.MultiheadAttention(4, 2))
    return layer.q_proj.weight.is_leaf, layer.out_proj.weight.is_leaf


@FROM_BUILTIN.example
def mode_of_the_old_layer(from_builtin: Code) -> Any:
    """Whether the built-in layer is still in training."""
    builtin = nn.MultiheadAttention(4, 2)
    from_builtin(builtin)
    return builtin.training


item("batched_torch.sdpa_attention", torch_attention.sdpa_attention)  # all its mistakes are shown elsewhere
