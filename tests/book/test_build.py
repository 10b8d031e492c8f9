"""`make book` does what is needed and no more: tried on a book of two pages."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from book.build import PageCache, shape

ROOT = Path(__file__).parents[2]
PAGE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# The page {name}

Some prose.

The library is {{download}}`mha_lib <../mha_lib/__init__.py>`.

```{{code-cell}} ipython3
from mha_lib import VALUE

with open("../ran.txt", "a") as file:
    file.write("{name}")
print("the value is", VALUE)
```
"""


def build(root):
    """(status, what was said, names of the pages whose cells were run)"""
    (root / "ran.txt").unlink(missing_ok=True)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(root)}
    command = [sys.executable, "-m", "book.build"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    ran = (root / "ran.txt").read_text() if (root / "ran.txt").exists() else ""
    return done.returncode, done.stdout + done.stderr, sorted(ran)


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def shown(root, name):
    return (root / "_build" / "html" / "book" / f"{name}.html").read_text("utf-8")


def files(root):
    html = root / "_build" / "html"
    return {path.relative_to(html): path.read_bytes() for path in html.rglob("*") if path.is_file()}


def without_versions(root):
    """The same without the numbers that Sphinx puts behind style sheets that it finds already there."""
    return {path: re.sub(rb"\.css\?v=\w+", b".css", content) for path, content in files(root).items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("books") / "book"
    ours = shutil.ignore_patterns("*.md", "__pycache__")
    shutil.copytree(ROOT / "book", root / "book", ignore=ours)
    for name in ("_config.yml", "constraints.txt"):
        shutil.copyfile(ROOT / name, root / name)
    (root / "mha_lib").mkdir()
    (root / "mha_lib" / "__init__.py").write_text("VALUE = 1\n")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n")
    for name in "ab":
        (root / "book" / f"{name}.md").write_text(PAGE.format(name=name))
    status, said, ran = build(root)
    assert status == 0, said
    assert ran == ["a", "b"]
    assert "the value is 1" in shown(root, "b")
    # Without self_study = true a book has no file of the library, and no notebook that needs it.
    assert "The library is <code" in shown(root, "b")
    assert not [path for path in files(root) if path.suffix in (".py", ".ipynb")]
    return root


@pytest.fixture
def root(built, tmp_path):
    return shutil.copytree(built, tmp_path / "book", symlinks=True)


def test_nothing_is_done_if_nothing_has_changed(root):
    before = files(root)
    status, said, ran = build(root)
    assert (status, ran) == (0, [])
    assert "up to date" in said
    assert files(root) == before


def test_only_what_changed_is_made_again_and_the_book_is_the_same_as_one_from_nothing(root):
    css = root / "book" / "_static" / "course.css"
    edit(root / "book" / "a.md", 'print("the value', 'print("now the value')
    edit(root / "book" / "b.md", "# The page b", "# A new title")
    edit(css, css.read_text(), "/* new */")
    status, said, ran = build(root)
    assert (status, ran) == (0, ["a"]), said
    assert "now the value is 1" in shown(root, "a")
    assert "A new title" in shown(root, "a")  # in the navigation
    assert (root / "_build/html/_static/course.css").read_text() == "/* new */"

    other = root / "_build" / "html" / "book" / "b.html"
    before = other.stat().st_mtime_ns
    edit(root / "book" / "a.md", "Some prose.", "Other, *better* prose.")
    status, said, ran = build(root)
    assert (status, ran) == (0, []), said
    assert "Other, <em>better</em> prose." in shown(root, "a")
    assert other.stat().st_mtime_ns == before  # prose alone: no other page is written

    warm = without_versions(root)
    shutil.rmtree(root / "_build")
    assert build(root)[::2] == (0, ["a", "b"])
    assert without_versions(root) == warm


def test_all_pages_run_if_the_library_has_changed_and_pages_that_are_gone_do_not_stay(root):
    edit(root / "mha_lib" / "__init__.py", "1", "2")
    (root / "book" / "b.md").rename(root / "book" / "c.md")
    edit(root / "_toc.yml", "book/b", "book/c")
    status, said, ran = build(root)
    assert (status, ran) == (0, ["a", "b"]), said
    assert "the value is 2" in shown(root, "a")
    assert "the value is 2" in shown(root, "c")
    assert not (root / "_build/html/book/b.html").exists()


def test_a_page_that_reads_other_files_runs_whenever_the_book_is_written_anew(root):
    edit(root / "book" / "b.md", "  name: python3\n", "  name: python3\nmystnb:\n  execution_mode: force\n")
    edit(root / "book" / "a.md", "# The page a", "# Another title")
    assert build(root)[::2] == (0, ["b"])
    assert "Another title" in shown(root, "b")


@pytest.mark.parametrize(
    ("old", "new", "prose"),
    [
        ("Some prose.", "Other prose, longer\nthan before.", True),
        ("Some prose.", "Some prose.\n\nA paragraph, and 2 * 3 < 7.", True),
        ("# The page a", "# Another title", False),
        ("Some prose.", "Some prose, see [](#other).", False),
        ("Some prose.", "(label)=\n\nSome prose.", False),
        ("Some prose.", "Some prose {cite:p}`vaswani2017attention`.", False),
        ("Some prose.", "Some prose.\n\n:::{note}\nOther prose.\n:::", False),
        ('print("the', 'print("now the', False),
        ("name: python3\n---", "name: python3\norphan: true\n---", False),
    ],
)
def test_what_is_prose(tmp_path, old, new, prose):
    (tmp_path / "book").mkdir()
    page = tmp_path / "book" / "a.md"
    page.write_text(PAGE.format(name="a"))
    before = shape(tmp_path)
    edit(page, old, new)
    assert (shape(tmp_path) == before) is prose


def test_a_style_sheet_or_a_page_that_is_new_is_no_prose(tmp_path):
    (tmp_path / "book" / "_static").mkdir(parents=True)
    shapes = {shape(tmp_path)}
    for name in ("_static/course.css", "a.md", "models.json"):
        (tmp_path / "book" / name).write_text("Some prose.")
        shapes.add(shape(tmp_path))
    assert len(shapes) == 4


def test_a_book_with_a_failing_page_is_no_book(root):
    edit(root / "mha_lib" / "__init__.py", "VALUE", "VALEU")
    status, said, ran = build(root)
    assert (status, ran) == (1, [])
    assert "cannot import name 'VALUE'" in said
    assert not list((root / "_build").glob("[bs]*.digest"))  # so that it is built, and fails, again


def test_no_result_is_dropped_to_make_room_for_another(tmp_path):
    cache = PageCache(tmp_path)
    cache.change_cache_limit(1)
    for number in range(3):
        page = tmp_path / f"{number}.ipynb"
        cell = nbformat.v4.new_code_cell(f"print({number})", execution_count=1)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)
        cache.cache_notebook_file(page, check_validity=False)
    assert len(cache.list_cache_records()) == 3
