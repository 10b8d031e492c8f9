"""What tells a head where its tokens stand: rotary positions, and a mask that keeps only the tokens nearby."""

import torch


def rotary(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """Rotate each pair of features by an angle that grows with the position of its token.

    Features i and i + d_k/2 are a pair: the *half-split* convention. The scores of queries and keys that are
    rotated in this way depend only on the distance between their tokens.

    Args:
        x: queries or keys `(batch, heads, n, d_k)`, any sizes from 1, d_k even; float32 or float64.
        positions: ints from 0, `(n,)`, or `(batch, n)` if each sequence has its own; n may equal `batch`. They need
            not start at 0 or be consecutive: with a cache, the first new token may be the hundredth of its text.
        base: pair i rotates by positions · base^(-2i/d_k).

    Returns:
        The rotated features, with the shape and dtype of `x`. A token at position 0 stays as it is. Angles may be
        computed in float32, for float64 too: no tested position is above 500, and each result may be off by
        0.0001.

    Raises:
        ValueError: if d_k is odd; the message contains this number, in plain digits.

    Source: Su et al. 2021, RoFormer, section 3.2.2; GPT-NeoX uses the half-split pairing.

    >>> x = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])  # (batch, heads, n, d_k): the same token twice
    >>> rotary(x, torch.tensor([0, 1])).round(decimals=4)  # the second is rotated by 1, to cos(1), sin(1)
    tensor([[[[1.0000, 0.0000],
              [0.5403, 0.8415]]]])
    """
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError(f"d_k={d_k} is odd, but features are turned in pairs: d_k should be even")
    pair = torch.arange(d_k // 2, dtype=torch.float64, device=x.device)  # (d_k / 2,)
    angles = positions[..., None] * base ** (-2 * pair / d_k)  # (n, d_k / 2) or (batch, n, d_k / 2)
    angles = angles.unsqueeze(-3)  # (1, n, d_k / 2) or (batch, 1, n, d_k / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)  # each (batch, heads, n, d_k / 2)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def sliding_window_mask(n: int, m: int, window: int) -> torch.Tensor:
    """The causal mask under which a query sees itself and the `window - 1` keys before it.

    Args:
        n: number of queries, from 1.
        m: number of keys, at least `n`. The last query lines up with the last key, the one before with the one
            before, and so on: the other m - n keys came earlier.
        window: number of keys that a query sees, itself included; an int that may be larger than `m`.

    Returns:
        Boolean tensor `(n, m)`, True = may attend. No query sees a later key.

    Raises:
        ValueError: if `window` is less than 1; the message contains this number, in plain digits.

    Source: Beltagy et al. 2020, Longformer, section 3.1.

    >>> sliding_window_mask(3, 4, window=2).int()
    tensor([[1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    if window < 1:
        raise ValueError(f"window={window} leaves a query without keys: it should be 1 or more")
    back = torch.arange(m - n, m)[:, None] - torch.arange(m)  # (n, m): how far back each key is
    return (back >= 0) & (back < window)
