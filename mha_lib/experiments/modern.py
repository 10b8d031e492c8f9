"""Small runs beside the chapter on heads since 2023: recall with other scores, heads with nothing to say, circuits.

*Recall*: so many pairs of a key and a value, and one query for each pair, which names its key; the layer reports
the value. *Nothing to say*: some tokens must report the token before, and the others must add nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.experiments.induction import AttentionOnly
from mha_lib.experiments.one_layer import reproducible

KEYS, VALUES = 64, 8
CAP = 20.0  # of the soft cap
CONTENT, PLACES = 8, 12


# --- recall ------------------------------------------------------------------------------------------------


class RecallLayer(nn.Module):
    """One head that finds the pair whose key a query names, and a read-out of its value.

    Args:
        kind: what the scores are: "softmax" (divided by √d_k), "1/d" (divided by d_k), "QK-norm", "soft cap", or
            "linear" for attention without a softmax.
        d_k: width of queries, keys and values.
        d_model: width of the embeddings.
    """

    def __init__(self, kind: str, d_k: int, d_model: int = 64) -> None:
        super().__init__()
        self.kind = kind
        self.keys, self.values = nn.Embedding(KEYS, d_model), nn.Embedding(VALUES, d_model)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_k, bias=False) for _ in range(3))
        self.g = nn.Parameter(torch.tensor(10.0))
        self.read_out = nn.Linear(d_k, VALUES)

    def forward(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The answers `(batch, pairs, VALUES)`, and the scores `(batch, pairs, pairs)`."""
        pairs = self.keys(keys) + self.values(values)  # (batch, pairs, d_model)
        q, k, v = self.q_proj(self.keys(keys)), self.k_proj(pairs), self.v_proj(pairs)
        if self.kind == "linear":
            q, k = F.elu(q) + 1, F.elu(k) + 1  # positive
            state = k.mT @ v  # (batch, d_k, d_k): all that is kept of the pairs
            return self.read_out(q @ state / (q @ k.sum(dim=1).unsqueeze(-1))), q @ k.mT
        if self.kind == "QK-norm":
            scores = self.g * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
        else:
            scores = q @ k.mT / (q.shape[-1] if self.kind == "1/d" else q.shape[-1] ** 0.5)
        if self.kind == "soft cap":
            scores = CAP * torch.tanh(scores / CAP)
        return self.read_out(scores.softmax(dim=-1) @ v), scores


@dataclass(frozen=True)
class Recall:
    """A trained layer."""

    layer: RecallLayer
    accuracy: float  # share of right values
    largest: list[float]  # the largest score at each tenth of the training
    spread: float  # standard deviation of q · k before training, for keys that are not the query's own
    growth: float  # by how much training raised the mean q · k of a query and its own key


def drawn_pairs(batch: int, pairs: int) -> tuple[Tensor, Tensor]:
    """Distinct keys and any values, `(batch, pairs)` each."""
    return torch.rand(batch, KEYS).argsort(dim=1)[:, :pairs], torch.randint(VALUES, (batch, pairs))


