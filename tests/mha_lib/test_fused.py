"""The fast layer gives what the readable ones give, takes no memory for scores, and copies no keys and values."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.profiler import ProfilerActivity, profile

from mha_lib.fused import FusedAttention, KVCache, fuse
from mha_lib.grouped_query import grouped_query_attention
from mha_lib.torch_attention import CausalSelfAttention, MultiHeadAttention

BATCH, N, D_MODEL, HEADS, KV_HEADS = 3, 7, 24, 6, 2


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(5)


def tokens(batch=BATCH, n=N, dtype=torch.float64):
    return torch.randn(batch, n, D_MODEL, dtype=dtype)


def readable(dtype=torch.float64):
    return MultiHeadAttention(D_MODEL, HEADS).to(dtype)


def padding(*lengths, m=N):
    return (torch.arange(m) < torch.tensor(lengths)[:, None])[:, None, None]  # (batch, 1, 1, m)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "mask",
    [None, padding(7, 4, 1), padding(7, 0, 3), torch.rand(N, N) < 0.5, torch.rand(BATCH, 1, N, N) < 0.4],
    ids=["no mask", "padding", "an empty sequence", "one for all", "one for each sequence"],
)
def test_it_equals_the_readable_layer_and_so_do_its_gradients(mask, dtype):
    layer, x, direction = readable(dtype), tokens(dtype=dtype), tokens(dtype=dtype)
    fused = fuse(layer)
    want, got = (f(x.requires_grad_(), mask) for f in (layer, fused))
    torch.testing.assert_close(got, want)
    of_input = [torch.autograd.grad(y, x, direction, retain_graph=True)[0] for y in (want, got)]
    torch.testing.assert_close(*of_input)
    weights = torch.cat([layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight])
    of_weights = torch.autograd.grad(
        want, [layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight], direction
    )
    assert weights.shape == fused.qkv_proj.weight.shape
    torch.testing.assert_close(
        torch.autograd.grad(got, fused.qkv_proj.weight, direction)[0], torch.cat(of_weights)
    )


@pytest.mark.parametrize("n", [1, 2, N])
def test_a_causal_one_equals_the_readable_causal_layer(n):
    layer = CausalSelfAttention(D_MODEL, HEADS, max_len=N).double()
    x = tokens(n=n)
    torch.testing.assert_close(fuse(layer)(x), layer(x))


def test_causal_and_padding_are_combined():
    layer = readable()
    fused = fuse(layer)
    fused.causal = True
    x, keep = tokens(), padding(7, 4, 1)
    causal = torch.ones(N, N, dtype=torch.bool).tril()
    torch.testing.assert_close(fused(x, keep), layer(x, keep & causal))


def test_a_causal_layer_needs_no_mask_for_padding_at_the_end():
    fused = FusedAttention(D_MODEL, HEADS, causal=True).double()
    x, lengths = tokens(), (7, 4, 1)
    whole = fused(x)
    for sequence, length in enumerate(lengths):
        alone = fused(x[sequence : sequence + 1, :length])
        torch.testing.assert_close(whole[sequence : sequence + 1, :length], alone)


def test_shared_heads_equal_grouped_query_attention_in_numpy():
    fused, x = FusedAttention(D_MODEL, HEADS, KV_HEADS).double(), tokens()
    nn.init.zeros_(fused.qkv_proj.bias)
    nn.init.zeros_(fused.out_proj.bias)
    d_k = D_MODEL // HEADS
    W_Q, W_K, W_V = (
        w.detach().numpy().T for w in fused.qkv_proj.weight.split([D_MODEL, KV_HEADS * d_k, KV_HEADS * d_k])
    )
    W_O = fused.out_proj.weight.detach().numpy().T
    want = grouped_query_attention(x.numpy(), W_Q, W_K, W_V, W_O, HEADS, KV_HEADS)
    np.testing.assert_allclose(fused(x).detach().numpy(), want, atol=1e-12)


@pytest.mark.parametrize("num_kv_heads", [1, KV_HEADS, HEADS])
@pytest.mark.parametrize("chunks", [(N,), (1,) * N, (3, 4), (2, 1, 4)])
def test_chunk_by_chunk_equals_the_whole(chunks, num_kv_heads):
    fused, x = FusedAttention(D_MODEL, HEADS, num_kv_heads, causal=True).double(), tokens()
    cache = KVCache(BATCH, N, num_kv_heads, fused.d_k, dtype=x.dtype)
    for _ in range(2):  # and again after a reset
        pieces = [fused(chunk, cache=cache) for chunk in x.split(chunks, dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), fused(x))
        assert cache.length == N
        cache.reset()


def test_a_padded_batch_goes_on_token_by_token():
    fused, x = FusedAttention(D_MODEL, HEADS, KV_HEADS, causal=True).double(), tokens()
    keep = ~padding(0, 2, 5)  # padding in front, as in generation
    cache = KVCache(BATCH, N, KV_HEADS, fused.d_k, dtype=x.dtype)
    pieces = [fused(x[:, i : i + 1], keep[..., : i + 1], cache) for i in range(N)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), fused(x, keep))


def test_the_cache_says_when_it_is_full_and_shows_its_own_memory():
    cache = KVCache(BATCH, 4, KV_HEADS, 5)
    K = torch.randn(BATCH, KV_HEADS, 3, 5)
    keys, values = cache.append(K, -K)
    assert keys.data_ptr() == cache.K.data_ptr()
    assert values.data_ptr() == cache.V.data_ptr()
    torch.testing.assert_close((keys, values), (K, -K))
    with pytest.raises(ValueError, match=re.escape("holds 4 tokens; 3 + 2 = 5 do not fit")):
        cache.append(K[:, :, :2], K[:, :, :2])
    assert cache.length == 3


def test_widths_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="d_model=7 cannot be divided among num_heads=2"):
        FusedAttention(7, 2)
    with pytest.raises(ValueError, match="num_heads=6 is not a multiple of num_kv_heads=4"):
        FusedAttention(24, 6, num_kv_heads=4)


def test_modes_and_types_are_kept():
    layer = readable(torch.float32).eval()
    fused = fuse(layer)
    assert not fused.training
    assert fused.qkv_proj.weight.dtype == torch.float32
    with torch.no_grad():
        layer.out_proj.weight.zero_()
    assert fused.out_proj.weight.abs().sum() > 0  # a copy


def allocated(run):
    """The largest number of bytes that one kind of operation asks for in `run`."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded, torch.inference_mode():
        run()
    return max(event.cpu_memory_usage for event in recorded.key_averages())


