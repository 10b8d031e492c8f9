"""A Transformer block in PyTorch: attention and a feed-forward network, each added to what came in."""

import torch
from torch import nn

from mha_lib.torch_attention import MultiHeadAttention


class FeedForward(nn.Module):
    """The feed-forward sublayer: down(gelu(up(x))), for every token by itself.

    The submodules are linear layers with bias: `up` maps `d_model` features to `d_ff`, and `down` maps them back.
    The GELU is the exact one, x · Φ(x), where Φ is the distribution function of the standard normal
    distribution; the approximation by tanh is off by up to 0.0005, too much here. There is no dropout.

    Args:
        d_model: number of features.
        d_ff: number of features in between, often 4 · `d_model`, but perhaps fewer than `d_model`.

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
            x: tokens `(batch, n, d_model)`, n from 1.

        Returns:
            The output, of the same shape.
        """
        hidden = nn.functional.gelu(self.up(x))  # (..., d_ff)
        return self.down(hidden)  # (..., d_model)


class TransformerBlock(nn.Module):
    """An attention sublayer and a feed-forward sublayer; the output of each is added to its input.

    The submodules are `attention` (a `MultiHeadAttention`), `feed_forward` (a `FeedForward`, or any module with
    linear layers `up` and `down`; only your block calls it, and most parts of the test do not look at its
    non-linearity), and `norm1` and `norm2`: layer normalisation over the `d_model` features of each token, with
    weight, bias and eps 1e-5 (`nn.LayerNorm` or an equal class of your own). There is no dropout.

    Args:
        d_model: number of features.
        num_heads: number of heads; it divides `d_model`.
        d_ff: number of features inside the feed-forward network.
        norm_first: True is pre-norm, x + A(norm1(x)), then x + F(norm2(x)). False is post-norm, norm1(x +
            A(x)), then norm2(x + F(x)).

    Raises:
        ValueError: if `num_heads` does not divide `d_model` (not graded).

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
        """Apply both sublayers. Training and eval mode give the same result.

        Args:
            x: tokens `(batch, n, d_model)`, n from 1.
            mask: None or boolean, True = may attend: `(n, n)` or `(batch, 1, n, n)`, no other shape (not even that
                of padding); each call may have a different one. Every query has a key. What is hidden has no
                weight, even if all other scores are in the hundreds below 0.

        Returns:
            The output `(batch, n, d_model)`.
        """
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)  # (batch, n, d_model)
            return x + self.feed_forward(self.norm2(x))  # (batch, n, d_model)
        x = self.norm1(x + self.attention(x, mask))  # (batch, n, d_model)
        return self.norm2(x + self.feed_forward(x))  # (batch, n, d_model)
