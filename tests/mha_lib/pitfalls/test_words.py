"""What is told of each mistake is complete, and every mistake that is told of exists as code."""

import re
import sys

import pytest

from mha_lib.pitfalls import BANK, FAMILIES, variants
from mha_lib.pitfalls.examples import items
from mha_lib.pitfalls.weak_checks import WEAK_CHECKS

VARIANTS = {place: variants(*place.split(".")) for place in items()}
IN_TORCH = {
    slug
    for place, item in items().items()
    if "torch" in vars(sys.modules[item.right.__module__])
    for slug in VARIANTS[place]
}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_entry_is_complete(family):
    for pitfall in FAMILIES[family]:
        slug = pitfall.slug
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug), slug
        assert pitfall == BANK[slug]
        assert pitfall.title, slug
        assert pitfall.symptom.endswith("."), slug
        assert set(pitfall.passes) <= WEAK_CHECKS.keys(), slug
        assert len(set(pitfall.passes)) == len(pitfall.passes), slug
        assert any(slug in found for found in VARIANTS.values()), slug
        for sentence in (pitfall.reason, pitfall.fix):
            assert re.fullmatch(r"[A-Z`](?:[^.]|\.(?=\S))*\.", sentence), f"{slug}: one sentence"


def test_no_two_entries_share_a_slug_or_a_title():
    entries = [pitfall for family in FAMILIES.values() for pitfall in family]
    assert [pitfall.slug for pitfall in entries] == list(BANK)
    assert len({pitfall.title for pitfall in entries}) == len(entries)


def test_words_for_a_mistake_in_pytorch_are_not_about_numpy_alone():
    for slug in IN_TORCH:
        pitfall = BANK[slug]
        words = " ".join([pitfall.title, pitfall.symptom, pitfall.reason, pitfall.fix])
        assert "PyTorch" in words or not re.search(r"\bnp\.|NumPy", words), slug
