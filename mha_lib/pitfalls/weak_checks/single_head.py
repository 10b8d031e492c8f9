"""Weak checks of the items of `single_head`."""

from typing import Any

import numpy as np

from mha_lib.attention import attention, softmax
from mha_lib.masks import causal_mask, decoder_mask, padding_mask
from mha_lib.pitfalls.weak_checks import (
    Arguments,
    Check,
    Code,
    has_shapes,
    is_finite,
    results,
    right_on,
    weak_check,
)

Array = np.ndarray

# --- calls that the contracts allow ------------------------------------------------------------------------


def random_mask(rng: np.random.Generator, *shape: int) -> Array:
    """Every row keeps a key and hides one."""
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return mask


def attention_inputs(
    leading: tuple[int, ...] = (2, 3), n: int = 5, m: int = 7, d_k: int = 4, d_v: int = 6
) -> Arguments:
    """Queries, keys, values and one mask for all."""
    rng = np.random.default_rng(7)
    Q, K, V = (rng.normal(size=(*leading, *s)) for s in ((n, d_k), (m, d_k), (m, d_v)))
    return Q, K, V, random_mask(rng, n, m)


def per_sequence(Q: Array, K: Array, V: Array, _mask: Array) -> Arguments:
    """The same with a mask for each sequence."""
    return Q, K, V, random_mask(np.random.default_rng(5), len(Q), 1, Q.shape[-2], K.shape[-2])


def low_row() -> Arguments:
    """The scores of query 1 all lie near −2e4, those of the other queries near 0."""
    Q, K, V, mask = attention_inputs(leading=(2,), d_k=4)
    K[..., 0] = 1.0
    Q[:, 1] = [-4e4, 0.1, 0.2, 0.3]
    return Q, K, V, mask


def hidden_key_far_above() -> Arguments:
    """The last key, which the mask hides, has scores of 25; those of the others are near 0."""
    Q, K, V, mask = attention_inputs(leading=(2,))
    Q[..., 0], K[..., 0] = 2.0, 0.0  # √d_k = 2
    K[:, -1] = [25.0, 0.0, 0.0, 0.0]
    return Q, K, V, mask


def large_scores(*leading: int) -> Arguments:
    """Scores far above those whose exponential is finite."""
    Q, K, V, _ = attention_inputs(leading)
    return 60 * Q, 60 * K, V


KEEP = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)
ALL = np.ones((3, 5), dtype=bool)
ROWS_APART = np.array([[1.0, 2.0, 4.0], [1e4, 1e4 + 1, 1e4 + 3], [-1e4, -1e4 + 1, -1e4 + 2]])

CALLS: dict[str, list[Arguments]] = {
    "single_head.softmax": [
        (np.random.default_rng(1).normal(size=(3, 7)),),
        (np.random.default_rng(2).normal(size=6),),
        (np.random.default_rng(2).normal(size=6), 0),
        (np.random.default_rng(3).normal(size=(4, 4)),),
        (np.random.default_rng(4).normal(size=(3, 5, 7)), 1),
        (np.random.default_rng(5).normal(size=(3, 5, 7)), 0),
        (ROWS_APART,),
        (np.array([[1000.0, 2000.0, 2000.0], [600.0, 600.0, 601.0]]),),
        (np.array([0.0, 0.0, 3000.0]),),
        (np.array([[1.0, 2.0]]),),
    ],
    "single_head.attention": [
        attention_inputs(),
        per_sequence(*attention_inputs()),
        attention_inputs()[:3],
        attention_inputs(leading=()),
        attention_inputs(leading=(3,)),
        attention_inputs(leading=(3,), n=5, m=5, d_v=4),
        attention_inputs(leading=(3,), n=5, m=5)[:3],
        attention_inputs(leading=(), n=7, m=5)[:3],
        attention_inputs(leading=(1,)),
        low_row(),
        hidden_key_far_above(),
        large_scores(),
        large_scores(3),
    ],
    "single_head.causal_mask": [(5,), (4, 4), (3, 7), (1, 4), (1,), (4, 5)],
    "single_head.padding_mask": [
        (np.array([3, 1, 4]), 6),
        (np.array([2, 2]), 2),
        (np.array([4]), 4),
        (np.array([5, 2]), 5),
    ],
    "single_head.decoder_mask": [(5,), (5, KEEP), (5, KEEP[1:2]), (5, ALL), (1,)],
}

# --- softmax -----------------------------------------------------------------------------------------------

SOFTMAX = "single_head.softmax"
SMALL = np.random.default_rng(11).normal(size=(3, 7))

weak_check("shape", SOFTMAX)(has_shapes((SMALL,), (3, 7)))
weak_check("finite", SOFTMAX)(is_finite((ROWS_APART,)))


@weak_check("rows sum to 1", SOFTMAX)
def rows_of_softmax_sum_to_1(softmax: Code) -> Any:
    """Along the last axis."""
    return np.allclose(softmax(SMALL.copy()).sum(axis=-1), 1)


