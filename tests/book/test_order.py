"""The order of the course: what stands in `_toc.yml` is what sidebar, map, syllabus and kit show."""

import ast
import json
import re

import pytest

from .conftest import ROOT, toc_pages

ASSIGNMENTS = [page.split("/")[1] for page in toc_pages() if page.startswith("exercises/")]


def definitions(code):
    """The functions and classes of some code, as trees without docstrings, by name."""
    found = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner) is not None:
                    inner.body = inner.body[1:]
            found[node.name] = ast.dump(node)
    return found


def cells(path, kinds):
    """The code of a notebook's cells of these kinds."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        nbgrader = cell["metadata"].get("nbgrader", {})
        kind = "solution" if nbgrader.get("solution") else "test" if nbgrader.get("grade") else "given"
        if cell["cell_type"] == "code" and kind in kinds:
            yield "".join(cell["source"])


def given_in(name):
    """What an assignment's given cells and the given file beside its notebook define."""
    folder = ROOT / "exercises" / name
    sources = list(cells(folder / f"{name}.ipynb", {"given"}))
    sources += [path.read_text("utf-8") for path in folder.glob("given.py")]
    return {pair for source in sources for pair in definitions(source).items()}


def asked_in(name):
    """The solutions of an assignment's items."""
    path = ROOT / "solutions" / name / f"{name}.ipynb"
    return {pair for source in cells(path, {"solution"}) for pair in definitions(source).items()}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_assignment_gives_away_the_solution_of_a_later_one(name):
    later = set().union(*(asked_in(other) for other in ASSIGNMENTS[ASSIGNMENTS.index(name) + 1 :]))
    assert {item for item, _ in given_in(name) & later} == set()


def test_assignments_do_give_solutions_of_earlier_ones():
    """So that the test above compares what can be equal."""
    assert given_in("multi_head") & asked_in("single_head")
    assert given_in("efficient_heads") & asked_in("multi_head")


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_chapter_before_an_assignment_leads_to_it(name):
    pages = toc_pages()
    place = pages.index(f"exercises/{name}/{name}")
    heads = [
        re.findall(r"^:prepares: (\w+)$", (ROOT / f"{page}.md").read_text("utf-8"), re.MULTILINE)
        for page in pages[:place]
        if page.startswith("book/")
    ]
    assert [name] in heads


def test_what_a_chapter_needs_comes_before_it():
    pages = [page for page in toc_pages() if page.startswith("book/")]
    texts = {page: (ROOT / f"{page}.md").read_text("utf-8") for page in pages}
    place = {
        label: page
        for page, text in texts.items()
        for label in re.findall(r"^\((.+)\)=$", text, re.MULTILINE)
    }
    late = {}
    for page, text in texts.items():
        for needs in re.findall(r"^```\{chapter\}\n:needs: (.+)$", text, re.MULTILINE):
            labels = [label.strip() for label in needs.split(",")]
            late[page] = [label for label in labels if pages.index(place[label]) >= pages.index(page)]
    assert {page: labels for page, labels in late.items() if labels} == {}
