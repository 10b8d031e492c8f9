"""Keep a formula in a sentence together with the punctuation that touches it.

MathJax turns a formula into a picture, and a browser may break a line before and after any picture: a comma or a
full stop would start the next line.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class WholeFormulas(SphinxPostTransform):
    """Works on each page just before it is written."""

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Change the tree of one page."""
        keep_formulas_whole(self.document)


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
            parent[at] = nodes.inline("", "", nodes.Text(before), formula, nodes.Text(after), classes=["whole"])


def found(pattern: str, node: nodes.Node) -> str:
    """What the pattern finds in a node, if the node is text."""
    match = re.search(pattern, node) if isinstance(node, nodes.Text) else None
    return match[0] if match else ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_post_transform(WholeFormulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
