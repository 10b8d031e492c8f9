"""The page of all heads: it shows the model's own numbers, to every kind of reader."""

import re

import numpy as np
import pytest

from mha_lib.minilm.head_scores import is_delimiter, owners, word_maps
from mha_lib.minilm.labelled_links import load_links
from mha_lib.minilm.link_answers import marked_nouns, most_looked_at
from mha_lib.minilm.minilm import MiniLM, load_sample
from mha_lib.real_heads import bert_attention, offset_score

from .conftest import forget

TEXTS = load_sample().texts
OWN = "The naïve explorers of Reykjavík saw transformers, and they liked them!"


@pytest.fixture(scope="module")
def model():
    return MiniLM()


@pytest.fixture
def explorer(window, addresses):
    """As in a folder: only one's own sentence differs over http."""
    forget(window)
    window.set_viewport_size({"width": 1280, "height": 720})
    window.goto(f"{addresses['file']}/book/all_heads.html")
    box = window.locator(".explorer")
    box.locator(".explorer-grid").wait_for()
    yield box
    strangers = [
        url for url in window.requests if not url.startswith((*addresses.values(), "data:", "blob:"))
    ]
    assert (window.troubles, strangers) == ([], [])


@pytest.fixture
def served_explorer(page, addresses):
    page.goto(f"{addresses['http']}/book/all_heads.html")
    yield page.locator(".explorer")
    assert page.troubles == []


def head_name(head):
    return f"L{head // 12 + 1}H{head % 12 + 1}"


def choose_heads(explorer, *heads):
    """Choose these and no others."""
    for head in heads:
        button = explorer.get_by_label(head_name(head), exact=True)
        if button.get_attribute("aria-pressed") == "false":
            button.click()
    chosen = explorer.locator(".explorer-heads button[aria-pressed=true]")
    for name in chosen.evaluate_all("all => all.map(b => b.getAttribute('aria-label'))"):
        if name not in map(head_name, heads):
            explorer.get_by_label(name, exact=True).click()


def pressed(explorer, buttons):
    """The places of the buttons that are pressed."""
    states = explorer.locator(buttons).evaluate_all("all => all.map(b => b.getAttribute('aria-pressed'))")
    return [place for place, state in enumerate(states) if state == "true"]


def table(explorer):
    """Names of keys, weights and usual weights `(n, heads)`, and the rules that name each key."""
    rows = (
        explorer.locator("table")
        .first.locator("tbody tr")
        .evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    )
    numbers = np.array([[re.findall(r"[\d.]+", cell) for cell in row[2:-1]] for row in rows], dtype=float)
    return [row[1] for row in rows], numbers[..., 0], numbers[..., 1], [row[-1] for row in rows]


def test_choosing_shows_the_numbers_of_the_model(explorer, model):
    for text, heads, place in [(0, [37, 2], 10), (4, [71], 8), (2, [2, 19, 40], 6), (5, [20], 3)]:
        explorer.get_by_label("Sentence", exact=True).select_option(TEXTS[text])
        choose_heads(explorer, *heads)
        explorer.locator(".explorer-tokens button").nth(place).hover()
        assert pressed(explorer, ".explorer-tokens button") == [place]
        maps = model.run(TEXTS[text], bert_attention)[1].reshape(72, -1)
        n = int(maps.shape[1] ** 0.5)
        maps = maps.reshape(72, n, n)
        names, weights, usual, _ = table(explorer)
        assert names == model.tokens(TEXTS[text])
        order = [head_name(head) for head in heads]
        shown = explorer.locator("figcaption").all_inner_texts()
        assert sorted(shown) == sorted(order)
        for column, name in enumerate(shown):
            head = heads[order.index(name)]
            assert weights[:, column] == pytest.approx(maps[head, place], abs=0.0015)
            at_distance = [offset_score(maps, key - place)[head] for key in range(n)]
            assert usual[:, column] == pytest.approx(at_distance, abs=0.0015)
            widths = (
                explorer.locator("figure")
                .nth(column)
                .locator(".bar")
                .evaluate_all("bars => bars.map(bar => +bar.getAttribute('width'))")
            )
            assert np.array(widths) / 68 == pytest.approx(maps[head, place], abs=0.0015)


def test_it_starts_with_it_looking_at_the_animal(explorer):
    words = explorer.locator(".explorer-words").inner_text()
    assert words.startswith("“it” looks most at")
    assert re.search(r"L4H2: animal 0\.6[78]\d \(usual 0\.2", words)


