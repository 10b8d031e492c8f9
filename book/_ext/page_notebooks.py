"""Offer each page with code as a notebook, to download and to open on Colab or Binder.

The buttons for Colab and Binder come once `repository: url` in _config.yml names an address on GitHub. They open
the branch `notebooks`, which .ci/notebooks writes when the book is published.
"""

import re
from pathlib import Path
from typing import Any

from drawings.catalogue import DRAWINGS
from myst_nb.core.read import read_myst_markdown_notebook
from notebooks import Book, glued, is_offered, notebook, write
from sphinx.application import Sphinx

from mha_grader.course.kit import self_study

BEFORE_THE_THEME, AFTER_THE_THEME = 499, 502  # it makes the buttons at 501
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


def address(app: Sphinx) -> str:
    """The repository's address, as _config.yml has it; "" if it is not on GitHub."""
    url = str(app.config.html_theme_options.get("repository_url") or "")
    return url if GITHUB.fullmatch(url) else ""


def write_notebook(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Write the notebook of a page, and tell the theme of it."""
    source = Path(app.srcdir) / f"{page}.md"
    if not source.exists() or not self_study(Path(app.srcdir)):
        return
    cells = read_myst_markdown_notebook(source.read_text("utf-8"))
    if not is_offered(cells):
        return
    values = glued(Path(app.outdir).parent / "jupyter_execute" / f"{page}.glue.json")
    macros = app.config.mathjax3_config["tex"]["macros"]
    looks = {name: drawing.look for name, drawing in DRAWINGS.items()}
    book = Book.read(Path(app.srcdir), repository=address(app), drawings=looks, macros=macros)
    write(notebook(cells, book, values), Path(app.outdir) / "_sources" / f"{page}.ipynb")
    context["ipynb_source"] = f"{page}.ipynb"


def add_buttons(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Put the buttons for Colab and Binder before the theme's own."""
    if "ipynb_source" not in context or not address(app):
        return
    found = GITHUB.fullmatch(address(app))
    assert found is not None
    name = f"{page.rpartition('/')[2]}.ipynb"
    addresses = {
        "Colab": (
            f"https://colab.research.google.com/github/{found[1]}/blob/notebooks/{name}",
            "logo_colab.png",
        ),
        "Binder": (
            f"https://mybinder.org/v2/gh/{found[1]}/notebooks?urlpath=lab/tree/{name}",
            "logo_binder.svg",
        ),
    }
    buttons = [
        {
            "type": "link",
            "url": url,
            "text": place,
            "tooltip": f"Run on {place}",
            "icon": f"_static/images/{logo}",
        }
        for place, (url, logo) in addresses.items()
    ]
    group = {"type": "group", "tooltip": "Run this page", "icon": "fas fa-rocket", "buttons": buttons}
    context["header_buttons"].insert(0, {**group, "label": "launch-buttons"})


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.connect("html-page-context", write_notebook, priority=BEFORE_THE_THEME)
    app.connect("html-page-context", add_buttons, priority=AFTER_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
