"""Runs that are too long for a chapter: several seeds, budgets and sizes, kept in `curves.json`.

    python -m mha_lib.experiments.curves NAME …

trains the named curves again (`composition`, `pointers`, `head_sweep`, `two_tokens`; all of them together take
about an hour on one core) and stores each run as it ends. A chapter draws what is stored; a test repeats a run
of each.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mha_lib.experiments.block_stack import follow_pointers
from mha_lib.experiments.composition import compose
from mha_lib.experiments.head_sweep import key_value_recall
from mha_lib.experiments.one_layer import recall_tokens

FILE = Path(__file__).with_name("curves.json")
SEEDS = (0, 1, 2)

Settings = dict[str, int]
Run = dict[str, int | float]  # the settings, and under "result" what came of them


def composition_settings() -> Iterator[Settings]:
    """One block and two, in several widths, three times and nine times the steps of the chapter."""
    sizes = [(2, 1, 32), (1, 1, 32), (1, 2, 32), (1, 4, 32), (1, 8, 32), (1, 8, 64), (1, 8, 128)]
    for steps in (600, 1800, 5400):
        for num_blocks, num_heads, d_model in sizes:
            for seed in SEEDS:
                if num_blocks == 1 or steps < 5400:
                    yield {
                        "num_blocks": num_blocks,
                        "num_heads": num_heads,
                        "n": 8,
                        "d_model": d_model,
                        "steps": steps,
                        "seed": seed,
                    }


def pointer_settings() -> Iterator[Settings]:
    """One block that follows two pointers among eight letters."""
    for steps in (400, 1000, 3000):
        for num_heads in (1, 8):
            for seed in SEEDS:
                yield {"num_blocks": 1, "num_heads": num_heads, "hops": 2, "steps": steps, "seed": seed}


def sweep_settings() -> Iterator[Settings]:
    """Every number of heads at three budgets; the two ends at three times the largest."""
    for steps in (400, 1000, 2500, 7500):
        for num_heads in (1, 2, 4, 8, 16, 32, 64):
            for seed in SEEDS:
                if steps <= 2500 or num_heads in (1, 64):
                    yield {"num_heads": num_heads, "steps": steps, "seed": seed}


def two_token_settings() -> Iterator[Settings]:
    """One head that must name two tokens, with a linear read-out."""
    for steps in (300, 900, 2700):
        for seed in SEEDS:
            yield {"num_heads": 1, "steps": steps, "seed": seed}


CURVES: dict[str, tuple[Callable[[], Iterator[Settings]], Callable[..., float]]] = {
    "composition": (composition_settings, lambda **settings: compose(**settings).explained),
    "pointers": (pointer_settings, lambda **settings: follow_pointers(**settings).right),
    "head_sweep": (sweep_settings, key_value_recall),
    "two_tokens": (two_token_settings, lambda **settings: recall_tokens(**settings).both),
}


def load_curve(name: str) -> list[Run]:
    """The stored runs of a curve: their settings, and under "result" what came of each.

    Args:
        name: a key of `CURVES`.
    """
    runs: list[Run] = json.loads(FILE.read_text("utf-8"))[name]
    return runs


def select(runs: list[Run], **settings: int) -> list[float]:
    """The results of the runs with these settings, one for each seed.

    >>> select([{"steps": 3, "seed": 0, "result": 0.5}, {"steps": 4, "seed": 0, "result": 0.75}], steps=4)
    [0.75]
    """
    return [run["result"] for run in runs if all(run[key] == value for key, value in settings.items())]


def train_curve(name: str) -> None:
    """Train all runs of a curve and store them, one after the other, in the place of those that were stored."""
    list_settings, train = CURVES[name]
    runs: list[Run] = []
    for settings in list_settings():
        runs.append({**settings, "result": round(train(**settings), 4)})
        print(name, runs[-1], flush=True)
        stored = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
        lines = [
            f' "{key}": [\n  ' + ",\n  ".join(map(json.dumps, those)) + "\n ]"
            for key, those in sorted({**stored, name: runs}.items())
        ]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    for curve in sys.argv[1:] or CURVES:
        train_curve(curve)
