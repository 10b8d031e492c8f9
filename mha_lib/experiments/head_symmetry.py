"""Why heads differ: two heads, trained from starts that are equal, nearly equal or independent.

The task is *recall at offsets* (`mha_lib.experiments.one_layer`): every position must name the tokens at fixed
offsets from it. The two heads are computed one after the other by the same operations, so that heads that are
equal in mathematics are equal to the last bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.one_layer import CONTENT, TOKEN_OFFSETS, N, at_offsets, with_positions
from mha_lib.experiments.training import reproducible
from mha_lib.torch_attention import attention

MATRICES = ("W_Q", "W_K", "W_V", "W_O")
TEST_SEQUENCES = 4000


class Head(nn.Module):
    """One head together with its block of W_O, so that a layer is the sum of its heads.

    Args:
        d_in: number of input features.
        d_k: width of queries, keys and values.
        d_out: number of output features.
    """

    def __init__(self, d_in: int, d_k: int, d_out: int) -> None:
        super().__init__()
        self.W_Q, self.W_K, self.W_V = (
            nn.Parameter(torch.randn(d_in, d_k, dtype=torch.float64) / d_in**0.5) for _ in range(3)
        )
        self.W_O = nn.Parameter(torch.randn(d_k, d_out, dtype=torch.float64) / (2 * d_k) ** 0.5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """From `(batch, n, d_in)` to the head's share of the output `(batch, n, d_out)`, and its attention weights
        `(batch, n, n)`."""
        output, weights = attention(x @ self.W_Q, x @ self.W_K, x @ self.W_V)
        return output @ self.W_O, weights  # (batch, n, d_out), (batch, n, n)


@dataclass(frozen=True)
class Pair:
    """Two heads after training."""

    distance: (
        np.ndarray
    )  # (steps + 1,): how far apart their attention weights were, before each step and at the end
    all_right: float  # share of positions of fresh sequences that got every offset right
    parameters: float  # largest difference between a parameter of one head and the same of the other
    weights: np.ndarray  # (2, n, n): attention weights, averaged over fresh sequences


def start(apart: float, d_k: int, d_out: int, differ_in: Sequence[str] = MATRICES) -> tuple[Head, Head]:
    """Two heads on the way from equal to independent.

    Args:
        apart: 0 makes them equal, 1 draws them independently; between, the second head is that share of the way
            from the first to an independent one.
        d_k: width of a head.
        d_out: number of output features.
        differ_in: the matrices of the second head that are moved; the others are equal to those of the first.
    """
    first, second = (Head(CONTENT + N, d_k, d_out) for _ in range(2))
    with torch.no_grad():
        for name in MATRICES:
            mine, other = getattr(first, name), getattr(second, name)
            other.copy_(mine + (apart if name in differ_in else 0.0) * (other - mine))
    return first, second


def train_pair(
    apart: float,
    d_k: int = 4,
    offsets: tuple[int, ...] = TOKEN_OFFSETS,
    differ_in: Sequence[str] = MATRICES,
    steps: int = 250,
    seed: int = 0,
) -> Pair:
    """Train two heads and a bias to name the tokens at the offsets.

    Args:
        apart, d_k, differ_in: how the two heads start, see `start`.
        offsets: which tokens to name.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.
    """

    def make_batch(sequences: int) -> tuple[Tensor, Tensor]:
        tokens = torch.randint(CONTENT, (sequences, N))  # (batch, n)
        x = with_positions(F.one_hot(tokens, CONTENT)).double()  # (batch, n, c + n)
        return x, at_offsets(tokens, offsets)  # target: (batch, n, k)

    def predict(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (output, weights), (other_output, other_weights) = first(x), second(x)
        return output + other_output + bias, weights, other_weights

    distance = []
    with reproducible(seed):
        d_out = len(offsets) * CONTENT
        first, second = start(apart, d_k, d_out, differ_in)
        bias = torch.zeros(d_out, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([*first.parameters(), *second.parameters(), bias], lr=2e-2, fused=True)
        for _ in range(steps):
            x, target = make_batch(64)
            output, weights, other_weights = predict(x)
            distance.append(map_distance(weights, other_weights))
            optimizer.zero_grad()
            F.cross_entropy(output.reshape(-1, CONTENT), target.flatten()).backward()
            optimizer.step()
        with torch.no_grad():
            x, target = make_batch(TEST_SEQUENCES)
            output, weights, other_weights = predict(x)
    distance.append(map_distance(weights, other_weights))
    right = output.unflatten(-1, (len(offsets), CONTENT)).argmax(-1) == target  # (batch, n, k)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return Pair(
        np.array(distance),
        right.all(-1).double().mean().item(),
        max((a - b).abs().max().item() for a, b in pairs),
        torch.stack([weights, other_weights]).mean(dim=1).numpy(),
    )


def map_distance(weights: Tensor, other: Tensor) -> float:
    """How much of its weight a query would have to move from one head's keys to get the other's, on average.

    Args:
        weights: attention weights `(..., n, m)` of one head.
        other: of the other, the same shape.

    Returns:
        0 if the weights are equal, 1 if the heads never look at the same key.
    """
    return ((weights - other).abs().sum(dim=-1).mean() / 2).item()
