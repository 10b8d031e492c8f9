"""Sentences in which somebody has marked which word belongs to which.

The sentences and their links stand in `labelled_links.txt` beside this file, which also says what counts as a link.
`later_links.txt` has more of them, on which no head was chosen.
"""

import re
from dataclasses import dataclass
from pathlib import Path

LINKS = Path(__file__).with_name("labelled_links.txt")
LATER = Path(__file__).with_name("later_links.txt")
RELATIONS = ("pronoun", "verb", "adjective", "preposition")
WORD = re.compile(r"\w+(?:'\w+)?")  # "didn't" is one word; punctuation is none

# What the marked nouns are, as far as a pronoun can tell.
KINDS = Path(__file__).with_name("noun_kinds.txt").read_text("utf-8")
PLURAL, PEOPLE, WOMEN, MEN = (frozenset(line.split()) for line in re.split(r"\w+: ", KINDS)[1:])


@dataclass(frozen=True)
class Labelled:
    """A sentence and its links.

    Attributes:
        text: the sentence.
        words: its w words in order, without punctuation.
        block: which block of the file it stands in; twins share one.
        links: for each relation the links `(from, to)`, as places in `words`.
    """

    text: str
    words: list[str]
    block: int
    links: dict[str, list[tuple[int, int]]]


def load_links(path: Path = LINKS) -> list[Labelled]:
    """Read sentences with labelled links.

    Raises:
        ValueError: if a link names a word that its sentence does not have, or has more than once.

    >>> first = load_links()[0]
    >>> first.text
    "The animal didn't cross the street because it was too tired."
    >>> [(first.words[i], first.words[j]) for i, j in first.links["pronoun"]]
    [('it', 'animal')]
    """
    sentences: list[Labelled] = []
    blocks = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE).strip().split("\n\n")
    for number, block in enumerate(blocks):
        for line in block.splitlines():
            relation, colon, links = line.partition(": ")
            if relation not in RELATIONS or not colon:
                none: dict[str, list[tuple[int, int]]] = {name: [] for name in RELATIONS}
                sentences.append(Labelled(line, WORD.findall(line), number, none))
                continue
            words = sentences[-1].words
            for link in links.split(", "):
                start, end = link.split(" > ")
                sentences[-1].links[relation].append((place_of(start, words), place_of(end, words)))
    return sentences


def place_of(name: str, words: list[str]) -> int:
    """Where a word stands: `place_of("to#2", words)` is the second "to".

    Raises:
        ValueError: if it is not there, or if there are several and the name does not say which.
    """
    word, mark, which = name.partition("#")
    places = [place for place, other in enumerate(words) if other == word]
    if not mark and len(places) == 1:
        return places[0]
    if mark and 1 <= int(which) <= len(places):
        return places[int(which) - 1]
    raise ValueError(f"{name!r} names no word, or more than one: {' '.join(words)!r} has {len(places)}")


def agrees(pronoun: str, noun: str) -> bool:
    """Whether a pronoun can stand for a marked noun, by number, person or thing, and sex where the noun tells it.

    >>> agrees("it", "street"), agrees("they", "street"), agrees("she", "street"), agrees("she", "nurse")
    (True, False, False, True)
    """
    pronoun = pronoun.lower()
    if pronoun in ("they", "them", "their", "themselves"):
        return noun in PLURAL
    if noun in PLURAL or (noun in PEOPLE) == (pronoun in ("it", "its")):
        return False
    return noun not in {"he": WOMEN, "him": WOMEN, "his": WOMEN, "she": MEN, "her": MEN}.get(pronoun, ())
