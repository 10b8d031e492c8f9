"""Two directives for pages.

`{drawing} whole-layer` puts a drawing into a page: inline SVG, its steps and its caption. The option `:name:`
makes it a target for links and `{numref}`.

`{sentence} it` prints the sentence that runs through the book, with each token coloured by the weight that it gets
from the token “it”; `:head: 4 2` chooses layer and head of the trained model, counted from 1.

Inline SVG follows the page's fonts and its light
and dark colours, and needs no file. The colours of heads become a style sheet of the book.
"""

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mha_lib.figures.head_colours import head_colours_css

from .catalogue import DRAWINGS
from .sentence import sentence_html
from .shapes import pieces_of

COLOURS = "head_colours.css"


class DrawingInPage(SphinxDirective):
    """A figure with a drawing."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """The figure; it is numbered like all others.

        Raises:
            ExtensionError, by Sphinx: there is no drawing of that name.
        """
        drawn = DRAWINGS.get(self.arguments[0])
        if drawn is None:
            raise self.error(f"no drawing is called {self.arguments[0]!r}; there are {', '.join(DRAWINGS)}")
        for source in Path(__file__).parent.glob("*.py"):
            self.env.note_dependency(str(source))
        figure = nodes.figure(classes=["drawing"])
        figure += nodes.raw("", drawn.html(), format="html")
        if drawn.steps:
            items = [nodes.list_item("", named(step)) for step in drawn.steps]
            figure += nodes.enumerated_list(
                "", *items, classes=["drawing-steps"], enumtype="arabic", suffix="."
            )
        figure += nodes.caption("", "", *inline(drawn.look))
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure]


class SentenceInColour(SphinxDirective):
    """A line of tokens."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"head": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """What one head looks at, from one word."""
        layer, head = map(int, self.options["head"].split())
        return [nodes.raw("", sentence_html(self.arguments[0], layer, head), format="html")]


def named(step: str) -> nodes.paragraph:
    """A step whose first sentence, its name, stands out."""
    name, _, rest = step.partition(". ")
    return nodes.paragraph("", "", nodes.strong("", f"{name}."), *inline(f" {rest}"))


def inline(text: str) -> list[nodes.Node]:
    """A text whose symbols look as they do in the picture: a letter is italic, an index stands below."""
    kinds = {"i": nodes.emphasis, "sub": nodes.subscript, "sup": nodes.superscript}
    return [kinds[kind]("", shown) if kind else nodes.Text(shown) for kind, shown in pieces_of(text)]


def write_colours(app: Sphinx) -> None:
    """Write the style sheet of the head colours beside those that are copied."""
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COLOURS).write_text(head_colours_css(), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_directive("drawing", DrawingInPage)
    app.add_directive("sentence", SentenceInColour)
    app.add_css_file(COLOURS)
    app.connect("builder-inited", write_colours)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
