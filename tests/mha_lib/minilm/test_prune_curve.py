"""Which heads can go, on the real model, whose package the tests install."""

import numpy as np
import pytest
import torch

from mha_lib.minilm.encoder import MiniLMEncoder, all_heads, gated_attention, sentence_vectors
from mha_lib.minilm.minilm import MiniLM
from mha_lib.minilm.paraphrases import TRIPLES, word_overlap
from mha_lib.minilm.prune_curve import (
    SCALE,
    Trial,
    found,
    gates_without,
    importance_by_gradient,
    importance_by_masking,
    least_important_first,
    margins,
    mean_outputs,
    order_by_repeated_gradient,
    pair_effects,
    prune_curve,
    rank_correlation,
    with_means,
)
from mha_lib.pruning import prune_bert_heads
from mha_lib.real_heads import bert_attention, keep_heads
from mha_lib.torch_attention import MultiHeadAttention

TEXTS = ["no", "The animal didn't cross the street because it was too tired.", "A sleepy puppy."]


@pytest.fixture(scope="module")
def model():
    return MiniLM()


@pytest.fixture(scope="module")
def encoder():
    return MiniLMEncoder()


@pytest.fixture(scope="module")
def trial(encoder):
    return Trial(encoder, TRIPLES[:5])


@pytest.fixture(scope="module")
def importance(trial):
    return importance_by_masking(trial)


def masked_embedding(model, text, masked):
    """The NumPy model's embedding with the masked heads, numbered through, left out by `keep_heads`."""
    layers = iter(range(6))

    def attention(x, weights, num_heads):
        layer = next(layers)
        keep = [head for head in range(num_heads) if num_heads * layer + head not in masked]
        return keep_heads(x, weights, num_heads, keep), bert_attention(x, weights, num_heads)[1]

    return model.sentence_embedding(text, attention)


@pytest.mark.parametrize("masked", [[], [0, 13, 71], list(range(24, 40)), list(range(72))])
def test_the_encoder_is_the_numpy_model_also_with_masked_heads_and_padding(model, encoder, masked):
    vectors = encoder(TEXTS, gates_without(masked))
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector.numpy(), masked_embedding(model, text, masked), atol=2e-6)


def test_without_gates_all_heads_are_there(encoder):
    assert torch.equal(encoder(TEXTS), encoder(TEXTS, all_heads()))
    assert all_heads().shape == (6, 12)


def test_gates_of_each_texts_own_are_as_good_as_separate_runs(encoder):
    lists = [[3], [], [40, 41]]
    x, mask = encoder.embed(TEXTS)
    states = encoder.run_blocks(x, mask, torch.stack([gates_without(masked) for masked in lists]))
    together = sentence_vectors(states[-1], mask)
    for i, masked in enumerate(lists):
        alone = encoder(TEXTS, gates_without(masked))[i]
        torch.testing.assert_close(together[i], alone, atol=1e-6, rtol=0)


def test_gated_attention_with_open_gates_is_the_layer_itself():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(15, 3), torch.randn(2, 4, 15)
    mask = torch.tensor([[True, True, False, True], [True] * 4])[:, None, None]
    torch.testing.assert_close(gated_attention(layer, x, mask, torch.ones(3, 1, 1)), layer(x, mask))


def test_a_gate_multiplies_what_its_head_adds():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(15, 3), torch.randn(2, 4, 15)
    mask = torch.ones(2, 1, 1, 4, dtype=torch.bool)
    with torch.no_grad():
        layer.out_proj.weight[:, 5:10] *= 0.25
        halved = layer(x)
        layer.out_proj.weight[:, 5:10] *= 4
    gate = torch.tensor([1.0, 0.25, 1.0])[:, None, None]
    torch.testing.assert_close(gated_attention(layer, x, mask, gate), halved)


def test_padding_is_not_averaged_in():
    x = torch.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]]])
    mask = torch.tensor([True, True, False]).view(1, 1, 1, 3)
    torch.testing.assert_close(sentence_vectors(x, mask), torch.tensor([[0.6, 0.8]]))


def test_the_triples_are_distinct_short_and_not_solved_by_common_words():
    assert len(TRIPLES) == 50
    assert len({text for triple in TRIPLES for text in triple}) == 150
    for anchor, paraphrase, distractor in TRIPLES:
        assert word_overlap(anchor, distractor) > word_overlap(anchor, paraphrase)


def test_masking_from_a_later_layer_on_equals_masking_from_the_start(trial):
    for masked in ([50, 71], [0], []):
        expected = trial.run(gates_without(masked))
        torch.testing.assert_close(trial.without(masked), expected, atol=1e-6, rtol=0)


def test_margins_and_found_on_vectors_that_can_be_checked_by_hand():
    up, right, left = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    slanted = torch.tensor([0.6, 0.8])
    vectors = torch.stack([torch.stack([up, slanted, left]), torch.stack([right, up, left])])
    torch.testing.assert_close(margins(vectors), torch.tensor([0.8, 1.0]))
    assert found(vectors).tolist() == [False, False]  # the other triple's paraphrase is nearer, in both
    assert found(vectors[1:]).tolist() == [True]


def test_importance_by_masking_is_the_turn_of_the_embedding(model, importance):
    assert importance.shape == (72, 5)
    for head in (7, 63):
        cosines = [
            masked_embedding(model, text, []) @ masked_embedding(model, text, [head]) for text in TRIPLES[2]
        ]
        assert importance[head, 2] == pytest.approx(1 - np.mean(cosines), abs=1e-6)


