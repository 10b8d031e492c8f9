"""Every mistake in the bank is one, goes unnoticed where the bank says so, and differs from all others.

`CASES` holds, for each item, calls that its contract allows. `WEAK` holds the weak checks, as a student might
write them. A further assignment adds its items to both.
"""

import copy
import itertools
import re

import numpy as np
import pytest

from mha_lib import attention, masks
from mha_lib.pitfalls import (
    BANK,
    CHECKS_OF_ITEMS,
    FAMILIES,
    WEAK_CHECKS,
    batched_torch,
    transformer_block,
    variants,
)

REFERENCE = {
    "single_head.softmax": attention.softmax,
    "single_head.attention": attention.attention,
    "single_head.causal_mask": masks.causal_mask,
    "single_head.padding_mask": masks.padding_mask,
    "single_head.decoder_mask": masks.decoder_mask,
}
VARIANTS = {item: variants(*item.split(".")) for item in REFERENCE}
EVERY_VARIANT = [(item, slug) for item, found in VARIANTS.items() for slug in found]

# Mistakes whose code needs PyTorch. The kill table tests it: it must lose points and be told from all others.
IN_TORCH = {
    slug
    for module in (batched_torch, transformer_block)
    for found in module.VARIANTS.values()
    for slug in found
}

# Pairs of variants of one item that no allowed input tells apart by more than the tolerance.
SAME = {
    # exp(−1e-9) is 1 to nine digits
    frozenset({"masked-scores-zero", "mask-fill-tiny"}),
}


# --- calls that the contracts allow ------------------------------------------------------------------------


def random_mask(rng, *shape):
    """Every row keeps a key and hides one."""
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return mask


def attention_inputs(leading=(2, 3), n=5, m=7, d_k=4, d_v=6):
    rng = np.random.default_rng(7)
    Q, K, V = (rng.normal(size=(*leading, *s)) for s in ((n, d_k), (m, d_k), (m, d_v)))
    return Q, K, V, random_mask(rng, n, m)


def per_sequence(Q, K, V, _mask):
    return Q, K, V, random_mask(np.random.default_rng(5), len(Q), 1, Q.shape[-2], K.shape[-2])


def without_mask(Q, K, V, _mask):
    return Q, K, V


def low_row():
    """The scores of query 1 all lie near −2e4, those of the other queries near 0."""
    Q, K, V, mask = attention_inputs(leading=(2,), d_k=4)
    K[..., 0] = 1.0
    Q[:, 1] = [-4e4, 0.1, 0.2, 0.3]
    return Q, K, V, mask


def hidden_key_far_above():
    """The last key, which the mask hides, has scores of 25; those of the others are near 0."""
    Q, K, V, mask = attention_inputs(leading=(2,))
    Q[..., 0], K[..., 0] = 2.0, 0.0  # √d_k = 2
    K[:, -1] = [25.0, 0.0, 0.0, 0.0]
    return Q, K, V, mask


def large_scores(*leading):
    Q, K, V, _ = attention_inputs(leading)
    return 60 * Q, 60 * K, V


KEEP = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)
ROWS_APART = np.array([[1.0, 2.0, 4.0], [1e4, 1e4 + 1, 1e4 + 3], [-1e4, -1e4 + 1, -1e4 + 2]])

CASES = {
    "single_head.softmax": [
        (np.random.default_rng(1).normal(size=(3, 7)),),
        (np.random.default_rng(2).normal(size=6),),
        (np.random.default_rng(3).normal(size=(4, 4)),),
        (np.random.default_rng(4).normal(size=(3, 5, 7)), 1),
        (np.random.default_rng(5).normal(size=(3, 5, 7)), 0),
        (ROWS_APART,),
        (np.array([[1000.0, 2000.0, 2000.0], [600.0, 600.0, 601.0]]),),
        (np.array([0.0, 0.0, 3000.0]),),
    ],
    "single_head.attention": [
        attention_inputs(),
        per_sequence(*attention_inputs()),
        without_mask(*attention_inputs()),
        attention_inputs(leading=()),
        attention_inputs(leading=(3,)),
        attention_inputs(leading=(3,), n=5, m=5, d_v=4),
        without_mask(*attention_inputs(leading=(3,), n=5, m=5)),
        without_mask(*attention_inputs(leading=(), n=7, m=5)),
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
    "single_head.decoder_mask": [(5,), (5, KEEP), (5, KEEP[1:2]), (5, np.ones((3, 5), dtype=bool)), (1,)],
}


@pytest.mark.parametrize("arguments", CASES["single_head.attention"])
def test_the_calls_of_attention_satisfy_its_contract(arguments):
    Q, K, V, mask = (*arguments, None)[:4]
    assert Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]
    if mask is not None:
        assert mask.dtype == bool
        assert mask.shape in {(Q.shape[-2], K.shape[-2]), (len(Q), 1, Q.shape[-2], K.shape[-2])}
        assert mask.any(axis=-1).all()
        scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])
        kept = np.where(mask, scores, -np.inf).max(axis=-1, keepdims=True)
        assert (kept > -2e4 - 1).all()
        assert (np.where(mask, -np.inf, scores) <= kept + 30).all()


