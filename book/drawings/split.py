"""From features to heads and back, a token's features followed by colour; and the output projection."""

from collections.abc import Sequence

import numpy as np

from .drawing import drawing
from .shapes import (
    SMALL,
    Badge,
    Cells,
    Frame,
    Group,
    Linked,
    Mixture,
    Piece,
    Text,
    column,
    curve,
    lines,
    row,
    under,
)

TOKENS = ("The", "animal", "was", "too", "tired")
HEADS, D_K = 2, 3


def chunks() -> np.ndarray:
    """Token and head of every chunk of d_k features, `(n, heads, 2)`: the layout after the projection."""
    tokens, heads = np.meshgrid(range(len(TOKENS)), range(HEADS), indexing="ij")
    return np.stack([tokens, heads], axis=-1)


class Features(Frame):
    """The d_k features that a token has for a head: a box with the token's word, and ticks between the features."""

    def __init__(self, token: int, head: int):
        word = Text(TOKENS[token], SMALL, width=54)
        super().__init__(word, f"cell head-{head}", (0, 2), 2)

    def marks(self) -> str:
        """The box, and short lines where a feature ends."""
        ticks = (self.at(feature / D_K, 1) for feature in range(1, D_K))
        path = "".join(f"M{x:.1f} {y - 4:.1f}v4" for x, y in ticks)
        return super().marks() + f'<path class="link {self.classes.split()[-1]}" d="{path}"/>'


def table(content: np.ndarray) -> Group:
    """Chunks `(rows, columns, 2)` in rows and columns."""
    drawn = [row(*(Features(*chunk) for chunk in chunks_of_row), gap=0) for chunks_of_row in content.tolist()]
    return column(*drawn, gap=1)


def heads_of(content: np.ndarray) -> Group:
    """Chunks `(heads, rows, 2)`, a frame for each head."""
    frames = []
    for head, own in enumerate(content):
        stack = column(Text(f"head {head}", SMALL), table(own[:, None]), gap=3)
        frames.append(Frame(stack, "plain", 4))
    return row(*frames, gap=6)


def right_and_wrong(start: Piece, right: Piece, wrong: Piece, how: str, shape: tuple[int, ...]) -> Linked:
    """Two ways from the same start, to the same shape."""
    labels = [lines(f"✓ right:\n{how}", SMALL, "strong"), lines("✗ wrong:\none reshape", SMALL, "strong")]
    ends = [
        column(label, end, Text(f"shape {shape}", SMALL), gap=6)
        for label, end in zip(labels, (right, wrong), strict=True)
    ]
    whole = column(start, row(*ends, gap=30, align=0), gap=30)
    return Linked(whole, lambda: [curve(start.bottom, label.top) for label in labels])


@drawing(
    title="Splitting heads, right and wrong",
    description=(
        "Above, the queries of five tokens, a row for each word: three features in the colour of head 0, then three"
        " in the colour of head 1. Cut and exchanged: head 0 has one colour and a row for each of the five words,"
        " and so has head 1. One reshape: both heads have both colours. Head 0 has The twice, animal twice and was"
        " once; head 1 has was once, too twice and tired twice. Both results have the shape (2, 5, 3)."
    ),
    look=(
        "Follow a colour and a word. Right: a head has one colour, and every word. Wrong: a head has both colours,"
        " and knows only some of the words, though the shape is the same."
    ),
)
def split_heads(_narrow: bool) -> Piece:
    """`(n, heads · d_k)` → `(heads, n, d_k)`."""
    content = chunks()  # (n, heads, 2)
    right = content.swapaxes(0, 1)  # (heads, n, 2)
    wrong = content.reshape(HEADS, len(TOKENS), 2)
    start = under(f"$XW_Q$, shape {(len(TOKENS), HEADS * D_K)}", table(content))
    return right_and_wrong(
        start, heads_of(right), heads_of(wrong), "cut, exchange axes", (HEADS, len(TOKENS), D_K)
    )


@drawing(
    title="Merging heads, right and wrong",
    description=(
        "Above, two heads, each with a row for each of five words: head 0 in one colour, head 1 in another."
        " Exchanged and joined: each row is one word, with the features of head 0 and then those of head 1. One"
        " reshape: the first row holds the features of head 0 for The and for animal, and the other rows mix words"
        " in the same way. Both results have the shape (5, 6)."
    ),
    look=(
        "Right: a row is one word again, with a chunk from each head. Wrong: a row holds two different words,"
        " though the shape is the same."
    ),
)
def merge_heads(_narrow: bool) -> Piece:
    """`(heads, n, d_k)` → `(n, heads · d_k)`."""
    content = chunks()  # (n, heads, 2)
    found = content.swapaxes(0, 1)  # (heads, n, 2)
    wrong = np.ascontiguousarray(found).reshape(content.shape)
    start = column(heads_of(found), Text(f"shape {(HEADS, len(TOKENS), D_K)}", SMALL), gap=4)
    return right_and_wrong(start, table(content), table(wrong), "exchange, join", (len(TOKENS), HEADS * D_K))


