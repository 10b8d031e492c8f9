"""How often heads, and rules that they have to beat, are right about links that somebody has labelled.

`collect` asks every head and every simple rule, `noun_rules` rules that know which words are nouns; `twin_hits` and
`twin_shifts` ask about the pronoun of twin sentences. All of them take weights between words
(`mha_lib.minilm.head_scores.word_maps`).
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from mha_lib.minilm.labelled_links import Labelled, agrees

OFFSETS = tuple(offset for offset in range(-10, 11) if offset)
PLACES = tuple(range(10))


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
