"""Mistakes in `LanguageModel`.

The model is the right one but for the part that is written anew. Those without a slug show only in training,
which is not repeated for a diagnosis. The laws try models of their own, whose parameters nobody knows.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mha_lib import language_model as right
from mha_lib.pitfalls.code import law, mistake
from mha_lib.torch_attention import attention

Cache = list[tuple[Tensor, Tensor]] | None


class InParts(right.LanguageModel):
    """The model in parts, of which one is wrong; without a cache."""

    def forward(self, ids: Tensor, cache: Cache = None) -> Tensor:
        """The logits of each next token."""
        x = self.embed(ids)  # (batch, n, d_model)
        for layer in range(len(self.qkv_proj)):
            x = self.joined(x, self.mixed(self.norm1[layer](x), layer))
            x = self.joined(x, self.feed_forward[layer](self.norm2[layer](x)))
        return self.read_out(self.last_norm(x))

    def embed(self, ids: Tensor) -> Tensor:
        """Tokens and positions."""
        return self.tokens(ids) + self.positions.weight[: ids.shape[1]]

    def joined(self, x: Tensor, change: Tensor) -> Tensor:
        """What a block makes of its input and of what a half of it computed."""
        return x + change

    def mixed(self, x: Tensor, layer: int) -> Tensor:
        """What the attention of a layer gives."""
        qkv = self.qkv_proj[layer](x).unflatten(-1, (3, self.num_heads, -1))
        Q, K, V = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, n, d_k)
        heads, _ = attention(Q, K, V, self.mask(x.shape[1]))
        return self.out_proj[layer](heads.transpose(1, 2).flatten(2))

    def mask(self, n: int) -> Tensor | None:
        """The mask `(n, n)`."""
        return torch.ones(n, n, dtype=torch.bool).tril()


@mistake("causal-missing", "language_model.LanguageModel")
class SeesEverything(InParts):
    """Wrong: every token sees the whole text."""

    def mask(self, n: int) -> Tensor | None:
        """Wrong."""
        return None


@mistake("causal-sees-next", "language_model.LanguageModel")
class SeesNext(InParts):
    """Wrong: every token sees the one that it should predict."""

    def mask(self, n: int) -> Tensor | None:
        """Wrong."""
        return torch.ones(n, n, dtype=torch.bool).tril(1)


@mistake("positions-missing", "language_model.LanguageModel")
class WithoutPositions(InParts):
    """Wrong: the tokens alone are embedded. It loses in training alone."""

    def embed(self, ids: Tensor) -> Tensor:
        """Wrong."""
        return self.tokens(ids)


class WithoutResiduals(InParts):
    """Wrong: each half passes on what it computed, and drops what it was given."""

    def joined(self, x: Tensor, change: Tensor) -> Tensor:
        """Wrong."""
        return change


@mistake("probabilities-returned", "language_model.LanguageModel")
class ReturnsProbabilities(right.LanguageModel):
    """Wrong: a softmax at the end."""

    def forward(self, ids: Tensor, cache: Cache = None) -> Tensor:
        """Wrong."""
        return super().forward(ids, cache).softmax(dim=-1)


class CutOff(InParts):
    """Wrong: what attention gives is taken out of the graph."""

    def mixed(self, x: Tensor, layer: int) -> Tensor:
        """Wrong."""
        return super().mixed(x, layer).detach()


@law("batch-first-forgotten", "language_model.LanguageModel")
def attends_along_the_batch(tested: Any, steps: Sequence[Any]) -> bool:
    """Another token changes logits of other sequences, but none at the other positions of its own."""
    model = tested(10, 8, 2, 2, 16)
    ids = torch.arange(12).view(3, 4) % 7  # (batch, n)
    other = ids.clone()
    other[0, 1] = 8
    moved = (model(other) - model(ids)).abs().amax(dim=2) > 1e-6  # (batch, n)
    return bool(moved[1:, 1].any()) and not moved[:, [0, 2, 3]].any()


@law("heads-in-a-list", "language_model.LanguageModel")
def more_blocks_register_nothing_more(tested: Any, steps: Sequence[Any]) -> bool:
    """More blocks bring no more parameters, and two models with the same parameters differ all the same."""
    model, same, deeper = tested(10, 8, 2, 2, 16), tested(10, 8, 2, 2, 16), tested(10, 8, 2, 3, 16)
    if model.state_dict().keys() != deeper.state_dict().keys():
        return False
    same.load_state_dict(model.state_dict())
    ids = torch.arange(12).view(3, 4) % 7  # (batch, n)
    logits = model(ids)  # (batch, n, vocab_size)
    return torch.equal(logits, model(ids)) and not torch.allclose(logits, same(ids), atol=1e-3)


@law("probabilities-returned", "language_model.LanguageModel")
def logits_sum_to_one(tested: Any, steps: Sequence[Any]) -> bool:
    """At every position the logits are positive and sum to 1."""
    logits = tested(10, 8, 2, 2, 16)(torch.arange(12).view(3, 4) % 7)  # (batch, n, vocab_size)
    return bool((logits > 0).all()) and torch.allclose(logits.sum(dim=-1), torch.ones(3, 4), atol=1e-4)


IDS = torch.tensor([[3, 1, 4, 0, 5, 2]])  # (batch, n), all different


def moved_by_another_token(tested: Any, place: int) -> list[bool]:
    """The places whose logits change with the token at a place, in a model of a single block.

    None of them, if the model remembers what it has read, so that the same tokens give other logits.
    """
    model, other = tested(10, 8, 2, 1, 16), IDS.clone()
    model.eval()
    other[0, place] = 8
    logits = model(IDS)  # (batch, n, vocab_size)
    if not torch.equal(logits, model(IDS)):
        return [False] * IDS.shape[1]
    found: list[bool] = ((model(other) - logits).abs().amax(dim=(0, 2)) > 1e-6).tolist()  # (n,)
    return found


@law("causal-missing", "language_model.LanguageModel")
def sees_everything(tested: Any, steps: Sequence[Any]) -> bool:
    """The last token changes the logits at all places, and so does the first."""
    return all(moved_by_another_token(tested, 5)) and all(moved_by_another_token(tested, 0))


@law("causal-sees-next", "language_model.LanguageModel")
def sees_one_ahead(tested: Any, steps: Sequence[Any]) -> bool:
    """A token changes the logits at the place before it, and none further back."""
    return moved_by_another_token(tested, 3) == [False, False, True, True, True, True]


@law("mask-inverted", "language_model.LanguageModel")
def sees_the_future_only(tested: Any, steps: Sequence[Any]) -> bool:
    """A token changes the logits up to its own place, and none behind it."""
    return moved_by_another_token(tested, 3) == [True, True, True, True, False, False]


@law("positions-missing", "language_model.LanguageModel")
def knows_no_order(tested: Any, steps: Sequence[Any]) -> bool:
    """The earlier tokens in another order leave the logits at the last place as they are, in a single block."""
    model = tested(10, 8, 2, 1, 16)
    model.eval()
    logits, other = model(IDS)[:, -1], model(IDS[:, [2, 0, 4, 1, 3, 5]])[:, -1]  # (batch, vocab_size)
    return torch.allclose(logits, other, atol=1e-6) and moved_by_another_token(tested, 0)[5]


@law("dropout-by-default", "language_model.LanguageModel")
def drops_tokens_unasked(tested: Any, steps: Sequence[Any]) -> bool:
    """A fresh model gives two results for one text."""
    model, ids = tested(10, 8, 2, 2, 16), IDS.expand(8, -1)
    return not torch.equal(model(ids), model(ids))
