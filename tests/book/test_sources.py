"""What holds of the book's text before it is built."""

import json
import re

import pytest

from mha_grader.grading.messages import section_of
from mha_lib.pitfalls import BANK, FAMILIES
from mha_lib.pitfalls.catalogue import expose

from .conftest import ROOT, toc_pages

PAGES = sorted(ROOT.glob("book/*.md"))
CHAPTERS = [page for page in PAGES if "**The question of this chapter:**" in page.read_text("utf-8")]
TABLES = ("kill_table", "plain_nbgrader")  # written by a program
CODE = re.compile(r"^```\{code-cell\}.*?^```$", re.MULTILINE | re.DOTALL)


def name_of(page):
    return page.stem


def test_every_page_is_in_the_table_of_contents():
    assert {f"book/{page.stem}" for page in PAGES} == {
        name for name in toc_pages() if name.startswith("book/")
    }


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in TABLES], ids=name_of)
def test_lines_are_short_enough_to_read_and_code_to_fit_its_box(page):
    text = page.read_text("utf-8")
    shown = "\n".join(cell for cell in CODE.findall(text) if "hide-input" not in cell)
    assert [line for line in shown.splitlines() if len(line) > 78] == []
    assert [line for line in CODE.sub("", text).splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in TABLES], ids=name_of)
def test_no_line_of_text_is_taken_for_a_comment(page):
    """MyST leaves out a line that begins with a percent sign, and cuts the paragraph in two."""
    assert re.findall(r"^ *%.*", CODE.sub("", page.read_text("utf-8")), re.MULTILINE) == []


@pytest.mark.parametrize("page", CHAPTERS, ids=name_of)
def test_a_chapter_has_all_its_parts(page):
    text = page.read_text("utf-8")
    parts = [":class: outcomes", ":class: check", ":class-container: right", "{solution}"]
    parts += [":class: misconception", "## Exercises", "## Sources", "{cite:t}"]
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("page", CHAPTERS, ids=name_of)
def test_the_exercises_of_a_chapter_lead_to_an_assignment_and_offer_it_for_download(page):
    exercises = page.read_text("utf-8").split("\n## Exercises\n")[1].split("\n## ")[0]
    pages = set(re.findall(r"\]\(\.\./(exercises/\w+/\w+\.ipynb)\)", exercises))
    downloads = set(re.findall(r"\{download\}`[^`<]+<\.\./(exercises/\w+/\w+\.ipynb)>`", exercises))
    assert downloads
    assert downloads <= pages


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_with_a_notebook_everything_is_offered_that_must_lie_beside_it(page):
    offered = set(re.findall(r"\{download\}`[^`<]+<\.\./(exercises/[\w/.]+)>`", page.read_text("utf-8")))
    notebooks = [ROOT / name for name in offered if name.endswith(".ipynb")]
    needed = {str(file.relative_to(ROOT)) for notebook in notebooks for file in notebook.parent.glob("*.*")}
    assert offered == needed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_cells_that_read_files_are_run_in_every_build(page):
    text = page.read_text("utf-8")
    code = "\n".join(CODE.findall(text))
    if re.search(r"""["'](\.\./)*(exercises|solutions|benchmarks|examples)[/"']""", code):
        assert "\nmystnb:\n  execution_mode: force\n" in text


@pytest.mark.parametrize("page", CHAPTERS, ids=name_of)
def test_every_question_has_one_right_answer_and_wrong_ones(page):
    questions = re.findall(r"^:{5}\{admonition\}.*?^:{5}$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert questions
    for question in questions:
        assert question.count(":class-container: right") == 1
        assert question.count(":class-container: wrong") >= 1


@pytest.mark.parametrize("notebook", sorted(ROOT.glob("exercises/*/*.ipynb")), ids=name_of)
def test_where_a_notebook_points_into_the_book_there_is_such_a_section(notebook):
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    text = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    headings = {}
    for page in PAGES:
        found = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
        headings[found[0]] = found[1:]
    pointers = re.findall(r"\*\*Book\*\* \*([^*]+)\*,\s+sections? ((?:\*[^*]+\*(?: and )?)+)", text)
    for chapter, sections in pointers:
        assert chapter in headings
        assert set(re.findall(r"\*([^*]+)\*", sections)) <= set(headings[chapter])


def test_the_pitfalls_to_start_with_have_the_right_shape():
    text = (ROOT / "book" / "pitfalls.md").read_text("utf-8")
    table = text.partition("Start with these.")[2].partition("\n(")[0]
    slugs = re.findall(r"^\| \[\]\(#([a-z0-9-]+)\)", table, re.MULTILINE)
    assert len(slugs) == 10
    assert [slug for slug in slugs if "shape" not in BANK[slug].passes] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_pitfalls_has_a_page_that_feedback_can_name(family):
    title, address = section_of(FAMILIES[family][0].slug)
    text = (ROOT / "book" / address.partition("#")[0]).with_suffix(".md").read_text("utf-8")
    assert f"\n# {title}\n" in text
    assert f"```{{pitfalls}} {family}\n```" in text
    helped = any("numbered(" in expose(pitfall.slug).call for pitfall in FAMILIES[family])
    assert ("`numbered(layer)` puts" in text) == helped
