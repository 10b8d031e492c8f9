"""Mistakes in `MultiHeadAttention`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mha_lib import torch_attention as right
from mha_lib.heads import head_dim
from mha_lib.pitfalls import one_head
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.code.batched_torch.attention import (
    attention_empty_row_nan,
    attention_empty_row_uniform,
    attention_nan_gradient,
    masked_softmax,
    scaled_scores,
)
from mha_lib.pitfalls.evidence import given, methods

Mask = Tensor | None


class MultiHeadInSteps(right.MultiHeadAttention):
    """The right layer, cut into steps, each of which can be written anew."""

    def forward(self, x: Tensor, mask: Mask = None) -> Any:
        """The output, step by step."""
        Q, K, V = (self.split_heads(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj))
        return self.out_proj(self.merge_heads(self.attend(Q, K, V, mask)))  # (batch, n, d_model)

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """The heads, `(batch, heads, n, d_k)`: the weights, through `self.dropout`, times `V`."""
        return self.dropout(self.weigh(Q, K, mask)) @ V  # (batch, heads, n, d_k)

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """The weights before dropout, `(batch, heads, n, n)`: the masked softmax of the scaled scores."""
        return masked_softmax(scaled_scores(Q, K), mask)  # (batch, heads, n, n)

    def merge_heads(self, heads: Tensor) -> Tensor:
        """The heads side by side, `(batch, n, d_model)`."""
        return heads.transpose(1, 2).flatten(2)  # (batch, n, d_model)


@mistake("split-without-transpose", "batched_torch.MultiHeadAttention")
class SplitWithoutTranspose(MultiHeadInSteps):
    """Wrong: `view` goes through the memory in order, which mixes tokens and features."""

    def split_heads(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x.view(x.shape[0], self.num_heads, -1, self.d_k)  # (batch, heads, n, d_k)


@mistake("heads-fold-by-reshape", "batched_torch.MultiHeadAttention")
class FoldByReshape(SplitWithoutTranspose):
    """Wrong: cut by `view` and put together by `reshape`, which undo each other."""

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Wrong."""
        return heads.reshape(heads.shape[0], -1, self.num_heads * self.d_k)  # (batch, n, d_model)


@mistake("merge-without-transpose", "batched_torch.MultiHeadAttention")
class MergeWithoutTranspose(MultiHeadInSteps):
    """Wrong: the heads are laid one after the other, not side by side."""

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Wrong."""
        return heads.reshape(heads.shape[0], -1, self.num_heads * self.d_k)  # (batch, n, d_model)


@mistake("attention-between-heads", "batched_torch.MultiHeadAttention")
class AttentionBetweenHeads(MultiHeadInSteps):
    """Wrong: without the transposition the heads of a token attend to each other."""

    def split_heads(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x.unflatten(-1, (self.num_heads, self.d_k))  # (batch, n, heads, d_k)

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Undoes it."""
        return heads.flatten(2)  # (batch, n, d_model)


@mistake("in-place-breaks-autograd", "batched_torch.MultiHeadAttention")
class DropoutInPlace(MultiHeadInSteps):
    """Wrong: dropout overwrites the result of the softmax, which its backward pass needs."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        weights = self.weigh(Q, K, mask)  # (batch, heads, n, n)
        nn.functional.dropout(weights, self.dropout.p, self.training, inplace=True)
        return weights @ V  # (batch, heads, n, d_k)


@mistake("heads-interleaved", "batched_torch.MultiHeadAttention")
class HeadsInterleaved(MultiHeadInSteps):
    """Wrong: head i takes every num_heads-th feature."""

    def split_heads(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x.unflatten(-1, (self.d_k, self.num_heads)).permute(0, 3, 1, 2)  # (batch, heads, n, d_k)


@mistake("batch-first-forgotten", "batched_torch.MultiHeadAttention")
class BatchFirstForgotten(right.MultiHeadAttention):
    """Wrong: the sequence is taken to come first, so tokens attend across the batch."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x.transpose(0, 1), mask).transpose(0, 1)


@mistake("no-scale", "batched_torch.MultiHeadAttention")
class NoScale(MultiHeadInSteps):
    """Wrong: the scores are not divided by √d_k."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q * self.d_k**0.5, K, mask)


@mistake("scale-by-d-model", "batched_torch.MultiHeadAttention")
class ScaleByDModel(MultiHeadInSteps):
    """Wrong: the scores are divided by √d_model."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q / self.num_heads**0.5, K, mask)


