"""Makes the sample of the real model that is stored in the repository.

    python -m mha_lib.minilm.make_sample

writes `minilm_sample.npz` beside this file. It needs the model (see `mha_lib.minilm.minilm`).
"""

import json
from typing import Any

import numpy as np

from mha_lib.minilm.minilm import SAMPLE, MiniLM
from mha_lib.real_heads import bert_attention

TEXTS = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The teacher gave the students their homework.",
    "The cat that sat on the mat was fluffy.",
    "The cat sat on the mat because it was soft.",
    "The keys to the cabinet are on the table.",
)
LAYER, HEADS, WIDTH = 3, (1, 5, 9, 11), 32


def make_sample(model: MiniLM) -> dict[str, Any]:
    """The arrays of the sample by name, in half precision; `mha_lib.minilm.minilm.Sample` says what they are."""
    runs = [model.run(text, bert_attention) for text in TEXTS]
    states = [hidden[LAYER] for hidden, _ in runs]  # (n, 384) for each text
    weights = model.attention[LAYER]
    rows = np.concatenate([np.arange(head * WIDTH, (head + 1) * WIDTH) for head in HEADS])  # (128,)
    # Orthonormal directions, the first of which span all tokens; the rest fills them up to 128.
    spanning = np.concatenate([*states, weights["query"]["weight"][rows]])  # (tokens + 128, 384)
    inward = np.linalg.qr(spanning.T[:, : len(rows)])[0]  # (384, 128)
    outward, mixing = np.linalg.qr(weights["dense"]["weight"][:, rows])  # (384, 128), (128, 128)
    small = {
        name: {"weight": weights[name]["weight"][rows] @ inward, "bias": weights[name]["bias"][rows]}
        for name in ("query", "key", "value")
    } | {"dense": {"weight": mixing, "bias": outward.T @ weights["dense"]["bias"]}}
    about = {
        "texts": TEXTS,
        "tokens": [model.tokens(text) for text in TEXTS],
        "layer": LAYER,
        "heads": HEADS,
    }
    arrays = {f"{part}_{kind}": array for part, pair in small.items() for kind, array in pair.items()}
    arrays |= {f"states_{i}": x @ inward for i, x in enumerate(states)}
    arrays |= {f"maps_{i}": maps for i, (_, maps) in enumerate(runs)}
    halves = {name: array.astype(np.float16) for name, array in arrays.items()}
    return {"about": np.array(json.dumps(about)), **halves}


if __name__ == "__main__":
    np.savez_compressed(SAMPLE, **make_sample(MiniLM()))
    print(f"{SAMPLE.name}: {SAMPLE.stat().st_size} bytes")
