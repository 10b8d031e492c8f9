"""Mistakes in `attention`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mha_lib.pitfalls import one_head
from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.evidence import given

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


@mistake("transpose-all-axes", "batched_torch.attention")
def attention_transpose_all_axes(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `t()` is for matrices only."""
    scores = Q.float() @ K.float().t() / Q.shape[-1] ** 0.5  # (n, m), only for matrices
    return averaged(masked_softmax(scores, mask), V)


@mistake("batch-axis-assumed", "batched_torch.attention")
def attention_batch_axis_assumed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: axes 1 and 2 are the last two only with exactly one leading dimension."""
    scores = Q.float() @ K.float().transpose(1, 2) / Q.shape[-1] ** 0.5  # (batch, n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scores-transposed", "batched_torch.attention")
def attention_scores_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: K Qᵀ, so that the rows belong to keys."""
    return averaged(masked_softmax(scaled_scores(K, Q), mask), V)


@mistake("no-scale", "batched_torch.attention")
def attention_no_scale(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are not divided by √d_k."""
    scores = scaled_scores(Q, K) * Q.shape[-1] ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scale-by-dk", "batched_torch.attention")
def attention_scale_by_dk(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are divided by d_k, without the root."""
    scores = scaled_scores(Q, K) / Q.shape[-1] ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scale-multiplied", "batched_torch.attention")
def attention_scale_multiplied(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are multiplied by √d_k."""
    scores = scaled_scores(Q, K) * Q.shape[-1]  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scale-by-value-dim", "batched_torch.attention")
def attention_scale_by_value_dim(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the width is that of the values, d_v."""
    scores = scaled_scores(Q, K) * (Q.shape[-1] / V.shape[-1]) ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scale-by-sequence-length", "batched_torch.attention")
def attention_scale_by_sequence_length(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the number of keys stands in the place of their width."""
    scores = scaled_scores(Q, K) * (Q.shape[-1] / K.shape[-2]) ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scale-by-axis-one", "batched_torch.attention")
def attention_scale_by_axis_one(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: axis 1 holds d_k only in a matrix."""
    scores = scaled_scores(Q, K) * (Q.shape[-1] / Q.shape[1]) ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


@mistake("scale-after-softmax", "batched_torch.attention")
def attention_scale_after_softmax(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights are divided by √d_k in place of the scores."""
    root = Q.shape[-1] ** 0.5
    return averaged(masked_softmax(scaled_scores(Q, K) * root, mask) / root, V)


@mistake("input-changed-in-place", "batched_torch.attention")
def attention_changes_its_queries(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the caller's queries are divided in place."""
    Q /= Q.shape[-1] ** 0.5
    scores = scaled_scores(Q, K) * Q.shape[-1] ** 0.5  # (..., n, m)
    return averaged(masked_softmax(scores, mask), V)


# --- attention: softmax and result -------------------------------------------------------------------------


@mistake("no-max-subtraction", "batched_torch.attention")
def attention_no_max_subtraction(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the exponentials of the raw scores overflow, or all become 0."""
    exponentials = scaled_scores(Q, K).exp()  # (..., n, m)
    if mask is None:
        return averaged(exponentials / exponentials.sum(dim=-1, keepdim=True), V)
    exponentials = exponentials * mask  # (..., n, m)
    total = exponentials.sum(dim=-1, keepdim=True) + ~mask.any(dim=-1, keepdim=True)  # (..., n, 1)
    return averaged(exponentials / total, V)


@mistake("softmax-whole-matrix", "batched_torch.attention")
def attention_softmax_whole_matrix(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: all weights of a head together sum to 1."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.flatten(-2).softmax(dim=-1).view_as(scores)  # (..., n, m)
    return averaged(weights, V)


@mistake("softmax-over-queries", "batched_torch.attention")
def attention_softmax_over_queries(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the softmax runs down the columns."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return averaged(scores.softmax(dim=-2), V)


@mistake("softmax-over-heads", "batched_torch.attention")
def attention_softmax_over_heads(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: axis 1 holds the keys only in a matrix."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=1), V)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=1)
    return averaged(weights.masked_fill(~mask, 0.0), V)


@mistake("softmax-twice", "batched_torch.attention")
def attention_softmax_twice(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights go through the softmax again."""
    weights = masked_softmax(scaled_scores(Q, K), mask)  # (..., n, m)
    return averaged(masked_softmax(weights, mask), V)


@mistake("log-weights-returned", "batched_torch.attention")
def attention_log_weights(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `log_softmax` in place of `softmax`."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return averaged(scores.log_softmax(dim=-1), V)


@mistake("sigmoid-instead-of-softmax", "batched_torch.attention")
def attention_sigmoid(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: each score is squeezed into 0 … 1 by itself."""
    weights = scaled_scores(Q, K).sigmoid()  # (..., n, m)
    return averaged(weights if mask is None else weights.masked_fill(~mask, 0.0), V)


@mistake("weights-transposed", "batched_torch.attention")
def attention_weights_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights are transposed before they meet the values."""
    weights = masked_softmax(scaled_scores(Q, K), mask).to(V.dtype)  # (..., n, m)
    return weights.transpose(-2, -1) @ V, weights


@mistake("keys-used-as-values", "batched_torch.attention")
def attention_keys_used_as_values(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the keys are averaged; the values are never used."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask), K)


@mistake("scores-applied-to-values", "batched_torch.attention")
def attention_scores_applied_to_values(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores, not the weights, multiply the values."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    return scores.to(V.dtype) @ V, masked_softmax(scores, mask).to(V.dtype)


@mistake("weights-returned-before-softmax", "batched_torch.attention")
def attention_scores_returned(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the scores are returned as the weights."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    output, _ = averaged(masked_softmax(scores, mask), V)
    return output, scores.to(V.dtype)


@mistake("only-output-returned", "batched_torch.attention")
def attention_only_output_returned(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the weights are not returned."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask), V)[0]


@mistake("tuple-order-swapped", "batched_torch.attention")
def attention_returned_in_wrong_order(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights come first."""
    output, weights = averaged(masked_softmax(scaled_scores(Q, K), mask), V)
    return weights, output


@mistake("gradient-cut-off", "batched_torch.attention")
def attention_cut_off(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the weights are taken out of the graph."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask).detach(), V)


@mistake("result-in-float32", "batched_torch.attention")
def attention_in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: whatever comes in, float32 comes out."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask), V.float())


@mistake("weights-in-float32", "batched_torch.attention")
def attention_weights_in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the output is converted back to the dtype of the values, the weights are not."""
    weights = masked_softmax(scaled_scores(Q, K), mask)  # (..., n, m)
    return (weights @ V.to(weights.dtype)).to(V.dtype), weights


@mistake("view-of-transposed", "batched_torch.attention")
def attention_view_of_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `view` lays the leading axes together, which it cannot do for every tensor."""
    Q, K, flat = (each.view(-1, *each.shape[-2:]) for each in (Q, K, V))  # (batch * heads, tokens, width)
    scores = scaled_scores(Q, K).view(*V.shape[:-2], Q.shape[-2], K.shape[-2])  # (..., n, m)
    return averaged(masked_softmax(scores, mask), flat.view(V.shape))


# --- attention: the mask -----------------------------------------------------------------------------------


@mistake("mask-no-effect", "batched_torch.attention")
def attention_mask_no_effect(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `masked_fill` returns a new tensor, which nobody keeps."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores.masked_fill(~mask, float("-inf"))
    return averaged(scores.softmax(dim=-1), V)


@mistake("mask-inverted", "batched_torch.attention")
def attention_mask_inverted(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: True is taken to mean "hide", as `masked_fill` itself means it."""
    return averaged(masked_softmax(scaled_scores(Q, K), None if mask is None else ~mask), V)


@mistake("mask-after-softmax", "batched_torch.attention")
def attention_mask_after_softmax(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: weights are removed after the softmax, so the rest sums to less than 1."""
    weights = scaled_scores(Q, K).softmax(dim=-1)  # (..., n, m)
    return averaged(weights if mask is None else weights.masked_fill(~mask, 0.0), V)


@mistake("masked-scores-zero", "batched_torch.attention")
def attention_masked_scores_zero(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a score of 0 is a score like any other."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = (scores * mask).masked_fill(~mask.any(dim=-1, keepdim=True), float("-inf"))
        return averaged(scores.softmax(dim=-1).nan_to_num(), V)
    return averaged(scores.softmax(dim=-1), V)


@mistake("mask-fill-not-negative-enough", "batched_torch.attention")
def attention_fill_not_negative_enough(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: kept scores can be lower than −1e4."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    weights = scores.masked_fill(~mask, -1e4).softmax(dim=-1)  # (..., n, m)
    return averaged(weights * mask.any(dim=-1, keepdim=True), V)


@mistake("mask-fill-not-negative-enough", "batched_torch.attention", form="and-removed")
def attention_fill_and_removed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: kept scores can be lower than −1e4, so that what is left of a row sums to less than 1."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    return averaged(scores.masked_fill(~mask, -1e4).softmax(dim=-1) * mask, V)


@mistake("mask-fill-overflows-half", "batched_torch.attention")
def attention_fill_overflows_half(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: −1e9 is no number of float16."""
    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)  # (..., n, m)
    return averaged(weights.masked_fill(~mask, 0.0), V)


@mistake("mask-added-as-0-1", "batched_torch.attention")
def attention_mask_added(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: 0 and 1 are added to the scores."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    return averaged((scores if mask is None else scores + mask).softmax(dim=-1), V)


@mistake("epsilon-in-denominator", "batched_torch.attention")
def attention_epsilon(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: masked weights are removed and the rest is renormalised, with 1e-9 added to a sum that may be less."""
    weights = scaled_scores(Q, K).softmax(dim=-1)  # (..., n, m)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # (..., n, m)
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)
    return averaged(weights, V)


@mistake("none-not-handled", "batched_torch.attention")
def attention_none_not_handled(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: without a mask `~None` raises an error."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)  # type: ignore[operator]
    return averaged(weights.masked_fill(~mask, 0.0), V)  # type: ignore[operator]


@mistake("mask-truth-value", "batched_torch.attention")
def attention_mask_truth_value(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a tensor of many entries is neither true nor false."""
    return averaged(masked_softmax(scaled_scores(Q, K), mask if mask else None), V)


@mistake("mask-transposed", "batched_torch.attention")
def attention_mask_transposed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the mask's queries and keys are exchanged."""
    turned = None if mask is None else mask.transpose(-2, -1)
    return averaged(masked_softmax(scaled_scores(Q, K), turned), V)


@mistake("first-mask-for-all-sequences", "batched_torch.attention")
def attention_first_mask_for_all(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the first sequence's mask is used for all sequences."""
    first = mask[0] if mask is not None and mask.dim() == 4 else mask
    return averaged(masked_softmax(scaled_scores(Q, K), first), V)


@mistake("always-causal", "batched_torch.attention")
def attention_always_causal(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: without a mask, later keys are hidden."""
    if mask is None:
        mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril()
    return averaged(masked_softmax(scaled_scores(Q, K), mask), V)


@mistake("empty-row-nan", "batched_torch.attention")
def attention_empty_row_nan(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a row of nothing but −∞ becomes 0/0."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return averaged(scores.softmax(dim=-1), V)


@mistake("empty-row-nan", "batched_torch.attention", form="output-repaired")
def attention_empty_row_repaired_in_the_output(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: only the output of such a row becomes 0; its weights and gradients are still NaN."""
    output, weights = attention_empty_row_nan(Q, K, V, mask)
    return output.nan_to_num(), weights


@mistake("empty-row-uniform", "batched_torch.attention")
def attention_empty_row_uniform(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: a row in which all scores are equally low attends to everything alike."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return averaged(scores.softmax(dim=-1), V)


@mistake("nan-gradient-on-empty-row", "batched_torch.attention")
def attention_nan_gradient(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: NaN is replaced in the output, and stays in the gradient of the added −∞."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    return averaged(scores.softmax(dim=-1).nan_to_num(), V)


@mistake("in-place-breaks-autograd", "batched_torch.attention")
def attention_in_place(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the result of the softmax, which its backward pass needs, is overwritten."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    if mask is None:
        return averaged(scores.softmax(dim=-1), V)
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)  # (..., n, m)
    weights.masked_fill_(~mask, 0.0)
    return averaged(weights, V)


@mistake("value-used-as-key", "batched_torch.attention", form="one-head")
def attention_value_used_as_key(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the queries are compared with the values, which raises an error if these are not d_k wide."""
    return averaged(masked_softmax(scaled_scores(Q, V), mask), V)


@mistake("weights-in-float32", "batched_torch.attention", form="from-16-bits")
def attention_weights_in_float32_from_16_bits(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: scores in the dtype of the queries become float32 for the softmax, and the weights stay so."""
    weights = masked_softmax((Q @ K.transpose(-2, -1)).float() / Q.shape[-1] ** 0.5, mask)  # (..., n, m)
    return weights.to(V.dtype) @ V, weights


@mistake("result-in-float32", "batched_torch.attention", form="from-16-bits")
def attention_in_float32_from_16_bits(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: for 16 bits, float32 comes out; float64 stays."""
    return averaged(
        masked_softmax(scaled_scores(Q, K), mask), V.to(torch.promote_types(V.dtype, torch.float32))
    )


@mistake("result-in-float32", "batched_torch.attention", form="without-a-mask")
def attention_in_float32_without_a_mask(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: without a mask the output comes in the dtype of the scores."""
    weights = masked_softmax(scaled_scores(Q, K), mask)  # (..., n, m)
    output, returned = averaged(weights, V)
    return weights @ V.to(weights.dtype) if mask is None else output, returned


@mistake("weights-in-float32", "batched_torch.attention", form="under-a-mask")
def attention_weights_in_float32_under_a_mask(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: under a mask the weights stay in the dtype of the scores."""
    scores = scaled_scores(Q, K)  # (..., n, m)
    output, weights = averaged(masked_softmax(scores, mask), V)
    return output, weights if mask is None else masked_softmax(scores, mask)


@mistake("no-scale", "batched_torch.attention", form="under-a-mask")
def attention_no_scale_under_a_mask(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: with a mask the scores are not divided by √d_k."""
    factor = 1.0 if mask is None else Q.shape[-1] ** 0.5
    return averaged(masked_softmax(scaled_scores(Q, K) * factor, mask), V)


@mistake("maps-averaged-over-heads", "batched_torch.attention", form="returned")
def attention_maps_averaged(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: of several heads, the mean of the weights is returned."""
    output, weights = averaged(masked_softmax(scaled_scores(Q, K), mask), V)
    return output, weights.mean(dim=1) if weights.dim() == 4 else weights


@mistake("first-mask-for-all-sequences", "batched_torch.attention", form="padding")
def attention_first_padding_for_all(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: the first sequence's padding is used for all sequences."""
    first = mask[0] if mask is not None and mask.dim() == 4 and mask.shape[2] == 1 else mask
    return averaged(masked_softmax(scaled_scores(Q, K), first), V)


@mistake("axes-of-one-dropped", "batched_torch.attention", form="weights")
def attention_weights_squeezed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: `squeeze` drops every axis of size 1 of the weights."""
    output, weights = averaged(masked_softmax(scaled_scores(Q, K), mask), V)
    return output, weights.squeeze()


@mistake("input-changed-in-place", "batched_torch.attention", form="mask")
def attention_mask_in_place(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Pair:
    """Wrong: in the caller's mask, queries without keys get all keys."""
    results = averaged(masked_softmax(scaled_scores(Q, K), mask), V)
    if mask is not None:
        mask |= ~mask.any(dim=-1, keepdim=True)
    return results


# --- laws --------------------------------------------------------------------------------------------------


def on_tensors(tested: Any, *arguments: np.ndarray | None) -> Any:
    """What comes of arrays as tensors."""
    return tested(*(None if each is None else torch.from_numpy(np.array(each)) for each in arguments))


def output_of(tested: Any, *arguments: np.ndarray | None) -> np.ndarray:
    """The first of two results, as an array."""
    output, _ = on_tensors(tested, *arguments)
    return np.asarray(output)


def scores_of(step: Any) -> np.ndarray | None:
    """The scores of a recorded call."""
    Q, K = given(step, 0, "Q"), given(step, 1, "K")
    return None if Q is None or K is None else scaled_scores(Q, K).double().numpy()


HEAD = one_head.Head(output_of, scores_of)
ITEM = "batched_torch.attention"
one_head.tell_all(ITEM, HEAD)
