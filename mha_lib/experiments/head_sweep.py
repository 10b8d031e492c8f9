"""How many heads: key-value recall with heads of every width, from one wide head to many of width 1.

Every token of a sequence carries a key (one of `KEYS`, all different) and a value (one of `VALUES`). Every query
names some of the keys and wants their values. One attention layer and a linear read-out do the work.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.training import minimise, reproducible
from mha_lib.torch_attention import attention

KEYS = 64
VALUES = 8
N = 12  # queries, and tokens, of a sequence
D_MODEL = 64
TEST_SEQUENCES = 2000

Batch = tuple[Tensor, Tensor, Tensor]  # queries, tokens, right values


class RecallLayer(nn.Module):
    """One attention layer from queries to tokens, with a linear read-out in the place of W_O.

    Args:
        num_heads: number of heads.
        d_k: width of a head. None makes it `D_MODEL` / num_heads, and then the number of parameters is the
            same for every number of heads.
        asked: how many keys a query names.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2.
    """

    def __init__(self, num_heads: int, d_k: int | None = None, asked: int = 2) -> None:
        super().__init__()
        width = num_heads * (d_k or D_MODEL // num_heads)
        self.num_heads = num_heads
        self.q_proj = nn.Linear(asked * KEYS, width)
        self.k_proj = nn.Linear(KEYS + VALUES, width)
        self.v_proj = nn.Linear(KEYS + VALUES, width)
        self.read_out = nn.Linear(width, asked * VALUES)

    def forward(self, queries: Tensor, tokens: Tensor) -> Tensor:
        """From queries `(batch, n, asked * KEYS)` and tokens `(batch, m, KEYS + VALUES)` to a score for each
        value, `(batch, n, asked, VALUES)`."""
        q, k, v = (self._heads(y) for y in (self.q_proj(queries), self.k_proj(tokens), self.v_proj(tokens)))
        heads, _ = attention(q, k, v)  # (batch, heads, n, d_k)
        side_by_side = heads.transpose(1, 2).flatten(2)  # (batch, n, heads * d_k)
        return self.read_out(side_by_side).unflatten(-1, (-1, VALUES))  # (batch, n, asked, VALUES)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, n, d_k)


def make_batch(sequences: int, asked: int) -> Batch:
    """Draw queries `(sequences, N, asked * KEYS)`, tokens `(sequences, N, KEYS + VALUES)` and the right values
    `(sequences, N, asked)`. The keys that a query names are different ones, all of them in the sequence."""
    keys = torch.rand(sequences, KEYS).argsort(dim=1)[:, :N]  # (batch, n)
    values = torch.randint(VALUES, (sequences, N))  # (batch, n)
    tokens = torch.cat([F.one_hot(keys, KEYS), F.one_hot(values, VALUES)], dim=-1).float()  # (batch, n, …)
    chosen = torch.rand(sequences, N, N).argsort(dim=-1)[..., :asked].flatten(1)  # (batch, n * asked)
    named = F.one_hot(keys.gather(1, chosen), KEYS).float()  # (batch, n * asked, KEYS)
    return (
        named.reshape(sequences, N, asked * KEYS),
        tokens,
        values.gather(1, chosen).view(sequences, N, asked),
    )


def key_value_recall(
    num_heads: int, d_k: int | None = None, asked: int = 2, steps: int = 400, seed: int = 0
) -> float:
    """Train a layer, and return the share of queries on fresh sequences that got all their values right.

    Args:
        num_heads: number of heads.
        d_k: width of a head; None makes it `D_MODEL` / num_heads.
        asked: how many keys a query names.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.
    """

    def loss() -> Tensor:
        queries, tokens, right = make_batch(32, asked)
        return F.cross_entropy(layer(queries, tokens).flatten(0, 2), right.flatten())

    with reproducible(seed):
        layer = RecallLayer(num_heads, d_k, asked)
        minimise(loss, layer.parameters(), steps, peak=3e-2)
        with torch.no_grad():
            queries, tokens, right = make_batch(TEST_SEQUENCES, asked)
            answers = layer(queries, tokens).argmax(-1)  # (batch, n, asked)
    return (answers == right).all(-1).float().mean().item()
