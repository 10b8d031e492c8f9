"""Two directives that show the pitfalls of `mha_lib`, run when the book is built.

`{pitfalls} scale` makes a section of each pitfall of the family `scale`; its label is the pitfall's slug.
`{pitfall-index}` lists all pitfalls by slug, each with a link.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mha_lib.pitfalls import BANK, FAMILIES, Pitfall
from mha_lib.pitfalls.catalogue import expose


class Pitfalls(SphinxDirective):
    """The sections of a family."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A section for each pitfall, in teaching order."""
        return [self.section(pitfall) for pitfall in FAMILIES[self.arguments[0]]]

    def section(self, pitfall: Pitfall) -> nodes.section:
        """One pitfall: symptom, wrong lines, an input that exposes it, checks that it passes, reason and fix."""
        exposed = expose(pitfall.slug)
        section = nodes.section(classes=["pitfall"], names=[pitfall.slug])
        section += nodes.title("", "", *inline(pitfall.title))
        self.state.document.note_explicit_target(section, section)

        section += nodes.paragraph("", "", *inline(f"`{pitfall.slug}`, here in `{exposed.place}`"))
        section += told("Symptom.", inline(pitfall.symptom))
        section += told("The wrong lines.", [])
        section += listing(exposed.lines, "python")
        if exposed.helpers:
            section += told("What these names stand for.", [])
            section += explained(exposed.helpers)
        section += told("An input that shows it.", inline(exposed.input))
        section += listing(exposed.call, "python")
        results = nodes.container(classes=["pitfall-results"])
        for title, text in (("The wrong result", exposed.comes), ("The right result", exposed.expected)):
            results += nodes.container("", told(title, []), listing(text, "none"))
        section += results
        if exposed.passes:
            passes = inline("; ".join(exposed.passes) + ".")
            section += told("Why it goes unnoticed. These checks pass:", passes)
        section += told("Why it is wrong.", inline(pitfall.reason))
        section += told("What to do.", inline(pitfall.fix))
        if exposed.others:
            section += told(
                "Also occurs in", inline(", ".join(f"`{place}`" for place in exposed.others) + ".")
            )
        return section


class PitfallIndex(SphinxDirective):
    """All pitfalls in alphabetical order."""

    def run(self) -> list[nodes.Node]:
        """A list of links."""
        entries = nodes.bullet_list(classes=["pitfall-index"])
        for slug in sorted(BANK):
            link = addnodes.pending_xref(
                "",
                nodes.literal("", slug),
                refdomain="std",
                reftype="ref",
                reftarget=slug,
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            text = [link, nodes.Text(": "), *inline(BANK[slug].title)]
            entries += nodes.list_item("", nodes.paragraph("", "", *text))
        return [entries]


def inline(text: str) -> list[nodes.Node]:
    """A sentence; what stands between backticks is code."""
    pieces = text.split("`")
    return [nodes.literal("", piece) if at % 2 else nodes.Text(piece) for at, piece in enumerate(pieces)]


def told(title: str, text: list[nodes.Node]) -> nodes.paragraph:
    """A paragraph that starts with its title."""
    return nodes.paragraph("", "", nodes.strong("", title), nodes.Text(" "), *text)


def explained(names: tuple[tuple[str, str], ...]) -> nodes.bullet_list:
    """A list of names, with a sentence for each."""
    entries = nodes.bullet_list()
    for name, sentence in names:
        entries += nodes.list_item("", nodes.paragraph("", "", *inline(f"`{name}`: {sentence}")))
    return entries


def listing(text: str, language: str) -> nodes.literal_block:
    """Code, or what was printed; the one line of an error may be broken to fit."""
    classes = ["pitfall-error"] if re.match(r"\w+(Error|Exception): ", text) else []
    return nodes.literal_block(text, text, language=language, classes=classes)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_directive("pitfalls", Pitfalls)
    app.add_directive("pitfall-index", PitfallIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
