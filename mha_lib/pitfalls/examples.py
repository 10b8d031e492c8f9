"""Small inputs that expose the mistakes: what the book runs on the right and on the wrong code.

An example gets a function or class under its item's name, calls it, and returns what is to be compared. Its
docstring says what kind of input it is. The book shows its lines, so they are written to be read. Those that need
PyTorch stand in `mha_lib.pitfalls.torch_examples`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_lib import (
    attention,
    counting,
    grouped_query,
    heads,
    kv_cache,
    masks,
    multi_head,
    pruning,
    real_heads,
)

Code = Callable[..., Any]


@dataclass(frozen=True)
class Item:
    """A graded item.

    Attributes:
        right: the right function or class.
        examples: functions from such a function or class to what is compared, the simplest first.
    """

    right: Code
    examples: tuple[Callable[[Code], Any], ...]


# --- one head ----------------------------------------------------------------------------------------------


def two_rows(softmax: Code) -> Any:
    """Two rows of small logits."""
    return softmax(np.log([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]))


def along_axis_0(softmax: Code) -> Any:
    """Along the other axis."""
    return softmax(np.log([[1.0, 2.0, 5.0], [3.0, 6.0, 5.0]]), axis=0)


def large_logits(softmax: Code) -> Any:
    """Logits whose exponential is infinite, and others that lie far below."""
    return softmax(np.array([[1000.0, 2000.0, 2000.0], [0.0, 0.0, 0.0]]))


def spread_logits(softmax: Code) -> Any:
    """One logit far above the mean."""
    return softmax(np.array([0.0, 0.0, 3000.0]))


def logits_after_the_call(softmax: Code) -> Any:
    """The caller's logits after the call."""
    x = np.array([1.0, 2.0, 3.0])
    softmax(x)
    return x


