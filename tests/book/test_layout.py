"""How long pages are, and that a telephone and a sheet of paper show all that is on them."""

import pytest
import yaml

from .conftest import ROOT, toc_pages
from .test_pages import open_page

A_PAGE = 12_000  # pixels, at a width of 1280
PAPER = 718  # pixels between the margins of an A4 page in Chromium
TO_LOOK_UP = ("Reference", "For instructors")  # parts whose pages nobody reads from start to end
PARTS = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))["parts"]
CHAPTERS = [
    page["file"]
    for part in PARTS
    for page in part["chapters"]
    if part["caption"] not in TO_LOOK_UP and page["file"].startswith("book/")
]
# What sticks out of the window, or out of an element that hides it; boxes that scroll may hold wide things, except
# on paper. A formula's copy for screen readers is invisible; a line of code may end with spaces behind the edge.
CUT = """([width, mayScroll]) => {
  const scrolls = e => mayScroll && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  const hides = e => getComputedStyle(e).overflowX != 'visible';
  const around = e => e.parentElement.tagName == 'BODY' ? [] : [e.parentElement, ...around(e.parentElement)];
  return [...document.querySelectorAll('article *')].filter(e => {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || e.ownerSVGElement || e.closest('mjx-assistive-mml') || e.closest('pre *'))
      return false;
    const outer = around(e), inner = outer.findIndex(scrolls);
    const holders = inner < 0 ? outer : outer.slice(0, inner);
    if (e.matches('pre, div') && hides(e) && !scrolls(e) && e.scrollWidth > e.clientWidth + 1) return true;
    const edges = holders.filter(hides).map(h => h.getBoundingClientRect()).filter(b => b.width > 2);
    return box.right > 1 + Math.min(...edges.map(b => b.right), inner < 0 ? width : Infinity);
  }).map(e => `${e.tagName} ${e.textContent.trim().slice(0, 60)}`);
}"""


@pytest.mark.parametrize("name", toc_pages())
def test_a_chapter_is_no_endless_scroll_and_a_narrow_screen_and_paper_cut_nothing(page, addresses, name):
    """One visit, in which all is looked at: most of its time goes into setting the mathematics."""
    page.set_viewport_size({"width": 1280, "height": 800})
    open_page(page, f"{addresses['file']}/{name}.html")
    if name in CHAPTERS:
        assert page.locator("article").bounding_box()["height"] <= A_PAGE
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 320
    assert page.evaluate(CUT, [320, True]) == []
    page.set_viewport_size({"width": PAPER, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(CUT, [PAPER, False]) == []
    folded = "all => all.filter(e => !e.getBoundingClientRect().height).map(e => e.textContent)"
    assert page.locator("article details > :not(summary)").evaluate_all(folded) == []
    assert page.locator("article .toggle-hidden").count() == 0


def test_what_is_cut_is_noticed(page):
    page.set_viewport_size({"width": PAPER, "height": 1000})
    wide = "<div style='width: 900px'>wide</div>"
    page.set_content(f"<article>{wide}<div style='overflow: auto'>{wide}</div></article>")
    assert len(page.evaluate(CUT, [PAPER, True])) == 1
    assert len(page.evaluate(CUT, [PAPER, False])) == 3
    hidden = "<div style='width: 300px; overflow: hidden'>" + wide + "</div>"
    page.set_content(f"<article>{hidden}</article>")
    assert len(page.evaluate(CUT, [PAPER, True])) == 2
    page.set_content("<article><p>short</p></article>")
    assert page.evaluate(CUT, [PAPER, True]) == page.evaluate(CUT, [PAPER, False]) == []
