"""Make an element of each line of code, so that a line that must go on in the next row does so indented.

It may go on behind an opening bracket, a comma or an equals sign, and not inside a word. On a small screen a
browser would start that row at the very left, as if it were code outside its block. The style sheet indents it by
what the line is indented, and more.
"""

import re
from collections.abc import Iterator
from typing import Any

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge


class LineFormatter(HtmlFormatter[str]):
    """Pygments' own, with a span around each line that tells how far it is indented."""

    def _format_lines(self, tokensource: Any) -> Iterator[tuple[int, str]]:
        for is_code, line in super()._format_lines(tokensource):
            yield is_code, f'<span class="line" style="--indent: {indent(line)}ch">{with_breaks(line)}</span>'


def with_breaks(line: str) -> str:
    """A line of highlighted code with marks where a browser may break it: behind what separates words."""
    return re.sub(r"(<span class=\"[po]\">[^<]*[(\[{,=.]</span>)", r"\1<wbr>", line)


def indent(line: str) -> int:
    """By how many characters a line of highlighted code is indented."""
    text = re.sub("<[^>]*>", "", line)
    return len(text) - len(text.lstrip(" "))


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    PygmentsBridge.html_formatter = LineFormatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
