"""Heads at work: the block around them, and two heads in two layers."""

from .drawing import drawing
from .shapes import (
    NORMAL,
    SMALL,
    TINY,
    Badge,
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

HEADS = 4


class Plus(Piece):
    """Where what a sublayer computes is added."""

    def __init__(self) -> None:
        super().__init__(18, 18)

    def marks(self) -> str:
        """A circle with a plus in it."""
        (x, y), reach = self.at(0.5, 0.5), 5
        cross = f"M{x - reach:.1f} {y:.1f}h{2 * reach}M{x:.1f} {y - reach:.1f}v{2 * reach}"
        return f'<circle class="asks" cx="{x:.1f}" cy="{y:.1f}" r="9"/><path class="stream" d="{cross}"/>'


def stream(start: Point, end: Point) -> str:
    """A piece of the stream that carries the tokens through the block."""
    return f'<path class="stream" d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"/>'


class Attention(Frame):
    """The attention sublayer: a box with a stripe for each of its heads."""

    def __init__(self) -> None:
        super().__init__(box("multi-head\nattention", "nothing", SMALL, width=88, pad=(8, 7)), "box", 0)

    def marks(self) -> str:
        """The box, and the stripes along its lower edge."""
        wide, (x, y) = self.width / HEADS, self.at(0, 1)
        stripes = [
            rectangle(x + i * wide + 1.5, y - 6, wide - 3, 4, f"weight head-{i}", 1) for i in range(HEADS)
        ]
        return super().marks() + "".join(stripes)


def sublayers() -> tuple[Frame, Frame]:
    """Attention, and the network that follows it."""
    return Attention(), box("feed-\nforward", "box", SMALL, width=88)


def pre_norm() -> Linked:
    """The stream passes the sublayers by, and each normalises its own copy."""
    begin, end = Text("$x$"), Text("output")
    sides, pluses, parts = [], [], []
    for layer in sublayers():
        norm = box("norm", "box", SMALL, width=88, height=22)
        side, plus = column(norm, layer, gap=14), Plus()
        sides.append((norm, layer))
        pluses.append(plus)
        parts.append(side)
    right = column(*parts, gap=44)
    whole = column(lines("pre-norm", NORMAL, "strong"), begin, Piece(0, 14), right, Piece(0, 20), end, gap=6)
    x = right.x - 26
    for plus, (_, layer) in zip(pluses, sides, strict=True):
        plus.move(x - 9 - plus.x, layer.y + layer.height + 6 - plus.y)
    for piece in (begin, end):
        piece.move(x - piece.width / 2 - piece.x, 0)

    def links() -> list[str]:
        x = pluses[0].top[0]
        drawn, at = [], begin.bottom
        for (norm, layer), plus in zip(sides, pluses, strict=True):
            fork = (x, norm.y - 8)
            drawn += [stream(at, plus.top), curve(fork, norm.top, out=(1, 0), reach=14)]
            drawn += [arrow(norm.bottom, layer.top), curve(layer.bottom, plus.right, into=(-1, 0))]
            at = plus.bottom
        return [*drawn, stream(at, end.top)]

    return Linked(Group([*whole.pieces, *pluses]), links)


def post_norm() -> Linked:
    """The stream itself is normalised after each sublayer."""
    begin, end = Text("$x$"), Text("output")
    layers = sublayers()
    norms = [box("norm", "box", SMALL, width=58, height=22) for _ in layers]
    pluses = [Plus() for _ in layers]
    right = column(layers[0], Piece(0, 74), layers[1], gap=0)
    whole = column(lines("post-norm", NORMAL, "strong"), begin, Piece(0, 14), right, Piece(0, 64), end, gap=6)
    x = right.x - 34
    for plus, norm, layer in zip(pluses, norms, layers, strict=True):
        plus.move(x - 9, layer.y + layer.height + 4)
        norm.move(x - norm.width / 2, plus.y + plus.height + 10)
    for piece in (begin, end):
        piece.move(x - piece.width / 2 - piece.x, 0)

    def links() -> list[str]:
        x = pluses[0].top[0]
        drawn, at = [], begin.bottom
        for layer, plus, norm in zip(layers, pluses, norms, strict=True):
            fork = (x, layer.y - 8)
            drawn += [stream(at, plus.top), curve(fork, layer.top, out=(1, 0), reach=14)]
            drawn += [curve(layer.bottom, plus.right, into=(-1, 0)), stream(plus.bottom, norm.top)]
            at = norm.bottom
        return [*drawn, stream(at, end.top)]

    return Linked(Group([*whole.pieces, *pluses, *norms]), links)


@drawing(
    title="A transformer block, pre-norm and post-norm",
    description=(
        "Two panels, from top to bottom. In both, a thick line leads from x to the output, with two circles in"
        " which something is added: the result of multi-head attention, a box with a stripe for each of four heads,"
        " then that of the feed-forward network."
        " Pre-norm: a norm stands in each side branch, before the sublayer; the thick line has nothing on it but"
        " the two additions. Post-norm: the branches have no norm; a norm stands on the thick line after each"
        " addition."
    ),
    look=(
        "Follow the thick line. Pre-norm leaves it free: the output is $x$ plus what the sublayers add. Post-norm"
        " normalises it after each addition."
    ),
)
def block(_narrow: bool) -> Piece:
    """The two sublayers, and where the norms stand."""
    return row(pre_norm(), post_norm(), gap=36, align=0)


LETTERS = "ACDBC"


@drawing(
    title="The induction circuit",
    description=(
        "Three levels, from top to bottom. The tokens A, C, D, B, C stand in a row. In layer 1, lines of one colour"
        " lead from each token to its right neighbour, which notes what stood before it: below D stands “after C”."
        " In layer 2, a line of another colour leads from the last C, whose query is “after C”, to D, the token"
        " noted as “after C”. Another one leads from there to what is predicted below the last C: D."
    ),
    look="Layer 1 notes at D that a C stood before it. So layer 2, at the next C, can find D and predict it.",
    steps=(
        "Layer 1. The previous-token head notes at each position which token stood before it.",
        "Layer 2. The query at the last C matches the key “after C”, which stands at D.",
        "Copy. The head brings D, and the model predicts it.",
    ),
)
def induction_circuit(_narrow: bool) -> Piece:
    """A previous-token head, then an induction head."""
    wide, gap = 50.0, 8.0
    tokens = [box(letter, "box", NORMAL, width=wide, height=26) for letter in LETTERS]
    notes = [
        Frame(
            column(
                Text(letter, NORMAL),
                box(f"after {LETTERS[i - 1]}", "cell head-0", TINY, width=wide, height=18)
                if i
                else Piece(wide, 18),
                gap=3,
            ),
            "box",
            (0, 1),
        )
        for i, letter in enumerate(LETTERS)
    ]
    found = box("D", "cell head-1", NORMAL, width=wide, height=26)
    top, middle = row(*tokens, gap=gap), row(*notes, gap=gap)
    whole = column(top, middle, column(found, Text("predicted", TINY, width=wide), gap=2), gap=46, align=1)
    badges = [Badge(number) for number in (1, 2, 3)]
    gaps = (top.y + top.height + 23, middle.y + middle.height + 16, found.left[1])
    for badge, y in zip(badges, gaps, strict=True):
        badge.move(whole.x - 30, y - 10)
    source, target = LETTERS.index("D"), len(LETTERS) - 1
    question = Text("after C?", TINY)
    question.move(notes[source + 1].top[0] + 4 - question.width / 2, middle.y + middle.height + 4)

    def links() -> list[str]:
        drawn = [
            curve(tokens[i].bottom, notes[i + 1].top, "head-0" if i + 1 == source else "head-0 faint")
            for i in range(len(LETTERS) - 1)
        ]
        asks, answers = notes[target].at(0.5, 1), notes[source].at(0.6, 1)
        drawn.append(curve(asks, answers, "head-1", (0, 1), (0, -1), reach=30))
        drawn.append(curve(notes[source].at(0.3, 1), found.left, "head-1", (0, 1), (1, 0)))
        return drawn

    return Linked(Group([whole, question, *badges]), links)
