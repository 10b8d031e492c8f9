"""Which heads of a trained model can go: importance of heads, and what the model loses as heads are masked.

Heads are numbered through: head 12*i + j is head j of layer i, both counted from 0. A *trial* is a set of triples
of sentences (see `mha_lib.minilm.paraphrases`) that the model can be run on with any heads masked. The order in
which heads go is chosen on one trial, and what it costs is measured on another.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.minilm.encoder import MiniLMEncoder, all_heads, gated_attention, sentence_vectors
from mha_lib.transformer import TransformerBlock

SCALE = 20.0  # cosines lie between -1 and 1; times 20 they are logits that can be sure of something


class Trial:
    """Triples of sentences, ready to be run with any gates on the heads.

    Args:
        encoder: the model.
        triples: anchor, paraphrase and distractor.

    Attributes:
        full: the embeddings by the full model, `(triples, 3, 384)`.
    """

    def __init__(self, encoder: MiniLMEncoder, triples: Sequence[tuple[str, str, str]]) -> None:
        self.encoder = encoder
        self.x, self.mask = encoder.embed([text for triple in triples for text in triple])
        states = encoder.run_blocks(self.x, self.mask, all_heads())
        self.inputs = [self.x, *states[:-1]]  # what each layer of the full model gets
        self.full = self._vectors(states[-1])

    def run(self, gates: Tensor) -> Tensor:
        """The embeddings `(triples, 3, 384)` with gates `(6, 12)`, or `(3 * triples, 6, 12)` by sentence."""
        return self._vectors(self.encoder.run_blocks(self.x, self.mask, gates)[-1])

    def without(self, heads: Sequence[int]) -> Tensor:
        """The embeddings `(triples, 3, 384)` with some heads masked; layers below the first are not run again."""
        first = min(heads, default=0) // self.encoder.num_heads
        states = self.encoder.run_blocks(self.inputs[first], self.mask, gates_without(heads), first)
        return self._vectors(states[-1])

    def _vectors(self, x: Tensor) -> Tensor:
        return sentence_vectors(x, self.mask).unflatten(0, (-1, 3))  # (triples, 3, 384)


@dataclass(frozen=True)
class PruneCurve:
    """What is left of the model after each number of masked heads, triple by triple."""

    counts: tuple[int, ...]  # how many heads are masked
    cosine: np.ndarray  # (counts, triples): cosine to the full model's embedding, mean of the three sentences
    found: np.ndarray  # (counts, triples): whether the paraphrase is found, see `found`


@dataclass(frozen=True)
class PairEffects:
    """How far the embeddings turn (1 - cosine to the full model) if two heads of a layer are masked."""

    pairs: list[tuple[int, int]]
    alone: np.ndarray  # (pairs, 2): each of the two masked alone
    together: np.ndarray  # (pairs,)


def gates_without(heads: Sequence[int]) -> Tensor:
    """Gates `(6, 12)`: 0 for the heads listed, 1 for all others.

    >>> gates_without([0, 13])[:2, :3]
    tensor([[0., 1., 1.],
            [1., 0., 1.]])
    """
    gates = all_heads()
    gates.view(-1)[list(heads)] = 0.0
    return gates


def cosine_to_full(trial: Trial, vectors: Tensor) -> np.ndarray:
    """Cosine of each embedding to the full model's, mean of a triple's three: `(triples,)`."""
    return (vectors * trial.full).sum(-1).mean(-1).numpy()


def margins(vectors: Tensor) -> Tensor:
    """How much nearer the paraphrase is to the anchor than the distractor, `(triples, 3, d)` to `(triples,)`."""
    anchor, paraphrase, distractor = vectors.unbind(1)  # (triples, d) each
    return (anchor * paraphrase).sum(-1) - (anchor * distractor).sum(-1)


def found(vectors: Tensor) -> np.ndarray:
    """Whether an anchor's paraphrase is nearer to it than all others and all distractors: `(triples,)`."""
    anchor, paraphrase, distractor = vectors.unbind(1)  # (triples, d) each
    cosines = anchor @ torch.cat([paraphrase, distractor]).T  # (triples, 2 * triples)
    return (cosines.argmax(-1) == torch.arange(len(anchor))).numpy()


def importance_by_masking(trial: Trial) -> np.ndarray:
    """How far the embeddings turn when a head alone is masked: 1 - cosine to the full model, `(72, triples)`.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 3.2, masks single heads and
    looks at the model's score; here it is the embedding.
    """
    heads = range(all_heads().numel())
    return np.array([1 - cosine_to_full(trial, trial.without([head])) for head in heads])


