"""Mistakes in `sdpa_attention`."""

import numpy as np
import torch
from torch import Tensor, nn

from mha_lib import torch_attention as right
from mha_lib.pitfalls import one_head
from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.code.batched_torch.attention import on_tensors

Mask = Tensor | None
kernel = nn.functional.scaled_dot_product_attention


@mistake("mask-inverted", "batched_torch.sdpa_attention")
def sdpa_mask_inverted(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the mask is turned round, as `nn.MultiheadAttention` wants it."""
    return right.sdpa_attention(Q, K, V, None if mask is None else ~mask)


@mistake("mask-no-effect", "batched_torch.sdpa_attention")
def sdpa_mask_no_effect(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the mask is not passed on."""
    return kernel(Q, K, V)


@mistake("mask-added-as-0-1", "batched_torch.sdpa_attention")
def sdpa_mask_added(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a mask of numbers is added to the scores."""
    return kernel(Q, K, V, attn_mask=None if mask is None else mask.to(Q.dtype))


@mistake("mask-added-as-0-1", "batched_torch.sdpa_attention", form="empty-rows-right")
def sdpa_mask_added_but_to_empty_rows(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a mask of numbers is added to the scores; queries without keys get zeros, as they should."""
    output = sdpa_mask_added(Q, K, V, mask)
    return output if mask is None else output * mask.any(-1, keepdim=True)


@mistake("first-mask-for-all-sequences", "batched_torch.sdpa_attention")
def sdpa_first_mask_for_all(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first sequence's mask is used for all."""
    return right.sdpa_attention(Q, K, V, mask[0, 0] if mask is not None and mask.dim() == 4 else mask)


@mistake("always-causal", "batched_torch.sdpa_attention")
def sdpa_always_causal(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: `is_causal=True` where nobody asked for it."""
    return kernel(Q, K, V, is_causal=True) if mask is None else right.sdpa_attention(Q, K, V, mask)


@mistake("scale-by-dk", "batched_torch.sdpa_attention")
def sdpa_scaled_twice(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the queries are divided by √d_k, and then the kernel does it again."""
    return right.sdpa_attention(Q / Q.shape[-1] ** 0.5, K, V, mask)


@mistake("no-scale", "batched_torch.sdpa_attention")
def sdpa_no_scale(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: `scale=1.0` switches the division off."""
    return right.sdpa_attention(Q * Q.shape[-1] ** 0.5, K, V, mask)


@mistake("keys-used-as-values", "batched_torch.sdpa_attention")
def sdpa_keys_used_as_values(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the keys are averaged."""
    return right.sdpa_attention(Q, K, K, mask)


@mistake("value-used-as-key", "batched_torch.sdpa_attention")
def sdpa_value_used_as_key(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: keys and values are exchanged."""
    return right.sdpa_attention(Q, V, K, mask)


@mistake("weights-returned-too", "batched_torch.sdpa_attention")
def sdpa_weights_returned_too(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> tuple[Tensor, None]:
    """Wrong: a pair is returned."""
    return right.sdpa_attention(Q, K, V, mask), None


@mistake("empty-row-uniform", "batched_torch.sdpa_attention")
def sdpa_empty_row_uniform(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a query without keys attends to everything alike."""
    if mask is None:
        return kernel(Q, K, V)
    return kernel(Q, K, V, attn_mask=torch.zeros(mask.shape, dtype=Q.dtype).masked_fill(~mask, -3e4))


@mistake("gradient-cut-off", "batched_torch.sdpa_attention")
def sdpa_cut_off(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the queries are taken out of the graph."""
    return right.sdpa_attention(Q.detach(), K, V, mask)


@mistake("result-in-float32", "batched_torch.sdpa_attention")
def sdpa_in_float32(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: whatever comes in, float32 comes out."""
    return right.sdpa_attention(Q.float(), K.float(), V.float(), mask)


@mistake("batch-axis-assumed", "batched_torch.sdpa_attention")
def sdpa_batch_axis_assumed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: four axes are taken for granted."""
    batch, heads, n, d_k = Q.shape
    return right.sdpa_attention(Q.view(batch, heads, n, d_k), K, V, mask)


@mistake("input-changed-in-place", "batched_torch.sdpa_attention")
def sdpa_mask_in_place(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: in the caller's mask, queries without keys get all keys."""
    if mask is None:
        return kernel(Q, K, V)
    empty = ~mask.any(dim=-1, keepdim=True)  # (..., n, 1)
    mask |= empty
    return kernel(Q, K, V, attn_mask=mask).masked_fill(empty, 0.0)


@mistake("input-changed-in-place", "batched_torch.sdpa_attention", form="queries")
def sdpa_queries_in_place(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the caller's queries are divided."""
    output = right.sdpa_attention(Q, K, V, mask)
    Q /= Q.shape[-1] ** 0.5
    return output


@mistake("mask-fill-not-negative-enough", "batched_torch.sdpa_attention")
def sdpa_fill_not_negative_enough(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: 25 is taken from hidden scores, and they may lie more than that above the others."""
    if mask is None:
        return kernel(Q, K, V)
    empty = ~mask.any(dim=-1, keepdim=True)  # (..., n, 1)
    output = kernel(Q, K, V, attn_mask=-25.0 * (~mask).to(Q.dtype))
    return output.masked_fill(empty, 0.0)


@mistake("no-scale", "batched_torch.sdpa_attention", form="under-a-mask")
def sdpa_no_scale_under_a_mask(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: with a mask the scores are not divided."""
    return right.sdpa_attention(Q if mask is None else Q * Q.shape[-1] ** 0.5, K, V, mask)


@mistake("axes-of-one-dropped", "batched_torch.sdpa_attention")
def sdpa_squeezed(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: axes are added in front, and then every axis of size 1 is dropped."""
    output = right.sdpa_attention(Q, K, V, mask)
    return output.squeeze() if Q.dim() < 4 else output


@mistake("first-mask-for-all-sequences", "batched_torch.sdpa_attention", form="padding")
def sdpa_first_padding_for_all(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first sequence's padding is used for all."""
    first = mask[0, 0] if mask is not None and mask.dim() == 4 and mask.shape[2] == 1 else mask
    return right.sdpa_attention(Q, K, V, first)


# --- laws --------------------------------------------------------------------------------------------------

HEAD = one_head.Head(lambda tested, *arguments: np.asarray(on_tensors(tested, *arguments)))
ITEM = "batched_torch.sdpa_attention"
one_head.tell(ITEM, HEAD, one_head.OF_A_HEAD, one_head.anything)
one_head.tell(ITEM, HEAD, one_head.AXES, one_head.batched)
one_head.tell(ITEM, HEAD, one_head.SCALE | one_head.BATCHED_SCALE, one_head.wide)
one_head.tell(ITEM, HEAD, one_head.MASK, one_head.masked)
one_head.tell(ITEM, HEAD, one_head.MASK_FOR_EACH, one_head.masked_each)
one_head.tell(ITEM, HEAD, one_head.NO_MASK, one_head.unmasked)
