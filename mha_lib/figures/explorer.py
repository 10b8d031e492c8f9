"""A part of a page in which readers explore the attention weights of real heads.

The data stand in the page, as JSON; scripts in `book/_static` make the controls. So it works without a network and
from a folder.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_lib.minilm.head_scores import delimiter_score, is_delimiter, owners
from mha_lib.minilm.labelled_links import Labelled, agrees
from mha_lib.minilm.link_answers import marked_nouns
from mha_lib.real_heads import offset_score

SCRIPTS = ("elements.js", "head_maps.js", "head_drawing.js", "explorer.js")  # in this order
KINDS = ("[CLS]", "[SEP], punctuation", "token before", "itself", "token after")


def average_looks(maps: Sequence[np.ndarray], tokens: Sequence[Sequence[str]]) -> np.ndarray:
    """Where the words of many sentences look, on average over the sentences.

    Args:
        maps: the attention weights of each sentence, `(layers, heads, n, n)`.
        tokens: the n tokens of each, from [CLS] to [SEP].

    Returns:
        Array `(layers · heads, 5)`, in the order of `KINDS`. The first two are the weights of words only, as in
        `mha_lib.minilm.head_scores.delimiter_score`; the rest are those of all tokens, as in
        `mha_lib.real_heads.offset_score`.
    """
    rows = []
    for weights, names in zip(maps, tokens, strict=True):
        heads = weights.reshape(-1, *weights.shape[2:])  # (layers · heads, n, n)
        on_cls = heads[:, ~is_delimiter(names), 0].mean(axis=1)  # (layers · heads,)
        on_marks = delimiter_score(heads, names) - on_cls
        rows.append([on_cls, on_marks, *(offset_score(heads, offset) for offset in (-1, 0, 1))])
    return np.asarray(np.mean(rows, axis=0)).T  # (layers · heads, 5)


def stored_sentence(
    number: int, sentences: Sequence[Labelled], tokens: Sequence[str], maps: np.ndarray
) -> dict[str, Any]:
    """What the explorer needs of one of the labelled sentences, as data for JSON.

    Args:
        number: which of the sentences it is.
        sentences: all of them; twins tell each other their nouns.
        tokens: its n tokens.
        maps: its attention weights, `(layers, heads, n, n)`; they are rounded to thousandths.
    """
    sentence, nouns = sentences[number], marked_nouns(sentences)[number]
    places = list(owners(sentence.text, tokens))  # (n,): the word of each token
    links: dict[int, list[int]] = {}
    for start, end in (link for relation in sentence.links.values() for link in relation):
        links.setdefault(places.index(start), []).append(places.index(end))
    fits: dict[int, int] = {}
    for start, _ in sentence.links["pronoun"]:
        fitting = [noun for noun in nouns if agrees(sentence.words[start], sentence.words[noun])]
        fits |= {places.index(start): places.index(noun) for noun in fitting[:1]}
    return {
        "text": sentence.text,
        "tokens": list(tokens),
        "maps": np.rint(1000 * maps).astype(int).reshape(-1, len(tokens) ** 2).tolist(),
        "nouns": [sentence.words[noun].lower() for noun in nouns],
        "links": links,
        "fits": fits,
    }


def explorer_html(
    sentences: Sequence[dict[str, Any]],
    averages: np.ndarray,
    start: dict[str, Any],
    static: str = "../_static",
) -> str:
    """The HTML of an explorer.

    Args:
        sentences: from `stored_sentence`.
        averages: from `average_looks`.
        start: what is shown first, counted from 0: `sentence`, `heads` (a list) and `query`.
        static: where the scripts are, as seen from the page.

    Returns:
        HTML. Nothing in the texts can end the block of data or be taken for a tag.

    >>> page = explorer_html([{"text": "</script><b>"}], np.zeros((1, 5)), {"sentence": 0})
    >>> page.count("</script>"), "<b>" in page  # the data, and four scripts
    (5, False)
    """
    data = {
        "start": start,
        "kinds": KINDS,
        "averages": np.rint(1000 * averages).astype(int).tolist(),
        "sentences": list(sentences),
    }
    safe = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    scripts = "".join(f'<script src="{static}/{script}" defer></script>' for script in SCRIPTS)
    return (
        '<div class="explorer"><noscript>The explorer needs JavaScript. The pictures in the chapter Real heads show'
        f' some of the same weights.</noscript><script type="application/json">{safe}</script></div>{scripts}'
    )