@mistake("linear-applied-transposed", "batched_torch.MultiHeadAttention")
class LinearAppliedTransposed(right.MultiHeadAttention):
    """Wrong: a linear layer keeps its weight as (out, in) and multiplies with the transpose."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        linears = (self.q_proj, self.k_proj, self.v_proj)
        projected = (x @ linear.weight + linear.bias for linear in linears)  # (batch, n, d_model) each
        Q, K, V = (self.split_heads(each) for each in projected)  # (batch, heads, n, d_k)
        heads, _ = right.attention(Q, K, V, mask)  # (batch, heads, n, d_k)
        heads = heads.transpose(1, 2).flatten(2)  # (batch, n, d_model)
        return heads @ self.out_proj.weight + self.out_proj.bias


@mistake("shared-projection", "batched_torch.MultiHeadAttention")
class SharedProjection(right.MultiHeadAttention):
    """Wrong: one and the same linear layer under three names."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.k_proj = self.v_proj = self.q_proj


@mistake("no-output-projection", "batched_torch.MultiHeadAttention")
class NoOutputProjection(MultiHeadInSteps):
    """Wrong: the heads are returned side by side."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        Q, K, V = (self.split_heads(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj))
        return self.merge_heads(self.attend(Q, K, V, mask))  # (batch, n, d_model)


@mistake("value-used-as-key", "batched_torch.MultiHeadAttention")
class ValueUsedAsKey(MultiHeadInSteps):
    """Wrong: the queries are compared with the values."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().attend(Q, V, V, mask)


@mistake("keys-and-values-exchanged", "batched_torch.MultiHeadAttention")
class KeysAndValuesExchanged(MultiHeadInSteps):
    """Wrong: `v_proj` makes the keys and `k_proj` the values."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().attend(Q, V, K, mask)  # (batch, heads, n, d_k)


@mistake("queries-and-keys-swapped", "batched_torch.MultiHeadAttention")
class QueriesAndKeysSwapped(MultiHeadInSteps):
    """Wrong: the keys ask and the queries answer."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().attend(K, Q, V, mask)


@mistake("residual-added", "batched_torch.MultiHeadAttention")
class ResidualAdded(MultiHeadInSteps):
    """Wrong: the residual connection belongs to the block."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return x + super().forward(x, mask)


@mistake("weights-returned-too", "batched_torch.MultiHeadAttention")
class WeightsReturnedToo(MultiHeadInSteps):
    """Wrong: a pair is returned."""

    def forward(self, x: Tensor, mask: Mask = None) -> Any:
        """Wrong."""
        Q, K = self.split_heads(self.q_proj(x)), self.split_heads(self.k_proj(x))  # (batch, heads, n, d_k)
        return super().forward(x, mask), masked_softmax(scaled_scores(Q, K), mask)


@mistake("mask-no-effect", "batched_torch.MultiHeadAttention")
class LayerMaskNoEffect(MultiHeadInSteps):
    """Wrong: the mask is never used."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, None)


@mistake("mask-inverted", "batched_torch.MultiHeadAttention")
class LayerMaskInverted(MultiHeadInSteps):
    """Wrong: True is taken to mean "ignore", as for `nn.MultiheadAttention`."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, None if mask is None else ~mask)


@mistake("first-mask-for-all-sequences", "batched_torch.MultiHeadAttention")
class LayerFirstMaskForAll(MultiHeadInSteps):
    """Wrong: the first sequence's mask is used for all."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, mask[0] if mask is not None and mask.dim() == 4 else mask)


@mistake("mask-batch-on-head-axis", "batched_torch.MultiHeadAttention")
class MaskBatchOnHeadAxis(MultiHeadInSteps):
    """Wrong: without its axis of size 1, the mask's batch meets the heads."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, mask[:, 0] if mask is not None and mask.dim() == 4 else mask)


@mistake("mask-repeated-in-wrong-order", "batched_torch.MultiHeadAttention")
class MaskRepeatedInWrongOrder(MultiHeadInSteps):
    """Wrong: heads lie within sequences, but the masks are repeated as if sequences lay within heads."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        if mask is not None and mask.dim() == 4:
            mask = mask[:, 0].repeat(self.num_heads, 1, 1)  # (batch * heads, n, n)
        heads = super().attend(Q.flatten(0, 1), K.flatten(0, 1), V.flatten(0, 1), mask)
        return heads.view_as(V)  # (batch, heads, n, d_k)


