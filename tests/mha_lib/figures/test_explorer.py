import json
import re

import numpy as np
import pytest

from mha_lib.figures.explorer import KINDS, average_looks, explorer_html, stored_sentence
from mha_lib.minilm.labelled_links import load_links
from mha_lib.minilm.minilm import load_sample


def data_in(html):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture(scope="module")
def stored():
    """The sentences of the stored sample, as the page has them."""
    sample, labelled = load_sample(), load_links()
    texts = [sentence.text for sentence in labelled]
    return [
        stored_sentence(texts.index(text), labelled, tokens, maps)
        for text, tokens, maps in zip(sample.texts, sample.tokens, sample.maps, strict=True)
    ]


def test_the_data_are_the_weights_in_thousandths(stored):
    sample = load_sample()
    start = {"sentence": 1, "heads": [3, 4], "query": 2}
    data = data_in(explorer_html(stored, np.full((72, len(KINDS)), 0.25), start))
    assert data["start"] == start
    assert np.shape(data["averages"]) == (72, len(KINDS))
    for names, weights, sentence in zip(sample.tokens, sample.maps, data["sentences"], strict=True):
        assert sentence["tokens"] == names
        ours = np.array(sentence["maps"]).reshape(weights.shape) / 1000
        np.testing.assert_allclose(ours, weights, atol=0.0005)


def test_links_and_fitting_nouns_are_places_of_tokens(stored):
    for sentence in stored[:2]:
        tokens = sentence["tokens"]
        it, animal = tokens.index("it"), tokens.index("animal")
        assert sentence["fits"] == {it: animal}
        assert sentence["nouns"] == ["animal", "street"]
    assert stored[1]["links"][it] == [stored[1]["tokens"].index("street")]


def test_averages_by_hand():
    names = ["[CLS]", "no", ".", "[SEP]"]
    maps = np.array([[1, 0, 0, 0], [0.4, 0.3, 0.2, 0.1], [0, 0.5, 0.5, 0], [0, 0, 0, 1]])[None, None]
    expected = [0.4, 0.3, (0.4 + 0.5 + 0) / 3, (1 + 0.3 + 0.5 + 1) / 4, 0.2 / 3]
    np.testing.assert_allclose(average_looks([maps, maps], [names, names]), [expected])


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!-- <script>", 'a "b" & c\\'])
def test_no_text_can_leave_its_block(text):
    html = explorer_html([{"text": text}], np.zeros((1, 5)), {})
    assert data_in(html)["sentences"][0]["text"] == text
    assert html.count("<script") == html.count("</script>") == 5
    assert "<!--" not in html


def test_the_stored_sentences_take_less_than_half_a_megabyte(stored):
    assert len(explorer_html(stored, np.zeros((72, 5)), {})) < 500_000