def test_means_are_means(explorer, model):
    explorer.get_by_label("mean of layer 4").click()
    explorer.get_by_label("mean of all heads").click()
    choose = explorer.locator(".explorer-grid button[aria-pressed=true]")
    explorer.get_by_label("L4H2", exact=True).click()
    explorer.get_by_label("L1H3", exact=True).click()
    assert choose.count() == 1
    maps = model.run(TEXTS[0], bert_attention)[1]
    _, weights, _, _ = table(explorer)
    assert weights[:, 0] == pytest.approx(maps[3, :, 10].mean(axis=0), abs=0.0015)
    assert weights[:, 1] == pytest.approx(maps[:, :, 10].mean(axis=(0, 1)), abs=0.0015)


def test_one_head_stays_chosen(explorer):
    choose_heads(explorer, 5)
    explorer.get_by_label("L1H6", exact=True).click()
    assert pressed(explorer, ".explorer-grid button") == [5]


def test_rules_and_rings_are_those_of_the_library(explorer, model):
    sentences = load_links()
    number = [sentence.text for sentence in sentences].index(TEXTS[1])
    sentence, nouns = sentences[number], marked_nouns(sentences)[number]
    explorer.get_by_label("Sentence", exact=True).select_option(TEXTS[1])
    tokens = model.tokens(TEXTS[1])
    explorer.locator(".explorer-tokens button").nth(tokens.index("it")).click()
    query = sentence.words.index("it")
    right = {
        "first noun": sentence.words[nouns[0]],
        "noun before": sentence.words[[noun for noun in nouns if noun < query][-1]],
        "noun that fits": "animal",
        "marked as right": "street",
    }
    names, _, _, rules = table(explorer)
    named = {rule: name for name, said in zip(names, rules, strict=True) for rule in said.split(", ") if rule}
    assert named == right
    places = owners(TEXTS[1], tokens)
    maps = model.run(TEXTS[1], bert_attention)[1]
    picks = most_looked_at(word_maps(maps, places).reshape(72, len(sentence.words), -1), query)
    for rule, word in right.items():
        explorer.get_by_label("Put a ring").select_option(rule)
        ringed = explorer.locator(".is-ringed").evaluate_all(
            "all => all.map(b => b.getAttribute('aria-label'))"
        )
        agree = [head_name(head) for head in range(72) if sentence.words[picks[head]] == word]
        assert [name for name in ringed if name.startswith("L")] == agree
        assert f"“{word}”: {len(agree)} of 72 heads" in explorer.locator(".explorer-count").inner_text()


def test_what_is_usual_can_be_taken_away(explorer):
    """L1H3 does nothing but look at the token before; without that nothing is left of its lines."""
    choose_heads(explorer, 2)
    assert explorer.locator("[data-query] line").count() > 10
    explorer.get_by_label("only what is above").check()
    assert explorer.locator("[data-query] line").count() < 5


def test_matrices_in_place_of_lines(explorer):
    explorer.get_by_label("matrices").check()
    assert explorer.locator("svg.matrix").count() == 2
    row = explorer.locator(".chosen-row").first
    before = float(row.get_attribute("y"))
    explorer.locator("svg.matrix").first.locator("text", has_text="animal").last.click()
    assert pressed(explorer, ".explorer-tokens button") == [2]
    assert float(row.get_attribute("y")) < before


def test_the_twelve_heads_of_a_layer_stand_side_by_side(explorer):
    explorer.get_by_label("All heads of layer 5").click()
    assert explorer.locator("figcaption").all_inner_texts() == [f"L5H{head}" for head in range(1, 13)]


def test_averages_are_those_over_the_labelled_sentences(explorer, model):
    explorer.get_by_text("Averages over many").click()
    choose_heads(explorer, 37)
    cells = explorer.locator("table").nth(1).locator("td").all_text_contents()
    rows = []
    for sentence in load_links():
        maps, names = model.run(sentence.text, bert_attention)[1][3, 1], model.tokens(sentence.text)
        words = ~is_delimiter(names)
        others = is_delimiter(names)
        others[0] = False
        before, itself, after = (np.diagonal(maps, offset).mean() for offset in (-1, 0, 1))
        rows.append([maps[words, 0].mean(), maps[words][:, others].sum(axis=1).mean(), before, itself, after])
    assert [float(cell) for cell in cells] == pytest.approx(np.mean(rows, axis=0), abs=0.001)