@mistake("empty-row-nan", "batched_torch.MultiHeadAttention")
class LayerEmptyRowNan(MultiHeadInSteps):
    """Wrong: a row of nothing but −∞ becomes 0/0."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return attention_empty_row_nan(Q, K, K, mask)[1]  # (batch, heads, n, n)


@mistake("empty-row-uniform", "batched_torch.MultiHeadAttention")
class LayerEmptyRowUniform(MultiHeadInSteps):
    """Wrong: a row in which all scores are equally low attends to everything alike."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return attention_empty_row_uniform(Q, K, K, mask)[1]  # (batch, heads, n, n)


@mistake("nan-gradient-on-empty-row", "batched_torch.MultiHeadAttention")
class LayerNanGradient(MultiHeadInSteps):
    """Wrong: NaN is replaced in the output, and stays in the gradient."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return attention_nan_gradient(Q, K, K, mask)[1]  # (batch, heads, n, n)


@mistake("gradient-cut-off", "batched_torch.MultiHeadAttention")
class LayerCutOff(MultiHeadInSteps):
    """Wrong: the weights are taken out of the graph."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, mask).detach()  # (batch, heads, n, n)


@mistake("first-mask-kept", "batched_torch.MultiHeadAttention")
class FirstMaskKept(right.MultiHeadAttention):
    """Wrong: the first mask is kept, and no later one looked at."""

    first: Mask = None

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.first is None:
            self.first = mask
        return super().forward(x, self.first)


@mistake("view-of-transposed", "batched_torch.MultiHeadAttention")
class ViewOfTransposed(right.MultiHeadAttention):
    """Wrong: `view` lays sequences and tokens together, which it cannot do for every x."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        flat = x.view(-1, x.shape[-1])  # (batch * n, d_model)
        return super().forward(flat.view(x.shape), mask)


@mistake("dropout-in-eval", "batched_torch.MultiHeadAttention")
class DropoutInEval(MultiHeadInSteps):
    """Wrong: `dropout` as a function is in training unless it is told otherwise."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        weights = self.weigh(Q, K, mask)  # (batch, heads, n, n)
        return nn.functional.dropout(weights, self.dropout.p) @ V  # (batch, heads, n, d_k)


@mistake("dropout-before-softmax", "batched_torch.MultiHeadAttention")
class DropoutBeforeSoftmax(MultiHeadInSteps):
    """Wrong: scores are dropped, and a score of 0 is a score like any other."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return masked_softmax(self.dropout(scaled_scores(Q, K)), mask) @ V  # (batch, heads, n, d_k)


@mistake("dropout-on-output", "batched_torch.MultiHeadAttention")
class DropoutOnOutput(MultiHeadInSteps):
    """Wrong: features of the output are dropped, not weights."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return self.dropout(super().forward(x, mask))

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Without dropout."""
        return self.weigh(Q, K, mask) @ V  # (batch, heads, n, d_k)


@mistake("dropout-on-heads", "batched_torch.MultiHeadAttention")
class DropoutOnHeads(MultiHeadInSteps):
    """Wrong: single features of the heads are dropped, not weights."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return self.dropout(self.weigh(Q, K, mask) @ V)  # (batch, heads, n, d_k)


@mistake("dropout-missing", "batched_torch.MultiHeadAttention")
class DropoutMissing(MultiHeadInSteps):
    """Wrong: the argument is taken and never used."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return self.weigh(Q, K, mask) @ V  # (batch, heads, n, d_k)


@mistake("dropout-on-heads", "batched_torch.MultiHeadAttention", form="side-by-side")
class DropoutOnHeadsSideBySide(DropoutMissing):
    """Wrong: the same, after the heads are merged."""

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Wrong."""
        return self.dropout(super().merge_heads(heads))  # (batch, n, d_model)


