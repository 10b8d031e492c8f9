"""The attention of a trained model, with its weights as they are stored, and what its heads do."""

from collections.abc import Mapping, Sequence

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads


def bert_attention(
    x: np.ndarray,
    weights: Mapping[str, Mapping[str, np.ndarray]],
    num_heads: int,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head self-attention with biases, from weights that are stored as `(out, in)`.

    Scores are divided by √d_k, with d_k = d_model / num_heads. The concatenated heads go through `dense`.

    Args:
        x: hidden states `(batch, n, d_model)`, float64 like all weights; the dtype of the results is not tested.
        weights: a dict of four dicts: `weights["query"]["weight"]`, `(d_model, d_model)`, used as
            `x @ W.T + b`, and `weights["query"]["bias"]`, `(d_model,)`; likewise `"key"`, `"value"`, and
            `"dense"` for the output.
        num_heads: number of heads; it divides `d_model`.
        mask: None or boolean, True = may attend: `(n, n)`, `(batch, 1, n, n)` or `(batch, 1, 1, n)`. Every
            query has at least one key.

    Returns:
        `(output, attention_weights)`: the output `(batch, n, d_model)`, after `dense` and before the residual
        connection and the norm, and the weights of every head, `(batch, heads, n, n)`.

    Source: Devlin et al. 2019, BERT: Pre-training of Deep Bidirectional Transformers, section 3; Vaswani et al.
    2017, section 3.2.2, for the attention.

    >>> swap, zero = np.array([[0.0, 1.0], [2.0, 0.0]]), np.zeros((2, 2))
    >>> weights = {
    ...     "query": {"weight": zero, "bias": np.zeros(2)},
    ...     "key": {"weight": zero, "bias": np.zeros(2)},
    ...     "value": {"weight": swap, "bias": np.array([0.0, 10.0])},
    ...     "dense": {"weight": np.eye(2), "bias": np.array([0.5, 0.0])},
    ... }
    >>> output, maps = bert_attention(np.array([[[1.0, 2.0], [3.0, 4.0]]]), weights, num_heads=2)
    >>> output  # the values are [2, 12] and [4, 16]; all scores are 0
    array([[[ 3.5, 14. ],
            [ 3.5, 14. ]]])
    >>> maps.shape
    (1, 2, 2, 2)
    """
    Q, K, V = (
        split_heads(x @ weights[name]["weight"].T + weights[name]["bias"], num_heads)
        for name in ("query", "key", "value")
    )  # (batch, heads, n, d_k) each
    heads, attention_weights = attention(Q, K, V, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
    output = combine_heads(heads) @ weights["dense"]["weight"].T + weights["dense"]["bias"]
    return output, attention_weights  # (batch, n, d_model), (batch, heads, n, n)


def offset_score(attention_weights: np.ndarray, offset: int) -> np.ndarray:
    """How much weight each head puts on the token that stands `offset` positions further on.

    Args:
        attention_weights: weights of one sequence, `(heads, n, n)`; row i holds those of query i.
        offset: an int with |offset| < n: −1 asks for the previous token, 1 for the next, and 0 for the token
            itself.

    Returns:
        Array `(heads,)`, for one head `(1,)`: the mean of the weight that query i puts on key i + offset, over the
        queries for which there is such a key.

    Source: Clark et al. 2019, What Does BERT Look At?, section 3.1.

    >>> previous = np.array([[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.7, 0.1]]])  # one head
    >>> offset_score(previous, -1)  # (0.9 + 0.7) / 2
    array([0.8])
    """
    diagonal = np.diagonal(attention_weights, offset, axis1=1, axis2=2)  # (heads, n - |offset|)
    return diagonal.mean(axis=1)


def keep_heads(
    x: np.ndarray,
    weights: Mapping[str, Mapping[str, np.ndarray]],
    num_heads: int,
    keep: Sequence[int],
) -> np.ndarray:
    """The output of `bert_attention` if only some of the heads contribute to it.

    Args:
        x, weights, num_heads: as for `bert_attention`. There is no mask.
        keep: the heads that contribute, a list or a tuple, counted from 0, distinct, in any order; at least one.
            Head i owns the features i·d_k … (i+1)·d_k − 1.

    Returns:
        The output `(batch, n, d_model)`: what the kept heads add, and the bias of `dense` once. With all heads
        it is the output of `bert_attention`.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.3.

    >>> zero = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    >>> one = {"weight": np.eye(2), "bias": np.array([0.5, 0.5])}
    >>> weights = {"query": zero, "key": zero, "value": one, "dense": one}
    >>> keep_heads(np.array([[[1.0, 2.0]]]), weights, num_heads=2, keep=[1])  # head 1 finds 2 + 0.5
    array([[[0.5, 3. ]]])
    """
    width = weights["dense"]["weight"].shape[1]  # all heads, side by side
    kept = np.repeat(np.isin(np.arange(num_heads), keep), width // num_heads)  # (width,)
    dense = {"weight": weights["dense"]["weight"] * kept, "bias": weights["dense"]["bias"]}
    return bert_attention(x, {**weights, "dense": dense}, num_heads)[0]  # (batch, n, d_model)


def head_importance(
    x: np.ndarray, weights: Mapping[str, Mapping[str, np.ndarray]], num_heads: int
) -> np.ndarray:
    """How far a layer's output moves when one head alone is removed, for each head.

    Args:
        x, weights, num_heads: as for `bert_attention`; `num_heads` is at least 2. There is no mask.

    Returns:
        Array `(heads,)`. Entry i: the Euclidean length, over the d_model features of a token, of the difference
        between the output of all heads and the output of all but head i, averaged over all tokens of all
        sequences.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.3, removes single heads and
    looks at the model's score; here it is the layer's output.

    >>> zero = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    >>> one = {"weight": np.eye(2), "bias": np.zeros(2)}
    >>> weights = {"query": zero, "key": zero, "value": one, "dense": one}
    >>> head_importance(np.array([[[1.0, -2.0]]]), weights, num_heads=2)
    array([1., 2.])
    """
    full, _ = bert_attention(x, weights, num_heads)  # (batch, n, d_model)
    importance = []
    for head in range(num_heads):
        others = [i for i in range(num_heads) if i != head]
        change = full - keep_heads(x, weights, num_heads, others)  # (batch, n, d_model)
        importance.append(np.linalg.norm(change, axis=-1).mean())
    return np.array(importance)
