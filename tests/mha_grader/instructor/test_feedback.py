"""The page of a student: what it says, that it is safe, and that it needs nothing but itself."""

import base64
import hashlib
import json
import re
import zipfile
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mha_grader.course.assignment import Assignment, Cell
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor import feedback
from mha_grader.instructor.entry import Entry
from mha_lib import pitfalls

SCALE = pitfalls.BANK["no-scale"]


def one_head(folder, stub, solution, *more):
    """An assignment with the item `attention` and more cells."""
    text = "## `attention`\n\n**Points** 4 · **Book** *One head*,\nsection *Scaled dot-product attention*\n\nMore."
    return Assignment(
        name="single_head",
        version="1",
        cells=(
            Cell("intro", "markdown", "# One head\n\nText.", "# One head\n\nText."),
            Cell("attention_text", "markdown", text, text),
            Cell("attention", "solution", stub, solution, "attention"),
            *more,
        ),
        files=folder,
        metadata={},
    )


@pytest.fixture
def assignment(tmp_path):
    return one_head(tmp_path, "stub", "solution")


def part(name, status, message="", pitfall=None, points=2.0):
    return PartRecord(name, points, status, f"What {name} shows.", pitfall, message)


def record(
    *parts, source="def attention(Q, K, V):\n    return 1\n", status="graded", notes=(), item_notes=()
):
    item = ItemRecord("attention", parts, source, item_notes)
    return SubmissionRecord("single_head", "1", "abc", status, (item,), notes)


