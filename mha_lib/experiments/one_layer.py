"""The experiments that the book runs: small enough for two CPU cores, with fixed seeds.

*Recall at offsets* (`recall_contents`, `recall_tokens`): every position of a sequence holds something, and every
position must report, side by side, what stands at `k` fixed offsets from it. One attention layer does the work.
Offsets count around the end of the sequence, so that every position has all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.training import minimise, reproducible
from mha_lib.torch_attention import attention

N = 10  # positions of a sequence
CONTENT = 8  # numbers that one position holds; also the size of the vocabulary
CONTENT_OFFSETS = (-1, -2, -3, -4)
TOKEN_OFFSETS = (-1, -4)
D_MODEL = 32  # width of the layer: four contents side by side
TEST_SEQUENCES = 20_000

Batch = tuple[Tensor, Tensor, Tensor]  # input, what queries and keys read, target


class AttentionLayer(nn.Module):
    """One attention layer of width `D_MODEL`, and a read-out of what it delivers.

    The number of parameters is the same for every number of heads.

    Args:
        d_in: number of input features.
        num_heads: number of heads, a divisor of `D_MODEL`.
        d_out: number of output features.
        hidden: width of a hidden layer in the read-out; 0 makes the read-out linear.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.
    """

    def __init__(self, d_in: int, num_heads: int, d_out: int, hidden: int = 0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_in, D_MODEL)
        self.k_proj = nn.Linear(d_in, D_MODEL)
        self.v_proj = nn.Linear(d_in, D_MODEL)
        self.read_out: nn.Module = nn.Linear(D_MODEL, d_out)
        if hidden:
            self.read_out = nn.Sequential(nn.Linear(D_MODEL, hidden), nn.ReLU(), nn.Linear(hidden, d_out))

    def forward(self, x: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        """Attend once.

        Args:
            x: input `(batch, n, d_in)`; the values are made from it.
            where: `(batch, n, d_in)`, or `(1, n, d_in)` for all sequences; queries and keys, so the attention
                weights, are made from it.

        Returns:
            The output `(batch, n, d_out)` and the attention weights `(batch, heads, n, n)`, with one for `batch`
            where `where` has it.
        """
        q, k, v = (self._heads(y) for y in (self.q_proj(where), self.k_proj(where), self.v_proj(x)))
        heads, weights = attention(q, k, v)  # (batch, heads, n, d_k), (batch, heads, n, n)
        side_by_side = heads.transpose(1, 2).flatten(2)  # (batch, n, D_MODEL)
        return self.read_out(side_by_side), weights  # (batch, n, d_out), (batch, heads, n, n)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, n, d_k)


@dataclass(frozen=True)
class ContentRecall:
    """How much of the contents at the offsets came through."""

    explained: float  # share of the variance, 1 = everything
    weights: np.ndarray  # attention weights (heads, n, n), averaged over the test sequences


@dataclass(frozen=True)
class TokenRecall:
    """How often the tokens at the offsets were reported right."""

    each: tuple[float, ...]  # share of right answers, one for each offset
    both: float  # share of positions that got every offset right
    weights: np.ndarray  # attention weights (heads, n, n), averaged over the test sequences


def recall_contents(
    num_heads: int, scores_see_content: bool = False, hidden: int = 0, steps: int = 600, seed: int = 0
) -> ContentRecall:
    """Train one layer to report the random contents at the four offsets -1, -2, -3 and -4.

    A content is `CONTENT` independent standard normal numbers. `D_MODEL` is four contents wide, so the layer has
    room for everything that is asked for.

    Args:
        num_heads: number of heads.
        scores_see_content: whether queries and keys read the contents as well as the positions. If not, the
            attention weights are the same for every sequence, and at most num_heads / 4 of the variance can
            be explained.
        hidden: width of a hidden layer in the read-out; 0 makes it linear.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.
    """

    def make_batch(sequences: int) -> Batch:
        content = torch.randn(sequences, N, CONTENT)  # (batch, n, c)
        x = with_positions(content)  # (batch, n, c + n)
        where = x if scores_see_content else with_positions(torch.zeros_like(content[:1]))
        return x, where, at_offsets(content, CONTENT_OFFSETS).flatten(2)  # target: (batch, n, k * c)

    d_out = len(CONTENT_OFFSETS) * CONTENT
    output, target, weights = _train_and_test(make_batch, F.mse_loss, num_heads, d_out, hidden, steps, seed)
    explained = 1 - (output - target).square().mean() / target.square().mean()
    return ContentRecall(explained.item(), weights)


def recall_tokens(num_heads: int, hidden: int = 0, steps: int = 300, seed: int = 0) -> TokenRecall:
    """Train one layer to name the tokens at the two offsets -1 and -4; every token is one of `CONTENT`.

    Args:
        num_heads: number of heads.
        hidden: width of a hidden layer in the read-out; 0 makes it linear.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.
    """

    def make_batch(sequences: int) -> Batch:
        tokens = torch.randint(CONTENT, (sequences, N))  # (batch, n)
        x = with_positions(F.one_hot(tokens, CONTENT).float())  # (batch, n, c + n)
        return x, x, at_offsets(tokens, TOKEN_OFFSETS)  # target: (batch, n, k)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output.reshape(-1, CONTENT), target.flatten())

    d_out = len(TOKEN_OFFSETS) * CONTENT
    output, target, weights = _train_and_test(make_batch, loss, num_heads, d_out, hidden, steps, seed)
    right = output.unflatten(-1, (len(TOKEN_OFFSETS), CONTENT)).argmax(-1) == target  # (batch, n, k)
    each = tuple(right.float().mean(dim=(0, 1)).tolist())
    return TokenRecall(each, right.all(-1).float().mean().item(), weights)


def best_explained_variance(weights: np.ndarray, offsets: tuple[int, ...]) -> float:
    """The share of the contents' variance that the best read-out gets from fixed attention weights.

    For independent standard normal contents this is exact: nothing is sampled or trained. At each position the
    heads deliver the mixtures `weights[:, i, :] @ contents`; what a read-out can recover of the content at an
    offset is its projection on the span of those mixtures. No read-out does better than the linear one here,
    since everything is jointly normal.

    Args:
        weights: attention weights `(heads, n, n)` that do not depend on the contents.
        offsets: distinct offsets to be reported, counted around the end of the sequence.

    Returns:
        A number from 0 to min(1, heads / len(offsets)).
    """
    n = weights.shape[-1]
    recovered = 0.0
    for i in range(n):
        mixtures = weights[:, i, :]  # (heads, n)
        projection = np.linalg.pinv(mixtures) @ mixtures  # (n, n), of rank at most heads
        recovered += sum(projection[(i + offset) % n, (i + offset) % n] for offset in offsets)
    return float(recovered / (n * len(offsets)))


def at_offsets(x: Tensor, offsets: tuple[int, ...]) -> Tensor:
    """What stands at the offsets from each position, around the end: `(batch, n, …)` to `(batch, n, k, …)`.

    >>> at_offsets(torch.tensor([[10, 11, 12, 13]]), (-1, 2))[0]
    tensor([[13, 12],
            [10, 13],
            [11, 10],
            [12, 11]])
    """
    return torch.stack([x.roll(-offset, dims=1) for offset in offsets], dim=2)  # (batch, n, k, …)


def with_positions(content: Tensor) -> Tensor:
    """The contents `(batch, N, c)` with a one-hot mark of the position beside each: `(batch, N, c + N)`."""
    positions = torch.eye(N).expand(len(content), N, N)  # (batch, n, n)
    return torch.cat([content, positions], dim=-1)  # (batch, n, c + n)


def _train_and_test(
    make_batch: Callable[[int], Batch],
    loss: Callable[[Tensor, Tensor], Tensor],
    num_heads: int,
    d_out: int,
    hidden: int,
    steps: int,
    seed: int,
) -> tuple[Tensor, Tensor, np.ndarray]:
    """Output and target on fresh sequences after training, and the mean attention weights there."""

    def loss_of_a_batch() -> Tensor:
        x, where, target = make_batch(128)
        return loss(layer(x, where)[0], target)

    with reproducible(seed):
        layer = AttentionLayer(CONTENT + N, num_heads, d_out, hidden)
        minimise(loss_of_a_batch, layer.parameters(), steps, peak=1e-2 if hidden else 3e-2)
        with torch.no_grad():
            x, where, target = make_batch(TEST_SEQUENCES)
            output, weights = layer(x, where)
    return output, target, weights.mean(0).numpy()
