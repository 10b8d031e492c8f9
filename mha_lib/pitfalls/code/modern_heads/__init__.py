"""Mistakes in the items of `modern_heads`: positions, windows, latents and norms, in PyTorch."""
