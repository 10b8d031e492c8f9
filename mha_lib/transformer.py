"""A Transformer block in PyTorch: attention and a feed-forward network, each added to what came in."""

import torch
from torch import nn

from mha_lib.torch_attention import MultiHeadAttention


class FeedForward(nn.Module):
    """A network of two linear layers that treats every token by itself.

    `up` maps `d_model` features to `d_ff`, `down` maps them back, both with a bias; between them stands the
    exact GELU, x · Φ(x), where Φ is the distribution function of the standard normal distribution.

    Args:
        d_model: number of features.
        d_ff: number of features in between, often 4 · `d_model`.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.3 (with ReLU); Hendrycks and Gimpel 2016,
    Gaussian Error Linear Units, equation 1.

    >>> layer = FeedForward(d_model=6, d_ff=10)
    >>> layer(torch.zeros(4, 5, 6)).shape
    torch.Size([4, 5, 6])
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Change every token by itself.

        Args:
            x: tokens `(..., d_model)`.

        Returns:
            The output `(..., d_model)`.
        """
        hidden = nn.functional.gelu(self.up(x))  # (..., d_ff)
        return self.down(hidden)  # (..., d_model)


class TransformerBlock(nn.Module):
    """Attention, then a feed-forward network; what each of them computes is added to what it was given.

    The submodules are `attention` (a `MultiHeadAttention`), `feed_forward` (a `FeedForward`), and `norm1` and
    `norm2` (layer normalisation over the features, eps 1e-5). There is no dropout.

    Args:
        d_model: number of features.
        num_heads: number of heads; it divides `d_model`.
        d_ff: number of features inside the feed-forward network.
        norm_first: True normalises what goes into attention and feed-forward network (pre-norm), False
            normalises the sums (post-norm).

    Raises:
        ValueError: if `d_model` is not a multiple of `num_heads`.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.1 (post-norm); Xiong et al. 2020, On Layer
    Normalization in the Transformer Architecture, section 3 (pre-norm).

    >>> block = TransformerBlock(d_model=6, num_heads=2, d_ff=10)
    >>> block(torch.zeros(4, 5, 6)).shape
    torch.Size([4, 5, 6])
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Let the tokens exchange what they hold, then change each by itself.

        Args:
            x: tokens `(batch, n, d_model)`.
            mask: boolean, True = may attend, `(n, n)` or `(batch, 1, n, n)`.

        Returns:
            The output `(batch, n, d_model)`.
        """
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)  # (batch, n, d_model)
            return x + self.feed_forward(self.norm2(x))  # (batch, n, d_model)
        x = self.norm1(x + self.attention(x, mask))  # (batch, n, d_model)
        return self.norm2(x + self.feed_forward(x))  # (batch, n, d_model)
