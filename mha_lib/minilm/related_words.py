"""Do heads look at words of related meaning? Pairs such as car and vehicle, in sentences that are else the same.

Each word for a kind ("vehicle") is asked in the same sentence once with one of its kind ("car") and once with a
word of another kind. Places and sentence are the same, and every word is used as often in one case as in the other.
"""

from collections.abc import Callable

import numpy as np

from mha_lib.minilm.labelled_links import WORD

KINDS = (
    ("car", "vehicle"),
    ("rose", "flower"),
    ("dog", "animal"),
    ("hammer", "tool"),
    ("piano", "instrument"),
    ("apple", "fruit"),
    ("oak", "tree"),
    ("chair", "furniture"),
    ("salmon", "fish"),
    ("eagle", "bird"),
    ("coffee", "drink"),
    ("gold", "metal"),
    ("chess", "game"),
    ("uncle", "relative"),
    ("shirt", "garment"),
    ("dollar", "currency"),
)
FRAMES = (
    "The {} and the {} were there.",
    "They wrote about the {} because the {} is well known.",
    "Near the {} stood something like the {}.",
)


def related_factors(frame: str, between: Callable[[str], np.ndarray]) -> np.ndarray:
    """How many times more weight a word for a kind puts on one of its kind than on another word in the same place.

    Args:
        frame: a sentence with two places, for one of a kind and for the word for the kind.
        between: gives the attention weights between the words of a sentence, `(heads, words, words)`.

    Returns:
        Array `(pairs, heads)`, in the order of `KINDS`; 1 means that the meaning makes no difference.

    >>> related_factors("A {} is a {}.", lambda text: np.full((2, 5, 5), 0.2))[0]
    array([1., 1.])
    """

    def weight(member: str, kind: str) -> np.ndarray:
        text = frame.format(member, kind)
        words = [match.group() for match in WORD.finditer(text)]
        return between(text)[:, words.index(kind), words.index(member)]  # (heads,)

    others = [member for member, _ in (KINDS[-1], *KINDS)]  # for each pair the member of the pair before it
    return np.array(
        [
            weight(member, kind) / weight(other, kind)
            for (member, kind), other in zip(KINDS, others, strict=False)
        ]
    )
