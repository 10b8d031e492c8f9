"""Counts of operations and of memory, against counts by hand."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.counting import attention_flops
from mha_lib.experiments.tracing import count_operations, peak_memory
from mha_lib.torch_attention import CausalSelfAttention


@pytest.fixture(autouse=True)
def _one_thread():
    # A kernel's own memory grows with the number of threads.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def explicit(Q, K, V):
    return (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1) @ V


def in_a_loop(Q, K, V):
    return torch.stack([explicit(*each) for each in zip(*(t.unbind(1) for t in (Q, K, V)), strict=True)], 1)


def qkv(batch, heads, n, m, d_k):
    return torch.randn(batch, heads, n, d_k), *torch.randn(2, batch, heads, m, d_k)


@pytest.mark.parametrize("heads", [2, 3, 5])
def test_a_loop_needs_operations_for_each_head_and_a_batch_does_not(heads):
    arguments = qkv(batch=4, heads=heads, n=6, m=7, d_k=8)
    together, loop = count_operations(explicit, *arguments), count_operations(in_a_loop, *arguments)
    assert together.names == ("bmm", "div", "_softmax", "bmm")
    assert (together.products, together.others, together.copies) == (2, 2, 0)
    assert (loop.products, loop.others) == (2 * heads, 2 * heads)
    assert together.flops == loop.flops == 2 * (2 * 4 * heads * 6 * 7 * 8)


def test_views_do_not_count_and_the_copies_that_they_cause_do():
    x = torch.randn(2, 5, 12)  # (batch, n, d_model)

    def split(x):
        return x.view(2, 5, 3, 4).transpose(1, 2)  # (batch, heads, n, d_k)

    assert count_operations(split, x).names == ()
    assert count_operations(lambda x: split(x).contiguous(), x).names == ("clone",)
    products = count_operations(lambda x: split(x) @ split(x).mT, x)
    assert (products.products, products.copies, products.others) == (1, 2, 0)


def test_the_flops_of_a_layer_are_those_of_the_formula():
    layer = CausalSelfAttention(d_model=12, num_heads=3, max_len=7)
    assert count_operations(layer, torch.randn(1, 7, 12)).flops == attention_flops(n=7, d_model=12)


def test_the_function_gets_its_arguments_and_leaves_no_gradients():
    seen = []
    count_operations(lambda *arguments: seen.append((arguments, torch.is_grad_enabled())), 3, "x")
    assert seen == [((3, "x"), False)] * 2


def test_peak_memory_is_what_is_held_at_one_time():
    x = torch.zeros(1000)  # 4,000 bytes, not counted
    assert peak_memory(lambda x: x.exp(), x) == 4000
    assert peak_memory(lambda x: x.exp().exp(), x) == 8000
    assert peak_memory(lambda x: x.exp().exp().exp(), x) == 8000  # the first is gone by then
    assert peak_memory(lambda x: x.view(10, 100), x) == 0


def test_explicit_attention_holds_all_scores_and_the_fused_kernel_does_not():
    for heads, n in [(2, 512), (4, 512), (4, 1024)]:
        arguments = qkv(batch=1, heads=heads, n=n, m=n, d_k=64 // heads)
        scores = 4 * heads * n * n
        assert 2 * scores <= peak_memory(explicit, *arguments) < 2.1 * scores
        assert peak_memory(F.scaled_dot_product_attention, *arguments) < 16 * 4 * n * 64
