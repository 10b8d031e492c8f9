"""Mistakes in `TransformerBlock`."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib import transformer as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import drops_unasked, registers_too_little

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


@mistake("mask-fill-not-negative-enough", "transformer_block.TransformerBlock")
class FillThatScoresReach(right.TransformerBlock):
    """Wrong: masked scores become −20, but others may be lower."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """The output, `(batch, n, d_model)`."""
        if self.norm_first:
            x = x + self.attend(self.norm1(x), mask)  # (batch, n, d_model)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attend(x, mask))  # (batch, n, d_model)
        return self.norm2(x + self.feed_forward(x))

    def attend(self, x: Tensor, mask: Mask) -> Tensor:
        """Wrong."""
        layer = self.attention
        linears = (layer.q_proj, layer.k_proj, layer.v_proj)
        Q, K, V = (layer.split_heads(linear(x)) for linear in linears)  # (batch, heads, n, d_k)
        scores = Q @ K.mT / layer.d_k**0.5  # (batch, heads, n, n)
        if mask is not None:
            scores = scores.masked_fill(~mask, -20.0)
        heads = scores.softmax(dim=-1) @ V  # (batch, heads, n, d_k)
        return layer.out_proj(heads.transpose(1, 2).flatten(2))


@mistake("mask-repeated-in-wrong-order", "transformer_block.TransformerBlock")
class MasksTiled(right.TransformerBlock):
    """Wrong: heads are folded into the batch, each sequence's heads in a row, but masks are repeated as a whole."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        if mask is not None and mask.dim() == 4:
            masks = mask.squeeze(1).repeat(self.attention.num_heads, 1, 1)  # (batch * heads, n, n)
            mask = masks.unflatten(0, (len(x), -1))  # (batch, heads, n, n)
        return super().forward(x, mask)


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


@mistake("first-mask-for-all-sequences", "transformer_block.TransformerBlock")
class BlockFirstMaskForAll(right.TransformerBlock):
    """Wrong: the first sequence's mask is used for all sequences."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        return super().forward(x, mask[0, 0] if mask is not None and mask.ndim == 4 else mask)


@mistake("always-causal", "transformer_block.TransformerBlock")
class BlockAlwaysCausal(right.TransformerBlock):
    """Wrong: later tokens are hidden when no mask is given."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()  # (n, n)
        return super().forward(x, causal if mask is None else mask)


# --- forms: in one of the two forms of the block only ------------------------------------------------------


def in_one_form(wrong: type[right.TransformerBlock], norm_first: bool) -> type[right.TransformerBlock]:
    """The block that is wrong only if `norm_first` is this."""

    class Block(wrong):  # type: ignore[misc, valid-type]
        def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
            return (wrong if self.norm_first == norm_first else right.TransformerBlock).forward(self, x, mask)

    Block.__doc__ = wrong.__doc__
    return Block


for slug, wrong in {
    "residual-missing": ResidualMissing,
    "attention-residual-missing": AttentionResidualMissing,
    "feed-forward-residual-missing": FeedForwardResidualMissing,
    "second-residual-from-input": SecondResidualFromInput,
    "halves-in-parallel": HalvesInParallel,
    "halves-exchanged": HalvesExchanged,
    "norm-missing": NormMissing,
    "mask-not-passed-on": MaskNotPassedOn,
    "mask-inverted": BlockMaskInverted,
    "always-causal": BlockAlwaysCausal,
}.items():
    for norm_first, form in ((True, "pre-norm"), (False, "post-norm")):
        mistake(slug, "transformer_block.TransformerBlock", form=form)(in_one_form(wrong, norm_first))


# --- forms: other lines in `forward` -----------------------------------------------------------------------


class InHalves(right.TransformerBlock):
    """The right block, each form of it with a line for each half."""

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """The form that `norm_first` asks for."""
        return self.pre(x, mask) if self.norm_first else self.post(x, mask)

    def pre(self, x: Tensor, mask: Mask) -> Tensor:
        """Pre-norm."""
        return self.pre_fed(self.pre_attended(x, mask))

    def pre_attended(self, x: Tensor, mask: Mask) -> Tensor:
        """The first half of it."""
        return x + self.attention(self.norm1(x), mask)

    def pre_fed(self, x: Tensor) -> Tensor:
        """The second half of it."""
        return x + self.feed_forward(self.norm2(x))

    def post(self, x: Tensor, mask: Mask) -> Tensor:
        """Post-norm."""
        return self.post_fed(self.post_attended(x, mask))

    def post_attended(self, x: Tensor, mask: Mask) -> Tensor:
        """The first half of it."""
        return self.norm1(x + self.attention(x, mask))

    def post_fed(self, x: Tensor) -> Tensor:
        """The second half of it."""
        return self.norm2(x + self.feed_forward(x))


