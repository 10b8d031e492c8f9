import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_lib.attention import attention
from mha_lib.masks import causal_mask, decoder_mask, padding_mask


@given(st.integers(1, 7), st.integers(0, 5))
def test_causal_mask_lines_the_last_query_up_with_the_last_key(n, more):
    m = n + more
    mask = causal_mask(n, m)
    assert mask.dtype == bool
    assert mask.shape == (n, m)
    for i in range(n):
        for j in range(m):
            assert mask[i, j] == (j <= i + (m - n))


def test_causal_mask_has_as_many_keys_as_queries_unless_told():
    np.testing.assert_array_equal(causal_mask(5), np.tril(np.ones((5, 5), dtype=bool)))


def test_causal_mask_refuses_queries_without_any_key():
    with pytest.raises(ValueError, match=r"n=5 .* m=3"):
        causal_mask(5, 3)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 3))
def test_padding_mask_keeps_the_real_tokens(lengths, more):
    max_len = max(lengths) + more
    mask = padding_mask(np.array(lengths), max_len)
    assert mask.dtype == bool
    assert mask.shape == (len(lengths), 1, 1, max_len)
    for b, length in enumerate(lengths):
        assert mask[b, 0, 0].tolist() == [True] * length + [False] * (max_len - length)


def test_padding_mask_takes_a_list():
    np.testing.assert_array_equal(padding_mask([2, 3], 3), padding_mask(np.array([2, 3]), 3))


def test_decoder_mask_is_causal_and_padding(rng):
    keep = rng.random((3, 5)) < 0.5
    keep[:, 0] = True
    mask = np.broadcast_to(decoder_mask(5, keep), (3, 2, 5, 5))
    assert mask.dtype == bool
    for b in range(3):
        for i in range(5):
            for j in range(5):
                assert (mask[b, :, i, j] == (j <= i and keep[b, j])).all()


def test_decoder_mask_without_keep_is_the_causal_mask():
    np.testing.assert_array_equal(np.broadcast_to(decoder_mask(5), (5, 5)), causal_mask(5))


def test_under_the_decoder_mask_neither_the_future_nor_padding_matters(rng):
    X = rng.normal(size=(2, 1, 6, 4))  # (batch, heads, n, d_k)
    mask = decoder_mask(6, keep=np.arange(6) < np.array([[6], [4]]))
    before, _ = attention(X, X, X, mask)
    X[:, :, 3:] += rng.normal(size=(2, 1, 3, 4))
    after, _ = attention(X, X, X, mask)
    np.testing.assert_array_equal(after[:, :, :3], before[:, :, :3])
    X[1, :, 4:] = 99.0  # the padding of the second sequence
    np.testing.assert_array_equal(attention(X, X, X, mask)[0][1, :, :4], after[1, :, :4])


def test_masks_do_not_change_their_inputs():
    lengths, keep = np.array([1, 3]), np.array([[True, False, True]])
    padding_mask(lengths, 4)
    decoder_mask(3, keep)
    assert lengths.tolist() == [1, 3]
    assert keep.tolist() == [[True, False, True]]
