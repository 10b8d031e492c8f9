"""A part of a page in which readers explore the attention weights of real heads.

The data stand in the page, as JSON; `book/_static/explorer.js` makes the controls. So it works without a network
and from a folder.
"""

import json
from collections.abc import Sequence

import numpy as np

SCRIPT = "../_static/explorer.js"  # as seen from a page of the book


def explorer_html(
    texts: Sequence[str],
    tokens: Sequence[Sequence[str]],
    maps: Sequence[np.ndarray],
    start: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> str:
    """The HTML of an explorer.

    Args:
        texts: the sentences.
        tokens: the n tokens of each.
        maps: the attention weights of each, `(layers, heads, n, n)`; they are rounded to three decimals.
        start: sentence, layer, head and token that are shown first, counted from 0.

    Returns:
        HTML. Nothing in the texts can end the block of data or be taken for a tag.

    >>> page = explorer_html(["</script>"], [["a", "<b>"]], [np.full((1, 1, 2, 2), 0.5)])
    >>> page.count("</script>"), "<b>" in page  # the data, and explorer.js
    (2, False)
    """
    data = {
        "start": list(start),
        "sentences": [
            {"text": text, "tokens": list(names), "maps": np.rint(1000 * weights).astype(int).tolist()}
            for text, names, weights in zip(texts, tokens, maps, strict=True)
        ],
    }
    safe = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<div class="explorer"><noscript>The explorer needs JavaScript. The heat maps of this chapter show some'
        ' of the same weights.</noscript><script type="application/json">'
        f'{safe}</script></div><script src="{SCRIPT}" defer></script>'
    )
