"""Stacks of Transformer blocks: pointers that are followed, and the gradients that a deep stack starts from.

*Following pointers* (`follow_pointers`): every position holds a letter and points to another position. It must
report the letter that stands where its pointer leads, where the pointer found there leads, and so on.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.training import minimise, reproducible
from mha_lib.transformer import TransformerBlock

N = 8  # positions of a sequence, and letters: each stands at one position
D_MODEL = 32


class BlockStack(nn.Module):
    """Tokens go through a linear layer, blocks on top of each other, and a linear read-out.

    Args:
        d_in: number of input features.
        num_blocks: number of blocks.
        num_heads: heads of each block, a divisor of `d_model`.
        d_ff: width inside the feed-forward networks.
        d_out: number of output features.
        norm_first: True for pre-norm blocks, with one more norm behind the last; False for post-norm.
        d_model: width of the stack.

    Source: Xiong et al. 2020, On Layer Normalization in the Transformer Architecture, section 3.
    """

    def __init__(
        self,
        d_in: int,
        num_blocks: int,
        num_heads: int,
        d_ff: int,
        d_out: int,
        norm_first: bool = True,
        d_model: int = D_MODEL,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(d_in, d_model)
        self.blocks = nn.Sequential(
            *(TransformerBlock(d_model, num_heads, d_ff, norm_first) for _ in range(num_blocks))
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.read_out = nn.Linear(d_model, d_out)

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens `(batch, n, d_in)` to `(batch, n, d_out)`."""
        x = self.blocks(self.embed(x))  # (batch, n, d_model)
        return self.read_out(self.norm(x))  # (batch, n, d_out)


@dataclass(frozen=True)
class PointersFollowed:
    """How a trained stack did, and how large it was."""

    right: float  # share of positions that reported the right letter
    parameters: int


def follow_pointers(
    num_blocks: int, num_heads: int, hops: int, d_ff: int = 64, steps: int = 400, seed: int = 0
) -> PointersFollowed:
    """Train a stack of blocks to report the letter that lies a number of hops away.

    Args:
        num_blocks: blocks of the stack.
        num_heads: heads of each block, a divisor of `D_MODEL`.
        hops: how many pointers to follow; 1 asks for the letter that one's own pointer leads to.
        d_ff: width inside the feed-forward networks.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.
    """

    def loss() -> Tensor:
        x, target = pointer_batch(128, hops)
        return F.cross_entropy(stack(x).flatten(0, 1), target.flatten())

    with reproducible(seed):
        stack = BlockStack(3 * N, num_blocks, num_heads, d_ff, N)
        minimise(loss, stack.parameters(), steps, peak=1e-2)
        with torch.no_grad():
            x, target = pointer_batch(4000, hops)
            right = (stack(x).argmax(-1) == target).float().mean().item()
    return PointersFollowed(right, sum(p.numel() for p in stack.parameters()))


def pointer_batch(sequences: int, hops: int) -> tuple[Tensor, Tensor]:
    """Sequences in which pointers lead once around all positions, and the letters to be reported.

    Args:
        sequences: how many.
        hops: how many pointers lead from a position to the letter that it must report.

    Returns:
        The input `(sequences, N, 3 * N)`, at each position the one-hot pointer, the one-hot letter and the
        one-hot position; and the letters `(sequences, N)`, as numbers. Each letter occurs once.
    """
    tour = torch.rand(sequences, N).argsort(dim=-1)  # (sequences, N): positions in the order of a random tour
    pointer = torch.empty_like(tour).scatter_(1, tour, tour.roll(-1, dims=1))  # (sequences, N)
    letter = torch.rand(sequences, N).argsort(dim=-1)  # (sequences, N)
    end = position = torch.arange(N).expand(sequences, N)
    for _ in range(hops):
        end = pointer.gather(1, end)  # (sequences, N)
    one_hot = [F.one_hot(numbers, N) for numbers in (pointer, letter, position)]
    return torch.cat(one_hot, dim=-1).float(), letter.gather(1, end)


def gradient_norms(num_blocks: int, norm_first: bool, xavier: bool = True, seeds: int = 4) -> np.ndarray:
    """Size of the gradients in a fresh stack: the norm for the weights of each `feed_forward.down`.

    The tokens are random, and so are the labels, one of ten for each token. There are 4 heads.

    Args:
        num_blocks: blocks of the stack.
        norm_first: True for pre-norm, False for post-norm.
        xavier: True draws the weights as Glorot and Bengio propose, False as PyTorch's linear layers do.
        seeds: how many fresh stacks to measure.

    Returns:
        The norms `(seeds, num_blocks)`, from the block at the input to the block at the output.

    Source: Xiong et al. 2020, On Layer Normalization in the Transformer Architecture, section 3.3.
    """
    norms = []
    for seed in range(seeds):
        with reproducible(seed):
            stack = BlockStack(D_MODEL, num_blocks, 4, 4 * D_MODEL, 10, norm_first)
            for layer in stack.modules():
                if xavier and isinstance(layer, nn.Linear):
                    nn.init.xavier_uniform_(layer.weight)
                    nn.init.zeros_(layer.bias)
            x, label = torch.randn(16, 8, D_MODEL), torch.randint(10, (16, 8))
            F.cross_entropy(stack(x).flatten(0, 1), label.flatten()).backward()
        weights = [stack.get_parameter(f"blocks.{i}.feed_forward.down.weight") for i in range(num_blocks)]
        norms.append([w.grad.norm().item() for w in weights if w.grad is not None])
    return np.array(norms)
