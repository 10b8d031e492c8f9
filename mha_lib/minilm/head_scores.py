"""What the heads of a trained model look at, as numbers, and how far simple rules get.

Two kinds of scores. *Where* a head looks, from its attention weights alone: `mean_over_texts` (offsets),
`delimiter_score`, `broadcast_score`, `repetition_score`. And *how often it is right* about links that somebody
has labelled: `word_maps` turns tokens into words, `collect` asks every head, and every rule that it has to
beat, and `judge` compares.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np

from mha_lib.minilm.labelled_links import WORD, Labelled, agrees

OFFSETS = tuple(offset for offset in range(-10, 11) if offset)
PLACES = tuple(range(10))
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


@dataclass(frozen=True)
class Answers:
    """What every head, and every simple rule, answers to the q questions of one relation in one direction.

    A question is a word that has a link. An answer is another word of the sentence. It is a hit if there is a
    link to it; a word may have several.

    Attributes:
        block: `(q,)`; twins share a block.
        hits: `(q, heads)`: does the head look most at a right word? The word itself, [CLS], [SEP] and
            punctuation do not count.
        whoever: `(q, heads)`: would it be a hit to take the word at which the *other* words of the sentence
            look most, on average, in this head?
        offset: `(q, len(OFFSETS))`: is the word that stands so many words further a right one?
        place: `(q, len(PLACES))`: is this word of the sentence, the first or the second and so on?
        chance: `(q,)`: the share of right words among the other words of the sentence.
        shuffled: `(repeats, heads)`: share of hits if the distances are exchanged at random between the
            questions: right is then a word as far away as in another question.
    """

    block: np.ndarray
    hits: np.ndarray
    whoever: np.ndarray
    offset: np.ndarray
    place: np.ndarray
    chance: np.ndarray
    shuffled: np.ndarray


def most_looked_at(weights: np.ndarray, query: int) -> np.ndarray:
    """The other word at which a word looks most, for each head: `(heads, w, w)` to `(heads,)`.

    >>> most_looked_at(np.array([[[0.5, 0.1, 0.2], [0.1, 0.6, 0.3], [0.0, 0.0, 0.0]]]), 0)
    array([2])
    """
    others = np.arange(weights.shape[1]) != query  # (w,)
    return np.where(others, weights[:, query], -1.0).argmax(axis=1)


def most_looked_at_by_others(weights: np.ndarray, query: int) -> np.ndarray:
    """The word, other than `query`, at which the words other than `query` look most on average: `(heads,)`."""
    others = np.arange(weights.shape[1]) != query  # (w,)
    received = weights[:, others].mean(axis=1)  # (heads, w)
    return np.where(others, received, -1.0).argmax(axis=1)


def collect(
    sentences: Sequence[Labelled],
    maps: Sequence[np.ndarray],
    relation: str,
    backwards: bool = False,
    without: int | None = None,
    repeats: int = 200,
    seed: int = 0,
) -> Answers:
    """Ask all heads about one relation.

    Args:
        sentences: the labelled sentences.
        maps: for each sentence the weights between its words, `(heads, w, w)`, from `word_maps`.
        relation: one of `mha_lib.minilm.labelled_links.RELATIONS`.
        backwards: False asks from the first word of each link to the second (a pronoun for its noun), True from
            the second to the first.
        without: leave out the questions that have a right word at this distance. None: leave out none.
        repeats: how often to shuffle the distances.
        seed: of the shuffling.
    """
    questions = []  # sentence, query, right words
    for number, sentence in enumerate(sentences):
        right: dict[int, list[int]] = {}
        for start, end in sentence.links[relation]:
            query, target = (end, start) if backwards else (start, end)
            right.setdefault(query, []).append(target)
        questions += [
            (number, query, targets)
            for query, targets in right.items()
            if without is None or query + without not in targets
        ]
    links = np.array(
        [
            (q, query, target, len(sentences[number].words))
            for q, (number, query, targets) in enumerate(questions)
            for target in targets
        ]
    )  # (links, 4)
    drawn = exchange_targets(links[:, 1], links[:, 2], links[:, 3], repeats, seed)  # (repeats, links)

    rows = []
    for q, (number, query, targets) in enumerate(questions):
        weights = maps[number]  # (heads, w, w)
        w = weights.shape[1]
        is_right = np.isin(np.arange(w), targets)  # (w,)
        picks = most_looked_at(weights, query)  # (heads,)
        others = drawn[:, None, links[:, 0] == q]  # (repeats, 1, targets)
        rows.append(
            (
                sentences[number].block,
                is_right[picks],
                is_right[most_looked_at_by_others(weights, query)],
                np.isin(query + np.array(OFFSETS), targets),
                np.isin(np.array(PLACES), targets),
                is_right.sum() / (w - 1),
                (picks[:, None] == others).any(axis=2),  # (repeats, heads)
            )
        )
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    columns[-1] = columns[-1].mean(axis=0)  # (repeats, heads)
    return Answers(*columns)


def exchange_targets(
    queries: np.ndarray, targets: np.ndarray, lengths: np.ndarray, repeats: int, seed: int
) -> np.ndarray:
    """Exchange the distances of links at random, many times.

    Two links that are drawn at random swap their distances, if both then still end inside their sentence; ten
    times as often as there are links. So every distance stays as common as it was.

    Args:
        queries: from where each link leads, `(links,)`.
        targets: to where, `(links,)`.
        lengths: of how many words the sentence of each link is, `(links,)`.
        repeats: how many results.
        seed: of the drawing.

    Returns:
        Array `(repeats, links)`: to where each link leads then.
    """
    rng = np.random.default_rng(seed)
    distances = np.tile(targets - queries, (repeats, 1))  # (repeats, links)
    rows = np.arange(repeats)
    for _ in range(10 * len(queries)):
        i, j = rng.integers(len(queries), size=(2, repeats))
        a, b = distances[rows, i], distances[rows, j]  # (repeats,) each
        ends = np.stack([queries[i] + b, queries[j] + a])  # (2, repeats)
        fits = ((ends >= 0) & (ends < np.stack([lengths[i], lengths[j]]))).all(axis=0)  # (repeats,)
        distances[rows, i] = np.where(fits, b, a)
        distances[rows, j] = np.where(fits, a, b)
    return queries + distances


def twin_hits(sentences: Sequence[Labelled], maps: Sequence[np.ndarray]) -> np.ndarray:
    """Which heads follow the pronoun of twin sentences, where one word changes whom it means.

    Args:
        sentences: the labelled sentences; twins stand side by side and share a block.
        maps: for each sentence the weights between its words, `(heads, w, w)`.

    Returns:
        Booleans `(pairs, 2, heads)`: is the word at which the pronoun looks most the right one, in each of the
        twins?
    """
    pairs = [
        [most_looked_at(maps[i], query) == first, most_looked_at(maps[i + 1], query) == second]
        for i, query, first, second in twins(sentences)
    ]
    return np.array(pairs)


def twin_shifts(sentences: Sequence[Labelled], maps: Sequence[np.ndarray]) -> np.ndarray:
    """How far the pronoun of twin sentences shifts its weight to the noun that is meant, if one word changes.

    For each head, take how many times more weight the pronoun puts on the noun that the first twin means than on
    the noun that the second means. This ratio, in the first twin, is divided by the same ratio in the second. A
    head that prefers one of the nouns, but minds the meaning a little, need not change its choice, and shifts all
    the same.

    Args:
        sentences: the labelled sentences; twins stand side by side and share a block.
        maps: for each sentence the weights between its words, `(heads, w, w)`, none of them 0.

    Returns:
        Array `(pairs, heads)`: above 1 where the weight shifts to the noun that is meant.
    """
    shifts = []
    for i, query, first, second in twins(sentences):
        ratios = [maps[j][:, query, first] / maps[j][:, query, second] for j in (i, i + 1)]
        shifts.append(ratios[0] / ratios[1])  # (heads,)
    return np.array(shifts)


def twins(sentences: Sequence[Labelled]) -> list[tuple[int, int, int, int]]:
    """For each pair of twins: which sentence is the first, the pronoun, and which noun it means in either twin."""
    pairs = []
    for i in range(len(sentences) - 1):
        if sentences[i].block == sentences[i + 1].block:
            links = [set(sentences[j].links["pronoun"]) for j in (i, i + 1)]
            [(query, first)], [(_, second)] = links[0] - links[1], links[1] - links[0]
            pairs.append((i, query, first, second))
    return pairs


def marked_nouns(sentences: Sequence[Labelled]) -> list[list[int]]:
    """The nouns of each sentence, as far as they are marked: the words to which a link leads, there or in its twin.

    >>> from mha_lib.minilm.labelled_links import load_links
    >>> first = load_links()[0]
    >>> [first.words[i] for i in marked_nouns(load_links())[0]]
    ['animal', 'street']
    """
    by_block: dict[int, set[int]] = {}
    for sentence in sentences:
        ends = {end for links in sentence.links.values() for _, end in links}
        by_block.setdefault(sentence.block, set()).update(ends)
    return [sorted(by_block[sentence.block]) for sentence in sentences]


def noun_rules(sentences: Sequence[Labelled], relation: str) -> np.ndarray:
    """How far rules get that know which words are nouns; three know nothing else, the fourth also what fits.

    The nouns are those of `marked_nouns`. It helps the rules that nouns without a link are not among them.

    Args:
        sentences: the labelled sentences.
        relation: one of `mha_lib.minilm.labelled_links.RELATIONS`; asked from the first word of each link.

    Returns:
        Booleans `(q, 4)`, in the order of `collect`: is it right to take the first noun of the sentence, the last
        noun before the word that asks, the first noun behind it, the first noun of the sentence for which the word
        that asks can stand, if it is a pronoun (`mha_lib.minilm.labelled_links.agrees`)? Where there is none, the
        rule is wrong.
    """
    rows = []
    for sentence, nouns in zip(sentences, marked_nouns(sentences), strict=True):
        right: dict[int, set[int]] = {}
        for start, end in sentence.links[relation]:
            right.setdefault(start, set()).add(end)
        for query, targets in right.items():
            before = [noun for noun in nouns if noun < query]
            behind = [noun for noun in nouns if noun > query]
            fitting = [noun for noun in nouns if agrees(sentence.words[query], sentence.words[noun])]
            answers = (nouns[:1], before[-1:], behind[:1], fitting[:1])
            rows.append([set(answer) <= targets and answer != [] for answer in answers])
    return np.array(rows)


def to_next_noun(
    sentences: Sequence[Labelled], maps: Sequence[np.ndarray], asking: Container[str] | None = None
) -> np.ndarray:
    """How often words of which nothing is marked look most at the next noun.

    Args:
        sentences: the labelled sentences.
        maps: for each sentence the weights between its words, `(heads, w, w)`.
        asking: ask only these words, in small letters. None: ask all.

    Returns:
        Array `(heads,)`: the share of the words that are no end of a link, and have a marked noun behind them,
        whose largest weight goes to the first such noun.
    """
    hits = []
    for sentence, nouns, weights in zip(sentences, marked_nouns(sentences), maps, strict=True):
        starts = {start for links in sentence.links.values() for start, _ in links}
        for query in range(len(sentence.words)):
            behind = [noun for noun in nouns if noun > query]
            may_ask = asking is None or sentence.words[query].lower() in asking
            if behind and may_ask and query not in starts and query not in nouns:
                hits.append(most_looked_at(weights, query) == behind[0])
    return np.mean(hits, axis=0)


def halves(block: np.ndarray) -> np.ndarray:
    """Which of two halves each question is in, `(q,)`: every second block, so that twins stay together."""
    return block % 2


def choose_and_test(hits: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Choose the best of several candidates on one half of the questions and test it on the other; both ways
    round.

    Args:
        hits: `(q, candidates)`, true where a candidate is right.
        half: `(q,)`, 0 or 1.

    Returns:
        Whether the chosen candidate was right, `(q,)`, each question answered by the candidate that was chosen
        without it; and the candidate tested on half 0 and that tested on half 1. The first of equals is chosen.

    >>> hits = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], dtype=bool)
    >>> choose_and_test(hits, np.array([0, 0, 1, 1]))
    (array([False, False, False,  True]), [1, 0])
    """
    chosen = [int(hits[half != side].mean(axis=0).argmax()) for side in (0, 1)]
    return hits[np.arange(len(hits)), np.array(chosen)[half]], chosen


