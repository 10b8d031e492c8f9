"""Whether the best head beats the rules: chosen on some of the questions, tested on the others, with intervals."""

from dataclasses import dataclass

import numpy as np

from mha_lib.minilm.link_answers import Answers


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
