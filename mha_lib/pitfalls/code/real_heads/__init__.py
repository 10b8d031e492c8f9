"""Mistakes in the items of `real_heads`: reading a trained model's heads, in NumPy."""
