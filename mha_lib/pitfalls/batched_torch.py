"""Mistakes in the items of `batched_torch`, as code that needs PyTorch; the words stand with the families.

The layers are the right ones but for the method that is written anew.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib import torch_attention as right
from mha_lib.heads import head_dim

Mask = Tensor | None
Pair = tuple[Tensor, Tensor]

# --- attention: the right steps ----------------------------------------------------------------------------


def scaled_scores(Q: Tensor, K: Tensor) -> Tensor:
    """Q Kᵀ / √d_k, in single precision at least."""
    dtype = torch.promote_types(Q.dtype, torch.float32)
    return Q.to(dtype) @ K.to(dtype).transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., n, m)


def masked_softmax(scores: Tensor, mask: Mask) -> Tensor:
    """The softmax over the keys that a query may attend to; zeros if there are none."""
    if mask is None:
        return scores.softmax(dim=-1)  # (..., n, m)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)  # (..., n, m)


def averaged(weights: Tensor, V: Tensor) -> Pair:
    """The output and the weights, in the dtype of the values."""
    weights = weights.to(V.dtype)
    return weights @ V, weights  # (..., n, d_v), (..., n, m)


# --- attention: scores -------------------------------------------------------------------------------------


def attention_transpose_all_axes(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `t()` is for matrices only."""
    scores = Q.float() @ K.float().t() / Q.shape[-1] ** 0.5  # (n, m), only for matrices
    return averaged(masked_softmax(scores, mask), V)


def attention_batch_axis_assumed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: axes 1 and 2 are the last two only with exactly one leading dimension."""
    scores = Q.float() @ K.float().transpose(1, 2) / Q.shape[-1] ** 0.5  # (batch, n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scores_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: K Qᵀ, so that the rows belong to keys."""
    return averaged(masked_softmax(scaled_scores(K, Q), mask), V)


