"""What pages show: `plotting` is the look of the figures, `head_colours` the colours of heads, `explorer` a part of a page."""
