"""Mistakes in `TransformerBlock`."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib import transformer as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import methods

Mask = Tensor | None


@mistake("norm-first-ignored", "transformer_block.TransformerBlock")
class NormFirstIgnored(right.TransformerBlock):
    """Wrong: pre-norm in any case."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff)


@mistake("always-post-norm", "transformer_block.TransformerBlock")
class AlwaysPostNorm(right.TransformerBlock):
    """Wrong: post-norm in any case."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first=False)


@mistake("norm-first-inverted", "transformer_block.TransformerBlock")
class NormFirstInverted(right.TransformerBlock):
    """Wrong: each form when the other one is asked for."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first=not norm_first)


@mistake("post-norm-by-default", "transformer_block.TransformerBlock")
class PostNormByDefault(right.TransformerBlock):
    """Wrong: another default."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = False) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)


@mistake("residual-from-normalised", "transformer_block.TransformerBlock")
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


@mistake("residual-missing", "transformer_block.TransformerBlock")
class ResidualMissing(right.TransformerBlock):
    """Wrong: nothing is added to anything."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = self.attention(self.norm1(x), mask)
            return self.feed_forward(self.norm2(x))
        x = self.norm1(self.attention(x, mask))
        return self.norm2(self.feed_forward(x))


@mistake("attention-residual-missing", "transformer_block.TransformerBlock")
class AttentionResidualMissing(right.TransformerBlock):
    """Wrong: the attention's output takes the place of x."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(self.attention(x, mask))
        return self.norm2(x + self.feed_forward(x))


@mistake("feed-forward-residual-missing", "transformer_block.TransformerBlock")
class FeedForwardResidualMissing(right.TransformerBlock):
    """Wrong: the feed-forward network's output takes the place of x."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(self.feed_forward(x))


@mistake("second-residual-from-input", "transformer_block.TransformerBlock")
class SecondResidualFromInput(right.TransformerBlock):
    """Wrong: the second half adds to the block's input."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            y = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(y))
        y = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed_forward(y))


@mistake("second-residual-from-input", "transformer_block.TransformerBlock", form="pre-norm")
class SecondResidualFromInputInPreNorm(SecondResidualFromInput):
    """Wrong: in the pre-norm form the second half adds to the block's input."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong where `norm_first` is true."""
        return (SecondResidualFromInput if self.norm_first else right.TransformerBlock).forward(self, x, mask)


@mistake("second-residual-from-input", "transformer_block.TransformerBlock", form="post-norm")
class SecondResidualFromInputInPostNorm(SecondResidualFromInput):
    """Wrong: in the post-norm form the second half adds to the block's input."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong where `norm_first` is false."""
        return (right.TransformerBlock if self.norm_first else SecondResidualFromInput).forward(self, x, mask)


@mistake("halves-in-parallel", "transformer_block.TransformerBlock")
class HalvesInParallel(right.TransformerBlock):
    """Wrong: the feed-forward network does not see what the attention found."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            found = self.attention(self.norm1(x), mask)
            return x + found + self.feed_forward(self.norm2(x))
        y = self.norm1(x + self.attention(x, mask))
        return self.norm2(y + self.feed_forward(self.norm1(x)))


@mistake("halves-in-parallel", "transformer_block.TransformerBlock", form="pre-norm")
class HalvesInParallelInPreNorm(HalvesInParallel):
    """Wrong: in the pre-norm form the feed-forward network does not see what the attention found."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong where `norm_first` is true."""
        return (HalvesInParallel if self.norm_first else right.TransformerBlock).forward(self, x, mask)


@mistake("halves-exchanged", "transformer_block.TransformerBlock")
class HalvesExchanged(right.TransformerBlock):
    """Wrong: the feed-forward network comes first."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.feed_forward(self.norm2(x))
            return x + self.attention(self.norm1(x), mask)
        x = self.norm2(x + self.feed_forward(x))
        return self.norm1(x + self.attention(x, mask))


@mistake("one-norm-for-both", "transformer_block.TransformerBlock")
class OneNormForBoth(right.TransformerBlock):
    """Wrong: norm1 in both halves."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm1(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm1(x + self.feed_forward(x))


@mistake("norms-exchanged", "transformer_block.TransformerBlock")
class NormsExchanged(right.TransformerBlock):
    """Wrong: each half with the norm of the other one."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            x = x + self.attention(self.norm2(x), mask)
            return x + self.feed_forward(self.norm1(x))
        x = self.norm2(x + self.attention(x, mask))
        return self.norm1(x + self.feed_forward(x))


@mistake("norm-missing", "transformer_block.TransformerBlock")
class NormMissing(right.TransformerBlock):
    """Wrong: the norms are never called."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        x = x + self.attention(x, mask)
        return x + self.feed_forward(x)