# --- what a call comes to ----------------------------------------------------------------------------------


def call(function, arguments):
    """The results, and the arguments after the call, as two tuples; None if the call raised."""
    arguments = copy.deepcopy(arguments)
    try:
        with np.errstate(all="ignore"):
            result = function(*arguments)
    except Exception:  # whatever it is, there is no result
        return None
    return (result if isinstance(result, tuple) else (result,)), arguments


def outcome(item, function, arguments):
    """What is compared: as `call`, but decoder masks are compared after broadcasting to (batch, heads, n, n)."""
    got = call(function, arguments)
    if got is None or item != "single_head.decoder_mask":
        return got
    (mask,), after = got
    batch = len(arguments[1]) if len(arguments) > 1 else 3
    try:
        return (np.broadcast_to(mask, (batch, 2, arguments[0], arguments[0])),), after
    except ValueError:
        return None


def close(a, b, arguments):
    """As many arrays, of the same shapes and kinds, and no entry off by more than the contract allows."""
    large = any(np.max(np.abs(x)) >= 100 for x in arguments if isinstance(x, np.ndarray))
    return len(a) == len(b) and all(
        np.shape(x) == np.shape(y)
        and np.asarray(x).dtype.kind == np.asarray(y).dtype.kind
        and np.allclose(x, y, atol=1e-2 if large else 1e-5, rtol=0, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def equal(a, b, arguments):
    """Two outcomes of a call with these arguments are the same, changes to the arguments included."""
    if a is None or b is None:
        return a is b
    return close(a[0], b[0], arguments) and close(a[1], b[1], arguments)


@pytest.mark.parametrize(("item", "slug"), EVERY_VARIANT)
def test_a_variant_differs_from_the_reference_on_an_allowed_input(item, slug):
    wrong, right = VARIANTS[item][slug], REFERENCE[item]
    assert not all(
        equal(outcome(item, wrong, case), outcome(item, right, case), case) for case in CASES[item]
    )


@pytest.mark.parametrize("item", REFERENCE)
def test_the_reference_answers_every_call(item):
    assert all(outcome(item, REFERENCE[item], case) for case in CASES[item])


@pytest.mark.parametrize("item", REFERENCE)
def test_two_variants_differ_from_each_other(item):
    table = {slug: [outcome(item, f, case) for case in CASES[item]] for slug, f in VARIANTS[item].items()}
    same = {
        frozenset({a, b})
        for a, b in itertools.combinations(table, 2)
        if all(equal(x, y, case) for x, y, case in zip(table[a], table[b], CASES[item], strict=True))
    }
    assert same == {pair for pair in SAME if pair <= table.keys()}


# --- weak checks -------------------------------------------------------------------------------------------


def right_on(*cases):
    """The check: the results are right for these arguments."""

    def check(item, function):
        for case in cases:
            got, expected = (outcome(item, f, case) for f in (function, REFERENCE[item]))
            assert got is not None
            assert close(got[0], expected[0], case)

    return check


def results_on(case, hold):
    """The check: `hold` is true of the results of this call."""

    def check(_item, function):
        got = call(function, case)
        assert got is not None
        assert hold(*got[0])

    return check


def mask_checks(case, is_shape):
    return {
        "shape": results_on(case, lambda mask: is_shape(mask.shape)),
        "boolean": results_on(case, lambda mask: mask.dtype == bool),
        "every row keeps a key": results_on(case, lambda mask: (mask > 0).any(axis=-1).all()),
    }


def broadcasts(shape):
    """Beside the scores of three sequences, two heads, five queries and five keys."""
    try:
        return np.broadcast_shapes(shape, (3, 2, 5, 5)) == (3, 2, 5, 5)
    except ValueError:
        return False


SMALL = np.random.default_rng(11).normal(size=(3, 7))
INPUTS = attention_inputs()
SQUARE = attention_inputs(n=5, m=5)

WEAK = {
    "single_head.softmax": {
        "shape": results_on((SMALL,), lambda w: w.shape == (3, 7)),
        "finite": results_on((ROWS_APART,), lambda w: np.isfinite(w).all()),
        "rows sum to 1": results_on((SMALL,), lambda w: np.allclose(w.sum(axis=-1), 1)),
        "small logits": right_on((SMALL,), (SMALL, 0)),
        "last axis": right_on((SMALL,), (ROWS_APART,)),
        "one row": right_on((SMALL[0],)),
        "right values": right_on(*CASES["single_head.softmax"]),
    },
    "single_head.attention": {
        "shape": results_on(INPUTS, lambda o, w: (o.shape, w.shape) == ((2, 3, 5, 6), (2, 3, 5, 7))),
        "shape at n = m": results_on(SQUARE, lambda o, w: (o.shape, w.shape) == ((2, 3, 5, 6), (2, 3, 5, 5))),
        "finite": results_on(INPUTS, lambda o, w: np.isfinite(o).all() and np.isfinite(w).all()),
        "rows sum to 1": results_on(INPUTS, lambda o, w: np.allclose(w.sum(axis=-1), 1)),
        "masked weights are 0": results_on(INPUTS, lambda o, w: (w[..., ~INPUTS[3]] == 0).all()),
        "small logits": right_on(INPUTS, per_sequence(*INPUTS)),
        "one row": right_on(without_mask(*attention_inputs(leading=(), n=1))),
        "no mask": right_on(without_mask(*INPUTS)),
        "all-True mask": right_on((*INPUTS[:3], np.ones((5, 7), dtype=bool))),
        "no batch": right_on(attention_inputs(leading=())),
        "one leading dimension": right_on(attention_inputs(leading=(3,))),
        "one sequence": right_on(per_sequence(*attention_inputs(leading=(1, 3)))),
        "n = m": right_on(SQUARE),
        "d_k = d_v": right_on(attention_inputs(d_v=4)),
        "right values": right_on(*CASES["single_head.attention"]),
    },
    "single_head.causal_mask": mask_checks((3, 7), lambda shape: shape == (3, 7))
    | {
        "shape at n = m": results_on((5, 5), lambda mask: mask.shape == (5, 5)),
        "n = m": right_on((5, 5)),
    },
    "single_head.padding_mask": mask_checks((np.array([3, 1, 4]), 6), lambda shape: shape == (3, 1, 1, 6))
    | {
        "no padding": right_on((np.array([5, 5, 5]), 5)),
        "one sequence": right_on((np.array([3]), 6)),
    },
    "single_head.decoder_mask": mask_checks((5, KEEP), broadcasts)
    | {
        "no keep": right_on((5,)),
        "no padding": right_on((5, np.ones((3, 5), dtype=bool))),
        "one sequence": right_on((5, KEEP[1:2])),
    },
}


@pytest.mark.parametrize("item", WEAK)
def test_the_bank_names_the_weak_checks_of_an_item(item):
    assert CHECKS_OF_ITEMS[item] == tuple(WEAK[item])


@pytest.mark.parametrize("item", WEAK)
def test_right_code_passes_every_weak_check(item):
    for check in WEAK[item].values():
        check(item, REFERENCE[item])


def passes(check, item, function):
    try:
        check(item, function)
    except (AssertionError, TypeError, ValueError, IndexError):  # a result of another kind fails too
        return False
    return True


@pytest.mark.parametrize("slug", BANK)
def test_a_variant_passes_the_weak_checks_that_the_bank_names(slug):
    here = [item for item in BANK[slug].variants if item in WEAK]
    for name in BANK[slug].passes:
        checked = [item for item in here if name in WEAK[item]]
        assert checked or not here, f"{name!r} is a check of none of its items"
        failed = [item for item in checked if not passes(WEAK[item][name], item, VARIANTS[item][slug])]
        assert not failed, f"fails {name!r} in {failed}"


# --- the bank itself ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", BANK)
def test_an_entry_is_complete(slug):
    pitfall = BANK[slug]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert pitfall.slug == slug
    assert pitfall.title
    assert pitfall.symptom.endswith(".")
    assert set(pitfall.passes) <= WEAK_CHECKS.keys()
    assert len(set(pitfall.passes)) == len(pitfall.passes)
    assert pitfall.variants or slug in IN_TORCH
    for sentence in (pitfall.reason, pitfall.fix):
        assert re.fullmatch(r"[A-Z`](?:[^.]|\.(?=\S))*\.", sentence), "one sentence"


def test_no_two_entries_share_a_slug_or_a_title():
    entries = [pitfall for family in FAMILIES.values() for pitfall in family]
    assert [pitfall.slug for pitfall in entries] == list(BANK)
    assert len({pitfall.title for pitfall in entries}) == len(entries)


def test_the_words_for_what_is_coded_in_torch_are_in_the_bank():
    assert BANK.keys() >= IN_TORCH


@pytest.mark.parametrize("slug", sorted(IN_TORCH))
def test_words_for_a_mistake_in_pytorch_are_not_about_numpy_alone(slug):
    pitfall = BANK[slug]
    words = " ".join([pitfall.title, pitfall.symptom, pitfall.reason, pitfall.fix])
    assert "PyTorch" in words or not re.search(r"\bnp\.|NumPy", words)


def test_variants_of_an_unknown_item_are_none():
    assert variants("single_head", "no_such_item") == {}
