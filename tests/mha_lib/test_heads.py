import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_lib.heads import combine_heads, head_dim, split_heads

sizes = st.integers(1, 5)


@given(st.integers(1, 200), st.integers(1, 200))
def test_head_dim_times_heads_is_the_width_or_an_error_holds_both_numbers(d_model, num_heads):
    if d_model % num_heads == 0:
        d_k = head_dim(d_model, num_heads)
        assert type(d_k) is int
        assert d_k * num_heads == d_model
    else:
        with pytest.raises(ValueError, match=f"d_model={d_model} .*num_heads={num_heads}: "):
            head_dim(d_model, num_heads)


@pytest.mark.parametrize(("d_model", "num_heads"), [(0, 3), (-8, 2), (8, 0), (8, -2), (-8, -2), (0, 0)])
def test_head_dim_wants_positive_numbers(d_model, num_heads):
    with pytest.raises(ValueError, match=f"d_model={d_model} .*num_heads={num_heads} "):
        head_dim(d_model, num_heads)


def test_head_dim_says_what_went_wrong():
    with pytest.raises(ValueError) as caught:
        head_dim(7, 2)
    assert str(caught.value) == "d_model=7 cannot be divided among num_heads=2: 7 / 2 = 3.5"


def test_head_i_gets_its_own_columns(rng):
    x = rng.normal(size=(2, 5, 12))
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    for i in range(3):
        np.testing.assert_array_equal(heads[:, i], x[:, :, 4 * i : 4 * (i + 1)])


def test_combine_heads_lays_the_heads_side_by_side(rng):
    x = rng.normal(size=(2, 3, 5, 4))
    np.testing.assert_array_equal(combine_heads(x), np.concatenate([x[:, i] for i in range(3)], axis=-1))


@given(sizes, sizes, sizes, sizes)
def test_split_and_combine_undo_each_other(batch, n, num_heads, d_k):
    x = np.arange(batch * n * num_heads * d_k, dtype=float).reshape(batch, n, num_heads * d_k)
    np.testing.assert_array_equal(combine_heads(split_heads(x, num_heads)), x)
    x = x.reshape(batch, num_heads, n, d_k)
    np.testing.assert_array_equal(split_heads(combine_heads(x), num_heads), x)


def test_the_layout_in_memory_does_not_matter(rng):
    x = rng.normal(size=(12, 5, 2))
    np.testing.assert_array_equal(split_heads(x.T, 3), split_heads(np.ascontiguousarray(x.T), 3))
    np.testing.assert_array_equal(combine_heads(split_heads(x.T, 3)), x.T)


def test_split_heads_refuses_a_width_that_does_not_divide():
    with pytest.raises(ValueError, match=r"d_model=10 .*num_heads=4: 10 / 4 = 2\.5"):
        split_heads(np.zeros((2, 3, 10)), 4)
