"""One colour for each head, in charts, drawings and pages alike: the only place where head colours are defined.

The first five are Okabe and Ito's palette for colour-blind readers, without its yellow. No twelve colours can be
told apart by everybody, so a head is always labelled as well.
"""

# For each head, counted from 0: its colour on a light page and on a dark one.
HEAD_COLOURS = (
    ("#0072b2", "#4bade4"),
    ("#d55e00", "#ef8a3c"),
    ("#009e73", "#2bbf95"),
    ("#cc79a7", "#e29bc2"),
    ("#56b4e9", "#8fd0f7"),
    ("#8a7a00", "#d6c445"),
    ("#6a4fb3", "#a994ec"),
    ("#b3202c", "#f2787f"),
    ("#1f7a8c", "#5cc3d6"),
    ("#8c564b", "#cf9b8f"),
    ("#5f7f1e", "#a4c75c"),
    ("#5b6472", "#a7b0bd"),
)


def head_colours_css() -> str:
    """A style sheet that gives pages the colours as variables, light and dark.

    `--mha-head-0` is the colour of head 0; inside of an element of the class `head-0`, `--c` is that colour too.

    >>> print(head_colours_css()[:31])
    html { --mha-head-0: #0072b2; -
    """

    def rule(selector: str, theme: int) -> str:
        colours = (f"--mha-head-{head}: {pair[theme]};" for head, pair in enumerate(HEAD_COLOURS))
        return f"{selector} {{ {' '.join(colours)} }}\n"

    classes = (f".head-{head} {{ --c: var(--mha-head-{head}); }}\n" for head in range(len(HEAD_COLOURS)))
    return rule("html", 0) + rule('html[data-theme="dark"]', 1) + "".join(classes)