class Reader(HTMLParser):
    """Collects elements, attributes and text; complains of elements that are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.pieces = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.pieces.append(data)

    @property
    def text(self):
        return " ".join("".join(self.pieces).split())


def read(assignment, record, entry=None, student="ann"):
    return Reader(feedback.page(assignment, student, record, entry or Entry()))


def test_a_known_mistake_is_named_explained_and_placed_in_the_book(assignment):
    text = read(
        assignment,
        record(part("values", "pass"), part("scale", "fail", "Not shown.", "no-scale"), part("mask", "pass")),
    ).text
    assert "4 of 6 points" in text
    assert f"2 points in attention: {SCALE.title}" in text
    assert f"attention 4 / 6 2 of 3 parts: {SCALE.title}" in text
    assert "What scale shows." in text
    assert f"{SCALE.title} (no-scale)" in text
    assert SCALE.reason in text
    assert f"What to do. {SCALE.fix}" in text
    assert "The book runs it: Pitfalls: scale, pitfalls_scale.html#no-scale" in text
    assert "Where the book explains it: One head, section Scaled dot-product attention." in text


def test_with_the_books_address_the_place_is_a_link(assignment):
    page = Reader(
        feedback.page(
            assignment, "ann", record(part("scale", "fail", "", "no-scale")), Entry(), "https://a.b/book/"
        )
    )
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert "https://a.b/book/pitfalls_scale.html#no-scale" in links
    assert "The book runs it: Pitfalls: scale" in page.text


def test_what_passed_with_right_code_for_an_earlier_item_says_so(assignment):
    parts = (replace(part("values", "pass"), carried=True), part("mask", "fail", "Not right."))
    one = record(*parts)
    one = replace(one, items=(replace(one.items[0], stood_in=("softmax",)),))
    text = read(assignment, one).text
    assert (
        "This item was tested twice: with your code alone, and with correct code for softmax, where" in text
    )
    assert "values passed with correct code, 2 / 2" in text
    assert "mask not passed, 0 / 2" in text
    two = replace(one, items=(replace(one.items[0], stood_in=("softmax", "mask", "scale")),))
    assert "correct code for softmax, mask and scale, where" in read(assignment, two).text
    for template in ("verdict.html.j2", "verdict.txt.j2"):
        shown = feedback.render(template, item=one.items[0])
        assert "passed with correct code" in shown
        assert "tested twice" in shown


def test_a_mistake_is_explained_once_and_then_referred_to(assignment):
    text = read(
        assignment,
        record(part("scale", "fail", "", "no-scale"), part("batch scale", "fail", "", "no-scale")),
    ).text
    assert text.count(SCALE.reason) == 1
    assert text.count(f"{SCALE.title}: see the top of the page.") == 2


def test_an_unknown_mistake_shows_its_difference_on_the_public_example(assignment):
    message = "Off by 3.\nTry it yourself: attention(a)\nat index [0]: expected 2, got 3"
    page = read(assignment, record(part("values", "fail", message)))
    assert "Off by 3. Try it yourself: attention(a) at index [0]: expected 2, got 3" in page.text


def test_different_failures_are_each_told_and_errors_once(assignment):
    first, second = "Not right.\nexpected 1, got 2", "Not right.\nexpected 3, got 4"
    text = read(assignment, record(part("one", "fail", first), part("two", "fail", second))).text
    assert "expected 1, got 2" in text
    assert "expected 3, got 4" in text
    text = read(assignment, record(part("one", "error", first), part("two", "error", second))).text
    assert "expected 3, got 4" not in text
    assert text.count("See the top of the page.") == 2
    text = read(assignment, record(part("one", "fail", first), part("two", "fail", second))).text
    assert "4 points in attention: Not right. expected 1, got 2" in text


def test_many_parts_with_one_verdict_for_one_reason_are_shown_together(assignment):
    waiting = [part(f"w{i}", "not-run", "Not run.") for i in range(5)]
    failed = [part(f"f{i}", "fail", "", "no-scale") for i in range(4)]
    text = read(assignment, record(part("one", "pass"), *waiting, *failed, part("two", "pass"))).text
    assert "one passed, 2 / 2" in text
    assert "5 parts not run, 0 / 10 Not run. w0 (2): What w0 shows. w1 (2)" in text
    assert f"4 parts not passed, 0 / 8 {SCALE.title}" in text
    assert text.count(SCALE.reason) == text.count("What f3 shows.") == 1
    text = read(assignment, record(*waiting[:3])).text
    assert text.count("Not run.") == 3


@pytest.mark.parametrize(("status", "words"), feedback.STATUS.items())
def test_every_status_has_words(assignment, status, words):
    page = read(assignment, record(part("values", status, "Because.")))
    assert f"values {words}, {2 if status == 'pass' else 0} / 2" in page.text
    assert ("Because." in page.text) == (status != "pass")


def test_the_code_is_shown_as_graded_with_a_line_for_each_line(assignment):
    page = read(assignment, record(part("values", "pass"), source="a = 1\n\n  b = '<&>'\n"))
    block = [attributes for tag, attributes in page.elements if attributes.get("class") == "source"]
    assert len(block) == 1
    lines = re.findall(
        r"<span>(.*?)</span>", feedback.page(assignment, "ann", record(source="a\n\n  b < c\n"), Entry())
    )
    assert lines == ["a", "", "  b &lt; c"]


def test_notes_of_the_hand_in_and_of_an_item_are_told(assignment):
    text = read(
        assignment,
        record(
            part("values", "pass"), status="repaired", notes=("it was renamed",), item_notes=("two cells",)
        ),
    ).text
    assert "About your hand-in It was renamed." in text
    assert "Please note: two cells." in text


@pytest.mark.parametrize(
    "status", ["missing", "not-json", "not-a-notebook", "too-large", "unreadable", "not-a-file"]
)
def test_an_unusable_hand_in_says_what_to_do_and_nothing_about_parts(assignment, status):
    text = read(
        assignment, record(part("values", "not-run"), status=status, notes=("hand it in again",))
    ).text
    assert "Nothing in your hand-in could be graded Hand it in again." in text
    assert "0 of 2 points" in text
    assert "What values shows" not in text


def test_what_people_added_is_in_it(assignment):
    entry = Entry(
        by_hand={"attention": 3.5}, comments={"attention": "Well <done>"}, late_seconds=60, penalty=0.5
    )
    text = read(assignment, record(part("values", "pass"), part("scale", "fail")), entry).text
    assert "3 of 4 points" in text
    assert "came late: 0.5 points were taken off" in text
    assert "An instructor set this score; the tests gave 2." in text
    assert "From your instructor Well <done>" in text
    late = read(assignment, record(part("values", "pass")), Entry(late_seconds=60)).text
    assert "came late, and it cost no points" in late


HOSTILE = "</pre></style><script>alert(1)</script>\x1b[31m\x1b]8;;http://x\x07"
HOSTILE += "{{ 7 * 7 }}{% raw %}\x00\u202e\" onload='x"


def test_nothing_that_a_student_wrote_is_markup(assignment):
    hostile = record(
        part("values", "error", f"Raised.\n{HOSTILE}"),
        source=HOSTILE,
        status="repaired",
        notes=(HOSTILE,),
        item_notes=(HOSTILE,),
    )
    page = feedback.page(assignment, HOSTILE, hostile, Entry(comments={"attention": HOSTILE}))
    reader = Reader(page)
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "img", "form", "base"}
    assert not [
        a for _, attributes in reader.elements for a in attributes if a.startswith("on") or a == "style"
    ]
    assert not set(page) & {"\x1b", "\x00", "\u202e"}
    assert "{{ 7 * 7 }}{% raw %}" in reader.text
    verdict = feedback.render("verdict.html.j2", item=hostile.items[0])
    about = feedback.render("about.html.j2", record=hostile)
    assert "<script" not in verdict + about
    assert "\n\n" not in about.strip()  # a blank line would end the block of HTML in Markdown


def test_the_page_asks_nobody_for_anything(assignment):
    page = feedback.page(assignment, "ann", record(part("values", "pass")), Entry())
    reader = Reader(page)
    assert not re.search(r"https?://|//[a-z]", page)
    assert not [
        v for _, attributes in reader.elements for k, v in attributes.items() if k in ("src", "srcset")
    ]
    links = [attributes["href"] for tag, attributes in reader.elements if tag == "a"]
    assert links == []
    assert {"id": "attention"} in [attributes for tag, attributes in reader.elements if tag == "section"]


def test_its_policy_allows_its_own_style_and_nothing_else(assignment):
    page = feedback.page(assignment, "ann", record(part("values", "pass")), Entry())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_sequences_for_terminals_are_taken_out_and_the_rest_made_visible():
    assert (
        feedback.plain("a\x1b[1;31mred\x1b[0m\r\nb\tc\x07 d\xa0e")
        == "ared\nb\tc\N{REPLACEMENT CHARACTER} d e"
    )


def test_the_archive_of_pages_has_a_folder_for_each_student_by_moodles_name_if_it_has_one(tmp_path):
    (tmp_path / "grades").mkdir()
    (tmp_path / "feedback").mkdir()
    collected = {"Zoë M": {"scheme": "moodle", "name": "Zoë M", "number": "7"}}
    collected["12345"] = {"scheme": "canvas", "name": "leeann", "number": "12345"}
    (tmp_path / "grades" / "single_head-collected.json").write_text(json.dumps(collected))
    pages = {student: tmp_path / f"{student}.html" for student in ("Zoë M", "12345", "bob")}
    for student, page in pages.items():
        page.write_text(f"page of {student}")
    path = feedback.write_zip(Course(tmp_path), "single_head", pages)
    assert path == tmp_path / "feedback" / "single_head.zip"
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {
            "Zoë M_7_assignsubmission_file_/single_head.html": "page of Zoë M",
            "12345/single_head.html": "page of 12345",
            "bob/single_head.html": "page of bob",
        }
    before = path.read_bytes()
    assert feedback.write_zip(Course(tmp_path), "single_head", pages).read_bytes() == before
    assert [found.name for found in (tmp_path / "feedback").iterdir()] == ["single_head.zip"]


# --- what is read first ------------------------------------------------------------------------------------


class Unfolded(HTMLParser):
    """Collects the words of a page that are seen before anything is unfolded."""

    def __init__(self, page):
        super().__init__()
        self.folds, self.hidden, self.words = [], 0, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "details":
            self.folds.append("open" in dict(attributes))
        self.hidden += tag in ("style", "title")
        if tag == "summary" and not self.folds[-1]:
            self.folds[-1] = True

    def handle_endtag(self, tag):
        if tag == "details":
            self.folds.pop()
        self.hidden -= tag in ("style", "title")
        if tag == "summary":
            self.folds[-1] = False

    def handle_data(self, data):
        if all(self.folds) and not self.hidden:
            self.words += data.split()


def unfolded(page):
    return Unfolded(page).words


def graded(*items):
    return SubmissionRecord("single_head", "1", "abc", "graded", items)


def test_the_reason_that_costs_most_leads_with_what_rests_on_it():
    waiting = [
        part(f"w{i}", "not-run", f"Not run, since it rests on the part “{need}”.", points=3)
        for i, need in enumerate(["scale", "w0", "values"])
    ]
    first = ItemRecord(
        "attention", (part("values", "pass"), part("scale", "fail", "", "no-scale"), *waiting[:2])
    )
    second = ItemRecord(
        "masked", (part("mask", "fail", "Not masked.", points=4), part("scale", "fail", "", "no-scale"))
    )
    third = ItemRecord("slow", (part("time", "timeout", "No end.", points=0.5),))
    main, other = feedback.leads(graded(first, second, third))
    assert (main.part.pitfall, main.points, main.items) == (
        "no-scale",
        2 + 3 + 3 + 2,
        ("attention", "masked"),
    )
    assert (other.part.message, other.points) == ("Not masked.", 4)
    assert (
        feedback.leads(graded(third, ItemRecord("right", (part("values", "pass"),))))[0].part.message
        == "No end."
    )
    assert feedback.leads(graded(ItemRecord("right", (part("values", "pass"),)))) == []


def test_a_page_is_short_before_anything_is_unfolded(assignment):
    longest = sorted(
        pitfalls.BANK, key=lambda slug: len(pitfalls.BANK[slug].reason + pitfalls.BANK[slug].fix)
    )[-9:]
    items = [
        ItemRecord(
            f"item_{i}",
            (*(part(f"p{j}", "fail", "", slug) for j in range(8)), part("q", "fail", "word " * 100)),
            "code\n" * 50,
        )
        for i, slug in enumerate(longest)
    ]
    words = unfolded(feedback.page(assignment, "ann", graded(*items), Entry()))
    assert 50 < len(words) <= 300
    right = [ItemRecord(f"item_{i}", (part("values", "pass"),) * 9, "code") for i in range(9)]
    words = unfolded(feedback.page(assignment, "ann", graded(*right), Entry()))
    assert len(words) < 100
    assert "values" not in words


def test_what_an_instructor_wrote_is_never_folded(assignment):
    entry = Entry(by_hand={"attention": 3.0}, comments={"attention": "See me."})
    words = " ".join(unfolded(feedback.page(assignment, "ann", record(part("values", "pass")), entry)))
    assert "See me." in words
    assert "An instructor set this score" in words
