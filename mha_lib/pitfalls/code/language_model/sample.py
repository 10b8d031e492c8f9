"""Mistakes in `sample`."""

import torch
from torch import Tensor

from mha_lib import language_model as right
from mha_lib.pitfalls.code import mistake


def drawn(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """The next token of each sequence, `(batch, 1)`."""
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    chances = (logits / temperature).softmax(dim=-1)
    return torch.multinomial(chances, 1, generator=generator)


@mistake("sample-context-lost", "language_model.sample")
def sample_context_lost(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: each new token is read by itself."""
    generator = torch.Generator().manual_seed(seed)
    logits = model(ids)[:, -1]
    for _ in range(steps):
        new = drawn(logits, temperature, generator)
        ids = torch.cat([ids, new], dim=1)
        logits = model(new)[:, -1]
    return ids


@mistake("sample-always-greedy", "language_model.sample")
def sample_always_greedy(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: the most likely token at every temperature."""
    return right.sample(model, ids, steps, seed, temperature=0.0)


@mistake("sample-seed-ignored", "language_model.sample")
def sample_seed_ignored(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: drawn from the generator that everybody uses."""
    cache: list[tuple[Tensor, Tensor]] = []
    new = ids
    for _ in range(steps):
        new = drawn(model(new, cache)[:, -1], temperature, None)
        ids = torch.cat([ids, new], dim=1)
    return ids


@mistake("sample-reseeded", "language_model.sample")
def sample_reseeded(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: each step draws with a generator that is in its first state."""
    cache: list[tuple[Tensor, Tensor]] = []
    new = ids
    for _ in range(steps):
        generator = torch.Generator().manual_seed(seed)
        new = drawn(model(new, cache)[:, -1], temperature, generator)
        ids = torch.cat([ids, new], dim=1)
    return ids


@mistake("sample-draws-shared", "language_model.sample")
def sample_draws_shared(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: at each step, one random number serves all sequences."""
    if temperature == 0:
        return right.sample(model, ids, steps, seed, temperature)
    generator = torch.Generator().manual_seed(seed)
    cache: list[tuple[Tensor, Tensor]] = []
    new = ids
    for _ in range(steps):
        chances = (model(new, cache)[:, -1] / temperature).softmax(dim=-1)  # (batch, vocab_size)
        below = chances.cumsum(dim=-1) < torch.rand(1, generator=generator)
        new = below.sum(dim=-1, keepdim=True).clamp(max=chances.shape[-1] - 1)  # (batch, 1)
        ids = torch.cat([ids, new], dim=1)
    return ids


@mistake("sample-prompt-dropped", "language_model.sample")
def sample_prompt_dropped(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: only the new tokens are returned."""
    text = right.sample(model, ids, steps, seed, temperature)
    return text[:, ids.shape[1] :]


@mistake("sample-temperature-inverted", "language_model.sample")
def sample_temperature_inverted(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: logits are multiplied by the temperature."""
    temperature = 1 / temperature if temperature else 0.0
    return right.sample(model, ids, steps, seed, temperature)


@mistake("sample-recomputes", "language_model.sample")
def sample_recomputes(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: the whole text is read again for each new token."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        new = drawn(model(ids)[:, -1], temperature, generator)
        ids = torch.cat([ids, new], dim=1)
    return ids


@mistake("sample-temperature-ignored", "language_model.sample")
def sample_temperature_ignored(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: every temperature but 0 is taken for 1."""
    return right.sample(model, ids, steps, seed, 1.0 if temperature else 0.0)


@mistake("sample-zero-temperature", "language_model.sample")
def sample_divides_by_zero(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: the logits are divided by a temperature of 0."""
    if not temperature:
        torch.multinomial((model(ids)[:, -1] / temperature).softmax(dim=-1), 1)
    return right.sample(model, ids, steps, seed, temperature)


@mistake("input-changed-in-place", "language_model.sample")
def sample_changes_its_input(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: the newest token is written into the caller's."""
    text = right.sample(model, ids, steps, seed, temperature)
    ids[:, -1] = text[:, -1]
    return text


@mistake("sample-seed-ignored", "language_model.sample", form="fixed")
def sample_seed_fixed(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: the seed is always 0."""
    return right.sample(model, ids, steps, 0, temperature)


@mistake("sample-seed-ignored", "language_model.sample", form="zero")
def sample_seed_zero_ignored(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: a seed of 0 counts as none."""
    return right.sample(model, ids, steps, seed or int(torch.randint(10**6, ())), temperature)


@mistake("sample-likeliest-only", "language_model.sample")
def sample_likeliest_only(
    model: right.LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Wrong: only the fifty likeliest tokens can be drawn."""
    generator = torch.Generator().manual_seed(seed)
    cache: list[tuple[Tensor, Tensor]] = []
    new = ids
    for _ in range(steps):
        logits = model(new, cache)[:, -1]  # (batch, vocab_size)
        last = logits.topk(min(50, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < last, float("-inf"))
        new = drawn(logits, temperature, generator)
        ids = torch.cat([ids, new], dim=1)
    return ids
