"""What chapters run to settle a question; all of it needs torch.

=================  =========================================================================================
`one_layer`        the limit of one head: contents and tokens at several offsets, trained
`head_symmetry`    two heads that start equal, nearly equal or apart
`head_sweep`       key-value recall with heads of every width and number
`low_rank`         which attention weights a narrow head can form
`block_stack`      what depth can do that more heads cannot, and what a deep stack starts from
`induction`        repeated sequences, one layer against two
`position`         ways to tell a layer where its tokens stand, on a task of order alone
`modern`           heads since 2023: recall, heads with nothing to say, circuits
`writing`          a language model on the source code of Python's library
`uptraining`       key and value heads of a trained layer pooled, then trained on
`tracing`          which operations PyTorch runs, and the memory that they take
=================  =========================================================================================
"""
