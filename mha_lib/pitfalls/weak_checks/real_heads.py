"""Weak checks of the items of `real_heads`."""

from typing import Any

import numpy as np

from mha_lib.pitfalls.weak_checks import (
    Arguments,
    Check,
    Code,
    close,
    has_shapes,
    is_finite,
    results,
    right_on,
    weak_check,
)
from mha_lib.real_heads import bert_attention, head_importance, keep_heads, offset_score


def layer(batch: int = 2, n: int = 5, biased: bool = True) -> Arguments:
    """Hidden states, weights and number of heads, with d_k = 3."""
    rng = np.random.default_rng(7)
    weights = {
        part: {"weight": rng.normal(size=(12, 12)) / 3, "bias": rng.normal(size=12) * biased}
        for part in ("query", "key", "value", "dense")
    }
    return rng.normal(size=(batch, n, 12)), weights, 4


# --- the attention -----------------------------------------------------------------------------------------

BERT = "real_heads.bert_attention"


def right_part(call: Arguments, part: int) -> Check:
    """The check: this one of the two results is right."""
    return lambda code: close((results(code, call)[part],), (bert_attention(*call)[part],), atol=1e-6)


weak_check("shape", BERT)(has_shapes(layer(), (2, 5, 12), (2, 4, 5, 5)))
weak_check("finite", BERT)(is_finite(layer()))


@weak_check("rows sum to 1", BERT)
def rows_of_maps_sum_to_1(bert_attention: Code) -> Any:
    """The weights of each query."""
    _, maps = results(bert_attention, layer())
    return np.allclose(maps.sum(axis=-1), 1.0)


weak_check("maps", BERT)(right_part(layer(), 1))
weak_check("all biases 0", BERT)(right_part(layer(biased=False), 0))

# --- where a head looks ------------------------------------------------------------------------------------

OFFSET = "real_heads.offset_score"
MAPS = np.random.default_rng(3).dirichlet(np.ones(6), size=(4, 6))

weak_check("shape", OFFSET)(has_shapes((MAPS, -1), (4,)))
weak_check("finite", OFFSET)(is_finite((MAPS, -1)))
weak_check("offset 0", OFFSET)(right_on(offset_score, (MAPS, 0)))


@weak_check("direction", OFFSET)
def directions_are_told_apart(offset_score: Code) -> Any:
    """One head looks one token back, the other one token ahead."""
    maps = np.stack([np.eye(6, k=-1), np.eye(6, k=1)])
    maps[0, 0, 0] = maps[1, -1, -1] = 1.0
    scores = offset_score(maps, -1)
    return scores[0] > scores[1]


# --- single heads ------------------------------------------------------------------------------------------

KEEP = "real_heads.keep_heads"

weak_check("shape", KEEP)(has_shapes((*layer(), [3, 1]), (2, 5, 12)))
weak_check("finite", KEEP)(is_finite((*layer(), [3, 1])))
weak_check("one head kept", KEEP)(right_on(keep_heads, (*layer(), [2])))
weak_check("all heads kept", KEEP)(right_on(keep_heads, (*layer(), [0, 1, 2, 3])))
weak_check("all biases 0", KEEP)(right_on(keep_heads, (*layer(biased=False), [3, 1])))

IMPORTANCE = "real_heads.head_importance"

weak_check("shape", IMPORTANCE)(has_shapes(layer(), (4,)))
weak_check("finite", IMPORTANCE)(is_finite(layer()))
weak_check("one token", IMPORTANCE)(right_on(head_importance, layer(batch=1, n=1)))
weak_check("one sequence", IMPORTANCE)(right_on(head_importance, layer(batch=1)))
weak_check("all biases 0", IMPORTANCE)(right_on(head_importance, layer(biased=False)))


@weak_check("order of heads", IMPORTANCE)
def most_important_head_is_found(importance: Code) -> Any:
    """The head with the largest number is the right one."""
    return np.argmax(importance(*layer())) == np.argmax(head_importance(*layer()))
