"""Mistakes in `qk_norm_attention`."""

from collections.abc import Callable

import torch
from torch import Tensor

from mha_lib.pitfalls.code import mistake

Mask = Tensor | None


def unit(features: Tensor) -> Tensor:
    """The features of each token and head divided by their length."""
    return features / (features.norm(dim=-1, keepdim=True) + 1e-6)


def attended(scores: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """The average of the values under the softmax of the scores."""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ v  # (batch, heads, n, d_v)


@mistake("qk-norm-of-keys-only", "modern_heads.qk_norm_attention")
def qk_norm_of_keys_only(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the queries keep their lengths."""
    return attended(g * (q @ unit(k).mT), v, mask)


@mistake("qk-norm-of-queries-only", "modern_heads.qk_norm_attention")
def qk_norm_of_queries_only(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the keys keep their lengths."""
    return attended(g * (unit(q) @ k.mT), v, mask)


@mistake("qk-norm-missing", "modern_heads.qk_norm_attention")
def qk_norm_missing(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: nothing is normalised."""
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-still-scaled", "modern_heads.qk_norm_attention")
def qk_norm_still_scaled(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the scores are still divided by √d_k."""
    return attended(g * (unit(q) @ unit(k).mT) / q.shape[-1] ** 0.5, v, mask)


@mistake("qk-norm-without-g", "modern_heads.qk_norm_attention")
def qk_norm_without_g(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the scores are the cosines, without g."""
    return attended(unit(q) @ unit(k).mT, v, mask)


@mistake("qk-norm-after-scaling", "modern_heads.qk_norm_attention")
def qk_norm_after_scaling(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: g is multiplied in before the norm, which takes all but its sign away again."""
    return attended(unit(g * q) @ unit(k).mT, v, mask)


@mistake("qk-norm-g-after-softmax", "modern_heads.qk_norm_attention")
def qk_norm_g_after_softmax(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: g multiplies the weights, not the scores."""
    return g * attended(unit(q) @ unit(k).mT, v, mask)


@mistake("qk-norm-divided-by-g", "modern_heads.qk_norm_attention")
def qk_norm_divided_by_g(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the scores are divided by g."""
    return attended(unit(q) @ unit(k).mT / g, v, mask)


@mistake("qk-norm-first-g-for-all", "modern_heads.qk_norm_attention")
def qk_norm_first_g_for_all(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first head's g is used for all heads."""
    return attended(g[0] * (unit(q) @ unit(k).mT), v, mask)


@mistake("qk-norm-over-tokens", "modern_heads.qk_norm_attention")
def qk_norm_over_tokens(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: each feature is divided by its length over all tokens."""
    q, k = (each / (each.norm(dim=-2, keepdim=True) + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-over-heads", "modern_heads.qk_norm_attention")
def qk_norm_over_heads(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: one length for all heads of a token together."""
    q, k = (each / (each.norm(dim=(1, 3), keepdim=True) + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-squared", "modern_heads.qk_norm_attention")
def qk_norm_squared(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: divided by the square of the length, since the root is missing."""
    squares = [each.square().sum(-1, keepdim=True) for each in (q, k)]
    q, k = q / (squares[0] + 1e-6), k / (squares[1] + 1e-6)
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-root-mean-square", "modern_heads.qk_norm_attention")
def qk_norm_root_mean_square(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: divided by the root of the mean square, so that lengths are √d_k and scores d_k times too large."""
    return attended(g * (unit(q) @ unit(k).mT) * q.shape[-1], v, mask)


@mistake("qk-norm-without-epsilon", "modern_heads.qk_norm_attention")
def qk_norm_without_epsilon(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a vector of zeros is divided by 0."""
    q, k = (each / each.norm(dim=-1, keepdim=True) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-epsilon-under-the-root", "modern_heads.qk_norm_attention")
def qk_norm_epsilon_under_the_root(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: 1e-6 is added to the square of the length, which makes vectors shorter than 0.01 shorter than 1."""
    squares = [each.square().sum(dim=-1, keepdim=True) for each in (q, k)]
    q, k = q / (squares[0] + 1e-6).sqrt(), k / (squares[1] + 1e-6).sqrt()
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-g-clamped", "modern_heads.qk_norm_attention")
def qk_norm_g_clamped(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a g above 100 counts as 100."""
    return attended(g.clamp(max=100.0) * (unit(q) @ unit(k).mT), v, mask)


@mistake("qk-norm-g-clamped", "modern_heads.qk_norm_attention", form="positive")
def qk_norm_g_positive(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a negative g counts as 0."""
    return attended(g.clamp(min=0.0) * (unit(q) @ unit(k).mT), v, mask)


@mistake("qk-norm-of-values-too", "modern_heads.qk_norm_attention")
def qk_norm_of_values_too(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the values are normalised as well."""
    return attended(g * (unit(q) @ unit(k).mT), unit(v), mask)


@mistake("softmax-over-queries", "modern_heads.qk_norm_attention")
def qk_norm_softmax_over_queries(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the softmax runs down the columns."""
    scores = g * (unit(q) @ unit(k).mT)  # (batch, heads, n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-2) @ v


@mistake("mask-inverted", "modern_heads.qk_norm_attention")
def qk_norm_mask_inverted(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: True is taken to mean "hide"."""
    return attended(g * (unit(q) @ unit(k).mT), v, None if mask is None else ~mask)


@mistake("mask-fill-not-negative-enough", "modern_heads.qk_norm_attention")
def qk_norm_mask_fill_100(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: a forbidden score is -100, but a score can be as low as -|g|."""
    scores = g * (unit(q) @ unit(k).mT)  # (batch, heads, n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, -100.0)
    return attended(scores, v, None)


@mistake("mask-no-effect", "modern_heads.qk_norm_attention")
def qk_norm_mask_ignored(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the mask is taken and not used."""
    return attended(g * (unit(q) @ unit(k).mT), v, None)


@mistake("first-mask-for-all-sequences", "modern_heads.qk_norm_attention")
def qk_norm_first_mask_for_all(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the first sequence's mask is used for all sequences."""
    first = mask[0] if mask is not None and mask.ndim == 4 else mask
    return attended(g * (unit(q) @ unit(k).mT), v, first)


@mistake("input-changed-in-place", "modern_heads.qk_norm_attention")
def qk_norm_in_place(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the caller's queries are overwritten by the normalised ones."""
    with torch.no_grad():
        q.copy_(unit(q))
    return attended(g * (q @ unit(k).mT), v, mask)


@mistake("qk-norm-lengths-detached", "modern_heads.qk_norm_attention")
def qk_norm_cut_off(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the lengths are taken out of the graph, as if they were numbers that do not change."""
    lengths = [each.norm(dim=-1, keepdim=True).detach() for each in (q, k)]
    q, k = q / (lengths[0] + 1e-6), k / (lengths[1] + 1e-6)
    return attended(g * (q @ k.mT), v, mask)


@mistake("qk-norm-over-tokens", "modern_heads.qk_norm_attention", form="and-features")
def qk_norm_over_tokens_and_features(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: one length for all tokens of a head together."""
    q, k = (each / (each.norm(dim=(-2, -1), keepdim=True) + 1e-6) for each in (q, k))
    return attended(g * (q @ k.mT), v, mask)


@mistake("gradient-cut-off", "modern_heads.qk_norm_attention")
def qk_norm_g_copied(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: g is copied out of the graph."""
    return attended(g.detach().clone() * (unit(q) @ unit(k).mT), v, mask)


# --- forms -------------------------------------------------------------------------------------------------


def of_scores(scores: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """`qk_norm_attention` with other scores, of q, k and g."""
    return lambda q, k, v, g, mask=None: attended(scores(q, k, g), v, mask)


def with_weights(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """`qk_norm_attention` with other weights, of the right scores and a mask, which is True without one."""

    def qk_norm_attention(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
        scores = g * (unit(q) @ unit(k).mT)  # (batch, heads, n, m)
        return weights(scores, torch.ones_like(scores, dtype=torch.bool) if mask is None else mask) @ v

    return qk_norm_attention


def with_norms(
    of_query: Callable[[Tensor], Tensor], of_key: Callable[[Tensor], Tensor]
) -> Callable[..., Tensor]:
    """`qk_norm_attention` with other norms of queries and of keys."""
    return of_scores(lambda q, k, g: g * (of_query(q) @ of_key(k).mT))


def along(*axes: int) -> Callable[[Tensor], Tensor]:
    """Divided by the length along other axes."""
    return lambda x: x / (torch.linalg.vector_norm(x, dim=axes, keepdim=True) + 1e-6)


def bare(x: Tensor) -> Tensor:
    """Divided by the length without an epsilon."""
    return x / x.norm(dim=-1, keepdim=True)


def by_sum(x: Tensor) -> Tensor:
    """Divided by the sum of the absolute values."""
    return x / (x.abs().sum(dim=-1, keepdim=True) + 1e-6)


def centred(x: Tensor) -> Tensor:
    """Layer normalisation without weights."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def output_normalised(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the output is normalised as well."""
    return unit(attended(g * (unit(q) @ unit(k).mT), v, mask))


def keys_averaged(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the keys are averaged."""
    return attended(g * (unit(q) @ unit(k).mT), k, mask)


def by_deviation(x: Tensor) -> Tensor:
    """Divided by the standard deviation with n − 1, which is NaN for a single feature."""
    squares = (x - x.mean(dim=-1, keepdim=True)).square().sum(dim=-1, keepdim=True)
    return x / ((squares / (x.shape[-1] - 1)).sqrt() + 1e-6)


FORMS: dict[str, Callable[..., Tensor]] = {
    "qk-norm-root-mean-square/deviation": with_norms(by_deviation, by_deviation),
    "qk-norm-missing/scaled": of_scores(lambda q, k, g: g * (q @ k.mT) / q.shape[-1] ** 0.5),
    "qk-norm-of-keys-only/scaled": of_scores(lambda q, k, g: g * (q @ unit(k).mT) / q.shape[-1] ** 0.5),
    "qk-norm-of-queries-only/scaled": of_scores(lambda q, k, g: g * (unit(q) @ k.mT) / q.shape[-1] ** 0.5),
    "qk-norm-still-scaled/multiplied": of_scores(
        lambda q, k, g: g * (unit(q) @ unit(k).mT) * q.shape[-1] ** 0.5
    ),
    "qk-norm-still-scaled/by-width": of_scores(lambda q, k, g: g * (unit(q) @ unit(k).mT) / q.shape[-1]),
    "qk-norm-first-g-for-all/mean": of_scores(lambda q, k, g: g.mean() * (unit(q) @ unit(k).mT)),
    "qk-norm-first-g-for-all/sum": of_scores(lambda q, k, g: g.sum() * (unit(q) @ unit(k).mT)),
    "qk-norm-first-g-for-all/last": of_scores(lambda q, k, g: g[-1] * (unit(q) @ unit(k).mT)),
    "qk-norm-over-tokens/keys": with_norms(unit, along(-2)),
    "qk-norm-over-tokens/queries": with_norms(along(-2), unit),
    "qk-norm-over-heads/axis-one": with_norms(along(1), along(1)),
    "qk-norm-over-heads/everything": with_norms(along(0, 1, 2, 3), along(0, 1, 2, 3)),
    "qk-norm-without-epsilon/queries": with_norms(bare, unit),
    "qk-norm-without-epsilon/keys": with_norms(unit, bare),
    "qk-norm-squared/absolute": with_norms(by_sum, by_sum),
    "qk-norm-root-mean-square/centred": with_norms(centred, centred),
    "qk-norm-of-values-too/output": output_normalised,
    "keys-used-as-values/pieces": keys_averaged,
    "softmax-over-heads/pieces": with_weights(
        lambda scores, mask: scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=1)
    ),
    "mask-after-softmax/pieces": with_weights(lambda scores, mask: scores.softmax(dim=-1) * mask),
    "masked-scores-zero/pieces": with_weights(lambda scores, mask: (scores * mask).softmax(dim=-1)),
    "mask-added-as-0-1/pieces": with_weights(lambda scores, mask: (scores + mask).softmax(dim=-1)),
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "modern_heads.qk_norm_attention", form=form)(code)


@mistake("qk-norm-lengths-detached", "modern_heads.qk_norm_attention", form="keys")
def qk_norm_key_lengths_detached(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the lengths of the keys are taken out of the graph."""
    keys = k / (k.norm(dim=-1, keepdim=True).detach() + 1e-6)
    return attended(g * (unit(q) @ keys.mT), v, mask)


@mistake("qk-norm-lengths-detached", "modern_heads.qk_norm_attention", form="queries")
def qk_norm_query_lengths_detached(q: Tensor, k: Tensor, v: Tensor, g: Tensor, mask: Mask = None) -> Tensor:
    """Wrong: the lengths of the queries are taken out of the graph."""
    queries = q / (q.norm(dim=-1, keepdim=True).detach() + 1e-6)
    return attended(g * (queries @ unit(k).mT), v, mask)