def importance_by_gradient(trial: Trial, masked: Sequence[int] = ()) -> np.ndarray:
    """How strongly the loss of each triple reacts to each head's gate: |d loss / d gate|, `(72, triples)`.

    The loss of a triple is the logistic loss of choosing the paraphrase and not the distractor. (How far the
    embedding is from the full model's would not do: with all gates at 1 it is at its minimum, where every
    derivative is 0.) The absolute value is taken triple by triple, so that opposite signs do not cancel.

    Args:
        trial: the sentences.
        masked: heads that are masked already.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 4.1, whose importance is the
    mean over the examples (and is then normalised by layer, which is left out here).
    """
    triples = len(trial.full)
    gates = gates_without(masked).expand(triples, -1, -1).clone().requires_grad_()  # (triples, 6, 12)
    vectors = trial.run(gates.repeat_interleave(3, dim=0))  # (triples, 3, 384)
    loss = -F.logsigmoid(SCALE * margins(vectors)).sum()
    (gradient,) = torch.autograd.grad(loss, gates)  # (triples, 6, 12): each triple has gates of its own
    return gradient.abs().flatten(1).T.numpy()


def least_important_first(importance: np.ndarray) -> list[int]:
    """The order in which heads go: by importance `(72, triples)`, averaged over the triples."""
    return [int(head) for head in np.argsort(importance.mean(-1), kind="stable")]


def order_by_repeated_gradient(trial: Trial, step: int) -> list[int]:
    """The order of going, `step` heads at a time; after each step the gradient is taken anew from what is left."""
    masked: list[int] = []
    while len(masked) < all_heads().numel():
        order = least_important_first(importance_by_gradient(trial, masked))
        masked += [head for head in order if head not in masked][:step]
    return masked


def prune_curve(trial: Trial, order: Sequence[int], counts: Sequence[int]) -> PruneCurve:
    """Mask the first few heads of an order, for each number in `counts`.

    Args:
        trial: the sentences, not those on which the order was chosen.
        order: all heads.
        counts: how many heads to mask.
    """
    runs = [trial.without(order[:count]) for count in counts]
    cosine = np.array([cosine_to_full(trial, vectors) for vectors in runs])  # (counts, triples)
    return PruneCurve(tuple(counts), cosine, np.array([found(vectors) for vectors in runs]))


def pair_effects(trial: Trial, layer: int) -> PairEffects:
    """Mask every two heads of a layer together, and each alone.

    Args:
        trial: the sentences.
        layer: counted from 0.
    """
    num_heads = trial.encoder.num_heads
    heads = range(layer * num_heads, (layer + 1) * num_heads)
    pairs = list(combinations(heads, 2))

    def change(masked: Sequence[int]) -> float:
        return float(1 - cosine_to_full(trial, trial.without(masked)).mean())

    alone = {head: change([head]) for head in heads}
    together = np.array([change(pair) for pair in pairs])  # (pairs,)
    return PairEffects(pairs, np.array([[alone[i], alone[j]] for i, j in pairs]), together)


def mean_outputs(trial: Trial) -> Tensor:
    """What each head adds to a token of the full model, on average over all tokens of a trial: `(72, 384)`."""
    real, rows = trial.mask[:, 0, 0], []  # (batch, n)
    for block, x in zip(trial.encoder.blocks, trial.inputs, strict=True):
        layer = cast(TransformerBlock, block).attention
        for gate in torch.eye(trial.encoder.num_heads):  # one head alone
            added = gated_attention(layer, x, trial.mask, gate[:, None, None]) - layer.out_proj.bias
            rows.append(added[real].mean(0))  # (384,)
    return torch.stack(rows)


def with_means(trial: Trial, heads: Sequence[int], means: Tensor) -> Tensor:
    """The embeddings `(triples, 3, 384)` if some heads add to every token the same.

    Args:
        trial: the sentences.
        heads: which heads.
        means: what each of the 72 heads adds then, `(72, 384)`.
    """
    encoder = copy.deepcopy(trial.encoder)
    for head in heads:
        block = cast(TransformerBlock, encoder.blocks[head // encoder.num_heads])
        block.attention.out_proj.bias.add_(means[head])
    states = encoder.run_blocks(trial.x, trial.mask, gates_without(heads))
    return sentence_vectors(states[-1], trial.mask).unflatten(0, (-1, 3))


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation of two lists of numbers without ties: 1 for the same order, -1 for the reverse.

    >>> rank_correlation(np.array([1.0, 5.0, 2.0]), np.array([10.0, 90.0, 11.0]))
    1.0
    """
    ranks = np.array([np.argsort(np.argsort(values)) for values in (first, second)], dtype=float)
    return float(np.corrcoef(ranks)[0, 1].round(12))
