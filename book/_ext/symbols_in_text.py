"""Set the letters of symbols that stand in plain text as formulas have them: d_k with an index.

Headings, titles of boxes and heads of tables are plain text, since formulas in them would come out as TeX source
in lists of contents. A reader should not have to tell d_k from its neighbour in a formula.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)
SYMBOL = re.compile(r"\b([dW])_(k|v|model|ff|[QKVO])\b")


class Symbols(SphinxPostTransform):
    """Works on each page just before it is written."""

    default_priority = 810
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Change the tree of one page."""
        set_symbols(self.document)


def set_symbols(document: nodes.document) -> None:
    """Put an index in the place of an underscore, outside of code."""
    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, CODE) or not SYMBOL.search(text):
            continue
        pieces = SYMBOL.split(text)  # text, letter, index, text, …
        new: list[nodes.Node] = []
        for before, letter, index in zip(pieces[0:-1:3], pieces[1::3], pieces[2::3], strict=True):
            new += [nodes.Text(before), nodes.emphasis("", letter), nodes.subscript("", index)]
        text.parent.replace(text, [*new, nodes.Text(pieces[-1])])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_post_transform(Symbols)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
