"""A small model that writes text: the blocks of the course, trained to predict the next token."""

import torch
from torch import nn

from mha_lib.torch_attention import attention
from mha_lib.transformer import FeedForward


class LanguageModel(nn.Module):
    """A causal Transformer: from tokens to the logits of the next token at every position.

    A fresh model with `num_layers=5`, `d_model=32` and four heads learns a simple rule in a hundred steps of
    AdamW with learning rate 0.003. Each step sees 24 texts of 12 tokens, from a vocabulary of 12. In these
    texts, each token follows by a one-to-one rule from the token three positions back. On unseen texts, the mean
    of the losses after 5, 8 and 11 tokens is then below 0.6 nats. To learn this, the model needs positions,
    residual connections, norms, and parameters that an optimiser finds. There is no dropout.

    Args:
        vocab_size: number of different tokens.
        d_model: number of features.
        num_heads: number of heads; it divides `d_model`.
        num_layers: number of blocks, each with parameters of its own.
        context: the largest number of tokens of a sequence.

    Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.3.

    >>> model = LanguageModel(vocab_size=10, d_model=8, num_heads=2, num_layers=3, context=16)
    >>> model(torch.zeros(4, 5, dtype=torch.long)).shape
    torch.Size([4, 5, 10])
    """

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, context: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context, d_model)
        self.norm1 = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(num_layers))
        self.qkv_proj = nn.ModuleList(nn.Linear(d_model, 3 * d_model) for _ in range(num_layers))
        self.out_proj = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(num_layers))
        self.norm2 = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(num_layers))
        self.feed_forward = nn.ModuleList(FeedForward(d_model, 4 * d_model) for _ in range(num_layers))
        self.last_norm = nn.LayerNorm(d_model)
        self.read_out = nn.Linear(d_model, vocab_size)

    def forward(
        self, ids: torch.Tensor, cache: list[tuple[torch.Tensor, torch.Tensor]] | None = None
    ) -> torch.Tensor:
        """The logits of each next token.

        Args:
            ids: tokens `(batch, n)`, n from 1, ints from 0 to `vocab_size` - 1; together with those in the
                cache at most `context`.
            cache: the keys and values of earlier tokens, a pair for each layer; an empty list at the start.
                Those of `ids` are added to it. (This is not graded; `forward(ids)` is. Further parameters with
                defaults are up to you.)

        Returns:
            Logits `(batch, n, vocab_size)` in float32. Those at a position depend on every token up to it, even in
            a fresh model, but on no later one, on no other sequence, and on no earlier call, not even in eval mode.
        """
        past = cache[0][0].shape[2] if cache else 0
        n = ids.shape[1]
        causal = torch.ones(n, past + n, dtype=torch.bool, device=ids.device).tril(past)  # (n, past + n)
        x = self.tokens(ids) + self.positions.weight[past : past + n]  # (batch, n, d_model)
        for layer in range(len(self.qkv_proj)):
            qkv = self.qkv_proj[layer](self.norm1[layer](x))  # (batch, n, 3 * d_model)
            qkv = qkv.unflatten(-1, (3, self.num_heads, -1))  # (batch, n, 3, heads, d_k)
            Q, K, V = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, n, d_k)
            if cache is not None:
                if past:
                    K = torch.cat([cache[layer][0], K], dim=2)  # (batch, heads, past + n, d_k)
                    V = torch.cat([cache[layer][1], V], dim=2)
                cache[layer : layer + 1] = [(K, V)]
            heads, _ = attention(Q, K, V, causal)  # (batch, heads, n, d_k)
            x = x + self.out_proj[layer](heads.transpose(1, 2).flatten(2))  # (batch, n, d_model)
            x = x + self.feed_forward[layer](self.norm2[layer](x))
        return self.read_out(self.last_norm(x))  # (batch, n, vocab_size)


def loss(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of each next token, in nats.

    Args:
        model: any model that gives logits `(batch, n, vocab_size)` for tokens `(batch, n)` and in which a position
            sees itself and earlier ones; it need not be your own. Call it on at most n tokens, which may be its
            whole context.
        ids: tokens `(batch, n + 1)`, n from 1; each token but the first is predicted from those before it.

    Returns:
        A tensor without axes: the mean over all predictions of the batch, right even where p is as small as e^−40.
        Gradients pass through it.

    Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.

    >>> model = nn.Embedding.from_pretrained(torch.zeros(4, 4))  # finds all four tokens equally likely
    >>> loss(model, torch.tensor([[0, 3, 1]])).exp()
    tensor(4.)
    """
    logits = model(ids[:, :-1])  # (batch, n, vocab_size)
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def sample(
    model: LanguageModel, ids: torch.Tensor, steps: int, seed: int, temperature: float = 1.0
) -> torch.Tensor:
    """Let a model continue a text, token by token, without computing the keys and values of a token twice.

    **With a cache the text is the same as without**, and the work is less: all tokens together may cost at most
    three times the multiplications of one call of the model on the whole text, as
    `torch.utils.flop_counter.FlopCounterMode` counts them.

    Args:
        model: a `LanguageModel`.
        ids: the tokens given, `(batch, n)`, n from 1; n + steps is at most the model's context.
        steps: number of tokens to add, at least 1.
        seed: seed of the random draws, from 0. The same seed gives the same text, whatever was drawn before.
            Another seed gives new draws, which may agree where one token is almost sure. How a seed becomes a text
            is up to you; you may seed PyTorch's global generator.
        temperature: with 0, each new token is the one with the largest logit (any of them if several are equal).
            Otherwise token i is drawn with probability softmax(logits / temperature)[i], of the whole vocabulary,
            independently at every step and for every sequence.

    Returns:
        The tokens given and those added, ints `(batch, n + steps)`.

    Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.

    >>> model = LanguageModel(vocab_size=10, d_model=8, num_heads=2, num_layers=1, context=16)
    >>> sample(model, torch.tensor([[1, 2, 3]]), steps=4, seed=0).shape
    torch.Size([1, 7])
    """
    generator = torch.Generator().manual_seed(seed)
    cache: list[tuple[torch.Tensor, torch.Tensor]] = []
    logits = model(ids, cache)[:, -1]  # (batch, vocab_size)
    for step in range(steps):
        if temperature == 0:
            new = logits.argmax(dim=-1, keepdim=True)  # (batch, 1)
        else:
            new = torch.multinomial((logits / temperature).softmax(dim=-1), 1, generator=generator)
        ids = torch.cat([ids, new], dim=1)  # (batch, n + step + 1)
        if step < steps - 1:
            logits = model(new, cache)[:, -1]
    return ids
