"""Mistakes in `CausalSelfAttention`."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib import torch_attention as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.code.batched_torch.attention import (
    attention_mask_after_softmax,
    attention_masked_scores_zero,
)
from mha_lib.pitfalls.code.batched_torch.multi_head_attention import gives_two_results
from mha_lib.pitfalls.evidence import methods


class CausalInSteps(right.CausalSelfAttention):
    """The right layer, cut into steps; its buffer `causal` is the mask of `max_len` tokens."""

    def forward(self, x: Tensor) -> Any:
        """The output, step by step."""
        Q, K, V = self.queries_keys_values(x)
        heads = self.attend(Q, K, V, self.mask(x))  # (batch, heads, n, d_k)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)

    def queries_keys_values(self, x: Tensor) -> Any:
        """Queries, keys and values as one tensor, `(3, batch, heads, n, d_k)`."""
        qkv = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, self.d_k))  # (batch, n, 3, heads, d_k)
        return qkv.permute(2, 0, 3, 1, 4)  # (3, batch, heads, n, d_k)

    def mask(self, x: Tensor) -> Tensor:
        """The mask `(n, n)`: of the buffer `causal`, the first n rows and columns."""
        return self.causal[: x.shape[1], : x.shape[1]]  # (n, n)

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """The heads, `(batch, heads, n, d_k)`, in whatever dtype the layer has."""
        return right.attention(Q, K, V, mask)[0]  # (batch, heads, n, d_k)


@mistake("causal-missing", "batched_torch.CausalSelfAttention")
class CausalMissing(CausalInSteps):
    """Wrong: every token sees all tokens."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x) | True


@mistake("causal-transposed", "batched_torch.CausalSelfAttention")
class CausalTransposed(CausalInSteps):
    """Wrong: `triu` keeps the future, and hides the past."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x).T


@mistake("causal-hides-self", "batched_torch.CausalSelfAttention")
class CausalHidesSelf(CausalInSteps):
    """Wrong: a token does not see itself."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x).tril(-1)


@mistake("causal-sees-next", "batched_torch.CausalSelfAttention")
class CausalSeesNext(CausalInSteps):
    """Wrong: a token sees the next one."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x) | super().mask(x).T.tril(1)


@mistake("mask-after-softmax", "batched_torch.CausalSelfAttention")
class CausalMaskAfterSoftmax(CausalInSteps):
    """Wrong: weights are removed after the softmax, so the rest sums to less than 1."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return attention_mask_after_softmax(Q, K, V, mask)[0]


@mistake("masked-scores-zero", "batched_torch.CausalSelfAttention")
class CausalMaskedScoresZero(CausalInSteps):
    """Wrong: the scores are multiplied with the lower triangle."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return attention_masked_scores_zero(Q, K, V, mask)[0]


@mistake("mask-not-sliced", "batched_torch.CausalSelfAttention")
class MaskNotSliced(CausalInSteps):
    """Wrong: the mask of max_len tokens is used for fewer."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.causal  # (max_len, max_len)


@mistake("mask-of-first-call", "batched_torch.CausalSelfAttention")
class MaskOfFirstCall(CausalInSteps):
    """Wrong: the mask that the first call needed is kept for all calls."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        n = x.shape[1]
        self.causal = self.causal[:n, :n]  # (n, n), from now on
        return self.causal


@mistake("mask-not-a-buffer", "batched_torch.CausalSelfAttention")
class MaskNotABuffer(CausalInSteps):
    """Wrong: a tensor in a plain attribute does not move with the layer."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        self.masks = [self.causal]  # in a list, where PyTorch does not look for tensors

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        n = x.shape[1]
        return self.masks[0][:n, :n]  # (n, n)


