"""One head at work, one head beside two, and what masks let through."""

from collections.abc import Sequence

import numpy as np

from mha_lib.attention import attention
from mha_lib.masks import causal_mask, decoder_mask, padding_mask

from .drawing import drawing
from .shapes import (
    NORMAL,
    SMALL,
    TINY,
    Badge,
    Cells,
    Frame,
    Group,
    Linked,
    Piece,
    Point,
    Text,
    arrow,
    box,
    column,
    curve,
    lines,
    rectangle,
    row,
)

# The numbers that the chapter "One head" works through by hand; a test compares.
QUERY = np.array([0.0, 2, 0, 2])  # (d_k,)
KEYS = np.array([[1.0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])  # (m, d_k)
VALUES = np.array([[10.0, 0], [0, 10], [10, 10]])  # (m, d_v)

SENTENCE = ("The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired")
SHORT = ("The", "animal", "was", "too", "tired")
PADDED = ("The", "animal", "slept", "pad", "pad")


class Bar(Piece):
    """A share as a bar with its number."""

    def __init__(self, share: float, width: float):
        super().__init__(width, 20)
        self.share, self.length = share, width - 32
        self.number = Text(f"{share:.2f}", SMALL, width=30)

    def marks(self) -> str:
        """The bar, and the number behind its end."""
        end = self.x + self.length * self.share
        self.number.move(end + 2 - self.number.x, self.y + 2 - self.number.y)
        return (
            rectangle(self.x, self.y + 3, max(1.0, end - self.x), 14, "weight head-0", 2)
            + self.number.marks()
        )


def vector(numbers: Sequence[float] | np.ndarray, classes: str, wide: float = 18) -> Cells:
    """Numbers beside each other, in cells."""
    return Cells(1, len(numbers), classes, (wide, 20), lambda _i, j: f"{numbers[j]:.4g}")


@drawing(
    title="One query at work",
    description=(
        "A query of four numbers stands above three keys. Beside each key stands its dot product with the query,"
        " then the score, which is half of it, then its weight as a bar, then its value. The third key fits best:"
        " it has the largest score and by far the longest bar. Lines lead from the values to the answer below them;"
        " the line of the third value is the thickest."
    ),
    look="The better a key fits the query, the more of its value goes into the answer.",
    steps=(
        "Compare. The score of a key is its dot product with the query, divided by √$d_k$, here √4.",
        "Softmax. The scores become weights, which are positive and sum to 1.",
        "Blend. The answer is the sum of the values, each times its weight.",
    ),
)
def one_query(_narrow: bool) -> Piece:
    """One query, three keys, three values, one answer."""
    answer, weights = (result[0] for result in attention(QUERY[None], KEYS, VALUES))
    products = KEYS @ QUERY
    scores = products / np.sqrt(len(QUERY))
    query = vector(QUERY, "cell")
    keys = [vector(key, "cell") for key in KEYS]
    values = [vector(value, "cell head-0", 24) for value in VALUES]
    bars = [Bar(weight, 72) for weight in weights]
    columns = [
        column(
            Text("query", SMALL, "strong"), query, Piece(0, 14), Text("keys", SMALL, "strong"), *keys, gap=5
        ),
        column(Text("$q$·$k$", SMALL, width=24), *(vector([p], "nothing", 24) for p in products), gap=5),
        column(Text("score", SMALL), *(vector([s], "nothing", 34) for s in scores), gap=5),
        column(Text("weight", SMALL), *bars, gap=5),
        column(Text("values", SMALL, "strong"), *values, gap=5),
    ]
    table = row(*columns, gap=9, align=1)
    found = vector(answer.round(2), "cell head-0", 40)
    last = row(Text("answer", SMALL, "strong"), found, gap=8)
    last.move(table.x + table.width - last.width, table.y + table.height + 22)

    def links() -> list[str]:
        drawn = [arrow(query.bottom, (query.bottom[0], columns[0].pieces[3].y))]
        for value, weight, at in zip(values, weights, (0.8, 0.65, 0.4), strict=True):
            line = curve(value.right, found.at(1, at), "head-0", (1, 0), (-1, 0), reach=34, tip=False)
            drawn.append(f'<g class="share" style="--share: {weight:.3f}">{line}</g>')
        return drawn

    badges = [Badge(number) for number in (1, 2, 3)]
    for badge, (x, y) in zip(
        badges,
        [
            ((columns[1].top[0] + columns[2].top[0]) / 2, columns[1].y - 16),
            (columns[3].top[0], columns[3].y - 16),
            (last.x - 18, last.left[1]),
        ],
        strict=True,
    ):
        badge.move(x - 10, y - 10)
    return Linked(Group([table, last, *badges, Piece(0, 0, values[0].right[0] + 34, 0)]), links)


def chip(word: str, classes: str, size: float) -> Frame:
    """A word of the sentence; without classes it has no box."""
    return Frame(Text(word, size), classes or "nothing", (4, 1), 4)


def told(narrow: bool, title: str, looks: dict[str, str], found: Sequence[tuple[str, str]]) -> Piece:
    """What "it" looks at, by which head, and what arrives there."""
    size = SMALL if narrow else NORMAL
    chips = {word: chip(word, f"cell {looks[word]}" if word in looks else "", size) for word in SENTENCE}
    chips["it"] = chip("it", "asks", size)
    arrived = [box(text, f"cell {classes}", size, pad=(6, 3)) for text, classes in found]
    heading = lines(title, size, "strong" if narrow else "strong start")
    if narrow:
        sentence = column(*chips.values(), gap=3, align=1)
        whole = column(heading, row(sentence, Piece(54, 0), gap=0), column(*arrived, gap=6), gap=12)
    else:
        sentence = row(*chips.values(), gap=3)
        whole = column(heading, Piece(0, 44), sentence, Piece(0, 6), gap=4, align=0)
        answers = row(*arrived, gap=8)
        answers.move(chips["it"].bottom[0] - answers.width / 2, whole.height + 8)
        whole = Group([whole, answers])

    def links() -> list[str]:
        it, drawn = chips["it"], []
        for word, classes in looks.items():
            ends = (it.right, chips[word].right) if narrow else (it.top, chips[word].top)
            far = abs(ends[0][0] - ends[1][0]) + abs(ends[0][1] - ends[1][1])
            ways: tuple[Point, Point] = ((1, 0), (-1, 0)) if narrow else ((0, -1), (0, 1))
            drawn.append(curve(*ends, classes, *ways, reach=18 + 0.14 * far))
        if not narrow:
            drawn += [curve(it.bottom, a.top, c) for a, (_, c) in zip(arrived, found, strict=True)]
        return drawn

    return Linked(whole, links)


@drawing(
    title="One head and two heads at the word “it”",
    description=(
        "The sentence “The animal didn't cross the street because it was too tired”, twice. With one head, two"
        " lines of one colour lead from “it” to “animal” and to “tired”, and one box arrives: half animal and half"
        " tired. With two heads, a line of one colour leads to “animal” and one of another colour to “tired”, and"
        " two boxes arrive, one for each head."
    ),
    look=(
        "One head returns one blend of what it looks at. Two heads return two answers, side by side. The weights"
        " are made up to show this; they are not measured."
    ),
)
def one_head_or_two(narrow: bool) -> Piece:
    """Who is meant, and what is said about them."""
    between = "\n" if narrow else " "
    titles = [f"one head:{between}one blend", f"two heads:{between}two answers"]
    blend = "½ animal\n+ ½ tired" if narrow else "½ animal + ½ tired"
    one = told(narrow, titles[0], {"animal": "head-0", "tired": "head-0"}, [(blend, "head-0")])
    answers = [("head 0: animal", "head-0"), ("head 1: tired", "head-1")]
    two = told(narrow, titles[1], {"animal": "head-0", "tired": "head-1"}, answers)
    return row(one, two, gap=20, align=0) if narrow else column(one, two, gap=26, align=0)


def strip(words: Sequence[str], allowed: Sequence[bool], asks: str) -> Group:
    """The words that one query may attend to, and those that it may not."""
    chips = [
        Frame(Text(word, TINY), "cell head-0" if seen else "empty", (4, 1), 3)
        for word, seen in zip(words, allowed, strict=True)
    ]
    return row(Text(asks, SMALL, "", 50), row(*chips, gap=3), gap=4)


def panel(title: str, words: Sequence[str], mask: np.ndarray) -> Group:
    """A mask as what each query sees; the queries are the last words."""
    queries = words[-len(mask) :]
    strips = [strip(words, allowed, asks) for asks, allowed in zip(queries, mask, strict=True)]
    names = row(Text("query", TINY, "quiet", 50), Text("keys", TINY, "quiet"), gap=4)
    table = column(names, column(*strips, gap=3), gap=1, align=0)
    return column(lines(title, SMALL, "strong"), table, gap=2)


@drawing(
    title="Masks, as what each token may attend to",
    description=(
        "Four panels. Each row is one query; beside it stand five words, in a coloured box where the query may"
        " attend and in a dashed outline where it may not. Causal: each of “The animal was too tired” sees itself"
        " and those before it. Causal with two queries: “too” sees all but the last key, “tired” sees all five."
        " Padding: each word of “The animal slept pad pad” sees the three real words and no padding. Both: each"
        " sees the real words up to itself."
    ),
    look=(
        "Each row is one query: filled boxes are the keys that it may attend to. With fewer queries than keys, the"
        " queries are the last positions."
    ),
)
def masks(narrow: bool) -> Piece:
    """Causal, padding, both, and causal with fewer queries than keys."""
    m = len(PADDED)
    keep = padding_mask(np.array([PADDED.index("pad")]), m)  # (batch, 1, 1, m), here one sequence
    panels = [
        panel("causal", SHORT, causal_mask(m)),
        panel("padding", PADDED, np.broadcast_to(keep[0, 0], (m, m))),
        panel("causal, 2 queries, 5 keys", SHORT, causal_mask(2, m)),
        panel("causal and padding", PADDED, decoder_mask(m, keep=keep[:, 0, 0])[0, 0]),
    ]
    if narrow:
        return column(*panels, gap=18)
    return column(row(*panels[:2], gap=40), row(*panels[2:], gap=40, align=0), gap=22)
