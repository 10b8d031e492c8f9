"""Mistakes in `FeedForward`."""

import torch
from torch import Tensor, nn

from mha_lib import transformer as right
from mha_lib.pitfalls.code import mistake


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
