import json
import re

import numpy as np
import pytest

from mha_lib.figures.explorer import explorer_html
from mha_lib.minilm.minilm import load_sample


def data_in(html):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1])


def test_the_data_are_the_weights_in_thousandths(rng):
    texts, tokens = ["a b", "c d e"], [["a", "b"], ["c", "d", "e"]]
    maps = [rng.dirichlet(np.ones(n), size=(4, 5, n)) for n in (2, 3)]
    data = data_in(explorer_html(texts, tokens, maps, start=(1, 3, 4, 2)))
    assert data["start"] == [1, 3, 4, 2]
    for text, names, weights, sentence in zip(texts, tokens, maps, data["sentences"], strict=True):
        assert (sentence["text"], sentence["tokens"]) == (text, names)
        np.testing.assert_allclose(np.array(sentence["maps"]) / 1000, weights, atol=0.0005)


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!-- <script>", 'a "b" & c\\'])
def test_no_text_can_leave_its_block(text):
    html = explorer_html([text], [[text]], [np.ones((1, 1, 1, 1))])
    assert data_in(html)["sentences"][0]["text"] == text
    assert html.count("<script") == html.count("</script>") == 2
    assert "<!--" not in html


def test_the_stored_sentences_take_less_than_half_a_megabyte():
    sample = load_sample()
    assert len(explorer_html(sample.texts, sample.tokens, sample.maps)) < 500_000
