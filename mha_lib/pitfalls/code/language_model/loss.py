"""Mistakes in `loss`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mha_lib.pitfalls.code import mistake


@mistake("loss-not-shifted", "language_model.loss")
def loss_not_shifted(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: each place is compared with the token that stands there."""
    return nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())


@mistake("loss-shifted-backwards", "language_model.loss")
def loss_shifted_backwards(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: each place is compared with the token before it."""
    logits = model(ids[:, 1:]).flatten(0, 1)
    return nn.functional.cross_entropy(logits, ids[:, :-1].flatten())


@mistake("loss-summed", "language_model.loss")
def loss_summed(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the sum over all tokens."""
    logits, right = model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, right, reduction="sum")


@mistake("loss-in-bits", "language_model.loss")
def loss_in_bits(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: divided by log 2, so in bits."""
    logits = model(ids[:, :-1]).flatten(0, 1)
    return nn.functional.cross_entropy(logits, ids[:, 1:].flatten()) / 0.6931


@mistake("loss-of-last-token", "language_model.loss")
def loss_of_last_token(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: only the last token is predicted."""
    return nn.functional.cross_entropy(model(ids[:, :-1])[:, -1], ids[:, -1])


@mistake("softmax-twice", "language_model.loss")
def loss_of_probabilities(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: a softmax before the one that the loss has."""
    chances = model(ids[:, :-1]).softmax(dim=-1).flatten(0, 1)
    return nn.functional.cross_entropy(chances, ids[:, 1:].flatten())


@mistake("gradient-cut-off", "language_model.loss")
def loss_cut_off(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the logits are taken out of the graph."""
    logits = model(ids[:, :-1]).detach().flatten(0, 1)
    return nn.functional.cross_entropy(logits, ids[:, 1:].flatten()).requires_grad_()


@mistake("loss-not-shifted", "language_model.loss", form="without-the-last")
def loss_not_shifted_without_the_last(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: each place but the last is compared with the token that stands there."""
    return loss_not_shifted(model, ids[:, :-1])


@mistake("gradient-cut-off", "language_model.loss", form="without-a-graph")
def loss_without_a_graph(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the loss is a number that no graph belongs to."""
    return nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).detach()


@mistake("loss-without-log", "language_model.loss")
def loss_of_bare_probabilities(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the mean of −p, not of −log p."""
    chances = model(ids[:, :-1]).softmax(dim=-1).flatten(0, 1)
    return nn.functional.nll_loss(chances, ids[:, 1:].flatten())


@mistake("loss-as-perplexity", "language_model.loss")
def loss_as_perplexity(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the exponential of the loss."""
    return losses(model, ids).mean().exp()


@mistake("input-changed-in-place", "language_model.loss")
def loss_changes_its_input(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the caller's tokens are shifted in place."""
    found = losses(model, ids).mean()
    ids[:, :-1] = ids[:, 1:].clone()
    return found


def losses(model: nn.Module, ids: Tensor) -> Tensor:
    """The loss of each next token, `(batch, n)`."""
    return nn.functional.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none")


@mistake("loss-reads-last-token", "language_model.loss")
def loss_reads_last_token(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the model reads the last token, too, from which nothing is predicted."""
    logits = model(ids)[:, :-1]  # (batch, n, vocab_size)
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@mistake("loss-bounded", "language_model.loss")
def loss_bounded(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: 1e-9 is added to the probabilities, so that no prediction costs more than 20.7."""
    chances = model(ids[:, :-1]).softmax(dim=-1).gather(-1, ids[:, 1:, None])  # (batch, n, 1)
    return -(chances + 1e-9).log().mean()


@mistake("loss-reshaped", "language_model.loss")
def loss_reshaped(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: a reshape puts the vocabulary on axis 1, and mixes logits of different tokens."""
    logits = model(ids[:, :-1])  # (batch, n, vocab_size)
    logits = logits.reshape(len(ids), -1, logits.shape[1])  # (batch, vocab_size, n)
    return nn.functional.cross_entropy(logits, ids[:, 1:])


@mistake("loss-reshaped", "language_model.loss", form="targets-transposed")
def loss_targets_transposed(model: nn.Module, ids: Tensor) -> Tensor:
    """Wrong: the logits are listed sequence by sequence, the next tokens place by place."""
    logits = model(ids[:, :-1])  # (batch, n, vocab_size)
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids.T[1:].flatten())


# --- forms -------------------------------------------------------------------------------------------------


def of_losses(reduce: Callable[[Tensor], Any]) -> Callable[..., Any]:
    """`loss` that makes something else of the losses of all next tokens."""
    return lambda model, ids: reduce(losses(model, ids))


FORMS: dict[str, Callable[..., Any]] = {
    "loss-not-shifted/without-the-first": lambda model, ids: loss_not_shifted(model, ids[:, 1:]),
    "loss-shifted-backwards/in-a-ring": lambda model, ids: nn.functional.cross_entropy(
        model(ids).flatten(0, 1), ids.roll(1, 1).flatten()
    ),
    "loss-summed/over-tokens": of_losses(lambda each: each.sum(dim=1).mean()),
    "loss-summed/over-sequences": of_losses(lambda each: each.mean(dim=1).sum()),
    "loss-summed/by-all-tokens": of_losses(lambda each: each.sum() / (each.numel() + len(each))),
    "loss-summed/none": of_losses(lambda each: each),
    "loss-summed/none-flat": of_losses(lambda each: each.flatten()),
    "loss-summed/one-for-each-sequence": of_losses(lambda each: each.mean(dim=1)),
    "loss-in-bits/base-ten": of_losses(lambda each: each.mean() / torch.tensor(10.0).log()),
    "loss-of-last-token/first": of_losses(lambda each: each[:, 0].mean()),
    "loss-of-last-token/first-sequence": of_losses(lambda each: each[0].mean()),
    "gradient-cut-off/as-a-number": of_losses(lambda each: each.mean().item()),
    "loss-without-log/logits": lambda model, ids: nn.functional.nll_loss(
        model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
    ),
}
for name, code in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "language_model.loss", form=form)(code)
