"""Induction heads: what a second attention layer can do that one layer cannot, however many heads it has.

A sequence is a block of random tokens, repeated; the length of the block, the *period*, is drawn anew for each
sequence. The repetition can be foretold: find where the current token stood before, and name what came after it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.training import minimise, reproducible
from mha_lib.masks import causal_mask
from mha_lib.torch_attention import attention

VOCABULARY = 16
N = 32  # tokens of a sequence
PERIODS = (6, 16)  # shortest and longest block
D_MODEL = 32
D_K = 16  # width of a head, for every number of heads
TEST_SEQUENCES = 200

Patterns = dict[tuple[int, int], Tensor]  # (layer, head) to attention weights (n, n) that replace its own
Sequences = tuple[Tensor, Tensor]  # tokens (batch, n), periods (batch, 1)


class AttentionOnly(nn.Module):
    """A causal transformer of attention layers alone: no feed-forward layers, no normalisation, no biases.

    Each layer adds the outputs of its heads to its input.

    Args:
        num_layers: number of layers.
        num_heads: heads in each layer, of width `D_K` whatever their number. One layer of four heads has as many
            parameters as two layers of two.

    Source: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
    """

    def __init__(self, num_layers: int, num_heads: int) -> None:
        super().__init__()
        width = num_heads * D_K
        self.num_heads = num_heads
        self.token_embedding = nn.Embedding(VOCABULARY, D_MODEL)
        self.position_embedding = nn.Embedding(N, D_MODEL)
        self.q_proj, self.k_proj, self.v_proj = (
            nn.ModuleList(nn.Linear(D_MODEL, width, bias=False) for _ in range(num_layers)) for _ in range(3)
        )
        self.out_proj = nn.ModuleList(nn.Linear(width, D_MODEL, bias=False) for _ in range(num_layers))
        self.read_out = nn.Linear(D_MODEL, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, patterns: Patterns | None = None) -> tuple[Tensor, list[Tensor]]:
        """Predict each next token.

        Args:
            tokens: `(batch, n)`, n at most `N`.
            patterns: attention weights `(n, n)` to use in place of a head's own, by (layer, head), counted from
                0. All zeros removes the head.

        Returns:
            The scores of the next token `(batch, n, VOCABULARY)`, and for each layer the attention weights
            `(batch, heads, n, n)`.
        """
        n = tokens.shape[1]
        mask = torch.from_numpy(causal_mask(n))  # (n, n)
        x = self.token_embedding(tokens) + self.position_embedding.weight[:n]  # (batch, n, d_model)
        all_weights = []
        for layer, out_proj in enumerate(self.out_proj):
            q, k, v = (self._heads(p[layer](x)) for p in (self.q_proj, self.k_proj, self.v_proj))
            heads, weights = attention(q, k, v, mask)  # (batch, heads, n, d_k), (batch, heads, n, n)
            for (where, head), pattern in (patterns or {}).items():
                if where == layer:
                    weights[:, head] = pattern
                    heads = weights @ v  # (batch, heads, n, d_k)
            x = x + out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)
            all_weights.append(weights)
        return self.read_out(x), all_weights

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, n, d_k)


@dataclass(frozen=True)
class Training:
    """A trained model and how it got there."""

    model: AttentionOnly
    steps: np.ndarray  # (points,): when it was tested
    accuracy: np.ndarray  # (points,): share of right next tokens among those that can be foretold
    previous: np.ndarray  # (points,): largest previous-token score of a head in the first layer
    induction: np.ndarray  # (points,): largest induction score of a head in the last layer


def repeated_sequences(
    sequences: int, periods: tuple[int, int] = PERIODS, distinct: bool = False
) -> Sequences:
    """Draw sequences that repeat a block of random tokens.

    Args:
        sequences: how many.
        periods: shortest and longest block, both included; at most `VOCABULARY`.
        distinct: whether the tokens of a block must differ from each other.

    Returns:
        Tokens `(sequences, N)` and the period of each `(sequences, 1)`.
    """
    shortest, longest = periods
    period = torch.randint(shortest, longest + 1, (sequences, 1))
    if distinct:
        blocks = torch.rand(sequences, VOCABULARY).argsort(dim=1)  # (sequences, VOCABULARY)
    else:
        blocks = torch.randint(VOCABULARY, (sequences, VOCABULARY))  # (sequences, VOCABULARY)
    return blocks.gather(1, torch.arange(N) % period), period  # (sequences, N), (sequences, 1)


def can_be_foretold(sequences: Sequences) -> Tensor:
    """Which next tokens follow from what came before: `(batch, N - 1)`, one for each token but the first.

    They are those of the repeated part for which all earlier occurrences of the current token were followed by
    the same token.
    """
    tokens, period = sequences
    before = seen_before(tokens)  # (batch, N - 1, N - 1)
    followers = tokens[:, None, 1:]  # (batch, 1, N - 1)
    lowest = followers.where(before, VOCABULARY).amin(dim=-1)  # (batch, N - 1)
    highest = followers.where(before, -1).amax(dim=-1)  # (batch, N - 1)
    return (lowest == highest) & (torch.arange(N - 1) >= period)


def seen_before(tokens: Tensor) -> Tensor:
    """Where the current token stood before: `(batch, n + 1)` to `(batch, n, n)`, the last token left out.

    >>> seen_before(torch.tensor([[7, 5, 7, 7, 9]]))[0].int()
    tensor([[0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 0, 0, 0],
            [1, 0, 1, 0]], dtype=torch.int32)
    """
    current = tokens[:, :-1]  # (batch, n)
    return (current[:, :, None] == current[:, None, :]).tril(-1)  # (batch, n, n)


def train(
    num_layers: int,
    num_heads: int = 2,
    periods: tuple[int, int] = PERIODS,
    distinct: bool = False,
    steps: int = 400,
    seed: int = 0,
) -> Training:
    """Train a model to predict the next token of the repeated part.

    Args:
        num_layers: number of layers.
        num_heads: heads in each layer.
        periods: shortest and longest block.
        distinct: whether the tokens of a block must differ from each other.
        steps: number of Adam steps, a multiple of 20.
        seed: seed of the parameters and of the data.
    """
    points: list[tuple[float, ...]] = []

    def loss() -> Tensor:
        tokens, period = repeated_sequences(64, periods, distinct)
        scores, _ = model(tokens[:, :-1])  # (batch, N - 1, VOCABULARY)
        repeated = torch.arange(N - 1) >= period  # (batch, N - 1)
        return F.cross_entropy(scores[repeated], tokens[:, 1:][repeated])

    def measure(step: int) -> None:
        if step % (steps // 20) == 0:
            previous, induction = head_scores(model, test)
            points.append((step, accuracy(model, test), previous[0].max(), induction[-1].max()))

    with reproducible(seed):
        test = repeated_sequences(TEST_SEQUENCES, periods, distinct)
        model = AttentionOnly(num_layers, num_heads)
        minimise(loss, model.parameters(), steps, peak=1e-2, before_step=measure)
    return Training(model, *np.array(points).T)


@torch.no_grad()
def accuracy(model: AttentionOnly, sequences: Sequences, patterns: Patterns | None = None) -> float:
    """Share of right next tokens among those that can be foretold; `patterns` as in `AttentionOnly.forward`."""
    tokens, _ = sequences
    scores, _ = model(tokens[:, :-1], patterns)
    right = scores.argmax(-1) == tokens[:, 1:]  # (batch, N - 1)
    return right[can_be_foretold(sequences)].float().mean().item()


@torch.no_grad()
def head_scores(
    model: AttentionOnly, sequences: Sequences, patterns: Patterns | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What the heads look at: previous-token scores and induction scores, `(layers, heads)` each.

    The *previous-token score* is the mean weight on the token before the query. The *induction score* is the
    mean weight on tokens that came after an earlier occurrence of the query's token, over the queries of the
    repeated part.

    Source: Olsson et al. 2022, In-context Learning and Induction Heads.
    """
    tokens, period = sequences
    weights = torch.stack(model(tokens[:, :-1], patterns)[1])  # (layers, batch, heads, N - 1, N - 1)
    previous = weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=(1, -1))  # (layers, heads)
    after = seen_before(tokens).roll(1, dims=-1)[:, None]  # (batch, 1, N - 1, N - 1)
    found = (weights * after).sum(dim=-1)  # (layers, batch, heads, N - 1)
    repeated = (torch.arange(N - 1) >= period)[:, None]  # (batch, 1, N - 1)
    induction = (found * repeated).sum(dim=(1, -1)) / repeated.sum()  # (layers, heads)
    return previous.numpy(), induction.numpy()
