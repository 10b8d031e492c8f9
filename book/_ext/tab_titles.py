"""Short titles for the browser's tabs: the page, then the book's subject.

An assignment has the name that the table of contents gives it; the start page has the book's name, once.
"""

from typing import Any

from sphinx.application import Sphinx

SUBJECT = "Multi-head attention"


def name_tab(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Change the title of one page just before it is written."""
    context["docstitle"] = "" if page == app.config.root_doc else SUBJECT
    if page.startswith("exercises/"):
        context["title"] = app.config.external_site_map[page].title or context["title"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.connect("html-page-context", name_tab)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
