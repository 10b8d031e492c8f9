"""The model in the browser: its tokens are those of the tokenizer, its weights nearly those of the whole model."""

import random
import shutil

import numpy as np
import pytest

from mha_lib.minilm.browser_model import LONGEST, write_browser_model
from mha_lib.minilm.labelled_links import LATER, load_links
from mha_lib.minilm.minilm import MiniLM
from mha_lib.real_heads import bert_attention

from .conftest import ROOT, served

ODD = [
    "",
    " \t\n ",
    "Café, naïve, Ångström; ÉCOLE!",
    "Straße in İstanbul, ΑΘΗΝΑ, Привет мир",
    "don't re-use e.g. $5.00 (50 %) or x_1=y^2 <b>&amp;</b>",
    "electroencephalographically antidisestablishmentarianism",
    "a" * 100 + " " + "b" * 101,
    "我喜欢注意力 and 日本語のテキスト, 한국어",
    "an emoji 🙂 and a flag 🇩🇪, zero\u200bwidth, soft\u00adhyphen, nbsp\u00a0here",
    "two\u2028lines \u0000and\ufffd control\u0007 characters",
    "[CLS] is a token, [MASK] too, [mask] is none, [PAD][SEP]",
    "“curly” — dashes… ¿qué? ‹x› 100€ ½ ² ﬁ",
    "ﬀ Å é q̇̇ ẞ ŉ",
]
RUN = """async ([address, texts]) => {
    const worker = new Worker(`${address}/own_sentence.js`)
    const answers = []
    for (const text of texts) {
        worker.postMessage(text)
        answers.push(await new Promise((done) => {
            worker.onmessage = ({data}) => 'text' in data && done({...data, maps: data.maps && [...data.maps]})
        }))
    }
    return answers
}"""
TOKENIZE = """async ([address, texts]) => {
    const vocabulary = readVocabulary(await (await fetch(`${address}/minilm/vocabulary.txt`)).text())
    return texts.map((text) => tokenize(text, vocabulary))
}"""


@pytest.fixture(scope="module")
def model():
    return MiniLM()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server that has what the page loads, without the book around it."""
    folder = tmp_path_factory.mktemp("static")
    for name in ("wordpiece.js", "minilm.js", "own_sentence.js"):
        shutil.copy(ROOT / "book" / "_static" / name, folder)
    write_browser_model(folder / "minilm")
    (folder / "empty.html").write_text("<!doctype html><html lang=en><title>t</title>")
    with served(folder) as address:
        yield address


@pytest.fixture
def empty(page, address):
    page.goto(f"{address}/empty.html")
    return page


def tokens_in_browser(page, address, texts):
    page.add_script_tag(url=f"{address}/wordpiece.js")
    return page.evaluate(TOKENIZE, [address, texts])


def test_twenty_sentences_have_the_models_tokens_and_nearly_its_weights(empty, address, model):
    texts = [sentence.text for sentence in load_links()[:12] + load_links(LATER)[:8]]
    answers = empty.evaluate(RUN, [address, texts])
    differences, strongest = [], []
    for text, answer in zip(texts, answers, strict=True):
        assert answer["tokens"] == model.tokens(text)
        _, maps = model.run(text, bert_attention)  # (6, 12, n, n)
        ours = np.array(answer["maps"]).reshape(maps.shape)
        assert ours.sum(axis=-1) == pytest.approx(1, abs=1e-5)
        differences.append(np.abs(ours - maps).ravel())
        strongest.append((ours.argmax(axis=-1) == maps.argmax(axis=-1)).ravel())
    difference, same = np.concatenate(differences), np.concatenate(strongest).mean()
    seconds = np.array([answer["milliseconds"] for answer in answers]) / 1000
    print(f"difference {difference.mean():.5f} on average, {difference.max():.3f} at most")
    print(
        f"same strongest key in {same:.2%}; {seconds.mean():.2f} s a sentence, {seconds.max():.2f} s at most"
    )
    assert difference.mean() < 0.002
    assert difference.max() < 0.1
    assert same > 0.98


def test_the_forward_pass_is_exact_but_for_the_8_bits(empty, address, model):
    """With the weights that the browser has, in whole numbers times a scale, NumPy gets the same."""
    from safetensors.numpy import load

    from mha_lib.minilm.browser_model import small_weights
    from mha_lib.minilm.minilm import find_model

    small = small_weights(load((find_model() / "model.safetensors").read_bytes()))
    coarse = MiniLM()
    coarse._weights = {
        name: array * np.float64(small[f"{name}.scale"])[:, None] if f"{name}.scale" in small else array
        for name, array in small.items()
    }
    coarse.attention = [coarse._attention_of(layer) for layer in range(6)]
    texts = ["The keys to the cabinet are on the table.", "electroencephalographically, 50 % " * 5]
    for text, answer in zip(texts, empty.evaluate(RUN, [address, texts]), strict=True):
        _, maps = coarse.run(text, bert_attention)
        assert np.array(answer["maps"]).reshape(maps.shape) == pytest.approx(maps, abs=2e-5)


def test_odd_texts_have_the_tokenizers_tokens(empty, address, model):
    texts = [*ODD, " ".join(ODD)]
    expected = [model._tokenizer.encode(text) for text in texts]
    for text, ours, theirs in zip(texts, tokens_in_browser(empty, address, texts), expected, strict=True):
        assert (text, ours[: LONGEST - 1]) == (text, theirs.tokens[: LONGEST - 1])  # it cuts at 128


def test_random_texts_have_the_tokenizers_tokens(empty, address, model):
    rng = random.Random(0)
    blocks = [
        (32, 127),
        (32, 127),
        (160, 0x250),
        (0x250, 0x590),
        (0x2000, 0x2070),
        (0x3000, 0x3100),
        (0x4E00, 0x4F00),
    ]
    texts = ["".join(chr(rng.randrange(*rng.choice(blocks))) for _ in range(30)) for _ in range(500)]
    for text, ours in zip(texts, tokens_in_browser(empty, address, texts), strict=True):
        assert (text, ours) == (text, model.tokens(text))


def test_a_text_that_cannot_be_shown_is_refused_in_words_and_the_next_one_runs(empty, address):
    answers = empty.evaluate(RUN, [address, [" ", "word " * 63, "word " * 62]])
    assert answers[0]["error"] == "There is no word in the text."
    assert answers[1]["error"] == "The text has 65 tokens; this page shows up to 64. Shorten it."
    assert len(answers[2]["maps"]) == 72 * 64 * 64


def test_a_model_that_is_not_there_is_named(page, tmp_path):
    for name in ("wordpiece.js", "minilm.js", "own_sentence.js"):
        shutil.copy(ROOT / "book" / "_static" / name, tmp_path)
    (tmp_path / "empty.html").write_text("<!doctype html><html lang=en><title>t</title>")
    with served(tmp_path) as address:
        page.goto(f"{address}/empty.html")
        [answer] = page.evaluate(RUN, [address, ["one"]])
    assert "vocabulary.txt could not be loaded: 404" in answer["error"]
