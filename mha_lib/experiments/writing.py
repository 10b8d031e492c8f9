"""A language model trained for a short while on the source code of Python's own library."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from mha_lib.experiments.one_layer import reproducible
from mha_lib.language_model import LanguageModel, loss, sample
from mha_lib.torch_attention import attention

CONTEXT = 64


@dataclass(frozen=True)
class Text:
    """Characters as numbers."""

    letters: str  # all characters, in the order of their numbers
    trained_on: Tensor  # (characters,)
    held_out: Tensor  # (characters,): every twentieth file

    def encode(self, text: str) -> Tensor:
        """The numbers of the characters that are known."""
        return torch.tensor([self.letters.index(letter) for letter in text if letter in self.letters])

    def decode(self, ids: Tensor) -> str:
        """The characters of numbers."""
        return "".join(self.letters[i] for i in ids.tolist())


def library_text(folder: Path | None = None) -> Text:
    """The source code at the top of the standard library; of `folder`, if it is given."""
    files = sorted((folder or Path(os.__file__).parent).glob("*.py"))
    texts = [path.read_text("utf-8", errors="ignore") for path in files]
    letters = "".join(sorted(set("".join(texts)) & set(map(chr, range(9, 127)))))
    number = {letter: i for i, letter in enumerate(letters)}
    parts = [[number[letter] for letter in text if letter in number] for text in texts]
    held_out = [i for part in parts[::20] for i in part]
    trained_on = [i for place, part in enumerate(parts) if place % 20 for i in part]
    return Text(letters, torch.tensor(trained_on), torch.tensor(held_out))


def excerpts(ids: Tensor, count: int) -> Tensor:
    """Random excerpts, `(count, CONTEXT + 1)`."""
    starts = torch.randint(len(ids) - CONTEXT - 1, (count, 1))
    return ids[starts + torch.arange(CONTEXT + 1)]


def train_writer(text: Text, steps: int = 300, seed: int = 0) -> tuple[LanguageModel, list[float]]:
    """Train a model of two layers of four heads; also returns the held-out loss at the start and at each tenth."""
    with reproducible(seed):
        model = LanguageModel(len(text.letters), d_model=64, num_heads=4, num_layers=2, context=CONTEXT)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
        curve = [held_out_loss(model, text)]
        for step in range(1, steps + 1):
            optimizer.zero_grad()
            loss(model, excerpts(text.trained_on, 24)).backward()
            optimizer.step()
            if step % max(steps // 10, 1) == 0:
                curve.append(held_out_loss(model, text))
    return model, curve


@torch.no_grad()
def held_out_loss(model: LanguageModel, text: Text, without: Collection[tuple[int, int]] = ()) -> float:
    """The loss on held-out excerpts, always the same; `without` are the heads (layer, head) that are taken out."""
    with reproducible(1):
        ids = excerpts(text.held_out, 64)
    weights = [proj.get_parameter("weight") for proj in model.out_proj]  # (d_model, heads · d_k) each
    kept = [weight.clone() for weight in weights]
    for layer, head in without:
        weights[layer].unflatten(1, (model.num_heads, -1))[:, head] = 0.0
    try:
        return loss(model, ids).item()
    finally:
        for weight, old in zip(weights, kept, strict=True):
            weight.copy_(old)


@torch.no_grad()
def head_maps(model: LanguageModel, ids: Tensor) -> Tensor:
    """The attention weights of every head on one text.

    Args:
        model: a language model.
        ids: the n tokens of the text, `(n,)`.

    Returns:
        Weights `(layers, heads, n, n)`.
    """
    maps: list[Tensor] = []

    def keep_weights(_module: nn.Module, _inputs: tuple[Tensor, ...], qkv: Tensor) -> None:
        Q, K, V = qkv.unflatten(-1, (3, model.num_heads, -1)).permute(
            2, 0, 3, 1, 4
        )  # (1, heads, n, d_k) each
        causal = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
        maps.append(attention(Q, K, V, causal)[1][0])  # (heads, n, n)

    hooks = [proj.register_forward_hook(keep_weights) for proj in model.qkv_proj]
    try:
        model(ids[None])
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(maps)


def write(model: LanguageModel, text: Text, start: str, temperature: float = 0.5) -> str:
    """What the model makes of a beginning, up to its context."""
    ids = text.encode(start)[None]
    return text.decode(sample(model, ids, CONTEXT - ids.shape[1], seed=0, temperature=temperature)[0])
