"""From multi-head to grouped-query attention: key and value heads of a trained layer are pooled, then retrained.

Sharing is a parametrization: a layer stores one block of weights for each group of heads and spreads it over the
group whenever it runs. So the shared weights are trained as one, and the layer's own code does not change.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses
from torch.nn.utils import parametrize

from mha_lib.experiments.one_layer import (
    CONTENT,
    CONTENT_OFFSETS,
    TEST_SEQUENCES,
    AttentionLayer,
    N,
    at_offsets,
)
from mha_lib.experiments.training import minimise, reproducible
from mha_lib.heads import head_dim
from mha_lib.torch_attention import MultiHeadAttention

NUM_HEADS = len(CONTENT_OFFSETS)  # one for each answer
PEAK = 3e-2  # learning rate


class SharedHeads(nn.Module):
    """Weights of one projection that neighbouring heads share.

    Args:
        num_heads: number of heads that use the weights.
        num_kv_heads: number of blocks that are stored; it divides `num_heads`.

    Raises:
        ValueError: if `num_heads` is not a multiple of `num_kv_heads`.

    Source: Ainslie et al. 2023, GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
    Checkpoints, section 2.1.
    """

    def __init__(self, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        self.num_kv_heads = num_kv_heads
        self.group = head_dim(num_heads, num_kv_heads)  # heads that share one block

    def right_inverse(self, full: Tensor) -> Tensor:
        """Pool the heads of each group into their mean.

        Args:
            full: `(num_heads * d_k, ...)`: the weights, `(out, in)`, or the bias.

        Returns:
            `(num_kv_heads * d_k, ...)`.
        """
        blocks = full.unflatten(0, (self.num_kv_heads, self.group, -1))  # (kv_heads, group, d_k, …)
        return blocks.mean(1).flatten(0, 1)  # (kv_heads * d_k, …)

    def forward(self, pooled: Tensor) -> Tensor:
        """Give every head of a group the group's block: `(num_kv_heads * d_k, ...)` to `(num_heads * d_k, ...)`."""
        blocks = pooled.unflatten(0, (self.num_kv_heads, -1))  # (kv_heads, d_k, …)
        return blocks.repeat_interleave(self.group, dim=0).flatten(0, 1)  # (heads * d_k, …)


@dataclass(frozen=True)
class Uptraining:
    """Share of positions that name all four tokens right, on fresh sequences."""

    num_kv_heads: int
    pooled: float  # the trained layer with its key and value heads pooled
    uptrained: float  # and then trained for some steps more


def share_kv_heads(attention: AttentionLayer | MultiHeadAttention, num_kv_heads: int) -> None:
    """Pool the key heads and the value heads of a layer into fewer, in place.

    Args:
        attention: a layer with `num_heads` and the linear layers `k_proj` and `v_proj`, whose output features
            are the heads side by side.
        num_kv_heads: number of heads that are left of each; it divides `num_heads`. Query head i uses key and
            value head `i // (num_heads // num_kv_heads)`.

    Raises:
        ValueError: if `num_heads` is not a multiple of `num_kv_heads`.

    Source: Ainslie et al. 2023, GQA, section 2.1.
    """
    for projection in (attention.k_proj, attention.v_proj):
        for name in ("weight", "bias"):
            shared = SharedHeads(attention.num_heads, num_kv_heads)
            parametrize.register_parametrization(projection, name, shared)


def uptrain(
    kv_counts: Sequence[int], steps: int = 300, extra: int = 30, seed: int = 0
) -> tuple[float, list[Uptraining]]:
    """Train a layer with four heads to name the tokens at four offsets, pool its keys and values, train on.

    Args:
        kv_counts: the numbers of key and value heads to try: 1, 2 or 4.
        steps: number of Adam steps before pooling.
        extra: number of Adam steps after pooling.
        seed: seed of the parameters and of the data.

    Returns:
        The share of right positions before pooling, and what became of it for each number.

    Source: Ainslie et al. 2023, GQA, section 2.1 (there `extra` is 5 % of the steps).
    """
    with reproducible(seed):
        trained = _new_layer()
        _train(trained, steps)
        before, results = _share_right(trained), []
        for num_kv_heads in kv_counts:
            layer = copy.deepcopy(trained)
            share_kv_heads(layer, num_kv_heads)
            pooled = _share_right(layer)
            _train(layer, extra)
            results.append(Uptraining(num_kv_heads, pooled, _share_right(layer)))
    return before, results


def train_shared(num_kv_heads: int, steps: int, seed: int = 0) -> float:
    """The control: the same task, with shared key and value heads from the start.

    Args:
        num_kv_heads: number of key and value heads: 1, 2 or 4.
        steps: number of Adam steps.
        seed: seed of the parameters and of the data.

    Returns:
        The share of positions that name all four tokens right.
    """
    with reproducible(seed):
        layer = _new_layer()
        share_kv_heads(layer, num_kv_heads)
        _train(layer, steps)
        return _share_right(layer)


def _new_layer() -> AttentionLayer:
    return AttentionLayer(CONTENT + N, NUM_HEADS, NUM_HEADS * CONTENT)


def _batch(sequences: int) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(CONTENT, (sequences, N))  # (batch, n)
    positions = torch.eye(N).expand(sequences, N, N)  # (batch, n, n)
    x = torch.cat([F.one_hot(tokens, CONTENT).float(), positions], dim=-1)  # (batch, n, c + n)
    return x, at_offsets(tokens, CONTENT_OFFSETS)  # target: (batch, n, k)


def _answers(layer: AttentionLayer, x: Tensor) -> Tensor:
    return layer(x, x)[0].unflatten(-1, (-1, CONTENT))  # (batch, n, k, c)


def _train(layer: AttentionLayer, steps: int) -> None:
    def loss() -> Tensor:
        x, target = _batch(128)
        return F.cross_entropy(_answers(layer, x).flatten(0, 2), target.flatten())

    minimise(loss, layer.parameters(), steps, PEAK)


def _share_right(layer: AttentionLayer) -> float:
    with torch.no_grad():
        x, target = _batch(TEST_SEQUENCES // 10)
        return float((_answers(layer, x).argmax(-1) == target).all(-1).float().mean())
