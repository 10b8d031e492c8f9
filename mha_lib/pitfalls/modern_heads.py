"""Mistakes in the items of `modern_heads`, as code that needs PyTorch; the words stand with the families."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from mha_lib import modern_heads as right
from mha_lib.positions import rotary, sliding_window_mask
from mha_lib.torch_attention import attention

T = Tensor
Mask = Tensor | None

# --- rotary: the right steps -------------------------------------------------------------------------------


def frequencies(d_k: int, base: float) -> Tensor:
    """How fast each pair turns: base^(-2i/d_k), `(d_k / 2,)`; an error if d_k is odd."""
    if d_k % 2:
        raise ValueError(f"d_k={d_k} is odd")
    return base ** (-2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k)


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """The features i and i + d_k/2 of each token turned by its angles `(..., n, d_k / 2)`."""
    angles = angles.unsqueeze(-3)  # (..., 1, n, d_k / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


# --- rotary ------------------------------------------------------------------------------------------------


def rotary_interleaved(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: neighbours are a pair, features 2i and 2i + 1."""
    halves = torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)
    first, second = rotary(halves, positions, base).chunk(2, dim=-1)
    return torch.stack([first, second], dim=-1).flatten(-2)  # (batch, heads, n, d_k)


def rotary_backwards(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the angle has the other sign."""
    return rotary(x, -positions, base)


def rotary_cos_sin_swapped(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: cosine and sine are exchanged."""
    angles = positions[..., None] * frequencies(x.shape[-1], base)
    return turned(x, torch.pi / 2 - angles)


def rotary_minus_missing(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the halves are exchanged without a minus, so that lengths change."""
    angles = (positions[..., None] * frequencies(x.shape[-1], base)).unsqueeze(-3)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos + second * sin, first * sin + second * cos], dim=-1)


def rotary_first_half_only(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the second half of the features stays as it is."""
    first, _ = rotary(x, positions, base).chunk(2, dim=-1)
    return torch.cat([first, x.chunk(2, dim=-1)[1]], dim=-1)


def rotary_exponent_halved(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the exponent is -i/d_k."""
    return turned(x, positions[..., None] * frequencies(x.shape[-1], base).sqrt())


def rotary_exponent_doubled(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the exponent is -4i/d_k, since the 2 is counted twice."""
    return turned(x, positions[..., None] * frequencies(x.shape[-1], base).square())


def rotary_exponent_positive(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the exponent is +2i/d_k, so that later pairs turn faster."""
    return turned(x, positions[..., None] / frequencies(x.shape[-1], base))


def rotary_one_frequency(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: all pairs turn by the same angle."""
    return turned(x, positions[..., None] * frequencies(x.shape[-1], base) ** 0)


def rotary_base_ignored(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the base is 10,000 whatever is asked for."""
    return rotary(x, positions)


def rotary_positions_ignored(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: tokens are counted from 0, whatever their positions are."""
    return rotary(x, torch.arange(x.shape[-2]), base)


def rotary_offset_lost(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the first token that comes is taken for position 0."""
    return rotary(x, positions - positions[..., :1], base)


def rotary_positions_from_one(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: positions are counted from 1."""
    return rotary(x, positions + 1, base)


def rotary_first_positions_for_all(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the first sequence's positions are used for all sequences."""
    return rotary(x, positions if positions.ndim == 1 else positions[0], base)


def rotary_positions_on_head_axis(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: positions `(batch, n)` meet the heads, since no axis is put in for them."""
    angles = positions[..., None] * frequencies(x.shape[-1], base)  # (n, d_k / 2) or (batch, n, d_k / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def rotary_width_unchecked(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: an odd width is cut into halves of which one is wider, without a word of it."""
    d_k = x.shape[-1]
    exponents = -2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k
    return turned(x, positions[..., None] * base**exponents)


def rotary_in_float64(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the angles' float64 reaches the result."""
    return rotary(x.double(), positions, base)


def rotary_in_place(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the caller's features are overwritten."""
    with torch.no_grad():
        x.copy_(rotary(x, positions, base))
    return x


def rotary_cut_off(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Wrong: the result is taken out of the graph."""
    return rotary(x, positions, base).detach()


# --- sliding_window_mask -----------------------------------------------------------------------------------


def how_far_back(n: int, m: int) -> Tensor:
    """How far before each query each key stands, `(n, m)`; the last query lines up with the last key."""
    return torch.arange(m - n, m)[:, None] - torch.arange(m)


def window_one_too_wide(n: int, m: int, window: int) -> Tensor:
    """Wrong: `window` keys and the query's own."""
    sliding_window_mask(n, m, window)  # for its error
    return sliding_window_mask(n, m, window + 1)


def window_one_too_narrow(n: int, m: int, window: int) -> Tensor:
    """Wrong: one key less than asked for."""
    sliding_window_mask(n, m, window)  # for its error
    back = how_far_back(n, m)
    return (back >= 0) & (back < window - 1)


def window_on_both_sides(n: int, m: int, window: int) -> Tensor:
    """Wrong: keys that come later are seen as well."""
    return sliding_window_mask(n, m, window) | (how_far_back(n, m).abs() < window)


def window_ahead(n: int, m: int, window: int) -> Tensor:
    """Wrong: a query sees what comes after it."""
    sliding_window_mask(n, m, window)  # for its error
    back = how_far_back(n, m)
    return (back <= 0) & (back > -window)


def window_without_self(n: int, m: int, window: int) -> Tensor:
    """Wrong: the window ends before the query's own key."""
    sliding_window_mask(n, m, window)  # for its error
    back = how_far_back(n, m)
    return (back >= 1) & (back <= window)


def window_with_next(n: int, m: int, window: int) -> Tensor:
    """Wrong: the window reaches one key too far to the right."""
    sliding_window_mask(n, m, window)  # for its error
    back = how_far_back(n, m)
    return (back >= -1) & (back < window)


def window_top_left(n: int, m: int, window: int) -> Tensor:
    """Wrong: the first query lines up with the first key."""
    sliding_window_mask(n, m, window)  # for its error
    back = torch.arange(n)[:, None] - torch.arange(m)
    return (back >= 0) & (back < window)


def window_ignored(n: int, m: int, window: int) -> Tensor:
    """Wrong: the plain causal mask."""
    return sliding_window_mask(n, m, window) | (how_far_back(n, m) >= 0)


def window_not_causal_blocks(n: int, m: int, window: int) -> Tensor:
    """Wrong: the sequence is cut into blocks; a query sees those of its own block."""
    causal = sliding_window_mask(n, m, window) | (how_far_back(n, m) >= 0)
    block = torch.arange(m) // window
    return causal & (block[m - n :, None] == block)


def window_inverted(n: int, m: int, window: int) -> Tensor:
    """Wrong: True means "hide"."""
    return ~sliding_window_mask(n, m, window)


def window_of_numbers(n: int, m: int, window: int) -> Tensor:
    """Wrong: 0 and 1 in place of False and True."""
    return sliding_window_mask(n, m, window).float()


def window_unchecked(n: int, m: int, window: int) -> Tensor:
    """Wrong: a window of 0 is taken, and hides everything."""
    back = how_far_back(n, m)
    return (back >= 0) & (back < window)


# --- latent attention: the right steps ---------------------------------------------------------------------


def split(features: Tensor, num_heads: int) -> Tensor:
    """Give each head its own block of features, `(batch, n, heads * d)` to `(batch, heads, n, d)`."""
    return features.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge(heads: Tensor) -> Tensor:
    """The heads side by side, `(batch, heads, n, d)` to `(batch, n, heads * d)`."""
    return heads.transpose(1, 2).flatten(2)


def block_of_each_head(W: Tensor, num_heads: int) -> Tensor:
    """What each head has of W_UK or W_UV, `(d_c, heads * d)` to `(heads, d_c, d)`."""
    return W.unflatten(-1, (num_heads, -1)).transpose(0, 1)


def over_latents(Q: Tensor, c: Tensor, mask: Mask) -> Tensor:
    """The weighted sums of the latents `(batch, 1, n, d_c)`; the queries are on the right scale already."""
    latents = c.expand(-1, Q.shape[1], -1, -1)  # (batch, heads, n, d_c)
    return attention(Q * c.shape[-1] ** 0.5, latents, latents, mask)[0]  # attention divides by √d_c


# --- latent_attention --------------------------------------------------------------------------------------


def latent_no_scale(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are not divided."""
    root = (W_Q.shape[1] // num_heads) ** 0.5
    return right.latent_attention(x, W_Q * root, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_scale_by_dk(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by d_k, without the root."""
    root = (W_Q.shape[1] // num_heads) ** 0.5
    return right.latent_attention(x, W_Q / root, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_scale_by_d_model(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by the root of d_model."""
    ratio = (W_Q.shape[1] // num_heads / x.shape[-1]) ** 0.5
    return right.latent_attention(x, W_Q * ratio, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_scale_by_latent_width(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by the root of the latents' width d_c."""
    ratio = (W_Q.shape[1] // num_heads / W_DKV.shape[1]) ** 0.5
    return right.latent_attention(x, W_Q * ratio, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_sliced_per_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i gets the i-th slice of the latents only."""
    d_c = W_DKV.shape[1]
    head_of_latent = torch.arange(d_c) * num_heads // d_c  # (d_c,)
    own = (head_of_latent == torch.arange(num_heads)[:, None]).to(x.dtype)[..., None]  # (heads, d_c, 1)
    W_UK, W_UV = ((block_of_each_head(W, num_heads) * own).transpose(0, 1).flatten(1) for W in (W_UK, W_UV))
    return right.latent_attention(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_heads_interleaved(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i takes every num_heads-th feature of queries, keys and values."""
    c = x @ W_DKV
    Q, K, V = (
        features.unflatten(-1, (-1, num_heads)).movedim(-1, 1) for features in (x @ W_Q, c @ W_UK, c @ W_UV)
    )
    return merge(attention(Q, K, V, mask)[0]) @ W_O


def latent_values_from_keys(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the values are made with W_UK; W_UV is never used."""
    return right.latent_attention(x, W_Q, W_DKV, W_UK, W_UK, W_O, num_heads, mask)


def latent_queries_from_latents(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the queries too are made from the latents, with the weights of the keys."""
    return right.latent_attention(x, W_DKV @ W_UK, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_one_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: everything in one wide head."""
    return right.latent_attention(x, W_Q, W_DKV, W_UK, W_UV, W_O, 1, mask)


def latent_split_without_transpose(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: reshaped straight to `(batch, heads, n, d)`."""
    c, n = x @ W_DKV, x.shape[1]
    Q, K, V = (features.reshape(len(x), num_heads, n, -1) for features in (x @ W_Q, c @ W_UK, c @ W_UV))
    return merge(attention(Q, K, V, mask)[0]) @ W_O


def latent_merge_without_transpose(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the heads are laid together without moving their axis back."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    W_UK, W_UV = block_of_each_head(W_UK, num_heads), block_of_each_head(W_UV, num_heads)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    heads = over_latents(Q / Q.shape[-1] ** 0.5 @ W_UK.mT, c, mask) @ W_UV  # (batch, heads, n, d_v)
    return heads.reshape(*x.shape[:2], -1) @ W_O


def latent_width_from_d_model(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the width of a head is taken to be d_model / num_heads."""
    c, d_k = x @ W_DKV, x.shape[-1] // num_heads
    Q, K, V = (
        features.unflatten(-1, (num_heads, d_k)).transpose(1, 2) for features in (x @ W_Q, c @ W_UK, c @ W_UV)
    )
    return merge(attention(Q, K, V, mask)[0]) @ W_O


def latent_without_output(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_O is not used."""
    return right.latent_attention_absorbed(x, W_Q, W_DKV, W_UK, W_UV, torch.eye(len(W_O)), num_heads, mask)


def latent_mask_inverted(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: True is taken to mean "hide"."""
    turned = None if mask is None else ~mask
    return right.latent_attention_absorbed(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, turned)


def latent_mask_ignored(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the mask is taken and not used."""
    return right.latent_attention_absorbed(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads)


def latent_changes_its_input(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the caller's W_Q is divided in place."""
    output = right.latent_attention_absorbed(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask)
    with torch.no_grad():
        W_Q /= (W_Q.shape[1] // num_heads) ** 0.5
    return output


def latent_cut_off(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the latents that a cache would keep are taken out of the graph."""
    c = (x @ W_DKV).unsqueeze(1).detach()  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


# --- latent_attention_absorbed -----------------------------------------------------------------------------


def absorbed_keys_formed(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the plain form, which makes keys and values for every token."""
    return right.latent_attention(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


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


def absorbed_scale_by_latent_width(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: attention divides by the root of d_c, the width of what the queries meet."""
    c = (x @ W_DKV).unsqueeze(1).expand(-1, num_heads, -1, -1)  # (batch, heads, n, d_c)
    Q = split(x @ W_Q, num_heads) @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(attention(Q, c, c, mask)[0] @ block_of_each_head(W_UV, num_heads)) @ W_O


def absorbed_no_scale(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are not divided."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads) @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


def absorbed_weights_reshaped(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_UK and W_UV are cut along their rows, as they lie in memory."""
    c, d_c = (x @ W_DKV).unsqueeze(1), W_DKV.shape[1]  # (batch, 1, n, d_c)
    W_UK, W_UV = W_UK.reshape(num_heads, d_c, -1), W_UV.reshape(num_heads, d_c, -1)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    return merge(over_latents(Q / Q.shape[-1] ** 0.5 @ W_UK.mT, c, mask) @ W_UV) @ W_O


def absorbed_same_block_for_every_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the first head's block of W_UK is applied to the queries of all heads."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ W_UK[:, : Q.shape[-1]].T  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


def absorbed_heads_interleaved(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i takes every num_heads-th column of W_UK and W_UV."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    W_UK, W_UV = (W.unflatten(-1, (-1, num_heads)).permute(2, 0, 1) for W in (W_UK, W_UV))  # (heads, d_c, d)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    return merge(over_latents(Q / Q.shape[-1] ** 0.5 @ W_UK.mT, c, mask) @ W_UV) @ W_O


def absorbed_not_transposed(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the queries are multiplied by W_UK itself; they need its transpose."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ block_of_each_head(W_UK, num_heads)  # right only if d_k = d_c, and then not
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


# --- qk_norm_attention -------------------------------------------------------------------------------------


def unit(features: Tensor) -> Tensor:
    """The features of each token and head divided by their length."""
    return features / (features.norm(dim=-1, keepdim=True) + 1e-6)


def attended(scores: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """The average of the values under the softmax of the scores."""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ v  # (batch, heads, n, d_v)


def qk_norm_of_keys_only(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the queries keep their lengths."""
    return attended(g * (q @ unit(k).mT), v, mask)


def qk_norm_of_queries_only(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the keys keep their lengths."""
    return attended(g * (unit(q) @ k.mT), v, mask)


def qk_norm_missing(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: nothing is normalised."""
    return attended(g * (q @ k.mT), v, mask)


def qk_norm_still_scaled(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the scores are still divided by √d_k."""
    return attended(g * (unit(q) @ unit(k).mT) / q.shape[-1] ** 0.5, v, mask)


def qk_norm_without_g(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the scores are the cosines, without g."""
    return attended(unit(q) @ unit(k).mT, v, mask)


def qk_norm_after_scaling(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: g is multiplied in before the norm, which takes all but its sign away again."""
    return attended(unit(g * q) @ unit(k).mT, v, mask)


def qk_norm_g_after_softmax(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: g multiplies the weights, not the scores."""
    return g * attended(unit(q) @ unit(k).mT, v, mask)


def qk_norm_divided_by_g(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the scores are divided by g."""
    return attended(unit(q) @ unit(k).mT / g, v, mask)


def qk_norm_first_g_for_all(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first head's g is used for all heads."""
    return attended(g[0] * (unit(q) @ unit(k).mT), v, mask)


def qk_norm_over_tokens(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: each feature is divided by its length over all tokens."""
    q, k = (each / (each.norm(dim=-2, keepdim=True) + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


def qk_norm_over_heads(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: one length for all heads of a token together."""
    q, k = (each / (each.norm(dim=(1, 3), keepdim=True) + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


def qk_norm_squared(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: divided by the square of the length, since the root is missing."""
    q, k = (each / (each.square().sum(dim=-1, keepdim=True) + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


def qk_norm_root_mean_square(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: divided by the root of the mean square, so that lengths are √d_k and scores d_k times too large."""
    return attended(g * (unit(q) @ unit(k).mT) * q.shape[-1], v, mask)


def qk_norm_without_epsilon(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a vector of zeros is divided by 0."""
    q, k = (each / each.norm(dim=-1, keepdim=True) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


def qk_norm_of_values_too(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the values are normalised as well."""
    return attended(g * (unit(q) @ unit(k).mT), unit(v), mask)


def qk_norm_softmax_over_queries(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the softmax runs down the columns."""
    scores = g * (unit(q) @ unit(k).mT)  # (batch, heads, n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-2) @ v


def qk_norm_mask_inverted(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: True is taken to mean "hide"."""
    return right.qk_norm_attention(q, k, v, g, None if mask is None else ~mask)


def qk_norm_mask_ignored(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the mask is taken and not used."""
    return right.qk_norm_attention(q, k, v, g)


def qk_norm_first_mask_for_all(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first sequence's mask is used for all sequences."""
    return right.qk_norm_attention(q, k, v, g, mask[0] if mask is not None and mask.ndim == 4 else mask)


def qk_norm_in_place(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the caller's queries are overwritten by the normalised ones."""
    output = right.qk_norm_attention(q, k, v, g, mask)
    with torch.no_grad():
        q.copy_(unit(q))
    return output


def qk_norm_cut_off(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the lengths are taken out of the graph, as if they were numbers that do not change."""
    q, k = (each / (each.norm(dim=-1, keepdim=True).detach() + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


LATENT: Mapping[str, Callable[..., Any]] = {
    "heads-interleaved": latent_heads_interleaved,
    "split-without-transpose": latent_split_without_transpose,
    "merge-without-transpose": latent_merge_without_transpose,
    "num-heads-ignored": latent_one_head,
    "no-output-projection": latent_without_output,
    "mask-inverted": latent_mask_inverted,
    "mask-no-effect": latent_mask_ignored,
    "gradient-cut-off": latent_cut_off,
    "input-changed-in-place": latent_changes_its_input,
}
VARIANTS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "rotary": {
        "rotary-pairs-interleaved": rotary_interleaved,
        "rotary-angle-reversed": rotary_backwards,
        "rotary-cos-sin-swapped": rotary_cos_sin_swapped,
        "rotary-minus-missing": rotary_minus_missing,
        "rotary-first-half-only": rotary_first_half_only,
        "rotary-exponent-halved": rotary_exponent_halved,
        "rotary-exponent-doubled": rotary_exponent_doubled,
        "rotary-exponent-positive": rotary_exponent_positive,
        "rotary-one-frequency": rotary_one_frequency,
        "rotary-base-ignored": rotary_base_ignored,
        "rotary-positions-ignored": rotary_positions_ignored,
        "rotary-offset-lost": rotary_offset_lost,
        "rotary-positions-from-one": rotary_positions_from_one,
        "rotary-first-positions-for-all": rotary_first_positions_for_all,
        "rotary-positions-on-head-axis": rotary_positions_on_head_axis,
        "rotary-width-unchecked": rotary_width_unchecked,
        "rotary-in-float64": rotary_in_float64,
        "input-changed-in-place": rotary_in_place,
        "gradient-cut-off": rotary_cut_off,
    },
    "sliding_window_mask": {
        "window-one-too-wide": window_one_too_wide,
        "window-one-too-narrow": window_one_too_narrow,
        "window-on-both-sides": window_on_both_sides,
        "window-ahead": window_ahead,
        "window-ignored": window_ignored,
        "window-in-blocks": window_not_causal_blocks,
        "window-unchecked": window_unchecked,
        "causal-hides-self": window_without_self,
        "causal-sees-next": window_with_next,
        "causal-top-left": window_top_left,
        "mask-inverted": window_inverted,
        "mask-not-boolean": window_of_numbers,
    },
    "latent_attention": {
        **LATENT,
        "no-scale": latent_no_scale,
        "scale-by-dk": latent_scale_by_dk,
        "scale-by-d-model": latent_scale_by_d_model,
        "latent-scale-by-latent-width": latent_scale_by_latent_width,
        "latent-sliced-per-head": latent_sliced_per_head,
        "latent-values-from-keys": latent_values_from_keys,
        "latent-queries-from-latents": latent_queries_from_latents,
        "latent-width-from-d-model": latent_width_from_d_model,
    },
    "latent_attention_absorbed": {
        "merge-without-transpose": latent_merge_without_transpose,
        "no-output-projection": latent_without_output,
        "mask-inverted": latent_mask_inverted,
        "mask-no-effect": latent_mask_ignored,
        "gradient-cut-off": latent_cut_off,
        "input-changed-in-place": latent_changes_its_input,
        "no-scale": absorbed_no_scale,
        "heads-interleaved": absorbed_heads_interleaved,
        "weights-reshaped-without-transpose": absorbed_weights_reshaped,
        "same-columns-for-every-head": absorbed_same_block_for_every_head,
        "latent-scale-by-latent-width": absorbed_scale_by_latent_width,
        "latent-keys-formed": absorbed_keys_formed,
        "latent-values-formed": absorbed_values_formed,
        "latent-absorbed-without-transpose": absorbed_not_transposed,
    },
    "qk_norm_attention": {
        "qk-norm-of-keys-only": qk_norm_of_keys_only,
        "qk-norm-of-queries-only": qk_norm_of_queries_only,
        "qk-norm-missing": qk_norm_missing,
        "qk-norm-still-scaled": qk_norm_still_scaled,
        "qk-norm-without-g": qk_norm_without_g,
        "qk-norm-after-scaling": qk_norm_after_scaling,
        "qk-norm-g-after-softmax": qk_norm_g_after_softmax,
        "qk-norm-divided-by-g": qk_norm_divided_by_g,
        "qk-norm-first-g-for-all": qk_norm_first_g_for_all,
        "qk-norm-over-tokens": qk_norm_over_tokens,
        "qk-norm-over-heads": qk_norm_over_heads,
        "qk-norm-squared": qk_norm_squared,
        "qk-norm-root-mean-square": qk_norm_root_mean_square,
        "qk-norm-without-epsilon": qk_norm_without_epsilon,
        "qk-norm-of-values-too": qk_norm_of_values_too,
        "qk-norm-lengths-detached": qk_norm_cut_off,
        "softmax-over-queries": qk_norm_softmax_over_queries,
        "mask-inverted": qk_norm_mask_inverted,
        "mask-no-effect": qk_norm_mask_ignored,
        "first-mask-for-all-sequences": qk_norm_first_mask_for_all,
        "input-changed-in-place": qk_norm_in_place,
    },
}
