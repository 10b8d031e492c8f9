"""Mistakes in the items of `multi_head`: several heads, in NumPy."""
