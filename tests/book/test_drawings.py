"""The drawings: valid, described, legible on a telephone and in the dark, and true."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pydata_sphinx_theme
import pytest
import sphinx_book_theme
import torch
from sphinx.application import Sphinx

from book.drawings.catalogue import DRAWINGS
from book.drawings.sentence import sentence_html
from book.drawings.shapes import Cells, Piece, Text, box, column, row, svg
from mha_lib.attention import attention
from mha_lib.figures.head_colours import HEAD_COLOURS, head_colours_css
from mha_lib.figures.plotting import COLOURS
from mha_lib.kv_cache import kv_cache_bytes
from mha_lib.minilm.minilm import load_sample

from .conftest import ROOT

NAMES = list(DRAWINGS)
STYLES = [
    *(Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/styles").glob("*.css"),
    Path(sphinx_book_theme.__file__).parent / "theme/sphinx_book_theme/static/styles/sphinx-book-theme.css",
    ROOT / "book" / "_static" / "course.css",
]
SVG = "{http://www.w3.org/2000/svg}"


def svgs_of(name):
    """The SVG elements of a drawing, parsed."""
    found = re.findall(r"<svg.*?</svg>", DRAWINGS[name].html(), re.DOTALL)
    return [ElementTree.fromstring(text) for text in found]


def words_of(name):
    """All texts of a drawing in the order in which they are drawn, for a wide page."""
    return ["".join(text.itertext()) for text in svgs_of(name)[0].iter(f"{SVG}text")]


def classes_of(name):
    return [element.get("class", "") for element in svgs_of(name)[0].iter()]


# --- what holds of the text of every drawing ---------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_says_in_words_what_is_seen(name):
    for drawn in svgs_of(name):
        assert drawn.get("role") == "img"
        named = {element.get("id"): element.text for element in drawn if element.get("id")}
        title, description = (named[id_] for id_ in drawn.get("aria-labelledby").split())
        assert len(title) >= 10
        assert len(description) >= 120
        assert [element.tag for element in drawn][:2] == [f"{SVG}title", f"{SVG}desc"]


def test_no_two_drawings_say_the_same():
    for say in ("title", "description", "look"):
        assert len({getattr(drawn, say) for drawn in DRAWINGS.values()}) == len(DRAWINGS)
    for drawn in DRAWINGS.values():
        assert "_" not in re.sub(r"\$.+?\$", "", " ".join([drawn.look, *drawn.steps]))  # no raw symbol
    ids = re.findall(r'\bid="([^"]+)"', "".join(drawn.html() for drawn in DRAWINGS.values()))
    assert len(ids) == len(set(ids)) >= 2 * len(DRAWINGS)


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_names_no_colour_and_each_of_its_classes_has_a_rule(name):
    rules = (ROOT / "book" / "_static" / "course.css").read_text("utf-8") + head_colours_css()
    ruled = set(re.findall(r"\.([a-z][\w-]*)", rules))
    marks = [mark for drawn in svgs_of(name) for top in drawn for mark in top.iter()]
    for mark in marks:
        assert {"fill", "stroke", "color", "opacity"}.isdisjoint(mark.keys())
        assert re.fullmatch(r"(--share: [\d.]+)?", mark.get("style", ""))
        assert set(mark.get("class", "").split()) <= ruled


def test_the_rules_of_drawings_name_no_colour_either():
    css = (ROOT / "book" / "_static" / "course.css").read_text("utf-8")
    block = css.partition("/* --- drawings:")[2].partition("/* ---")[0]
    values = re.findall(r"(?:fill|stroke|color|background|--\w+): ([^;]+);", block)
    assert len(values) > 25
    mixed = r"color-mix\(in srgb, var\(--c\) (\d+%|var\(--tint\)), var\(--ground\)\)"
    allowed = rf"none|\d+(\.\d+)?%|var\(--[\w-]+\)|{mixed}"
    assert [value for value in values if not re.fullmatch(allowed, value)] == []


def test_head_colours_are_defined_in_one_place():
    assert tuple(light for light, _ in HEAD_COLOURS[: len(COLOURS)]) == COLOURS
    assert len({colour for pair in HEAD_COLOURS for colour in pair}) == 24  # 12 heads, light and dark
    sources = [*ROOT.glob("mha_lib/**/*.py"), *ROOT.glob("book/**/*.py"), *ROOT.glob("book/_static/*.css")]
    sources += [*ROOT.glob("book/_static/*.js"), *ROOT.glob("book/*.md")]
    for light, dark in HEAD_COLOURS:
        named = [p.name for p in sources if re.search(f"{light}|{dark}", p.read_text("utf-8"), re.IGNORECASE)]
        assert named == ["head_colours.py"]


def test_every_drawing_stands_in_the_book_and_there_is_one_for_each_name():
    pages = "".join(page.read_text("utf-8") for page in ROOT.glob("book/*.md"))
    assert set(re.findall(r"^```\{drawing\} (\S+)$", pages, re.MULTILINE)) == set(NAMES)


# --- what is seen in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sheet(chromium):
    """All drawings on one page; `sheet(script, name, width, theme)` is what a script finds in one of them."""
    css = head_colours_css() + "".join(style.read_text("utf-8") for style in STYLES)
    figures = "".join(f'<figure class="drawing" id="{n}">{DRAWINGS[n].html()}</figure>' for n in NAMES)
    page = chromium.new_page()
    page.set_content(
        f"<!DOCTYPE html><html lang=en><title>t</title><style>{css}</style>"
        "<body style='margin: 16px; background: var(--pst-color-background)'>"
        f'<article class="bd-article" style="padding: 0">{figures}</article>'
    )
    answers = {}

    def shown(script, name, width, theme="light"):
        if (script, width, theme) not in answers:
            page.set_viewport_size(
                {"width": width, "height": 12_000}
            )  # what is not in view has nothing behind it
            page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            assert page.evaluate("document.scrollingElement.scrollWidth") <= width
            assert page.evaluate("document.querySelector('article').scrollHeight") < 12_000
            answers[script, width, theme] = {n: page.evaluate(script, n) for n in NAMES}
        return answers[script, width, theme][name]

    yield shown
    page.close()


# Each visible text of a drawing: what it says, its box and its SVG's, and its smallest size in pixels of the page.
TEXTS = """name => [...document.getElementById(name).querySelectorAll('svg')]
  .filter(svg => getComputedStyle(svg).display !== 'none')
  .flatMap(svg => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
    const {x, y, width, height} = svg.viewBox.baseVal
    return [...svg.querySelectorAll('text')].map(text => {
      const box = text.getBBox()
      const sizes = [text, ...text.querySelectorAll('tspan')].map(e => parseFloat(getComputedStyle(e).fontSize))
      return {
        says: text.textContent, size: scale * Math.min(...sizes),
        box: [box.x, box.y, box.x + box.width, box.y + box.height], view: [x, y, x + width, y + height],
      }
    })
  })"""


@pytest.mark.parametrize("width", [360, 720])
@pytest.mark.parametrize("name", NAMES)
def test_texts_are_large_enough_lie_in_the_drawing_and_apart_from_each_other(sheet, name, width):
    shown = sheet("n => [...document.querySelectorAll(`#${n} svg`)].map(s => s.clientWidth)", name, width)
    assert sum(wide > 0 for wide in shown) == 1
    texts = sheet(TEXTS, name, width)
    assert texts
    for text in texts:
        (left, top, right, bottom), view = text["box"], text["view"]
        assert round(text["size"], 2) >= 11, text
        assert view[0] <= left < right <= view[2], text
        assert view[1] - 1 <= top < bottom <= view[3] + 1, text
    for i, one in enumerate(texts):
        for other in texts[i + 1 :]:
            (a, b, c, d), (e, f, g, h) = one["box"], other["box"]
            overlap = min(c, g) - max(a, e), min(d, h) - max(b, f)
            assert overlap[0] < 1 or overlap[1] < 4, (one["says"], other["says"])


# Contrast (WCAG) of each visible text with whatever lies behind its left end, its middle and its right end.
CONTRASTS = """name => {
  const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1})
  const context = canvas.getContext('2d', {willReadFrequently: true})
  const light = colour => {
    context.fillStyle = colour; context.fillRect(0, 0, 1, 1)
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
  }
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05)
  const ground = getComputedStyle(document.body).backgroundColor
  const behind = (x, y) => {
    const shape = document.elementsFromPoint(x, y).find(
      e => e instanceof SVGGeometryElement && getComputedStyle(e).fill !== 'none')
    return shape ? getComputedStyle(shape).fill : ground
  }
  return [...document.querySelectorAll(`#${name} svg text`)].filter(t => t.checkVisibility()).map(text => {
    const {left, right, top, bottom} = text.getBoundingClientRect()
    const places = [left + 1, (left + right) / 2, right - 1].map(x => [x, (top + bottom) / 2])
    const ink = getComputedStyle(text).fill
    return [text.textContent, Math.min(...places.map(([x, y]) => contrast(ink, behind(x, y))))]
  })
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_every_text_stands_out_from_what_is_behind_it(sheet, name, theme):
    for width in (360, 720):
        found = sheet(CONTRASTS, name, width, theme)
        assert found
        assert [text for text in found if text[1] < 4.5] == []


