"""The map of the course: its times are those of the pages and notebooks, also after a page has changed."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from .conftest import ROOT

TOC = """format: jb-book
root: book/index
parts:
- caption: Heads
  chapters:
  - file: book/a
    sections:
    - file: book/a_further
  - file: book/b
  - file: exercises/build/build
    title: "Assignment: build"
- caption: Reference
  chapters:
  - file: book/c
"""
PAGES = {
    "index": "# Start\n\n```{course-map}\n```\n\n```{course-items}\n```\n",
    "a": "(a)=\n# Page A\n\n```{chapter}\n:prepares: build\n```\n\n" + "word " * 740,
    "a_further": "# Further\n\n" + "word " * 2000,
    "b": "# Page B\n\n```{chapter}\n:needs: a\n```\n\n" + "word " * 1210,
    "c": "# Page C\n\n" + "word " * 3000,
}


def cell(text, **nbgrader):
    base = {"cell_type": "markdown", "source": text, "metadata": {}}
    if not nbgrader:
        return base
    code = {"cell_type": "code", "outputs": [], "execution_count": None}
    return base | code | {"metadata": {"nbgrader": nbgrader}}


NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 4,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "cells": [
        cell(
            "# Build\n\n| no. | item | points | minutes |\n|--|--|--|--|\n"
            "| 1 | `f` | 3 | 50 |\n| 2 | `g` | 2 | 25 |"
        ),
        cell("def f(): ...", grade_id="f", grade=False),
        cell("f()", grade_id="test_f", grade=True, points=3),
        cell("g()", grade_id="test_g", grade=True, points=2.5),
    ],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("map") / "course"
    shutil.copytree(ROOT / "book", root / "book", ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    for name in ("_config.yml", "constraints.txt"):
        shutil.copyfile(ROOT / name, root / name)
    shutil.copytree(ROOT / "mha_lib", root / "mha_lib", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "_toc.yml").write_text(TOC)
    for name, text in PAGES.items():
        (root / "book" / f"{name}.md").write_text(text)
    (root / "exercises" / "build").mkdir(parents=True)
    (root / "exercises" / "build" / "build.ipynb").write_text(json.dumps(NOTEBOOK))
    build(root)
    return root


def try_to_build(root):
    """The finished process."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(root)}
    command = [sys.executable, "-m", "book.build"]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def build(root):
    done = try_to_build(root)
    assert done.returncode == 0, done.stdout + done.stderr


def rows(root, table):
    """The text of a table's cells on the start page."""
    html = (root / "_build" / "html" / "book" / "index.html").read_text("utf-8")
    (body,) = re.findall(rf'<table class="{table}.*?<tbody>(.*?)</tbody>', html, re.DOTALL)
    cells = [re.findall(r"<td>(.*?)</td>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]
    return [[" ".join(re.sub("<[^>]*>", " ", text).split()) for text in row] for row in cells]


def test_the_map_has_the_times_of_what_is_on_the_way_and_follows_changes(root):
    built = "build 1 h 15 min"
    expected = [["Heads", "Page A 7 min Page B 12 min", built], ["Together", "19 min", "1 h 15 min"]]
    assert rows(root, "course-map") == expected
    head = (root / "_build/html/book/b.html").read_text("utf-8")
    assert "about 12 minutes" in head
    assert '<dt>Next</dt><dd><p><a class="reference internal" href="../exercises/build/build.html">' in head
    head = (root / "_build/html/book/a.html").read_text("utf-8")
    assert '<dt>Next</dt><dd><p><a class="reference internal" href="b.html">' in head  # not what is below it
    page = root / "book" / "b.md"
    page.write_text(page.read_text() + "word " * 300)
    build(root)
    expected = [["Heads", "Page A 7 min Page B 15 min", built], ["Together", "22 min", "1 h 15 min"]]
    assert rows(root, "course-map") == expected


def test_the_items_have_their_points_and_minutes(root):
    expected = [["build", "5.5", "1 h 15 min"], ["f", "3", "50 min"], ["g", "2.5", "25 min"]]
    assert rows(root, "course-items") == expected


def test_when_a_chapter_is_removed_each_reference_to_it_is_reported_by_name(root, tmp_path):
    smaller = shutil.copytree(root, tmp_path / "course")
    (smaller / "book" / "a.md").unlink()
    toc = TOC.replace("  - file: book/a\n    sections:\n    - file: book/a_further\n", "")
    (smaller / "_toc.yml").write_text(toc)
    (smaller / "book" / "a_further.md").unlink()
    done = try_to_build(smaller)
    assert done.returncode != 0
    (warning,) = [line for line in (done.stdout + done.stderr).splitlines() if "WARNING" in line]
    assert "book/b.md" in warning
    assert "'a'" in warning
    page = smaller / "book" / "b.md"
    page.write_text(page.read_text().replace(":needs: a\n", ""))
    build(smaller)
    assert rows(smaller, "course-map")[0][1].startswith("Page B")


def test_the_course_has_a_part_for_each_row_and_all_its_assignments(book):
    html = (book / "book" / "index.html").read_text("utf-8")
    (table,) = re.findall(r'<table class="course-map.*?</table>', html, re.DOTALL)
    linked = re.findall(r'href="(?:\.\./)?([\w/]+)\.html"', table)
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))["parts"]
    pages = [[page["file"] for page in part["chapters"]] for part in parts]
    wanted = {page for part in pages for page in part if any(name.startswith("exercises/") for name in part)}
    assert {link if "/" in link else f"book/{link}" for link in linked} == wanted
