"""The items of `multi_head`, and small inputs that expose mistakes in them."""

from typing import Any

import numpy as np

from mha_lib import counting, heads, multi_head
from mha_lib.pitfalls.examples import Code, item

HEAD_DIM = item("multi_head.head_dim", heads.head_dim)


@HEAD_DIM.example
def divides(head_dim: Code) -> Any:
    """It divides."""
    return head_dim(12, 3)


@HEAD_DIM.example
def does_not_divide(head_dim: Code) -> Any:
    """It does not divide."""
    return head_dim(7, 2)


@HEAD_DIM.example
def no_features(head_dim: Code) -> Any:
    """A number that is not positive."""
    return head_dim(0, 4)


@HEAD_DIM.example
def message_names_both_numbers(head_dim: Code) -> Any:
    """Does the message hold both numbers?"""
    message = ""
    try:
        head_dim(7, 2)
    except ValueError as error:
        message = str(error)
    return "7" in message and "2" in message


SPLIT_HEADS = item("multi_head.split_heads", heads.split_heads)


@SPLIT_HEADS.example
def three_tokens_two_heads(split_heads: Code) -> Any:
    """One sequence of three tokens with eight features."""
    x = np.arange(24).reshape(1, 3, 8)
    return split_heads(x, num_heads=2)


COMBINE_HEADS = item("multi_head.combine_heads", heads.combine_heads)


@COMBINE_HEADS.example
def two_heads_three_tokens(combine_heads: Code) -> Any:
    """One sequence, two heads, three tokens, four features each."""
    x = np.arange(24).reshape(1, 2, 3, 4)
    return combine_heads(x)


MULTI_HEAD_ATTENTION = item("multi_head.multi_head_attention", multi_head.multi_head_attention)


@MULTI_HEAD_ATTENTION.example
def three_tokens(multi_head_attention: Code) -> Any:
    """One sequence of three tokens, two heads of width 2."""
    X = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 2
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)


@MULTI_HEAD_ATTENTION.example
def three_tokens_with_a_mask(multi_head_attention: Code) -> Any:
    """One sequence of three tokens, two heads of width 2, and a causal mask."""
    X = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 2
    mask = np.tril(np.ones((3, 3), dtype=bool))
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, 2, mask)


@MULTI_HEAD_ATTENTION.example
def padded_sequences(multi_head_attention: Code) -> Any:
    """Three sequences of five, four and three tokens: the output of the second."""
    X = np.arange(60).reshape(3, 5, 4) % 7 - 3
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    keep = np.arange(5) < np.array([[5], [4], [3]])
    mask = keep[:, None, None, :]
    return multi_head_attention(X, W_Q, W_K, W_V, W_O, 2, mask)[1]


CAUSAL_MULTI_HEAD_ATTENTION = item(
    "multi_head.causal_multi_head_attention", multi_head.causal_multi_head_attention
)


@CAUSAL_MULTI_HEAD_ATTENTION.example
def three_causal_tokens(causal_multi_head_attention: Code) -> Any:
    """One sequence of three tokens, two heads of width 2."""
    X = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 2
    return causal_multi_head_attention(X, W_Q, W_K, W_V, W_O, num_heads=2)


@CAUSAL_MULTI_HEAD_ATTENTION.example
def all_scores_zero(causal_multi_head_attention: Code) -> Any:
    """Three tokens whose scores are all 0, so that a token gets the mean of what it may see."""
    X, zeros = np.array([[[2.0], [4.0], [9.0]]]), np.zeros((1, 1))
    return causal_multi_head_attention(X, zeros, zeros, np.eye(1), np.eye(1), 1)


CROSS_ATTENTION = item("multi_head.cross_attention", multi_head.cross_attention)


@CROSS_ATTENTION.example
def three_tokens_remembered(cross_attention: Code) -> Any:
    """Five tokens ask, three are remembered."""
    X = np.arange(20).reshape(1, 5, 4) % 7 - 3
    memory = np.arange(12).reshape(1, 3, 4) % 5 - 1
    W_Q, W_K, W_V, W_O = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    return cross_attention(X, memory, W_Q, W_K, W_V, W_O, num_heads=2)


@CROSS_ATTENTION.example
def two_sequences_remember(cross_attention: Code) -> Any:
    """Two sequences, each with a memory of two tokens; scores are 0: the second sequence's output."""
    X = np.zeros((2, 1, 2))
    memory = np.array([[[1.0, 2], [3, 4]], [[10, 20], [30, 40]]])
    zeros, ones = np.zeros((2, 2)), np.eye(2)
    return cross_attention(X, memory, zeros, zeros, ones, ones, num_heads=1)[1]


COUNT_PARAMETERS = item("multi_head.count_parameters", counting.count_parameters)


@COUNT_PARAMETERS.example
def four_heads(count_parameters: Code) -> Any:
    """Twelve features, four heads."""
    return count_parameters(12, 4)


@COUNT_PARAMETERS.example
def two_shared_heads(count_parameters: Code) -> Any:
    """Four heads share two heads of keys and values."""
    return count_parameters(12, 4, num_kv_heads=2)


@COUNT_PARAMETERS.example
def with_biases(count_parameters: Code) -> Any:
    """Two heads of keys and values, and biases."""
    return count_parameters(12, 4, num_kv_heads=2, bias=True)


ATTENTION_FLOPS = item("multi_head.attention_flops", counting.attention_flops)


@ATTENTION_FLOPS.example
def three_tokens_five_features(attention_flops: Code) -> Any:
    """Three tokens, five features."""
    return attention_flops(n=3, d_model=5)
