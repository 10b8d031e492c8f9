"""Mistakes in `FeedForward`."""

import torch
from torch import Tensor, nn

from mha_lib import transformer as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.pitfalls.evidence import drops_unasked, registers_too_little


@mistake("relu-instead-of-gelu", "transformer_block.FeedForward")
class WithRelu(right.FeedForward):
    """Wrong: a ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(self.up(x).relu())


@mistake("silu-instead-of-gelu", "transformer_block.FeedForward")
class WithSilu(right.FeedForward):
    """Wrong: x times the logistic function."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(nn.functional.silu(self.up(x)))


@mistake("gelu-approximated", "transformer_block.FeedForward")
class GeluByTanh(right.FeedForward):
    """Wrong: the approximation by tanh."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(nn.functional.gelu(self.up(x), approximate="tanh"))


@mistake("gelu-by-logistic", "transformer_block.FeedForward")
class GeluByLogistic(right.FeedForward):
    """Wrong: an old approximation."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        hidden = self.up(x)
        return self.down(hidden * (1.702 * hidden).sigmoid())


@mistake("gelu-without-root", "transformer_block.FeedForward")
class GeluWithoutRoot(right.FeedForward):
    """Wrong: erf of x, where the normal distribution has x / √2."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        hidden = self.up(x)
        return self.down(hidden * (1 + hidden.erf()) / 2)


@mistake("activation-missing", "transformer_block.FeedForward")
class ActivationMissing(right.FeedForward):
    """Wrong: two linear layers are one."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(self.up(x))


@mistake("activation-after-down", "transformer_block.FeedForward")
class ActivationAfterDown(right.FeedForward):
    """Wrong: the output is bent, not what lies between the layers."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return nn.functional.gelu(self.down(self.up(x)))


@mistake("activation-on-both-sides", "transformer_block.FeedForward")
class ActivationOnBothSides(right.FeedForward):
    """Wrong: the output is bent as well."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return nn.functional.gelu(super().forward(x))


@mistake("residual-inside", "transformer_block.FeedForward")
class FeedForwardResidual(right.FeedForward):
    """Wrong: the residual connection belongs to the block."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return x + super().forward(x)


@mistake("projection-without-bias", "transformer_block.FeedForward")
class FeedForwardWithoutBias(right.FeedForward):
    """Wrong: the linear layers have no bias."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(d_model, d_ff)
        self.up, self.down = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)


@mistake("dropout-by-default", "transformer_block.FeedForward")
class FeedForwardDropout(right.FeedForward):
    """Wrong: dropout that nobody asked for."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return nn.functional.dropout(super().forward(x), 0.5, self.training)


@mistake("heads-in-a-list", "transformer_block.FeedForward")
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


@mistake("gradient-cut-off", "transformer_block.FeedForward")
class FeedForwardCutOff(right.FeedForward):
    """Wrong: what lies between the layers is taken out of the graph."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(nn.functional.gelu(self.up(x)).detach())


@mistake("input-changed-in-place", "transformer_block.FeedForward")
class FeedForwardInPlace(right.FeedForward):
    """Wrong: the caller's tensor is overwritten."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        output = super().forward(x)
        with torch.no_grad():
            x.copy_(output)
        return output


@mistake("gelu-by-logistic", "transformer_block.FeedForward", form="1.7")
class GeluByLogisticOfRoundedNumber(right.FeedForward):
    """Wrong: an old approximation, with 1.7 in place of 1.702."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        hidden = self.up(x)
        return self.down(hidden * (1.7 * hidden).sigmoid())


@mistake("activation-after-down", "transformer_block.FeedForward", form="relu")
class ReluAfterDown(right.FeedForward):
    """Wrong: the output is bent, and by another curve."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.down(self.up(x)).relu()


@mistake("activation-on-both-sides", "transformer_block.FeedForward", form="relu")
class ReluOnBothSides(right.FeedForward):
    """Wrong: the output is bent as well, and by another curve."""

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return super().forward(x).relu()


@mistake("projection-without-bias", "transformer_block.FeedForward", form="up")
class UpWithoutBias(right.FeedForward):
    """Wrong: the first layer has no bias."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(d_model, d_ff)
        self.up = nn.Linear(d_model, d_ff, bias=False)


@mistake("projection-without-bias", "transformer_block.FeedForward", form="down")
class DownWithoutBias(right.FeedForward):
    """Wrong: the second layer has no bias."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model, bias=False)


@mistake("projection-without-bias", "transformer_block.FeedForward", form="weights-alone")
class WeightsAlone(right.FeedForward):
    """Wrong: the biases are there, and not used."""

    unused: tuple[str, ...] = ("up", "down")

    def forward(self, x: Tensor) -> Tensor:
        """Wrong."""
        return self.linear("down", nn.functional.gelu(self.linear("up", x)))

    def linear(self, name: str, x: Tensor) -> Tensor:
        """A layer, without its bias if this is not used."""
        layer = self.up if name == "up" else self.down
        return nn.functional.linear(x, layer.weight, None if name in self.unused else layer.bias)


@mistake("projection-without-bias", "transformer_block.FeedForward", form="weight-of-up-alone")
class WeightOfUpAlone(WeightsAlone):
    """Wrong: the first layer's bias is there, and not used."""

    unused = ("up",)


@mistake("projection-without-bias", "transformer_block.FeedForward", form="weight-of-down-alone")
class WeightOfDownAlone(WeightsAlone):
    """Wrong: the second layer's bias is there, and not used."""

    unused = ("down",)


TOKENS = torch.linspace(-1.0, 1.0, 16 * 8).view(1, 16, 8)

law("dropout-by-default", "transformer_block.FeedForward")(
    drops_unasked(lambda tested: tested(8, 16), TOKENS)
)
law("heads-in-a-list", "transformer_block.FeedForward")(
    registers_too_little(lambda tested: tested(8, 16), TOKENS, 4)
)
