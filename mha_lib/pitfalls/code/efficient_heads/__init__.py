"""Mistakes in the items of `efficient_heads`: sharing, remembering and removing heads, in NumPy."""