def one_sequence(attention: Code) -> Any:
    """Two queries, three keys, no mask: the output and the weights."""
    Q = np.array([[0.0, 2, 0, 2], [0, 0, 2, 0]])
    K = np.array([[1.0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    V = np.array([[10.0, 0], [0, 10], [10, 10]])
    return attention(Q, K, V)


def with_a_mask(attention: Code) -> Any:
    """Each query may attend to two of three keys."""
    Q = np.array([[0.0, 2, 0, 2], [0, 0, -2, 0]])
    K = np.array([[1.0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    V = np.array([[10.0, 0], [0, 10], [10, 10]])
    mask = np.array([[True, True, False], [False, True, True]])
    return attention(Q, K, V, mask)


def two_sequences(attention: Code) -> Any:
    """Two sequences of three heads: the weights."""
    Q = np.arange(24).reshape(2, 3, 1, 4) % 3
    K = np.arange(48).reshape(2, 3, 2, 4) % 5
    _, weights = attention(Q, K, K)
    return weights


def a_mask_for_each_sequence(attention: Code) -> Any:
    """The second sequence has another mask than the first: the weights."""
    Q = np.ones((2, 1, 1, 4))
    K = np.ones((2, 1, 3, 4))
    mask = np.array([[[[True, True, False]]], [[[False, True, True]]]])
    _, weights = attention(Q, K, K, mask)
    return weights


def scores_far_below_zero(attention: Code) -> Any:
    """The scores that are kept lie at −20000: the weights."""
    Q = np.array([[-4e4, 0, 0, 0]])
    K = np.array([[1.0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    _, weights = attention(Q, K, K, np.array([[True, True, False]]))
    return weights


def a_hidden_key_far_above(attention: Code) -> Any:
    """The score that is hidden is larger than the others by 25: the weights."""
    Q = np.array([[2.0, 0, 0, 0]])
    K = np.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [25, 0, 0, 0]])
    _, weights = attention(Q, K, K, np.array([[True, True, False]]))
    return weights


def as_many_keys(causal_mask: Code) -> Any:
    """As many keys as queries."""
    return causal_mask(3)


def more_keys(causal_mask: Code) -> Any:
    """Two queries, four keys."""
    return causal_mask(2, 4)


def two_lengths(padding_mask: Code) -> Any:
    """Two sequences, of three tokens and of one."""
    return padding_mask(np.array([3, 1]), 4)


def causal_and_padded(decoder_mask: Code) -> Any:
    """Two sequences of three tokens; in the first the last one is padding."""
    keep = np.array([[True, True, False], [True, True, True]])
    mask = decoder_mask(3, keep)
    return np.broadcast_to(mask, (2, 2, 3, 3))[:, 0]  # as beside (batch, heads, n, n)


# --- many heads --------------------------------------------------------------------------------------------


def divides(head_dim: Code) -> Any:
    """It divides."""
    return head_dim(12, 3)


def does_not_divide(head_dim: Code) -> Any:
    """It does not divide."""
    return head_dim(7, 2)


def no_features(head_dim: Code) -> Any:
    """A number that is not positive."""
    return head_dim(0, 4)


def message_names_both_numbers(head_dim: Code) -> Any:
    """Does the message hold both numbers?"""
    message = ""
    try:
        head_dim(7, 2)
    except ValueError as error:
        message = str(error)
    return "7" in message and "2" in message


def three_tokens_two_heads(split_heads: Code) -> Any:
    """One sequence of three tokens with eight features."""
    x = np.arange(24).reshape(1, 3, 8)
    return split_heads(x, num_heads=2)


def two_heads_three_tokens(combine_heads: Code) -> Any:
    """One sequence, two heads, three tokens, four features each."""
    x = np.arange(24).reshape(1, 2, 3, 4)
    return combine_heads(x)


def three_tokens(multi_head_attention: Code) -> Any:
    """One sequence of three tokens, two heads of width 2."""
    X = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 2
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)


def three_tokens_with_a_mask(multi_head_attention: Code) -> Any:
    """One sequence of three tokens, two heads of width 2, and a causal mask."""
    X = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 2
    mask = np.tril(np.ones((3, 3), dtype=bool))
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, 2, mask)


def padded_sequences(multi_head_attention: Code) -> Any:
    """Three sequences of five, four and three tokens: the output of the second."""
    X = np.arange(60).reshape(3, 5, 4) % 7 - 3
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    keep = np.arange(5) < np.array([[5], [4], [3]])
    mask = keep[:, None, None, :]
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, 2, mask)[1]


def three_causal_tokens(causal_multi_head_attention: Code) -> Any:
    """One sequence of three tokens, two heads of width 2."""
    X = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 2
    return causal_multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)


def three_tokens_remembered(cross_attention: Code) -> Any:
    """Five tokens ask, three are remembered."""
    X = np.arange(20).reshape(1, 5, 4) % 7 - 3
    memory = np.arange(12).reshape(1, 3, 4) % 5 - 1
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    return cross_attention(X, memory, W_Q, W_K, W_V, W_O, num_heads=2)


def two_sequences_remember(cross_attention: Code) -> Any:
    """Two sequences, each with a memory of two tokens; scores are 0: the second sequence's output."""
    X = np.zeros((2, 1, 2))
    memory = np.array([[[1.0, 2], [3, 4]], [[10, 20], [30, 40]]])
    zeros, ones = np.zeros((2, 2)), np.eye(2)
    return cross_attention(X, memory, zeros, zeros, ones, ones, num_heads=1)[1]


def four_heads(count_parameters: Code) -> Any:
    """Twelve features, four heads."""
    return count_parameters(12, 4)


def two_shared_heads(count_parameters: Code) -> Any:
    """Four heads share two heads of keys and values."""
    return count_parameters(12, 4, num_kv_heads=2)


def with_biases(count_parameters: Code) -> Any:
    """Two heads of keys and values, and biases."""
    return count_parameters(12, 4, num_kv_heads=2, bias=True)


def three_tokens_five_features(attention_flops: Code) -> Any:
    """Three tokens, five features."""
    return attention_flops(n=3, d_model=5)


# --- sharing, remembering, removing heads ------------------------------------------------------------------


def two_groups(grouped_query_attention: Code) -> Any:
    """Six heads of queries share two heads of keys and values: the first token's output."""
    X = np.arange(72).reshape(1, 4, 18) % 5 - 2
    W_Q, W_O = (np.arange(648) % 7 - 3).reshape(2, 18, 18) / 4
    W_K, W_V = (np.arange(216) % 11 - 5).reshape(2, 18, 6) / 8
    return grouped_query_attention(X, W_Q, W_K, W_V, W_O, 6, 2)[0, 0]


def chunk_by_chunk(CachedAttention: Code) -> Any:
    """Seven tokens in chunks of three, three and one: the outputs of the last two chunks."""
    layer = CachedAttention(*(np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4, 2)
    X = np.arange(28).reshape(1, 7, 4) % 5 - 2
    layer.forward(X[:, :3])
    return layer.forward(X[:, 3:6]), layer.forward(X[:, 6:])


def after_a_reset(CachedAttention: Code) -> Any:
    """A new sequence after `reset`."""
    layer = CachedAttention(*(np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4, 2)
    X = np.arange(20).reshape(1, 5, 4) % 3 - 1
    layer.forward(X)
    layer.reset()
    return layer.forward(X[:, :2])


def two_layers(CachedAttention: Code) -> Any:
    """Two layers that run side by side: the second one's output."""
    weights = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    X = np.arange(20).reshape(1, 5, 4) % 3 - 1
    first, second = CachedAttention(*weights, 2), CachedAttention(*weights, 2)
    first.forward(X)
    return second.forward(X[:, :2])


def six_numbers(kv_cache_bytes: Code) -> Any:
    """Six different numbers."""
    return kv_cache_bytes(3, 4, 5, 7, 11, bytes_per_value=8)


def two_heads_left(pruned_attention: Code) -> Any:
    """Two heads of width 3 are left of a model of width 8: the first token's output."""
    X = np.arange(40).reshape(1, 5, 8) % 5 - 2
    W_Q, W_K, W_V = (np.arange(144) % 7 - 3).reshape(3, 8, 6) / 4
    W_O = (np.arange(48) % 7 - 3).reshape(6, 8) / 4
    return pruned_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)[0, 0]


def two_of_five_heads(prune_heads: Code) -> Any:
    """Each column, of W_O each row, holds its number: what is left of W_Q, W_V and W_O, and how many heads."""
    W = np.tile(np.arange(10), (10, 1))
    W_Q, _, W_V, W_O, num_heads = prune_heads(W, W, W, W.T, 5, [0, 1])
    return W_Q[0], W_V[0], W_O[:, 0], num_heads


# --- reading a trained model's heads -----------------------------------------------------------------------


def two_bert_heads(bert_attention: Code) -> Any:
    """Three tokens, two heads, weights as a trained model stores them."""
    x = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    b = np.arange(16).reshape(4, 4) % 3
    names = ("query", "key", "value", "dense")
    pairs = [{"weight": W[i], "bias": b[i]} for i in range(4)]
    weights = dict(zip(names, pairs, strict=True))
    return bert_attention(x, weights, 2)


def two_maps(offset_score: Code) -> Any:
    """Two heads, four tokens: how much each looks one token back."""
    one = [[6, 2, 1, 1], [5, 2, 2, 1], [1, 7, 1, 1], [2, 1, 6, 1]]
    other = [[1, 2, 3, 4], [2, 1, 2, 5], [1, 1, 3, 5], [2, 2, 3, 3]]
    maps = np.array([one, other]) / 10
    return offset_score(maps, -1)


def two_of_four_bert_heads(keep_heads: Code) -> Any:
    """Heads 0 and 3 of four stay: the first token's output."""
    x = np.arange(24).reshape(1, 3, 8) % 5 - 2
    W = (np.arange(256) % 7 - 3).reshape(4, 8, 8) / 4
    b = np.arange(32).reshape(4, 8) % 3
    names = ("query", "key", "value", "dense")
    pairs = [{"weight": W[i], "bias": b[i]} for i in range(4)]
    weights = dict(zip(names, pairs, strict=True))
    return keep_heads(x, weights, 4, [0, 3])[0, 0]


def importance_of_three(head_importance: Code) -> Any:
    """Two sequences of five tokens, three heads of width 4."""
    x = np.arange(120).reshape(2, 5, 12) % 7 - 3
    W = (np.arange(576) % 11 - 5).reshape(4, 12, 12) / 8
    b = np.arange(48).reshape(4, 12) % 3
    names = ("query", "key", "value", "dense")
    pairs = [{"weight": W[i], "bias": b[i]} for i in range(4)]
    weights = dict(zip(names, pairs, strict=True))
    return head_importance(x, weights, 3)


ITEMS: Mapping[str, Item] = {
    "single_head.softmax": Item(
        attention.softmax, (two_rows, along_axis_0, large_logits, spread_logits, logits_after_the_call)
    ),
    "single_head.attention": Item(
        attention.attention,
        (
            one_sequence,
            with_a_mask,
            two_sequences,
            a_mask_for_each_sequence,
            scores_far_below_zero,
            a_hidden_key_far_above,
        ),
    ),
    "single_head.causal_mask": Item(masks.causal_mask, (as_many_keys, more_keys)),
    "single_head.padding_mask": Item(masks.padding_mask, (two_lengths,)),
    "single_head.decoder_mask": Item(masks.decoder_mask, (causal_and_padded,)),
    "multi_head.head_dim": Item(
        heads.head_dim, (divides, does_not_divide, no_features, message_names_both_numbers)
    ),
    "multi_head.split_heads": Item(heads.split_heads, (three_tokens_two_heads,)),
    "multi_head.combine_heads": Item(heads.combine_heads, (two_heads_three_tokens,)),
    "multi_head.multi_head_attention": Item(
        multi_head.multi_head_attention,
        (three_tokens, three_tokens_with_a_mask, padded_sequences),
    ),
    "multi_head.causal_multi_head_attention": Item(
        multi_head.causal_multi_head_attention, (three_causal_tokens,)
    ),
    "multi_head.cross_attention": Item(
        multi_head.cross_attention, (three_tokens_remembered, two_sequences_remember)
    ),
    "multi_head.count_parameters": Item(
        counting.count_parameters, (four_heads, two_shared_heads, with_biases)
    ),
    "multi_head.attention_flops": Item(counting.attention_flops, (three_tokens_five_features,)),
    "efficient_heads.grouped_query_attention": Item(grouped_query.grouped_query_attention, (two_groups,)),
    "efficient_heads.CachedAttention": Item(
        kv_cache.CachedAttention, (chunk_by_chunk, after_a_reset, two_layers)
    ),
    "efficient_heads.kv_cache_bytes": Item(kv_cache.kv_cache_bytes, (six_numbers,)),
    "efficient_heads.pruned_attention": Item(pruning.pruned_attention, (two_heads_left,)),
    "efficient_heads.prune_heads": Item(pruning.prune_heads, (two_of_five_heads,)),
    "real_heads.bert_attention": Item(real_heads.bert_attention, (two_bert_heads,)),
    "real_heads.offset_score": Item(real_heads.offset_score, (two_maps,)),
    "real_heads.keep_heads": Item(real_heads.keep_heads, (two_of_four_bert_heads,)),
    "real_heads.head_importance": Item(real_heads.head_importance, (importance_of_three,)),
}
