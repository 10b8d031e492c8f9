"""The attention explorer in the built chapter: it shows the model's own numbers, to every kind of reader."""

import re

import pytest

from mha_lib.minilm.minilm import MiniLM, load_sample
from mha_lib.real_heads import bert_attention


@pytest.fixture(scope="module")
def model():
    return MiniLM()


@pytest.fixture(params=["file", "http"])
def explorer(page, addresses, request):
    page.goto(f"{addresses[request.param]}/book/real_heads.html")
    box = page.locator(".explorer")
    box.scroll_into_view_if_needed()
    yield box
    assert page.troubles == []


def shown(explorer):
    """The numbers under the tokens, and those of the table."""
    tokens = [float(t) for t in explorer.locator(".explorer-tokens button span:last-child").all_inner_texts()]
    cells = [float(t) for t in explorer.locator("tbody td:last-child").all_text_contents()]
    return tokens, cells


def asking(explorer):
    """Which token asks: its place."""
    pressed = explorer.locator(".explorer-tokens button").evaluate_all(
        "buttons => buttons.map(b => b.getAttribute('aria-pressed'))"
    )
    assert pressed.count("true") == 1
    return pressed.index("true")


def test_choosing_and_pointing_show_the_numbers_of_the_model(explorer, model):
    texts = load_sample().texts
    for text, layer, head, place in [(0, 3, 1, 10), (4, 5, 11, 8), (2, 0, 2, 6), (5, 1, 8, 3)]:
        explorer.get_by_label("Sentence").select_option(texts[text])
        explorer.get_by_label("Layer").select_option(str(layer + 1))
        explorer.get_by_label("Head").select_option(str(head + 1))
        explorer.locator(".explorer-tokens button").nth(place).hover()
        assert asking(explorer) == place
        _, maps = model.run(texts[text], bert_attention)
        tokens, cells = shown(explorer)
        assert tokens == cells == pytest.approx(maps[layer, head, place], abs=0.0015)
        names = explorer.locator("tbody th").all_text_contents()
        assert names == model.tokens(texts[text])
        caption = explorer.locator("caption").text_content()
        assert f"token {place + 1}, in layer {layer + 1}, head {head + 1}" in caption


def test_it_starts_with_it_looking_at_the_animal(explorer):
    status = explorer.get_by_role("status").inner_text()
    assert re.match(r"“it” looks most at animal \(0\.6[78]\d\)", status)


def test_the_keyboard_alone_is_enough(explorer, page):
    explorer.get_by_label("Head").focus()
    page.keyboard.press("Tab")
    before = asking(explorer)
    press = {"ArrowRight": 1, "ArrowDown": 2, "ArrowLeft": 1, "ArrowUp": 0}
    for key, step in press.items():
        page.keyboard.press(key)
        assert asking(explorer) == before + step
        focused = page.evaluate(
            "[...document.activeElement.parentNode.children].indexOf(document.activeElement)"
        )
        assert focused == before + step
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")  # stays
    assert asking(explorer) == 0
    page.keyboard.press("End")
    assert asking(explorer) == explorer.locator(".explorer-tokens button").count() - 1
    page.keyboard.press("Tab")  # out of the tokens, to the table, in one step
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    assert explorer.get_by_role("table").is_visible()


def test_it_can_be_understood_without_seeing_it(explorer):
    group = explorer.get_by_role("group", name=re.compile("Who looks"))
    assert group.get_by_role("button", pressed=True).count() == 1
    assert group.get_by_role("button", name=re.compile(r"^animal\s*0\.\d{3}$")).count() == 1
    explorer.locator("summary").click()
    assert explorer.get_by_role("columnheader").all_inner_texts() == ["Place", "Key", "Weight"]
    assert explorer.get_by_role("rowheader").count() == group.get_by_role("button").count()


def test_a_shorter_sentence_keeps_a_token_chosen(explorer):
    explorer.locator(".explorer-tokens button").last.click()
    explorer.get_by_label("Sentence").select_option(load_sample().texts[2])
    assert asking(explorer) == explorer.locator(".explorer-tokens button").count() - 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_telephone_and_can_be_read_in_light_and_dark(explorer, page, theme):
    page.set_viewport_size({"width": 360, "height": 800})
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    explorer.locator("summary").click()
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    sizes = explorer.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert sizes[0] <= sizes[1]
    contrasts = explorer.locator(".explorer-tokens button").evaluate_all(CONTRASTS)
    assert min(contrasts) > 4.5


# Contrast (WCAG) of a token's text with the page behind it and with the filling.
CONTRASTS = """buttons => {
  const numbers = colour => {
    const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = colour => numbers(colour).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  return buttons.flatMap(b => {
    const style = getComputedStyle(b);
    let ground = b;
    while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
    const grounds = [getComputedStyle(ground).backgroundColor, style.getPropertyValue('--mha-fill')];
    return grounds.map(g => contrast(style.color, g));
  });
}"""


def test_without_scripts_the_reader_is_told_so(chromium, addresses):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{addresses['file']}/book/real_heads.html")
    assert "needs JavaScript" in page.locator(".explorer noscript").inner_text()
    context.close()


def test_the_page_stays_small(book):
    assert (book / "book" / "real_heads.html").stat().st_size < 1_000_000
    assert (book / "_static" / "explorer.js").stat().st_size < 8_000
