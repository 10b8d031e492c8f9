"""Mistakes in the items of `transformer_block`: the Transformer block, in PyTorch."""
