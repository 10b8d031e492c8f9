"""Runs that are too long for a chapter: several seeds, budgets and sizes, kept in `curves.json`.

    python -m mha_lib.experiments.curves NAME …

trains those runs of the named curves (`composition`, `head_sweep`, `induction` …) that are not stored
yet, and stores each as it ends; all of them take about a quarter of an hour on one core. To train a run again,
delete its line. A chapter draws what is stored; a test repeats a run of each curve.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mha_lib.experiments.block_stack import follow_pointers
from mha_lib.experiments.composition import compose
from mha_lib.experiments.head_sweep import key_value_recall
from mha_lib.experiments.induction import accuracy, repeated_sequences, train
from mha_lib.experiments.modern import train_recall
from mha_lib.experiments.one_layer import recall_tokens
from mha_lib.experiments.position import train as train_order
from mha_lib.experiments.training import reproducible

FILE = Path(__file__).with_name("curves.json")
SEEDS = (0, 1, 2)

Settings = dict[str, int]
Run = dict[str, int | float]  # the settings, and under "result" what came of them


def composition_settings() -> Iterator[Settings]:
    """One block and two, in two widths; three times the chapter's steps, and one size with nine times."""
    budgets = {(2, 1, 32): (600,), (1, 1, 32): (600, 1800), (1, 8, 32): (600, 1800), (1, 8, 64): (600, 1800)}
    for (num_blocks, num_heads, d_model), all_steps in budgets.items():
        for steps in all_steps:
            for seed in SEEDS:
                yield composition_run(num_blocks, num_heads, d_model, steps, seed)
    yield composition_run(1, 8, 32, 5400, 0)


def composition_run(num_blocks: int, num_heads: int, d_model: int, steps: int, seed: int) -> Settings:
    """The settings of one stack, with eight pointers."""
    sizes = {"num_blocks": num_blocks, "num_heads": num_heads, "n": 8, "d_model": d_model}
    return {**sizes, "steps": steps, "seed": seed}


def induction_settings() -> Iterator[Settings]:
    """One layer of four and of eight heads that continues a repeated pattern, and three times the steps."""
    for num_heads in (4, 8):
        for steps in (400, 1200):
            for seed in SEEDS:
                yield {"num_layers": 1, "num_heads": num_heads, "steps": steps, "seed": seed}


def pattern_continued(**settings: int) -> float:
    """Share of right next tokens on the sequences on which the chapter tests.

    Args:
        settings: those of `mha_lib.experiments.induction.train`.
    """
    model = train(**settings).model  # type: ignore[arg-type]
    with reproducible(1):
        test = repeated_sequences(1000)
    return accuracy(model, test)


def pointer_settings() -> Iterator[Settings]:
    """One block with one head that follows two pointers among eight letters."""
    for steps in (400, 3000):
        for seed in SEEDS:
            yield {"num_blocks": 1, "num_heads": 1, "hops": 2, "steps": steps, "seed": seed}


def sweep_settings() -> Iterator[Settings]:
    """Every number of heads at 400 steps; those that are not faultless there with 2,500, the ends with 7,500."""
    for steps, head_counts in {400: (1, 2, 4, 8, 16, 32, 64), 2500: (1, 32, 64)}.items():
        for num_heads in head_counts:
            for seed in SEEDS:
                yield {"num_heads": num_heads, "steps": steps, "seed": seed}
    for num_heads in (1, 64):
        yield {"num_heads": num_heads, "steps": 7500, "seed": 0}


def two_token_settings() -> Iterator[Settings]:
    """One head that must name two tokens, with a linear read-out."""
    for steps in (300, 900, 2700):
        for seed in SEEDS:
            yield {"num_heads": 1, "steps": steps, "seed": seed}
    yield {"num_heads": 1, "steps": 8100, "seed": 2}


def width_settings() -> Iterator[Settings]:
    """Heads of the sweep with a width of their own, and with one or three keys asked for."""
    for num_heads, d_k, asked in ((16, 1, 2), (64, 4, 2), (64, 1, 1), (1, 64, 3), (2, 32, 3), (4, 16, 3)):
        yield {"num_heads": num_heads, "d_k": d_k, "asked": asked, "steps": 400}


def order_settings() -> Iterator[Settings]:
    """ALiBi with twice the chapter's heads and three times its steps."""
    for back in (1, 3):
        yield {"back": back, "num_heads": 8, "steps": 900}


def linear_settings() -> Iterator[Settings]:
    """Linear attention that recalls 32 pairs: three times the chapter's steps, and twice the width as well."""
    for d_k in (16, 32):
        yield {"pairs": 32, "d_k": d_k, "steps": 900}


CURVES: dict[str, tuple[Callable[[], Iterator[Settings]], Callable[..., float]]] = {
    "composition": (composition_settings, lambda **settings: compose(**settings).explained),
    "induction": (induction_settings, pattern_continued),
    "pointers": (pointer_settings, lambda **settings: follow_pointers(**settings).right),
    "head_sweep": (sweep_settings, key_value_recall),
    "head_widths": (width_settings, key_value_recall),
    "alibi": (order_settings, lambda **settings: train_order("ALiBi", **settings).same_length),
    "linear": (linear_settings, lambda **settings: train_recall("linear", **settings).accuracy),
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
    """Train the runs of a curve that are not stored yet, and store each as it ends."""
    list_settings, train = CURVES[name]
    curves = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    runs = curves.setdefault(name, [])
    for settings in list_settings():
        if not select(runs, **settings):
            runs.append({**settings, "result": round(train(**settings), 4)})
            print(name, runs[-1], flush=True)
            store(curves)


def store(curves: dict[str, list[Run]]) -> None:
    """Write the curves, a run a line."""
    parts = []
    for name, runs in sorted(curves.items()):
        lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
        parts.append(f' "{name}": [\n{lines}\n ]')
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


if __name__ == "__main__":
    for curve in sys.argv[1:] or CURVES:
        train_curve(curve)
