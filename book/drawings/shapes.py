"""The vocabulary of the drawings.

A *piece* knows its size. Rows and columns place pieces; links join them once they are placed. Nothing here names
a colour: pieces carry classes, and the style sheet `book/_static/course.css` gives the classes their colours. The
unit is a pixel at the natural size, so a text of size 12 is 12 pixels high on a telephone.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

NORMAL, SMALL, TINY = 14.0, 12.0, 11.0
Point = tuple[float, float]


@dataclass
class Piece:
    """Something with a place and a size; without marks of its own it is empty room."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    def move(self, dx: float, dy: float) -> None:
        """Shift it, with all that it holds."""
        self.x += dx
        self.y += dy

    def marks(self) -> str:
        """Its SVG."""
        return ""

    def at(self, across: float, down: float) -> Point:
        """A point of it; (0, 0) is its top left corner, (1, 1) its bottom right one."""
        return self.x + across * self.width, self.y + down * self.height

    @property
    def top(self) -> Point:
        """The middle of its upper edge."""
        return self.at(0.5, 0)

    @property
    def bottom(self) -> Point:
        """The middle of its lower edge."""
        return self.at(0.5, 1)

    @property
    def left(self) -> Point:
        """The middle of its left edge."""
        return self.at(0, 0.5)

    @property
    def right(self) -> Point:
        """The middle of its right edge."""
        return self.at(1, 0.5)


# --- text ------------------------------------------------------------------------------------------------


def pieces_of(text: str) -> list[tuple[str, str]]:
    """Cut a text into (kind, characters); between dollars stand symbols, as in `$d_k$` and `$W_Q^1$`.

    >>> pieces_of("by $d_k$!")
    [('', 'by '), ('i', 'd'), ('sub', 'k'), ('', '!')]
    """
    cut: list[tuple[str, str]] = []
    for at, part in enumerate(text.split("$")):
        if at % 2 == 0:
            cut.append(("", part))
            continue
        for mark, braced, single in re.findall(r"([_^]?)(?:\{([^}]*)\}|(.))", part):
            shown = braced or single
            kind = {"_": "sub", "^": "sup", "": "i" if shown.isalpha() else ""}[mark]
            cut.append((kind, shown))
    return [(kind, shown) for kind, shown in cut if shown]


def width_of(text: str, size: float) -> float:
    """How wide a line is at most, in the widest of the usual page fonts (DejaVu Sans)."""

    def em(character: str) -> float:
        for characters, wide in (
            ("iljI|'.,:;!", 0.32),
            (" tfr()[]-/", 0.42),
            ("mw", 0.9),
            ("MWQO→←=+×√·", 0.86),
        ):
            if character in characters:
                return wide
        return 0.71 if character.isupper() else 0.62

    width = 0.0
    for kind, shown in pieces_of(text):
        at = max(TINY, 0.75 * size) if kind in ("sub", "sup") else size
        width += at * sum(map(em, shown))
    return width


class Text(Piece):
    """A line of text."""

    def __init__(self, text: str, size: float = NORMAL, classes: str = "", width: float | None = None):
        bold = 1.12 if "strong" in classes else 1
        super().__init__(bold * width_of(text, size) if width is None else width, 1.3 * size)
        self.text, self.size, self.classes = text, size, classes

    def marks(self) -> str:
        """One text element; an index is a smaller span below or above the line."""
        spans, shift = [], 0.0
        for kind, shown in pieces_of(self.text):
            wanted = {"sub": 0.28, "sup": -0.38}.get(kind, 0.0) * self.size
            dy = f' dy="{wanted - shift:.3g}"' if wanted != shift else ""
            shift = wanted
            style = {"": "", "i": ' class="i"'}.get(kind, f' font-size="{max(TINY, 0.75 * self.size):g}"')
            spans.append(f"<tspan{style}{dy}>{escape(shown)}</tspan>" if dy or style else escape(shown))
        x, y = self.at(0 if "start" in self.classes.split() else 0.5, 0.5)
        y += 0.36 * self.size
        named = f' class="{self.classes}"' if self.classes else ""
        return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{self.size:g}"{named}>{"".join(spans)}</text>'


def lines(text: str, size: float = NORMAL, classes: str = "") -> "Group":
    """Several lines, one below the other, in the middle."""
    return column(*(Text(line, size, classes) for line in text.split("\n")), gap=0)


# --- rows and columns ------------------------------------------------------------------------------------


class Group(Piece):
    """Pieces that have their places and move together."""

    def __init__(self, pieces: Sequence[Piece]):
        left, top = min(p.x for p in pieces), min(p.y for p in pieces)
        right, bottom = max(p.x + p.width for p in pieces), max(p.y + p.height for p in pieces)
        super().__init__(right - left, bottom - top, left, top)
        self.pieces = list(pieces)

    def move(self, dx: float, dy: float) -> None:
        """Shift all of them."""
        super().move(dx, dy)
        for piece in self.pieces:
            piece.move(dx, dy)

    def marks(self) -> str:
        """The marks of all of them."""
        return "".join(piece.marks() for piece in self.pieces)