def token_cells(texts: Sequence[str], classes: Sequence[str]) -> Cells:
    """The places of one token, with a text in each."""
    return Cells(1, len(texts), lambda _i, j: classes[j], (24, 20), lambda _i, j: texts[j])


def memory_row(title: str, texts: Sequence[str], classes: Sequence[str]) -> Group:
    """The memory of three tokens of four features."""
    tokens = [token_cells(texts[start : start + 4], classes[start : start + 4]) for start in (0, 4, 8)]
    return column(Text(title, SMALL, "start"), row(*tokens, gap=7), gap=4, align=0)


@drawing(
    title="Which places in memory a head reads",
    description=(
        "Three rows of twelve cells, four for each of the tokens a, b and c. First: the cells named by token and"
        " feature, a0 to c3. Second, view then transpose: of each token the first two cells belong to head 0 and"
        " the last two to head 1. Third, one reshape: the first six cells, all of token a and half of token b,"
        " belong to head 0 and the last six to head 1."
    ),
    look=(
        "The row is the memory of three tokens of four features each. Cut and exchanged, each head reads two"
        " features of every token. Reshaped in one step, head 0 reads all of token a and half of token b."
    ),
)
def memory(_narrow: bool) -> Piece:
    """The same memory, read with two descriptions."""
    places = np.arange(12)
    right = places.reshape(3, 2, 2).swapaxes(0, 1)  # (heads, n, d_k)
    wrong = places.reshape(2, 3, 2)  # the same shape
    names = [f"{token}{feature}" for token in "abc" for feature in range(4)]
    rows = [memory_row("memory: token and feature", names, 12 * ["cell"])]
    for way, read in (("✓ view, transpose", right), ("✗ one reshape", wrong)):
        strides = tuple(step // read.itemsize for step in read.strides)
        heads = [int((read[1] == place).any()) for place in places]
        title = f"{way}: read by head, strides {strides}"
        rows.append(memory_row(title, [str(head) for head in heads], [f"cell head-{head}" for head in heads]))
    return column(*rows, gap=14, align=0)


@drawing(
    title="W_O as a block of rows for each head",
    description=(
        "Above, the heads' outputs side by side, two columns in each of three colours, times W_O, whose rows have"
        " the same three colours, two rows a colour, give an output whose features are made of all three colours."
        " Below, the same as a sum: for each head its two columns times its two rows of W_O, a full-width result in"
        " the colour of that head, and the three results added."
    ),
    look=(
        "Each head has its own rows of $W_O$. Multiplying heads side by side by $W_O$ is adding what each head"
        " gives."
    ),
    steps=(
        "Together. All heads side by side, times the whole of $W_O$.",
        "Apart. Each head times its own rows of $W_O$; then the results are added. Both give the same numbers.",
    ),
)
def output_projection(_narrow: bool) -> Piece:
    """The product with W_O, whole and by blocks of rows."""
    n, heads, d_k, side = 4, 3, 2, (11.0, 13.0)
    d_model = heads * d_k

    def product(*pieces: Piece) -> Group:
        left, matrix, result = pieces
        return row(left, Text("×"), matrix, Text("="), result, gap=8)

    joined = Cells(n, d_model, lambda _i, j: f"cell head-{j // d_k}", side)
    w_o = Cells(d_model, d_model, lambda i, _j: f"cell head-{i // d_k}", side)
    whole = product(
        under("side by side", joined), under("$W_O$", w_o), under("output", Mixture(n, d_model, heads, side))
    )

    rows: list[Piece] = []
    for head in range(heads):
        left = Cells(n, d_k, f"cell head-{head}", side)
        block = Cells(d_k, d_model, f"cell head-{head}", side)
        named = row(Text(f"head {head}", SMALL), left, gap=8)
        result = Cells(n, d_model, f"cell head-{head}", side)
        if head:
            rows.append(Text("+", width=result.width))
        rows.append(product(named, under(f"$W_O^{head}$", block, gap=2), result))
    total = Mixture(n, d_model, heads, side)
    rows += [Piece(0, 4), row(Text("added: the same output", SMALL), Text("="), total, gap=8)]
    return column(
        row(Badge(1), whole, gap=16),
        row(Badge(2), column(*rows, gap=2, align=1), gap=10, align=0),
        gap=26,
        align=0,
    )