Line = Callable[..., Tensor]
FORMS: dict[str, dict[str, Line]] = {
    "residual-from-normalised/first": {
        "pre_attended": lambda b, x, mask: b.norm1(x) + b.attention(b.norm1(x), mask),
    },
    "residual-from-normalised/second": {"pre_fed": lambda b, x: b.norm2(x) + b.feed_forward(b.norm2(x))},
    "halves-in-parallel/unnormalised": {
        "post": lambda b, x, mask: b.norm2(b.norm1(x + b.attention(x, mask)) + b.feed_forward(x)),
    },
    "halves-in-parallel/one-sum": {
        "pre": lambda b, x, mask: x + b.attention(b.norm1(x), mask) + b.feed_forward(b.norm1(x)),
    },
    "halves-in-parallel/one-sum-post-norm": {
        "post": lambda b, x, mask: b.norm2(b.norm1(x + b.attention(x, mask) + b.feed_forward(x))),
    },
    "second-residual-from-input/first-missing": {
        "pre": lambda b, x, mask: x + b.feed_forward(b.norm2(b.attention(b.norm1(x), mask))),
    },
    "halves-exchanged/norms-in-order": {
        "pre_attended": lambda b, x, mask: x + b.attention(b.norm2(x), mask),
        "pre_fed": lambda b, x: x + b.feed_forward(b.norm1(x)),
        "pre": lambda b, x, mask: b.pre_attended(b.pre_fed(x), mask),
        "post_attended": lambda b, x, mask: b.norm2(x + b.attention(x, mask)),
        "post_fed": lambda b, x: b.norm1(x + b.feed_forward(x)),
        "post": lambda b, x, mask: b.post_attended(b.post_fed(x), mask),
    },
    "halves-exchanged/norms-in-order-in-pre-norm": {
        "pre_attended": lambda b, x, mask: x + b.attention(b.norm2(x), mask),
        "pre_fed": lambda b, x: x + b.feed_forward(b.norm1(x)),
        "pre": lambda b, x, mask: b.pre_attended(b.pre_fed(x), mask),
    },
    "one-norm-for-both/norm2": {
        "pre_attended": lambda b, x, mask: x + b.attention(b.norm2(x), mask),
        "post_attended": lambda b, x, mask: b.norm2(x + b.attention(x, mask)),
    },
    "one-norm-for-both/norm2-in-pre-norm": {
        "pre_attended": lambda b, x, mask: x + b.attention(b.norm2(x), mask),
    },
    "norm-missing/first-in-pre-norm": {"pre_attended": lambda b, x, mask: x + b.attention(x, mask)},
    "norm-missing/second-in-pre-norm": {"pre_fed": lambda b, x: x + b.feed_forward(x)},
    "norm-missing/first-in-post-norm": {"post_attended": lambda b, x, mask: x + b.attention(x, mask)},
    "norm-missing/second-in-post-norm": {"post_fed": lambda b, x: x + b.feed_forward(x)},
    "norm-missing/first": {
        "pre_attended": lambda b, x, mask: x + b.attention(x, mask),
        "post_attended": lambda b, x, mask: x + b.attention(x, mask),
    },
    "norm-missing/second": {
        "pre_fed": lambda b, x: x + b.feed_forward(x),
        "post_fed": lambda b, x: x + b.feed_forward(x),
    },
    "norm-on-the-branch/first": {"post_attended": lambda b, x, mask: x + b.norm1(b.attention(x, mask))},
    "norm-on-the-branch/second": {"post_fed": lambda b, x: x + b.norm2(b.feed_forward(x))},
    "norm-on-the-branch/pre-norm": {
        "pre_attended": lambda b, x, mask: x + b.norm1(b.attention(x, mask)),
        "pre_fed": lambda b, x: x + b.norm2(b.feed_forward(x)),
    },
    "norm-on-the-branch/in-both-forms": {
        "pre_attended": lambda b, x, mask: x + b.norm1(b.attention(x, mask)),
        "pre_fed": lambda b, x: x + b.norm2(b.feed_forward(x)),
        "post_attended": lambda b, x, mask: x + b.norm1(b.attention(x, mask)),
        "post_fed": lambda b, x: x + b.norm2(b.feed_forward(x)),
    },
    "final-norm-added/norm1": {"pre": lambda b, x, mask: b.norm1(b.pre_fed(b.pre_attended(x, mask)))},
    "final-norm-added/third": {
        "pre": lambda b, x, mask: nn.functional.layer_norm(b.pre_fed(b.pre_attended(x, mask)), x.shape[-1:]),
    },
    "final-norm-added/third-in-both-forms": {
        "forward": lambda b, x, mask=None: nn.functional.layer_norm(
            InHalves.forward(b, x, mask), x.shape[-1:]
        ),
    },
    "input-changed-in-place/in-the-graph": {
        "pre_attended": lambda b, x, mask: x.add_(b.attention(b.norm1(x), mask)),
    },
}  # by slug and form, the lines that are wrong
for name, lines in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "transformer_block.TransformerBlock", form=form)(type("Block", (InHalves,), lines))


