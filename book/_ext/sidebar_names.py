"""Names for the sidebar's arrows that open and close the pages below a page; the theme gives them none.

A screen reader says the name.
"""

import re
from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx

ARROW = re.compile(r"(<a [^>]*>)([^<]*)(</a>\s*<details[^>]*>\s*<summary)>")
AFTER_THE_THEME = 900  # it puts the function in at the usual priority, 500


def named(make: Callable[..., Any]) -> Callable[..., Any]:
    """The theme's function that makes the sidebar, with names for the arrows."""
    return lambda *arguments, **options: ARROW.sub(
        r'\1\2\3 aria-label="Pages below \2">', str(make(*arguments, **options))
    )


def name_arrows(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Change the sidebar of one page just before it is written."""
    context["generate_toctree_html"] = named(context["generate_toctree_html"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.connect("html-page-context", name_arrows, priority=AFTER_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
