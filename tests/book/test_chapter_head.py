"""The head of a chapter: its minutes, and where its links lead."""

import pickle
import re

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document

from book._ext.chapter_head import WORDS_A_MINUTE, main_path_words, minutes

from .conftest import ROOT, toc_pages

LIMIT = 25 * WORDS_A_MINUTE  # words on a chapter's main path
PAGES = {page: ROOT / f"{page}.md" for page in toc_pages() if page.startswith("book/")}
CHAPTERS = [
    page for page, file in PAGES.items() if "**The question of this chapter:**" in file.read_text("utf-8")
]


def paragraph(words):
    return nodes.paragraph("", "", nodes.Text("word " * words))


def test_what_counts_are_the_words_that_a_reader_sees_without_opening_anything():
    document = new_document("page")
    document += nodes.title("", "not counted")
    document += nodes.paragraph(
        "", "", nodes.Text("two words "), nodes.math("", "x + y"), nodes.strong("", "three")
    )
    document += nodes.bullet_list("", nodes.list_item("", paragraph(4)))
    document += nodes.note("", paragraph(5))
    seen = 3 + 4 + 5
    assert main_path_words(document) == seen
    folded = [
        nodes.container("", paragraph(10), design_component="dropdown"),
        nodes.note("", paragraph(10), classes=["dropdown"]),
        nodes.container("", paragraph(10), nb_element="cell_code"),
        nodes.literal_block("", "five words in a listing"),
        nodes.math_block("", "a + b"),
        nodes.table("", paragraph(10)),
        nodes.figure("", nodes.caption("", "a caption"), paragraph(10)),
        nodes.definition_list("", paragraph(10), classes=["chapter-head"]),
    ]
    for node in folded:
        document += nodes.section("", node)
        assert main_path_words(document) == seen, node


def test_minutes_are_whole_and_never_none():
    assert [minutes(words) for words in (0, 499, 640, 660, LIMIT)] == [5, 5, 6, 7, 25]


def test_the_main_path_of_each_chapter_is_short_enough(book):
    """All chapters are listed when one is too long, with the number of words of each."""
    words = {}
    for page in CHAPTERS:
        with (ROOT / "_build" / ".doctrees" / f"{page}.doctree").open("rb") as file:
            words[page] = main_path_words(pickle.load(file))
    assert {page: count for page, count in words.items() if count > LIMIT} == {}, words


@pytest.mark.parametrize("page", CHAPTERS)
def test_a_chapter_opens_with_its_head(book, page):
    article = BeautifulSoup((book / f"{page}.html").read_text("utf-8"), "html.parser").find("article")
    head = article.find("h1").find_next_sibling()
    assert "chapter-head" in head["class"]
    assert re.search(r"about \d+ minutes", head.get_text())
