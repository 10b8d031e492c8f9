"""Every mistake in the items that have `CALLS` differs from the right code and from all others.

That those in the other items do is what the hidden tests prove.
"""

import copy
import itertools

import numpy as np
import pytest

from mha_lib.pitfalls import variants
from mha_lib.pitfalls.examples import items
from mha_lib.pitfalls.weak_checks import close, tolerance
from mha_lib.pitfalls.weak_checks.single_head import CALLS

REFERENCE = {place: items()[place].right for place in CALLS}
VARIANTS = {item: variants(*item.split(".")) for item in REFERENCE}
EVERY_VARIANT = [(item, slug) for item, found in VARIANTS.items() for slug in found]

# Pairs of variants of one item that no allowed input tells apart by more than the tolerance.
SAME = {
    # exp(−1e-9) is 1 to nine digits
    frozenset({"masked-scores-zero", "mask-fill-tiny"}),
}


@pytest.mark.parametrize("arguments", CALLS["single_head.attention"])
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


def equal(a, b, arguments):
    """Two outcomes of a call with these arguments are the same, changes to the arguments included."""
    if a is None or b is None:
        return a is b
    allowed = max(tolerance(arguments), 1e-5)  # by the contracts
    return all(close(one, other, allowed) for one, other in zip(a, b, strict=True))


@pytest.mark.parametrize(("item", "slug"), EVERY_VARIANT)
def test_a_variant_differs_from_the_reference_on_an_allowed_input(item, slug):
    wrong, right = VARIANTS[item][slug], REFERENCE[item]
    assert not all(
        equal(outcome(item, wrong, case), outcome(item, right, case), case) for case in CALLS[item]
    )


@pytest.mark.parametrize("item", REFERENCE)
def test_the_reference_answers_every_call(item):
    assert all(outcome(item, REFERENCE[item], case) for case in CALLS[item])


@pytest.mark.parametrize("item", REFERENCE)
def test_two_variants_differ_from_each_other(item):
    table = {slug: [outcome(item, f, case) for case in CALLS[item]] for slug, f in VARIANTS[item].items()}
    same = {
        frozenset({a, b})
        for a, b in itertools.combinations(table, 2)
        if all(equal(x, y, case) for x, y, case in zip(table[a], table[b], CALLS[item], strict=True))
    }
    assert same == {pair for pair in SAME if pair <= table.keys()}
