"""Mistakes in `latent_attention_absorbed`."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from mha_lib.pitfalls.code import mistake
from mha_lib.pitfalls.code.modern_heads import latent_attention as plain
from mha_lib.pitfalls.code.modern_heads.latent_attention import block_of_each_head, merge, over_latents, split
from mha_lib.torch_attention import attention

T = Tensor
Mask = Tensor | None


@mistake("latent-keys-formed", "modern_heads.latent_attention_absorbed")
def absorbed_keys_formed(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the plain form, which makes keys and values for every token."""
    c = x @ W_DKV  # (batch, n, d_c)
    Q, K = split(x @ W_Q, num_heads), split(c @ W_UK, num_heads)
    V = split(c @ W_UV, num_heads)  # (batch, heads, n, d_v)
    return merge(attention(Q, K, V, mask)[0]) @ W_O


@mistake("latent-values-formed", "modern_heads.latent_attention_absorbed")
def absorbed_values_formed(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the keys are absorbed, but the values are made for every token."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    V = c @ block_of_each_head(W_UV, num_heads)  # (batch, heads, n, d_v)
    latents = c.expand(-1, num_heads, -1, -1)
    return merge(attention(Q * c.shape[-1] ** 0.5, latents, V, mask)[0]) @ W_O


@mistake("latent-scale-by-latent-width", "modern_heads.latent_attention_absorbed")
def absorbed_scale_by_latent_width(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: attention divides by the root of d_c, the width of what the queries meet."""
    c = (x @ W_DKV).unsqueeze(1).expand(-1, num_heads, -1, -1)  # (batch, heads, n, d_c)
    Q = split(x @ W_Q, num_heads) @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(attention(Q, c, c, mask)[0] @ block_of_each_head(W_UV, num_heads)) @ W_O


@mistake("no-scale", "modern_heads.latent_attention_absorbed")
def absorbed_no_scale(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are not divided."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads) @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


@mistake("weights-reshaped-without-transpose", "modern_heads.latent_attention_absorbed")
def absorbed_weights_reshaped(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_UK and W_UV are cut along their rows, as they lie in memory."""
    c, d_c = (x @ W_DKV).unsqueeze(1), W_DKV.shape[1]  # (batch, 1, n, d_c)
    W_UK, W_UV = W_UK.reshape(num_heads, d_c, -1), W_UV.reshape(num_heads, d_c, -1)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    return merge(over_latents(Q / Q.shape[-1] ** 0.5 @ W_UK.mT, c, mask) @ W_UV) @ W_O


@mistake("same-columns-for-every-head", "modern_heads.latent_attention_absorbed")
def absorbed_same_block_for_every_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the first head's block of W_UK is applied to the queries of all heads."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ W_UK[:, : Q.shape[-1]].T  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


@mistake("heads-interleaved", "modern_heads.latent_attention_absorbed")
def absorbed_heads_interleaved(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i takes every num_heads-th column of W_UK and W_UV."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    W_UK, W_UV = (W.unflatten(-1, (-1, num_heads)).permute(2, 0, 1) for W in (W_UK, W_UV))  # (heads, d_c, d)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    return merge(over_latents(Q / Q.shape[-1] ** 0.5 @ W_UK.mT, c, mask) @ W_UV) @ W_O


@mistake("latent-absorbed-without-transpose", "modern_heads.latent_attention_absorbed")
def absorbed_not_transposed(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the queries are multiplied by W_UK itself; they need its transpose."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ block_of_each_head(W_UK, num_heads)  # right only if d_k = d_c, and then not
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


@mistake("weights-reshaped-without-transpose", "modern_heads.latent_attention_absorbed", form="keys")
def absorbed_key_weights_reshaped(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_UK is cut along its rows, as they lie in memory."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ W_UK.reshape(num_heads, c.shape[-1], -1).mT  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


@mistake("weights-reshaped-without-transpose", "modern_heads.latent_attention_absorbed", form="values")
def absorbed_value_weights_reshaped(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_UV is cut along its rows, as they lie in memory."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ W_UV.reshape(num_heads, c.shape[-1], -1)) @ W_O


# What is wrong in the plain form in the same way.
mistake("merge-without-transpose", "modern_heads.latent_attention_absorbed")(
    plain.latent_merge_without_transpose
)
mistake("no-output-projection", "modern_heads.latent_attention_absorbed")(plain.latent_without_output)
mistake("mask-inverted", "modern_heads.latent_attention_absorbed")(plain.latent_mask_inverted)
mistake("mask-no-effect", "modern_heads.latent_attention_absorbed")(plain.latent_mask_ignored)
mistake("input-changed-in-place", "modern_heads.latent_attention_absorbed")(plain.latent_changes_its_input)
mistake("gradient-cut-off", "modern_heads.latent_attention_absorbed")(plain.latent_cut_off)


# --- forms -------------------------------------------------------------------------------------------------

Function = Callable[..., Any]


def interleaved_blocks(W: Tensor, num_heads: int) -> Tensor:
    """Every num_heads-th column for each head, `(heads, d_c, d)`."""
    return W.unflatten(-1, (-1, num_heads)).permute(2, 0, 1)


def first_block(W: Tensor, num_heads: int) -> Tensor:
    """The first head's block for all heads, `(heads, d_c, d)`."""
    blocks = block_of_each_head(W, num_heads)
    return blocks[:1].expand_as(blocks)


def absorbed_from(
    attend: Function = attention,
    cut: Function = split,
    combine: Function = merge,
    keys: Function = block_of_each_head,
    values: Function = block_of_each_head,
    width: Function = lambda d_k, d_model, num_heads: d_k,
) -> Function:
    """`latent_attention_absorbed` made of these pieces, of which one is wrong."""

    def latent_attention_absorbed(
        x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
    ) -> Tensor:
        c = (x @ W_DKV).unsqueeze(1).expand(-1, num_heads, -1, -1)  # (batch, heads, n, d_c)
        Q = cut(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
        scale = (c.shape[-1] / width(Q.shape[-1], x.shape[-1], num_heads)) ** 0.5  # attention divides by √d_c
        Q = scale * Q @ keys(W_UK, num_heads).mT  # (batch, heads, n, d_c)
        return combine(attend(Q, c, c, mask)[0] @ values(W_UV, num_heads)) @ W_O  # (batch, n, d_model)

    return latent_attention_absorbed


FORMS: dict[str, Function] = {
    **{
        name: absorbed_from(attend=pieces["attend"])
        for name, pieces in plain.PIECES.items()
        if "attend" in pieces and not name.startswith(("same-columns", "scale-by-value", "scale-multiplied"))
    },
    "scale-by-dk/width": absorbed_from(width=lambda d_k, d_model, num_heads: d_k**2),
    "scale-multiplied/width": absorbed_from(width=lambda d_k, d_model, num_heads: 1 / d_k),
    "scale-by-d-model/width": absorbed_from(width=lambda d_k, d_model, num_heads: d_model),
    "scale-by-d-model/all-heads": absorbed_from(width=lambda d_k, d_model, num_heads: d_k * num_heads),
    "latent-width-from-d-model/width": absorbed_from(
        width=lambda d_k, d_model, num_heads: d_model / num_heads
    ),
    "heads-interleaved/keys": absorbed_from(keys=interleaved_blocks),
    "heads-interleaved/values": absorbed_from(values=interleaved_blocks),
    "heads-interleaved/queries": absorbed_from(cut=plain.split_interleaved),
    "heads-interleaved/merged": absorbed_from(combine=plain.merge_interleaved),
    "split-without-transpose/queries": absorbed_from(cut=plain.split_by_reshape),
    "same-columns-for-every-head/values": absorbed_from(values=first_block),
    "same-columns-for-every-head/both": absorbed_from(keys=first_block, values=first_block),
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "modern_heads.latent_attention_absorbed", form=form)(code)
