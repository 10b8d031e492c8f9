import math

import pytest
import torch

from mha_lib.experiments.position import (
    KINDS,
    OrderLayer,
    alibi_bias,
    alibi_slopes,
    pair_margins,
    sinusoidal,
    train,
)


def test_sinusoids_are_those_of_the_paper():
    table = sinusoidal(7, 6)
    for position in range(7):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert table[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("num_heads", [1, 2, 8, 16])
def test_slopes_for_a_power_of_two_are_a_geometric_sequence(num_heads):
    expected = [2 ** (-8 * (head + 1) / num_heads) for head in range(num_heads)]
    assert alibi_slopes(num_heads).tolist() == pytest.approx(expected)


def test_slopes_of_twelve_heads_are_those_of_eight_and_four_in_between():
    slopes = alibi_slopes(12).tolist()
    assert slopes[:8] == alibi_slopes(8).tolist()
    assert slopes[8:] == pytest.approx([2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])


def test_the_bias_falls_with_distance_and_never_rises():
    bias = alibi_bias(5, 3)
    for i in range(5):
        for j in range(i + 1):
            assert torch.allclose(bias[:, i, j], -alibi_slopes(3) * (i - j))


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_looks_ahead(kind):
    layer, tokens = OrderLayer(kind, num_heads=2, d_k=4), torch.randint(16, (3, 9))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 16
    scores, weights = layer(tokens)
    assert torch.equal(layer(changed)[0][:, :5], scores[:, :5])
    assert torch.allclose(weights.sum(-1), torch.ones(3, 2, 9))
    assert (weights.triu(1) == 0).all()


@pytest.mark.parametrize("kind", ["none", "ALiBi", "rotary"])
def test_kinds_that_go_by_distance_do_not_change_with_a_shift(kind):
    layer, tokens = OrderLayer(kind, num_heads=2, d_k=4), torch.randint(16, (3, 9))
    assert torch.allclose(layer(tokens, shift=20)[0], layer(tokens)[0], atol=1e-5)


def test_an_unknown_kind_is_told():
    with pytest.raises(ValueError, match="kind='relative' is not one of none, sinusoidal"):
        OrderLayer("relative")


def test_rotary_learns_the_order_and_none_does_not():
    rotary, none = (train(kind, 1, num_heads=2, n=8, steps=120) for kind in ("rotary", "none"))
    assert rotary.same_length > 0.9
    assert rotary.shifted > 0.9
    assert none.same_length < 0.6
    margins, previous = pair_margins(rotary.layer)
    assert margins.shape == (2, 8)
    assert previous.max() > 0.5
    best = margins[previous.argmax()]
    assert best[:4].sum() > best[4:].sum()
