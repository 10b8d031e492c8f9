"""The language model against PyTorch's own encoder, its loss by hand, and sampling with a cache against without."""

import pytest
import torch
from torch import nn

from mha_lib.language_model import LanguageModel, loss, sample


@pytest.fixture
def model():
    torch.manual_seed(5)
    return LanguageModel(vocab_size=11, d_model=12, num_heads=3, num_layers=2, context=20)


@pytest.fixture
def ids():
    return torch.randint(11, (4, 9), generator=torch.Generator().manual_seed(1))


def test_the_model_equals_pytorchs_own_layers(model, ids):
    layers = nn.ModuleList(
        nn.TransformerEncoderLayer(12, 3, 48, 0.0, "gelu", batch_first=True, norm_first=True)
        for _ in range(2)
    )
    x = model.tokens(ids) + model.positions.weight[:9]
    hidden = torch.ones(9, 9, dtype=torch.bool).triu(1)  # PyTorch: True = ignore
    for i, layer in enumerate(layers):
        layer.self_attn.in_proj_weight = model.qkv_proj[i].weight
        layer.self_attn.in_proj_bias = model.qkv_proj[i].bias
        layer.self_attn.out_proj = model.out_proj[i]
        layer.linear1, layer.linear2 = model.feed_forward[i].up, model.feed_forward[i].down
        layer.norm1, layer.norm2 = model.norm1[i], model.norm2[i]
        x = layer(x, src_mask=hidden)
    assert torch.allclose(model(ids), model.read_out(model.last_norm(x)), atol=1e-5)


def test_nothing_leaks_from_the_future_neither_in_values_nor_in_gradients(model, ids):
    changed = ids.clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % 11
    assert torch.equal(model(changed)[:, :6], model(ids)[:, :6])
    model(ids)[:, 4].sum().backward()
    assert (model.positions.weight.grad[5:] == 0).all()
    assert (model.positions.weight.grad[:5] != 0).any(dim=1).all()


def test_the_loss_is_the_mean_surprise_of_each_next_token(model, ids):
    chances = model(ids).softmax(dim=-1)
    surprises = [-chances[b, i, ids[b, i + 1]].log() for b in range(4) for i in range(8)]
    assert torch.allclose(loss(model, ids), torch.stack(surprises).mean(), atol=1e-6)


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_chunks_with_a_cache_give_what_the_whole_text_gives(model, ids, cut):
    cache = []
    chunks = [model(ids[:, :cut], cache), model(ids[:, cut:], cache)]
    assert torch.allclose(torch.cat(chunks, dim=1), model(ids), atol=1e-5)
    assert [K.shape for K, _ in cache] == [(4, 3, 9, 4)] * 2


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_sampling_with_a_cache_is_sampling_without(model, ids, temperature):
    generator, text = torch.Generator().manual_seed(8), ids
    for _ in range(6):
        logits = model(text)[:, -1]
        chances = (logits / max(temperature, 1e-9)).softmax(dim=-1)
        new = (
            torch.multinomial(chances, 1, generator=generator) if temperature else logits.argmax(-1)[:, None]
        )
        text = torch.cat([text, new], dim=1)
    assert torch.equal(sample(model, ids, 6, seed=8, temperature=temperature), text)


def test_a_seed_gives_its_own_text_and_leaves_other_draws_alone(model, ids):
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first, again, other = (sample(model, ids, 8, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(sample(model, ids, 0, 1), ids)


def test_it_learns_to_repeat_what_stood_three_places_back(model):
    generator = torch.Generator().manual_seed(2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(80):
        text = torch.randint(11, (16, 3), generator=generator).repeat(1, 4)
        optimizer.zero_grad()
        loss(model, text).backward()
        optimizer.step()
    start = torch.tensor([[4, 9, 1]])
    assert sample(model, start, 6, seed=0, temperature=0.0).tolist() == [[4, 9, 1] * 3]
