"""The items of `real_heads`, and small inputs that expose mistakes in them."""

from typing import Any

import numpy as np

from mha_lib import real_heads
from mha_lib.pitfalls.examples import Code, item

BERT_ATTENTION = item("real_heads.bert_attention", real_heads.bert_attention)


@BERT_ATTENTION.example
def two_bert_heads(bert_attention: Code) -> Any:
    """Three tokens, two heads, weights as a trained model stores them."""
    x = np.arange(12).reshape(1, 3, 4) % 5 - 2
    W = (np.arange(64) % 7 - 3).reshape(4, 4, 4) / 4
    b = np.arange(16).reshape(4, 4) % 3
    names = ("query", "key", "value", "dense")
    pairs = [{"weight": W[i], "bias": b[i]} for i in range(4)]
    weights = dict(zip(names, pairs, strict=True))
    return bert_attention(x, weights, 2)


OFFSET_SCORE = item("real_heads.offset_score", real_heads.offset_score)


@OFFSET_SCORE.example
def two_maps(offset_score: Code) -> Any:
    """Two heads, four tokens: how much each looks one token back."""
    one = [[6, 2, 1, 1], [5, 2, 2, 1], [1, 7, 1, 1], [2, 1, 6, 1]]
    other = [[1, 2, 3, 4], [2, 1, 2, 5], [1, 1, 3, 5], [2, 2, 3, 3]]
    maps = np.array([one, other]) / 10
    return offset_score(maps, -1)


@OFFSET_SCORE.example
def a_map_with_a_zero(offset_score: Code) -> Any:
    """One head, three tokens, of which the second does not look back at all."""
    maps = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.25, 0.75, 0.0]]]
    return offset_score(np.array(maps), -1)


@OFFSET_SCORE.example
def the_token_itself(offset_score: Code) -> Any:
    """Two heads, two tokens: how much each looks at itself."""
    maps = [[[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.25, 0.75]]]
    return offset_score(np.array(maps), 0)


KEEP_HEADS = item("real_heads.keep_heads", real_heads.keep_heads)


@KEEP_HEADS.example
def two_of_four_bert_heads(keep_heads: Code) -> Any:
    """Heads 0 and 3 of four stay: the first token's output."""
    x = np.arange(24).reshape(1, 3, 8) % 5 - 2
    W = (np.arange(256) % 7 - 3).reshape(4, 8, 8) / 4
    b = np.arange(32).reshape(4, 8) % 3
    names = ("query", "key", "value", "dense")
    pairs = [{"weight": W[i], "bias": b[i]} for i in range(4)]
    weights = dict(zip(names, pairs, strict=True))
    return keep_heads(x, weights, 4, [0, 3])[0, 0]


@KEEP_HEADS.example
def listed_from_the_last(keep_heads: Code) -> Any:
    """Both heads stay, the last one listed first: the only token's output."""
    one = {"weight": np.eye(2), "bias": np.zeros(2)}
    weights = dict.fromkeys(("query", "key", "value", "dense"), one)
    return keep_heads(np.array([[[1.0, 2.0]]]), weights, 2, [1, 0])[0, 0]


HEAD_IMPORTANCE = item("real_heads.head_importance", real_heads.head_importance)


@HEAD_IMPORTANCE.example
def importance_of_three(head_importance: Code) -> Any:
    """Two sequences of five tokens, three heads of width 4."""
    x = np.arange(120).reshape(2, 5, 12) % 7 - 3
    W = (np.arange(576) % 11 - 5).reshape(4, 12, 12) / 8
    b = np.arange(48).reshape(4, 12) % 3
    names = ("query", "key", "value", "dense")
    pairs = [{"weight": W[i], "bias": b[i]} for i in range(4)]
    weights = dict(zip(names, pairs, strict=True))
    return head_importance(x, weights, 3)