def train_recall(
    kind: str, pairs: int = 16, d_k: int = 16, *, lr: float = 5e-3, steps: int = 300, seed: int = 0
) -> Recall:
    """Train a layer to recall; arguments as in `RecallLayer`, and Adam's learning rate and number of steps."""
    largest = []
    with reproducible(seed):
        layer = RecallLayer(kind, d_k)
        start, spread = products(layer)
        optimizer = torch.optim.Adam(layer.parameters(), lr=lr, fused=True)
        for step in range(steps):
            keys, values = drawn_pairs(64, pairs)
            answers, scores = layer(keys, values)
            if step % (steps // 10) == 0:
                largest.append(scores.abs().max().item())
            loss = F.cross_entropy(answers.flatten(0, 1), values.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            keys, values = drawn_pairs(500, pairs)
            right = layer(keys, values)[0].argmax(-1) == values
    return Recall(layer, right.float().mean().item(), largest, spread, products(layer)[0] - start)


@torch.no_grad()
def products(layer: RecallLayer) -> tuple[float, float]:
    """Mean of q · k for a query and its own key, and the standard deviation of q · k for other keys."""
    with reproducible(1):
        keys, values = drawn_pairs(200, 16)
    pairs = layer.keys(keys) + layer.values(values)
    dots = layer.q_proj(layer.keys(keys)) @ layer.k_proj(pairs).mT  # (batch, pairs, pairs)
    own = torch.eye(16, dtype=torch.bool)
    return dots[:, own].mean().item(), dots[:, ~own].std().item()


# --- nothing to say ----------------------------------------------------------------------------------------


class QuietLayer(nn.Module):
    """One head without biases, in a text of which some tokens ask for the token before and the others for nothing.

    Args:
        kind: "softmax", "first token" (softmax, with a token in front that holds nothing), "off by one" or "gate".
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        d_in, d_k = CONTENT + PLACES + 2, 32
        self.q_proj, self.k_proj = nn.Linear(d_in, d_k), nn.Linear(d_in, d_k)
        self.v_proj, self.out_proj = (
            nn.Linear(d_in, CONTENT, bias=False),
            nn.Linear(CONTENT, CONTENT, bias=False),
        )
        self.gate = nn.Linear(d_in, 1) if kind == "gate" else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The output `(batch, n, CONTENT)` and the weights `(batch, n, m)`, with a first token if there is one."""
        context = x
        if self.kind == "first token":
            first = torch.zeros_like(x[:, :1])
            first[..., -1] = 1.0  # marks it; it holds nothing else
            context = torch.cat([first, x], dim=1)  # (batch, m, d_in)
        scores = self.q_proj(x) @ self.k_proj(context).mT / 32**0.5  # (batch, n, m)
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(context.shape[1] - x.shape[1])
        scores = scores.masked_fill(~causal, float("-inf"))
        if self.kind == "off by one":
            zero = torch.zeros_like(scores[..., :1])
            weights = torch.cat([zero, scores], dim=-1).softmax(dim=-1)[..., 1:]  # they sum to less than 1
        else:
            weights = scores.softmax(dim=-1)
        heads = weights @ self.v_proj(context)  # (batch, n, CONTENT)
        if self.gate is not None:
            heads = heads * self.gate(x).sigmoid()
        return self.out_proj(heads), weights


def quiet_batch(batch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens `(batch, n, d_in)`, what they should report `(batch, n, CONTENT)`, and which ask `(batch, n)`."""
    content = torch.randn(batch, PLACES, CONTENT)
    asks = torch.rand(batch, PLACES) < 0.3
    asks[:, 0] = False
    places = torch.eye(PLACES).expand(batch, -1, -1)
    x = torch.cat([content, places, asks[..., None].float(), torch.zeros(batch, PLACES, 1)], dim=-1)
    target = content.roll(1, dims=1) * asks[..., None]
    return x, target, asks


@dataclass(frozen=True)
class Quiet:
    """How a trained head does."""

    asked: float  # mean squared error where a token asks, per number; 1 is as bad as reporting nothing
    quiet: float  # mean square of what is added where nothing is asked for
    on_first: float  # mean weight on the first token where nothing is asked for
    weight_sum: float  # mean sum of the weights there


def train_quiet(kind: str, steps: int = 600, seed: int = 0) -> Quiet:
    """Train a head of this kind, and measure it."""
    with reproducible(seed):
        layer = QuietLayer(kind)
        optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
        for _ in range(steps):
            x, target, _ = quiet_batch(64)
            loss = F.mse_loss(layer(x)[0], target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            x, target, asks = quiet_batch(1000)
            output, weights = layer(x)
    error = (output - target).square().mean(dim=-1)  # (batch, n)
    return Quiet(
        error[asks].mean().item(),
        error[~asks].mean().item(),
        weights[..., 0][~asks].mean().item(),
        weights.sum(dim=-1)[~asks].mean().item(),
    )


# --- scores, tiles, circuits -------------------------------------------------------------------------------


def differential_weights(q: tuple[Tensor, Tensor], k: tuple[Tensor, Tensor], lam: float) -> Tensor:
    """The weights of differential attention: those of one head less `lam` times those of another, `(..., n, m)`.

    Source: Ye et al. 2024, Differential Transformer, section 2.1.
    """
    first, second = ((a @ b.mT / a.shape[-1] ** 0.5).softmax(dim=-1) for a, b in zip(q, k, strict=True))
    return first - lam * second


def online_attention(q: Tensor, k: Tensor, v: Tensor, tile: int) -> Tensor:
    """Attention that reads keys and values tile by tile, and never holds more than `tile` scores of a query.

    Source: Milakov and Gimelshein 2018, Online normalizer calculation for softmax; Dao et al. 2022, FlashAttention.

    Args:
        q: `(n, d_k)`.
        k: `(m, d_k)`.
        v: `(m, d_v)`.
        tile: number of keys in a tile.
    """
    largest = torch.full((len(q), 1), float("-inf"), dtype=q.dtype)
    total, output = torch.zeros_like(largest), torch.zeros(len(q), v.shape[1], dtype=q.dtype)
    for k_tile, v_tile in zip(k.split(tile), v.split(tile), strict=True):
        scores = q @ k_tile.T / q.shape[-1] ** 0.5  # (n, tile)
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        shrink, weights = (largest - new).exp(), (scores - new).exp()  # what came before, and this tile
        total = total * shrink + weights.sum(dim=-1, keepdim=True)
        output = output * shrink + weights @ v_tile
        largest = new
    return output / total


@torch.no_grad()
def circuits(model: AttentionOnly, feeder: int, finder: int) -> tuple[Tensor, Tensor]:
    """Two circuits of an induction model, as tables over the vocabulary, `(VOCABULARY, VOCABULARY)` each.

    Args:
        model: a trained model of two layers.
        feeder: the previous-token head in layer 0.
        finder: an induction head in layer 1.

    Returns:
        The QK circuit of the finder through the feeder: the score, without the root, of a query that is token i at
        a key before which token j stood. And its OV circuit: what attending to token i adds to the logit of
        token j.

    Source: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
    """
    tokens = model.token_embedding.weight  # (VOCABULARY, d_model)

    def block(projection: nn.Module, head: int, rows: bool = True) -> Tensor:
        weight = projection.get_parameter("weight")
        width = (weight.shape[0] if rows else weight.shape[1]) // model.num_heads
        part = slice(head * width, (head + 1) * width)
        return weight[part] if rows else weight[:, part]

    moved = block(model.out_proj[0], feeder, rows=False) @ block(
        model.v_proj[0], feeder
    )  # (d_model, d_model)
    q = tokens @ block(model.q_proj[1], finder).T  # (VOCABULARY, d_k)
    k = tokens @ moved.T @ block(model.k_proj[1], finder).T  # (VOCABULARY, d_k)
    copied = block(model.out_proj[1], finder, rows=False) @ block(model.v_proj[1], finder)
    return q @ k.T, tokens @ copied.T @ model.read_out.weight.T
