"""What chapters run to settle a question; all of it needs torch.

=================  =========================================================================================
`training`         what they share: seeds that hold, and training by Adam
`one_layer`        the limit of one head: contents and tokens at several offsets, trained
`two_tokens`       one head on two tokens: what a linear read-out can name, counted over all pairs
`head_symmetry`    two heads that start equal, nearly equal or apart
`head_sweep`       key-value recall with heads of every width and number
`low_rank`         which attention weights a narrow head can form
`block_stack`      pointers followed by few blocks, and the gradients that a deep stack starts from
`composition`      two look-ups, the second with the answer of the first: one layer against two
`curves`           runs too long for a chapter: seeds, budgets and sizes, stored in `curves.json`
`induction`        repeated sequences, one layer against two
`position`         ways to tell a layer where its tokens stand, on a task of order alone
`modern`           heads since 2023: recall, heads with nothing to say, circuits
`writing`          a language model on the source code of Python's library
`uptraining`       key and value heads of a trained layer pooled, then trained on
`tracing`          which operations PyTorch runs, and the memory that they take
=================  =========================================================================================
"""
