"""Multi-head attention, written to be read.

The top of the package contains every piece that the course builds, under the name that the course gives it:

=========================  ===============================================================================
`mha_lib.attention`        softmax and scaled dot-product attention, in NumPy
`mha_lib.masks`            causal and padding masks, and both together
`mha_lib.heads`            the width of a head; from features to heads and back
`mha_lib.multi_head`       multi-head attention in NumPy: self, causal, cross, and head by head in a loop
`mha_lib.counting`         parameters and floating-point operations by formula
`mha_lib.checkers`         checks that tell a right function from a wrong one, in NumPy
`mha_lib.torch_attention`  the same as PyTorch modules (needs torch)
`mha_lib.transformer`      the block that Transformers are stacked of, in PyTorch (needs torch)
`mha_lib.grouped_query`    query heads that share heads of keys and values
`mha_lib.kv_cache`         causal attention that remembers keys and values, and the bytes that this takes
`mha_lib.pruning`          heads taken out of a layer, and attention of the width that is left
`mha_lib.real_heads`       the attention of a trained model, and what its heads do
`mha_lib.positions`        rotary positions, and the mask of a sliding window (needs torch)
`mha_lib.modern_heads`     latent attention, plain and absorbed, and normalised queries and keys (needs torch)
`mha_lib.language_model`   a model that writes text, its loss, and sampling with a cache (needs torch)
`mha_lib.fused`            attention written to be fast, equal to the readable layers (needs torch)
=========================  ===============================================================================

The subpackages follow, each with a map of its own in its docstring:

=========================  ===============================================================================
`mha_lib.experiments`      what chapters run to settle a question (needs torch)
`mha_lib.minilm`           a small trained model, and what is measured on its heads
`mha_lib.figures`          the look of the book's figures, and what readers can explore (needs matplotlib)
`mha_lib.pitfalls`         the known mistakes, each as code that is wrong in exactly one way
`mha_lib.styles`           right ways of writing the same pieces, which grading must accept
=========================  ===============================================================================

Shapes are written with these letters everywhere: `batch` sequences, `n` queries, `m` keys, `d_model`
features, `heads` heads; queries and keys of a head are `d_k` wide, its values `d_v`. Masks are boolean,
True = may attend.

Importing this package imports nothing else: take what you need from the modules.
"""
