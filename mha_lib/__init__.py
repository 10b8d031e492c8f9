"""Multi-head attention, written to be read.

Every piece that the course builds, under the name that the course gives it:

=========================  ===============================================================================
`mha_lib.attention`        softmax and scaled dot-product attention, in NumPy
`mha_lib.masks`            causal and padding masks, and both together
`mha_lib.heads`            the width of a head; from features to heads and back
`mha_lib.multi_head`       multi-head attention in NumPy: self, causal, cross, and head by head in a loop
`mha_lib.counting`         parameters and floating-point operations by formula
`mha_lib.grouped_query`    query heads that share heads of keys and values
`mha_lib.kv_cache`         causal attention that remembers keys and values, and the bytes that this takes
`mha_lib.pruning`          heads taken out of a layer, and attention of the width that is left
`mha_lib.real_heads`       the attention of a trained model, and what its heads do
`mha_lib.minilm`           the small trained model itself, and a stored sample of it
`mha_lib.minilm_sample`    how the sample was made
`mha_lib.labelled_links`   sentences in which somebody has marked which word belongs to which
`mha_lib.head_scores`      what heads look at, as numbers, beside what simple rules reach
`mha_lib.explorer`         attention weights of real heads as a part of a page that readers can explore
`mha_lib.minilm_encoder`   the model in PyTorch, with a gate on every head (needs torch)
`mha_lib.paraphrases`      sentences, what they mean in other words, and sentences that share only words
`mha_lib.prune_curve`      which heads of the model can go, and what that costs (needs torch)
`mha_lib.uptraining`       key and value heads of a trained layer pooled, then trained on (needs torch)
`mha_lib.torch_attention`  the same as PyTorch modules (needs torch)
`mha_lib.torch_tracing`    which operations PyTorch runs, and the memory that they take (needs torch)
`mha_lib.fused`            attention written to be fast, equal to the readable layers (needs torch)
`mha_lib.transformer`      the block that Transformers are stacked of, in PyTorch (needs torch)
`mha_lib.torch_stack`      what depth can do that more heads cannot, and what a deep stack starts from
`mha_lib.pitfalls`         the known mistakes, each as code that is wrong in exactly one way
`mha_lib.styles`           right ways of writing the same pieces, which grading must accept
`mha_lib.checkers`         checks that tell a right function from a wrong one, in NumPy
`mha_lib.same_items`       which items are others under a new name
`mha_lib.experiments`      what the book trains to settle a question: the limit of one head (needs torch)
`mha_lib.head_symmetry`    two heads that start equal, nearly equal or apart (needs torch)
`mha_lib.head_sweep`       key-value recall with heads of every width and number (needs torch)
`mha_lib.low_rank`         which attention weights a narrow head can form (needs torch)
`mha_lib.induction`        repeated sequences, one layer against two (needs torch)
`mha_lib.plotting`         the look of the book's figures (needs matplotlib)
=========================  ===============================================================================

Shapes are written with these letters everywhere: `batch` sequences, `n` queries, `m` keys, `d_model`
features, `heads` heads; queries and keys of a head are `d_k` wide, its values `d_v`. Masks are boolean,
True = may attend.

Importing this package imports nothing else: take what you need from the modules.
"""
