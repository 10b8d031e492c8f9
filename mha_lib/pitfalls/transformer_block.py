"""Mistakes in the items of `transformer_block`, as code that needs PyTorch; the words stand with the families.

The layers are the right ones but for the method that is written anew.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib import transformer as right

Mask = Tensor | None

# --- FeedForward -------------------------------------------------------------------------------------------


class WithRelu(right.FeedForward):
    """Wrong: a ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(self.up(x).relu())


class WithSilu(right.FeedForward):
    """Wrong: x times the logistic function."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(nn.functional.silu(self.up(x)))


class GeluByTanh(right.FeedForward):
    """Wrong: the approximation by tanh."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(nn.functional.gelu(self.up(x), approximate="tanh"))


class GeluByLogistic(right.FeedForward):
    """Wrong: an old approximation."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        hidden = self.up(x)
        return self.down(hidden * (1.702 * hidden).sigmoid())


class ActivationMissing(right.FeedForward):
    """Wrong: two linear layers are one."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(self.up(x))


class ActivationAfterDown(right.FeedForward):
    """Wrong: the output is bent, not what lies between the layers."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return nn.functional.gelu(self.down(self.up(x)))


class ActivationOnBothSides(right.FeedForward):
    """Wrong: the output is bent as well."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return nn.functional.gelu(super().forward(x))


class FeedForwardResidual(right.FeedForward):
    """Wrong: the residual connection belongs to the block."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x + super().forward(x)


class FeedForwardWithoutBias(right.FeedForward):
    """Wrong: the linear layers have no bias."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(d_model, d_ff)
        self.up, self.down = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)


class FeedForwardDropout(right.FeedForward):
    """Wrong: dropout that nobody asked for."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return nn.functional.dropout(super().forward(x), 0.5, self.training)


class FeedForwardInAList(nn.Module):
    """Wrong: PyTorch does not look into a plain list for layers."""

    up = property(lambda self: self.layers[0])
    down = property(lambda self: self.layers[2])

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.layers = [nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model)]

    def forward(self, x: Tensor) -> Tensor:
        """Right but for where the layers are."""
        for layer in self.layers:
            x = layer(x)
        return x


class FeedForwardCutOff(right.FeedForward):
    """Wrong: what lies between the layers is taken out of the graph."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(nn.functional.gelu(self.up(x)).detach())


class FeedForwardInPlace(right.FeedForward):
    """Wrong: the caller's tensor is overwritten."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        output = super().forward(x)
        with torch.no_grad():
            x.copy_(output)
        return output


# --- TransformerBlock --------------------------------------------------------------------------------------


class NormFirstIgnored(right.TransformerBlock):
    """Wrong: pre-norm in any case."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff)


class AlwaysPostNorm(right.TransformerBlock):
    """Wrong: post-norm in any case."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first=False)


class NormFirstInverted(right.TransformerBlock):
    """Wrong: each form when the other one is asked for."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first=not norm_first)


class PostNormByDefault(right.TransformerBlock):
    """Wrong: another default."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = False) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)


class ResidualFromNormalised(right.TransformerBlock):
    """Wrong: x is overwritten by what was normalised."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if not self.norm_first:
            return super().forward(x, mask)
        x = self.norm1(x)
        x = x + self.attention(x, mask)
        x = self.norm2(x)
        return x + self.feed_forward(x)


class ResidualMissing(right.TransformerBlock):
    """Wrong: nothing is added to anything."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = self.attention(self.norm1(x), mask)
            return self.feed_forward(self.norm2(x))
        x = self.norm1(self.attention(x, mask))
        return self.norm2(self.feed_forward(x))


class AttentionResidualMissing(right.TransformerBlock):
    """Wrong: the attention's output takes the place of x."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(self.attention(x, mask))
        return self.norm2(x + self.feed_forward(x))


class FeedForwardResidualMissing(right.TransformerBlock):
    """Wrong: the feed-forward network's output takes the place of x."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(self.feed_forward(x))


class SecondResidualFromInput(right.TransformerBlock):
    """Wrong: the second half adds to the block's input."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            y = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(y))
        y = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed_forward(y))


class HalvesInParallel(right.TransformerBlock):
    """Wrong: the feed-forward network does not see what the attention found."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            found = self.attention(self.norm1(x), mask)
            return x + found + self.feed_forward(self.norm2(x))
        y = self.norm1(x + self.attention(x, mask))
        return self.norm2(y + self.feed_forward(self.norm1(x)))


class HalvesExchanged(right.TransformerBlock):
    """Wrong: the feed-forward network comes first."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.feed_forward(self.norm2(x))
            return x + self.attention(self.norm1(x), mask)
        x = self.norm2(x + self.feed_forward(x))
        return self.norm1(x + self.attention(x, mask))


class OneNormForBoth(right.TransformerBlock):
    """Wrong: norm1 in both halves."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm1(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm1(x + self.feed_forward(x))


class NormsExchanged(right.TransformerBlock):
    """Wrong: each half with the norm of the other one."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.attention(self.norm2(x), mask)
            return x + self.feed_forward(self.norm1(x))
        x = self.norm2(x + self.attention(x, mask))
        return self.norm1(x + self.feed_forward(x))


class NormMissing(right.TransformerBlock):
    """Wrong: the norms are never called."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        x = x + self.attention(x, mask)
        return x + self.feed_forward(x)


class NormOnTheBranch(right.TransformerBlock):
    """Wrong: in the post-norm form what is added is normalised, not the sum."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            return super().forward(x, mask)
        x = x + self.norm1(self.attention(x, mask))
        return x + self.norm2(self.feed_forward(x))


