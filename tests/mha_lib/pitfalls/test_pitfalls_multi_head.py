"""The mistakes in `multi_head` go unnoticed where the bank says so.

That they differ from the right code and from each other is what the hidden tests prove; that they are called
like it, and say what is wrong, stands in `test_pitfalls_catalogue.py`.
"""

import copy

import numpy as np
import pytest

from mha_lib import counting, heads, multi_head
from mha_lib.pitfalls import BANK, CHECKS_OF_ITEMS, variants

REFERENCE = {
    "head_dim": heads.head_dim,
    "split_heads": heads.split_heads,
    "combine_heads": heads.combine_heads,
    "multi_head_attention": multi_head.multi_head_attention,
    "causal_multi_head_attention": multi_head.causal_multi_head_attention,
    "cross_attention": multi_head.cross_attention,
    "count_parameters": counting.count_parameters,
    "attention_flops": counting.attention_flops,
}
EVERY_VARIANT = [(item, slug) for item in REFERENCE for slug in variants("multi_head", item)]
ONLY_HERE = [
    slug
    for slug, pitfall in BANK.items()
    if pitfall.variants and all(place.startswith("multi_head.") for place in pitfall.variants)
]


# --- weak checks: each tells, of a function, whether it passes ----------------------------------------------


def call(function, arguments):
    with np.errstate(all="ignore"):
        return function(*copy.deepcopy(arguments))


def right_on(item, *cases):
    """The check: the results are right for these arguments."""

    def check(function):
        for case in cases:
            got, expected = call(function, case), call(REFERENCE[item], case)
            if np.shape(got) != np.shape(expected) or not np.allclose(got, expected, rtol=0, atol=1e-6):
                return False
        return True

    return check


def has_shape(case, shape):
    return lambda function: np.shape(call(function, case)) == shape


def is_finite(case):
    return lambda function: bool(np.isfinite(call(function, case)).all())


def tokens(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def layer(batch=2, n=5, num_heads=3, d_k=4):
    """Tokens and weights."""
    d_model = num_heads * d_k
    return tokens(1, batch, n, d_model), *tokens(2, 4, d_model, d_model) / np.sqrt(d_model), num_heads


def with_memory(n=5, m=7, **sizes):
    X, *rest = layer(n=n, **sizes)
    return X, tokens(3, X.shape[0], m, X.shape[2]), *rest


def some_of(*shape):
    mask = np.random.default_rng(4).random(shape) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return mask


ONE_MASK, MASKS = some_of(5, 5), some_of(2, 1, 5, 5)
SELF, CAUSAL, CROSS = "multi_head_attention", "causal_multi_head_attention", "cross_attention"

WEAK = {
    "head_dim": {
        "divides": right_on("head_dim", (12, 3), (768, 12)),
        "one head": right_on("head_dim", (12, 1)),
    },
    "split_heads": {
        "shape": has_shape((tokens(5, 2, 5, 12), 3), (2, 3, 5, 4)),
        "finite": is_finite((tokens(5, 2, 5, 12), 3)),
        "one head": right_on("split_heads", (tokens(5, 2, 5, 12), 1)),
        "one token": right_on("split_heads", (tokens(5, 2, 1, 12), 3)),
        "round trip": lambda split: np.array_equal(
            heads.combine_heads(split(tokens(5, 2, 5, 12), 3)), tokens(5, 2, 5, 12)
        ),
    },
    "combine_heads": {
        "shape": has_shape((tokens(6, 2, 3, 5, 4),), (2, 5, 12)),
        "finite": is_finite((tokens(6, 2, 3, 5, 4),)),
        "one head": right_on("combine_heads", (tokens(6, 2, 1, 5, 4),)),
        "one token": right_on("combine_heads", (tokens(6, 2, 3, 1, 4),)),
    },
    SELF: {
        "shape": has_shape(layer(), (2, 5, 12)),
        "finite": is_finite(layer()),
        "no mask": right_on(SELF, layer()),
        "all-True mask": right_on(SELF, (*layer(), np.ones((5, 5), dtype=bool))),
        "small logits": right_on(SELF, (*layer(), ONE_MASK), (*layer(), MASKS)),
        "one head": right_on(SELF, layer(num_heads=1)),
        "one token": right_on(SELF, layer(n=1)),
        "one sequence": right_on(SELF, (*layer(batch=1), ONE_MASK), (*layer(batch=1), MASKS[:1])),
        "right values": right_on(SELF, layer(), (*layer(), ONE_MASK), (*layer(), MASKS)),
    },
    CAUSAL: {
        "shape": has_shape(layer(), (2, 5, 12)),
        "finite": is_finite(layer()),
        "one head": right_on(CAUSAL, layer(num_heads=1)),
        "one token": right_on(CAUSAL, layer(n=1)),
        "right values": right_on(CAUSAL, layer(), layer(batch=1, n=7)),
    },
    CROSS: {
        "shape": has_shape(with_memory(), (2, 5, 12)),
        "shape at n = m": has_shape(with_memory(m=5), (2, 5, 12)),
        "n = m": right_on(CROSS, with_memory(m=5)),
        "finite": is_finite(with_memory()),
        "one head": right_on(CROSS, with_memory(num_heads=1)),
        "one token": right_on(CROSS, with_memory(n=1, m=1)),
        "right values": right_on(CROSS, with_memory(), with_memory(n=7, m=4)),
    },
    "count_parameters": {
        "one head": right_on("count_parameters", (12, 1), (6, 1, 1)),
        "no sharing": right_on("count_parameters", (12, 4), (12, 4, 4)),
        "no biases": right_on("count_parameters", (12, 4), (12, 4, 2)),
    },
    "attention_flops": {},
}


@pytest.mark.parametrize("item", WEAK)
def test_the_bank_names_the_weak_checks_of_an_item(item):
    assert CHECKS_OF_ITEMS[f"multi_head.{item}"] == tuple(WEAK[item])


@pytest.mark.parametrize("item", WEAK)
def test_right_code_passes_every_weak_check(item):
    assert [name for name, check in WEAK[item].items() if not check(REFERENCE[item])] == []


@pytest.mark.parametrize(("item", "slug"), EVERY_VARIANT)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(item, slug):
    variant = variants("multi_head", item)[slug]
    checks = {name: check for name, check in WEAK[item].items() if name in BANK[slug].passes}
    assert [name for name, check in checks.items() if not check(variant)] == []


@pytest.mark.parametrize("slug", ONLY_HERE)
def test_what_the_bank_names_can_be_checked(slug):
    here = [item for item, found in EVERY_VARIANT if found == slug]
    assert set(BANK[slug].passes) <= {name for item in here for name in WEAK[item]}