@mistake("mask-as-parameter", "batched_torch.CausalSelfAttention")
class MaskAsParameter(CausalInSteps):
    """Wrong: the mask is numbers to be added, and among the parameters."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        hidden = torch.full((max_len, max_len), float("-inf")).triu(1)  # (max_len, max_len)
        self.hidden = nn.Parameter(hidden)

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Right but for whose the mask is."""
        n = Q.shape[-2]
        scores = Q @ K.transpose(-2, -1) / self.d_k**0.5 + self.hidden[:n, :n]  # (batch, heads, n, n)
        return scores.softmax(dim=-1) @ V  # (batch, heads, n, d_k)


@mistake("fused-qkv-misread", "batched_torch.CausalSelfAttention")
class FusedQkvMisread(CausalInSteps):
    """Wrong: query, key and value of each head are taken to lie together."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        qkv = self.qkv_proj(x).unflatten(-1, (self.num_heads, 3, self.d_k))  # (batch, n, heads, 3, d_k)
        return qkv.permute(3, 0, 2, 1, 4)  # (3, batch, heads, n, d_k)


@mistake("fused-qkv-order", "batched_torch.CausalSelfAttention")
class FusedQkvOrder(CausalInSteps):
    """Wrong: the first third is taken for the values."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        Q, K, V = super().queries_keys_values(x)  # (batch, heads, n, d_k) each
        return V, K, Q


@mistake("queries-and-keys-swapped", "batched_torch.CausalSelfAttention")
class CausalQueriesAndKeysSwapped(CausalInSteps):
    """Wrong: the first third is taken for the keys, the second for the queries."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        K, Q, V = super().queries_keys_values(x)
        return Q, K, V


@mistake("split-without-transpose", "batched_torch.CausalSelfAttention")
class CausalSplitWithoutTranspose(CausalInSteps):
    """Wrong: `view` goes through the memory in order, which mixes tokens and features."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        shape = (x.shape[0], self.num_heads, -1, self.d_k)
        return [each.reshape(shape) for each in self.qkv_proj(x).chunk(3, dim=-1)]


@mistake("merge-without-transpose", "batched_torch.CausalSelfAttention")
class CausalMergeWithoutTranspose(CausalInSteps):
    """Wrong: the heads are laid one after the other, not side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        Q, K, V = self.queries_keys_values(x)
        heads = self.attend(Q, K, V, self.mask(x))  # (batch, heads, n, d_k)
        return self.out_proj(heads.reshape(x.shape))  # (batch, n, d_model)


@mistake("heads-fold-by-reshape", "batched_torch.CausalSelfAttention")
class CausalFoldByReshape(CausalMergeWithoutTranspose, CausalSplitWithoutTranspose):
    """Wrong: cut and put together by `reshape`, which undo each other."""


@mistake("no-scale", "batched_torch.CausalSelfAttention")
class CausalNoScale(CausalInSteps):
    """Wrong: the scores are not divided by √d_k."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return super().attend(Q * self.d_k**0.5, K, V, mask)


@mistake("scale-by-d-model", "batched_torch.CausalSelfAttention")
class CausalScaleByDModel(CausalInSteps):
    """Wrong: the scores are divided by √d_model."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return super().attend(Q / self.num_heads**0.5, K, V, mask)


@mistake("no-output-projection", "batched_torch.CausalSelfAttention")
class CausalNoOutputProjection(CausalInSteps):
    """Wrong: the heads are returned side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        Q, K, V = self.queries_keys_values(x)
        heads = self.attend(Q, K, V, self.mask(x))  # (batch, heads, n, d_k)
        return heads.transpose(1, 2).flatten(2)  # (batch, n, d_model)


@mistake("projection-without-bias", "batched_torch.CausalSelfAttention")
class CausalWithoutBias(right.CausalSelfAttention):
    """Wrong: the linear layers have no bias."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        self.qkv_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)


@mistake("batch-first-forgotten", "batched_torch.CausalSelfAttention")
class CausalBatchFirstForgotten(right.CausalSelfAttention):
    """Wrong: the sequence is taken to come first, so tokens attend across the batch."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