weak_check("small logits", SOFTMAX)(right_on(softmax, (SMALL,), (SMALL, 0)))
weak_check("last axis", SOFTMAX)(right_on(softmax, (SMALL,), (ROWS_APART,)))
weak_check("one row", SOFTMAX)(right_on(softmax, (SMALL[0],)))
weak_check("right values", SOFTMAX)(right_on(softmax, *CALLS[SOFTMAX]))

# --- attention ---------------------------------------------------------------------------------------------

ATTENTION = "single_head.attention"
INPUTS = attention_inputs()
SQUARE = attention_inputs(n=5, m=5)

weak_check("shape", ATTENTION)(has_shapes(INPUTS, (2, 3, 5, 6), (2, 3, 5, 7)))
weak_check("shape at n = m", ATTENTION)(has_shapes(SQUARE, (2, 3, 5, 6), (2, 3, 5, 5)))
weak_check("finite", ATTENTION)(is_finite(INPUTS))


@weak_check("rows sum to 1", ATTENTION)
def rows_of_attention_sum_to_1(attention: Code) -> Any:
    """The weights of each query."""
    _, weights = results(attention, INPUTS)
    return np.allclose(weights.sum(axis=-1), 1)


@weak_check("masked weights are 0", ATTENTION)
def masked_weights_are_0(attention: Code) -> Any:
    """The weights where the mask is False."""
    _, weights = results(attention, INPUTS)
    return (weights[..., ~INPUTS[3]] == 0).all()


weak_check("small logits", ATTENTION)(right_on(attention, INPUTS, per_sequence(*INPUTS)))
weak_check("one row", ATTENTION)(right_on(attention, attention_inputs(leading=(), n=1)[:3]))
weak_check("no mask", ATTENTION)(right_on(attention, INPUTS[:3]))
weak_check("all-True mask", ATTENTION)(right_on(attention, (*INPUTS[:3], np.ones((5, 7), dtype=bool))))
weak_check("no batch", ATTENTION)(right_on(attention, attention_inputs(leading=())))
weak_check("one leading dimension", ATTENTION)(right_on(attention, attention_inputs(leading=(3,))))
weak_check("one sequence", ATTENTION)(right_on(attention, per_sequence(*attention_inputs(leading=(1, 3)))))
weak_check("n = m", ATTENTION)(right_on(attention, SQUARE))
weak_check("d_k = d_v", ATTENTION)(right_on(attention, attention_inputs(d_v=4)))
weak_check("right values", ATTENTION)(right_on(attention, *CALLS[ATTENTION]))

# --- masks -------------------------------------------------------------------------------------------------


def is_boolean(call: Arguments) -> Check:
    """The check: the mask is boolean."""
    return lambda make_mask: make_mask(*call).dtype == bool


def keeps_a_key(call: Arguments) -> Check:
    """The check: every row of the mask has a True."""
    return lambda make_mask: bool((make_mask(*call) > 0).any(axis=-1).all())


CAUSAL = "single_head.causal_mask"

weak_check("shape", CAUSAL)(has_shapes((3, 7), (3, 7)))
weak_check("boolean", CAUSAL)(is_boolean((3, 7)))
weak_check("every row keeps a key", CAUSAL)(keeps_a_key((3, 7)))
weak_check("shape at n = m", CAUSAL)(has_shapes((5, 5), (5, 5)))
weak_check("n = m", CAUSAL)(right_on(causal_mask, (5, 5)))

PADDING = "single_head.padding_mask"
LENGTHS = (np.array([3, 1, 4]), 6)

weak_check("shape", PADDING)(has_shapes(LENGTHS, (3, 1, 1, 6)))
weak_check("boolean", PADDING)(is_boolean(LENGTHS))
weak_check("every row keeps a key", PADDING)(keeps_a_key(LENGTHS))
weak_check("no padding", PADDING)(right_on(padding_mask, (np.array([5, 5, 5]), 5)))
weak_check("one sequence", PADDING)(right_on(padding_mask, (np.array([3]), 6)))

DECODER = "single_head.decoder_mask"


def beside_scores(make_mask: Code) -> Code:
    """Decoder masks as they are used: beside the scores of two heads, (batch, heads, n, n)."""

    def broadcast(n: int, keep: Array | None = None) -> Array:
        batch = 3 if keep is None else len(keep)
        mask = make_mask(n) if keep is None else make_mask(n, keep)
        return np.broadcast_to(mask, (batch, 2, n, n))

    return broadcast


@weak_check("shape", DECODER)
def decoder_mask_fits_the_scores(make_mask: Code) -> Any:
    """Of three sequences, two heads, five queries and five keys."""
    return beside_scores(make_mask)(5, KEEP).shape == (3, 2, 5, 5)


weak_check("boolean", DECODER)(is_boolean((5, KEEP)))
weak_check("every row keeps a key", DECODER)(keeps_a_key((5, KEEP)))


def fits_right(*calls: Arguments) -> Check:
    """The check: beside the scores, the mask is the right one for each of these tuples of arguments."""
    right = right_on(beside_scores(decoder_mask), *calls)
    return lambda make_mask: right(beside_scores(make_mask))


weak_check("no keep", DECODER)(fits_right((5,)))
weak_check("no padding", DECODER)(fits_right((5, ALL)))
weak_check("one sequence", DECODER)(fits_right((5, KEEP[1:2])))
