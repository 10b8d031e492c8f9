# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: language_model, version: "1.1"}
# ---

# %% role="author"
from checks import check_close, check_equal, check_unchanged
from types import SimpleNamespace

import numpy as np

from mha_grader.testing import (
    attribute_of,
    construct,
    expect,
    expect_close,
    expect_equal,
    expect_unchanged,
    gradients,
    keep,
    parameters_of,
    part,
    seed_torch,
    tensor,
)

reference = SimpleNamespace()  # in grading: the instructor's solutions by name

# %% [markdown] id="intro"
# # A language model of your own
#
# You now combine all that you have built: embeddings, positions, heads, blocks, a mask and a cache. You train the
# model on the source code of Python's own library, which is on every machine that runs this notebook. After five
# minutes of training, the model writes code.
#
# | no. | item | points | difficulty | importance | minutes |
# |---|---|---|---|---|---|
# | 1 | `LanguageModel` | {points LanguageModel} | 4 | 5 | 60 |
# | 2 | `loss` | {points loss} | 2 | 5 | 15 |
# | 3 | `sample` | {points sample} | 4 | 4 | 45 |
#
# Together {points} points.
#
# **How to work.** Each item's docstring is its contract. Replace `# YOUR CODE HERE` and
# `raise NotImplementedError()`, keep the names and the parameters, and run the check below. It prints `ok`, or
# one sentence that says what is wrong. You may add cells and classes, for instance the block that you built
# before. Keep the other files of this folder beside the notebook.
#
# **How it is graded.** Hidden tests call your model and train it for about a hundred steps on their own text,
# part by part. Only the results count: layers, names, norms and positions are up to you. Item 3 is tested with
# your own model from item 1.
#
# `batch` counts sequences and `n` counts tokens. `d_model` is the width of the model, and `vocab_size` the number
# of different tokens. No function changes its arguments in place.

# %% role="given" id="imports"
import torch
from torch import nn

# %% role="show" id="imports_for_checks"
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
from checks import check_LanguageModel, check_loss, check_sample

# %% [markdown] id="given_text"
# **Given:** `attention` and `FeedForward` from earlier assignments. Their code is in `given.py` beside
# this notebook. Use them where you like.

# %% role="given" id="given_pieces"
from mha_lib.torch_attention import attention
from mha_lib.transformer import FeedForward

# %% [markdown] id="LanguageModel_text"
# ## 1. `LanguageModel`: from tokens to the next one
#
# **Points** {points LanguageModel} · **Book** *A language model of one's own*, section *The model*
#
# The model embeds tokens and their positions, passes them through blocks of causal attention and feed-forward
# networks, and returns, at every position, one logit for each token that could come next.
#
# <details><summary>Hint: the parts</summary>
#
# Add two embeddings, one for tokens and one for positions. `num_layers` pre-norm blocks, a last norm and a linear
# layer to `vocab_size` follow. Put the blocks into an `nn.ModuleList`.
# </details>
#
# <details><summary>Hint: the cache</summary>
#
# For item 3 it helps if `forward` takes a list with the keys and values of each layer, uses them and adds those
# of `ids`. With a cache the first new token does not stand at position 0.
# </details>

# %% role="solution" item="LanguageModel"
from mha_lib.language_model import LanguageModel

# %% role="test" item="LanguageModel"
torch.manual_seed(0)
model = LanguageModel(vocab_size=10, d_model=8, num_heads=2, num_layers=3, context=16)
ids = torch.arange(20).view(2, 10) % 7  # (batch, n)
logits = model(ids)
check_equal("the shape of the logits", torch.tensor(logits.shape), torch.tensor([2, 10, 10]))
check_close("the first four positions do not depend on the others", model(ids[:, :4]), logits[:, :4].detach())
check_close("a batch of one gives the same", model(ids[1:]), logits[1:].detach())
changed = ids.clone()
changed[:, 0] = 8
moved = (model(changed) - logits).abs().amax(dim=(0, 2))  # (n,)
check_equal("every position depends on the first token", moved > 1e-7, torch.ones(10, dtype=torch.bool))
### BEGIN HIDDEN TESTS


import torch

VOCABULARY, CONTEXT = 23, 12


def drawn(rng, batch=3, n=9):
    return tensor(rng.integers(VOCABULARY, size=(batch, n)))


def logits_of(model, ids):
    got = model(ids)
    expect_close(
        got, torch.zeros(*ids.shape, VOCABULARY), tolerance=np.inf, what="the logits"
    )  # shape, no NaN
    return got


