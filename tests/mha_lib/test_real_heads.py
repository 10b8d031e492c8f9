import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mha_lib.multi_head import multi_head_attention
from mha_lib.real_heads import bert_attention, head_importance, keep_heads, offset_score

seeds = st.integers(0, 2**32 - 1)


def random_weights(rng, d_model):
    return {
        part: {
            "weight": rng.normal(size=(d_model, d_model)) / np.sqrt(d_model),
            "bias": rng.normal(size=d_model),
        }
        for part in ("query", "key", "value", "dense")
    }


def by_torch(x, weights, num_heads, ignore=None, padding=None):
    """PyTorch's own layer with these weights: output and the attention weights of each head."""
    parts = ("query", "key", "value")
    layer = nn.MultiheadAttention(x.shape[-1], num_heads, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for kind, parameter in [("weight", layer.in_proj_weight), ("bias", layer.in_proj_bias)]:
            parameter.copy_(torch.cat([torch.from_numpy(weights[part][kind]) for part in parts]))
            getattr(layer.out_proj, kind).copy_(torch.from_numpy(weights["dense"][kind]))
        x = torch.from_numpy(x)
        output, maps = layer.eval()(
            x, x, x, attn_mask=ignore, key_padding_mask=padding, average_attn_weights=False
        )
    return output.numpy(), maps.numpy()


@pytest.mark.parametrize("num_heads", [1, 3, 4, 12])
def test_it_equals_torch(rng, num_heads):
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    output, maps = bert_attention(x, weights, num_heads)
    expected, expected_maps = by_torch(x, weights, num_heads)
    np.testing.assert_allclose(output, expected, atol=1e-12)
    np.testing.assert_allclose(maps, expected_maps, atol=1e-12)


def test_under_a_mask_for_all_and_under_padding_it_equals_torch(rng):
    x, weights = rng.normal(size=(3, 5, 12)), random_weights(rng, 12)
    for mask in (np.tri(5, dtype=bool), np.arange(5) < np.array([5, 2, 4])[:, None, None, None]):
        output, maps = bert_attention(x, weights, 3, mask)
        ignore, padding = (~mask, None) if mask.ndim == 2 else (None, ~mask[:, 0, 0])
        tensors = [None if m is None else torch.from_numpy(m) for m in (ignore, padding)]
        expected, expected_maps = by_torch(x, weights, 3, *tensors)
        np.testing.assert_allclose(output, expected, atol=1e-12)
        np.testing.assert_allclose(maps, expected_maps, atol=1e-12)


def test_without_biases_it_is_multi_head_attention_with_the_weights_transposed(rng):
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    bare = {part: {"weight": pair["weight"], "bias": np.zeros(12)} for part, pair in weights.items()}
    transposed = [pair["weight"].T for pair in weights.values()]
    expected = multi_head_attention(x, *transposed, num_heads=3)
    np.testing.assert_allclose(bert_attention(x, bare, 3)[0], expected, atol=1e-12)


def test_the_bias_of_the_keys_changes_nothing(rng):
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    other = {**weights, "key": {"weight": weights["key"]["weight"], "bias": rng.normal(size=12)}}
    for got, expected in zip(bert_attention(x, other, 3), bert_attention(x, weights, 3), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)


@given(seeds, st.integers(1, 6), st.data())
def test_offset_scores_equal_a_loop(seed, n, data):
    offset = data.draw(st.integers(1 - n, n - 1))
    maps = np.random.default_rng(seed).dirichlet(np.ones(n), size=(3, n))
    expected = [np.mean([maps[h, i, i + offset] for i in range(n) if 0 <= i + offset < n]) for h in range(3)]
    np.testing.assert_allclose(offset_score(maps, offset), expected)


def test_offset_scores_of_heads_that_look_at_one_place_only():
    before, itself, behind = np.eye(7, k=-1), np.eye(7), np.eye(7, k=1)
    maps = np.stack([before, itself, behind])
    for offset, expected in [(-1, [1, 0, 0]), (0, [0, 1, 0]), (1, [0, 0, 1]), (-2, [0, 0, 0])]:
        assert offset_score(maps, offset).tolist() == expected


@given(seeds, st.permutations(range(4)), st.integers(0, 4))
def test_kept_and_removed_heads_add_up(seed, order, count):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    kept, removed = (keep_heads(x, weights, 4, heads) for heads in (order[:count], order[count:]))
    full, _ = bert_attention(x, weights, 4)
    np.testing.assert_allclose(kept + removed, full + weights["dense"]["bias"], atol=1e-12)


def test_one_kept_head_by_hand(rng):
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    _, maps = bert_attention(x, weights, 3)
    rows = slice(4, 8)  # head 1 of width 4
    values = x @ weights["value"]["weight"][rows].T + weights["value"]["bias"][rows]
    dense = weights["dense"]
    expected = maps[:, 1] @ values @ dense["weight"][:, rows].T + dense["bias"]
    np.testing.assert_allclose(keep_heads(x, weights, 3, [1]), expected, atol=1e-12)


def test_importance_is_the_mean_length_of_what_a_head_adds(rng):
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    bias = weights["dense"]["bias"]
    added = [keep_heads(x, weights, 3, [head]) - bias for head in range(3)]
    expected = [np.mean([np.sqrt(sum(token**2)) for token in part.reshape(-1, 12)]) for part in added]
    np.testing.assert_allclose(head_importance(x, weights, 3), expected)


def test_a_head_that_adds_nothing_has_no_importance(rng):
    x, weights = rng.normal(size=(2, 5, 12)), random_weights(rng, 12)
    weights["dense"]["weight"][:, 4:8] = 0.0
    assert (head_importance(x, weights, 3) > 1e-3).tolist() == [True, False, True]


def test_inputs_are_not_changed(rng):
    x, weights, keep = rng.normal(size=(2, 5, 12)), random_weights(rng, 12), [2, 0]
    arrays = [x, *(array for pair in weights.values() for array in pair.values())]
    copies = [array.copy() for array in arrays]
    bert_attention(x, weights, 3)
    keep_heads(x, weights, 3, keep)
    head_importance(x, weights, 3)
    assert keep == [2, 0]
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
