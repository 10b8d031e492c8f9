"""Right ways of writing the items of `transformer_block`; some of them look wrong at first."""

import math
from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.styles import batched_torch, style

Mask = Tensor | None

# --- FeedForward -------------------------------------------------------------------------------------------


@style("named sequence", "transformer_block.FeedForward")
class NamedSequence(nn.Sequential):
    """A sequence whose layers have names."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        layers = [("up", nn.Linear(d_model, d_ff)), ("curve", nn.GELU()), ("down", nn.Linear(d_ff, d_model))]
        super().__init__(OrderedDict(layers))


@style("by error function", "transformer_block.FeedForward")
class ByErrorFunction(nn.Module):
    """The GELU by its formula."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        h = self.up(x)
        return self.down(0.5 * h * (1.0 + torch.erf(h / math.sqrt(2.0))))


@style("token by token", "transformer_block.FeedForward")
class TokenByToken(ByErrorFunction):
    """One token at a time."""

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        flat = [self.down(F.gelu(self.up(token))) for token in x.flatten(0, -2)]
        return torch.stack(flat).view(x.shape)


@style("by normal distribution", "transformer_block.FeedForward")
class ByNormalDistribution(ByErrorFunction):
    """x times the probability that a normal number is below x, with an idle dropout."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(d_model, d_ff)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        """Right."""
        h = F.linear(x, self.up.weight, self.up.bias)
        h = h * torch.special.ndtr(h)
        return F.linear(self.dropout(h), self.down.weight, self.down.bias)


# --- TransformerBlock --------------------------------------------------------------------------------------


class FourParts(nn.Module):
    """What most styles share, with an attention and a feed-forward network that are written in other ways."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.pre = norm_first
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = batched_torch.ThroughTheKernel(d_model, num_heads)
        self.feed_forward = NamedSequence(d_model, d_ff)


@style("one half after the other", "transformer_block.TransformerBlock")
class OneHalfAfterTheOther(FourParts):
    """Both halves by the same function."""

    def added(self, x: Tensor, norm: nn.Module, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """One half, in either form."""
        return x + compute(norm(x)) if self.pre else norm(x + compute(x))

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        x = self.added(x, self.norm1, lambda y: self.attention(y, mask))
        return self.added(x, self.norm2, self.feed_forward)


@style("norms of one's own", "transformer_block.TransformerBlock")
class NormsOfOnesOwn(nn.Module):
    """Layer normalisation by hand."""

    class Norm(nn.Module):
        """Mean 0, variance 1, then weight and bias."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

        def forward(self, x: Tensor) -> Tensor:
            """Right."""
            centred = x - x.mean(dim=-1, keepdim=True)
            return centred * torch.rsqrt((centred**2).mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.attention = batched_torch.HeadByHead(d_model, num_heads)
        self.feed_forward = ByErrorFunction(d_model, d_ff)
        self.norm1, self.norm2 = self.Norm(d_model), self.Norm(d_model)
        self.forward = self.pre_norm if norm_first else self.post_norm

    def pre_norm(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        x = x + self.attention(self.norm1(x), mask)
        return x + self.feed_forward(self.norm2(x))

    def post_norm(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed_forward(x))


@style("norms as functions", "transformer_block.TransformerBlock")
class NormsAsFunctions(FourParts):
    """Four places for norms, two of which do nothing."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""

        def norm(layer: nn.LayerNorm, y: Tensor, wanted: bool) -> Tensor:
            return F.layer_norm(y, y.shape[-1:], layer.weight, layer.bias, 1e-5) if wanted else y

        residual = x.clone()
        residual += self.attention(norm(self.norm1, x, self.pre), mask)
        x = norm(self.norm1, residual, not self.pre)
        x = x + self.feed_forward(norm(self.norm2, x, self.pre))
        return norm(self.norm2, x, not self.pre)


@style("idle dropout", "transformer_block.TransformerBlock")
class IdleDropout(FourParts):
    """With dropout that never drops."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Right."""
        if self.pre is False:
            x = self.norm1(self.drop(self.attention(x, mask)) + x)
            return self.norm2(self.drop(self.feed_forward(x)) + x)
        attended = self.drop(self.attention(self.norm1(x), mask))
        return x + attended + self.drop(self.feed_forward(self.norm2(x + attended)))
