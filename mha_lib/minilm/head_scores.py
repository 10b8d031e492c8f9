"""What the heads of a trained model look at, as numbers, from their attention weights alone.

`delimiter_score`, `broadcast_score` and `repetition_score` tell where a head looks; `mean_over_texts` averages such
a score. `owners` and `word_maps` turn weights between tokens into weights between words.
"""

from collections.abc import Callable, Sequence

import numpy as np

from mha_lib.minilm.labelled_links import WORD

SPECIAL = ("[CLS]", "[SEP]")


def mean_over_texts(maps: Sequence[np.ndarray], score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A score of heads, averaged over texts, each of which counts the same.

    Args:
        maps: for each text the attention weights `(layers, heads, n, n)`.
        score: called for each text with all heads, `(layers · heads, n, n)`; returns `(layers · heads,)`.

    Returns:
        Array `(layers, heads)`.
    """
    layers, heads = maps[0].shape[:2]
    scores = [score(m.reshape(-1, *m.shape[2:])) for m in maps]  # (layers · heads,) each
    return np.mean(scores, axis=0).reshape(layers, heads)


def is_delimiter(tokens: Sequence[str]) -> np.ndarray:
    """Which of n tokens are [CLS], [SEP] or punctuation: booleans `(n,)`."""
    return np.array([token in SPECIAL or not any(c.isalnum() for c in token) for token in tokens])


def delimiter_score(attention_weights: np.ndarray, tokens: Sequence[str]) -> np.ndarray:
    """How much of the weight of the words goes to delimiters: [CLS], [SEP] and punctuation.

    Args:
        attention_weights: `(heads, n, n)`.
        tokens: the n tokens; at least one is no delimiter.

    Returns:
        Array `(heads,)`: the weight on all delimiters together, averaged over the queries that are none.

    Source: Clark et al. 2019, What Does BERT Look At?, section 3.2.

    >>> equal = np.full((1, 4, 4), 0.25)
    >>> delimiter_score(equal, ["[CLS]", "no", ".", "[SEP]"])
    array([0.75])
    """
    mark = is_delimiter(tokens)  # (n,)
    return attention_weights[:, ~mark][:, :, mark].sum(axis=2).mean(axis=1)


def broadcast_score(attention_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether all queries look at the same key.

    Args:
        attention_weights: `(heads, n, m)`.

    Returns:
        Two arrays `(heads,)`: the largest mean weight, over all queries, that any one key gets, and which key
        that is. 1 means that every query puts all of its weight on this key; 1/m is the smallest possible.

    >>> scores, keys = broadcast_score(np.array([[[0.1, 0.9], [0.3, 0.7]], [[1.0, 0.0], [0.0, 1.0]]]))
    >>> scores, keys
    (array([0.8, 0.5]), array([1, 0]))
    """
    received = attention_weights.mean(axis=1)  # (heads, m)
    return received.max(axis=1), received.argmax(axis=1)


def repetition_score(attention_weights: np.ndarray, tokens: Sequence[str]) -> tuple[np.ndarray, float]:
    """How much weight a token puts on its other occurrences.

    Args:
        attention_weights: `(heads, n, n)`.
        tokens: the n tokens; at least one occurs twice.

    Returns:
        Array `(heads,)`: the weight on all *other* occurrences of the query's token, averaged over the queries
        that have any; and what equal weights on all n tokens would give.

    >>> weights = np.array([[[0.2, 0.1, 0.7], [0.3, 0.4, 0.3], [0.5, 0.1, 0.4]]])
    >>> scores, chance = repetition_score(weights, ["the", "cat", "the"])
    >>> scores, round(chance, 2)  # (0.7 + 0.5) / 2, and a third
    (array([0.6]), 0.33)
    """
    names = np.array(tokens)
    other = (names[:, None] == names) & ~np.eye(len(names), dtype=bool)  # (n, n)
    queries = other.any(axis=1)  # (n,)
    on_others = (attention_weights * other).sum(axis=2)  # (heads, n)
    return on_others[:, queries].mean(axis=1), float(other[queries].mean())


def owners(text: str, tokens: Sequence[str]) -> np.ndarray:
    """To which word of a text each token belongs.

    Args:
        text: a text of plain letters.
        tokens: its n tokens, [CLS] and [SEP] included; pieces of a word begin with ##, but for the first.

    Returns:
        Array `(n,)`: places among the words of the text (`mha_lib.minilm.labelled_links.WORD`), and −1 for [CLS],
        [SEP] and punctuation.

    Raises:
        ValueError: if the tokens are not those of the text.

    >>> owners("No homework, please.", ["[CLS]", "no", "home", "##work", ",", "please", ".", "[SEP]"])
    array([-1,  0,  1,  1, -1,  2, -1, -1])
    """
    spans = [match.span() for match in WORD.finditer(text)]
    places, at = [], 0
    for token in tokens:
        if token in SPECIAL:
            places.append(-1)
            continue
        piece = token.removeprefix("##")
        start = text.lower().find(piece, at)
        if start < 0 or text[at:start].strip():
            raise ValueError(f"{token!r} is not the next token of {text[at:]!r}")
        at = start + len(piece)
        inside = [place for place, (a, b) in enumerate(spans) if a <= start < b]
        places.append(inside[0] if inside else -1)
    return np.array(places)


def word_maps(attention_weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Attention weights between words, from those between tokens.

    The weight *to* a word is the sum over its tokens; the weight *from* a word is the mean over its tokens.
    What goes to [CLS], [SEP] and punctuation is left out, so a row sums to less than 1.

    Args:
        attention_weights: `(…, n, n)`.
        places: `(n,)`, from `owners`.

    Returns:
        Array `(…, w, w)`.

    Source: Clark et al. 2019, section 4.1.

    >>> word_maps(np.array([[0.2, 0.3, 0.5], [0.4, 0.1, 0.5], [0.0, 0.2, 0.8]]), np.array([0, 0, 1]))
    array([[0.5, 0.5],
           [0.2, 0.8]])
    """
    member = places[:, None] == np.arange(places.max() + 1)  # (n, w)
    return (member / member.sum(axis=0)).T @ attention_weights @ member
