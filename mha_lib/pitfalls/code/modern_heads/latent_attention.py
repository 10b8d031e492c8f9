"""Mistakes in `latent_attention`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mha_lib.pitfalls.code import mistake, variants
from mha_lib.torch_attention import attention

T = Tensor
Mask = Tensor | None


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


def heads_of(x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, num_heads: int, mask: Mask, scale: float) -> Tensor:
    """The heads side by side; scores are queries times keys times `scale`."""
    Q = scale * split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    mixed = over_latents(Q @ block_of_each_head(W_UK, num_heads).mT, c, mask)  # (batch, heads, n, d_c)
    return merge(mixed @ block_of_each_head(W_UV, num_heads))


def root(W: Tensor, num_heads: int) -> float:
    """1/√d of the width d that one of the heads has in W."""
    return float((W.shape[1] // num_heads) ** -0.5)


@mistake("no-scale", "modern_heads.latent_attention")
def latent_no_scale(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are not divided."""
    scale = 1.0
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("scale-by-dk", "modern_heads.latent_attention")
def latent_scale_by_dk(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by d_k, without the root."""
    scale = root(W_Q, num_heads) ** 2
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("scale-by-d-model", "modern_heads.latent_attention")
def latent_scale_by_d_model(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by the root of d_model."""
    scale = x.shape[-1] ** -0.5
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("latent-scale-by-latent-width", "modern_heads.latent_attention")
def latent_scale_by_latent_width(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by the root of the latents' width d_c."""
    scale = W_DKV.shape[1] ** -0.5
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("latent-sliced-per-head", "modern_heads.latent_attention")
def latent_sliced_per_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i gets the i-th slice of the latents only."""
    owner = torch.arange(W_DKV.shape[1]) * num_heads // W_DKV.shape[1]
    own = owner == torch.arange(num_heads)[:, None]  # (heads, d_c)
    W_UK = merge((own[..., None] * block_of_each_head(W_UK, num_heads))[None])[0]
    W_UV = merge((own[..., None] * block_of_each_head(W_UV, num_heads))[None])[0]
    scale = root(W_Q, num_heads)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("heads-interleaved", "modern_heads.latent_attention")
def latent_heads_interleaved(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i takes every num_heads-th feature of queries, keys and values."""
    c = x @ W_DKV
    Q, K, V = (
        features.unflatten(-1, (-1, num_heads)).movedim(-1, 1) for features in (x @ W_Q, c @ W_UK, c @ W_UV)
    )
    return merge(attention(Q, K, V, mask)[0]) @ W_O


@mistake("latent-values-from-keys", "modern_heads.latent_attention")
def latent_values_from_keys(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the values are made with W_UK; W_UV is never used."""
    scale = root(W_Q, num_heads)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UK, num_heads, mask, scale) @ W_O


@mistake("latent-queries-from-latents", "modern_heads.latent_attention")
def latent_queries_from_latents(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the queries too are made from the latents, with the weights of the keys."""
    W_Q, scale = W_DKV @ W_UK, root(W_Q, num_heads)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("num-heads-ignored", "modern_heads.latent_attention")
def latent_one_head(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: everything in one wide head."""
    scale = root(W_Q, 1)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, 1, mask, scale) @ W_O


@mistake("split-without-transpose", "modern_heads.latent_attention")
def latent_split_without_transpose(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: reshaped straight to `(batch, heads, n, d)`."""
    c, n = x @ W_DKV, x.shape[1]
    Q, K, V = (features.reshape(len(x), num_heads, n, -1) for features in (x @ W_Q, c @ W_UK, c @ W_UV))
    return merge(attention(Q, K, V, mask)[0]) @ W_O


@mistake("merge-without-transpose", "modern_heads.latent_attention")
def latent_merge_without_transpose(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the heads are laid together without moving their axis back."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    W_UK, W_UV = block_of_each_head(W_UK, num_heads), block_of_each_head(W_UV, num_heads)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    heads = over_latents(Q / Q.shape[-1] ** 0.5 @ W_UK.mT, c, mask) @ W_UV  # (batch, heads, n, d_v)
    return heads.reshape(*x.shape[:2], -1) @ W_O


@mistake("latent-width-from-d-model", "modern_heads.latent_attention")
def latent_width_from_d_model(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the width of a head is taken to be d_model / num_heads."""
    c, shape = x @ W_DKV, (num_heads, x.shape[-1] // num_heads)
    made = x @ W_Q, c @ W_UK, c @ W_UV
    Q, K, V = (each.unflatten(-1, shape).transpose(1, 2) for each in made)
    return merge(attention(Q, K, V, mask)[0]) @ W_O


@mistake("no-output-projection", "modern_heads.latent_attention")
def latent_without_output(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_O is not used."""
    scale = root(W_Q, num_heads)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale)


@mistake("mask-inverted", "modern_heads.latent_attention")
def latent_mask_inverted(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: True is taken to mean "hide"."""
    turned = None if mask is None else ~mask
    scale = root(W_Q, num_heads)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, turned, scale) @ W_O


@mistake("mask-no-effect", "modern_heads.latent_attention")
def latent_mask_ignored(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the mask is taken and not used."""
    scale = root(W_Q, num_heads)
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, None, scale) @ W_O


@mistake("input-changed-in-place", "modern_heads.latent_attention")
def latent_changes_its_input(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the caller's W_Q is divided in place."""
    with torch.no_grad():
        W_Q *= root(W_Q, num_heads)
    scale = 1.0
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


@mistake("gradient-cut-off", "modern_heads.latent_attention")
def latent_cut_off(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the latents that a cache would keep are taken out of the graph."""
    c = (x @ W_DKV).unsqueeze(1).detach()  # (batch, 1, n, d_c)
    Q = split(x @ W_Q, num_heads)  # (batch, heads, n, d_k)
    Q = Q / Q.shape[-1] ** 0.5 @ block_of_each_head(W_UK, num_heads).mT  # (batch, heads, n, d_c)
    return merge(over_latents(Q, c, mask) @ block_of_each_head(W_UV, num_heads)) @ W_O


@mistake("latent-width-from-d-model", "modern_heads.latent_attention", form="in-the-scale")
def latent_width_from_d_model_in_the_scale(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the scores are divided by the root of d_model / num_heads."""
    scale = (x.shape[-1] // num_heads) ** -0.5
    return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, scale) @ W_O


def split_interleaved(features: Tensor, num_heads: int) -> Tensor:
    """Wrong: give head i every num_heads-th feature."""
    return features.unflatten(-1, (-1, num_heads)).movedim(-1, 1)


# --- forms -------------------------------------------------------------------------------------------------

Function = Callable[..., Any]


def split_by_reshape(features: Tensor, num_heads: int) -> Tensor:
    """Wrong: reshaped straight to `(batch, heads, n, d)`."""
    return features.reshape(len(features), num_heads, features.shape[1], -1)


def merge_interleaved(heads: Tensor) -> Tensor:
    """Wrong: the heads take turns."""
    return heads.permute(0, 2, 3, 1).flatten(2)


def latent_from(
    attend: Function = attention,
    splits: tuple[Function, Function, Function] = (split, split, split),
    combine: Function = merge,
    keys: Function = lambda W_UK, W_UV: W_UK,
    values: Function = lambda W_UK, W_UV: W_UV,
) -> Function:
    """`latent_attention` made of these pieces, of which some are wrong."""

    def latent_attention(
        x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
    ) -> Tensor:
        c = x @ W_DKV  # (batch, n, d_c)
        made = x @ W_Q, c @ keys(W_UK, W_UV), c @ values(W_UK, W_UV)
        Q, K, V = (cut(each, num_heads) for cut, each in zip(splits, made, strict=True))
        return combine(attend(Q, K, V, mask)[0]) @ W_O

    return latent_attention


def scaled(width_of: Function) -> Function:
    """`latent_attention` whose scores are divided by the root of a width that depends on Q and on W_DKV's d_c."""

    def latent_attention(
        x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
    ) -> Tensor:
        width = width_of(W_Q.shape[1], W_DKV.shape[1], num_heads)
        return heads_of(x, W_Q, W_DKV, W_UK, W_UV, num_heads, mask, width**-0.5) @ W_O

    return latent_attention


def of_first_head(*places: int) -> Function:
    """`attention`, in which all heads have the first one's queries, keys or values (0, 1, 2)."""

    def attend(Q: Tensor, K: Tensor, V: Tensor, mask: Mask = None) -> Any:
        taken = [
            each[:, :1].expand_as(each) if place in places else each for place, each in enumerate((Q, K, V))
        ]  # (batch, heads, n, d) each
        return attention(taken[0], taken[1], taken[2], mask)

    return attend


def with_mask(change: Function) -> Function:
    """`attention` under another mask than the one that is given."""
    return lambda Q, K, V, mask=None: attention(Q, K, V, None if mask is None else change(mask))


def no_batch(mask: Tensor) -> Tensor:
    """No mask for one sequence each."""
    return mask if mask.ndim == 2 else torch.ones_like(mask)


def latent_one_width(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: values are taken to be as wide as keys."""
    c, shape = x @ W_DKV, (len(x), x.shape[1], num_heads, W_Q.shape[1] // num_heads)
    Q, K, V = (each.view(shape).transpose(1, 2) for each in (x @ W_Q, c @ W_UK, c @ W_UV))
    return merge(attention(Q, K, V, mask)[0]) @ W_O


def latent_merged_to_d_model(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the heads together are taken to be d_model wide."""
    c = x @ W_DKV
    Q, K, V = (split(each, num_heads) for each in (x @ W_Q, c @ W_UK, c @ W_UV))
    return attention(Q, K, V, mask)[0].transpose(1, 2).reshape(x.shape) @ W_O


def latent_viewed_as_d_model(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the width of a head is taken to be d_model / num_heads, in a view of all sizes."""
    c, shape = x @ W_DKV, (len(x), x.shape[1], num_heads, x.shape[-1] // num_heads)
    Q, K, V = (each.view(shape).transpose(1, 2) for each in (x @ W_Q, c @ W_UK, c @ W_UV))
    return merge(attention(Q, K, V, mask)[0]) @ W_O


def latent_with_residual(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: the tokens are added."""
    return x + latent_from()(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


def latent_weights_reshaped(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: W_UK and W_UV are reshaped into heads, as they lie in memory."""
    c = (x @ W_DKV).unsqueeze(1)  # (batch, 1, n, d_c)
    K, V = (c @ W.reshape(num_heads, c.shape[-1], -1) for W in (W_UK, W_UV))  # (batch, heads, n, d)
    return merge(attention(split(x @ W_Q, num_heads), K, V, mask)[0]) @ W_O


def latent_sliced_in_a_loop(
    x: T, W_Q: T, W_DKV: T, W_UK: T, W_UV: T, W_O: T, num_heads: int, mask: Mask = None
) -> Tensor:
    """Wrong: head i gets a slice of the latents, all but the last of one width."""
    width = -(-W_DKV.shape[1] // num_heads)
    own = torch.arange(W_DKV.shape[1]) // width == torch.arange(num_heads)[:, None]  # (heads, d_c)
    W_UK, W_UV = (merge((own[..., None] * block_of_each_head(W, num_heads))[None])[0] for W in (W_UK, W_UV))
    return latent_from()(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask)


HEADS = {
    "queries": (0,),
    "keys": (1,),
    "values": (2,),
    "keys-and-values": (1, 2),
}
_ATTEND = variants("batched_torch", "attention")
PIECES: dict[str, dict[str, Any]] = {
    **{
        f"{slug}/pieces": {"attend": _ATTEND[slug]}
        for slug in (
            "softmax-over-queries",
            "softmax-over-heads",
            "softmax-whole-matrix",
            "sigmoid-instead-of-softmax",
            "softmax-twice",
            "weights-transposed",
            "scores-applied-to-values",
            "scale-multiplied",
            "scale-by-value-dim",
            "scale-by-sequence-length",
            "scale-by-axis-one",
            "scale-after-softmax",
            "mask-after-softmax",
            "masked-scores-zero",
            "mask-added-as-0-1",
            "mask-transposed",
            "first-mask-for-all-sequences",
            "none-not-handled",
            "mask-truth-value",
            "always-causal",
        )
    },
    **{
        f"{slug}/{form}": {"splits": tuple(cut if i in places else split for i in range(3))}
        for slug, cut in (
            ("heads-interleaved", split_interleaved),
            ("split-without-transpose", split_by_reshape),
        )
        for form, places in HEADS.items()
    },
    **{
        f"same-columns-for-every-head/{form}": {"attend": of_first_head(*places)}
        for form, places in HEADS.items()
    },
    "heads-interleaved/merged": {"combine": merge_interleaved},
    "latent-values-from-keys/keys-from-values": {"keys": lambda W_UK, W_UV: W_UV},
    "keys-and-values-exchanged/weights": {
        "keys": lambda W_UK, W_UV: W_UV,
        "values": lambda W_UK, W_UV: W_UK,
    },
    "mask-no-effect/of-one-sequence": {"attend": with_mask(no_batch)},
}
FORMS: dict[str, Function] = {
    **{name: latent_from(**pieces) for name, pieces in PIECES.items()},
    "latent-scale-by-latent-width/of-a-head": scaled(lambda width, d_c, num_heads: d_c / num_heads),
    "scale-by-d-model/all-heads": scaled(lambda width, d_c, num_heads: width),
    "latent-width-from-d-model/of-values": latent_one_width,
    "latent-width-from-d-model/merged": latent_merged_to_d_model,
    "latent-width-from-d-model/viewed": latent_viewed_as_d_model,
    "residual-added/tokens": latent_with_residual,
    "weights-reshaped-without-transpose/both": latent_weights_reshaped,
    "latent-sliced-per-head/equal-slices": latent_sliced_in_a_loop,
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "modern_heads.latent_attention", form=form)(code)
