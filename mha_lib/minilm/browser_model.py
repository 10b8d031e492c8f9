"""all-MiniLM-L6-v2 small enough to be loaded into a page of the book: whole numbers of 8 bits in place of floats.

The book's build puts two files beside the page on which readers try sentences of their own. The forward pass that
reads them is `book/_static/minilm.js`, and the tokenizer is `book/_static/wordpiece.js`.
"""

import json
from pathlib import Path

import numpy as np

from mha_lib.minilm.minilm import find_model, read_checked

LONGEST = 128  # tokens of a text: the model was made for no more
ABSENT = ("pooler.", "embeddings.position_ids")  # not needed for what the heads do


def to_8_bits(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights as whole numbers from −127 to 127, and what each row of them is to be multiplied by.

    Args:
        weights: `(rows, columns)`; a row of zeros stays one.

    Returns:
        int8 `(rows, columns)`, and float32 `(rows,)`. Their product differs from the weights by half a step at
        most, where a step is 1/127 of the largest weight in the row.

    Source: Dettmers et al. 2022, LLM.int8(), section 2.1, absmax quantization, here with a scale for each row.

    >>> to_8_bits(np.array([[1.0, -2.0], [0.0, 0.0]]))[0]
    array([[  64, -127],
           [   0,    0]], dtype=int8)
    """
    smallest = np.finfo(np.float32).tiny  # so that no row is divided by 0
    scale = np.maximum(np.abs(weights).max(axis=1) / 127, smallest).astype(np.float32)  # (rows,)
    return np.rint(weights / scale[:, None]).astype(np.int8), scale


def small_weights(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All that the forward pass needs: matrices in 8 bits with `….scale` beside them, the rest as float32."""
    small = {}
    for name, array in weights.items():
        if name.startswith(ABSENT):
            continue
        rows = array[:LONGEST] if "position_embeddings" in name else array
        if rows.ndim == 2:
            small[name], small[f"{name}.scale"] = to_8_bits(rows)
        else:
            small[name] = rows.astype(np.float32)
    return small


def write_browser_model(folder: Path) -> None:
    """Write `weights.safetensors` (about 23 MB) and `vocabulary.txt`, a token a line in the order of their numbers.

    Raises:
        FileNotFoundError: if the model is not installed; the message says how to get it.
    """
    source = find_model()
    from safetensors.numpy import load, save

    folder.mkdir(parents=True, exist_ok=True)
    weights = small_weights(load(read_checked(source / "model.safetensors")))
    (folder / "weights.safetensors").write_bytes(save(weights))
    numbers = json.loads(read_checked(source / "tokenizer.json"))["model"]["vocab"]
    tokens = sorted(numbers, key=numbers.__getitem__)
    (folder / "vocabulary.txt").write_text("\n".join(tokens), "utf-8")