class FinalNormAdded(right.TransformerBlock):
    """Wrong: a pre-norm block ends in a norm."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        output = super().forward(x, mask)
        return self.norm2(output) if self.norm_first else output


class OtherNorm(nn.LayerNorm):
    """A norm with another formula, and with weight and bias as usual."""

    def __init__(self, d_model: int, normalise: Callable[[Tensor], Tensor]) -> None:
        super().__init__(d_model)
        self.normalise = normalise

    def forward(self, x: Tensor) -> Tensor:
        """The formula, then weight and bias."""
        return self.normalise(x) * self.weight + self.bias


class BlockWithFormula(right.TransformerBlock):
    """The right block, in which both norms compute `normalise`, then their weight and bias."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)
        self.norm1, self.norm2 = (OtherNorm(d_model, self.normalise) for _ in range(2))

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """In each token, the features less their mean, divided by the root of their variance plus 1e-5."""
        return nn.functional.layer_norm(x, x.shape[-1:])


class NormOverTokens(BlockWithFormula):
    """Wrong: mean and variance over the tokens."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        mean = x.mean(dim=1, keepdim=True)  # (batch, 1, d_model)
        variance = x.var(dim=1, keepdim=True, correction=0)  # (batch, 1, d_model)
        return (x - mean) / (variance + 1e-5).sqrt()


class NormWithoutMean(BlockWithFormula):
    """Wrong: the mean stays."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        return x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()


class NormByNMinusOne(BlockWithFormula):
    """Wrong: the deviation with n − 1, and the epsilon outside the root."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        mean = x.mean(dim=-1, keepdim=True)  # (batch, n, 1)
        deviation = x.std(dim=-1, keepdim=True)  # (batch, n, 1), through d_model - 1
        return (x - mean) / (deviation + 1e-5)


class NormEpsilon(right.TransformerBlock):
    """Wrong: another epsilon."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)
        self.norm1 = nn.LayerNorm(d_model, eps=1e-6)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-6)


class MaskNotPassedOn(right.TransformerBlock):
    """Wrong: the mask is taken and not passed on."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x)


class BlockMaskInverted(right.TransformerBlock):
    """Wrong: the mask is turned round, as `nn.MultiheadAttention` wants it."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x, None if mask is None else ~mask)


class BlockFirstMaskKept(right.TransformerBlock):
    """Wrong: the first mask is kept, and no later one looked at."""

    first: Mask = None

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.first is None:
            self.first = mask
        return super().forward(x, self.first)


class BlockDropout(right.TransformerBlock):
    """Wrong: dropout that nobody asked for."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(nn.functional.dropout(x, 0.5, self.training), mask)


class BlockInPlace(right.TransformerBlock):
    """Wrong: `+=` writes into the caller's tensor."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if not self.norm_first:
            return super().forward(x, mask)
        x += self.attention(self.norm1(x), mask)
        x += self.feed_forward(self.norm2(x))
        return x


class BlockCutOff(right.TransformerBlock):
    """Wrong: what was normalised is taken out of the graph."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if not self.norm_first:
            return super().forward(x, mask)
        x = x + self.attention(self.norm1(x).detach(), mask)
        return x + self.feed_forward(self.norm2(x).detach())


class BlockInAList(right.TransformerBlock):
    """Wrong: PyTorch does not look into a plain list for layers."""

    norm1 = property(lambda self: self.norms[0])
    norm2 = property(lambda self: self.norms[1])

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        nn.Module.__init__(self)
        self.norm_first = norm_first
        self.attention = right.MultiHeadAttention(d_model, num_heads)
        self.feed_forward = right.FeedForward(d_model, d_ff)
        self.norms = [nn.LayerNorm(d_model), nn.LayerNorm(d_model)]


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "FeedForward": {
        "relu-instead-of-gelu": WithRelu,
        "silu-instead-of-gelu": WithSilu,
        "gelu-approximated": GeluByTanh,
        "gelu-by-logistic": GeluByLogistic,
        "activation-missing": ActivationMissing,
        "activation-after-down": ActivationAfterDown,
        "activation-on-both-sides": ActivationOnBothSides,
        "residual-inside": FeedForwardResidual,
        "projection-without-bias": FeedForwardWithoutBias,
        "dropout-by-default": FeedForwardDropout,
        "heads-in-a-list": FeedForwardInAList,
        "gradient-cut-off": FeedForwardCutOff,
        "input-changed-in-place": FeedForwardInPlace,
    },
    "TransformerBlock": {
        "norm-first-ignored": NormFirstIgnored,
        "always-post-norm": AlwaysPostNorm,
        "norm-first-inverted": NormFirstInverted,
        "post-norm-by-default": PostNormByDefault,
        "residual-from-normalised": ResidualFromNormalised,
        "residual-missing": ResidualMissing,
        "attention-residual-missing": AttentionResidualMissing,
        "feed-forward-residual-missing": FeedForwardResidualMissing,
        "second-residual-from-input": SecondResidualFromInput,
        "halves-in-parallel": HalvesInParallel,
        "halves-exchanged": HalvesExchanged,
        "one-norm-for-both": OneNormForBoth,
        "norms-exchanged": NormsExchanged,
        "norm-missing": NormMissing,
        "norm-on-the-branch": NormOnTheBranch,
        "final-norm-added": FinalNormAdded,
        "norm-over-tokens": NormOverTokens,
        "norm-without-mean": NormWithoutMean,
        "norm-by-n-minus-one": NormByNMinusOne,
        "norm-epsilon": NormEpsilon,
        "mask-not-passed-on": MaskNotPassedOn,
        "mask-inverted": BlockMaskInverted,
        "first-mask-kept": BlockFirstMaskKept,
        "dropout-by-default": BlockDropout,
        "input-changed-in-place": BlockInPlace,
        "gradient-cut-off": BlockCutOff,
        "heads-in-a-list": BlockInAList,
    },
}