@mistake("dropout-not-rescaled", "batched_torch.MultiHeadAttention")
class DropoutNotRescaled(MultiHeadInSteps):
    """Wrong: the weights that stay do not grow, so that the output is smaller in training."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        weights = self.weigh(Q, K, mask)  # (batch, heads, n, n)
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return weights @ V  # (batch, heads, n, d_k)


@mistake("dropout-renormalised", "batched_torch.MultiHeadAttention")
class DropoutRenormalised(MultiHeadInSteps):
    """Wrong: the weights that stay are divided by their sum, so that it is 1 again."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        weights = self.dropout(self.weigh(Q, K, mask))  # (batch, heads, n, n)
        return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-12) @ V  # (batch, heads, n, d_k)


@mistake("dropout-keep-probability", "batched_torch.MultiHeadAttention")
class DropoutKeepProbability(right.MultiHeadAttention):
    """Wrong: the argument is taken for the probability to stay."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, 1.0 - dropout)


@mistake("dropout-by-default", "batched_torch.MultiHeadAttention")
class DropoutByDefault(right.MultiHeadAttention):
    """Wrong: there is dropout although nobody asked for it."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 1.0) -> None:
        super().__init__(d_model, num_heads, dropout)


@mistake("projection-without-bias", "batched_torch.MultiHeadAttention")
class ProjectionWithoutBias(right.MultiHeadAttention):
    """Wrong: the linear layers have no bias."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake("heads-in-a-list", "batched_torch.MultiHeadAttention")
class LinearsInAList(nn.Module):
    """Wrong: PyTorch does not look into a plain list for layers."""

    q_proj = property(lambda self: self.linears[0])
    k_proj = property(lambda self: self.linears[1])
    v_proj = property(lambda self: self.linears[2])
    out_proj = property(lambda self: self.linears[3])

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.d_k = num_heads, head_dim(d_model, num_heads)
        self.dropout = nn.Dropout(dropout)
        self.linears = [nn.Linear(d_model, d_model) for _ in range(4)]

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right but for where the layers are."""
        cut = (-1, (self.num_heads, self.d_k))
        projected = (linear(x) for linear in self.linears[:3])  # (batch, n, d_model) each
        Q, K, V = (each.unflatten(*cut).transpose(1, 2) for each in projected)  # (batch, heads, n, d_k)
        heads = self.dropout(masked_softmax(scaled_scores(Q, K), mask)) @ V  # (batch, heads, n, d_k)
        return self.linears[3](heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)


@mistake("parameters-frozen", "batched_torch.MultiHeadAttention", form="biases")
class BiasesFrozen(right.MultiHeadAttention):
    """Wrong: the biases require no gradient, so they stay as they start."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        for linear in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            linear.bias.requires_grad_(False)


@mistake("same-columns-for-every-head", "batched_torch.MultiHeadAttention", form="biases")
class BiasesOfTheFirstHead(right.MultiHeadAttention):
    """Wrong: every head gets the biases of the first one."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        projected = (
            x @ linear.weight.T + linear.bias[: self.d_k].repeat(self.num_heads)
            for linear in (self.q_proj, self.k_proj, self.v_proj)
        )  # (batch, n, d_model) each
        Q, K, V = (self.split_heads(each) for each in projected)  # (batch, heads, n, d_k)
        weights = self.dropout(masked_softmax(scaled_scores(Q, K), mask))  # (batch, heads, n, n)
        return self.out_proj((weights @ V).transpose(1, 2).flatten(2))


@mistake("no-scale", "batched_torch.MultiHeadAttention", form="under-a-mask")
class LayerNoScaleUnderAMask(MultiHeadInSteps):
    """Wrong: with a mask the scores are not divided."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q if mask is None else Q * self.d_k**0.5, K, mask)


@mistake("axes-of-one-dropped", "batched_torch.MultiHeadAttention", form="batch")
class LayerSqueezed(right.MultiHeadAttention):
    """Wrong: a batch of one loses its axis."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x, mask).squeeze(0)


