"""The calculator says what `mha_lib` says, and the tables of models have the same data as it."""

import re

import pytest

from book._ext.published_models import load_models
from mha_lib.counting import attention_flops, count_parameters
from mha_lib.heads import head_dim
from mha_lib.kv_cache import kv_cache_bytes

from .conftest import forget

PAGE = "book/calculator.html"
MESSAGE = "#hc-message"
FIELDS = ["hc-d-model", "hc-heads", "hc-kv-heads", "hc-d-k", "hc-layers", "hc-n"]


def type_in(page, *values):
    """Fill the fields from the first one on with the keyboard alone."""
    page.locator("#hc-d-model").focus()
    for field, value in zip(FIELDS, values, strict=False):
        assert page.evaluate("document.activeElement.id") == field
        page.keyboard.press("Control+A")
        page.keyboard.type(str(value)) if value != "" else page.keyboard.press("Delete")
        page.keyboard.press("Tab")


def shown(page, name):
    """The whole number in a cell of the results."""
    return int(re.match(r"[\d,]+", page.locator(f"#hc-{name}").inner_text())[0].replace(",", ""))


@pytest.fixture
def calculator(window, addresses):
    forget(window)
    window.goto(f"{addresses['file']}/{PAGE}")
    yield window
    assert window.troubles == []


@pytest.mark.parametrize("num_bytes", [4, 2, 1])
@pytest.mark.parametrize(
    ("d_model", "heads", "kv_heads", "layers", "n"),
    [
        (768, 12, "", 1, 512),
        (8192, 64, 8, 80, 4096),
        (12, 3, 1, 7, 5),
        (6, 1, 1, 2, 1),
        (16384, 128, 8, 3, 3_000_001),
    ],
)
def test_it_agrees_with_the_functions(calculator, d_model, heads, kv_heads, layers, n, num_bytes):
    type_in(calculator, d_model, heads, kv_heads, "", layers, n)
    calculator.locator("#hc-bytes").select_option(str(num_bytes))
    kv_heads = kv_heads or heads
    parameters = count_parameters(d_model, heads, kv_heads)
    saved = count_parameters(d_model, heads) - parameters  # of weights that would all meet n tokens
    d_k = head_dim(d_model, heads)
    share = 100 * n / (n + parameters / (2 * d_model))  # of 4 n² d_model in the FLOPs
    message = calculator.locator(MESSAGE).inner_text()
    assert f"Each head is {d_k:,} wide" in message
    assert f"Scores and mixing are {share:.0f} % of the FLOPs" in message
    expected = {
        "parameters": parameters,
        "weights": parameters * num_bytes,
        "flops": attention_flops(n, d_model) - 2 * n * saved,
        "scores": heads * n * n * num_bytes,
        "cache": kv_cache_bytes(1, n, 1, kv_heads, d_k, num_bytes),
        "cache-token": kv_cache_bytes(1, 1, 1, kv_heads, d_k, num_bytes),
    }
    assert {name: shown(calculator, name) for name in expected} == expected
    everywhere = {name: layers * number for name, number in expected.items()}
    assert {name: shown(calculator, f"all-{name}") for name in expected} == everywhere


def test_heads_that_are_not_as_wide_together_as_the_model(calculator):
    """The formulas of *Several heads*, for a layer whose products have shapes of their own."""
    d_model, heads, kv_heads, d_k, n = 10, 6, 2, 4, 7
    type_in(calculator, d_model, heads, kv_heads, d_k, 1, n)
    shapes = [(n, 10), (10, 24), (10, 8), (6, n, 4), (2, n, 4), (6, n, n), (n, 24), (24, 10), (n, 10)]
    cells = calculator.locator("#hc-shapes td").all_inner_texts()
    assert [tuple(map(int, re.findall(r"\d+", cell))) for cell in cells] == shapes
    weights = [shapes[1], shapes[2], shapes[2], shapes[7]]
    assert shown(calculator, "parameters") == sum(rows * columns for rows, columns in weights)
    products = sum(2 * n * rows * columns for rows, columns in weights) + 2 * (2 * heads * n * n * d_k)
    assert shown(calculator, "flops") == products
    assert shown(calculator, "cache-token") == 2 * kv_heads * d_k * 2


