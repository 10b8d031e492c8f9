"""The items of `single_head`, and small inputs that expose mistakes in them."""

from typing import Any

import numpy as np

from mha_lib import attention, masks
from mha_lib.pitfalls.examples import Code, item

SOFTMAX = item("single_head.softmax", attention.softmax)


@SOFTMAX.example
def two_rows(softmax: Code) -> Any:
    """Two rows of small logits."""
    return softmax(np.log([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]))


@SOFTMAX.example
def along_axis_0(softmax: Code) -> Any:
    """Along the other axis."""
    return softmax(np.log([[1.0, 2.0, 5.0], [3.0, 6.0, 5.0]]), axis=0)


@SOFTMAX.example
def a_vector(softmax: Code) -> Any:
    """A vector along axis 0, the only one that it has."""
    return softmax(np.log([1.0, 2.0, 5.0]), axis=0)


@SOFTMAX.example
def large_logits(softmax: Code) -> Any:
    """Logits whose exponential is infinite, and others that lie far below."""
    return softmax(np.array([[1000.0, 2000.0, 2000.0], [0.0, 0.0, 0.0]]))


@SOFTMAX.example
def spread_logits(softmax: Code) -> Any:
    """One logit far above the mean."""
    return softmax(np.array([0.0, 0.0, 3000.0]))


@SOFTMAX.example
def a_single_row(softmax: Code) -> Any:
    """A matrix of a single row."""
    return softmax(np.log([[1.0, 1.0, 2.0]]))


@SOFTMAX.example
def logits_after_the_call(softmax: Code) -> Any:
    """The caller's logits after the call."""
    x = np.array([1.0, 2.0, 3.0])
    softmax(x)
    return x


ATTENTION = item("single_head.attention", attention.attention)


@ATTENTION.example
def one_sequence(attention: Code) -> Any:
    """Two queries, three keys, no mask: the output and the weights."""
    Q = np.array([[0.0, 2, 0, 2], [0, 0, 2, 0]])
    K = np.array([[1.0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    V = np.array([[10.0, 0], [0, 10], [10, 10]])
    return attention(Q, K, V)


@ATTENTION.example
def with_a_mask(attention: Code) -> Any:
    """Each query may attend to two of three keys."""
    Q = np.array([[0.0, 2, 0, 2], [0, 0, -2, 0]])
    K = np.array([[1.0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    V = np.array([[10.0, 0], [0, 10], [10, 10]])
    mask = np.array([[True, True, False], [False, True, True]])
    return attention(Q, K, V, mask)


@ATTENTION.example
def two_sequences(attention: Code) -> Any:
    """Two sequences of three heads: the weights."""
    Q = np.arange(24).reshape(2, 3, 1, 4) % 3
    K = np.arange(48).reshape(2, 3, 2, 4) % 5
    _, weights = attention(Q, K, K)
    return weights


@ATTENTION.example
def a_mask_for_each_sequence(attention: Code) -> Any:
    """The second sequence has another mask than the first: the weights."""
    Q = np.ones((2, 1, 1, 4))
    K = np.ones((2, 1, 3, 4))
    mask = np.array([[[[True, True, False]]], [[[False, True, True]]]])
    _, weights = attention(Q, K, K, mask)
    return weights


@ATTENTION.example
def scores_far_below_zero(attention: Code) -> Any:
    """The scores that are kept lie at −20000: the weights."""
    Q = np.array([[-4e4, 0, 0, 0]])
    K = np.array([[1.0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    _, weights = attention(Q, K, K, np.array([[True, True, False]]))
    return weights


@ATTENTION.example
def a_hidden_key_far_above(attention: Code) -> Any:
    """The score that is hidden is larger than the others by 25: the weights."""
    Q = np.array([[2.0, 0, 0, 0]])
    K = np.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [25, 0, 0, 0]])
    _, weights = attention(Q, K, K, np.array([[True, True, False]]))
    return weights


CAUSAL_MASK = item("single_head.causal_mask", masks.causal_mask)


@CAUSAL_MASK.example
def as_many_keys(causal_mask: Code) -> Any:
    """As many keys as queries."""
    return causal_mask(3)


@CAUSAL_MASK.example
def more_keys(causal_mask: Code) -> Any:
    """Two queries, four keys."""
    return causal_mask(2, 4)


PADDING_MASK = item("single_head.padding_mask", masks.padding_mask)


@PADDING_MASK.example
def two_lengths(padding_mask: Code) -> Any:
    """Two sequences, of three tokens and of one."""
    return padding_mask(np.array([3, 1]), 4)


DECODER_MASK = item("single_head.decoder_mask", masks.decoder_mask)


@DECODER_MASK.example
def causal_and_padded(decoder_mask: Code) -> Any:
    """Two sequences of three tokens; in the first the last one is padding."""
    keep = np.array([[True, True, False], [True, True, True]])
    mask = decoder_mask(3, keep)
    return np.broadcast_to(mask, (2, 2, 3, 3))[:, 0]  # as beside (batch, heads, n, n)


@DECODER_MASK.example
def padding_in_between(decoder_mask: Code) -> Any:
    """One sequence of three tokens, of which the second one is padding."""
    return decoder_mask(3, np.array([[True, False, True]]))[0, 0]
