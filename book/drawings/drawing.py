"""What a page shows of a drawing: the picture, for a page and for a telephone, its steps and its caption."""

from collections.abc import Callable
from dataclasses import dataclass

from .shapes import Piece, svg

Make = Callable[[bool], Piece]


@dataclass(frozen=True)
class Drawing:
    """A drawing of the book.

    Attributes:
        make: draws it; its argument says whether it is for a telephone.
        title: what it is, for readers who do not see it.
        description: what is seen in it.
        look: the caption, a sentence that says what to look at; symbols stand between dollars, as in `$W_O$`.
        steps: what the numbers in the picture stand for; the first sentence of each is its name.
    """

    make: Make
    title: str
    description: str
    look: str
    steps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that pages call it by: that of the function that draws it."""
        return self.make.__name__.replace("_", "-")

    def html(self) -> str:
        """The picture as inline SVG: one that serves every width, or two of which the style sheet shows one."""
        svgs = [
            svg(self.make(narrow), f"{self.name}-{width}", self.title, self.description, width)
            for width, narrow in (("wide", False), ("narrow", True))
        ]
        if svgs[0].replace("-wide-", "-narrow-").replace('class="wide"', 'class="narrow"') == svgs[1]:
            svgs = [svgs[1].replace('class="narrow"', 'class="any"')]
        return f'<div class="drawing-picture">{"".join(svgs)}</div>'


def drawing(
    title: str, description: str, look: str, steps: tuple[str, ...] = ()
) -> Callable[[Make], Drawing]:
    """Make a drawing of the function that draws it."""

    def made(make: Make) -> Drawing:
        return Drawing(make, title, description, look, steps)

    return made
