"""Right styles for the items of `language_model`."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that the field uses

from mha_lib.language_model import LanguageModel
from mha_lib.pitfalls.code.language_model.language_model import InParts
from mha_lib.positions import rotary
from mha_lib.styles import style

Cache = list[tuple[Tensor, Tensor]] | None


@style("PyTorch's own layers", "language_model.LanguageModel")
class OwnLayers(nn.Module):
    """nn.TransformerEncoder with a causal mask."""

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, context: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.where = nn.Parameter(0.5 * torch.randn(context, d_model))
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, 4 * d_model, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Right."""
        n = ids.shape[1]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self.head(self.layers(self.embed(ids) + self.where[:n], mask=hidden))


@style("rotary positions", "language_model.LanguageModel")
class WithRotary(nn.Module):
    """No position embeddings: queries and keys are turned; RMSNorm and a gated network."""

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, context: int) -> None:
        super().__init__()
        self.heads = num_heads
        self.embed = nn.Embedding(vocab_size, d_model)
        self.norms = nn.ModuleList(nn.RMSNorm(d_model) for _ in range(2 * num_layers))
        self.qkv = nn.ModuleList(nn.Linear(d_model, 3 * d_model, bias=False) for _ in range(num_layers))
        self.out = nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(num_layers))
        self.up = nn.ModuleList(nn.Linear(d_model, 8 * d_model) for _ in range(num_layers))
        self.down = nn.ModuleList(nn.Linear(4 * d_model, d_model) for _ in range(num_layers))
        self.last = nn.Sequential(nn.RMSNorm(d_model), nn.Linear(d_model, vocab_size))

    def forward(self, ids: Tensor) -> Tensor:
        """Right."""
        x = self.embed(ids)
        positions = torch.arange(ids.shape[1])
        for i, (qkv, out, up, down) in enumerate(zip(self.qkv, self.out, self.up, self.down, strict=True)):
            parts = qkv(self.norms[2 * i](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = rotary(parts[0], positions), rotary(parts[1], positions)
            y = F.scaled_dot_product_attention(q, k, parts[2], is_causal=True)
            x = x + out(y.transpose(1, 2).flatten(2))
            gate, inner = up(self.norms[2 * i + 1](x)).chunk(2, dim=-1)
            x = x + down(F.silu(gate) * inner)
        return self.last(x)


style("in parts, without a cache", "language_model.LanguageModel")(InParts)


@style("by hand", "language_model.loss")
def loss_by_hand(model: nn.Module, ids: Tensor) -> Tensor:
    """The negative logarithm of each chance, averaged."""
    logs = model(ids[:, :-1]).log_softmax(-1)
    return -logs.gather(-1, ids[:, 1:, None]).mean()


@style("classes on axis 1", "language_model.loss")
def loss_on_axis_one(model: nn.Module, ids: Tensor) -> Tensor:
    """The logits transposed, as `cross_entropy` likes them."""
    return F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])


@style("token by token from the start", "language_model.sample")
@torch.no_grad()
def sample_token_by_token(
    model: LanguageModel, ids: Tensor, steps: int, seed: int, temperature: float = 1.0
) -> Tensor:
    """Each token of the prompt goes into the cache by itself; the draws use the inverse of the sum."""
    g = torch.Generator()
    g.manual_seed(seed)
    cache: list[tuple[Tensor, Tensor]] = []
    for place in range(ids.shape[1] - 1):
        model(ids[:, place : place + 1], cache)
    for _ in range(steps):
        logits = model(ids[:, -1:], cache)[:, 0]
        if temperature <= 0:
            new = logits.max(dim=-1).indices
        else:
            sums = F.softmax(logits / temperature, dim=-1).cumsum(-1)
            new = (torch.rand(len(ids), 1, generator=g) > sums).sum(-1).clamp(max=logits.shape[-1] - 1)
        ids = torch.hstack((ids, new[:, None]))
    return ids
