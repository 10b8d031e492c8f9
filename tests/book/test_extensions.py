"""What the book's own Sphinx extensions do."""

import re
from html import unescape

from docutils import nodes
from docutils.utils import new_document
from nbformat.v4 import new_output
from pygments import highlight
from pygments.lexers import PythonLexer
from sphinx.search import WordCollector
from sphinx.search.en import SearchEnglish

from book._ext.code_lines import LineFormatter
from book._ext.line_breaks import break_names, keep_formulas_whole, keep_percents_whole
from book._ext.symbols_in_text import set_symbols
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


def test_a_number_and_its_per_cent_sign_stay_on_a_line_and_code_is_left_alone():
    document = new_document("page")
    number, code = nodes.inline("", "97"), nodes.literal("", "7 % 2")
    document += nodes.paragraph("", "", nodes.Text("from 5 % to "), number, nodes.Text(" % of "), code)
    keep_percents_whole(document)
    assert document.astext() == "from 5\N{NO-BREAK SPACE}% to 97\N{NO-BREAK SPACE}% of 7 % 2"


def test_a_name_in_a_table_breaks_where_its_words_end():
    names = [
        "split_heads",
        "MultiHeadAttention",
        "F.sdpa",
        "grades/<student>.json",
        "d_model",
        "W_Q",
        "0.5",
        "plain",
    ]
    document = new_document("page")
    for name in names:
        document += nodes.entry("", nodes.paragraph("", "", nodes.literal("", name)))
    for name in ("split_heads", 4 * "long_names_"):
        document += nodes.paragraph("", "", nodes.literal("", name))
    break_names(document)
    html = [name.astext().replace("<wbr>", "|") for name in document.findall(nodes.literal)]
    shown = [unescape(re.sub("<[^>]*>", "", name)) for name in html]
    expected = [
        "split_|heads",
        "Multi|Head|Attention",
        "F.sdpa",
        "grades/|<student>.json",
        "d_model",
        "W_Q",
        "0.5",
        "plain",
    ]
    assert shown == [*expected, "split_heads", (4 * "long_|names_|").removesuffix("|")]


def test_a_name_with_marks_is_found_by_search_as_a_whole():
    document = new_document("page")
    document += nodes.entry("", nodes.paragraph("", "", nodes.literal("", "key_padding_mask")))
    break_names(document)
    assert "<wbr>" in document.astext()
    words = WordCollector(document, SearchEnglish({}))
    document.walk(words)
    assert words.found_words == ["key_padding_mask"]


def test_each_line_of_code_tells_how_far_it_is_indented():
    code = 'def f():\n    """Two\n      lines."""\n\n    return [  1]\n'
    lines = highlight(code, PythonLexer(), LineFormatter()).split('<span class="line" style="--indent: ')[1:]
    assert [line.split("ch")[0] for line in lines] == ["0", "4", "6", "0", "4"]
    assert "".join(re.sub("<[^>]*>", "", line.partition('">')[2]) for line in lines).strip() == code.strip()


def test_a_line_of_code_may_go_on_behind_what_separates_words():
    html = highlight("np.mean(maps[0], axis=1) + size_of_it\n", PythonLexer(), LineFormatter())
    text = re.sub("<(?!wbr)[^>]*>", "", html).strip()
    assert text == "np.<wbr>mean(<wbr>maps[<wbr>0],<wbr> axis=<wbr>1) + size_of_it"


def test_symbols_in_plain_text_get_an_index_and_code_is_left_alone():
    document = new_document("page")
    document += nodes.title(
        "", "Why √d_k, not √d_model", nodes.Text(", with W_O and "), nodes.literal("", "d_k")
    )
    document += nodes.paragraph("", "num_kv_heads, grad_k")
    set_symbols(document)
    assert document.astext() == "Why √dk, not √dmodel, with WO and d_k\n\nnum_kv_heads, grad_k"
    assert [index.astext() for index in document.findall(nodes.subscript)] == ["k", "model", "O"]
    assert [letter.astext() for letter in document.findall(nodes.emphasis)] == ["d", "d", "W"]
