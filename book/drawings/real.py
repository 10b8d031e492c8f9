"""What the heads of a trained model do: drawings of stored attention weights."""

import numpy as np

from mha_lib.minilm.minilm import load_sample

from .drawing import drawing
from .shapes import SMALL, TINY, Group, Piece, Text, Weights, column, rectangle, row

LAYER = 4  # counted from 1, as the chapter does
WORD = "it"


def strongest(weights: np.ndarray, tokens: list[str]) -> str:
    """The token that the word looks at most, in one head `(n, n)`."""
    return tokens[int(weights[tokens.index(WORD)].argmax())]


class Table(Weights):
    """The weights of one head, with a frame around the row of the word."""

    SIDE = 6

    def __init__(self, weights: np.ndarray, classes: str, marked: int):
        super().__init__(weights, classes, self.SIDE)
        self.marked = marked

    def marks(self) -> str:
        """The weights, and the frame on top."""
        y = self.y + self.marked * self.side
        return super().marks() + rectangle(self.x - 1, y - 1, self.width + 2, self.side + 2, "marked", 1)


def panel(head: int, weights: np.ndarray, tokens: list[str]) -> Group:
    """One head, counted from 0; the chapter counts from 1."""
    seen = Table(weights, f"weight head-{head}", tokens.index(WORD))
    says = Text(f"{WORD} → “{strongest(weights, tokens)}”", TINY, width=96)
    return column(Text(f"head {head + 1}", SMALL, "strong"), seen, says, gap=2)


def beside(panels: list[Group], marked: int, gap: float) -> Group:
    """Panels in a row; at the left stands the word whose row is framed."""
    asks, table = Text(WORD, TINY, width=10), panels[0].pieces[1]
    drawn = row(asks, row(*panels, gap=gap), gap=3)
    asks.move(0, table.y + (marked + 0.5) * Table.SIDE - asks.height / 2 - asks.y)
    return drawn


@drawing(
    title="Where the twelve heads of a layer look",
    description=(
        "Twelve tables of attention weights, one for each head of layer 4 of a trained model, for the sentence “The"
        " animal didn't cross the street because it was too tired.” Each row is a query, each column a key; the"
        " larger a square, the larger the weight. In all heads but the last, the first column, the start mark"
        " [CLS], gets the most. The row of “it” is framed, and below each table stands the token that “it”"
        " attends to most: in ten heads [CLS], in head 2 animal, in head 12 the full stop."
    ),
    look=(
        "Twelve heads, one sentence, twelve tables. Rows are queries, columns are keys; the framed row is “it”, and"
        " below each table stands the token that “it” attends to most."
    ),
)
def heads_of_a_layer(narrow: bool) -> Piece:
    """All heads of a layer on one sentence, from the stored sample."""
    sample = load_sample()
    tokens, maps = list(sample.tokens[0]), sample.maps[0][LAYER - 1]  # (heads, n, n)
    panels = [panel(head, weights, tokens) for head, weights in enumerate(maps)]
    across = 3 if narrow else 6
    marked, gap = tokens.index(WORD), 10 if narrow else 15
    rows = [beside(panels[at : at + across], marked, gap) for at in range(0, len(panels), across)]
    return column(*rows, gap=12)
