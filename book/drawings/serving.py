"""What a model that writes must keep, and how a fused kernel goes through it."""

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
    arrow,
    box,
    column,
    lines,
    rectangle,
    row,
    under,
)

QUERY_HEADS = 4
WORDS = ("The", "animal", "was", "too", "tired")


class SharedHead(Piece):
    """A head of keys or values, with a stripe for each query head that asks it."""

    def __init__(self, letter: str, users: range):
        super().__init__(30, 20)
        self.letter, self.users = Text(f"${letter}$", SMALL, width=30), users

    def marks(self) -> str:
        """The stripes, an outline that says that it is kept, and the letter."""
        wide = self.width / len(self.users)
        self.letter.move(self.x - self.letter.x, self.y + 2 - self.letter.y)
        stripes = [
            rectangle(self.x + i * wide, self.y, wide, self.height, f"cell band head-{head}", 0)
            for i, head in enumerate(self.users)
        ]
        outline = rectangle(self.x, self.y, self.width, self.height, "kept", 2)
        return "".join(stripes) + outline + self.letter.marks()


def asking() -> list[Frame]:
    """The query heads of one token."""
    return [box(f"$Q_{i}$", f"cell head-{i}", SMALL, width=30, height=22) for i in range(QUERY_HEADS)]


def sharing(title: str, kv_heads: int) -> Linked:
    """Query heads above, the heads of keys and values that they ask below."""
    group = QUERY_HEADS // kv_heads
    queries = asking()
    users = [range(k * group, (k + 1) * group) for k in range(kv_heads)]
    pairs = [column(SharedHead("K", used), SharedHead("V", used), gap=3) for used in users]
    kept = f"{2 * kv_heads} vectors kept"
    below = row(*pairs, gap=35 * group - 30)
    content = column(row(*queries, gap=5), below, gap=30)
    whole = column(lines(title, SMALL, "strong"), content, lines(kept, SMALL), gap=7)

    def links() -> list[str]:
        return [
            arrow(queries[i].bottom, pair.at((n + 0.5) / group, 0), f"head-{i}", tip=False)
            for used, pair in zip(users, pairs, strict=True)
            for n, i in enumerate(used)
        ]

    return Linked(whole, links)


def latent() -> Linked:
    """Query heads above; their keys and values are made again from one short vector."""
    queries = asking()
    made = [box("$K,V$", f"empty head-{i}", TINY, width=30, height=18) for i in range(QUERY_HEADS)]
    kept = Frame(Text("latent", SMALL, width=60), "box kept", (0, 1), 2)
    content = column(row(*queries, gap=5), row(*made, gap=5), kept, gap=14)
    whole = column(lines("latent heads", SMALL, "strong"), content, lines("1 vector kept", SMALL), gap=7)

    def links() -> list[str]:
        drawn = [
            arrow(q.bottom, m.top, f"head-{i}", tip=False)
            for i, (q, m) in enumerate(zip(queries, made, strict=True))
        ]
        return drawn + [arrow(kept.top, m.bottom) for m in made]

    return Linked(whole, links)