def test_contrast_is_measured_against_the_shape_behind_a_text(chromium):
    page = chromium.new_page()
    page.set_content(
        "<body style='background: #fff'><div id=d><svg width=90 height=30><rect width=90 height=30 fill='#777'/>"
        "<text x=5 y=20 fill='#767676'>grey</text></svg></div>"
    )
    ((says, contrast),) = page.evaluate(CONTRASTS, "d")
    assert says == "grey"
    assert contrast < 1.1
    page.close()


# Relative luminance (WCAG) of each token's ink and ground.
TOKENS = """() => [...document.querySelectorAll('.sentence .token')].map(token => {
  const {color, backgroundColor} = getComputedStyle(token)
  const context = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d')
  return [color, backgroundColor].map(colour => {
    context.fillStyle = colour; context.fillRect(0, 0, 1, 1)
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
  })
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_token_of_a_sentence_stands_out_whatever_its_weight_and_head(chromium, theme):
    css = head_colours_css() + "".join(style.read_text("utf-8") for style in STYLES)
    heaviest = re.sub(r"--share: [\d.]+", "--share: 1.000", sentence_html("it", 1, 3))
    sentences = "".join(heaviest.replace("head-2", f"head-{head}") for head in range(len(HEAD_COLOURS)))
    page = chromium.new_page()
    page.set_content(
        f"<!DOCTYPE html><html lang=en data-theme={theme}><title>t</title><style>{css}</style>"
        f"<body><article class=bd-article>{sentences}</article>"
    )
    luminances = np.array(page.evaluate(TOKENS))
    assert len(luminances) == len(HEAD_COLOURS) * len(load_sample().tokens[0])
    page.close()
    contrasts = (luminances.max(axis=1) + 0.05) / (luminances.min(axis=1) + 0.05)
    assert (contrasts >= 4.5).all(), contrasts.min()


# Lightness of the cells of each head, in grey, as they are filled.
GREYS = """() => [0, 1, 2, 3].map(head => {
  const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d')
  canvas.fillStyle = getComputedStyle(document.querySelector(`.drawing svg .cell.head-${head}:not(.stripe)`)).fill
  canvas.fillRect(0, 0, 1, 1)
  const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_neighbouring_heads_differ_without_colour(sheet, theme):
    greys = np.array(sheet(GREYS, NAMES[0], 720, theme))
    assert (abs(np.diff(greys)) > 15).all(), greys


@pytest.mark.parametrize("name", NAMES)
def test_everything_changes_with_the_theme_or_shows_the_page(sheet, name):
    look = """n => [...document.querySelectorAll(`#${n} svg :is(rect, path, circle, text)`)].map(e => {
        const {fill, stroke} = getComputedStyle(e); return [fill, stroke] })"""
    light, dark = (sheet(look, name, 720, theme) for theme in ("light", "dark"))
    assert len(light) == len(dark) > 10
    same = [
        pair for pair, other in zip(light, dark, strict=True) if pair == other and pair != ["none", "none"]
    ]
    assert same == []


# --- what is drawn is true ---------------------------------------------------------------------------------


def test_the_query_at_work_has_the_numbers_of_the_chapter():
    chapter = (ROOT / "book" / "one_head.md").read_text("utf-8")
    given = {"np": np}
    exec("\n".join(re.findall(r"^[QKV] = np\.array.*$", chapter, re.MULTILINE)[:3]), given)
    output, weights = attention(given["Q"], given["K"], given["V"])
    words = words_of("one-query")
    for number in [*given["Q"][0], *given["K"].ravel(), *given["V"].ravel(), *output[0].round(2)]:
        assert f"{number:.4g}" in words
        words.remove(f"{number:.4g}")
    for weight in weights[0]:
        words.remove(f"{weight:.2f}")
    for product in given["K"] @ given["Q"][0]:
        words.remove(f"{product:.4g}")
        words.remove(f"{product / 2:.4g}")
    assert [word for word in words if re.fullmatch(r"[\d.]+", word)] == ["1", "2", "3"]  # the steps


def test_the_whole_layer_prints_the_shapes_of_a_layer_and_no_head_owns_its_output():
    n, h, d_k = 4, 3, 2
    x, w = torch.randn(n, h * d_k), torch.randn(h * d_k, h * d_k)
    heads = (x @ w).view(n, h, d_k).transpose(0, 1)  # (h, n, d_k)
    weights = (heads @ heads.mT).softmax(dim=-1)  # (h, n, n)
    found = weights @ heads  # (h, n, d_k)
    joined = found.transpose(0, 1).reshape(n, h * d_k)
    in_lanes = [matrix for head in zip(weights, found, strict=True) for matrix in head]
    expected = ["×".join(map(str, m.shape)) for m in (x, *3 * [x @ w], *in_lanes, joined, w, joined @ w)]
    assert [word for word in words_of("whole-layer") if re.fullmatch(r"\d+×\d+", word)] == expected
    looks = classes_of("whole-layer")
    assert looks.count("cell") == x.numel() + (joined @ w).numel()
    for head in range(h):
        assert looks.count(f"cell head-{head} found") == 2 * n * d_k  # in its lane and side by side


def test_split_and_merge_are_drawn_as_torch_does_them():
    words = ["The", "animal", "was", "too", "tired"]
    place = torch.arange(30).view(5, 6)  # (n, d_model)
    right = place.view(5, 2, 3).transpose(0, 1)  # (heads, n, d_k)

    def drawn(features):
        """The word and the head of each row of three features."""
        firsts = features.reshape(-1, 3)[:, 0].tolist()
        return [(words[first // 6], f"cell head-{first % 6 // 3}") for first in firsts]

    for name, parts in {
        "split-heads": [place, right, place.reshape(2, 5, 3)],
        "merge-heads": [right, right.transpose(0, 1), right.reshape(5, 6)],
    }.items():
        said = [word for word in words_of(name) if word in words]
        filled = [look for look in classes_of(name) if look.startswith("cell ")]
        expected = [chunk for part in parts for chunk in drawn(part)]
        assert list(zip(said, filled, strict=True)) == expected
        shapes = [tuple(map(int, re.findall(r"\d+", word))) for word in words_of(name) if "shape (" in word]
        start, result = ((5, 6), right.shape) if name == "split-heads" else (right.shape, (5, 6))
        assert shapes == [tuple(start), tuple(result), tuple(result)]


def test_the_places_that_a_head_reads_are_those_of_torch():
    place = torch.arange(12)
    right, wrong = place.view(3, 2, 2).transpose(0, 1), place.view(3, 4).reshape(2, 3, 2)
    words = words_of("memory")
    expected = [f"{token}{feature}" for token in "abc" for feature in range(4)]
    assert words[1:13] == expected
    for start, read, way in ((13, right, "✓ view, transpose"), (26, wrong, "✗ one reshape")):
        assert words[start] == f"{way}: read by head, strides {read.stride()}"
        assert words[start + 1 : start + 13] == [str(int((read[1] == p).any())) for p in place]


def test_masks_fill_what_a_loop_over_the_rules_allows():
    def rows(queries, real, causal):
        first = 5 - queries
        return [
            [key < real and (key <= first + query or not causal) for key in range(5)]
            for query in range(queries)
        ]

    panels = [rows(5, 5, True), rows(5, 3, False), rows(2, 5, True), rows(5, 3, True)]
    expected = [allowed for panel in panels for query in panel for allowed in query]
    looks = [look for look in classes_of("masks") if look in ("cell head-0", "empty")]
    assert [look == "cell head-0" for look in looks] == expected


def test_what_shared_heads_keep_is_what_the_cache_takes():
    said = [int(word.split()[0]) for word in words_of("shared-heads") if word.endswith("vectors kept")]
    d_k, numbers = 7, 3
    assert said == [
        kv_cache_bytes(1, 1, 1, kv_heads, d_k, numbers) // (d_k * numbers) for kv_heads in (4, 2, 1)
    ]


def test_the_cache_grows_by_one_pair_in_each_step():
    looks = classes_of("growing-cache")
    assert looks.count("cell head-0 fresh") == 5
    assert looks.count("cell head-0") == 1 + 2 + 3 + 4


def test_the_twelve_heads_are_those_of_the_sample_and_the_words_about_them_are_true():
    sample = load_sample()
    tokens, maps = list(sample.tokens[0]), sample.maps[0][3]  # (heads, n, n)
    looks_at = [tokens[place] for place in maps[:, tokens.index("it")].argmax(axis=-1)]
    said = [word for word in words_of("heads-of-a-layer") if word.startswith("it →")]
    assert said == [f"it → “{token}”" for token in looks_at]
    assert (looks_at.count("[CLS]"), looks_at[1], looks_at[11]) == (10, "animal", ".")
    most = maps.mean(axis=1).argmax(axis=-1)  # the column with most weight, of each head
    assert (most[:-1] == 0).all()
    assert most[-1] != 0
    squares = [len(p.get("d").split("M")) - 1 for p in svgs_of("heads-of-a-layer")[0].iter(f"{SVG}path")]
    assert squares == [int((np.round(5.4 * weights**0.5, 1) >= 0.9).sum()) for weights in maps]


def test_a_sentence_shows_the_weights_of_its_head():
    sample = load_sample()
    tokens = list(sample.tokens[0])
    weights = sample.maps[0][5, 11, tokens.index("it")]  # (n,)
    html = sentence_html("it", 6, 12)
    shares = [float(share) for share in re.findall(r"--share: ([\d.]+)", html)]
    assert shares == pytest.approx(weights, abs=0.0005)
    written = re.findall(r'">([^<]+)<span>([\d.]+)</span>', html)
    assert written == [(t, f"{w:.2f}") for t, w in zip(tokens, weights, strict=True) if w >= 0.05]
    assert re.search(r'class="token asks"[^>]*>it\b', html)
    assert "head-11" in html
    with pytest.raises(ValueError):
        sentence_html("horse", 4, 2)


# --- the vocabulary ----------------------------------------------------------------------------------------


def test_rows_and_columns_place_pieces_with_gaps_and_move_them_together():
    small, large = Piece(10, 4), Piece(20, 8)
    beside = row(small, large, gap=3, align=1)
    assert (beside.width, beside.height) == (33, 8)
    assert (small.x, small.y, large.x, large.y) == (0, 4, 13, 0)
    other = Piece(5, 5)
    column(other, beside, gap=2, align=0)
    assert (small.x, small.y, large.y) == (0, 11, 7)


def test_a_part_of_a_matrix_is_where_its_cells_are():
    cells = Cells(4, 6, side=(10, 5))
    cells.move(100, 50)
    part = cells.part(slice(1, 3), slice(2, 5))
    assert (part.x, part.y, part.width, part.height) == (120, 55, 30, 10)


def test_a_symbol_has_its_index_below_and_what_follows_on_the_line():
    drawn = ElementTree.fromstring(Text("by $d_k$ <").marks())
    below, after = (float(span.get("dy")) for span in list(drawn)[1:])
    assert "".join(drawn.itertext()) == "by dk <"
    assert below > 0
    assert below + after == pytest.approx(0, abs=0.01)


def test_a_drawing_that_is_too_wide_for_a_page_is_an_error():
    with pytest.raises(ValueError, match="drawing long is 1004 wide, a page has 680"):
        svg(box("text", width=1000), "long", "t", "d", "wide")


# --- the directives ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book of one page, built by Sphinx; and what Sphinx warned of."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.md").write_text(
        "# A page\n\nSee {numref}`here`.\n\n```{drawing} one-query\n:name: here\n```\n\n"
        "```{sentence} it\n:head: 4 2\n```\n\n```{drawing} no-such\n```\n",
        "utf-8",
    )
    sys.path.append(str(ROOT / "book"))
    settings = {"extensions": ["myst_parser", "drawings"], "numfig": True, "project": "t"}
    with (folder / "warnings.txt").open("w") as warnings:
        app = Sphinx(
            folder, None, folder / "out", folder / "trees", "html", settings, status=None, warning=warnings
        )
        app.build()
    sys.path.remove(str(ROOT / "book"))
    return (folder / "out" / "index.html").read_text("utf-8"), (folder / "warnings.txt").read_text(), app


def test_a_page_gets_the_drawing_its_steps_and_a_numbered_caption(site):
    page, _, app = site
    figure = re.search(r'<figure class="drawing.*?id="here".*?</figure>', page, re.DOTALL)[0]
    assert figure.count("<svg") == 1
    assert re.findall(r"<li><p><strong>(\w+)\.</strong>", figure) == ["Compare", "Softmax", "Blend"]
    assert DRAWINGS["one-query"].look in figure
    assert "divided by √<em>d</em><sub>k</sub>, here √4." in figure
    assert re.search(r'href="#here"><span class="std std-numref">Fig. 1</span>', page)
    assert page.count('class="token') == len(load_sample().tokens[0])
    assert "head_colours.css" in page
    assert (Path(app.outdir) / "_static" / "head_colours.css").read_text() == head_colours_css()


def test_a_drawing_that_does_not_exist_is_reported_with_those_that_do(site):
    _, warnings, _ = site
    assert "no drawing is called 'no-such'; there are whole-layer, " in warnings
    assert warnings.count("WARNING") + warnings.count("ERROR") == 1
