"""The assignment `single_head`: what partly right answers earn, and the notebook with its solutions."""

import numpy as np
import pytest

from mha_lib import attention, pitfalls


def test_a_head_that_handles_no_mask_still_earns_nearly_half(grade):
    row = grade("attention", pitfalls.variants("single_head", "attention")["mask-no-effect"])
    assert 0.4 * row.max_score < row.score <= 0.5 * row.max_score


def test_padding_between_tokens_is_tested_by_itself(lost):
    def only_at_the_end(n, keep=None):
        causal = np.tri(n, dtype=bool)
        return causal if keep is None else causal & (np.arange(n) < keep.sum(-1)[:, None, None, None])

    assert lost("decoder_mask", only_at_the_end) == {"padding anywhere"}


def softmax_less(reduce):
    """A softmax that subtracts something else than the maximum, or gives its axes in another order."""

    def softmax(x, axis=-1):
        exponentials = np.exp(x - reduce(x, axis))
        return exponentials / np.sum(exponentials, axis=axis, keepdims=True)

    return softmax


def softmax_not_swapped_back(x, axis=-1):
    return attention.softmax(np.swapaxes(x, axis, -1))


def softmax_axis_off_by_one(x, axis=-1):
    return attention.softmax(x, axis - 1 if axis >= 0 else axis)


@pytest.mark.parametrize(
    "code",
    [
        softmax_less(lambda x, axis: np.take(x, [0], axis=axis)),
        softmax_less(lambda x, axis: np.median(x, axis=axis, keepdims=True)),
        softmax_not_swapped_back,
        softmax_axis_off_by_one,
    ],
)
def test_a_softmax_with_a_mistake_of_another_kind_gets_no_name(grade, code):
    row = grade("softmax", code)
    assert row.score < row.max_score
    assert row.slugs == {}


def remembering():
    kept = {}

    def attend(Q, K, V, mask=None):
        mask = kept.get((Q.shape, K.shape)) if mask is None else mask
        kept[Q.shape, K.shape] = mask
        return attention.attention(Q, K, V, mask)

    return attend


def first_sequences_only(Q, K, V, mask=None):
    cut = slice(1) if Q.ndim == 5 else slice(None)
    return attention.attention(Q[cut], K[cut], V[cut], mask)


@pytest.mark.parametrize("code", [remembering(), first_sequences_only])
def test_attention_with_a_mistake_of_another_kind_gets_no_name(grade, code):
    row = grade("attention", code)
    assert row.score < row.max_score
    assert row.slugs == {}


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_the_demonstration_shows_the_limit(run_solved, text_of):
    shares = text_of(run_solved()["measure_one_head"]).splitlines()
    assert [float(line.split()[-1]) for line in shares] == [0.5, 0.5, 0.5, 1.0, 0.25, 0.5]