def test_a_model_fills_the_fields_and_typing_leaves_it(calculator):
    for model in load_models():
        calculator.get_by_label("Model", exact=True).select_option(model["name"])
        sizes = [calculator.locator(f"#{field}").input_value() for field in FIELDS[:5]]
        assert sizes == [str(model[size]) for size in ("d_model", "heads", "kv_heads", "d_k", "layers")]
        parameters = 2 * model["d_model"] * (model["heads"] + model["kv_heads"]) * model["d_k"]
        assert shown(calculator, "all-parameters") == model["layers"] * parameters
    type_in(calculator, 512)
    assert calculator.get_by_label("Model", exact=True).input_value() == ""


def test_the_table_has_the_models_that_can_be_chosen(calculator):
    rows = calculator.locator("#the-formulas table tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(0, 6).map(cell => cell.innerText.trim()))"
    )
    sizes = ("name", "d_model", "heads", "kv_heads", "d_k", "layers")
    assert rows == [[str(model[size]) for size in sizes] for model in load_models()]


def test_where_h_times_d_k_is_not_d_model_no_width_is_refused(calculator):
    type_in(calculator, 7, 2, "", 4)
    assert "Each head is 4 wide" in calculator.locator(MESSAGE).inner_text()


@pytest.mark.parametrize(("d_model", "heads"), [(7, 2), (100, 7), (3, 5)])
def test_widths_that_do_not_divide_give_the_functions_error(calculator, d_model, heads):
    type_in(calculator, d_model, heads, "", "")
    with pytest.raises(ValueError) as error:
        head_dim(d_model, heads)
    message = calculator.locator(MESSAGE)
    assert message.inner_text() == str(error.value)
    assert message.get_attribute("aria-live") == "polite"
    assert calculator.locator("#hc-heads").get_attribute("aria-invalid") == "true"
    assert calculator.locator("#hc-parameters").inner_text() == "–"


def test_after_an_error_it_goes_on(calculator):
    type_in(calculator, 7, 2, "", "")
    type_in(calculator, 768, 12)
    assert "Each head is 64 wide" in calculator.locator(MESSAGE).inner_text()
    assert calculator.locator("[aria-invalid=true]").count() == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((768, 12, 5), "num_heads=12 cannot share num_kv_heads=5: 12 / 5 = 2.4"),
        ((0, 12), "d_model must be a whole number"),
        ((768, "-12"), "The number of heads must be a whole number"),
        ((768, 12, 4, "x"), "d_k must be a whole number"),
        ((768, 12, 4, "", 0), "The number of layers must be a whole number"),
        ((768, 12, 4, 64, 2, "1.5"), "n must be a whole number"),
        ((768, 12, 4, 64, 2, ""), "n must be a whole number"),
    ],
)
def test_what_cannot_be_is_said(calculator, values, said):
    type_in(calculator, *values)
    assert said in calculator.locator(MESSAGE).inner_text()
    assert (
        calculator.locator("[aria-invalid=true]").get_attribute("id")
        == FIELDS[len(values) - 1 if values[0] else 0]
    )


def test_enter_does_not_leave_the_page(calculator):
    type_in(calculator, 768)
    calculator.locator("#hc-n").press("Enter")
    assert calculator.url.endswith(PAGE)


def test_every_field_has_a_label_that_a_screen_reader_finds(calculator):
    for label, field in [
        ("Width of the model, d_model", "hc-d-model"),
        ("Heads, h", "hc-heads"),
        ("Heads for keys and values (empty: h)", "hc-kv-heads"),
        ("Width of a head, d_k (empty: d_model / h)", "hc-d-k"),
        ("Layers", "hc-layers"),
        ("Tokens, n", "hc-n"),
        ("Numbers stored as", "hc-bytes"),
    ]:
        assert calculator.get_by_label(label, exact=True).get_attribute("id") == field


def test_large_results_fit_a_small_screen(calculator):
    calculator.set_viewport_size({"width": 360, "height": 800})
    type_in(calculator, 999_999_998, 2, "", "", 999_999_999, 999_999_999)
    assert calculator.evaluate("document.scrollingElement.scrollWidth") <= 360
    form = calculator.locator("#head-calculator")
    assert form.evaluate("form => form.scrollWidth <= form.clientWidth")


def test_only_the_page_that_shows_it_loads_it(page, addresses):
    for name, loads in [("calculator", True), ("one_query", False)]:
        page.requests.clear()
        page.goto(f"{addresses['http']}/book/{name}.html")
        assert any("calculator.js" in url for url in page.requests) is loads


def test_without_scripts_the_page_says_where_the_example_is(chromium, addresses):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{addresses['file']}/{PAGE}")
    assert page.get_by_text("The calculator needs JavaScript").is_visible()
    assert not page.locator("#head-calculator").is_visible()
    context.close()