@pytest.mark.parametrize("num_kv_heads", [2, 8])
@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_with_the_tokens_not_with_their_square(causal, num_kv_heads):
    d_model, heads, sizes = 32, 8, (1024, 2048)
    fused = FusedAttention(d_model, heads, num_kv_heads, causal)
    explicit = MultiHeadAttention(d_model, heads)
    x = [torch.randn(1, n, d_model) for n in sizes]
    once, twice = (allocated(lambda x=x: explicit(x)) for x in x)
    assert twice > 3.5 * once  # the check sees a square
    once, twice = (allocated(lambda x=x: fused(x)) for x in x)
    assert twice < 2.1 * once


def test_a_step_with_a_cache_copies_nothing_of_it():
    fused = FusedAttention(D_MODEL, HEADS, KV_HEADS, causal=True)
    cache = KVCache(1, 4096, KV_HEADS, fused.d_k)
    with torch.inference_mode():
        fused(torch.randn(1, 4000, D_MODEL), cache=cache)
    x = torch.randn(1, 1, D_MODEL)
    assert allocated(lambda: fused(x, cache=cache)) < cache.K[:, :, :4000].nbytes / 4


def test_the_kernels_own_causal_mask_starts_at_the_top_left():
    """Why a chunk after a cache needs a mask of its own."""
    Q, K = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 5, 4)
    first = F.scaled_dot_product_attention(Q, K, K, is_causal=True)[0, 0, 0]
    torch.testing.assert_close(first, K[0, 0, 0])