def model_of(rng, *sizes):
    seed_torch(LanguageModel, int(rng.integers(1000)))
    return LanguageModel(*(sizes or (VOCABULARY, 12, 3, 2, CONTEXT)))


@part(points=2)
def reads_the_text(rng):
    "The logits have the right shape, and those at each position depend on the token there and on the first token."
    for num_layers, n in ((2, 9), (1, CONTEXT)):
        model, ids = model_of(rng, VOCABULARY, 12, 3, num_layers, CONTEXT), drawn(rng, n=n)
        got = logits_of(model, ids)
        for place in (0, 5):
            other = ids.clone()
            other[:, place] = (ids[:, place] + 1) % VOCABULARY
            change = (logits_of(model, other) - got).abs().amax(dim=(0, 2))  # (n,)
            expect(
                bool((change[place:] > 1e-7).all()),
                "the logits do not depend on all tokens up to their position",
            )


@part(points=3, needs="reads_the_text")
def no_look_ahead(rng):
    "Earlier logits stay the same if later tokens are changed or left out."
    model, ids = model_of(rng), drawn(rng)
    got = logits_of(model, ids)
    for place in (1, 4, 8):
        other = ids.clone()
        other[:, place:] = (ids[:, place:] + 1) % VOCABULARY
        expect_close(
            logits_of(model, other)[:, :place], got[:, :place], what="the logits of earlier positions"
        )
        without = logits_of(model, ids[:, :place])
        expect_close(without, got[:, :place], what="the logits without the later tokens")


@part(points=2, needs="no_look_ahead")
def no_look_ahead_by_gradient(rng):
    "No gradient of the logits at a position reaches the embedding of a token that occurs only later."
    model = model_of(rng)
    ids = tensor(rng.permutation(VOCABULARY)[:8][None])  # all different
    held = model.state_dict()
    tables = [name for name, value in held.items() if tuple(value.shape)[:1] == (VOCABULARY,)]
    weight = torch.zeros(1, 8, VOCABULARY)
    weight[0, 3, ids[0, :2]] = torch.tensor([1.0, -1.0])  # log-probabilities are logits, too
    found = [each for each in gradients(model, [ids], tables, weight) if each is not None]
    expect(bool(found), "no gradient reaches an embedding of the tokens")
    for gradient in found:
        later = gradient[ids[0, 4:]]
        expect(bool((later == 0).all()), "a gradient reaches the embeddings of later tokens")


@part(points=1, needs="reads_the_text")
def any_length(rng):
    "A text may have one token, or as many as the context."
    model = model_of(rng)
    whole = drawn(rng, n=CONTEXT)
    got = logits_of(model, whole)
    for n in (1, 7):
        logits_of(model, whole[:, :n])
    expect(got.shape[1] == CONTEXT, "the text was cut")


@part(points=1, needs="reads_the_text")
def each_sequence_by_itself(rng):
    "The logits of a sequence do not depend on others of its batch, or on earlier calls, in eval mode either."
    model, ids = model_of(rng), drawn(rng)
    expect_close(logits_of(model, ids[1:2]), logits_of(model, ids)[1:2], what="the logits")
    for text in (ids, ids[:, :3]):  # several short ones would fit into the context
        model.train()
        got = logits_of(model, text)
        model.eval()
        for _ in range(2):
            expect_close(logits_of(model, text), got, what="the logits of another call, in eval mode,")


def text_of(rng, rule, batch):
    """Three random tokens, and then each one by the rule from the one three positions back."""
    ids = np.zeros((batch, CONTEXT), dtype=int)
    ids[:, :3] = rng.integers(len(rule), size=(batch, 3))
    for place in range(3, CONTEXT):
        ids[:, place] = rule[ids[:, place - 3]]
    return tensor(ids)


BOUND = 0.6  # nats; guessing has log(12) = 2.5, the reference about 0.02


@part(points=6, needs="reads_the_text")
def learns(rng):
    "After a hundred training steps on texts with a simple rule, the model predicts unseen texts."
    rule = rng.permutation(12)
    model = model_of(rng, 12, 32, 4, 5, CONTEXT)
    few, many = (
        sum(int(np.prod(shape)) for (shape,) in parameters_of(each, "shape"))
        for each in (model_of(rng, 12, 32, 4, 2, CONTEXT), model)
    )
    expect(few < many, "a model with more blocks should have more parameters")
    optimizer = construct(model, "torch.optim.AdamW", keep(model.parameters), lr=3e-3)
    for _ in range(100):
        ids = text_of(rng, rule, 24)
        logits = keep(model, ids[:, :-1])
        surprise = construct(
            model, "torch.nn.functional.cross_entropy", keep(logits.flatten, 0, 1), ids[:, 1:].flatten()
        )
        optimizer.zero_grad()
        surprise.backward()
        optimizer.step()
    ids, surprises = text_of(rng, rule, 100), []
    for n in (5, 8, 11):  # what it predicts after n tokens, and it is given no more
        last = model(ids[:, :n])[:, -1].double().log_softmax(-1)
        surprises.append(float(-last.gather(1, ids[:, n : n + 1]).mean()))
    reached = sum(surprises) / 3
    expect(reached < BOUND, f"its loss on unseen texts is {reached:.2f}; it should be below {BOUND}")