def attention_no_scale(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are not divided by √d_k."""
    scores = scaled_scores(Q, K) * Q.shape[-1] ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scale_by_dk(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are divided by d_k, without the root."""
    scores = scaled_scores(Q, K) / Q.shape[-1] ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scale_multiplied(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are multiplied by √d_k."""
    scores = scaled_scores(Q, K) * Q.shape[-1]  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scale_by_value_dim(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the width is that of the values, d_v."""
    scores = scaled_scores(Q, K) * (Q.shape[-1] / V.shape[-1]) ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scale_by_sequence_length(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the number of keys stands in the place of their width."""
    scores = scaled_scores(Q, K) * (Q.shape[-1] / K.shape[-2]) ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scale_by_axis_one(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: axis 1 holds d_k only in a matrix."""
    scores = scaled_scores(Q, K) * (Q.shape[-1] / Q.shape[1]) ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


def attention_scale_after_softmax(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights are divided by √d_k in place of the scores."""
    root = Q.shape[-1] ** 0.5
    return averaged(masked_softmax(scaled_scores(Q, K) * root, mask) / root, V)


def attention_changes_its_queries(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the caller's queries are divided in place."""
    Q /= Q.shape[-1] ** 0.5
    scores = scaled_scores(Q, K) * Q.shape[-1] ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


# --- attention: softmax and result -------------------------------------------------------------------------


def attention_no_max_subtraction(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the exponentials of the raw scores overflow, or all become 0."""
    exponentials = scaled_scores(Q, K).exp()  # (..., n, m)
    if mask is None:
        return averaged(exponentials / exponentials.sum(dim=-1, keepdim=True), V)
    exponentials = exponentials * mask  # (..., n, m)
    total = exponentials.sum(dim=-1, keepdim=True) + ~mask.any(dim=-1, keepdim=True)  # (..., n, 1)
    return averaged(exponentials / total, V)


def attention_softmax_whole_matrix(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: all weights of a head together sum to 1."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.flatten(-2).softmax(dim=-1).view_as(scores)  # (..., n, m)
    return averaged(weights, V)


def attention_softmax_over_queries(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the softmax runs down the columns."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return averaged(scores.softmax(dim=-2), V)


def attention_softmax_over_heads(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: axis 1 holds the keys only in a matrix."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=1), V)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=1)
    return averaged(weights.masked_fill(~mask, 0.0), V)


def attention_softmax_twice(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights go through the softmax again."""
    weights = masked_softmax(scaled_scores(Q, K), mask)  # (..., n, m)
    return averaged(masked_softmax(weights, mask), V)


def attention_log_weights(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `log_softmax` in place of `softmax`."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return averaged(scores.log_softmax(dim=-1), V)


def attention_sigmoid(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: each score is squeezed into 0 … 1 by itself."""
    weights = scaled_scores(Q, K).sigmoid()  # (..., n, m)
    return averaged(weights if mask is None else weights.masked_fill(~mask, 0.0), V)


def attention_weights_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights are transposed before they meet the values."""
    weights = masked_softmax(scaled_scores(Q, K), mask).to(V.dtype)  # (..., n, m)
    return weights.transpose(-2, -1) @ V, weights


def attention_keys_used_as_values(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the keys are averaged; the values are never used."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask), K)


def attention_scores_applied_to_values(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores, not the weights, multiply the values."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    return scores.to(V.dtype) @ V, masked_softmax(scores, mask).to(V.dtype)


def attention_scores_returned(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are returned as the weights."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    output, _ = averaged(masked_softmax(scores, mask), V)
    return output, scores.to(V.dtype)


def attention_only_output_returned(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the weights are not returned."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask), V)[0]


def attention_returned_in_wrong_order(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights come first."""
    output, weights = averaged(masked_softmax(scaled_scores(Q, K), mask), V)
    return weights, output


def attention_cut_off(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights are taken out of the graph."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask).detach(), V)


def attention_in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: whatever comes in, float32 comes out."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask), V.float())


def attention_weights_in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the output is converted back to the dtype of the values, the weights are not."""
    weights = masked_softmax(scaled_scores(Q, K), mask)  # (..., n, m)
    return (weights @ V.to(weights.dtype)).to(V.dtype), weights


def attention_view_of_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `view` lays the leading axes together, which it cannot do for every tensor."""
    Q, K, flat = (each.view(-1, *each.shape[-2:]) for each in (Q, K, V))  # (batch * heads, tokens, width)
    scores = scaled_scores(Q, K).view(*V.shape[:-2], Q.shape[-2], K.shape[-2])  # (..., n, m)
    return averaged(masked_softmax(scores, mask), flat.view(V.shape))


# --- attention: the mask -----------------------------------------------------------------------------------


def attention_mask_no_effect(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `masked_fill` returns a new tensor, which nobody keeps."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores.masked_fill(~mask, float("-inf"))
    return averaged(scores.softmax(dim=-1), V)


def attention_mask_inverted(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: True is taken to mean "hide", as `masked_fill` itself means it."""
    return averaged(masked_softmax(scaled_scores(Q, K), None if mask is None else ~mask), V)


def attention_mask_after_softmax(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: weights are removed after the softmax, so the rest sums to less than 1."""
    weights = scaled_scores(Q, K).softmax(dim=-1)  # (..., n, m)
    return averaged(weights if mask is None else weights.masked_fill(~mask, 0.0), V)


def attention_masked_scores_zero(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a score of 0 is a score like any other."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = (scores * mask).masked_fill(~mask.any(dim=-1, keepdim=True), float("-inf"))
        return averaged(scores.softmax(dim=-1).nan_to_num(), V)
    return averaged(scores.softmax(dim=-1), V)


def attention_fill_not_negative_enough(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: kept scores can be lower than −1e4."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)  # (..., n, m)
    return averaged(weights * mask.any(dim=-1, keepdim=True), V)


def attention_fill_overflows_half(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: −1e9 is no number of float16."""
    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)  # (..., n, m)
    return averaged(weights.masked_fill(~mask, 0.0), V)


def attention_mask_added(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: 0 and 1 are added to the scores."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    return averaged((scores if mask is None else scores + mask).softmax(dim=-1), V)


def attention_none_not_handled(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: without a mask `~None` raises an error."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)  # type: ignore[operator]
    return averaged(weights.masked_fill(~mask, 0.0), V)  # type: ignore[operator]


def attention_mask_truth_value(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a tensor of many entries is neither true nor false."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask if mask else None), V)


def attention_mask_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the mask's queries and keys are exchanged."""
    turned = None if mask is None else mask.transpose(-2, -1)
    return averaged(masked_softmax(scaled_scores(Q, K), turned), V)


def attention_first_mask_for_all(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the first sequence's mask is used for all sequences."""
    first = mask[0] if mask is not None and mask.dim() == 4 else mask
    return averaged(masked_softmax(scaled_scores(Q, K), first), V)


def attention_always_causal(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: without a mask, later keys are hidden."""
    if mask is None:
        mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril()
    return averaged(masked_softmax(scaled_scores(Q, K), mask), V)


def attention_empty_row_nan(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a row of nothing but −∞ becomes 0/0."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return averaged(scores.softmax(dim=-1), V)


def attention_empty_row_uniform(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a row in which all scores are equally low attends to everything alike."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return averaged(scores.softmax(dim=-1), V)


def attention_nan_gradient(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: NaN is replaced in the output, and stays in the gradient of the added −∞."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    return averaged(scores.softmax(dim=-1).nan_to_num(), V)


def attention_in_place(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the result of the softmax, which its backward pass needs, is overwritten."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)  # (..., n, m)
    weights.masked_fill_(~mask, 0.0)
    return averaged(weights, V)


# --- MultiHeadAttention ------------------------------------------------------------------------------------


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


class SplitWithoutTranspose(MultiHeadInSteps):
    """Wrong: `view` goes through the memory in order, which mixes tokens and features."""

    def split_heads(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x.view(x.shape[0], self.num_heads, -1, self.d_k)  # (batch, heads, n, d_k)


class FoldByReshape(SplitWithoutTranspose):
    """Wrong: cut by `view` and put together by `reshape`, which undo each other."""

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Wrong."""
        return heads.reshape(heads.shape[0], -1, self.num_heads * self.d_k)  # (batch, n, d_model)


class MergeWithoutTranspose(MultiHeadInSteps):
    """Wrong: the heads are laid one after the other, not side by side."""

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Wrong."""
        return heads.reshape(heads.shape[0], -1, self.num_heads * self.d_k)  # (batch, n, d_model)


class AttentionBetweenHeads(MultiHeadInSteps):
    """Wrong: without the transposition the heads of a token attend to each other."""

    def split_heads(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x.unflatten(-1, (self.num_heads, self.d_k))  # (batch, n, heads, d_k)

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Undoes it."""
        return heads.flatten(2)  # (batch, n, d_model)


class HeadsInterleaved(MultiHeadInSteps):
    """Wrong: head i takes every num_heads-th feature."""

    def split_heads(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x.unflatten(-1, (self.d_k, self.num_heads)).permute(0, 3, 1, 2)  # (batch, heads, n, d_k)


class BatchFirstForgotten(right.MultiHeadAttention):
    """Wrong: the sequence is taken to come first, so tokens attend across the batch."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x.transpose(0, 1), mask).transpose(0, 1)


class NoScale(MultiHeadInSteps):
    """Wrong: the scores are not divided by √d_k."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q * self.d_k**0.5, K, mask)


class ScaleByDModel(MultiHeadInSteps):
    """Wrong: the scores are divided by √d_model."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q / self.num_heads**0.5, K, mask)


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


class SharedProjection(right.MultiHeadAttention):
    """Wrong: one and the same linear layer under three names."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.k_proj = self.v_proj = self.q_proj


class NoOutputProjection(MultiHeadInSteps):
    """Wrong: the heads are returned side by side."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        Q, K, V = (self.split_heads(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj))
        return self.merge_heads(self.attend(Q, K, V, mask))  # (batch, n, d_model)


class ValueUsedAsKey(MultiHeadInSteps):
    """Wrong: the queries are compared with the values."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().attend(Q, V, V, mask)


class KeysAndValuesExchanged(MultiHeadInSteps):
    """Wrong: `v_proj` makes the keys and `k_proj` the values."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().attend(Q, V, K, mask)  # (batch, heads, n, d_k)


class QueriesAndKeysSwapped(MultiHeadInSteps):
    """Wrong: the keys ask and the queries answer."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().attend(K, Q, V, mask)


class ResidualAdded(MultiHeadInSteps):
    """Wrong: the residual connection belongs to the block."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return x + super().forward(x, mask)


class WeightsReturnedToo(MultiHeadInSteps):
    """Wrong: a pair is returned."""

    def forward(self, x: Tensor, mask: Mask = None) -> Any:
        """Wrong."""
        Q, K = self.split_heads(self.q_proj(x)), self.split_heads(self.k_proj(x))  # (batch, heads, n, d_k)
        return super().forward(x, mask), masked_softmax(scaled_scores(Q, K), mask)


class LayerMaskNoEffect(MultiHeadInSteps):
    """Wrong: the mask is never used."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, None)


class LayerMaskInverted(MultiHeadInSteps):
    """Wrong: True is taken to mean "ignore", as for `nn.MultiheadAttention`."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, None if mask is None else ~mask)


class LayerFirstMaskForAll(MultiHeadInSteps):
    """Wrong: the first sequence's mask is used for all."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, mask[0] if mask is not None and mask.dim() == 4 else mask)


class MaskBatchOnHeadAxis(MultiHeadInSteps):
    """Wrong: without its axis of size 1, the mask's batch meets the heads."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, mask[:, 0] if mask is not None and mask.dim() == 4 else mask)


class MaskRepeatedInWrongOrder(MultiHeadInSteps):
    """Wrong: heads lie within sequences, but the masks are repeated as if sequences lay within heads."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        if mask is not None and mask.dim() == 4:
            mask = mask[:, 0].repeat(self.num_heads, 1, 1)  # (batch * heads, n, n)
        heads = super().attend(Q.flatten(0, 1), K.flatten(0, 1), V.flatten(0, 1), mask)
        return heads.view_as(V)  # (batch, heads, n, d_k)


class LayerEmptyRowNan(MultiHeadInSteps):
    """Wrong: a row of nothing but −∞ becomes 0/0."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return attention_empty_row_nan(Q, K, K, mask)[1]  # (batch, heads, n, n)


class LayerEmptyRowUniform(MultiHeadInSteps):
    """Wrong: a row in which all scores are equally low attends to everything alike."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return attention_empty_row_uniform(Q, K, K, mask)[1]  # (batch, heads, n, n)


class LayerNanGradient(MultiHeadInSteps):
    """Wrong: NaN is replaced in the output, and stays in the gradient."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return attention_nan_gradient(Q, K, K, mask)[1]  # (batch, heads, n, n)


class LayerCutOff(MultiHeadInSteps):
    """Wrong: the weights are taken out of the graph."""

    def weigh(self, Q: Tensor, K: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return super().weigh(Q, K, mask).detach()  # (batch, heads, n, n)


class FirstMaskKept(right.MultiHeadAttention):
    """Wrong: the first mask is kept, and no later one looked at."""

    first: Mask = None

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.first is None:
            self.first = mask
        return super().forward(x, self.first)


class ViewOfTransposed(right.MultiHeadAttention):
    """Wrong: `view` lays sequences and tokens together, which it cannot do for every x."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        flat = x.view(-1, x.shape[-1])  # (batch * n, d_model)
        return super().forward(flat.view(x.shape), mask)


class DropoutInEval(MultiHeadInSteps):
    """Wrong: `dropout` as a function is in training unless it is told otherwise."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        weights = self.weigh(Q, K, mask)  # (batch, heads, n, n)
        return nn.functional.dropout(weights, self.dropout.p) @ V  # (batch, heads, n, d_k)


class DropoutBeforeSoftmax(MultiHeadInSteps):
    """Wrong: scores are dropped, and a score of 0 is a score like any other."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return masked_softmax(self.dropout(scaled_scores(Q, K)), mask) @ V  # (batch, heads, n, d_k)


class DropoutOnOutput(MultiHeadInSteps):
    """Wrong: features of the output are dropped, not weights."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return self.dropout(super().forward(x, mask))

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Without dropout."""
        return self.weigh(Q, K, mask) @ V  # (batch, heads, n, d_k)


class DropoutOnHeads(MultiHeadInSteps):
    """Wrong: single features of the heads are dropped, not weights."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return self.dropout(self.weigh(Q, K, mask) @ V)  # (batch, heads, n, d_k)


class DropoutMissing(MultiHeadInSteps):
    """Wrong: the argument is taken and never used."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        return self.weigh(Q, K, mask) @ V  # (batch, heads, n, d_k)


class DropoutNotRescaled(MultiHeadInSteps):
    """Wrong: the weights that stay do not grow, so that the output is smaller in training."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        weights = self.weigh(Q, K, mask)  # (batch, heads, n, n)
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return weights @ V  # (batch, heads, n, d_k)


class DropoutKeepProbability(right.MultiHeadAttention):
    """Wrong: the argument is taken for the probability to stay."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, 1.0 - dropout)


class DropoutByDefault(right.MultiHeadAttention):
    """Wrong: there is dropout although nobody asked for it."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 1.0) -> None:
        super().__init__(d_model, num_heads, dropout)


class ProjectionWithoutBias(right.MultiHeadAttention):
    """Wrong: the linear layers have no bias."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


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


# --- CausalSelfAttention -----------------------------------------------------------------------------------


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


class CausalMissing(CausalInSteps):
    """Wrong: every token sees all tokens."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x) | True


class CausalTransposed(CausalInSteps):
    """Wrong: `triu` keeps the future, and hides the past."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x).T


class CausalHidesSelf(CausalInSteps):
    """Wrong: a token does not see itself."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x).tril(-1)


class CausalSeesNext(CausalInSteps):
    """Wrong: a token sees the next one."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().mask(x) | super().mask(x).T.tril(1)


class CausalMaskAfterSoftmax(CausalInSteps):
    """Wrong: weights are removed after the softmax, so the rest sums to less than 1."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return attention_mask_after_softmax(Q, K, V, mask)[0]


class CausalMaskedScoresZero(CausalInSteps):
    """Wrong: the scores are multiplied with the lower triangle."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return attention_masked_scores_zero(Q, K, V, mask)[0]


class MaskNotSliced(CausalInSteps):
    """Wrong: the mask of max_len tokens is used for fewer."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.causal  # (max_len, max_len)


class MaskOfFirstCall(CausalInSteps):
    """Wrong: the mask that the first call needed is kept for all calls."""

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        n = x.shape[1]
        self.causal = self.causal[:n, :n]  # (n, n), from now on
        return self.causal


class MaskNotABuffer(CausalInSteps):
    """Wrong: a tensor in a plain attribute does not move with the layer."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        self.masks = [self.causal]  # in a list, where PyTorch does not look for tensors

    def mask(self, x: Tensor) -> Tensor:
        """Wrong."""
        n = x.shape[1]
        return self.masks[0][:n, :n]  # (n, n)


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


class FusedQkvMisread(CausalInSteps):
    """Wrong: query, key and value of each head are taken to lie together."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        qkv = self.qkv_proj(x).unflatten(-1, (self.num_heads, 3, self.d_k))  # (batch, n, heads, 3, d_k)
        return qkv.permute(3, 0, 2, 1, 4)  # (3, batch, heads, n, d_k)


class FusedQkvOrder(CausalInSteps):
    """Wrong: the first third is taken for the values."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        Q, K, V = super().queries_keys_values(x)  # (batch, heads, n, d_k) each
        return V, K, Q


class CausalQueriesAndKeysSwapped(CausalInSteps):
    """Wrong: the first third is taken for the keys, the second for the queries."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        K, Q, V = super().queries_keys_values(x)
        return Q, K, V


class CausalSplitWithoutTranspose(CausalInSteps):
    """Wrong: `view` goes through the memory in order, which mixes tokens and features."""

    def queries_keys_values(self, x: Tensor) -> Any:
        """Wrong."""
        shape = (x.shape[0], self.num_heads, -1, self.d_k)
        return [each.reshape(shape) for each in self.qkv_proj(x).chunk(3, dim=-1)]


class CausalMergeWithoutTranspose(CausalInSteps):
    """Wrong: the heads are laid one after the other, not side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        Q, K, V = self.queries_keys_values(x)
        heads = self.attend(Q, K, V, self.mask(x))  # (batch, heads, n, d_k)
        return self.out_proj(heads.reshape(x.shape))  # (batch, n, d_model)


class CausalFoldByReshape(CausalMergeWithoutTranspose, CausalSplitWithoutTranspose):
    """Wrong: cut and put together by `reshape`, which undo each other."""


class CausalNoScale(CausalInSteps):
    """Wrong: the scores are not divided by √d_k."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return super().attend(Q * self.d_k**0.5, K, V, mask)


class CausalScaleByDModel(CausalInSteps):
    """Wrong: the scores are divided by √d_model."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        return super().attend(Q / self.num_heads**0.5, K, V, mask)


class CausalNoOutputProjection(CausalInSteps):
    """Wrong: the heads are returned side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        Q, K, V = self.queries_keys_values(x)
        heads = self.attend(Q, K, V, self.mask(x))  # (batch, heads, n, d_k)
        return heads.transpose(1, 2).flatten(2)  # (batch, n, d_model)


class CausalWithoutBias(right.CausalSelfAttention):
    """Wrong: the linear layers have no bias."""

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__(d_model, num_heads, max_len)
        self.qkv_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)


class CausalBatchFirstForgotten(right.CausalSelfAttention):
    """Wrong: the sequence is taken to come first, so tokens attend across the batch."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class CausalDtypeFixed(CausalInSteps):
    """Wrong: the mask is made of float32 numbers to be added, whatever the layer's dtype is."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Tensor:
        """Wrong."""
        bias = torch.zeros(mask.shape, device=mask.device)  # (n, n)
        bias = bias.masked_fill(~mask, float("-inf"))
        scores = Q @ K.transpose(-2, -1) / self.d_k**0.5 + bias  # (batch, heads, n, n)
        return scores.softmax(dim=-1) @ V  # (batch, heads, n, d_k)


# --- from_builtin ------------------------------------------------------------------------------------------


def linears(layer: right.MultiHeadAttention) -> list[nn.Linear]:
    """The linear layers of queries, keys and values, which PyTorch's own layer keeps in one."""
    return [layer.q_proj, layer.k_proj, layer.v_proj]


def from_builtin_order(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the thirds are taken in another order."""
    layer = right.from_builtin(builtin)
    layer.q_proj, layer.k_proj, layer.v_proj = layer.v_proj, layer.k_proj, layer.q_proj
    return layer


def from_builtin_misread(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: query, key and value of each head are taken to lie together."""
    layer = right.from_builtin(builtin)
    shape = (builtin.num_heads, 3, -1, builtin.embed_dim)
    with torch.no_grad():
        for number, linear in enumerate(linears(layer)):
            weight = builtin.in_proj_weight.view(shape)[:, number]  # (heads, d_k, d_model)
            linear.weight.copy_(weight.flatten(0, 1))  # (d_model, d_model)
    return layer


def from_builtin_transposed(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the weights are transposed, but both keep them as (out, in)."""
    layer = right.from_builtin(builtin)
    with torch.no_grad():
        for linear in linears(layer):
            linear.weight.copy_(linear.weight.T.clone())
    return layer


def from_builtin_without_output(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the output projection keeps the numbers it started with."""
    fresh = right.MultiHeadAttention(builtin.embed_dim, builtin.num_heads)
    layer = right.from_builtin(builtin)
    layer.out_proj.load_state_dict(fresh.out_proj.state_dict())
    return layer


def from_builtin_biases_not_copied(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the biases keep the numbers they started with."""
    fresh = right.MultiHeadAttention(builtin.embed_dim, builtin.num_heads)
    layer = right.from_builtin(builtin)
    numbers = fresh.state_dict()
    biases = {name: numbers[name] for name in numbers if name.endswith("bias")}
    layer.load_state_dict(biases, strict=False)
    return layer


def from_builtin_bias_assumed(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: without biases there is nothing to cut."""
    builtin.in_proj_bias.chunk(3)
    return right.from_builtin(builtin)


def from_builtin_biases_left(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: where there is no bias to copy, the new layer keeps the numbers it started with."""
    return (
        right.from_builtin(builtin)
        if builtin.in_proj_bias is not None
        else from_builtin_biases_not_copied(builtin)
    )


def from_builtin_shared(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new parameters are views of the old ones."""
    layer = right.from_builtin(builtin)
    thirds = builtin.in_proj_weight.detach().chunk(3)  # (d_model, d_model) each
    for linear, weight in zip(linears(layer), thirds, strict=True):
        linear.weight = nn.Parameter(weight)
    layer.out_proj = builtin.out_proj
    if builtin.out_proj.bias is None:
        layer.out_proj = right.from_builtin(builtin).out_proj
    return layer


def from_builtin_sequence_first(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer takes (n, batch, d_model) if the built-in one does."""
    layer = right.from_builtin(builtin)
    if not builtin.batch_first:
        layer.__class__ = BatchFirstForgotten
    return layer


def from_builtin_dropout_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer is made without dropout."""
    layer = right.from_builtin(builtin)
    layer.dropout = nn.Dropout(0.0)
    return layer


def from_builtin_mode_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer is in training, as new layers are."""
    return right.from_builtin(builtin).train()


def from_builtin_dtype_lost(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new layer is in float32, as new layers are."""
    return right.from_builtin(builtin).float()


def from_builtin_frozen(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: the new parameters ask for no gradient."""
    return right.from_builtin(builtin).requires_grad_(False)


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


def from_builtin_changes_builtin(builtin: nn.MultiheadAttention) -> right.MultiHeadAttention:
    """Wrong: to make the copy, the built-in layer is switched to eval mode."""
    training = builtin.training
    return right.from_builtin(builtin.eval()).train(training)


# --- sdpa_attention ----------------------------------------------------------------------------------------

kernel = nn.functional.scaled_dot_product_attention


def sdpa_mask_inverted(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the mask is turned round, as `nn.MultiheadAttention` wants it."""
    return right.sdpa_attention(Q, K, V, None if mask is None else ~mask)


def sdpa_mask_no_effect(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the mask is not passed on."""
    return kernel(Q, K, V)


def sdpa_mask_added(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a mask of numbers is added to the scores."""
    return kernel(Q, K, V, attn_mask=None if mask is None else mask.to(Q.dtype))


def sdpa_first_mask_for_all(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first sequence's mask is used for all."""
    return right.sdpa_attention(Q, K, V, mask[0, 0] if mask is not None and mask.dim() == 4 else mask)


def sdpa_always_causal(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: `is_causal=True` where nobody asked for it."""
    return kernel(Q, K, V, is_causal=True) if mask is None else right.sdpa_attention(Q, K, V, mask)


def sdpa_scaled_twice(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the queries are divided by √d_k, and then the kernel does it again."""
    return right.sdpa_attention(Q / Q.shape[-1] ** 0.5, K, V, mask)


def sdpa_no_scale(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: `scale=1.0` switches the division off."""
    return right.sdpa_attention(Q * Q.shape[-1] ** 0.5, K, V, mask)


def sdpa_keys_used_as_values(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the keys are averaged."""
    return right.sdpa_attention(Q, K, K, mask)


def sdpa_value_used_as_key(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: keys and values are exchanged."""
    return right.sdpa_attention(Q, V, K, mask)


def sdpa_weights_returned_too(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> tuple[Tensor, None]:
    """Wrong: a pair is returned."""
    return right.sdpa_attention(Q, K, V, mask), None


def sdpa_empty_row_uniform(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a query without keys attends to everything alike."""
    if mask is None:
        return kernel(Q, K, V)
    return kernel(Q, K, V, attn_mask=torch.zeros(mask.shape, dtype=Q.dtype).masked_fill(~mask, -3e4))


def sdpa_cut_off(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the queries are taken out of the graph."""
    return right.sdpa_attention(Q.detach(), K, V, mask)


def sdpa_in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: whatever comes in, float32 comes out."""
    return right.sdpa_attention(Q.float(), K.float(), V.float(), mask)


def sdpa_batch_axis_assumed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: four axes are taken for granted."""
    batch, heads, n, d_k = Q.shape
    return right.sdpa_attention(Q.view(batch, heads, n, d_k), K, V, mask)


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "attention": {
        "no-max-subtraction": attention_no_max_subtraction,
        "softmax-whole-matrix": attention_softmax_whole_matrix,
        "softmax-over-queries": attention_softmax_over_queries,
        "softmax-over-heads": attention_softmax_over_heads,
        "softmax-twice": attention_softmax_twice,
        "log-weights-returned": attention_log_weights,
        "sigmoid-instead-of-softmax": attention_sigmoid,
        "input-changed-in-place": attention_changes_its_queries,
        "transpose-all-axes": attention_transpose_all_axes,
        "batch-axis-assumed": attention_batch_axis_assumed,
        "scores-transposed": attention_scores_transposed,
        "weights-transposed": attention_weights_transposed,
        "keys-used-as-values": attention_keys_used_as_values,
        "scores-applied-to-values": attention_scores_applied_to_values,
        "weights-returned-before-softmax": attention_scores_returned,
        "only-output-returned": attention_only_output_returned,
        "tuple-order-swapped": attention_returned_in_wrong_order,
        "no-scale": attention_no_scale,
        "scale-by-dk": attention_scale_by_dk,
        "scale-multiplied": attention_scale_multiplied,
        "scale-by-value-dim": attention_scale_by_value_dim,
        "scale-by-sequence-length": attention_scale_by_sequence_length,
        "scale-by-axis-one": attention_scale_by_axis_one,
        "scale-after-softmax": attention_scale_after_softmax,
        "mask-no-effect": attention_mask_no_effect,
        "mask-inverted": attention_mask_inverted,
        "mask-after-softmax": attention_mask_after_softmax,
        "masked-scores-zero": attention_masked_scores_zero,
        "mask-fill-not-negative-enough": attention_fill_not_negative_enough,
        "mask-fill-overflows-half": attention_fill_overflows_half,
        "mask-added-as-0-1": attention_mask_added,
        "none-not-handled": attention_none_not_handled,
        "mask-truth-value": attention_mask_truth_value,
        "mask-transposed": attention_mask_transposed,
        "first-mask-for-all-sequences": attention_first_mask_for_all,
        "always-causal": attention_always_causal,
        "empty-row-nan": attention_empty_row_nan,
        "empty-row-uniform": attention_empty_row_uniform,
        "nan-gradient-on-empty-row": attention_nan_gradient,
        "in-place-breaks-autograd": attention_in_place,
        "gradient-cut-off": attention_cut_off,
        "result-in-float32": attention_in_float32,
        "weights-in-float32": attention_weights_in_float32,
        "view-of-transposed": attention_view_of_transposed,
    },
    "MultiHeadAttention": {
        "split-without-transpose": SplitWithoutTranspose,
        "merge-without-transpose": MergeWithoutTranspose,
        "heads-fold-by-reshape": FoldByReshape,
        "attention-between-heads": AttentionBetweenHeads,
        "heads-interleaved": HeadsInterleaved,
        "batch-first-forgotten": BatchFirstForgotten,
        "no-scale": NoScale,
        "scale-by-d-model": ScaleByDModel,
        "linear-applied-transposed": LinearAppliedTransposed,
        "shared-projection": SharedProjection,
        "no-output-projection": NoOutputProjection,
        "value-used-as-key": ValueUsedAsKey,
        "queries-and-keys-swapped": QueriesAndKeysSwapped,
        "keys-and-values-exchanged": KeysAndValuesExchanged,
        "residual-added": ResidualAdded,
        "weights-returned-too": WeightsReturnedToo,
        "mask-no-effect": LayerMaskNoEffect,
        "mask-inverted": LayerMaskInverted,
        "first-mask-for-all-sequences": LayerFirstMaskForAll,
        "mask-batch-on-head-axis": MaskBatchOnHeadAxis,
        "mask-repeated-in-wrong-order": MaskRepeatedInWrongOrder,
        "first-mask-kept": FirstMaskKept,
        "view-of-transposed": ViewOfTransposed,
        "empty-row-nan": LayerEmptyRowNan,
        "empty-row-uniform": LayerEmptyRowUniform,
        "nan-gradient-on-empty-row": LayerNanGradient,
        "gradient-cut-off": LayerCutOff,
        "dropout-in-eval": DropoutInEval,
        "dropout-before-softmax": DropoutBeforeSoftmax,
        "dropout-on-output": DropoutOnOutput,
        "dropout-on-heads": DropoutOnHeads,
        "dropout-missing": DropoutMissing,
        "dropout-not-rescaled": DropoutNotRescaled,
        "dropout-keep-probability": DropoutKeepProbability,
        "dropout-by-default": DropoutByDefault,
        "projection-without-bias": ProjectionWithoutBias,
        "heads-in-a-list": LinearsInAList,
    },
    "CausalSelfAttention": {
        "causal-missing": CausalMissing,
        "causal-transposed": CausalTransposed,
        "causal-hides-self": CausalHidesSelf,
        "causal-sees-next": CausalSeesNext,
        "mask-after-softmax": CausalMaskAfterSoftmax,
        "masked-scores-zero": CausalMaskedScoresZero,
        "mask-not-sliced": MaskNotSliced,
        "mask-of-first-call": MaskOfFirstCall,
        "mask-not-a-buffer": MaskNotABuffer,
        "mask-as-parameter": MaskAsParameter,
        "fused-qkv-misread": FusedQkvMisread,
        "fused-qkv-order": FusedQkvOrder,
        "queries-and-keys-swapped": CausalQueriesAndKeysSwapped,
        "split-without-transpose": CausalSplitWithoutTranspose,
        "merge-without-transpose": CausalMergeWithoutTranspose,
        "heads-fold-by-reshape": CausalFoldByReshape,
        "no-scale": CausalNoScale,
        "scale-by-d-model": CausalScaleByDModel,
        "no-output-projection": CausalNoOutputProjection,
        "projection-without-bias": CausalWithoutBias,
        "batch-first-forgotten": CausalBatchFirstForgotten,
        "dtype-fixed": CausalDtypeFixed,
    },
    "from_builtin": {
        "fused-qkv-order": from_builtin_order,
        "fused-qkv-misread": from_builtin_misread,
        "linear-applied-transposed": from_builtin_transposed,
        "output-not-copied": from_builtin_without_output,
        "biases-not-copied": from_builtin_biases_not_copied,
        "bias-assumed": from_builtin_bias_assumed,
        "biases-left-as-they-start": from_builtin_biases_left,
        "weights-shared": from_builtin_shared,
        "batch-first-forgotten": from_builtin_sequence_first,
        "dropout-lost": from_builtin_dropout_lost,
        "mode-lost": from_builtin_mode_lost,
        "dtype-lost": from_builtin_dtype_lost,
        "parameters-frozen": from_builtin_frozen,
        "parameters-not-leaves": from_builtin_not_leaves,
        "source-changed": from_builtin_changes_builtin,
    },
    "sdpa_attention": {
        "mask-inverted": sdpa_mask_inverted,
        "mask-no-effect": sdpa_mask_no_effect,
        "mask-added-as-0-1": sdpa_mask_added,
        "first-mask-for-all-sequences": sdpa_first_mask_for_all,
        "always-causal": sdpa_always_causal,
        "scale-by-dk": sdpa_scaled_twice,
        "no-scale": sdpa_no_scale,
        "keys-used-as-values": sdpa_keys_used_as_values,
        "value-used-as-key": sdpa_value_used_as_key,
        "weights-returned-too": sdpa_weights_returned_too,
        "empty-row-uniform": sdpa_empty_row_uniform,
        "gradient-cut-off": sdpa_cut_off,
        "result-in-float32": sdpa_in_float32,
        "batch-axis-assumed": sdpa_batch_axis_assumed,
    },
}
