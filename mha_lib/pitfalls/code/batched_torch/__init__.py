"""Mistakes in the items of `batched_torch`: layers of attention, in PyTorch."""
