"""Right styles for the items of `modern_heads`: complex numbers, matrices, loops, einsum, PyTorch's own kernels."""

import torch
from einops import einsum, rearrange
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.styles import style

T = Tensor
Mask = Tensor | None

# --- rotary ------------------------------------------------------------------------------------------------


@style("rotate half", "modern_heads.rotary")
def rotary_rotate_half(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """As most code bases have it: x cos + rotate_half(x) sin, in the precision of x."""
    d_k = x.shape[-1]
    if d_k % 2 != 0:
        raise ValueError(f"rotary needs an even width, got {d_k}")
    inv_freq = 1.0 / (base ** (torch.arange(0, d_k, 2).float() / d_k))
    angles = positions.float().unsqueeze(-1) * inv_freq
    emb = torch.cat((angles, angles), dim=-1)
    if emb.dim() == 3:
        emb = emb.unsqueeze(1)
    rotated = torch.cat((-x[..., d_k // 2 :], x[..., : d_k // 2]), dim=-1)
    return (x * emb.cos() + rotated * emb.sin()).to(x.dtype)


@style("complex numbers", "modern_heads.rotary")
def rotary_complex(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Each pair as a complex number."""
    half, odd = divmod(x.shape[-1], 2)
    if odd:
        raise ValueError(f"the width {x.shape[-1]} is odd")
    theta = torch.exp(-torch.arange(half) / half * torch.log(torch.tensor(base)))
    phase = positions.unsqueeze(-1) * theta
    if phase.ndim == 3:
        phase = phase[:, None]
    z = torch.complex(x[..., :half].float(), x[..., half:].float())
    z = z * torch.polar(torch.ones_like(phase), phase)
    return torch.cat([z.real, z.imag], dim=-1).type_as(x)


@style("a matrix for each token", "modern_heads.rotary")
def rotary_matrices(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """One rotation matrix for each token, and einsum."""
    batch, _, n, d_k = x.shape
    if d_k % 2 == 1:
        raise ValueError(f"d_k is {d_k}, which cannot be cut into pairs")
    half = d_k // 2
    where = positions if positions.dim() == 2 else positions.expand(batch, n)
    R = torch.zeros(batch, n, d_k, d_k, dtype=x.dtype)
    for i in range(half):
        angle = where.to(x.dtype) * base ** (-2.0 * i / d_k)
        R[..., i, i], R[..., i, i + half] = angle.cos(), -angle.sin()
        R[..., i + half, i], R[..., i + half, i + half] = angle.sin(), angle.cos()
    return einsum(R, x, "b n i j, b h n j -> b h n i")


@style("token by token", "modern_heads.rotary")
def rotary_token_by_token(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Loops over sequences and tokens."""
    if x.size(-1) % 2:
        raise ValueError(f"cannot pair {x.size(-1)} features")
    half = x.size(-1) // 2
    speed = torch.tensor([base ** (-2 * i / x.size(-1)) for i in range(half)], dtype=x.dtype)
    sequences = []
    for b in range(x.size(0)):
        tokens = []
        for i in range(x.size(2)):
            angle = speed * (positions[i] if positions.ndim == 1 else positions[b, i])
            c, s = torch.cos(angle), torch.sin(angle)
            u, v = x[b, :, i, :half], x[b, :, i, half:]
            tokens.append(torch.hstack((u * c - v * s, v * c + u * s)))
        sequences.append(torch.stack(tokens, dim=1))
    return torch.stack(sequences)


@style("pairs on an axis of their own", "modern_heads.rotary")
def rotary_as_pairs(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """The halves on an axis of their own, turned by 2 × 2 matrices."""
    width = x.shape[-1]
    if width & 1:
        raise ValueError(f"odd width: {width}")
    pairs = rearrange(x, "b h n (two i) -> b h n i two", two=2)
    angle = positions[..., None] * torch.logspace(0, -1, width // 2 + 1, base=base)[:-1]
    angle = angle if angle.ndim == 2 else angle[:, None]
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).unflatten(-1, (2, 2))
    turned = (turn.to(x.dtype) @ pairs.unsqueeze(-1)).squeeze(-1)
    return rearrange(turned, "b h n i two -> b h n (two i)")


# --- sliding_window_mask -----------------------------------------------------------------------------------


@style("two triangles", "modern_heads.sliding_window_mask")
def window_by_triangles(n: int, m: int, window: int) -> Tensor:
    """Two triangles."""
    if window < 1:
        raise ValueError(f"window should be at least 1, not {window}")
    ones = torch.ones(n, m, dtype=torch.bool)
    return ones.tril(m - n).triu(m - n - window + 1)


@style("row by row", "modern_heads.sliding_window_mask")
def window_by_loops(n: int, m: int, window: int) -> Tensor:
    """Row by row."""
    if window <= 0:
        raise ValueError(f"a window of {window} keys")
    mask = torch.zeros((n, m), dtype=torch.bool)
    for i in range(n):
        last = i + m - n
        mask[i, max(0, last + 1 - window) : last + 1] = True
    return mask


@style("shifted diagonals", "modern_heads.sliding_window_mask")
def window_by_powers(n: int, m: int, window: int) -> Tensor:
    """Sum of shifted identities, the last n rows of a square."""
    if not window >= 1:
        raise ValueError(f"window must be positive: {window}")
    square = sum(torch.diag(torch.ones(max(m - back, 0)), -back)[:m, :m] for back in range(min(window, m)))
    return torch.as_tensor(square)[m - n :].bool()


# --- latent attention --------------------------------------------------------------------------------------


@style("through the kernel", "modern_heads.latent_attention")
def latent_through_the_kernel(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """PyTorch's kernel."""
    latent = x @ W_DKV
    q = rearrange(x @ W_Q, "b n (h k) -> b h n k", h=num_heads)
    k = rearrange(latent @ W_UK, "b n (h k) -> b h n k", h=num_heads)
    v = rearrange(latent @ W_UV, "b n (h v) -> b h n v", h=num_heads)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return rearrange(heads, "b h n v -> b n (h v)") @ W_O


@style("head by head", "modern_heads.latent_attention")
def latent_head_by_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """A loop over heads, whose outputs are summed after their own rows of W_O."""
    c, output = x @ W_DKV, 0.0
    d_k, d_v = W_Q.shape[1] // num_heads, W_UV.shape[1] // num_heads
    for h in range(num_heads):
        key, value = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        scores = (x @ W_Q[:, key]) @ (c @ W_UK[:, key]).transpose(1, 2) / d_k**0.5
        if mask is not None:
            scores = scores.masked_fill(~(mask if mask.dim() == 2 else mask.squeeze(1)), float("-inf"))
        output = output + scores.softmax(-1) @ (c @ W_UV[:, value]) @ W_O[value]
    return torch.as_tensor(output)


@style("merged weights", "modern_heads.latent_attention")
def latent_by_merged_weights(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """W_DKV merged into W_UK and W_UV: ordinary attention with weights of low rank."""
    q, k, v = (
        (x @ W).view(*x.shape[:2], num_heads, -1).permute(0, 2, 1, 3)
        for W in (W_Q, W_DKV @ W_UK, W_DKV @ W_UV)
    )
    scores = torch.einsum("bhik,bhjk->bhij", q, k) * k.size(-1) ** -0.5
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -1e30)
    heads = torch.einsum("bhij,bhjv->bihv", F.softmax(scores, dim=-1), v)
    return heads.reshape(*x.shape[:2], -1) @ W_O


@style("absorbed", "modern_heads.latent_attention")
@style("by einsum", "modern_heads.latent_attention_absorbed")
def absorbed_by_einsum(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """einsum, in the order in which nothing is formed."""
    c = x @ W_DKV
    q = rearrange(x @ W_Q, "b n (h k) -> b h n k", h=num_heads)
    up_k = rearrange(W_UK, "c (h k) -> h c k", h=num_heads)
    up_v = rearrange(W_UV, "c (h v) -> h c v", h=num_heads)
    q_latent = einsum(q, up_k, "b h n k, h c k -> b h n c")
    scores = einsum(q_latent, c, "b h n c, b m c -> b h n m") / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.where(mask, -torch.inf)
    mixed = einsum(scores.softmax(-1), c, "b h n m, b m c -> b h n c")
    heads = einsum(mixed, up_v, "b h n c, h c v -> b n h v")
    return heads.flatten(2) @ W_O


@style("head by head", "modern_heads.latent_attention_absorbed")
def absorbed_head_by_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """A loop; the weights of queries and keys merged, and those of values and output."""
    c, output = x @ W_DKV, torch.zeros_like(x)
    for q, k, v, o in zip(
        *(W.chunk(num_heads, dim=1) for W in (W_Q, W_UK, W_UV)), W_O.chunk(num_heads), strict=True
    ):
        scores = x @ (q @ k.T) @ c.mT / q.shape[1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~(mask if mask.ndim == 2 else mask[:, 0]), -1e30)
        output = output + scores.softmax(dim=-1) @ c @ (v @ o)
    return output


@style("through the kernel", "modern_heads.latent_attention_absorbed")
def absorbed_through_the_kernel(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """PyTorch's kernel, with one key head and one value head that all share, and the scale of a head."""
    d_k = W_Q.shape[-1] // num_heads
    c = (x @ W_DKV).unsqueeze(1)
    q = (x @ W_Q).unflatten(-1, (num_heads, d_k)).transpose(1, 2)
    q = q @ W_UK.T.unflatten(0, (num_heads, d_k))
    c = c.expand(-1, num_heads, -1, -1)
    mixed = F.scaled_dot_product_attention(q, c, c, attn_mask=mask, scale=d_k**-0.5)
    heads = mixed @ W_UV.T.unflatten(0, (num_heads, -1)).transpose(1, 2)
    return heads.transpose(1, 2).reshape(*x.shape[:2], -1) @ W_O


# --- qk_norm_attention -------------------------------------------------------------------------------------


@style("normalize and the kernel", "modern_heads.qk_norm_attention")
def qk_norm_by_normalize(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """PyTorch's own normalisation and kernel, whose scale is turned off."""
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    return F.scaled_dot_product_attention(q * g, k, v, attn_mask=mask, scale=1.0)


@style("cosine similarity", "modern_heads.qk_norm_attention")
def qk_norm_by_cosine_similarity(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """PyTorch's cosine of every pair."""
    scores = g * F.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1) @ v


@style("scores divided", "modern_heads.qk_norm_attention")
def qk_norm_scores_divided(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """The scores are divided by both lengths."""
    lengths = (q.norm(dim=-1)[..., :, None] + 1e-6) * (k.norm(dim=-1)[..., None, :] + 1e-6)
    scores = einsum(q, k, "b h n d, b h m d -> b h n m") / lengths * g
    if mask is not None:
        scores = scores.where(mask, float("-inf"))
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True) @ v


@style("head by head", "modern_heads.qk_norm_attention")
def qk_norm_head_by_head(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """A loop over sequences and heads."""
    rows = []
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            own_q, own_k = q[b, h], k[b, h]
            own_q = own_q / (own_q.pow(2).sum(-1, keepdim=True).clamp_min(1e-24).sqrt() + 1e-6)
            own_k = own_k / (own_k.pow(2).sum(-1, keepdim=True).clamp_min(1e-24).sqrt() + 1e-6)
            scores = g[h, 0, 0] * (own_q @ own_k.T)
            if mask is not None:
                scores = scores.masked_fill(~mask.expand(*q.shape[:2], *scores.shape)[b, h], float("-inf"))
            rows.append(scores.softmax(-1) @ v[b, h])
    return torch.stack(rows).view(*q.shape[:3], v.shape[-1])