@drawing(
    title="Multi-head, grouped-query, multi-query and latent attention",
    description=(
        "Four panels, each with four query heads in four colours. Multi-head: below each query head stand a K and a"
        " V of its colour; 8 vectors are kept. Grouped-query: two query heads share a K and a V, which have two"
        " colours; 4 vectors are kept. Multi-query: all four share one K and one V of four colours; 2 vectors are"
        " kept. Latent heads: one short vector is kept, from which a K and a V for each head are made; these have a"
        " dashed outline."
    ),
    look=(
        "The query heads stay four. What changes is how many keys and values are kept for each token: those in"
        " thick outlines. Latent heads keep one vector and make keys and values from it (their extra key for the"
        " position is left out here)."
    ),
)
def shared_heads(narrow: bool) -> Piece:
    """Who asks which keys and values."""
    panels = [
        sharing("multi-head", QUERY_HEADS),
        sharing("grouped-query", QUERY_HEADS // 2),
        sharing("multi-query", 1),
        latent(),
    ]
    if narrow:
        return column(row(*panels[:2], gap=34), row(*panels[2:], gap=34, align=0), gap=24)
    return row(*panels, gap=30, align=0)


@drawing(
    title="A cache of keys and values that grows",
    description=(
        "Five rows, one for each step in which a token is written: The, animal, was, too, tired. In each row stands"
        " one query, and beside it the keys and values of all tokens up to this one. In every row only the last"
        " pair is new, in a thick outline; all others are kept from the rows above. The rows form a staircase."
    ),
    look=(
        "In each step one query and one pair of key and value are new, in thick outlines. All other pairs are read"
        " from the cache."
    ),
)
def growing_cache(_narrow: bool) -> Piece:
    """A step in each row: one query, and all keys and values so far."""
    rows: list[Piece] = [
        row(
            Text("token", SMALL, "strong", 50),
            Text("query", SMALL, "strong", 38),
            Text("keys and values", SMALL, "strong"),
            gap=8,
        )
    ]
    for step, word in enumerate(WORDS):
        pairs = [
            box(
                f"$k_{i + 1}v_{i + 1}$",
                f"cell head-0{' fresh' if i == step else ''}",
                SMALL,
                width=39,
                height=24,
            )
            for i in range(step + 1)
        ]
        query = box(f"$q_{step + 1}$", "box fresh", SMALL, width=38, height=24)
        rows.append(row(Text(word, SMALL, width=50), query, row(*pairs, gap=4), gap=8))
    return column(*rows, gap=6, align=0)


TILE = (2, 3)  # queries and keys of a tile
TILES = (3, 3)


@drawing(
    title="Attention in tiles",
    description=(
        "A table of scores of six queries and nine keys, cut into tiles of two by three. The queries Q stand at its"
        " left, the keys K above it and the values V below it, cut in the same way. Only one tile is filled: it is"
        " being computed, from two queries, three keys and three values. The four tiles before it are empty and say"
        " done, the four behind it say later. At the right, each query keeps three things: the largest score, the"
        " sum of the powers and the answer so far."
    ),
    look="Only one tile of the table exists at a time. For each query two numbers and the answer so far are kept.",
    steps=(
        "Load. Some queries, some keys and their values come into the fast memory.",
        "Compute. Their scores fill one tile, which is forgotten at once.",
        "Keep. The largest score, the sum and the answer of each query are corrected; then the next tile comes.",
    ),
)
def tiles(_narrow: bool) -> Piece:
    """The table of scores, of which only one tile exists at a time."""
    side, at = 16.0, (1, 1)
    n, m = TILE[0] * TILES[0], TILE[1] * TILES[1]

    def load(tile: int, axis: int) -> str:
        return "cell head-0" if tile == at[axis] else "cell"

    filled = Cells(*TILE, "cell head-0", side)
    size = (TILE[1] * side, TILE[0] * side)

    def tile(place: tuple[int, int]) -> Piece:
        if place == at:
            return filled
        done = place < at
        return box("done" if done else "later", "gone" if done else "empty", SMALL, *size)

    scores = column(*(row(*(tile((i, j)) for j in range(TILES[1])), gap=0) for i in range(TILES[0])), gap=0)
    q = Cells(n, 2, lambda i, _j: load(i // TILE[0], 0), side)
    k = Cells(2, m, lambda _i, j: load(j // TILE[1], 1), side)
    v = Cells(2, m, lambda _i, j: load(j // TILE[1], 1), side)
    largest, total = (Cells(n, 1, lambda i, _j: load(i // TILE[0], 0), side) for _ in range(2))
    answer = Cells(n, 2, lambda i, _j: load(i // TILE[0], 0), side)
    middle = column(lines("keys $K$", SMALL), k, scores, v, lines("values $V$", SMALL), gap=6)
    left = column(q, lines("queries\n$Q$", SMALL), gap=4)
    kept = row(under("max", largest), under("sum", total), under("answer", answer), gap=8, align=1)
    whole = row(left, middle, kept, gap=10)
    for piece, cells in ((left, q), (kept, answer)):
        piece.move(0, scores.y - cells.y)
    whole = Group(whole.pieces)
    badges = [Badge(number) for number in (1, 2, 3)]
    places = [
        (q.top[0], k.left[1]),
        filled.at(0.5, 0.5),
        (answer.right[0] - 20, v.left[1]),
    ]
    for badge, (x, y) in zip(badges, places, strict=True):
        badge.move(x - 10, y - 10)
    return Group([whole, *badges])
