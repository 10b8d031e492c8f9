"""What tells a head where its tokens stand: one attention layer with each way to say it, on a task of order alone.

The task: name the token that stood a given number of places back. All tokens are drawn at random, so nothing but
their places can help.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.one_layer import reproducible
from mha_lib.positions import rotary

KINDS = ("none", "sinusoidal", "learned", "ALiBi", "rotary")
VOCABULARY = 16
LONGEST = 64  # tokens that the table of learned positions has rows for


def sinusoidal(n: int, d_model: int) -> Tensor:
    """The positions of the first Transformer, `(n, d_model)`: sines and cosines of ever longer waves.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.5.

    >>> sinusoidal(2, 4).round(decimals=2)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8400, 0.5400, 0.0100, 1.0000]])
    """
    pair = torch.arange(d_model // 2)  # (d_model / 2,)
    angles = torch.arange(n)[:, None] * 10000.0 ** (-2 * pair / d_model)  # (n, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # (n, d_model)


def alibi_slopes(num_heads: int) -> Tensor:
    """How much each head's scores fall with every token of distance, `(heads,)`.

    For a power of two they are 2^(-8/heads), 2^(-16/heads), … 2^(-8). For another number of heads, those of the
    next lower power of two come first, and then every second one of those of twice that power.

    Source: Press et al. 2022, Train Short, Test Long, section 3 and the code published with it.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = 2.0 ** (-8 / power * torch.arange(1, power + 1))  # (power,)
    between = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2))  # (power,)
    return torch.cat([slopes, between[: num_heads - power]])  # (heads,)


def alibi_bias(n: int, num_heads: int) -> Tensor:
    """What ALiBi adds to the scores of each head: minus its slope times the distance, `(heads, n, n)`."""
    distance = torch.arange(n)[:, None] - torch.arange(n)  # (n, n)
    return -alibi_slopes(num_heads)[:, None, None] * distance.clamp(min=0)  # (heads, n, n)


class OrderLayer(nn.Module):
    """Token embeddings, one causal attention layer without biases, and a linear read-out.

    Args:
        kind: one of `KINDS`: how the layer is told where tokens stand.
        num_heads: number of heads.
        d_k: their width.

    Raises:
        ValueError: if there is no such kind.
    """

    def __init__(self, kind: str, num_heads: int = 4, d_k: int = 16) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is not one of {', '.join(KINDS)}")
        d_model = num_heads * d_k
        self.kind, self.num_heads = kind, num_heads
        self.embedding = nn.Embedding(VOCABULARY, d_model)
        self.table = nn.Embedding(LONGEST, d_model) if kind == "learned" else None
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.read_out = nn.Linear(d_model, VOCABULARY)

    def forward(self, tokens: Tensor, shift: int = 0) -> tuple[Tensor, Tensor]:
        """Scores of the token that is asked for, `(batch, n, VOCABULARY)`, and the weights `(batch, heads, n, n)`.

        Args:
            tokens: `(batch, n)`.
            shift: the position of the first token.
        """
        n, x = tokens.shape[1], self.embedding(tokens)  # (batch, n, d_model)
        positions = torch.arange(shift, shift + n)  # (n,)
        if self.kind == "sinusoidal":
            x = x + sinusoidal(shift + n, x.shape[-1])[shift:]
        if self.table is not None:
            x = x + self.table(positions)
        Q, K, V = (
            project(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, n, d_k)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.kind == "rotary":
            Q, K = rotary(Q, positions), rotary(K, positions)
        scores = Q @ K.mT / Q.shape[-1] ** 0.5  # (batch, heads, n, n)
        if self.kind == "ALiBi":
            scores = scores + alibi_bias(n, self.num_heads)
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        weights = scores.masked_fill(~causal, float("-inf")).softmax(dim=-1)  # (batch, heads, n, n)
        return self.read_out((weights @ V).transpose(1, 2).flatten(2)), weights


@dataclass(frozen=True)
class Trained:
    """A trained layer and what it can do."""

    layer: OrderLayer
    same_length: float  # share of right answers at the length that it was trained at
    longer: float  # at three times that length, on the places that training never had
    shifted: float  # at the trained length, with all positions larger by half of it


def train(
    kind: str,
    back: int = 1,
    *,
    num_heads: int = 4,
    d_k: int = 16,
    n: int = 16,
    steps: int = 300,
    seed: int = 0,
) -> Trained:
    """Train a layer to name the token `back` places before each one, and test it at other places.

    Args:
        kind: one of `KINDS`.
        back: how far back the token stands that is asked for.
        num_heads, d_k: heads and their width.
        n: length of the sequences.
        steps: number of Adam steps with 64 sequences each.
        seed: seed of the parameters and of the data.
    """
    with reproducible(seed):
        layer = OrderLayer(kind, num_heads, d_k)
        optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
        for _ in range(steps):
            tokens = torch.randint(VOCABULARY, (64, n))
            scores, _ = layer(tokens)
            loss = F.cross_entropy(scores[:, back:].flatten(0, 1), tokens[:, : n - back].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        return Trained(
            layer,
            same_length=_right(layer, back, n, from_place=back),
            longer=_right(layer, back, 3 * n, from_place=n),
            shifted=_right(layer, back, n, from_place=back, shift=n // 2),
        )


@torch.no_grad()
def _right(layer: OrderLayer, back: int, n: int, from_place: int, shift: int = 0) -> float:
    """Share of right answers from a place on, for 200 sequences of n tokens."""
    tokens = torch.randint(VOCABULARY, (200, n))
    named = layer(tokens, shift)[0].argmax(-1)  # (batch, n)
    return (named[:, from_place:] == tokens[:, from_place - back : n - back]).float().mean().item()


@torch.no_grad()
def pair_margins(layer: OrderLayer, back: int = 1, farthest: int = 8) -> tuple[Tensor, Tensor]:
    """What each pair of features of a rotary layer adds to the score of the key that stands `back` places before.

    Args:
        layer: a trained layer of kind "rotary".
        back: which key is meant.
        farthest: the other keys are those from the query's own to this many places before.

    Returns:
        The mean score of that key less the mean of the others, by head and pair, `(heads, d_k / 2)`; and the mean
        weight on that key, `(heads,)`.
    """
    with reproducible(1):
        tokens = torch.randint(VOCABULARY, (200, farthest + 1))
    x = layer.embedding(tokens)  # (batch, n, d_model)
    positions = torch.arange(farthest + 1)
    Q, K = (
        rotary(project(x).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2), positions)
        for project in (layer.q_proj, layer.k_proj)
    )  # each (batch, heads, n, d_k)
    products = (Q[:, :, -1:] * K / Q.shape[-1] ** 0.5).unflatten(-1, (2, -1)).sum(dim=-2)
    by_distance = products.mean(dim=0).flip(1)  # (heads, distance, d_k / 2)
    others = torch.arange(farthest + 1) != back
    weights = layer(tokens)[1][:, :, -1].flip(-1)  # (batch, heads, distance)
    return by_distance[:, back] - by_distance[:, others].mean(dim=1), weights[..., back].mean(dim=0)