def over_divisions(
    hits: np.ndarray, block: np.ndarray, repeats: int = 200, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Choose and test as `choose_and_test` does, for many divisions of the blocks into halves.

    Args:
        hits: `(q, candidates)`, true where a candidate is right.
        block: `(q,)`, counted from 0; questions of one block stay together.
        repeats: how many divisions.
        seed: of the drawing.

    Returns:
        For each question the share of the divisions in which the chosen candidate was right, `(q,)`, and for each
        candidate the share of the choices that fell on it, `(candidates,)`.
    """
    rng = np.random.default_rng(seed)
    right, chosen = np.zeros(len(hits)), np.zeros(hits.shape[1])
    for _ in range(repeats):
        half = rng.permutation(block.max() + 1) % 2  # (blocks,)
        answers, candidates = choose_and_test(hits, half[block])
        right += answers
        np.add.at(chosen, candidates, 1)
    return right / repeats, chosen / (2 * repeats)


def interval(
    values: np.ndarray, block: np.ndarray, repeats: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """A 95 % bootstrap interval for a mean, by drawing whole blocks with replacement.

    Args:
        values: `(q,)`.
        block: `(q,)`; questions of one block are drawn together, since they are not independent.
        repeats: how often to draw.
        seed: of the drawing.

    Returns:
        The 2.5th and the 97.5th percentile of the mean.

    Source: Efron 1979, Bootstrap Methods: Another Look at the Jackknife, for the method.
    """
    rng = np.random.default_rng(seed)
    _, number = np.unique(block, return_inverse=True)  # (q,)
    total, count = np.bincount(number, values), np.bincount(number)  # (blocks,) each
    drawn = rng.integers(len(count), size=(repeats, len(count)))
    means = total[drawn].sum(axis=1) / count[drawn].sum(axis=1)  # (repeats,)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True)
class Verdict:
    """The best head for one relation in one direction, beside the rules that it has to beat, as shares.

    Attributes:
        questions: how many there were.
        heads: the head tested on one half of the blocks and the head tested on the other, counted through all
            layers from 0. Each was chosen on the half on which it was not tested.
        share: how often these were right.
        share_interval: a 95 % interval for it.
        tuned: how often the best head is right if it is chosen on the very questions on which it is tested.
        offset: how often the best fixed distance is right, chosen and tested as the heads are.
        place: the same for the best fixed place in the sentence.
        whoever: how often the word is right at which the *other* words look most, in the heads of `heads`.
        chance: how often another word of the sentence, drawn at random, is right.
        shuffled: what the *best* head reaches in one of twenty cases if the distances are shuffled (95th
            percentile): what choosing among all heads is worth by itself.
        gain: `share` less `offset`.
        gain_interval: a 95 % interval for it.
    """

    questions: int
    heads: list[int]
    share: float
    share_interval: tuple[float, float]
    tuned: float
    offset: float
    place: float
    whoever: float
    chance: float
    shuffled: float
    gain: float
    gain_interval: tuple[float, float]


def judge(answers: Answers) -> Verdict:
    """Compare the best head with the rules."""
    half = halves(answers.block)
    right, heads = choose_and_test(answers.hits, half)
    offset, _ = choose_and_test(answers.offset, half)
    place, _ = choose_and_test(answers.place, half)
    whoever = answers.whoever[np.arange(len(half)), np.array(heads)[half]]
    gain = right.astype(float) - offset
    return Verdict(
        questions=len(right),
        heads=heads,
        share=float(right.mean()),
        share_interval=interval(right, answers.block),
        tuned=float(answers.hits.mean(axis=0).max()),
        offset=float(offset.mean()),
        place=float(place.mean()),
        whoever=float(whoever.mean()),
        chance=float(answers.chance.mean()),
        shuffled=float(np.percentile(answers.shuffled.max(axis=1), 95)),
        gain=float(gain.mean()),
        gain_interval=interval(gain, answers.block),
    )