@pytest.mark.parametrize("masked", [(), (5, 62)])
def test_importance_by_gradient_is_the_slope_of_the_loss(trial, masked):
    importance = importance_by_gradient(trial, masked)
    assert importance.shape == (72, 5)
    for head in (8, 61, 70):
        losses = []
        for gate in (0.95, 1.05):
            gates = gates_without(masked)
            gates.view(-1)[head] = gate
            losses.append(torch.nn.functional.softplus(-SCALE * margins(trial.run(gates))).numpy())
        slope = (losses[1] - losses[0]) / 0.1  # (triples,)
        np.testing.assert_allclose(importance[head], abs(slope), atol=2e-3, rtol=0.03)


def test_orders_name_every_head_once_and_start_with_the_least_important(trial):
    importance = np.array([[3.0, 3.0], [0.0, 4.0], [1.0, 9.0]])
    assert least_important_first(importance) == [1, 0, 2]
    order = order_by_repeated_gradient(trial, step=24)
    assert sorted(order) == list(range(72))
    assert order[:24] == least_important_first(importance_by_gradient(trial))[:24]
    rest = importance_by_gradient(trial, order[:24]).mean(-1)[order[24:]]
    assert rest[:24].max() <= rest[24:].min()


def test_a_curve_starts_at_the_full_model_and_counts_what_the_runs_give(trial):
    order = list(range(72))
    curve = prune_curve(trial, order, counts=(0, 30, 72))
    assert curve.counts == (0, 30, 72)
    np.testing.assert_allclose(curve.cosine[0], 1.0, atol=1e-6)
    vectors = trial.run(gates_without(order[:30]))
    np.testing.assert_array_equal(curve.found[1], found(vectors))
    assert curve.cosine.shape == curve.found.shape == (3, 5)


def test_the_chosen_order_costs_least_on_other_sentences_and_its_reverse_most(encoder, importance):
    order = least_important_first(importance)
    other = Trial(encoder, TRIPLES[5:9])
    rng = np.random.default_rng(0)
    last_layer_last = [int(head) for head in np.append(rng.permutation(60), 60 + rng.permutation(12))]
    by_chance = [int(head) for head in rng.permutation(72)]
    orders = (order, last_layer_last, by_chance, order[::-1])
    left = [prune_curve(other, heads, counts=(36,)).cosine.mean() for heads in orders]
    assert left == sorted(left, reverse=True)
    assert left[0] > 0.9 > 0.7 > left[3]


def test_two_heads_together_can_cost_less_than_one_of_them_alone(trial):
    effects = pair_effects(trial, layer=3)
    assert len(effects.pairs) == 66
    i = effects.pairs.index((39, 40))
    vectors = trial.run(gates_without((39, 40)))
    expected = 1 - (vectors * trial.full).sum(-1).mean()
    assert effects.together[i] == pytest.approx(float(expected), abs=1e-6)
    assert effects.together[i] < effects.alone[i, 0]
    assert np.median(effects.together / effects.alone.sum(-1)) == pytest.approx(1.0, abs=0.1)


def test_rank_correlation_knows_order_only():
    numbers = np.array([4.0, 1.0, 2.0, 9.0])
    assert rank_correlation(numbers, np.exp(numbers)) == 1.0
    assert rank_correlation(numbers, -numbers) == -1.0
    assert rank_correlation(numbers, np.array([1.0, 3.0, 2.0, 4.0])) == 0.2


def test_a_smaller_layer_gives_what_the_masked_one_gives(model):
    x = np.random.default_rng(3).normal(size=(2, 5, 384))
    weights = model.attention[2]
    smaller, left = prune_bert_heads(weights, 12, heads=[11, 0, 4])
    assert left == 9
    assert smaller["key"]["weight"].shape == (288, 384)
    assert smaller["key"]["bias"].shape == (288,)
    assert smaller["dense"]["weight"].shape == (384, 288)
    expected = keep_heads(x, weights, 12, [1, 2, 3, 5, 6, 7, 8, 9, 10])
    np.testing.assert_allclose(bert_attention(x, smaller, left)[0], expected, atol=1e-12)
    assert prune_bert_heads(weights, 12, heads=[])[1] == 12


def test_mean_outputs_of_all_heads_and_the_bias_are_the_mean_of_the_layers_output(trial):
    means = mean_outputs(trial)
    assert means.shape == (72, 384)
    layer, real = trial.encoder.blocks[2].attention, trial.mask[:, 0, 0]
    whole = layer(trial.inputs[2], trial.mask)[real].mean(0)
    assert torch.allclose(means[24:36].sum(0) + layer.out_proj.bias, whole, atol=1e-5)


def test_heads_that_add_nothing_are_masked_heads_and_means_cost_less(trial):
    heads = [3, 30, 64]
    before = trial.encoder.blocks[0].attention.out_proj.bias.clone()
    assert torch.allclose(with_means(trial, heads, torch.zeros(72, 384)), trial.without(heads), atol=1e-5)
    replaced, masked = with_means(trial, range(72), mean_outputs(trial)), trial.without(range(72))
    assert (replaced * trial.full).sum(-1).mean() > (masked * trial.full).sum(-1).mean()
    assert torch.equal(trial.encoder.blocks[0].attention.out_proj.bias, before)
