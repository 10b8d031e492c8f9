"""What pages show: `plotting` is the look of the figures, `explorer` the heads of a model as a part of a page."""
