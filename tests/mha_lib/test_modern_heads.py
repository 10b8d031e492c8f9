"""Latent attention against a loop over heads, absorbed against plain; QK-norm against PyTorch's own functions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.modern_heads import latent_attention, latent_attention_absorbed, qk_norm_attention

FORMS = [latent_attention, latent_attention_absorbed]


def numbers(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)


def layer(batch=2, n=5, d_model=6, num_heads=3, d_k=4, d_v=2, d_c=7, seed=0):
    """Tokens and the weights of a latent layer whose sizes all differ, and the number of heads."""
    draw = numbers(seed)
    shapes = (d_model, num_heads * d_k), (d_model, d_c), (d_c, num_heads * d_k), (d_c, num_heads * d_v)
    return draw(batch, n, d_model), *(draw(*s) / s[0] ** 0.5 for s in (*shapes, (num_heads * d_v, d_model)))


def by_loops(x, W_Q, W_DKV, W_UK, W_UV, W_O, num_heads, mask=None):
    """Head by head, through PyTorch's kernel."""
    d_k, d_v = W_UK.shape[1] // num_heads, W_UV.shape[1] // num_heads
    output = torch.zeros_like(x)
    for h in range(num_heads):
        Q = x @ W_Q[:, h * d_k : (h + 1) * d_k]
        K = x @ W_DKV @ W_UK[:, h * d_k : (h + 1) * d_k]
        V = x @ W_DKV @ W_UV[:, h * d_v : (h + 1) * d_v]
        own = None if mask is None else mask if mask.ndim == 2 else mask[:, 0]
        output += F.scaled_dot_product_attention(Q, K, V, attn_mask=own) @ W_O[h * d_v : (h + 1) * d_v]
    return output


def masks(n, batch):
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    own = torch.rand(batch, 1, n, n, generator=torch.Generator().manual_seed(4)) < 0.5
    return [None, causal, own | torch.eye(n, dtype=torch.bool)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "sizes", [{}, {"num_heads": 1}, {"d_c": 1}, {"n": 1}, {"d_k": 1, "d_v": 5}, {"batch": 1, "d_model": 9}]
)
def test_both_forms_equal_a_loop_over_heads(form, sizes):
    arguments = layer(**sizes)
    batch, n, _ = arguments[0].shape
    for mask in masks(n, batch):
        got = form(*arguments, sizes.get("num_heads", 3), mask)
        expected = by_loops(*arguments, sizes.get("num_heads", 3), mask)
        assert torch.allclose(got, expected, atol=1e-12)


@settings(max_examples=25)
@given(*[st.integers(1, 5)] * 6, st.integers(0, 99))
def test_the_absorbed_form_equals_the_plain_one_in_float64(n, d_model, num_heads, d_k, d_v, d_c, seed):
    arguments = layer(2, n, d_model, num_heads, d_k, d_v, d_c, seed)
    plain, absorbed = (form(*arguments, num_heads) for form in FORMS)
    assert torch.allclose(plain, absorbed, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_right(form):
    arguments = [each.requires_grad_() for each in layer(batch=2, n=3, d_model=2, num_heads=2, d_k=3, d_c=2)]
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    assert torch.autograd.gradcheck(lambda *given: form(*given, 2, causal), arguments)


@pytest.mark.parametrize("form", FORMS)
def test_a_token_without_keys_gets_zeros(form):
    arguments = layer()
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[2] = False
    output = form(*arguments, 3, mask)
    assert (output[:, 2] == 0).all()
    assert torch.allclose(output[:, 3], form(*arguments, 3)[:, 3])


def test_the_absorbed_form_stays_finite_where_keys_and_values_would_overflow():
    x = torch.tensor([[[1.0, 1e9], [1.0, -1e9]]])  # (batch, n, d_model); the latent is the token itself
    eye = torch.eye(2)
    W_UV = torch.tensor([[3.0], [1e30]])
    weights = torch.zeros(2, 2), eye, torch.tensor([[0.0, 0.0], [1e30, 0.0]]), W_UV, torch.ones(1, 2)
    assert not latent_attention(x, *weights, num_heads=1).isfinite().all()
    assert torch.equal(latent_attention_absorbed(x, *weights, num_heads=1), torch.full((1, 2, 2), 3.0))


def qkv(batch=2, heads=3, n=4, m=5, d_k=6, d_v=2):
    draw = numbers(2)
    return draw(batch, heads, n, d_k), draw(batch, heads, m, d_k), draw(batch, heads, m, d_v)


@pytest.mark.parametrize("sizes", [{}, {"heads": 1}, {"n": 1}, {"m": 1}, {"d_k": 1, "d_v": 7}])
def test_qk_norm_equals_normalize_and_the_kernel(sizes):
    q, k, v = qkv(**sizes)
    g = torch.linspace(0.5, 9.0, q.shape[1], dtype=torch.float64)[:, None, None]
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    mask[:, 1:2] = False
    mask[:, 0] = True
    for given_mask in (None, mask):
        expected = F.scaled_dot_product_attention(
            F.normalize(q, dim=-1) * g, F.normalize(k, dim=-1), v, attn_mask=given_mask, scale=1.0
        )
        assert torch.allclose(qk_norm_attention(q, k, v, g, given_mask), expected, atol=1e-4)


def test_qk_norm_does_not_go_by_lengths_and_a_zero_vector_has_score_0():
    q, k, v = qkv()
    g = torch.full((3, 1, 1), 5.0, dtype=torch.float64)
    longer = k * torch.tensor([1.0, 2.0, 10.0, 100.0, 3.0], dtype=torch.float64)[:, None]
    assert torch.allclose(qk_norm_attention(7 * q, longer, v, g), qk_norm_attention(q, k, v, g), atol=1e-4)
    output = qk_norm_attention(0 * q, k, v, g)
    assert torch.allclose(output, v.mean(dim=-2, keepdim=True).expand_as(output))


def test_gradients_of_qk_norm_are_right_and_reach_g():
    q, k, v = (each.requires_grad_() for each in qkv(batch=1, heads=2, n=2, m=3, d_k=3))
    g = torch.tensor([[[2.0]], [[0.5]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *given: qk_norm_attention(*given), (q, k, v, g))
