"""Every page of the built book, opened once in a browser that has no network; each test looks at the open page."""

import re

import pytest
import yaml

from .accessibility import serious_findings
from .conftest import ROOT, forget, watched_page
from .test_accessibility import PALE
from .test_pages import PAGES

# Serious findings that are not ours to mend, by rule and page.
THEIRS = {
    # sphinxcontrib-bibtex calls the references a list and puts anchors between its items
    "aria-required-children": ["book/references"],
}
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
ALL_MATHEMATICS = "elements => elements.map(e => Boolean(e.querySelector('mjx-container svg')))"
MATHEMATICS_DONE = (
    "() => !document.querySelector('.math') || window.MathJax?.startup?.promise?.then(() => true)"
)
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


@pytest.fixture(scope="module")
def window(launch):
    """A page in a browser that draws nothing by itself, which saves a quarter of its time: nothing moves here."""
    browser = launch("--disable-threaded-compositing")
    with watched_page(browser) as page:
        yield page
    browser.close()


@pytest.fixture(scope="module", params=PAGES)
def name(request):
    """A page's name. All tests of a page follow each other, so that it is opened once."""
    return request.param


@pytest.fixture(scope="module")
def visited(window, addresses, name):
    """The open page, in which later tests find what earlier ones left; setting its mathematics takes long."""
    window.goto("about:blank")  # scripts of the page before miss what was removed from it
    forget(window)
    window.emulate_media(media="screen")
    window.set_viewport_size({"width": 1280, "height": 800})
    window.goto(f"{addresses['file']}/{name}.html", wait_until="load")
    window.wait_for_function(MATHEMATICS_DONE)
    return window


@pytest.fixture(scope="module")
def known_looks():
    """The looks of words whose colours were examined on another page."""
    return []


def strangers(page, home):
    """What a page asked for that lies elsewhere."""
    return [url for url in page.requests if not url.startswith((home, "data:"))]


def test_a_page_needs_nothing_from_elsewhere_and_shows_its_mathematics(visited, addresses):
    assert visited.troubles == []
    assert strangers(visited, addresses["file"]) == []
    assert all(visited.locator("article .math").evaluate_all(ALL_MATHEMATICS))
    assert visited.locator("mjx-merror, .error, .problematic").count() == 0


def test_a_chapter_is_no_endless_scroll(visited, name):
    visited.set_viewport_size({"width": 1280, "height": 800})
    if name in CHAPTERS:
        assert visited.locator("article").bounding_box()["height"] <= A_PAGE


@pytest.mark.parametrize("width", [320, 360])
def test_a_telephone_cuts_nothing_and_does_not_scroll_sideways(visited, width):
    visited.set_viewport_size({"width": width, "height": 640})
    assert visited.evaluate("document.scrollingElement.scrollWidth") <= width
    assert visited.evaluate(CUT, [width, True]) == []


# The theme lets the keyboard reach what scrolls, anew 0.3 s after a window has another size. Printing is none.
NO_NEWS_OF_SIZES = "addEventListener('resize', event => event.stopImmediatePropagation(), {capture: true})"


def test_paper_cuts_nothing_and_folds_nothing(visited):
    visited.evaluate(NO_NEWS_OF_SIZES)
    visited.set_viewport_size({"width": PAPER, "height": 1000})
    visited.emulate_media(media="print")
    visited.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert visited.evaluate(CUT, [PAPER, False]) == []
    folded = "all => all.filter(e => !e.getBoundingClientRect().height).map(e => e.textContent)"
    assert visited.locator("article details > :not(summary)").evaluate_all(folded) == []
    assert visited.locator("article .toggle-hidden").count() == 0


def test_everyone_can_read_a_page(visited, name, known_looks):
    visited.emulate_media(media="screen")
    visited.evaluate("window.dispatchEvent(new Event('afterprint'))")  # what paper unfolds is folded again
    visited.set_viewport_size({"width": 1280, "height": 800})
    findings, looks = serious_findings(visited, known_looks)
    known_looks += looks
    assert [each for each in findings if name not in THEIRS.get(each["rule"], [])] == []


def test_what_cannot_be_read_is_noticed_in_this_browser_too(window):
    window.set_content(PALE)
    assert len(serious_findings(window)[0]) == 3


def test_what_is_cut_is_noticed(window):
    window.set_viewport_size({"width": PAPER, "height": 1000})
    wide = "<div style='width: 900px'>wide</div>"
    window.set_content(f"<article>{wide}<div style='overflow: auto'>{wide}</div></article>")
    assert len(window.evaluate(CUT, [PAPER, True])) == 1
    assert len(window.evaluate(CUT, [PAPER, False])) == 3
    hidden = "<div style='width: 300px; overflow: hidden'>" + wide + "</div>"
    window.set_content(f"<article>{hidden}</article>")
    assert len(window.evaluate(CUT, [PAPER, True])) == 2
    window.set_content("<article><p>short</p></article>")
    assert window.evaluate(CUT, [PAPER, True]) == window.evaluate(CUT, [PAPER, False]) == []


def kind_of_page(text):
    """A page's scripts without what they quote: pages whose scripts are alike make the same requests."""
    scripts = re.findall(r"<script.*?</script>", text, re.DOTALL)
    return frozenset(re.sub(r"\"[^\"]*\"|'[^']*'", "", script) for script in scripts)


def test_pages_need_nothing_from_elsewhere_over_http_either(chromium, addresses, book):
    """One page of each kind; that links stay within the book is seen in its files."""
    kinds = {}
    for name in PAGES:
        kinds.setdefault(kind_of_page((book / f"{name}.html").read_text("utf-8")), name)
    assert {"index", "search", "book/all_heads", "book/one_query", "book/calculator"} < set(kinds.values())
    for name in kinds.values():
        with watched_page(chromium) as page:
            page.goto(f"{addresses['http']}/{name}.html", wait_until="networkidle")
            assert page.troubles == []
            assert strangers(page, addresses["http"]) == []
