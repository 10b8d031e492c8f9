"""Two look-ups, the second with the answer of the first: what one layer can bring, and what two layers can.

A sequence holds `n` pointers, `n` contents and `n` queries. Query i names pointer i, pointer i names a content,
and query i must report which content that is and what it holds. A content is `CONTENT` independent standard
normal numbers. Neither a query nor a content knows what the pointers say, so in *one* layer the weights from a
query to the contents are the same whichever content is wanted.

Source: Peng, Narayanan and Papadimitriou 2024, On Limitations of the Transformer Architecture.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.block_stack import D_MODEL, BlockStack
from mha_lib.experiments.training import reproducible

CONTENT = 8  # numbers of a content
KINDS = 3  # queries, pointers, contents
TEST_SEQUENCES = 2000


@dataclass(frozen=True)
class Composed:
    """How a trained stack did, and how large it was."""

    named: float  # share of queries that report the right pointer: the first look-up
    explained: float  # share of the variance of the wanted contents: both look-ups
    parameters: int


def compose(
    num_blocks: int,
    num_heads: int,
    n: int = 8,
    d_model: int = D_MODEL,
    steps: int = 600,
    seed: int = 0,
) -> Composed:
    """Train a stack of pre-norm blocks to read a pointer and to report what it leads to.

    The loss is the sum of both reports' losses, so that the first look-up is learned for its own sake.

    Args:
        num_blocks: blocks of the stack.
        num_heads: heads of each block, a divisor of `d_model`.
        n: number of queries, of pointers and of contents.
        d_model: width of the stack; the feed-forward networks are twice as wide.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.
    """
    with reproducible(seed):
        stack = BlockStack(
            2 * n + CONTENT + KINDS, num_blocks, num_heads, 2 * d_model, n + CONTENT, d_model=d_model
        )
        optimizer = torch.optim.Adam(stack.parameters(), lr=1e-2, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
        for _ in range(steps):
            x, pointer, content = composition_batch(64, n)
            named, found = reports(stack, x, n)
            loss = F.mse_loss(found, content) + F.cross_entropy(named.flatten(0, 1), pointer.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            x, pointer, content = composition_batch(TEST_SEQUENCES, n)
            named, found = reports(stack, x, n)
    right = (named.argmax(-1) == pointer).float().mean().item()
    explained = 1 - ((found - content).square().mean() / content.square().mean()).item()
    return Composed(right, explained, sum(p.numel() for p in stack.parameters()))


def reports(stack: BlockStack, x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """What the queries report: scores of the pointers `(batch, n, n)` and the contents `(batch, n, CONTENT)`."""
    out = stack(x)[:, :n]  # (batch, n, n + CONTENT)
    return out[..., :n], out[..., n:]


def composition_batch(sequences: int, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw sequences of `n` queries, `n` pointers and `n` contents.

    Returns:
        The input `(sequences, 3 * n, 2 * n + CONTENT + KINDS)`: in each row the one-hot number of the query,
        pointer or content, the one-hot number that a pointer names, what a content holds, and the one-hot kind
        of the token; what pointer i names `(sequences, n)`; and what query i must report `(sequences, n,
        CONTENT)`. Pointers are independent of each other, and several may name the same content.
    """
    number = torch.eye(n).expand(sequences, n, n)
    pointer = torch.randint(n, (sequences, n))
    content = torch.randn(sequences, n, CONTENT)
    no_pointer, no_content = torch.zeros(sequences, n, n), torch.zeros(sequences, n, CONTENT)
    columns = (
        (number, no_pointer, no_content),
        (number, F.one_hot(pointer, n).float(), no_content),
        (number, no_pointer, content),
    )
    tokens = [
        torch.cat([*parts, kind.expand(sequences, n, KINDS)], dim=-1)
        for parts, kind in zip(columns, torch.eye(KINDS), strict=True)
    ]
    wanted = content.gather(1, pointer[..., None].expand(sequences, n, CONTENT))  # (sequences, n, CONTENT)
    return torch.cat(tokens, dim=1), pointer, wanted
