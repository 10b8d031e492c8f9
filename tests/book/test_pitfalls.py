"""The catalogue of pitfalls in the built book."""

import re

import pytest

from mha_grader.grading.messages import section_of
from mha_lib.pitfalls import BANK, FAMILIES


def test_every_pitfall_has_exactly_one_anchor(book):
    ids = [
        name
        for page in book.rglob("*.html")
        for name in re.findall(r'\bid="([^"]+)"', page.read_text("utf-8"))
    ]
    assert {slug: ids.count(slug) for slug in BANK} == dict.fromkeys(BANK, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_where_feedback_points_to_there_is_the_section(book, family):
    for pitfall in FAMILIES[family]:
        title, address = section_of(pitfall.slug)
        page, anchor = address.split("#")
        text = (book / "book" / page).read_text("utf-8")
        assert f"<h1>{title}<" in text
        assert f'<section class="pitfall" id="{anchor}">' in text


def test_an_entry_shows_what_was_run_letter_by_letter_also_when_it_is_copied(page, addresses):
    page.goto(f"{addresses['file']}/book/pitfalls_mask.html#causal-hides-self")
    text = page.locator("#causal-hides-self").evaluate(
        "section => { getSelection().selectAllChildren(section); return getSelection().toString(); }"
    )
    assert "return np.arange(m) < np.arange(n)[:, None] + (m - n)" in text
    assert "causal_mask(3)" in text
    assert "[[False False False]\n [ True False False]\n [ True  True False]]" in text
    assert BANK["causal-hides-self"].symptom in text
    assert "the mask is boolean" in text


def test_every_pitfall_is_linked_from_the_list_of_all(page, addresses):
    page.goto(f"{addresses['file']}/book/pitfalls_catalogue.html")
    links = page.locator("ul.pitfall-index a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert [link.split("#")[1] for link in links] == sorted(BANK)
