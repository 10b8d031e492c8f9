"""The real model, whose package the tests install, against Hugging Face's implementation of the same model."""

import numpy as np
import pytest
import torch

from mha_lib.minilm.make_sample import make_sample
from mha_lib.minilm.minilm import SAMPLE, MiniLM, find_model, load_sample
from mha_lib.real_heads import bert_attention, head_importance

TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    "Unbelievably, Schrödinger's cat—half asleep—wasn't there!",
    "no",
    "One head looks back. " * 20,
]


@pytest.fixture(scope="module")
def model():
    return MiniLM()


@pytest.fixture(scope="module")
def bert():
    from transformers import BertModel

    return BertModel.from_pretrained(find_model(), attn_implementation="eager", dtype=torch.float64).eval()


def ids_of(text):
    from transformers import BertTokenizerFast

    return BertTokenizerFast.from_pretrained(find_model())(text, return_tensors="pt")


@pytest.mark.parametrize("text", TEXTS)
def test_hidden_states_and_maps_equal_those_of_transformers(model, bert, text):
    states, maps = model.run(text, bert_attention)
    with torch.no_grad():
        expected = bert(**ids_of(text), output_hidden_states=True, output_attentions=True)
    np.testing.assert_allclose(states, torch.cat(expected.hidden_states).numpy(), atol=1e-5)
    np.testing.assert_allclose(maps, torch.cat(expected.attentions).numpy(), atol=1e-5)


def test_sentence_embeddings_are_unit_vectors_that_tell_meanings_apart(model):
    tired, sleepy, tax = (
        model.sentence_embedding(text, bert_attention)
        for text in ("The dog is tired.", "A sleepy puppy.", "We pay our taxes in May.")
    )
    np.testing.assert_allclose(np.linalg.norm(tired), 1.0)
    assert tired @ sleepy > 0.5
    assert tired @ tax < 0.2


def test_the_weights_may_come_from_a_folder(model, tmp_path):
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).symlink_to(find_model() / name)
    other = MiniLM(tmp_path)
    assert other.tokens("it was") == ["[CLS]", "it", "was", "[SEP]"]
    np.testing.assert_array_equal(other.attention[5]["dense"]["bias"], model.attention[5]["dense"]["bias"])


def test_the_stored_sample_is_what_the_model_gives(model):
    made = make_sample(model)
    with np.load(SAMPLE) as stored:
        assert set(stored) == set(made)
        assert str(stored["about"]) == str(made["about"])
        for i in range(6):
            np.testing.assert_allclose(stored[f"maps_{i}"], made[f"maps_{i}"], atol=1e-3)


def test_the_stored_heads_move_the_output_as_far_as_in_the_model(model):
    sample = load_sample()
    for text, states in zip(sample.texts, sample.states, strict=True):
        hidden, _ = model.run(text, bert_attention)
        expected = head_importance(hidden[sample.layer][None], model.attention[sample.layer], 12)[
            sample.heads
        ]
        got = head_importance(states[None], sample.weights, len(sample.heads))
        np.testing.assert_allclose(got, expected, atol=5e-3)
