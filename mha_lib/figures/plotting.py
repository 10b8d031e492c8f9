"""One look for every figure: readable without colour, on a transparent ground, the same bytes at every build."""

from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib_inline.backend_inline import set_matplotlib_formats

from mha_lib.figures.head_colours import HEAD_COLOURS

INK = "#1f2430"
MUTED = "#6b7280"
# Those of the first heads; each colour has a marker and a dash of its own.
COLOURS = tuple(light for light, _ in HEAD_COLOURS[:5])
MARKERS = ("o", "s", "^", "D", "v")
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))


STYLE: dict[Any, Any] = {
    "svg.hashsalt": "multi-head attention",
    "figure.figsize": (5.4, 3.2),  # wide enough for a page, narrow enough for a telephone
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": MUTED,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "axes.prop_cycle": cycler(color=COLOURS) + cycler(marker=MARKERS) + cycler(linestyle=DASHES),
}


def use_course_style() -> None:
    """Draw every figure of this process as SVG in the course's style."""
    set_matplotlib_formats("svg", metadata={"Date": None}, bbox_inches="tight")
    mpl.rcParams.update(STYLE)


def heat_map(
    ax: Axes,
    weights: np.ndarray,
    queries: list[str],
    keys: list[str],
    decimals: int | None = 2,
    least: float = 0.0,
) -> None:
    """Draw attention weights as a table of numbers on a grey ground, one row a query, one column a key.

    Args:
        ax: the axes to draw on.
        weights: weights `(n, m)`, from 0 to 1.
        queries: the n row labels.
        keys: the m column labels.
        decimals: how many decimals to write into the cells; None writes no numbers.
        least: smaller weights are not written.
    """
    darkest = 1.0 if decimals is None else 2.5  # ink stands out from the grey of 1
    ax.imshow(weights, cmap="Greys", vmin=0, vmax=darkest, aspect="auto")
    ax.set_xticks(range(len(keys)), keys)
    ax.set_yticks(range(len(queries)), queries)
    ax.set_xticks(np.arange(len(keys) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(queries) + 1) - 0.5, minor=True)
    ax.grid(visible=False)
    # Cells with little weight have an edge as well.
    ax.grid(which="minor", color=MUTED, alpha=0.5, linewidth=0.5)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    if decimals is None:
        return
    for (i, j), weight in np.ndenumerate(weights):
        if weight < least:
            continue
        ax.text(j, i, f"{weight:.{decimals}f}", ha="center", va="center")
