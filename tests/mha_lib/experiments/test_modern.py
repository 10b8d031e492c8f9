import pytest
import torch

from mha_lib.experiments.induction import VOCABULARY, AttentionOnly
from mha_lib.experiments.modern import (
    QuietLayer,
    RecallLayer,
    circuits,
    differential_weights,
    drawn_pairs,
    online_attention,
    quiet_batch,
    train_recall,
)
from mha_lib.torch_attention import attention

KINDS = ("softmax", "1/d", "QK-norm", "soft cap", "linear")


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(3)


@pytest.mark.parametrize("tile", [1, 4, 11, 50])
def test_tiles_give_what_attention_gives(tile):
    q, k, v = torch.randn(3, 5).double(), torch.randn(11, 5).double(), torch.randn(11, 2).double()
    assert torch.allclose(online_attention(100 * q, k, v, tile), attention(100 * q, k, v)[0])


def test_differential_weights_sum_to_1_less_lambda_and_vanish_for_equal_maps():
    q, k = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    weights = differential_weights(tuple(q), tuple(k), 0.3)
    assert torch.allclose(weights.sum(-1), torch.full((3,), 0.7))
    assert (weights < 0).any()
    assert (differential_weights((q[0], q[0]), (k[0], k[0]), 1.0) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_does_not_depend_on_the_order_of_the_pairs(kind):
    layer, (keys, values) = RecallLayer(kind, 6), drawn_pairs(2, 7)
    order = torch.randperm(7)
    answers = layer(keys[:, order], values[:, order])[0]
    assert torch.allclose(answers, layer(keys, values)[0][:, order], atol=1e-5)


def test_keys_of_a_batch_are_distinct():
    keys, values = drawn_pairs(5, 32)
    assert all(len(set(row)) == 32 for row in keys.tolist())
    assert values.shape == (5, 32)


def test_bounded_scores_are_bounded():
    for kind, bound in (("QK-norm", 10.0), ("soft cap", 20.0)):
        layer = RecallLayer(kind, 6)
        layer.q_proj.weight.data *= 1000.0
        assert layer(*drawn_pairs(20, 9))[1].abs().max() <= bound + 1e-4


def test_products_grow_faster_with_the_width_than_they_spread():
    narrow, wide = (train_recall("softmax", d_k=d, lr=1e-3, steps=20) for d in (16, 256))
    assert 3 < wide.spread / narrow.spread < 5.3  # the root of 16
    assert wide.growth / narrow.growth > 8


def test_what_is_asked_for_is_the_token_before():
    x, target, asks = quiet_batch(4)
    assert not asks[:, 0].any()
    assert torch.equal(target[asks], x.roll(1, 1)[asks][:, :8])
    assert (target[~asks] == 0).all()


@pytest.mark.parametrize("kind", ["softmax", "first token", "off by one", "gate"])
def test_weights_of_a_quiet_layer_are_causal_and_sum_to_1_or_less(kind):
    x, _, _ = quiet_batch(3)
    _, weights = QuietLayer(kind)(x)
    own = weights[..., -x.shape[1] :]  # without a first token
    assert (own.triu(1) == 0).all()
    sums = weights.sum(-1)
    assert (sums < 1).all() if kind == "off by one" else torch.allclose(sums, torch.ones_like(sums))


def test_circuits_are_the_products_of_the_paper():
    model = AttentionOnly(2, 2)
    qk, ov = circuits(model, feeder=1, finder=0)
    assert qk.shape == ov.shape == (VOCABULARY, VOCABULARY)
    tokens = model.token_embedding.weight.detach()
    before = tokens @ model.v_proj[0].weight[16:].T @ model.out_proj[0].weight[:, 16:].T  # what head 1 writes
    queries, keys = tokens @ model.q_proj[1].weight[:16].T, before @ model.k_proj[1].weight[:16].T
    assert torch.allclose(qk, queries @ keys.T, atol=1e-5)
    written = tokens @ model.v_proj[1].weight[:16].T @ model.out_proj[1].weight[:, :16].T
    assert torch.allclose(ov, model.read_out(written), atol=1e-5)