### END HIDDEN TESTS

# %% [markdown] id="loss_text"
# ## 2. `loss`: how well it predicts a text
#
# **Points** {points loss} · **Book** *A language model of one's own*, section *The loss*
#
# Every position predicts the next token. The loss is the mean of −log p over all these predictions, where p is
# the probability that the model gave to the right token.
#
# <details><summary>Hint</summary>
#
# `nn.functional.cross_entropy` takes logits `(predictions, vocab_size)` and tokens `(predictions,)`.
# </details>

# %% role="solution" item="loss"
from mha_lib.language_model import loss

# %% role="test" item="loss"
even = nn.Embedding.from_pretrained(torch.zeros(4, 4))
check_close("the worked example", loss(even, torch.tensor([[0, 3, 1]])).exp(), torch.tensor(4.0))
bigrams = nn.Embedding.from_pretrained(
    torch.tensor([[3.0, 1.0, 1.0], [1.0, 1.0, 2.0], [4.0, 1.0, 1.0]]).log()
)
check_close(
    "a model that looks at one token",
    loss(bigrams, torch.tensor([[0, 0, 1, 2]])),
    torch.tensor(0.9378),
    tolerance=1e-3,
    mistakes={
        "each position is compared with its own token, which the model has just read": [[0.9678]],
        "the losses of the tokens are summed; the loss is their mean": 2.8134,
    },
)
### BEGIN HIDDEN TESTS


import torch


def bigram(rng, vocabulary=5, unlikely=0.0):
    """A model that looks at one token, in the student's process, and its table of logits; token 0 is unlikely."""
    table = tensor(2.0 * rng.normal(size=(vocabulary, vocabulary)) - unlikely * (np.arange(vocabulary) == 0))
    return construct(loss, "torch.nn.Embedding.from_pretrained", table, freeze=False), table


@part(
    points=2, example="loss(torch.nn.Embedding.from_pretrained(torch.eye(3)), torch.tensor([[0, 1, 1, 2]]))"
)
def values(rng):
    "The loss is the mean of −log p of each next token, over all positions and sequences."
    for shape in ((3, 7), (1, 2), (4, 20)):
        model, table = bigram(rng)
        ids = tensor(rng.integers(5, size=shape))
        expect_close(loss(model, ids), reference.loss(torch.nn.Embedding.from_pretrained(table), ids))


@part(points=1, needs="values")
def whole_context(rng):
    "The model is given at most n of the n + 1 tokens, so that n may be its whole context."
    model, _ = bigram(rng)
    hook = construct(loss, "unittest.mock.Mock", return_value=None)
    keep(model.register_forward_pre_hook, hook)
    loss(model, tensor(rng.integers(5, size=(3, 7))))
    calls = attribute_of(hook, "call_args_list")  # of the hook, which gets the model and its arguments
    read = max((ids.shape[1] for (_, given), _ in calls for ids in given), default=0)
    expect(read <= 6, f"with 7 tokens in each text, the model was given {read} of them; it needs only 6")


@part(points=2, needs="values")
def gradient(rng):
    "Gradients pass through the loss to the model, however small the probability of a token is."
    for unlikely in (0.0, 35.0):
        model, table = bigram(rng, unlikely=unlikely)
        ids = tensor(rng.integers(5, size=(3, 6)))
        ids[0, 1] = 0
        keep(loss, model, ids).backward()
        own = torch.nn.Embedding.from_pretrained(table, freeze=False)
        reference.loss(own, ids).backward()
        got = attribute_of(model, "weight.grad")
        expect(got is not None, "no gradient reaches the model")
        expect_close(got, own.weight.grad, what="the gradient")


@part(points=1, needs="values")
def inputs_unchanged(rng):
    "The caller's tokens are unchanged."
    loss(bigram(rng)[0], tensor(rng.integers(5, size=(3, 6))))
    expect_unchanged(loss, "loss")


### END HIDDEN TESTS

