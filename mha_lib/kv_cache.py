"""Keys and values that are remembered from token to token, and what it costs to store them."""

import numpy as np

from mha_lib.attention import attention
from mha_lib.heads import combine_heads, split_heads
from mha_lib.masks import causal_mask


class CachedAttention:
    """Causal multi-head attention that gets its tokens in chunks and keeps their keys and values.

    Chunk by chunk, it gives the outputs of causal multi-head attention on the whole sequence. Only the
    outputs are graded: you may keep the chunks and compute everything again. Two objects are independent, even
    with the same weights: neither making an object nor `forward` changes an argument. Later changes of the
    arguments by the caller are not tested; an output that has been returned does not change later. All tested
    arrays are float64; the dtype of the outputs is not tested.

    Args:
        W_Q, W_K, W_V, W_O: weights `(d_model, d_model)`, used as `X @ W`.
        num_heads: number of heads; it divides `d_model`.

    Source: Shazeer 2019, Fast Transformer Decoding, section 2.4, multi-head attention token by token.

    >>> layer = CachedAttention(np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2), np.eye(2), num_heads=2)
    >>> layer.forward(np.array([[[2.0, 0.0], [4.0, 6.0]]]))  # all scores are 0: each token takes the mean
    array([[[2., 0.],
            [3., 3.]]])
    >>> layer.forward(np.array([[[6.0, 3.0]]]))  # of three values, two of them from the cache
    array([[[4., 3.]]])
    """

    def __init__(self, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, W_O: np.ndarray, num_heads: int):
        """Keep the weights; no token has come yet."""
        self.W_Q, self.W_K, self.W_V, self.W_O = W_Q, W_K, W_V, W_O
        self.num_heads = num_heads
        self.K: np.ndarray | None = None  # (batch, heads, m, d_k) once tokens have come
        self.V: np.ndarray | None = None

    def forward(self, chunk: np.ndarray) -> np.ndarray:
        """The outputs of the next tokens of each sequence.

        Each token attends to itself, to the tokens before it in the chunk, and to all tokens of earlier chunks,
        never to a later one. Scores are divided by √d_k, and the concatenated heads go through `W_O`.

        Args:
            chunk: the next t tokens, `(batch, t, d_model)`, t from 1. The batch size stays the same until
                `reset`.

        Returns:
            The outputs of these tokens, `(batch, t, d_model)`.
        """
        Q = split_heads(chunk @ self.W_Q, self.num_heads)  # (batch, heads, t, d_k)
        K = split_heads(chunk @ self.W_K, self.num_heads)  # (batch, heads, t, d_k)
        V = split_heads(chunk @ self.W_V, self.num_heads)  # (batch, heads, t, d_k)
        if self.K is not None and self.V is not None:
            K = np.concatenate([self.K, K], axis=2)  # (batch, heads, m, d_k)
            V = np.concatenate([self.V, V], axis=2)  # (batch, heads, m, d_k)
        self.K, self.V = K, V
        mask = causal_mask(Q.shape[2], K.shape[2])  # (t, m): the chunk is the last t of m tokens
        heads, _ = attention(Q, K, V, mask)  # (batch, heads, t, d_k)
        return combine_heads(heads) @ self.W_O  # (batch, t, d_model)

    def reset(self) -> None:
        """Forget all tokens, if there are any. The next chunk starts new sequences, any number of them."""
        self.K = self.V = None


def kv_cache_bytes(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Bytes that the keys and values of all layers take, for sequences of n tokens.

    For each token of each sequence, every layer stores one key and one value in each of its key heads. All
    arguments are ints of at least 1.

    Args:
        batch: number of sequences.
        n: tokens in each.
        num_layers: layers of the model; each has a cache of its own.
        num_kv_heads: key heads, and as many value heads, in each layer.
        d_k: width of a head, the same for keys and values.
        bytes_per_value: 2 for float16 and bfloat16, and 4 for float32.

    Returns:
        The bytes of all keys and values together, exact, as an int or a NumPy integer.

    Source: Shazeer 2019, Fast Transformer Decoding, sections 2.4.1 and 3.1, compares these sizes.

    >>> kv_cache_bytes(1, n=3, num_layers=2, num_kv_heads=1, d_k=4)  # 24 numbers for keys, 24 for values
    96
    >>> kv_cache_bytes(1, n=4096, num_layers=32, num_kv_heads=32, d_k=128) / 2**30  # Llama 2 7B, in GiB
    2.0
    """
    values = batch * n * num_layers * num_kv_heads * d_k  # as many keys
    return 2 * values * bytes_per_value
