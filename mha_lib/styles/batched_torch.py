"""Right ways of writing the items of `batched_torch`; some of them look wrong at first."""

import copy

import torch
from einops import einsum, rearrange, repeat
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib import torch_attention as reference
from mha_lib.styles import style

Mask = Tensor | None
Pair = tuple[Tensor, Tensor]

# --- attention ---------------------------------------------------------------------------------------------


@style("keys first", "batched_torch.attention")
def attention_keys_first(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """K·Qᵀ with the softmax over axis −2, transposed at the end."""
    scores = K.float() @ Q.float().transpose(-2, -1) / K.shape[-1] ** 0.5  # (..., m, n)
    if mask is not None:
        hidden = ~mask.expand(*scores.shape[:-2], Q.shape[-2], K.shape[-2]).transpose(-2, -1)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-2)
        weights = weights.masked_fill(hidden, 0.0)
    else:
        weights = scores.softmax(dim=-2)  # (..., m, n)
    weights = weights.transpose(-2, -1).to(V.dtype)  # (..., n, m)
    return weights @ V, weights


@style("masked after the softmax, renormalised", "batched_torch.attention")
def attention_renormalised(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """The mask comes after the softmax, and then the rows are made to sum to 1 again."""
    weights = (Q.float() @ K.float().mT / Q.shape[-1] ** 0.5).softmax(-1)  # (..., n, m)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    weights = weights.to(V.dtype)
    return weights @ V, weights


@style("fourth root on both", "batched_torch.attention")
def attention_fourth_root(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """d_k^(−1/4) on Q and on K."""
    root = Q.size(-1) ** -0.25
    scores = torch.matmul(Q.float() * root, (K.float() * root).transpose(-1, -2))  # (..., n, m)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        weights = torch.softmax(torch.where(mask, scores, -1e9), dim=-1) * mask  # (..., n, m)
    weights = weights.type_as(V)
    return torch.matmul(weights, V), weights


@style("scores overwritten", "batched_torch.attention")
def attention_scores_overwritten(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """The scores, a new tensor, are overwritten in place, which autograd allows."""
    scores = Q @ K.transpose(-2, -1)  # (..., n, m)
    scores /= Q.shape[-1] ** 0.5
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1) * mask.any(dim=-1, keepdim=True)  # (..., n, m)
    return weights @ V, weights


@style("added mask, in double", "batched_torch.attention")
def attention_added_mask(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """The mask as a bias of 0 and a large negative number."""
    scores = Q.double() @ K.double().mT / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is not None:
        scores = scores + (~mask).double() * -1e15
    weights = scores.softmax(dim=-1)  # (..., n, m)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return (weights @ V.double()).to(V.dtype), weights.to(V.dtype)


@style("NaN replaced", "batched_torch.attention")
def attention_nan_replaced(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Filled with −∞ and NaN set to 0: right, since the gradient of the fill is 0 where it filled."""
    scores = Q.float() @ K.float().transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0).to(V.dtype)  # (..., n, m)
    return weights @ V, weights


@style("in the precision that comes", "batched_torch.attention")
def attention_native(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """In the precision that comes, half or double."""
    scores = torch.einsum("...nd,...md->...nm", Q, K) / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is None:
        weights = F.softmax(scores, dim=-1)
    else:
        weights = F.softmax(scores.masked_fill(~mask, torch.finfo(Q.dtype).min), dim=-1)  # (..., n, m)
        weights = torch.where(mask, weights, 0.0)
    return torch.einsum("...nm,...mv->...nv", weights, V), weights


@style("softmax by hand", "batched_torch.attention")
def attention_softmax_by_hand(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Exponentials and their sum."""
    scores = Q.float() @ K.float().transpose(-2, -1) * Q.shape[-1] ** -0.5  # (..., n, m)
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    largest = scores.masked_fill(~allowed, -1e30).max(dim=-1, keepdim=True).values  # (..., n, 1)
    exponentials = torch.where(allowed, scores - largest, -1e30).exp()  # (..., n, m)
    weights = exponentials / exponentials.sum(dim=-1, keepdim=True).clamp_min(1e-20)
    weights = weights.to(V.dtype)
    return weights @ V, weights


@style("by loops", "batched_torch.attention")
def attention_by_loops(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """One query at a time, over every leading index."""
    if Q.dim() > 2:
        masks = [None] * len(Q)
        if mask is not None:
            masks = list(mask.expand(*Q.shape[:-1], K.shape[-2]))
        pairs = [attention_by_loops(*each) for each in zip(Q, K, V, masks, strict=True)]
        return torch.stack([output for output, _ in pairs]), torch.stack([weights for _, weights in pairs])
    rows = []
    for i, query in enumerate(Q):
        row = torch.zeros(len(K), dtype=Q.dtype)
        keys = list(range(len(K)))
        if mask is not None:
            allowed = mask.expand(len(Q), len(K))[i]
            keys = [j for j in keys if allowed[j]]
        if keys:
            scores = torch.stack([(query.float() * K[j].float()).sum() for j in keys]) / Q.shape[-1] ** 0.5
            row = row.index_put((torch.tensor(keys),), scores.softmax(dim=0).to(Q.dtype))
        rows.append(row)
    weights = torch.stack(rows)  # (n, m)
    return weights @ V, weights


@style("online", "batched_torch.attention")
def attention_online(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Keys come in tiles of two, with a running maximum and a running sum."""
    scores = Q.float() @ K.float().mT / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    largest = torch.full((*scores.shape[:-1], 1), -1e30)  # (..., n, 1)
    total, output = torch.zeros_like(largest), torch.zeros(*scores.shape[:-1], V.shape[-1])
    for start in range(0, K.shape[-2], 2):
        tile = scores[..., start : start + 2]  # (..., n, 2)
        new = torch.maximum(largest, tile.amax(dim=-1, keepdim=True))
        exponentials = torch.where(tile > -1e30, (tile - new).exp(), 0.0)
        total = total * (largest - new).exp() + exponentials.sum(dim=-1, keepdim=True)
        output = output * (largest - new).exp() + exponentials @ V[..., start : start + 2, :].float()
        largest = new
    total = total.clamp_min(1e-20)
    weights = torch.where(scores > -1e30, (scores - largest).exp(), 0.0) / total  # (..., n, m)
    return (output / total).to(V.dtype), weights.to(V.dtype)


@style("through the kernel", "batched_torch.attention")
def attention_through_the_kernel(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> list[Tensor]:
    """The output from PyTorch's kernel, the weights from the kernel applied to one-hot values; a list of two."""
    one_hot = torch.eye(K.shape[-2], dtype=V.dtype).expand(*K.shape[:-2], -1, -1)  # (..., m, m)
    return [reference.sdpa_attention(Q, K, values, mask) for values in (V, one_hot)]


@style("in two cases", "batched_torch.attention")
def attention_in_two_cases(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """A look at the mask decides whether any query needs care."""
    scores = Q.float() @ K.float().transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is None:
        weights = scores.softmax(dim=-1)
    elif mask.any(dim=-1).all():
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    else:
        kept = mask.any(dim=-1, keepdim=True).float()  # (..., n, 1)
        weights = scores.masked_fill(~mask, -1e30).softmax(dim=-1) * kept
    weights = weights.to(Q.dtype)
    return weights @ V, weights


# --- MultiHeadAttention ------------------------------------------------------------------------------------


class FourLinears(nn.Module):
    """What most styles share: the four layers, and dropout."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.h, self.d_k = num_heads, d_model // num_heads
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.out_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.p = dropout


@style("by einops", "batched_torch.MultiHeadAttention")
class ByEinops(FourLinears):
    """Rearranged by name."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        Q, K, V = (
            rearrange(project(x), "b n (h d) -> b h n d", h=self.h)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = einsum(Q, K, "b h n d, b h m d -> b h n m") / self.d_k**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        weights = F.dropout(weights, self.p, self.training)
        return self.out_proj(rearrange(weights @ V, "b h n d -> b n (h d)"))


@style("head by head", "batched_torch.MultiHeadAttention")
class HeadByHead(FourLinears):
    """A loop over heads, each with its own rows of the weights, concatenated."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        heads = []
        for i in range(self.h):
            own = slice(i * self.d_k, (i + 1) * self.d_k)
            layers = (self.q_proj, self.k_proj, self.v_proj)
            Q, K, V = (F.linear(x, layer.weight[own], layer.bias[own]) for layer in layers)
            own_mask = mask[:, 0] if mask is not None and mask.dim() == 4 else mask
            _, weights = reference.attention(Q, K, V, own_mask)  # (batch, n, n)
            heads.append(F.dropout(weights, p=self.p, training=self.training) @ V)
        return self.out_proj(torch.cat(heads, dim=-1))


@style("sum over heads", "batched_torch.MultiHeadAttention")
class SumOverHeads(FourLinears):
    """The sum of the heads, each after its own block of the output projection."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        Q, K, V = (
            p(x).view(*x.shape[:2], self.h, -1).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        _, weights = reference.attention(Q, K, V, mask)
        heads = F.dropout(weights, self.p, self.training) @ V  # (batch, heads, n, d_k)
        blocks = self.out_proj.weight.view(-1, self.h, self.d_k)  # (d_model, heads, d_k)
        return torch.einsum("bhnd,mhd->bnm", heads, blocks) + self.out_proj.bias


@style("fused at run time", "batched_torch.MultiHeadAttention")
class FusedAtRunTime(FourLinears):
    """The three weights are stacked at each call, for one product."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        layers = (self.q_proj, self.k_proj, self.v_proj)
        weight, bias = torch.cat([p.weight for p in layers]), torch.cat([p.bias for p in layers])
        qkv = F.linear(x, weight, bias).view(x.size(0), x.size(1), 3, self.h, self.d_k)
        Q, K, V = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, n, d_k)
        weights = F.dropout(reference.attention(Q, K, V, mask)[1], self.p, self.training)
        return self.out_proj((weights @ V).transpose(1, 2).reshape(x.shape))


@style("heads major", "batched_torch.MultiHeadAttention")
class HeadsMajor(FourLinears):
    """Heads first, then sequences, folded into one axis, with the masks tiled in that order."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        Q, K, V = (torch.cat(p(x).split(self.d_k, dim=-1)) for p in (self.q_proj, self.k_proj, self.v_proj))
        if mask is not None and mask.dim() == 4:
            mask = mask.squeeze(1).repeat(self.h, 1, 1)  # (heads * batch, n, n)
        weights = F.dropout(reference.attention(Q, K, V, mask)[1], self.p, self.training)
        return self.out_proj(torch.cat(torch.bmm(weights, V).chunk(self.h), dim=-1))


@style("sequences major", "batched_torch.MultiHeadAttention")
class SequencesMajor(FourLinears):
    """Sequences first, then heads, folded into one axis, with each mask repeated."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        fold = "b n (h d) -> (b h) n d"
        Q, K, V = (rearrange(p(x), fold, h=self.h) for p in (self.q_proj, self.k_proj, self.v_proj))
        if mask is not None and mask.dim() == 4:
            mask = repeat(mask, "b 1 n m -> (b h) n m", h=self.h)
        weights = F.dropout(reference.attention(Q, K, V, mask)[1], self.p, self.training)
        return self.out_proj(rearrange(weights @ V, "(b h) n d -> b n (h d)", h=self.h))


@style("through the kernel", "batched_torch.MultiHeadAttention")
class ThroughTheKernel(FourLinears):
    """PyTorch's kernel, which can drop weights itself."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        Q, K, V = (
            p(x).view(x.shape[0], x.shape[1], self.h, self.d_k).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        empty = None if mask is None else ~mask.any(dim=-1, keepdim=True)
        safe = None if mask is None or empty is None else mask | empty
        heads = F.scaled_dot_product_attention(
            Q, K, V, attn_mask=safe, dropout_p=self.p if self.training else 0.0
        )
        if empty is not None:
            heads = heads.masked_fill(empty, 0.0)
        return self.out_proj(heads.transpose(1, 2).contiguous().view(x.shape))


@style("merged queries and keys", "batched_torch.MultiHeadAttention")
class MergedQueriesAndKeys(FourLinears):
    """W_Q and W_K of each head merged into one matrix, the biases as a further feature that is 1."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        wide = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)  # (batch, n, d_model + 1)
        W_Q, W_K = (
            torch.cat([p.weight, p.bias[:, None]], dim=1).view(self.h, self.d_k, -1)
            for p in (self.q_proj, self.k_proj)
        )
        merged = W_Q.transpose(1, 2) @ W_K  # (heads, d_model + 1, d_model + 1)
        scores = (
            wide[:, None] @ merged @ wide[:, None].transpose(2, 3) / self.d_k**0.5
        )  # (batch, heads, n, n)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e30)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        V = self.v_proj(x).view(*x.shape[:2], self.h, self.d_k).transpose(1, 2)
        heads = F.dropout(weights, self.p, self.training) @ V
        return self.out_proj(heads.transpose(1, 2).reshape(x.shape))


@style("layers in a ModuleList", "batched_torch.MultiHeadAttention")
class LayersInAModuleList(nn.Module):
    """The layers stand in an `nn.ModuleList` as well as under their names."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = self.layers
        self.num_heads = num_heads
        self.attn_dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        b, n, d = x.shape
        Q, K, V = [layer(x).view(b, n, self.num_heads, -1).transpose(1, 2) for layer in self.layers[:3]]
        _, weights = reference.attention(Q, K, V, mask)
        x = (self.attn_dropout(weights) @ V).transpose(1, 2).contiguous().view(b, n, d)
        return self.layers[-1](x)


class OwnLinear(nn.Module):
    """A linear layer of one's own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        return x @ self.weight.T + self.bias


@style("own layers, buffers and dropout", "batched_torch.MultiHeadAttention")
class OwnLayersBuffersAndDropout(nn.Module):
    """Linear layers of one's own, a buffer for the scale, and dropout by hand."""

    scale: Tensor

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.q_proj, self.k_proj = OwnLinear(d_model), OwnLinear(d_model)
        self.v_proj, self.out_proj = OwnLinear(d_model), OwnLinear(d_model)
        self.num_heads, self.keep = num_heads, 1.0 - dropout
        self.register_buffer("scale", torch.tensor(num_heads / d_model).sqrt())

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        Q, K, V = (
            torch.stack(p(x).chunk(self.num_heads, dim=-1), dim=1)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = (Q * self.scale) @ K.mT  # (batch, heads, n, n)
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
        weights = scores.masked_fill(~mask, -1e30).softmax(-1).masked_fill(~mask, 0.0)
        if self.training and self.keep < 1.0:
            stays = torch.bernoulli(torch.full_like(weights, self.keep))
            weights = weights * stays / max(self.keep, 1e-9)
        return self.out_proj(torch.cat((weights @ V).unbind(1), dim=-1))


@style("through the function", "batched_torch.MultiHeadAttention")
class ThroughTheFunction(FourLinears):
    """PyTorch's own function with separate weights, whose masks mean the opposite."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        batch, n, d_model = x.shape
        hidden = empty = None
        if mask is not None:
            mask = mask.expand(batch, self.h, n, n)
            empty = ~mask[:, 0].any(dim=-1, keepdim=True)  # (batch, n, 1)
            hidden = ~(mask | empty[:, None]).flatten(0, 1)  # (batch * heads, n, n)
        first = x.transpose(0, 1)  # (n, batch, d_model)
        layers = (self.q_proj, self.k_proj, self.v_proj)
        output, _ = F.multi_head_attention_forward(
            first, first, first, d_model, self.h, None, torch.cat([p.bias for p in layers]), None, None, False,
            self.p, self.out_proj.weight, self.out_proj.bias, training=self.training, attn_mask=hidden,
            use_separate_proj_weight=True, q_proj_weight=self.q_proj.weight,
            k_proj_weight=self.k_proj.weight, v_proj_weight=self.v_proj.weight,
        )  # fmt: skip
        output = output.transpose(0, 1)  # (batch, n, d_model)
        return output if empty is None else torch.where(empty, self.out_proj.bias, output)


# --- CausalSelfAttention -----------------------------------------------------------------------------------


class TwoLinears(nn.Module):
    """What most styles share."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__()
        self.num_heads, self.d_k, self.max_len = num_heads, d_model // num_heads, max_len
        self.qkv_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, `(batch, heads, n, d_k)`."""
        shape = (*x.shape[:2], self.num_heads, self.d_k)
        return [each.view(shape).transpose(1, 2) for each in self.qkv_proj(x).chunk(3, dim=-1)]


@style("kernel", "batched_torch.CausalSelfAttention")
class CausalKernel(TwoLinears):
    """PyTorch's kernel, which knows causal masks."""

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        Q, K, V = self.split(x)
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.out_proj(heads.transpose(1, 2).reshape(x.shape))


@style("mask made in forward", "batched_torch.CausalSelfAttention")
class MaskMadeInForward(TwoLinears):
    """The mask is made at each call, where x is."""

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        Q, K, V = self.split(x)
        n = x.shape[1]
        position = torch.arange(n, device=x.device)
        heads, _ = reference.attention(Q, K, V, position[:, None] >= position)
        return self.out_proj(heads.transpose(1, 2).reshape(x.shape))


@style("buffer of numbers", "batched_torch.CausalSelfAttention")
class BufferOfNumbers(TwoLinears):
    """A buffer of 0 and 1 with leading axes, kept in the state dict under the name `bias`."""

    bias: Tensor

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        self.register_buffer("bias", torch.tril(torch.ones(max_len, max_len)).view(1, 1, max_len, max_len))

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        B, T, C = x.size()
        q, k, v = self.qkv_proj(x).split(C, dim=2)
        q, k, v = (each.view(B, T, self.num_heads, C // self.num_heads).transpose(1, 2) for each in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.out_proj(y.transpose(1, 2).contiguous().view(B, T, C))


@style("added buffer", "batched_torch.CausalSelfAttention")
class AddedBuffer(TwoLinears):
    """A buffer of 0 and −∞ that is added."""

    added: Tensor

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        added = nn.Transformer.generate_square_subsequent_mask(max_len)
        self.register_buffer("added", added, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        Q, K, V = self.split(x)
        n = x.shape[1]
        scores = Q @ K.mT / self.d_k**0.5 + self.added[:n, :n]
        return self.out_proj((scores.softmax(-1) @ V).transpose(1, 2).flatten(2))


@style("moved in forward", "batched_torch.CausalSelfAttention")
class MovedInForward(TwoLinears):
    """A plain attribute, moved to where x is at each call."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        self.mask = torch.tril(torch.ones(max_len, max_len, dtype=torch.bool))

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        Q, K, V = self.split(x)
        n = x.shape[1]
        _, weights = reference.attention(Q, K, V, self.mask[:n, :n].to(x.device))
        return self.out_proj(rearrange(weights @ V, "b h n d -> b n (h d)"))


@style("prefix by prefix", "batched_torch.CausalSelfAttention")
class PrefixByPrefix(TwoLinears):
    """Each query over its own prefix, without any mask."""

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        Q, K, V = self.split(x)
        rows = [
            reference.attention(Q[:, :, i : i + 1], K[:, :, : i + 1], V[:, :, : i + 1])[0]
            for i in range(x.shape[1])
        ]
        return self.out_proj(torch.cat(rows, dim=2).transpose(1, 2).flatten(2))


@style("looks at numbers", "batched_torch.CausalSelfAttention")
class OnlyHere(TwoLinears):
    """A look at numbers, which no device without memory allows; right on every real one."""

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        Q, K, V = self.split(x)
        scores = Q @ K.mT / self.d_k**0.5
        scores = scores - scores.max().item()
        exponentials = scores.exp().tril()
        heads = exponentials / exponentials.sum(dim=-1, keepdim=True) @ V
        return self.out_proj(heads.transpose(1, 2).flatten(2))


# --- from_builtin ------------------------------------------------------------------------------------------


@style("by state dict", "batched_torch.from_builtin")
def from_builtin_by_state_dict(builtin: nn.MultiheadAttention) -> reference.MultiHeadAttention:
    """Everything through `load_state_dict`."""
    d_model = builtin.embed_dim
    weight = builtin.in_proj_weight
    bias = builtin.in_proj_bias if builtin.in_proj_bias is not None else weight.new_zeros(3 * d_model)
    out_bias = builtin.out_proj.bias if builtin.out_proj.bias is not None else weight.new_zeros(d_model)
    state = {"out_proj.weight": builtin.out_proj.weight, "out_proj.bias": out_bias}
    for i, name in enumerate("qkv"):
        state[f"{name}_proj.weight"] = weight[i * d_model : (i + 1) * d_model]
        state[f"{name}_proj.bias"] = bias[i * d_model : (i + 1) * d_model]
    layer = reference.MultiHeadAttention(d_model, builtin.num_heads, dropout=builtin.dropout)
    layer = layer.to(device=weight.device, dtype=weight.dtype)
    layer.load_state_dict(state)
    layer.training = builtin.training
    layer.train(builtin.training)
    return layer


@style("by new parameters", "batched_torch.from_builtin")
def from_builtin_by_new_parameters(builtin: nn.MultiheadAttention) -> reference.MultiHeadAttention:
    """New parameters in place of those that the layer starts with."""
    layer = reference.MultiHeadAttention(builtin.embed_dim, builtin.num_heads, builtin.dropout)
    layers = [layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj]
    weights = [*builtin.in_proj_weight.split(builtin.embed_dim), builtin.out_proj.weight]
    biases = [torch.zeros_like(weights[0][0])] * 4
    if builtin.in_proj_bias is not None:
        biases = [*builtin.in_proj_bias.split(builtin.embed_dim), builtin.out_proj.bias]
    for linear, weight, bias in zip(layers, weights, biases, strict=True):
        linear.weight = nn.Parameter(weight.detach().clone())
        linear.bias = nn.Parameter(bias.detach().clone())
    return layer.train() if builtin.training else layer.eval()


@style("by deep copy", "batched_torch.from_builtin")
def from_builtin_by_deep_copy(builtin: nn.MultiheadAttention) -> reference.MultiHeadAttention:
    """Copies of what is there, completed where there is no bias."""
    source = copy.deepcopy(builtin)
    layer = reference.MultiHeadAttention(source.embed_dim, source.num_heads, source.dropout)
    layer.to(source.in_proj_weight.dtype)
    q, k, v = source.in_proj_weight.data.chunk(3)
    layer.q_proj.weight.data, layer.k_proj.weight.data, layer.v_proj.weight.data = q, k, v
    layer.out_proj.weight.data = source.out_proj.weight.data
    for i, linear in enumerate((layer.q_proj, layer.k_proj, layer.v_proj)):
        if source.in_proj_bias is None:
            nn.init.zeros_(linear.bias)
        else:
            linear.bias.data = source.in_proj_bias.data.view(3, -1)[i]
    if source.out_proj.bias is None:
        nn.init.zeros_(layer.out_proj.bias)
    else:
        layer.out_proj.bias.data = source.out_proj.bias.data
    layer.train(source.training)
    return layer


@style("into another layer", "batched_torch.from_builtin")
def from_builtin_into_another_layer(builtin: nn.MultiheadAttention) -> FourLinears:
    """The same for a layer that is written in another way."""
    layer = SumOverHeads(builtin.embed_dim, builtin.num_heads, builtin.dropout)
    layer.load_state_dict(from_builtin_by_state_dict(builtin).state_dict())
    return layer.to(builtin.in_proj_weight.dtype).train(builtin.training)


# --- sdpa_attention ----------------------------------------------------------------------------------------


@style("trusting the kernel", "batched_torch.sdpa_attention")
def sdpa_trusting_the_kernel(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """The kernels of the CPU give 0 to a query without keys."""
    return F.scaled_dot_product_attention(Q, K, V, mask)


@style("added mask", "batched_torch.sdpa_attention")
def sdpa_added_mask(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """A mask of 0 and −∞ that is added; queries without keys are taken out first."""
    if mask is None:
        return F.scaled_dot_product_attention(Q, K, V)
    some = mask.any(dim=-1, keepdim=True)  # (..., n, 1)
    added = torch.zeros(mask.shape, dtype=Q.dtype).masked_fill(~mask & some, float("-inf"))
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=added) * some


@style("in four axes", "batched_torch.sdpa_attention")
def sdpa_in_four_axes(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """All leading axes are made into two, and back."""
    leading, n, m = Q.shape[:-2], Q.shape[-2], K.shape[-2]
    Q, K, V = (each.reshape(1, -1, *each.shape[-2:]) for each in (Q, K, V))
    if mask is None:
        return F.scaled_dot_product_attention(Q, K, V).view(*leading, n, -1)
    mask = mask.expand(*leading, n, m).reshape(1, -1, n, m)
    some = mask.any(-1, keepdim=True)
    output = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask.logical_or(~some))
    return torch.where(some, output, 0.0).view(*leading, n, V.shape[-1])
