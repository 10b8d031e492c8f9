"""The items of `language_model`, and small inputs that expose mistakes in them."""

from typing import Any

import torch
from torch import nn

from mha_lib import language_model
from mha_lib.pitfalls.examples import Code, item
from mha_lib.pitfalls.examples.batched_torch import numbered

MODEL = item("language_model.LanguageModel", language_model.LanguageModel)


@MODEL.example
def three_tokens(LanguageModel: Code) -> Any:
    """Three tokens of four, one block; numbered() fills the parameters."""
    model = numbered(LanguageModel(4, 4, 2, 1, 5))
    return model(torch.tensor([[1, 3, 0]]))


LOSS = item("language_model.loss", language_model.loss)


@LOSS.example
def three_predictions(loss: Code) -> Any:
    """A model that looks at one token; two texts of four tokens."""
    logits = torch.tensor([[4.0, 0, 1], [0, 2, 5], [3, 3, 0]])
    model = nn.Embedding.from_pretrained(logits)
    return loss(model, torch.tensor([[0, 0, 1, 1], [2, 0, 2, 1]]))


@LOSS.example
def whole_context(loss: Code) -> Any:
    """How many of five tokens the model reads to predict four."""
    model, read = nn.Embedding.from_pretrained(torch.eye(3)), []
    model.register_forward_pre_hook(lambda _, args: read.append(args[0].shape[1]))
    loss(model, torch.tensor([[0, 2, 1, 1, 0]]))
    return max(read)


@LOSS.example
def sure_and_wrong(loss: Code) -> Any:
    """A model that is sure of token 0, which never comes."""
    model = nn.Embedding.from_pretrained(torch.tensor([[40.0, 0], [40, 0]]))
    return loss(model, torch.tensor([[0, 1, 1]]))


SAMPLE = item("language_model.sample", language_model.sample)


@SAMPLE.example
def most_likely(sample: Code) -> Any:
    """Greedy: the most likely token five times."""
    torch.manual_seed(0)
    model = language_model.LanguageModel(6, 8, 2, 1, 12)
    return sample(model, torch.tensor([[1, 2]]), 5, seed=0, temperature=0.0)


@SAMPLE.example
def nearly_cold(sample: Code) -> Any:
    """How many of 200 draws at temperature 0.01 are the most likely token."""
    torch.manual_seed(0)
    model = language_model.LanguageModel(6, 8, 2, 1, 12)
    start = torch.tensor([[1, 2]]).expand(200, 2)
    best = model(start)[:, -1].argmax(-1)
    return int((sample(model, start, 1, 0, 0.01)[:, -1] == best).sum())


@SAMPLE.example
def tokens_read(sample: Code) -> Any:
    """How many tokens the model reads to write eight more after two."""
    torch.manual_seed(0)
    model, read = language_model.LanguageModel(6, 8, 2, 1, 12), []
    model.register_forward_pre_hook(lambda _, args: read.append(args[0]))
    sample(model, torch.tensor([[1, 2]]), 8, seed=0)
    return sum(ids.shape[1] for ids in read)


@SAMPLE.example
def two_seeds(sample: Code) -> Any:
    """Whether the same seed gives the same text, and another seed another one."""
    model = language_model.LanguageModel(50, 8, 2, 1, 12)
    torch.manual_seed(0)
    start = torch.tensor([[1, 2]])
    first, again = sample(model, start, 9, 1), sample(model, start, 9, 1)
    other = sample(model, start, 9, 2)
    return torch.equal(first, again), torch.equal(first, other)


@SAMPLE.example
def two_texts(sample: Code) -> Any:
    """Whether two texts with the same beginning stay the same."""
    torch.manual_seed(0)
    model = language_model.LanguageModel(6, 8, 2, 1, 12)
    first, second = sample(model, torch.tensor([[1, 2], [1, 2]]), 9, seed=0)
    return torch.equal(first, second)


@SAMPLE.example
def of_many(sample: Code) -> Any:
    """How many of 60 tokens are among 2,000 draws at a temperature at which all are nearly equally likely."""
    torch.manual_seed(0)
    model = language_model.LanguageModel(60, 8, 2, 1, 12)
    start = torch.full((2000, 1), 7)
    return len(sample(model, start, 1, seed=0, temperature=1e5)[:, -1].unique())


@SAMPLE.example
def very_hot(sample: Code) -> Any:
    """Nine tokens at a temperature at which all are nearly equally likely."""
    torch.manual_seed(0)
    model = language_model.LanguageModel(6, 8, 2, 1, 12)
    return sample(model, torch.tensor([[1, 2]]), 9, seed=0, temperature=1e5)
