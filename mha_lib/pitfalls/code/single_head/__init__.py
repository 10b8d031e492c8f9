"""Mistakes in the items of `single_head`: one head of attention, in NumPy."""