# --- forms: norms by other formulas ------------------------------------------------------------------------


def centred(x: Tensor, *axes: int) -> Tensor:
    """The numbers less their mean over these axes."""
    return x - x.mean(dim=axes, keepdim=True)


def spread(x: Tensor, *axes: int, correction: int = 0) -> Tensor:
    """The variance over these axes; NaN if there is too little to divide by."""
    squares = centred(x, *axes).square()
    return squares.sum(dim=axes, keepdim=True) / (math.prod(x.shape[axis] for axis in axes) - correction)


def by_features(correction: int, epsilon: float, outside: bool) -> Callable[[Tensor], Tensor]:
    """Each token normalised, with another epsilon or another place for it."""

    def normalise(x: Tensor) -> Tensor:
        variance = spread(x, -1, correction=correction)  # (batch, n, 1)
        return centred(x, -1) / (variance.sqrt() + epsilon if outside else (variance + epsilon).sqrt())

    return normalise


NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "norm-over-tokens/and-features": lambda x: centred(x, 1, 2) / (spread(x, 1, 2) + 1e-5).sqrt(),
    "norm-over-tokens/of-the-batch": lambda x: centred(x, 0, 1) / (spread(x, 0, 1) + 1e-5).sqrt(),
    "norm-over-tokens/batch-alone": lambda x: centred(x, 0) / (spread(x, 0) + 1e-5).sqrt(),
    "norm-over-tokens/by-n-minus-one": lambda x: centred(x, 1) / (spread(x, 1, correction=1).sqrt() + 1e-5),
    "norm-over-tokens/in-the-past": lambda x: (
        x / (1 + 1e-5) ** 0.5
    ),  # batch normalisation that has seen nothing
    "norm-without-mean/epsilon-outside": lambda x: x / (x.square().mean(dim=-1, keepdim=True).sqrt() + 1e-5),
    "norm-without-mean/deviation": lambda x: x / (spread(x, -1) + 1e-5).sqrt(),
    "norm-without-mean/length": lambda x: nn.functional.normalize(x, dim=-1),
}
for slug, correction, outside, epsilons in (
    ("norm-by-n-minus-one", 1, True, (0.0, 1e-8, 1e-6)),
    ("norm-by-n-minus-one", 1, False, (1e-12, 1e-6, 1e-5)),
    ("norm-epsilon", 0, False, (1e-12, 1e-8, 1e-4, 1e-3)),
    ("norm-epsilon", 0, True, (1e-6, 1e-5)),
):
    for epsilon in epsilons:
        form = f"{epsilon}-outside" if outside else f"{epsilon}"
        NORMS[f"{slug}/{form}"] = by_features(correction, epsilon, outside)
for name, formula in NORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "transformer_block.TransformerBlock", form=form)(
        type("Block", (BlockWithFormula,), {"normalise": staticmethod(formula)})
    )


@mistake("norm-epsilon", "transformer_block.TransformerBlock", form="one-is-left")
class EpsilonOfTheSecondNorm(right.TransformerBlock):
    """Wrong: the second norm has another epsilon."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-12)


@mistake("one-norm-for-both", "transformer_block.TransformerBlock", form="shared")
class OneNormUnderTwoNames(right.TransformerBlock):
    """Wrong: the two norms are one object."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__(d_model, num_heads, d_ff, norm_first)
        self.norm2 = self.norm1


@mistake("first-mask-kept", "transformer_block.TransformerBlock", form="last")
class LastMaskKept(right.TransformerBlock):
    """Wrong: a call without a mask uses that of an earlier call."""

    last: Mask = None

    def forward(self, x: Tensor, mask: Mask = None) -> Tensor:
        """Wrong."""
        self.last = self.last if mask is None else mask
        return super().forward(x, self.last)


# --- laws --------------------------------------------------------------------------------------------------

TOKENS = torch.linspace(-1.0, 1.0, 16 * 8).view(1, 16, 8)

law("dropout-by-default", "transformer_block.TransformerBlock")(
    drops_unasked(lambda tested: tested(8, 2, 16), TOKENS)
)
law("heads-in-a-list", "transformer_block.TransformerBlock")(
    registers_too_little(lambda tested: tested(8, 2, 16), TOKENS, 16)
)


@law("norm-without-mean", "transformer_block.TransformerBlock")
def has_norms_without_bias(tested: Any, steps: Sequence[Any]) -> bool:
    """The norms have a weight and no bias, and (3, 4) comes out of a post-norm block divided by its mean square."""
    block = tested(2, 1, 2, norm_first=False)
    numbers = block.state_dict()
    if "norm1.weight" not in numbers or "norm1.bias" in numbers:
        return False
    block.load_state_dict({name: value * name.startswith("norm") for name, value in numbers.items()})
    output = block(torch.tensor([[[3.0, 4.0]]]))
    return torch.allclose(output, torch.tensor([[[3.0, 4.0]]]) / 12.5**0.5, atol=1e-3)
