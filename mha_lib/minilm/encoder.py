"""The small trained model in PyTorch, made of the course's own blocks, with a gate on every head."""

from typing import cast

import torch
from torch import Tensor, nn

from mha_lib.minilm.minilm import MiniLM, find_model, read_checked
from mha_lib.torch_attention import MultiHeadAttention, attention
from mha_lib.transformer import TransformerBlock

D_MODEL, D_FF = 384, 1536
PARTS = {  # the name in a block, and the name in the file
    "attention.q_proj": "attention.self.query",
    "attention.k_proj": "attention.self.key",
    "attention.v_proj": "attention.self.value",
    "attention.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "feed_forward.up": "intermediate.dense",
    "feed_forward.down": "output.dense",
    "norm2": "output.LayerNorm",
}


class MiniLMEncoder(nn.Module):
    """all-MiniLM-L6-v2 on many texts at once, in single precision; every head has a gate.

    The NumPy model of `mha_lib.minilm.minilm` runs a text at a time; this one is for experiments that need many
    runs or gradients. Its attention is the course's `MultiHeadAttention`.

    Attributes:
        blocks: the six blocks, `TransformerBlock` with post-norm.

    Raises:
        FileNotFoundError: if the model is not installed; the message says how to get it.

    Source: Wang et al. 2020, MiniLM; Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.3,
    for the gates.
    """

    num_layers, num_heads = MiniLM.num_layers, MiniLM.num_heads

    def __init__(self) -> None:
        super().__init__()
        from safetensors.torch import load
        from tokenizers import Tokenizer

        weights = load(read_checked(find_model() / "model.safetensors"))
        self._tokenizer = Tokenizer.from_str(read_checked(find_model() / "tokenizer.json").decode())
        self._tokenizer.no_padding()
        self.words = nn.Embedding.from_pretrained(weights["embeddings.word_embeddings.weight"])
        kind = weights["embeddings.token_type_embeddings.weight"][0]  # (384,): all is the first sentence
        self.positions = nn.Embedding.from_pretrained(weights["embeddings.position_embeddings.weight"] + kind)
        self.norm = nn.LayerNorm(D_MODEL, eps=1e-12)
        self.norm.load_state_dict(_part(weights, "embeddings.LayerNorm"))
        blocks = [
            TransformerBlock(D_MODEL, self.num_heads, D_FF, norm_first=False) for _ in range(self.num_layers)
        ]
        for layer, block in enumerate(blocks):
            for name, stored in PARTS.items():
                block.get_submodule(name).load_state_dict(_part(weights, f"encoder.layer.{layer}.{stored}"))
            block.norm1.eps = block.norm2.eps = 1e-12
        self.blocks = nn.ModuleList(blocks)
        self.requires_grad_(False)

    def embed(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """What the first block gets.

        Args:
            texts: sentences.

        Returns:
            The tokens `(batch, n, 384)`, filled up to the longest text, and a mask `(batch, 1, 1, n)`, True
            where a token is real.
        """
        ids = [torch.tensor(self._tokenizer.encode(text).ids) for text in texts]
        padded = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=-1)  # (batch, n)
        mask = padded >= 0  # (batch, n)
        x = self.words(padded.clamp(min=0)) + self.positions.weight[: padded.shape[1]]  # (batch, n, 384)
        return self.norm(x), mask[:, None, None]  # (batch, n, 384), (batch, 1, 1, n)

    def run_blocks(self, x: Tensor, mask: Tensor, gates: Tensor, first: int = 0) -> list[Tensor]:
        """Run the blocks from block `first` on.

        Args:
            x: what block `first` gets, `(batch, n, 384)`.
            mask: boolean, True = real token, `(batch, 1, 1, n)`.
            gates: `(6, 12)`, or `(batch, 6, 12)` for gates of each text's own; what a head delivers is multiplied
                by its gate. 1 leaves it alone, 0 masks it.
            first: index of the first block to run.

        Returns:
            What comes out of each block that ran, `(batch, n, 384)` each.
        """
        states = []
        for layer in range(first, self.num_layers):
            block = cast(TransformerBlock, self.blocks[layer])
            gate = gates[..., layer, :, None, None]  # (12, 1, 1) or (batch, 12, 1, 1)
            attended = gated_attention(block.attention, x, mask, gate)
            x = block.norm1(x + attended)  # (batch, n, 384)
            x = block.norm2(x + block.feed_forward(x))  # (batch, n, 384)
            states.append(x)
        return states

    def forward(self, texts: list[str], gates: Tensor | None = None) -> Tensor:
        """The sentence embeddings.

        Args:
            texts: sentences.
            gates: `(6, 12)`, see `run_blocks`. None: all are 1.

        Returns:
            Unit vectors `(batch, 384)`.
        """
        x, mask = self.embed(texts)
        gates = all_heads() if gates is None else gates
        return sentence_vectors(self.run_blocks(x, mask, gates)[-1], mask)


def gated_attention(layer: MultiHeadAttention, x: Tensor, mask: Tensor, gate: Tensor) -> Tensor:
    """What `layer` computes if each head is multiplied by a gate before the output projection.

    Args:
        layer: the attention.
        x: tokens `(batch, n, d_model)`.
        mask: boolean, True = may attend, broadcastable to `(batch, heads, n, n)`.
        gate: broadcastable to `(batch, heads, 1, 1)`.

    Returns:
        The output `(batch, n, d_model)`.

    Source: Michel et al. 2019, Are Sixteen Heads Really Better than One?, section 2.3.
    """
    projections = (layer.q_proj, layer.k_proj, layer.v_proj)
    Q, K, V = (layer.split_heads(projection(x)) for projection in projections)  # (batch, heads, n, d_k)
    heads = attention(Q, K, V, mask)[0] * gate  # (batch, heads, n, d_k)
    return layer.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)


def all_heads() -> Tensor:
    """Gates `(6, 12)` that leave every head alone."""
    return torch.ones(MiniLM.num_layers, MiniLM.num_heads)


def sentence_vectors(x: Tensor, mask: Tensor) -> Tensor:
    """The mean of the real tokens of a sentence, made one long: `(batch, n, 384)` to `(batch, 384)`."""
    real = mask[:, 0, 0, :, None]  # (batch, n, 1)
    mean = (x * real).sum(1) / real.sum(1)  # (batch, 384)
    return nn.functional.normalize(mean, dim=-1)


def _part(weights: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {kind: weights[f"{name}.{kind}"] for kind in ("weight", "bias")}