# %% [markdown] id="sample_text"
# ## 3. `sample`: let it write
#
# **Points** {points sample} · **Book** *A language model of one's own*, section *Writing with a cache*
#
# The model predicts a token, the token is appended to the text, and the model predicts the next one. Nothing
# before the new token changes, so the keys and values of earlier tokens need not be computed again.
#
# <details><summary>Hint: the first step</summary>
#
# The first call reads all given tokens and fills the cache; from then on each call reads one token.
# </details>
#
# <details><summary>Hint: drawing</summary>
#
# `torch.multinomial(chances, 1, generator=generator)` draws one token for each row;
# `torch.Generator().manual_seed(seed)` makes your own generator.
# </details>

# %% role="solution" item="sample"
from mha_lib.language_model import sample

# %% role="test" item="sample"
torch.manual_seed(0)
model = LanguageModel(vocab_size=10, d_model=8, num_heads=2, num_layers=2, context=16)
start = torch.tensor([[1, 2, 3], [4, 5, 6]])  # (batch, n)
written = start
for _ in range(5):  # without a cache
    written = torch.cat([written, model(written)[:, -1].argmax(-1, keepdim=True)], dim=1)
check_equal("greedy, the same as without a cache", sample(model, start, 5, seed=0, temperature=0.0), written)
check_equal(
    "the same seed gives the same text", sample(model, start, 9, seed=1), sample(model, start, 9, seed=1)
)
check_unchanged("sample leaves the tokens alone", lambda ids: sample(model, ids, 3, seed=0), start)
### BEGIN HIDDEN TESTS


import torch


def model_of(rng, vocabulary=11, context=24):
    """A model of the student's own, with fresh parameters whose logits are far from equal."""
    seed_torch(sample, int(rng.integers(1000)))
    return construct(sample, "LanguageModel", vocabulary, 16, 2, 2, context)


def written(result, ids, steps):
    """The result, if it is the tokens given and as many new ones as asked for."""
    expect(isinstance(result, torch.Tensor), "the result should be a tensor")
    shape = (ids.shape[0], ids.shape[1] + steps)
    expect(
        tuple(result.shape) == shape, f"the text should have shape {shape}, but it has {tuple(result.shape)}"
    )
    expect(not result.is_floating_point(), "tokens are whole numbers")
    expect(bool((result[:, : ids.shape[1]] == ids).all()), "the text should begin with the tokens given")
    return result


@part(points=4)
def greedy(rng):
    "With temperature 0, each new token is the most likely one, given all tokens before it."
    model, ids = model_of(rng), tensor(rng.integers(11, size=(3, 5)))
    text = written(sample(model, ids, 19, 0, 0.0), ids, 19)  # as many as fit into the context
    logits = model(text[:, :-1])[:, 4:]
    taken = logits.gather(2, text[:, 5:, None]).squeeze(2)
    behind = (logits.amax(dim=2) - taken).max()
    expect(float(behind) <= 1e-3, "sample took a token that is not the most likely one after the text so far")


@part(points=1, needs="greedy")
def one_token_and_one_step(rng):
    "The function may start from a single token of a single sequence and add a single token."
    for batch in (2, 1):
        model, ids = model_of(rng), tensor(rng.integers(11, size=(batch, 1)))
        expect_equal(sample(model, ids, 1, 0, 0.0).numpy(), reference_step(model, ids).numpy(), "the text")


def reference_step(model, ids):
    return torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], dim=1)


@part(points=2, needs="greedy")
def seed(rng):
    "The same seed gives the same text, whatever was drawn before. Another seed gives another text."
    model, ids = model_of(rng), tensor(rng.integers(11, size=(4, 3)))
    seed_torch(sample, 0)
    first = written(sample(model, ids, 12, 0), ids, 12)
    seed_torch(sample, 1)
    expect(torch.equal(written(sample(model, ids, 12, 0), ids, 12), first), "the same seed gave another text")
    texts = [first, *(sample(model, ids, 12, seed) for seed in (6, 7, 1005))]
    for number, text in enumerate(texts):
        same = any(torch.equal(text, other) for other in texts[:number])
        expect(not same, "another seed gave the same text")


