"""The items of `modern_heads`, and small inputs that expose mistakes in them."""

from typing import Any

import torch

from mha_lib import modern_heads, positions
from mha_lib.pitfalls.examples import Code, item

ROTARY = item("modern_heads.rotary", positions.rotary)


@ROTARY.example
def two_pairs(rotary: Code) -> Any:
    """The same token at positions 0 and 1, four features, base 100."""
    x = torch.tensor([[[[1.0, 2, 3, 4], [1, 2, 3, 4]]]])
    return rotary(x, torch.tensor([0, 1]), 100.0)


@ROTARY.example
def after_a_cache(rotary: Code) -> Any:
    """Two tokens that come after five others; the second leaves a gap."""
    x = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])  # (batch, heads, n, d_k)
    return rotary(x, torch.tensor([5, 7]))


@ROTARY.example
def two_texts(rotary: Code) -> Any:
    """Two sequences with positions of their own."""
    x = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]).expand(2, 1, 2, 2)
    return rotary(x, torch.tensor([[0, 1], [4, 5]]))


@ROTARY.example
def as_many_texts_as_tokens(rotary: Code) -> Any:
    """Two sequences of two tokens, at the positions 5 and 7 in both."""
    x = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]).expand(2, 1, 2, 2)
    return rotary(x, torch.tensor([5, 7]))


@ROTARY.example
def odd_width(rotary: Code) -> Any:
    """A width that cannot be cut into pairs."""
    return rotary(torch.ones(1, 1, 1, 3), torch.tensor([1]))


@ROTARY.example
def dtype_of_the_result(rotary: Code) -> Any:
    """The dtype of the result for features in float32."""
    return str(rotary(torch.ones(1, 1, 1, 2), torch.tensor([1])).dtype)


WINDOW = item("modern_heads.sliding_window_mask", positions.sliding_window_mask)


@WINDOW.example
def four_tokens(sliding_window_mask: Code) -> Any:
    """Four queries, four keys, a window of two."""
    return sliding_window_mask(4, 4, 2)


@WINDOW.example
def last_two_of_four(sliding_window_mask: Code) -> Any:
    """Two queries at the end of four keys, a window of two."""
    return sliding_window_mask(2, 4, 2)


@WINDOW.example
def nothing_to_see(sliding_window_mask: Code) -> Any:
    """A window of 0."""
    return sliding_window_mask(2, 2, 0)


LATENT = item("modern_heads.latent_attention", modern_heads.latent_attention)


@LATENT.example
def two_heads(latent_attention: Code) -> Any:
    """Three tokens, two heads of width 2."""
    x = torch.tensor([[[1.0, 2, 0, 1], [0, 1, 3, 1], [2, 0, 1, 0]]])
    W_DKV = torch.eye(4)[:, :3]  # d_c = 3
    W_UK = torch.tensor([[1.0, 0, 2, 1], [0, 1, 1, 3], [1, 1, 0, 0]]) / 2
    W_UV = torch.tensor([[10.0, 1, 0, 3], [0, 2, 20, 1], [1, 0, 1, 5]])
    return latent_attention(x, torch.eye(4), W_DKV, W_UK, W_UV, 2 * torch.eye(4), 2)


@LATENT.example
def narrow_heads(latent_attention: Code) -> Any:
    """Two heads whose keys are 2 wide, in a model of width 6."""
    x = torch.tensor([[[1.0, 2, 0, 1, 3, 1], [2, 0, 1, 0, 1, 1]]])
    W_Q, W_DKV = torch.eye(6)[:, :4], torch.eye(6)[:, :2]
    W_UK = torch.tensor([[1.0, 0, 2, 1], [0, 1, 1, 3]]) / 2
    W_UV = torch.tensor([[10.0, 1, 0, 3], [0, 2, 20, 1]])
    return latent_attention(x, W_Q, W_DKV, W_UK, W_UV, torch.eye(6)[:4], 2)


ABSORBED = item("modern_heads.latent_attention_absorbed", modern_heads.latent_attention_absorbed)


@ABSORBED.example
def keys_that_overflow(latent_attention_absorbed: Code) -> Any:
    """Latents so large that keys do not fit into float32; the queries are 0."""
    x = torch.tensor([[[3.0, 1e9], [3.0, -1e9]]])
    W_UK, W_UV = torch.tensor([[0.0], [1e30]]), torch.tensor([[1.0], [0.0]])
    zero, eye = torch.zeros(2, 1), torch.eye(2)
    return latent_attention_absorbed(x, zero, eye, W_UK, W_UV, torch.ones(1, 2), 1)


@ABSORBED.example
def values_that_overflow(latent_attention_absorbed: Code) -> Any:
    """Latents so large that values do not fit into float32; their mean is small."""
    x = torch.tensor([[[3.0, 1e9], [3.0, -1e9]]])
    W_UK, W_UV = torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0], [1e30]])
    zero, eye = torch.zeros(2, 1), torch.eye(2)
    return latent_attention_absorbed(x, zero, eye, W_UK, W_UV, torch.ones(1, 2), 1)


QK_NORM = item("modern_heads.qk_norm_attention", modern_heads.qk_norm_attention)


@QK_NORM.example
def two_normed_heads(qk_norm_attention: Code) -> Any:
    """Two queries, two keys, two heads with a g of their own."""
    # (batch, heads, tokens, width)
    q = torch.tensor([[[[3.0, 4], [1, 0]], [[0, 2], [5, 1]]]])
    k = torch.tensor([[[[5.0, 0], [0, 2]], [[1, 1], [3, -4]]]])
    v = torch.tensor([[[[10.0], [0]], [[0], [10]]]])
    return qk_norm_attention(q, k, v, torch.tensor([[[2.0]], [[4.0]]]))


@QK_NORM.example
def a_query_of_zeros(qk_norm_attention: Code) -> Any:
    """A query of zeros."""
    q, k = torch.zeros(1, 1, 1, 2), torch.eye(2)[None, None]
    return qk_norm_attention(q, k, 10 * k, torch.tensor([[[2.0]]]))


@QK_NORM.example
def short_vectors(qk_norm_attention: Code) -> Any:
    """A query and two keys of length 0.003."""
    q, k = torch.tensor([[[[0.003, 0]]]]), 0.003 * torch.eye(2)[None, None]
    v = torch.tensor([[[[10.0], [0.0]]]])
    return qk_norm_attention(q, k, v, torch.tensor([[[1.0]]]))


@QK_NORM.example
def a_large_factor(qk_norm_attention: Code) -> Any:
    """Two keys whose angles with the query hardly differ; g is 180."""
    q, k = torch.tensor([[[[4.0, 3]]]]), torch.tensor([[[[4.0, 3], [1, 1]]]])
    v = torch.tensor([[[[10.0], [0.0]]]])
    return qk_norm_attention(q, k, v, torch.tensor([[[180.0]]]))


@QK_NORM.example
def gradient_of_a_query(qk_norm_attention: Code) -> Any:
    """The gradient of the query."""
    q = torch.tensor([[[[3.0, 4.0]]]], requires_grad=True)
    k, g = torch.eye(2)[None, None], torch.tensor([[[2.0]]])
    qk_norm_attention(q, k, 10 * k, g)[..., 0].sum().backward()
    return q.grad
