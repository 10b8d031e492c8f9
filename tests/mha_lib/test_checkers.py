"""The reference checks accept every right style and catch every known mistake, for more than one seed of theirs."""

import warnings

import numpy as np
import pytest

from mha_lib import checkers, heads, multi_head
from mha_lib.attention import attention
from mha_lib.pitfalls import variants
from mha_lib.styles import styles

CHECKS = {
    "single_head.attention": (checkers.check_attention, attention),
    "multi_head.split_heads": (checkers.check_split_heads, heads.split_heads),
    "multi_head.multi_head_attention": (checkers.check_multi_head_attention, multi_head.multi_head_attention),
}


@pytest.fixture(params=CHECKS)
def case(request):
    return request.param, *CHECKS[request.param]


def test_what_is_right_is_accepted(case):
    item, check, reference = case
    assert check(reference) is None
    found = styles(*item.split("."))
    assert found
    for style in found.values():
        assert check(style) is None


def test_every_known_mistake_is_caught(case):
    item, check, _ = case
    found = variants(*item.split("."))
    assert found
    missed = []
    for slug, variant in found.items():
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(variant)
            except Exception:
                continue
        missed.append(slug)
    assert not missed


def test_a_check_does_not_change_the_callers_random_numbers(case):
    _, check, reference = case
    np.random.seed(5)
    before = np.random.random()
    np.random.seed(5)
    check(reference)
    assert np.random.random() == before


@pytest.mark.parametrize(
    "junk", [lambda *args: None, lambda *args: 1, lambda *args: (np.ones(1), np.ones(1))]
)
def test_junk_is_caught(case, junk):
    with pytest.raises((AssertionError, TypeError, AttributeError, ValueError)):
        case[1](junk)
