"""Say where a browser may break a line, and where it may not.

MathJax turns a formula into a picture, and a line may be broken before and after any picture: without help a comma
or a full stop would start the next line. A long name in a narrow table is broken anywhere, unless told where.
"""

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)
A_LINE = 36  # characters of code that a telephone shows side by side
INSIDE_A_NAME = r"(?<=[A-Za-z]{3}_)(?=[a-z])|(?<=[a-z])(?=[A-Z])|(?<=[a-z>]/)(?=[a-z<])"


class LineBreaks(SphinxPostTransform):
    """Works on each page just before it is written."""

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Change the tree of one page."""
        keep_formulas_whole(self.document)
        keep_percents_whole(self.document)
        break_names(self.document)


def keep_formulas_whole(document: nodes.document) -> None:
    """Put each formula, and what touches it on both sides, into a span that is not broken."""
    for formula in list(document.findall(nodes.math)):
        parent, at = formula.parent, formula.parent.index(formula)
        before = found(r"\S*\Z", parent[at - 1]) if at else ""
        after = found(r"\A\S*", parent[at + 1]) if at + 1 < len(parent) else ""
        if before:
            parent[at - 1] = nodes.Text(parent[at - 1].removesuffix(before))
        if after:
            parent[at + 1] = nodes.Text(parent[at + 1].removeprefix(after))
        if before or after:
            parent[at] = nodes.inline(
                "", "", nodes.Text(before), formula, nodes.Text(after), classes=["whole"]
            )


def found(pattern: str, node: nodes.Node) -> str:
    """What the pattern finds in a node, if the node is text."""
    match = re.search(pattern, node) if isinstance(node, nodes.Text) else None
    return match[0] if match else ""


def keep_percents_whole(document: nodes.document) -> None:
    """Put a space that is not broken between a number and its per cent sign."""
    for text in list(document.findall(nodes.Text)):
        if " %" in text and not isinstance(text.parent, CODE):
            text.parent.replace(text, nodes.Text(text.replace(" %", "\N{NO-BREAK SPACE}%")))


def break_names(document: nodes.document) -> None:
    """Let a name in a table or a heading, or a long one, break where its words end, and nowhere else."""
    narrow = [*document.findall(nodes.entry), *document.findall(nodes.title)]
    in_narrow = {name for place in narrow for name in place.findall(nodes.literal)}
    for name in document.findall(nodes.literal):
        if name in in_narrow or max(map(len, name.astext().split()), default=0) > A_LINE:
            words = re.split(INSIDE_A_NAME, name.astext())
            if len(words) > 1:  # as one piece of HTML, since the search index would take pieces for words
                html = "<wbr>".join(escape(word) for word in words)
                name[:] = [nodes.raw("", f'<span class="pre">{html}</span>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_post_transform(LineBreaks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
