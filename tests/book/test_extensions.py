"""What the book's own Sphinx extensions do."""

from docutils import nodes
from docutils.utils import new_document
from nbformat.v4 import new_output

from book._ext.whole_formulas import keep_formulas_whole
from book._ext.whole_lines import join_streams


def test_pieces_of_a_line_are_joined_as_they_were_printed():
    pieces = ["no scale:", " True\n", "\n", "two", " lines", "\n"]
    outputs = [new_output("stream", name="stdout", text=text) for text in pieces]
    figure = new_output("display_data", {"image/png": "…"})
    warning = new_output("stream", name="stderr", text="careful")
    joined = join_streams([outputs[0], figure, *outputs[1:3], warning, *outputs[3:]])
    assert [output.output_type for output in joined] == ["stream", "display_data", "stream"]
    assert joined[0].text == "no scale: True\n\ntwo lines\n"
    assert (joined[2].name, joined[2].text) == ("stderr", "careful\n")
    assert outputs[0].text == "no scale:"  # what was given is left alone


def test_a_formula_is_kept_with_what_touches_it_and_with_nothing_else():
    document = new_document("page")
    word, a, b, c, d = nodes.strong("", "or"), *(nodes.math(name, name) for name in "abcd")
    pieces = ["sizes (", a, ", ", b, "), as ", c, " is, ", word, d]
    document += nodes.paragraph("", "", *(nodes.Text(p) if isinstance(p, str) else p for p in pieces))
    keep_formulas_whole(document)
    assert document.astext() == "sizes (a, b), as c is, ord"
    assert [whole.astext() for whole in document.findall(nodes.inline)] == ["(a,", "b),"]
    assert [formula.astext() for formula in document.findall(nodes.math)] == list("abcd")