@part(points=3, needs="greedy")
def chances(rng):
    "Tokens are drawn with the probabilities softmax(logits / temperature), independently at each step."
    for temperature in ([], [0.3], [3.0]):  # the default is 1
        model, start = model_of(rng), rng.integers(11, size=(2, 4))
        ids = tensor(np.repeat(start, 3000, axis=0))
        right = (
            (model(ids[::3000])[:, -1] / (temperature or [1.0])[0]).double().softmax(-1)
        )  # (2, vocabulary)
        new = written(sample(model, ids, 1, int(rng.integers(1000)), *temperature), ids, 1)[:, -1]
        for drawn_of, chance in zip(new.reshape(2, 3000), right, strict=True):
            share = torch.bincount(drawn_of, minlength=11)[:11] / 3000
            far = float((share - chance).abs().sum() / 2)  # about 0.02 if all is right
            expect(far < 0.06, f"the shares of the tokens drawn differ by {far:.0%} from their probabilities")
    even = written(sample(model, ids[:3], 12, int(rng.integers(1000)), 1e5), ids[:3], 12)[:, -12:]
    same = bool((even == even[:, :1]).all())  # the chance of this is less than 11^-30
    expect(
        not same, "at a very high temperature each text repeated one token, so the steps are not independent"
    )
    model, ids = model_of(rng, 80), tensor(np.full((3000, 1), 7))
    new = written(sample(model, ids, 1, int(rng.integers(1000)), 1e5), ids, 1)[:, -1]
    found = len(new.unique())  # that one of 80 is never drawn happens less than once in 10^14 times
    expect(found == 80, f"of 80 tokens, all about equally likely, only {found} were ever drawn")


@part(points=3, needs="greedy")
def cache(rng):
    "The work of sampling is at most three times that of one call on the whole text."
    model, ids = model_of(rng), tensor(rng.integers(11, size=(2, 2)))

    def work(action):
        construct(sample, "importlib.import_module", "torch.utils.flop_counter")
        counter = construct(sample, "torch.utils.flop_counter.FlopCounterMode", display=False)
        keep(construct(sample, "operator.methodcaller", "__enter__"), counter)
        try:
            result = action()
        finally:
            construct(sample, "operator.methodcaller", "__exit__", None, None, None)(counter)
        return result, counter.get_total_flops()

    text, spent = work(lambda: sample(model, ids, 22, 0, 0.0))
    _, once = work(lambda: model(text))
    expect(
        spent <= 3 * once, f"sampling took {spent / once:.1f} times the work of one call; 3 times is enough"
    )


@part(points=1, needs="greedy")
def inputs_unchanged(rng):
    "The caller's tokens are unchanged."
    sample(model_of(rng), tensor(rng.integers(11, size=(2, 3))), 4, 0)
    expect_unchanged(sample, "sample")


### END HIDDEN TESTS

# %% [markdown] id="train_text"
# ## Train it
#
# The text is the source code of Python's standard library, as single characters. The cell trains for `SECONDS`;
# after five minutes on two cores you see indentation, brackets and words. Some files are held out and never
# trained on.

# %% role="show" id="train"
SECONDS = 300

files = sorted(Path(os.__file__).parent.glob("*.py"))
texts = [path.read_text("utf-8", errors="ignore") for path in files]
letters = sorted(set("".join(texts)) & set(map(chr, range(9, 127))))
number = {letter: i for i, letter in enumerate(letters)}


def encoded(parts):
    return torch.tensor([number[letter] for text in parts for letter in text if letter in number])


held_out, trained_on = encoded(texts[::20]), encoded(t for i, t in enumerate(texts) if i % 20)
context = 96


def excerpts(ids, count):
    starts = torch.randint(len(ids) - context - 1, (count,))
    return torch.stack([ids[start : start + context + 1] for start in starts])


def write(model, start="def "):
    ids = sample(model, encoded([start])[None], context - len(start), seed=0, temperature=0.7)
    return "".join(letters[i] for i in ids[0].tolist())


torch.manual_seed(0)
model = LanguageModel(len(letters), d_model=96, num_heads=6, num_layers=3, context=context)
test = excerpts(held_out, 64)
print(f"before: loss {loss(model, test).item():.2f}, it writes\n{write(model)!r}\n")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
begin, steps, curve = time.monotonic(), 0, []
while time.monotonic() - begin < SECONDS:
    value = loss(model, excerpts(trained_on, 24))
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    if steps % 50 == 0:
        with torch.no_grad():
            curve.append((time.monotonic() - begin, loss(model, test).item()))
    steps += 1
print(f"after {steps} steps: loss {loss(model, test).item():.2f} on files that it has not seen, it writes\n")
print(write(model))
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(*zip(*curve, strict=True))
ax.set(xlabel="seconds of training", ylabel="loss on unseen files (nats)")
plt.show()

# %% [markdown] id="hand_in"
# ## Before you hand in
#
# Restart the kernel, run all cells, save, and hand in this file without renaming it. If you learn alone and have
# installed the course's package, `mha-grade check language_model.ipynb` runs the hidden tests on your code.