def row(*pieces: Piece, gap: float = 12, align: float = 0.5) -> Group:
    """Pieces beside each other; `align` is 0 for tops in a line, 0.5 for middles, 1 for bottoms."""
    x = 0.0
    tallest = max(piece.height for piece in pieces)
    for piece in pieces:
        piece.move(x - piece.x, align * (tallest - piece.height) - piece.y)
        x += piece.width + gap
    return Group(pieces)


def column(*pieces: Piece, gap: float = 12, align: float = 0.5) -> Group:
    """Pieces below each other; `align` is 0 for left edges in a line, 0.5 for middles, 1 for right edges."""
    y = 0.0
    widest = max(piece.width for piece in pieces)
    for piece in pieces:
        piece.move(align * (widest - piece.width) - piece.x, y - piece.y)
        y += piece.height + gap
    return Group(pieces)


def under(caption: str, piece: Piece, gap: float = 4) -> Group:
    """A piece with a line of text above it."""
    return column(lines(caption, SMALL), piece, gap=gap)


# --- shapes ----------------------------------------------------------------------------------------------


def rectangle(x: float, y: float, width: float, height: float, classes: str, radius: float = 2) -> str:
    """The mark of a rectangle with round corners."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"'
    return f'<rect class="{classes}" {place}/>'


class Frame(Piece):
    """A box around a piece."""

    def __init__(self, piece: Piece, classes: str = "box", pad: float | Point = 8, radius: float = 6):
        self.across, self.down = pad if isinstance(pad, tuple) else (pad, pad)
        super().__init__(piece.width + 2 * self.across, piece.height + 2 * self.down)
        piece.move(self.across - piece.x, self.down - piece.y)
        self.piece, self.classes, self.radius = piece, classes, radius

    def move(self, dx: float, dy: float) -> None:
        """Shift it and what is in it."""
        super().move(dx, dy)
        self.piece.move(dx, dy)

    def marks(self) -> str:
        """The box, and what is in it on top."""
        box = rectangle(self.x, self.y, self.width, self.height, self.classes, self.radius)
        return box + self.piece.marks()


def box(
    text: str,
    classes: str = "box",
    size: float = NORMAL,
    width: float | None = None,
    height: float | None = None,
    pad: Point = (8, 4),
) -> Frame:
    """A box with text in it, as large as the text needs or of a given size."""
    content = lines(text, size)
    across = pad[0] if width is None else (width - content.width) / 2
    down = pad[1] if height is None else (height - content.height) / 2
    return Frame(content, classes, (across, down))


class Cells(Piece):
    """A matrix as cells; `classes` says how the cell in a row and a column looks, `texts` what stands in it."""

    def __init__(
        self,
        rows: int,
        cols: int,
        classes: str | Callable[[int, int], str] = "cell",
        side: float | Point = 12,
        texts: Callable[[int, int], str] | None = None,
    ):
        self.pitch: Point = side if isinstance(side, tuple) else (side, side)
        super().__init__(cols * self.pitch[0], rows * self.pitch[1])
        self.rows, self.cols, self.texts = rows, cols, texts
        self.classes = classes if callable(classes) else lambda _row, _col: classes

    def part(self, rows: slice = slice(None), cols: slice = slice(None)) -> Piece:
        """The room of some rows and columns."""
        (top, bottom, _), (left, right, _) = rows.indices(self.rows), cols.indices(self.cols)
        wide, high = self.pitch
        return Piece((right - left) * wide, (bottom - top) * high, self.x + left * wide, self.y + top * high)

    def marks(self) -> str:
        """A rectangle for each cell."""
        wide, high = self.pitch
        drawn = []
        for i in range(self.rows):
            for j in range(self.cols):
                x, y = self.x + j * wide, self.y + i * high
                drawn.append(rectangle(x + 0.5, y + 0.5, wide - 1, high - 1, self.classes(i, j), 1.5))
                if self.texts is not None and self.texts(i, j):
                    text = Text(self.texts(i, j), SMALL, width=wide)
                    text.move(x, y + (high - text.height) / 2)
                    drawn.append(text.marks())
        return "".join(drawn)


class Mixture(Piece):
    """A matrix in which every number is made of all heads: each cell has a stripe of each."""

    def __init__(self, rows: int, cols: int, heads: int, side: Point):
        super().__init__(cols * side[0], rows * side[1])
        self.rows, self.cols, self.heads, self.side = rows, cols, heads, side

    def marks(self) -> str:
        """The stripes of each cell."""
        wide, high = self.side
        stripe = (wide - 1) / self.heads
        return "".join(
            rectangle(
                self.x + j * wide + 0.5 + head * stripe,
                self.y + i * high + 0.5,
                stripe,
                high - 1,
                f"cell stripe head-{head}",
                0,
            )
            for i in range(self.rows)
            for j in range(self.cols)
            for head in range(self.heads)
        )


class Weights(Piece):
    """Attention weights: in each cell a square whose area is the weight, all of one path."""

    def __init__(self, weights: np.ndarray, classes: str, side: float):
        self.rows, self.cols = weights.shape
        super().__init__(self.cols * side, self.rows * side)
        self.weights, self.classes, self.side = weights, classes, side

    def marks(self) -> str:
        """The ground, and the squares on it; squares too small to be seen are left out."""
        path = []
        for i, weights in enumerate(self.weights):
            for j, weight in enumerate(weights):
                edge = round((self.side - 0.6) * min(1.0, float(weight)) ** 0.5, 1)
                if edge >= 0.15 * self.side:
                    x, y = (
                        self.x + (j + 0.5) * self.side - edge / 2,
                        self.y + (i + 0.5) * self.side - edge / 2,
                    )
                    path.append(f"M{x:.1f} {y:.1f}h{edge:g}v{edge:g}h-{edge:g}z")
        ground = rectangle(self.x, self.y, self.width, self.height, "ground", 2)
        return f'{ground}<path class="{self.classes}" d="{"".join(path)}"/>'


class Badge(Piece):
    """The number of a step, in a circle."""

    def __init__(self, number: int):
        super().__init__(20, 20)
        self.text = Text(str(number), SMALL, "step-text", width=20)

    def marks(self) -> str:
        """A circle with the number in it."""
        x, y = self.at(0.5, 0.5)
        self.text.move(self.x - self.text.x, y - self.text.height / 2 - self.text.y)
        return f'<circle class="step" cx="{x:.1f}" cy="{y:.1f}" r="10"/>{self.text.marks()}'


class Linked(Piece):
    """A piece and the links in it, which are drawn once all has its place."""

    def __init__(self, piece: Piece, links: Callable[[], Sequence[str]]):
        super().__init__(piece.width, piece.height, piece.x, piece.y)
        self.piece, self.links = piece, links

    def move(self, dx: float, dy: float) -> None:
        """Shift the piece; the links follow."""
        super().move(dx, dy)
        self.piece.move(dx, dy)

    def marks(self) -> str:
        """The piece, and the links on top."""
        return self.piece.marks() + "".join(self.links())


# --- links -----------------------------------------------------------------------------------------------


def _tip(end: Point, direction: Point, classes: str) -> str:
    """The point of an arrow."""
    length = (direction[0] ** 2 + direction[1] ** 2) ** 0.5
    dx, dy = direction[0] / length, direction[1] / length
    corners = [end, *((end[0] - 7 * dx - s * 3.5 * dy, end[1] - 7 * dy + s * 3.5 * dx) for s in (1, -1))]
    return f'<path class="tip {classes}" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + 'z"/>'


def arrow(start: Point, end: Point, classes: str = "", tip: bool = True) -> str:
    """A straight line from one point to another, with a point at its end."""
    (x0, y0), (x1, y1) = start, end
    line = f'<path class="link {classes}" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>'
    return line + (_tip(end, (x1 - x0, y1 - y0), classes) if tip else "")


def curve(
    start: Point,
    end: Point,
    classes: str = "",
    out: Point = (0, 1),
    into: Point = (0, 1),
    reach: float | None = None,
    tip: bool = True,
) -> str:
    """A line that leaves in the direction `out` and arrives in the direction `into`, both of length 1.

    `reach` is how far it goes on in these directions before it turns; by default half of the way.
    """
    (x0, y0), (x1, y1) = start, end
    leave, arrive = (
        reach or max(6.0, 0.55 * abs((x1 - x0) * way[0] + (y1 - y0) * way[1])) for way in (out, into)
    )
    bends = [
        (x0 + leave * out[0], y0 + leave * out[1]),
        (x1 - arrive * into[0], y1 - arrive * into[1]),
        end,
    ]
    path = f"M{x0:.1f} {y0:.1f}C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in bends)
    return f'<path class="link {classes}" d="{path}"/>' + (_tip(end, into, classes) if tip else "")


# --- a whole drawing -------------------------------------------------------------------------------------

WIDE = 680.0  # a page; a telephone has 320


def svg(content: Piece, name: str, title: str, description: str, classes: str) -> str:
    """An SVG element of a piece's natural size that scales with the page.

    Raises:
        ValueError: the piece is wider than a page.
    """
    margin = 2.0
    width, height = content.width + 2 * margin, content.height + 2 * margin
    if width > WIDE:
        raise ValueError(f"drawing {name} is {width:.0f} wide, a page has {WIDE:.0f}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{classes}" role="img"'
        f' aria-labelledby="{name}-title {name}-desc"'
        f' viewBox="{content.x - margin:.1f} {content.y - margin:.1f} {width:.1f} {height:.1f}"'
        f' style="max-width: {width:.1f}px"><title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>{content.marks()}</svg>'
    )
