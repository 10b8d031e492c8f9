"""The layer and its parts: from features to heads, and back."""

import numpy as np

from mha_lib.attention import attention

from .drawing import drawing
from .shapes import (
    SMALL,
    TINY,
    Badge,
    Cells,
    Frame,
    Group,
    Linked,
    Mixture,
    Piece,
    Text,
    Weights,
    arrow,
    box,
    column,
    curve,
    lines,
    row,
    under,
)

WORDS = ("it", "was", "too", "tired")
HEADS, D_K = 3, 2
N, D_MODEL = len(WORDS), HEADS * D_K


def head_of(column: int) -> str:
    """The class of a column of features that heads own."""
    return f"cell head-{column // D_K}"


def some_weights() -> np.ndarray:
    """Attention weights `(heads, n, n)` of random queries and keys."""
    rng = np.random.default_rng(5)
    Q, K = 1.6 * rng.normal(size=(2, HEADS, N, D_K))  # (heads, n, d_k) each
    return attention(Q, K, K)[1]


@drawing(
    title="A layer of multi-head attention",
    description=(
        "From top to bottom. X has a row for each of four tokens and a column for each of six features."
        " Three matrices make the queries Q, the keys K and the values V from all of X; each is as wide as X,"
        " and its columns have three colours, two columns a colour. Below, the columns are split: each of three"
        " heads gets the columns of its colour of Q, of K and of V. In a lane of its own each head computes a"
        " table of attention weights, four by four, and an output of two columns. The outputs are laid side by"
        " side again, six columns in three colours. W_O multiplies them; every feature of the result is made of"
        " all three colours."
    ),
    look="Follow one colour: a head is one lane, with queries, keys, values, weights and an output of its own.",
    steps=(
        "Project. Three matrices make queries, keys and values. Each number is made from all features of its"
        " token.",
        "Split. Head i gets the columns of its colour of Q, of K and of V. X itself is never cut.",
        "Attend. Each head compares its queries with its keys. The squares are its weights, by which it blends its"
        " values.",
        "Concatenate. The outputs of the heads are laid side by side.",
        "Mix. W_O makes every feature of the result from all heads.",
    ),
)
def whole_layer(_narrow: bool) -> Piece:
    """X → Q, K, V → heads → side by side → W_O."""
    side = (11.0, 13.0)
    words = column(*(Text(word, SMALL) for word in WORDS), gap=-2.6, align=1)
    x = Cells(N, D_MODEL, "cell", side)
    said = lines("a row for each token,\na column for each feature", TINY, "quiet")
    top = row(row(words, under("$X$", x), gap=6, align=1), said, gap=8, align=1)

    makers = [box(f"$W_{kind}$", "box", SMALL, width=38, height=22) for kind in "QKV"]
    joint = [Cells(N, D_MODEL, lambda _i, j: head_of(j), side) for _ in "QKV"]
    named = [
        row(Text(f"${kind}$", SMALL), m, Piece(6, 0), gap=3) for kind, m in zip("QKV", joint, strict=True)
    ]
    projections = row(*(column(*pair, gap=16) for pair in zip(makers, named, strict=True)), gap=14)

    lanes = [Lane(head, weights) for head, weights in enumerate(some_weights())]
    heads = row(*(lane.frame for lane in lanes), gap=8)

    joined = Cells(N, D_MODEL, lambda _i, j: head_of(j), side)
    w_o = Cells(D_MODEL, D_MODEL, lambda i, _j: head_of(i), side)
    y = Mixture(N, D_MODEL, HEADS, side)
    product = row(
        column(joined, Text("side by side", SMALL), gap=3),
        Text("×"),
        under("$W_O$", w_o),
        Text("="),
        column(y, Text("output", SMALL), gap=3),
        gap=8,
    )
    stages = column(top, projections, heads, product, gap=32)

    def links() -> list[str]:
        drawn = [curve(x.bottom, maker.top) for maker in makers]
        drawn += [arrow(maker.bottom, matrix.top) for maker, matrix in zip(makers, joint, strict=True)]
        for head, lane in enumerate(lanes):
            own, colour = slice(head * D_K, (head + 1) * D_K), f"head-{head}"
            for matrix, slot in zip(joint, lane.own, strict=True):
                drawn.append(curve(matrix.part(cols=own).bottom, (slot.top[0], lane.frame.y), colour))
            way_out = (lane.found.bottom[0], lane.frame.bottom[1])
            drawn += [*lane.links(), arrow(lane.found.bottom, way_out, colour, tip=False)]
            drawn.append(curve(way_out, joined.part(cols=own).top, colour))
        return drawn

    at = [
        makers[0].left[1],
        heads.y - 16,
        heads.y + heads.height / 2,
        heads.y + heads.height + 16,
        w_o.left[1],
    ]
    badges = [Badge(number) for number in range(1, 6)]
    for badge, y_of in zip(badges, at, strict=True):
        badge.move(stages.x - 26, y_of - 10)
    return Linked(Group([stages, *badges]), links)


class Lane:
    """One head of the layer: its columns of Q, K and V, its weights, and what it finds."""

    def __init__(self, head: int, weights: np.ndarray):
        self.head = head
        self.own = [Cells(N, D_K, f"cell head-{head}", (9, 11)) for _ in "QKV"]
        self.seen = Weights(weights, f"weight head-{head}", 11)
        self.found = Cells(N, D_K, f"cell head-{head}", (9, 11))
        parts = [under(f"${kind}_{head}$", c, gap=1) for kind, c in zip("QKV", self.own, strict=True)]
        content = column(
            row(*parts, gap=8),
            row(self.seen, self.found, gap=11),
            Text(f"head {head}", SMALL, "strong"),
            gap=16,
            align=0,
        )
        self.frame = Frame(content, f"lane head-{head}", (7, 5))

    def links(self) -> list[str]:
        """Queries and keys give weights, weights and values the output."""
        (q, k, v), of = self.own, f"head-{self.head}"
        return [
            curve(q.bottom, self.seen.at(0.25, 0), of),
            curve(k.bottom, self.seen.at(0.75, 0), of),
            arrow(v.bottom, self.found.top, of),
            arrow(self.seen.right, self.found.left, of),
        ]
