"""The mistakes in `real_heads` go unnoticed where the bank says so.

That they differ from the right code and from each other is what the hidden tests prove; that they are called
like it, and say what is wrong, stands in `test_pitfalls_catalogue.py`.
"""

import copy

import numpy as np
import pytest

from mha_lib.pitfalls import BANK, CHECKS_OF_ITEMS, variants
from mha_lib.real_heads import bert_attention, head_importance, keep_heads, offset_score

REFERENCE = {
    "bert_attention": bert_attention,
    "offset_score": offset_score,
    "keep_heads": keep_heads,
    "head_importance": head_importance,
}
EVERY_VARIANT = [(item, slug) for item in REFERENCE for slug in variants("real_heads", item)]
OWN = [(item, slug) for item, slug in EVERY_VARIANT if f"real_heads.{item}" in BANK[slug].variants]


def layer(batch=2, n=5, biased=True):
    """Hidden states, weights and number of heads, with d_k = 3."""
    rng = np.random.default_rng(7)
    weights = {
        part: {"weight": rng.normal(size=(12, 12)) / 3, "bias": rng.normal(size=12) * biased}
        for part in ("query", "key", "value", "dense")
    }
    return rng.normal(size=(batch, n, 12)), weights, 4


MAPS = np.random.default_rng(3).dirichlet(np.ones(6), size=(4, 6))


def right_on(item, *arguments, part=None):
    """The check that the results, or one of them, are right for these arguments."""

    def check(function):
        results = [f(*copy.deepcopy(arguments)) for f in (function, REFERENCE[item])]
        got, expected = results if part is None else [result[part] for result in results]
        return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=0, atol=1e-9)

    return check


def tells_directions_apart(function):
    maps = np.stack([np.eye(6, k=-1), np.eye(6, k=1)])
    maps[0, 0, 0] = maps[1, -1, -1] = 1.0
    scores = function(maps, -1)
    return scores[0] > scores[1]


def shape_and_finite(shape, *arguments):
    return {
        "shape": lambda f: np.shape(f(*copy.deepcopy(arguments))) == shape,
        "finite": lambda f: np.isfinite(f(*copy.deepcopy(arguments))).all(),
    }


WEAK = {
    "bert_attention": {
        "shape": lambda f: [x.shape for x in f(*layer())] == [(2, 5, 12), (2, 4, 5, 5)],
        "finite": lambda f: all(np.isfinite(x).all() for x in f(*layer())),
        "rows sum to 1": lambda f: np.allclose(f(*layer())[1].sum(axis=-1), 1.0),
        "maps": right_on("bert_attention", *layer(), part=1),
        "all biases 0": right_on("bert_attention", *layer(biased=False), part=0),
    },
    "offset_score": shape_and_finite((4,), MAPS, -1)
    | {"offset 0": right_on("offset_score", MAPS, 0), "direction": tells_directions_apart},
    "keep_heads": shape_and_finite((2, 5, 12), *layer(), [3, 1])
    | {
        "one head kept": right_on("keep_heads", *layer(), [2]),
        "all heads kept": right_on("keep_heads", *layer(), [0, 1, 2, 3]),
        "all biases 0": right_on("keep_heads", *layer(biased=False), [3, 1]),
    },
    "head_importance": shape_and_finite((4,), *layer())
    | {
        "one token": right_on("head_importance", *layer(batch=1, n=1)),
        "one sequence": right_on("head_importance", *layer(batch=1)),
        "all biases 0": right_on("head_importance", *layer(biased=False)),
        "order of heads": lambda f: np.argmax(f(*layer())) == np.argmax(head_importance(*layer())),
    },
}


@pytest.mark.parametrize("item", WEAK)
def test_the_bank_names_the_weak_checks_of_an_item(item):
    assert CHECKS_OF_ITEMS[f"real_heads.{item}"] == tuple(WEAK[item])


@pytest.mark.parametrize("item", WEAK)
def test_right_code_passes_every_weak_check(item):
    assert [name for name, check in WEAK[item].items() if not check(REFERENCE[item])] == []


@pytest.mark.parametrize(("item", "slug"), OWN)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(item, slug):
    variant = variants("real_heads", item)[slug]
    named = [name for name in BANK[slug].passes if name in WEAK[item]]
    assert named or not BANK[slug].passes
    assert [name for name in named if not WEAK[item][name](variant)] == []
