"""Masks: which query may attend to which key. Boolean arrays, True = may attend."""

import numpy as np


def causal_mask(n: int, m: int | None = None) -> np.ndarray:
    """A query may attend to its own position and to earlier ones, never to a later one.

    The `n` queries are the *last* `n` of the `m` positions, so the last query lines up with the last key.

    Args:
        n: number of queries, an int.
        m: number of keys, an int of at least `n`. None means as many keys as queries.

    Returns:
        Boolean `(n, m)`. Entry (i, j), counted from 0, is True exactly when j <= i + (m - n).

    Raises:
        ValueError: if `n` is larger than `m` (not graded).

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.

    >>> causal_mask(2, 4)
    array([[ True,  True,  True, False],
           [ True,  True,  True,  True]])
    """
    if m is None:
        m = n
    if n > m:
        raise ValueError(f"n={n} queries need at least as many keys, but there are only m={m}")
    queries = np.arange(n)[:, None]  # (n, 1)
    keys = np.arange(m)[None, :]  # (1, m)
    return keys <= queries + (m - n)  # (n, m)


def padding_mask(lengths: np.ndarray, max_len: int) -> np.ndarray:
    """No query may attend to the padding at the end of a sequence.

    Args:
        lengths: number of real tokens of each sequence, an array of ints `(batch,)` from 1 to `max_len`.
        max_len: number of positions, padding included; an int. All sequences may be shorter.

    Returns:
        Boolean `(batch, 1, 1, max_len)`, True = real token; it broadcasts over heads and queries.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3, says how a mask acts on the scores.

    >>> padding_mask(np.array([3, 1]), 4).shape
    (2, 1, 1, 4)
    >>> padding_mask(np.array([3, 1]), 4)[:, 0, 0, :]
    array([[ True,  True,  True, False],
           [ True, False, False, False]])
    """
    lengths = np.asarray(lengths)[:, None, None, None]  # (batch, 1, 1, 1)
    return np.arange(max_len) < lengths  # (batch, 1, 1, max_len)


def decoder_mask(n: int, keep: np.ndarray | None = None) -> np.ndarray:
    """A query may attend to a key only if the key is not later *and* is a real token.

    Args:
        n: number of queries and of keys, an int.
        keep: None or boolean `(batch, n)`, True = real token: any pattern whose first token is real in each
            sequence. None means that all tokens are real.

    Returns:
        Boolean, broadcastable to `(batch, heads, n, n)`, for example `(batch, 1, n, n)`; without `keep`,
        `(n, n)` and `(1, 1, n, n)` are both right. The entry for query i and key j is True exactly when j <= i and
        token j is real, even where query i is padding.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3.

    >>> decoder_mask(3, keep=np.array([[True, True, False]]))[0, 0]
    array([[ True, False, False],
           [ True,  True, False],
           [ True,  True, False]])
    """
    causal = causal_mask(n)  # (n, n)
    if keep is None:
        return causal
    return causal & keep[:, None, None, :]  # (batch, 1, n, n)