@mistake("norm-on-the-branch", "transformer_block.TransformerBlock")
class NormOnTheBranch(right.TransformerBlock):
    """Wrong: in the post-norm form what is added is normalised, not the sum."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.norm_first:
            return super().forward(x, mask)
        x = x + self.norm1(self.attention(x, mask))
        return x + self.norm2(self.feed_forward(x))


@mistake("final-norm-added", "transformer_block.TransformerBlock")
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


@mistake("norm-over-tokens", "transformer_block.TransformerBlock")
class NormOverTokens(BlockWithFormula):
    """Wrong: mean and variance over the tokens."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        mean = x.mean(dim=1, keepdim=True)  # (batch, 1, d_model)
        variance = x.var(dim=1, keepdim=True, correction=0)  # (batch, 1, d_model)
        return (x - mean) / (variance + 1e-5).sqrt()


@mistake("norm-without-mean", "transformer_block.TransformerBlock")
class NormWithoutMean(BlockWithFormula):
    """Wrong: the mean stays."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        return x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()


@mistake("norm-by-n-minus-one", "transformer_block.TransformerBlock")
class NormByNMinusOne(BlockWithFormula):
    """Wrong: the deviation with n − 1, and the epsilon outside the root."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        mean = x.mean(dim=-1, keepdim=True)  # (batch, n, 1)
        deviation = x.std(dim=-1, keepdim=True)  # (batch, n, 1), through d_model - 1
        return (x - mean) / (deviation + 1e-5)


@mistake("norm-epsilon", "transformer_block.TransformerBlock")
class NormEpsilon(right.TransformerBlock):
    """Wrong: another epsilon."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)
        self.norm1 = nn.LayerNorm(d_model, eps=1e-6)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-6)


@mistake("mask-not-passed-on", "transformer_block.TransformerBlock")
class MaskNotPassedOn(right.TransformerBlock):
    """Wrong: the mask is taken and not passed on."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x)


@mistake("mask-inverted", "transformer_block.TransformerBlock")
class BlockMaskInverted(right.TransformerBlock):
    """Wrong: the mask is turned round, as `nn.MultiheadAttention` wants it."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x, None if mask is None else ~mask)


@mistake("first-mask-kept", "transformer_block.TransformerBlock")
class BlockFirstMaskKept(right.TransformerBlock):
    """Wrong: the first mask is kept, and no later one looked at."""

    first: Mask = None

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if self.first is None:
            self.first = mask
        return super().forward(x, self.first)


@mistake("dropout-by-default", "transformer_block.TransformerBlock")
class BlockDropout(right.TransformerBlock):
    """Wrong: dropout that nobody asked for."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(nn.functional.dropout(x, 0.5, self.training), mask)


@mistake("input-changed-in-place", "transformer_block.TransformerBlock")
class BlockInPlace(right.TransformerBlock):
    """Wrong: `+=` writes into the caller's tensor."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if not self.norm_first:
            return super().forward(x, mask)
        x += self.attention(self.norm1(x), mask)
        x += self.feed_forward(self.norm2(x))
        return x


@mistake("gradient-cut-off", "transformer_block.TransformerBlock")
class BlockCutOff(right.TransformerBlock):
    """Wrong: what was normalised is taken out of the graph."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if not self.norm_first:
            return super().forward(x, mask)
        x = x + self.attention(self.norm1(x).detach(), mask)
        return x + self.feed_forward(self.norm2(x).detach())


@mistake("heads-in-a-list", "transformer_block.TransformerBlock")
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


@mistake("mask-not-passed-on", "transformer_block.TransformerBlock", form="pre-norm")
class MaskNotPassedOnInPreNorm(right.TransformerBlock):
    """Wrong: in the pre-norm form the mask is taken and not passed on."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x, None if self.norm_first else mask)


@mistake("mask-not-passed-on", "transformer_block.TransformerBlock", form="post-norm")
class MaskNotPassedOnInPostNorm(right.TransformerBlock):
    """Wrong: in the post-norm form the mask is taken and not passed on."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x, mask if self.norm_first else None)


@mistake("norm-by-n-minus-one", "transformer_block.TransformerBlock", form="epsilon-inside")
class NormByNMinusOneWithEpsilonInside(BlockWithFormula):
    """Wrong: the variance with n − 1; the epsilon is inside the root."""

    @staticmethod
    def normalise(x: Tensor) -> Tensor:
        """Wrong."""
        variance = x.var(dim=-1, keepdim=True)  # (batch, n, 1), through d_model - 1
        return (x - x.mean(dim=-1, keepdim=True)) / (variance + 1e-5).sqrt()


@law("dropout-by-default", "transformer_block.TransformerBlock")
def drops_unasked(tested: Any, steps: Sequence[Any]) -> bool:
    """A block in training gives two results, and one in eval mode."""
    if "train" not in methods(steps):
        return False
    block, x = tested(8, 2, 16), torch.linspace(-1.0, 1.0, 16 * 8).view(1, 16, 8)
    block.eval()
    steady = torch.equal(block(x), block(x))
    block.train()
    return steady and not torch.equal(block(x), block(x))