def test_the_keyboard_alone_is_enough(explorer, window):
    explorer.locator(".explorer-tokens button[aria-pressed=true]").focus()
    for key, place in {
        "ArrowRight": 11,
        "ArrowDown": 12,
        "ArrowLeft": 11,
        "ArrowUp": 10,
        "Home": 0,
        "End": 15,
    }.items():
        window.keyboard.press(key)
        assert pressed(explorer, ".explorer-tokens button") == [place]
    window.keyboard.press("ArrowRight")  # stays
    assert pressed(explorer, ".explorer-tokens button") == [15]
    window.keyboard.press("Tab")  # out of the tokens, to the heads, in one step
    label = "document.activeElement.getAttribute('aria-label')"
    assert window.evaluate(label) == "L1H1"
    for key, name in {"ArrowDown": "L2H1", "ArrowRight": "L2H2", "ArrowUp": "L1H2"}.items():
        window.keyboard.press(key)
        assert window.evaluate(label) == name
    window.keyboard.press("Enter")
    assert "L1H2" in explorer.locator("figcaption").all_inner_texts()
    window.keyboard.press("Tab")
    assert window.evaluate(label) == "All heads of layer 1"
    window.keyboard.press("Shift+Tab")
    assert window.evaluate(label) == "L1H2"  # back where it was


def test_it_can_be_understood_without_seeing_it(explorer):
    for group in (re.compile("token that asks"), re.compile("Heads, a layer in a row")):
        assert explorer.get_by_role("group", name=group).get_by_role("button").count() > 10
    assert explorer.get_by_role("status").filter(has_text="looks most at").count() == 1
    explorer.get_by_text("The same numbers as a table").click()
    heads = explorer.get_by_role("table").get_by_role("columnheader").all_inner_texts()
    assert heads == ["Place", "Key", "L4H2", "L1H3", "Rules"]
    assert explorer.locator("svg:not([aria-hidden=true]), canvas:not([aria-hidden=true])").count() == 0


def test_a_shorter_sentence_keeps_a_token_chosen(explorer):
    explorer.locator(".explorer-tokens button").last.click()
    explorer.get_by_label("Sentence", exact=True).select_option(TEXTS[2])
    last = explorer.locator(".explorer-tokens button").count() - 1
    assert pressed(explorer, ".explorer-tokens button") == [last]


@pytest.mark.parametrize("width", [320, 360])
def test_it_fits_a_telephone(explorer, window, width):
    window.set_viewport_size({"width": width, "height": 800})
    explorer.get_by_label("All heads of layer 2").click()
    explorer.get_by_text("The same numbers as a table").click()
    assert window.evaluate("document.scrollingElement.scrollWidth") <= width
    assert explorer.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_ones_own_sentence_stays_here_and_is_shown_as_the_model_sees_it(
    served_explorer, page, model, addresses
):
    served_explorer.get_by_label("Your own sentence").fill(OWN)
    before = len(page.requests)
    served_explorer.get_by_role("button", name="Run the model").click()
    served_explorer.get_by_text("Nothing has left this computer").wait_for()
    assert {url.removeprefix(f"{addresses['http']}/_static/") for url in page.requests[before:]} <= {
        "own_sentence.js",
        "wordpiece.js",
        "minilm.js",
        "minilm/vocabulary.txt",
        "minilm/weights.safetensors",
    }
    choose_heads(served_explorer, 37, 2)
    served_explorer.locator(".explorer-tokens button").nth(4).click()
    names, weights, _, _ = table(served_explorer)
    assert names == model.tokens(OWN)
    maps = model.run(OWN, bert_attention)[1]
    assert weights[:, 0] == pytest.approx(maps[3, 1, 4], abs=0.05)
    assert weights[:, 1] == pytest.approx(maps[0, 2, 4], abs=0.05)
    served_explorer.get_by_text("Which words are nouns?").click()
    served_explorer.get_by_label("Nouns, with").fill("Explorers, transformers")
    rules = table(served_explorer)[3]
    assert rules[names.index("explorers")] == "first noun, noun before"
    served_explorer.get_by_label("Your own sentence").fill(" ")
    served_explorer.get_by_role("button", name="Run the model").click()
    served_explorer.get_by_text("There is no word in the text.").wait_for()
    assert (
        served_explorer.get_by_label("Sentence", exact=True).input_value() == "6"
    )  # the last good one stays


def test_from_a_folder_the_page_says_how_to_serve_it(page, addresses):
    page.goto(f"{addresses['file']}/book/all_heads.html")
    said = page.locator(".explorer-own").inner_text()
    assert "python -m http.server" in said
    assert page.get_by_role("button", name="Run the model").count() == 0
    assert page.locator(".explorer-grid button").count() == 78


def test_without_scripts_the_reader_is_told_so(chromium, addresses):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{addresses['file']}/book/all_heads.html")
    assert "needs JavaScript" in page.locator(".explorer noscript").inner_text()
    context.close()


def test_only_this_page_offers_the_model(book):
    for path in book.rglob("*.html"):
        has = "explorer.js" in path.read_text("utf-8")
        assert has == (path.name == "all_heads.html"), path
    assert (book / "_static" / "minilm" / "weights.safetensors").stat().st_size < 24_000_000
