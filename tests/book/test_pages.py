"""The built book as files: links, weights, tables; and what a reader does on its pages."""

import posixpath
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from .conftest import toc_pages

PAGES = [*toc_pages(), "index", "search", "genindex"]


class Page(HTMLParser):
    """What a page offers to links, where its own lead, and which pictures it shows."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.pictures = {"", "top"}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.add(found.get("id") or found.get("name") or "")
        if tag == "img":
            self.pictures.append(found["src"])
        self.links += [found[name] for name in ("href", "src") if found.get(name)]


@pytest.fixture(scope="module")
def parsed(book):
    return {f"{name}.html": Page((book / f"{name}.html").read_text("utf-8")) for name in PAGES}


def target(page, link):
    """The file that a link on a page leads to, from the book's root, and the place in it."""
    parts = urlsplit(link)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
    return path if parts.path else page, unquote(parts.fragment)


def test_every_link_inside_the_book_leads_to_a_file_and_to_a_place_in_it(book, parsed):
    lost = []
    for name, page in parsed.items():
        for link in page.links:
            if not urlsplit(link).scheme:
                path, anchor = target(name, link)
                there = (book / path).is_file() and not path.startswith("..")
                if not there or (path in parsed and anchor not in parsed[path].anchors):
                    lost.append((name, link))
    assert lost == []


def test_no_page_is_heavy_beside_what_all_pages_share(book, parsed):
    for name, page in parsed.items():
        own = {target(name, picture)[0] for picture in page.pictures if not picture.startswith("data:")}
        own = {path for path in own if not path.startswith("_static/")}
        assert sum((book / path).stat().st_size for path in [name, *own]) <= 1_000_000, name


def test_every_page_that_was_built_is_opened_here(book):
    ours = {path.relative_to(book).with_suffix("").as_posix() for path in book.rglob("*.html")}
    ours = {name for name in ours if not name.startswith("_static/")}
    assert ours == set(PAGES)


@pytest.mark.parametrize("name", toc_pages())
def test_a_table_is_a_table_and_every_figure_says_in_words_what_it_shows(book, name):
    article = BeautifulSoup((book / f"{name}.html").read_text("utf-8"), "html.parser").find("article")
    texts = [each.get_text().strip() for each in article.find_all("p")]
    assert [text for text in texts if text.startswith("|") or "|—|" in text] == []
    figures = article.select(".cell_output img")
    assert [figure["src"] for figure in figures if len(figure.get("alt", "")) < 40] == []


def test_chapters_have_mathematics_and_figures_to_look_at(page, addresses):
    page.goto(f"{addresses['file']}/book/one_head.html")
    assert page.locator("article .math").count() > 10
    assert page.locator("article figure.drawing, article .cell_output img").count() >= 3


def test_an_answer_opens_with_the_keyboard_and_says_why(page, addresses):
    page.goto(f"{addresses['file']}/book/one_head.html")
    question = page.locator(".admonition.check").first
    for kind, verdict in (("wrong", "No."), ("right", "Right.")):
        answer = question.locator(f"details.{kind}").first
        assert not answer.locator(".sd-card-body").is_visible()
        answer.locator("summary").focus()
        page.keyboard.press("Enter")
        assert answer.locator(".sd-card-body").is_visible()
        before = "e => getComputedStyle(e, '::before').content"
        assert verdict in answer.locator(".sd-card-body p").first.evaluate(before)


def test_search_works_from_a_folder(page, addresses):
    page.goto(f"{addresses['file']}/search.html?q=causal")
    page.locator("ul.search li").first.wait_for()
    assert "One head" in page.locator("ul.search").inner_text()
    assert page.troubles == []


def test_a_name_of_several_words_is_found_and_marked(page, addresses):
    """In a table it has marks where it may be broken; search finds it all the same, and marks it where it leads."""
    page.goto(f"{addresses['file']}/search.html?q=key_padding_mask")
    page.locator("ul.search li a", has_text="Masks and fused kernels").click()
    page.locator("mark.sought").first.wait_for()
    assert set(page.locator("mark.sought").all_inner_texts()) == {"key_padding_mask"}
    page.reload()
    assert page.locator("mark.sought").count() == 0  # the next visit starts clean


def test_titles_of_tabs_tell_pages_apart(book):
    titles = [
        re.search("<title>(.*?)</title>", (book / f"{name}.html").read_text("utf-8"))[1]
        for name in toc_pages()
    ]
    assert len(set(titles)) == len(titles)
    assert titles[0] == "Multi-head attention, built and tested"
    assert "Assignment: single_head &#8212; Multi-head attention" in titles
    assert [title for title in titles if len(title) > 70] == []
