"""Mistakes in `from_builtin`."""

import torch
from torch import nn

from mha_lib import torch_attention as right
from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.code.batched_torch.multi_head_attention import BatchFirstForgotten


def linears(layer: right.MultiHeadAttention) -> list[nn.Linear]:
    """The linear layers of queries, keys and values, which PyTorch's own layer keeps in one."""
    return [layer.q_proj, layer.k_proj, layer.v_proj]


@mistake("fused-qkv-order", "batched_torch.from_builtin")
def from_builtin_order(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the thirds are taken in another order."""
    layer = right.from_builtin(builtin)
    layer.q_proj, layer.k_proj, layer.v_proj = layer.v_proj, layer.k_proj, layer.q_proj
    return layer


@mistake("fused-qkv-misread", "batched_torch.from_builtin")
def from_builtin_misread(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: query, key and value of each head are taken to lie together."""
    layer = right.from_builtin(builtin)
    shape = (builtin.num_heads, 3, -1, builtin.embed_dim)
    with torch.no_grad():
        for number, linear in enumerate(linears(layer)):
            weight = builtin.in_proj_weight.view(shape)[:, number]  # (heads, d_k, d_model)
            linear.weight.copy_(weight.flatten(0, 1))  # (d_model, d_model)
    return layer


@mistake("linear-applied-transposed", "batched_torch.from_builtin")
def from_builtin_transposed(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the weights are transposed, but both keep them as (out, in)."""
    layer = right.from_builtin(builtin)
    with torch.no_grad():
        for linear in linears(layer):
            linear.weight.copy_(linear.weight.T.clone())
    return layer


@mistake("output-not-copied", "batched_torch.from_builtin")
def from_builtin_without_output(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the output projection keeps the numbers it started with."""
    fresh = right.MultiHeadAttention(builtin.embed_dim, builtin.num_heads)
    layer = right.from_builtin(builtin)
    layer.out_proj.load_state_dict(fresh.out_proj.state_dict())
    return layer


@mistake("biases-not-copied", "batched_torch.from_builtin")
def from_builtin_biases_not_copied(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the biases keep the numbers they started with."""
    fresh = right.MultiHeadAttention(builtin.embed_dim, builtin.num_heads)
    layer = right.from_builtin(builtin)
    numbers = fresh.state_dict()
    biases = {name: numbers[name] for name in numbers if name.endswith("bias")}
    layer.load_state_dict(biases, strict=False)
    return layer


@mistake("bias-assumed", "batched_torch.from_builtin")
def from_builtin_bias_assumed(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: without biases there is nothing to cut."""
    builtin.in_proj_bias.chunk(3)
    return right.from_builtin(builtin)


@mistake("biases-left-as-they-start", "batched_torch.from_builtin")
def from_builtin_biases_left(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: where there is no bias to copy, the new layer keeps the numbers it started with."""
    return (
        right.from_builtin(builtin)
        if builtin.in_proj_bias is not None
        else from_builtin_biases_not_copied(builtin)
    )


def share(layer: right.MultiHeadAttention, name: str, packed: torch.Tensor) -> None:
    """Make views of the three parts of a packed parameter, one of a linear layer each, the parameters `name`."""
    for linear, part in zip(linears(layer), packed.detach().chunk(3), strict=True):
        setattr(linear, name, nn.Parameter(part))


@mistake("weights-shared", "batched_torch.from_builtin")
def from_builtin_shared(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new parameters are views of the old ones."""
    layer = right.from_builtin(builtin)
    share(layer, "weight", builtin.in_proj_weight)
    layer.out_proj = builtin.out_proj
    if builtin.out_proj.bias is None:
        layer.out_proj = right.from_builtin(builtin).out_proj
    return layer


@mistake("batch-first-forgotten", "batched_torch.from_builtin")
def from_builtin_sequence_first(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer takes (n, batch, d_model) if the built-in one does."""
    layer = right.from_builtin(builtin)
    if not builtin.batch_first:
        layer.__class__ = BatchFirstForgotten
    return layer


@mistake("dropout-lost", "batched_torch.from_builtin")
def from_builtin_dropout_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer is made without dropout."""
    layer = right.from_builtin(builtin)
    layer.dropout = nn.Dropout(0.0)
    return layer


@mistake("mode-lost", "batched_torch.from_builtin")
def from_builtin_mode_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer is in training, as new layers are."""
    return right.from_builtin(builtin).train()


@mistake("dtype-lost", "batched_torch.from_builtin")
def from_builtin_dtype_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer is in float32, as new layers are."""
    return right.from_builtin(builtin).float()


@mistake("parameters-frozen", "batched_torch.from_builtin")
def from_builtin_frozen(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new parameters ask for no gradient."""
    return right.from_builtin(builtin).requires_grad_(False)


@mistake("parameters-not-leaves", "batched_torch.from_builtin")
def from_builtin_not_leaves(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the numbers are copied where autograd sees it."""
    layer = right.from_builtin(builtin).requires_grad_(False)
    thirds = builtin.in_proj_weight.chunk(3)  # (d_model, d_model) each
    for linear, third in zip(linears(layer), thirds, strict=True):
        linear.weight.copy_(third)
    layer.out_proj.weight.copy_(builtin.out_proj.weight)
    if builtin.in_proj_bias is not None:
        thirds = builtin.in_proj_bias.chunk(3)  # (d_model,) each
        for linear, third in zip(linears(layer), thirds, strict=True):
            linear.bias.copy_(third)
        layer.out_proj.bias.copy_(builtin.out_proj.bias)
    return layer


@mistake("source-changed", "batched_torch.from_builtin")
def from_builtin_changes_builtin(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: to make the copy, the built-in layer is switched to eval mode."""
    training = builtin.training
    return right.from_builtin(builtin.eval()).train(training)


# --- other forms -------------------------------------------------------------------------------------------


@mistake("biases-left-as-they-start", "batched_torch.from_builtin", form="of-out-proj")
def from_builtin_last_bias_left(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: where there is no bias to copy, that of the last linear layer keeps the numbers it started with."""
    fresh = right.MultiHeadAttention(builtin.embed_dim, builtin.num_heads)
    layer = right.from_builtin(builtin)
    if builtin.in_proj_bias is None:
        layer.out_proj.load_state_dict({"bias": fresh.out_proj.bias}, strict=False)
    return layer


@mistake("weights-shared", "batched_torch.from_builtin", form="biases")
def from_builtin_biases_shared(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new biases lie in the memory of the old ones."""
    layer = right.from_builtin(builtin)
    if builtin.in_proj_bias is not None:
        share(layer, "bias", builtin.in_proj_bias)
        layer.out_proj.bias = builtin.out_proj.bias
    return layer


@mistake("weights-shared", "batched_torch.from_builtin", form="everything")
def from_builtin_everything_shared(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: every new parameter is a view of an old one."""
    layer = from_builtin_biases_shared(builtin)
    share(layer, "weight", builtin.in_proj_weight)
    layer.out_proj.weight = builtin.out_proj.weight
    return layer


@mistake("parameters-frozen", "batched_torch.from_builtin", form="biases")
def from_builtin_biases_frozen(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new biases ask for no gradient."""
    layer = right.from_builtin(builtin)
    for linear in (*linears(layer), layer.out_proj):
        linear.bias.requires_grad_(False)
    return layer


@mistake("dtype-lost", "batched_torch.from_builtin", form="biases")
def from_builtin_dtype_of_biases_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new biases are in float32, as new ones are."""
    layer = right.from_builtin(builtin)
    for linear in (*linears(layer), layer.out_proj):
        linear.bias = nn.Parameter(linear.bias.detach().float())
    return layer


@mistake("dropout-lost", "batched_torch.from_builtin", form="all-or-nothing")
def from_builtin_dropout_rounded(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer drops everything if the old one drops anything."""
    layer = right.from_builtin(builtin)
    layer.dropout = nn.Dropout(float(builtin.dropout > 0))
    return layer
