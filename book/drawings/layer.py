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
STAGES = ("project", "split", "attend", "concat", "combine")
HEADS, D_K = 3, 2
N, D_MODEL = len(WORDS), HEADS * D_K


def head_of(column: int) -> str:
    """The class of a column of features that heads own."""
    return f"cell head-{column // D_K}"


def size_of(matrix: Cells | Weights, width: float | None = None) -> Text:
    """The shape of a matrix, small, to stand beside it."""
    return Text(f"{matrix.rows}×{matrix.cols}", TINY, "quiet", width)


def some_weights() -> np.ndarray:
    """Attention weights `(heads, n, n)` of random queries and keys."""
    rng = np.random.default_rng(5)
    Q, K = 1.6 * rng.normal(size=(2, HEADS, N, D_K))  # (heads, n, d_k) each
    return attention(Q, K, K)[1]


@drawing(
    title="A layer of multi-head attention",
    description=(
        "Five stages, from top to bottom. The input X has a row for each of four tokens and a column for each of"
        " six features. Project: three matrices make the queries Q, the keys K and the values V from all of X;"
        " each is as wide as X, and its columns have three colours, two columns a colour. Split: each of three"
        " heads gets the columns of its colour of Q, of K and of V. Attend: in a lane of its own each head computes"
        " a table of attention weights, four by four, with a row for each query and a column for each key, and an"
        " output of two columns with a strong outline: O_0, O_1 and O_2. Concat: these outputs are laid side by"
        " side, six columns in three colours. Combine: the six columns times W_O, the output projection, give the"
        " output. W_O has six rows, two in the colour of each head. The output is as wide as X and, like X, has"
        " no head's colour."
    ),
    look=(
        "A head is one lane: attention with its own slice of the columns of $Q$, $K$ and $V$, and so with weights"
        " and an output of its own. Follow one colour from the split to $W_O$, where the heads are added together."
    ),
    steps=(
        "Project. Three matrices make queries, keys and values. Each number is made from all features of its"
        " token.",
        "Split. Here the heads begin: each gets the columns of its colour of $Q$, of $K$ and of $V$. $X$ itself is"
        " never cut.",
        "Attend. Each head compares its queries with its keys. The squares are its weights, large where a key fits"
        " the row's query; by them it averages its values, and has its output: $O_0$, $O_1$ or $O_2$. No head sees"
        " another.",
        "Concatenate. The outputs of the heads are laid side by side.",
        "Output projection. $W_O$ combines the heads: each colour band of its rows meets the head of that colour,"
        " and the results are added. So each feature of the output is a weighted sum of the columns of all heads.",
    ),
)
def whole_layer(_narrow: bool) -> Piece:
    """X → Q, K, V → heads → side by side → W_O."""
    side = (11.0, 13.0)
    words = column(*(Text(word, SMALL) for word in WORDS), gap=-2.6, align=1)
    x = Cells(N, D_MODEL, "cell", side)
    said = lines("a row for each token,\na column for each feature", TINY, "quiet")
    features = column(Text("input $X$", SMALL), size_of(x), x, gap=1)
    top = row(row(words, features, gap=6, align=1), said, gap=8, align=1)

    makers = [box(f"$W_{kind}$", "box", SMALL, width=38, height=22) for kind in "QKV"]
    joint = [Cells(N, D_MODEL, lambda _i, j: head_of(j), side) for _ in "QKV"]
    named = [
        column(Text(title, SMALL), size_of(cells), cells, gap=1)
        for title, cells in zip(("queries $Q$", "keys $K$", "values $V$"), joint, strict=True)
    ]
    projections = row(*(column(*pair, gap=14) for pair in zip(makers, named, strict=True)), gap=22)

    lanes = [Lane(head, weights) for head, weights in enumerate(some_weights())]
    heads = row(*(lane.frame for lane in lanes), gap=4)

    joined = Cells(N, D_MODEL, lambda _i, j: f"{head_of(j)} found", side)
    w_o = Cells(D_MODEL, D_MODEL, lambda i, _j: head_of(i), side)
    y = Cells(N, D_MODEL, "cell", side)
    product = row(
        column(joined, Text("side by side", SMALL), size_of(joined), gap=1),
        Text("×"),
        column(Text("$W_O$", SMALL), size_of(w_o), w_o, Text("output projection", SMALL, width=66), gap=1),
        Text("="),
        column(y, Text("output", SMALL), size_of(y), gap=1),
        gap=8,
    )
    stages = column(top, projections, heads, product, gap=32)

    def links() -> list[str]:
        drawn = [curve(x.bottom, maker.top) for maker in makers]
        drawn += [arrow(maker.bottom, matrix.top) for maker, matrix in zip(makers, named, strict=True)]
        for head, lane in enumerate(lanes):
            own, colour = slice(head * D_K, (head + 1) * D_K), f"head-{head}"
            for matrix, slot in zip(joint, lane.own, strict=True):
                drawn.append(curve(matrix.part(cols=own).bottom, (slot.top[0], lane.frame.y), colour))
            way_out = (lane.result.bottom[0], lane.frame.bottom[1])
            drawn += [*lane.links(), arrow(lane.result.bottom, way_out, colour, tip=False)]
            drawn.append(curve(way_out, joined.part(cols=own).top, colour))
        return drawn

    at = [
        makers[0].left[1],
        heads.y - 16,
        heads.y + heads.height / 2,
        heads.y + heads.height + 16,
        w_o.left[1],
    ]
    numbers = [
        column(Badge(number), Text(name, TINY, width=48), gap=1)
        for number, name in enumerate(STAGES, start=1)
    ]
    for number, y_of in zip(numbers, at, strict=True):
        number.move(stages.x - 50, y_of - 10)
    return Linked(Group([stages, *numbers]), links)


class Lane:
    """One head of the layer: its columns of Q, K and V, its weights, and what it finds."""

    def __init__(self, head: int, weights: np.ndarray):
        self.head = head
        self.own = [Cells(N, D_K, f"cell head-{head}", (9, 11)) for _ in "QKV"]
        self.seen = Weights(weights, f"weight head-{head}", 11)
        self.found = Cells(N, D_K, f"cell head-{head} found", (9, 11))
        parts = [under(f"${kind}_{head}$", c, gap=1) for kind, c in zip("QKV", self.own, strict=True)]
        named = column(self.seen, Text("weights", TINY, width=44), size_of(self.seen), gap=1)
        self.result = column(self.found, Text(f"$O_{head}$", SMALL, width=18), size_of(self.found, 18), gap=1)
        axes = (Text(axis, TINY, "start") for axis in ("row: query", "column: key"))
        name = Text(f"head {head}", SMALL, "start strong")
        work = [row(*parts, gap=13), row(named, self.result, gap=18, align=0)]
        content = column(column(*work, gap=16, align=0), *axes, Piece(0, 2), name, gap=0, align=0)
        self.frame = Frame(content, f"lane head-{head}", (4, 5))

    def links(self) -> list[str]:
        """Queries and keys give weights, weights and values the output."""
        (q, k, v), of = self.own, f"head-{self.head}"
        return [
            curve(q.bottom, self.seen.at(0.25, 0), of),
            curve(k.bottom, self.seen.at(0.75, 0), of),
            arrow(v.bottom, self.found.top, of),
            arrow(self.seen.right, self.found.left, of),
        ]