@mistake("dtype-fixed", "batched_torch.CausalSelfAttention")
class CausalDtypeFixed(CausalInSteps):
    """Wrong: the mask is made of float32 numbers to be added, whatever the layer's dtype is."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        bias = torch.zeros(mask.shape, device=mask.device)  # (n, n)
        bias = bias.masked_fill(~mask, float("-inf"))
        scores = Q @ K.transpose(-2, -1) / self.d_k**0.5 + bias  # (batch, heads, n, n)
        return scores.softmax(dim=-1) @ V  # (batch, heads, n, d_k)


@mistake("dropout-by-default", "batched_torch.CausalSelfAttention")
class CausalDropout(CausalInSteps):
    """Wrong: in training weights are dropped, although nobody asked for it."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        weights = right.attention(Q, K, V, mask)[1]  # (batch, heads, n, n)
        return nn.functional.dropout(weights, 0.5, self.training) @ V  # (batch, heads, n, d_k)


@mistake("parameters-frozen", "batched_torch.CausalSelfAttention", form="biases")
class CausalBiasesFrozen(right.CausalSelfAttention):
    """Wrong: the biases require no gradient, so they stay as they start."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        for linear in (self.qkv_proj, self.out_proj):
            linear.bias.requires_grad_(False)


@mistake("mask-not-a-buffer", "batched_torch.CausalSelfAttention", form="made-at-the-first-call")
class MaskMadeAtTheFirstCall(CausalInSteps):
    """Wrong: a tensor that the first call makes on the device of x does not move with the layer."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        n = x.shape[1]
        if not hasattr(self, "masks"):
            self.masks = [torch.ones_like(self.causal).tril()]
        return self.masks[0][:n, :n]  # (n, n)


@mistake("same-columns-for-every-head", "batched_torch.CausalSelfAttention", form="biases")
class CausalBiasesOfTheFirstHead(CausalInSteps):
    """Wrong: every head gets the biases of the first one."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        biases = self.qkv_proj.bias.unflatten(0, (3, self.num_heads, self.d_k))  # (3, heads, d_k)
        first = biases[:, :1].expand(-1, self.num_heads, -1).flatten()  # (3 * d_model,)
        qkv = (x @ self.qkv_proj.weight.T + first).unflatten(-1, (3, self.num_heads, self.d_k))
        return qkv.permute(2, 0, 3, 1, 4)  # (3, batch, heads, n, d_k)


@law("dropout-by-default", "batched_torch.CausalSelfAttention")
def drops_in_training(tested: Any, steps: Sequence[Any]) -> bool:
    """A layer in training gives two results, and one in eval mode does not."""
    if "train" not in methods(steps):
        return False
    layer = tested(8, 2, 16)
    layer.eval()
    if gives_two_results(layer):
        return False
    layer.train()
    return gives_two_results(layer)


@law("mask-not-a-buffer", "batched_torch.CausalSelfAttention")
def something_stays_on_the_cpu(tested: Any, steps: Sequence[Any]) -> bool:
    """After a move to another device, an error says that tensors there meet some on the CPU."""
    texts = [str(step.error) for step in steps if getattr(step, "error", None) is not None]
    return any("device" in text and "cpu" in text for text in texts) and not keeps_tokens(tested)


def keeps_tokens(tested: Any) -> bool:
    """Whether the output for some tokens depends on those of an earlier call."""
    shapes = {
        "qkv_proj.weight": (12, 4),
        "qkv_proj.bias": (12,),
        "out_proj.weight": (4, 4),
        "out_proj.bias": (4,),
    }
    numbers = {
        name: torch.linspace(-1.0, 1.0, math.prod(shape)).sin().view(shape) for name, shape in shapes.items()
    }
    x = torch.linspace(-2.0, 3.0, 12).view(1, 3, 4)
    fresh, used = tested(4, 1, 3), tested(4, 1, 3)
    for layer in (fresh, used):
        layer.load_parameters(numbers)
        layer.eval()
    used(-x)
    return not torch.allclose(used(x), fresh(x), atol=1e-5)
