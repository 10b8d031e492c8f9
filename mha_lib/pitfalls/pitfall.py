"""What the bank stores about one mistake."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Pitfall:
    """One mistake, in words and as code that is wrong in exactly this way.

    Attributes:
        slug: its name, in kebab-case; never changed once used.
        title: what the code does, in a few words.
        symptom: what one sees when the code runs.
        reason: one sentence to the student that says why it is wrong.
        fix: one sentence that says what to do.
        passes: the weak checks, by name in `WEAK_CHECKS`, that every variant passes: why it goes unnoticed.
        variants: "assignment.item" to a function with the item's signature that makes the mistake. Code that
            needs PyTorch stands elsewhere, see `mha_lib.pitfalls.variants`.
    """

    slug: str
    title: str
    symptom: str
    reason: str
    fix: str
    passes: tuple[str, ...]
    variants: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


# Checks that are too weak to show that code is right, and what each of them looks at.
WEAK_CHECKS: Mapping[str, str] = {
    "shape": "the result has the right shape",
    "shape at n = m": "the result has the right shape with as many queries as keys",
    "boolean": "the mask is boolean",
    "finite": "nothing in the result is NaN or infinite",
    "rows sum to 1": "each row of weights sums to 1",
    "masked weights are 0": "a key that is masked gets no weight",
    "every row keeps a key": "no query is left with nothing to attend to",
    "small logits": "the result is right for logits of ordinary size",
    "last axis": "the result is right along the last axis",
    "one row": "the result is right for a single row of logits",
    "no mask": "the result is right without a mask",
    "all-True mask": "the result is right under a mask that hides nothing",
    "no batch": "the result is right for matrices, without leading dimensions",
    "one leading dimension": "the result is right for (batch, n, d_k)",
    "one sequence": "the result is right for a batch of one sequence",
    "n = m": "the result is right with as many queries as keys",
    "d_k = d_v": "the result is right when keys and values are equally wide",
    "no keep": "the result is right without `keep`",
    "no padding": "the result is right when no sequence is padded",
    "one head": "the result is right for a layer with one head",
    "one token": "the result is right for sequences of one token",
    "round trip": "cutting into heads can be undone by putting them together",
    "divides": "the result is right where d_model can be divided among the heads",
    "no sharing": "the count is right with as many heads of keys and values as of queries",
    "no biases": "the count is right without biases",
    "one key head": "the result is right with one head of keys and values",
    "as many key heads": "the result is right with as many heads of keys and values as of queries",
    "one chunk": "the result is right when the whole sequence comes at once",
    "two chunks": "the result is right when the sequence comes in two chunks",
    "token by token": "the result is right when the tokens come one at a time",
    "default size": "the count is right for values of two bytes",
    "full width": "the result is right when the heads together are as wide as the model",
    "number of heads": "the number of heads that are left is right",
    "one head removed": "the result is right when one head is removed",
    "weights": "the weights are right",
    "layer's output": "the output of the layer with these weights is right",
    "all biases 0": "the result is right when all biases are 0",
    "maps": "the attention weights are right",
    "offset 0": "the result is right for offset 0",
    "direction": "heads that look back and heads that look ahead are told apart",
    "one head kept": "the result is right when one head is kept",
    "all heads kept": "the result is right when all heads are kept",
    "order of heads": "the most important head is found",
    "right values": "the result is right on ordinary inputs",
}

# The weak checks that there are of each item: their names in `WEAK_CHECKS`. The tests have the checks themselves.
CHECKS_OF_ITEMS: Mapping[str, tuple[str, ...]] = {
    "single_head.softmax": (
        "shape",
        "finite",
        "rows sum to 1",
        "small logits",
        "last axis",
        "one row",
        "right values",
    ),
    "single_head.attention": (
        "shape",
        "shape at n = m",
        "finite",
        "rows sum to 1",
        "masked weights are 0",
        "small logits",
        "one row",
        "no mask",
        "all-True mask",
        "no batch",
        "one leading dimension",
        "one sequence",
        "n = m",
        "d_k = d_v",
        "right values",
    ),
    "single_head.causal_mask": ("shape", "boolean", "every row keeps a key", "shape at n = m", "n = m"),
    "single_head.padding_mask": ("shape", "boolean", "every row keeps a key", "no padding", "one sequence"),
    "single_head.decoder_mask": (
        "shape",
        "boolean",
        "every row keeps a key",
        "no keep",
        "no padding",
        "one sequence",
    ),
    "multi_head.head_dim": ("divides", "one head"),
    "multi_head.split_heads": ("shape", "finite", "one head", "one token", "round trip"),
    "multi_head.combine_heads": ("shape", "finite", "one head", "one token"),
    "multi_head.multi_head_attention": (
        "shape",
        "finite",
        "no mask",
        "all-True mask",
        "small logits",
        "one head",
        "one token",
        "one sequence",
        "right values",
    ),
    "multi_head.causal_multi_head_attention": ("shape", "finite", "one head", "one token", "right values"),
    "multi_head.cross_attention": (
        "shape",
        "shape at n = m",
        "n = m",
        "finite",
        "one head",
        "one token",
        "right values",
    ),
    "multi_head.count_parameters": ("one head", "no sharing", "no biases"),
    "multi_head.attention_flops": (),
    "efficient_heads.grouped_query_attention": ("shape", "finite", "one key head", "as many key heads"),
    "efficient_heads.CachedAttention": ("shape", "finite", "one chunk", "two chunks", "token by token"),
    "efficient_heads.kv_cache_bytes": ("default size",),
    "efficient_heads.pruned_attention": ("shape", "finite", "full width"),
    "efficient_heads.prune_heads": (
        "shape",
        "number of heads",
        "one head removed",
        "weights",
        "full width",
        "layer's output",
    ),
    "real_heads.bert_attention": ("shape", "finite", "rows sum to 1", "maps", "all biases 0"),
    "real_heads.offset_score": ("shape", "finite", "offset 0", "direction"),
    "real_heads.keep_heads": ("shape", "finite", "one head kept", "all heads kept", "all biases 0"),
    "real_heads.head_importance": (
        "shape",
        "finite",
        "one token",
        "one sequence",
        "all biases 0",
        "order of heads",
    ),
    "batched_torch.attention": (
        "shape",
        "finite",
        "rows sum to 1",
        "masked weights are 0",
        "small logits",
        "no mask",
        "all-True mask",
        "right values",
    ),
    "batched_torch.MultiHeadAttention": ("shape", "finite", "right values"),
    "batched_torch.CausalSelfAttention": ("shape", "finite", "right values"),
    "batched_torch.from_builtin": ("shape", "finite", "right values"),
    "transformer_block.FeedForward": ("shape", "finite"),
    "transformer_block.TransformerBlock": ("shape", "finite", "no mask", "all-True mask", "right values"),
}
