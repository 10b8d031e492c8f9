"""Mistakes in `loss`."""

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
