"""Weak checks of the items of `multi_head`."""

from typing import Any

import numpy as np

from mha_lib import heads
from mha_lib.counting import count_parameters
from mha_lib.multi_head import causal_multi_head_attention, cross_attention, multi_head_attention
from mha_lib.pitfalls.weak_checks import Arguments, Code, has_shapes, is_finite, right_on, weak_check

Array = np.ndarray


def tokens(seed: int, *shape: int) -> Array:
    """Random numbers."""
    return np.random.default_rng(seed).normal(size=shape)


def layer(batch: int = 2, n: int = 5, num_heads: int = 3, d_k: int = 4) -> Arguments:
    """Tokens, weights and the number of heads."""
    d_model = num_heads * d_k
    return tokens(1, batch, n, d_model), *tokens(2, 4, d_model, d_model) / np.sqrt(d_model), num_heads


def with_memory(n: int = 5, m: int = 7, num_heads: int = 3) -> Arguments:
    """The same, with a second sequence to attend to."""
    X, *rest = layer(n=n, num_heads=num_heads)
    return X, tokens(3, X.shape[0], m, X.shape[2]), *rest


def some_of(*shape: int) -> Array:
    """A mask of which every row keeps a key and hides one."""
    mask = np.random.default_rng(4).random(shape) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return mask


# --- from features to heads and back -----------------------------------------------------------------------

weak_check("divides", "multi_head.head_dim")(right_on(heads.head_dim, (12, 3), (768, 12)))
weak_check("one head", "multi_head.head_dim")(right_on(heads.head_dim, (12, 1)))

SPLIT = "multi_head.split_heads"
FEATURES = tokens(5, 2, 5, 12)

weak_check("shape", SPLIT)(has_shapes((FEATURES, 3), (2, 3, 5, 4)))
weak_check("finite", SPLIT)(is_finite((FEATURES, 3)))
weak_check("one head", SPLIT)(right_on(heads.split_heads, (FEATURES, 1)))
weak_check("one token", SPLIT)(right_on(heads.split_heads, (tokens(5, 2, 1, 12), 3)))


@weak_check("round trip", SPLIT)
def split_can_be_undone(split_heads: Code) -> Any:
    """By `combine_heads`."""
    return np.array_equal(heads.combine_heads(split_heads(FEATURES.copy(), 3)), FEATURES)


COMBINE = "multi_head.combine_heads"

weak_check("shape", COMBINE)(has_shapes((tokens(6, 2, 3, 5, 4),), (2, 5, 12)))
weak_check("finite", COMBINE)(is_finite((tokens(6, 2, 3, 5, 4),)))
weak_check("one head", COMBINE)(right_on(heads.combine_heads, (tokens(6, 2, 1, 5, 4),)))
weak_check("one token", COMBINE)(right_on(heads.combine_heads, (tokens(6, 2, 3, 1, 4),)))

# --- layers ------------------------------------------------------------------------------------------------

SELF, CAUSAL, CROSS = (
    "multi_head.multi_head_attention",
    "multi_head.causal_multi_head_attention",
    "multi_head.cross_attention",
)
ONE_MASK, MASKS = some_of(5, 5), some_of(2, 1, 5, 5)
MASKED = (*layer(), ONE_MASK), (*layer(), MASKS)
ONE_SEQUENCE = (*layer(batch=1), ONE_MASK), (*layer(batch=1), MASKS[:1])
ALL = np.ones((5, 5), dtype=bool)

weak_check("shape", SELF)(has_shapes(layer(), (2, 5, 12)))
weak_check("finite", SELF)(is_finite(layer()))
weak_check("no mask", SELF)(right_on(multi_head_attention, layer()))
weak_check("all-True mask", SELF)(right_on(multi_head_attention, (*layer(), ALL)))
weak_check("small logits", SELF)(right_on(multi_head_attention, *MASKED))
weak_check("one head", SELF)(right_on(multi_head_attention, layer(num_heads=1)))
weak_check("one token", SELF)(right_on(multi_head_attention, layer(n=1)))
weak_check("one sequence", SELF)(right_on(multi_head_attention, *ONE_SEQUENCE))
weak_check("right values", SELF)(right_on(multi_head_attention, layer(), *MASKED))

weak_check("shape", CAUSAL)(has_shapes(layer(), (2, 5, 12)))
weak_check("finite", CAUSAL)(is_finite(layer()))
weak_check("one head", CAUSAL)(right_on(causal_multi_head_attention, layer(num_heads=1)))
weak_check("one token", CAUSAL)(right_on(causal_multi_head_attention, layer(n=1)))
weak_check("right values", CAUSAL)(right_on(causal_multi_head_attention, layer(), layer(batch=1, n=7)))

weak_check("shape", CROSS)(has_shapes(with_memory(), (2, 5, 12)))
weak_check("shape at n = m", CROSS)(has_shapes(with_memory(m=5), (2, 5, 12)))
weak_check("n = m", CROSS)(right_on(cross_attention, with_memory(m=5)))
weak_check("finite", CROSS)(is_finite(with_memory()))
weak_check("one head", CROSS)(right_on(cross_attention, with_memory(num_heads=1)))
weak_check("one token", CROSS)(right_on(cross_attention, with_memory(n=1, m=1)))
weak_check("right values", CROSS)(right_on(cross_attention, with_memory(), with_memory(n=7, m=4)))

# --- counting ----------------------------------------------------------------------------------------------

COUNT = "multi_head.count_parameters"

weak_check("one head", COUNT)(right_on(count_parameters, (12, 1), (6, 1, 1)))
weak_check("no sharing", COUNT)(right_on(count_parameters, (12, 4), (12, 4, 4)))
weak_check("no biases", COUNT)(right_on(count_parameters, (12, 4), (12, 4, 2)))
