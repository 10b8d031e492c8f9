"""The head of a chapter: how long it takes, what it needs, which assignment it prepares, what comes after.

    ```{chapter}
    :needs: one-head, several-heads
    :prepares: multi_head
    ```

`needs` names labels of chapters, `prepares` an assignment; both may be absent. The minutes come from the words of
the page's main path, the next page from the table of contents.
"""

from itertools import pairwise
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_external_toc.api import SiteMap

WORDS_A_MINUTE = 100  # a text with formulas and code, read by somebody who follows each step
SHORTEST = 5  # minutes
NOT_PROSE = (
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.table,
    nodes.figure,
    nodes.raw,
    nodes.comment,
)


class ChapterHead(SphinxDirective):
    """A small list of what a reader should know before starting on a chapter."""

    option_spec: ClassVar = {
        "needs": directives.unchanged_required,
        "prepares": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """The list; the minutes are put in when the whole page has been read."""
        head = nodes.definition_list(classes=["chapter-head"])
        head += entry("Time", [nodes.inline("", "", classes=["minutes-here"])])
        needed = [label.strip() for label in self.options.get("needs", "").split(",") if label.strip()]
        if needed:
            head += entry(
                "Needs", between_commas([link_to(self.env.docname, "ref", label) for label in needed])
            )
        if "prepares" in self.options:
            name = self.options["prepares"].strip()
            head += entry(
                "Prepares", [nodes.Text("assignment "), link_to(self.env.docname, "doc", page_of(name), name)]
            )
        following = page_after(self.env.docname, self.config.external_site_map)
        if following:
            title = self.config.external_site_map[following].title
            head += entry("Next", [link_to(self.env.docname, "doc", f"/{following}", title)])
        return [head]


def link_to(page: str, kind: str, target: str, title: str | None = None) -> addnodes.pending_xref:
    """A link from a page to a label or another page, with the title that it has there if none is given."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", title or target),
        refdomain="std",
        reftype=kind,
        reftarget=target,
        refexplicit=title is not None,
        refwarn=True,
        refdoc=page,
    )


def entry(name: str, text: list[nodes.Node]) -> nodes.definition_list_item:
    """One line of the head."""
    definition = nodes.definition("", nodes.paragraph("", "", *text))
    return nodes.definition_list_item("", nodes.term("", name), definition)


def between_commas(links: list[nodes.Node]) -> list[nodes.Node]:
    """Links with a comma between any two."""
    return [piece for link in links for piece in (nodes.Text(", "), link)][1:]


def page_of(assignment: str) -> str:
    """The page of an assignment, as an absolute name."""
    return f"/exercises/{assignment}/{assignment}"


def page_after(name: str, site_map: SiteMap) -> str | None:
    """The page that follows on the way through the book, or None after the last one.

    Pages below another page are not on the way.
    """
    pages = [site_map.root.docname, *site_map.root.child_files()]
    return dict(pairwise(pages)).get(name)


def is_folded(node: nodes.Element) -> bool:
    """Whether a reader sees the content of a node only after opening it."""
    return node.get("design_component") == "dropdown" or bool({"dropdown", "toggle"} & set(node["classes"]))


def is_aside(node: nodes.Element) -> bool:
    """Whether a node is no part of the main path: folded, a cell with its outputs, or the chapter's head."""
    return is_folded(node) or "nb_element" in node or "chapter-head" in node["classes"]


def main_path_words(document: nodes.Node) -> int:
    """The number of words in the paragraphs and list items that a reader sees without opening anything.

    Code, tables, formulas, outputs, figures and their captions, headings and what is folded do not count.
    """
    if isinstance(document, NOT_PROSE) or not isinstance(document, nodes.Element) or is_aside(document):
        return 0
    if isinstance(document, nodes.paragraph):
        return len(words_of(document).split())
    return sum(main_path_words(child) for child in document.children)


def words_of(paragraph: nodes.Node) -> str:
    """The text of a paragraph without its formulas."""
    if isinstance(paragraph, nodes.Text):
        return paragraph.astext()
    return "" if isinstance(paragraph, NOT_PROSE) else "".join(map(words_of, paragraph.children))


def minutes(words: int) -> int:
    """How long it takes to read so many words, in whole minutes.

    >>> minutes(80), minutes(2450)
    (5, 24)
    """
    return max(SHORTEST, round(words / WORDS_A_MINUTE))


def count_words(app: Sphinx, document: nodes.document) -> None:
    """Remember the length of a page's main path, and put the minutes into its head."""
    words = main_path_words(document)
    app.env.metadata[app.env.docname]["words"] = words
    for place in document.findall(nodes.inline):
        if "minutes-here" in place["classes"]:
            place += nodes.Text(f"about {minutes(words)} minutes")


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension."""
    app.add_directive("chapter", ChapterHead)
    app.connect("doctree-read", count_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