@mistake("empty-row-nan", "batched_torch.MultiHeadAttention", form="of-a-sequence")
class LayerEmptyRowOfASequenceNan(MultiHeadInSteps):
    """Wrong: queries without keys get 0/0 if each sequence has its own mask."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        if mask is None or mask.dim() == 2:
            return super().weigh(Q, K, mask)
        return attention_empty_row_nan(Q, K, K, mask)[1]  # (batch, heads, n, n)


@mistake("weights-kept-from-first-call", "batched_torch.MultiHeadAttention")
class WeightsKeptFromFirstCall(right.MultiHeadAttention):
    """Wrong: the projections are put together at the first call, and kept whatever becomes of their parts."""

    fused: Tensor | None = None

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        linears = (self.q_proj, self.k_proj, self.v_proj)
        if self.fused is None:
            self.fused = torch.cat([linear.weight for linear in linears])  # (3 * d_model, d_model)
        biases = torch.cat([linear.bias for linear in linears])  # (3 * d_model,)
        packed = x @ self.fused.T + biases  # (batch, n, 3 * d_model)
        Q, K, V = (self.split_heads(each) for each in packed.chunk(3, dim=-1))  # (batch, heads, n, d_k)
        weights = self.dropout(masked_softmax(scaled_scores(Q, K), mask))  # (batch, heads, n, n)
        return self.out_proj((weights @ V).transpose(1, 2).flatten(2))


# --- laws: the same input twice ----------------------------------------------------------------------------


def gives_two_results(layer: Any) -> bool:
    """Whether two calls with the same tokens differ; that no weight is dropped by chance has no chance here."""
    x = torch.linspace(-1.0, 1.0, 16 * 8).view(1, 16, 8)
    first, second = layer(x), layer(x)
    return not torch.equal(first.nan_to_num(), second.nan_to_num())


def probability(steps: Sequence[Any]) -> float:
    """The dropout that the first layer of a part was made with; 0 if none was asked for."""
    made = [step for step in steps if step.request["target"] == "MultiHeadAttention"]
    return given(made[0], 2, "dropout", 0.0) if made else 0.0


@law("dropout-in-eval", "batched_torch.MultiHeadAttention")
def drops_in_eval_mode(tested: Any, steps: Sequence[Any]) -> bool:
    """A layer in eval mode gives two results."""
    if "train" in methods(steps):
        return False
    layer = tested(8, 2, dropout=0.5) if probability(steps) else tested(8, 2)
    layer.eval()
    return gives_two_results(layer)


@law("dropout-by-default", "batched_torch.MultiHeadAttention")
def drops_by_default(tested: Any, steps: Sequence[Any]) -> bool:
    """A layer in training gives two results, though nobody asked for dropout, and one in eval mode."""
    if "train" not in methods(steps) or probability(steps):
        return False
    layer = tested(8, 2)
    layer.eval()
    if gives_two_results(layer):
        return False
    layer.train()
    return gives_two_results(layer)


# --- laws of one head --------------------------------------------------------------------------------------


def in_module(
    tested: Any, Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray | None = None
) -> Any:
    """The output of a layer with one head, as `one_head.in_layer`."""

    def layer(X: np.ndarray, *weights: Any) -> np.ndarray:
        made = tested(X.shape[-1], 1)
        made.eval()
        parameters = {}
        for name, W in zip(("q_proj", "k_proj", "v_proj", "out_proj"), weights, strict=False):
            parameters[f"{name}.weight"] = torch.tensor(W.T, dtype=torch.float32)
            parameters[f"{name}.bias"] = torch.zeros(len(W))
        made.load_parameters(parameters)
        x = torch.tensor(X, dtype=torch.float32)
        output = made(x) if mask is None else made(x, torch.from_numpy(weights[5]))
        return np.asarray(output)

    return one_head.in_layer(layer, Q, K, V, mask)


def mask_in(step: Any) -> Any:
    """The mask of a call of the layer; there is none when it is made."""
    return None if step.request["target"] == "MultiHeadAttention" else given(step, 1, "mask")


HEAD = one_head.Head(in_module, mask=mask_in)
ITEM = "batched_torch.MultiHeadAttention"
one_head.tell(ITEM, HEAD, one_head.SOFTMAX | one_head.OF_A_LAYER | one_head.SEVERAL_ROWS, one_head.anything)
one_head.tell(ITEM, HEAD, one_head.SCALE_OF_A_LAYER, one_head.anything)
one_head.tell(ITEM, HEAD, one_head.MASK_OF_A_LAYER, one_head.masked)
one_head.tell(ITEM, HEAD, {"always-causal": one_head.always_causal}, one_head.unmasked)
