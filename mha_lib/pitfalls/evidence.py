"""What laws are made of: reading recorded steps, and inputs on which a mistake shows whatever else is wrong.

A step has a `request`, a dict that says what was called with which arguments, and the `value` that came of it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Law = Callable[[Any, Sequence[Any]], bool]


def given(step: Any, place: int, name: str, default: Any = None) -> Any:
    """An argument of a recorded call, by its place or its name."""
    args, kwargs = step.request.get("args", ()), step.request.get("kwargs", {})
    return args[place] if place < len(args) else kwargs.get(name, default)


def methods(steps: Sequence[Any]) -> list[str | None]:
    """The methods that were called, in their order; None for a call of the function, class or object itself."""
    return [step.request.get("method") for step in steps]


def drops_unasked(make: Callable[[Any], Any], x: Any) -> Law:
    """A law: a layer that should have no dropout gives two different results, in the mode that the part tests.

    Args:
        make: makes a layer of the tested class.
        x: the input of the layer, with so many numbers that dropout changes some.
    """

    def law(tested: Any, steps: Sequence[Any]) -> bool:
        layer = make(tested)
        layer.train("train" in methods(steps))
        first, second = layer(x), layer(x)
        return bool((first == first).all()) and not bool((first == second).all())  # no NaN

    return law


def registers_too_little(make: Callable[[Any], Any], x: Any, parameters: int) -> Law:
    """A law: a layer registers too few tensors, and two layers with equal registered tensors still differ.

    Args:
        make: makes a layer of the tested class.
        x: the input of the layer.
        parameters: how many tensors a right layer registers.
    """

    def law(tested: Any, steps: Sequence[Any]) -> bool:
        one, other = make(tested), make(tested)
        registered = one.state_dict()
        if len(registered) >= parameters:
            return False
        other.load_state_dict(registered)
        output = one(x)
        return bool((output == one(x)).all() and (abs(output - other(x)) > 1e-3).any())

    return law


def pooled(pool: Callable[..., Any], place: int, *, memory: bool = False) -> Law:
    """A law: the outputs of the heads are pooled into one before W_O, so that the layer cannot tell them apart.

    One token attends to itself alone, whatever is wrong with scores and masks. Its three heads give (1, 8),
    (5, 3) and (9, 1), and W_O changes nothing. If they are pooled, only their pool and zeros come out.

    Args:
        pool: `np.mean`, `np.max` or `np.sum`.
        place: of the argument `num_heads`.
        memory: whether the layer is called with a memory behind X.
    """
    heads = np.array([[1.0, 8.0], [5.0, 3.0], [9.0, 1.0]])  # (heads, d_k)
    wanted = pool(heads, axis=0)  # (d_k,)

    def law(tested: Any, steps: Sequence[Any]) -> bool:
        if not any(given(step, place, "num_heads", 1) > 1 for step in steps):
            return False
        X = np.array([[[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]])  # (batch, n, d_model)
        W_V = np.zeros((6, 6))
        W_V[0] = heads.reshape(6)
        output = tested(*([X, X] if memory else [X]), np.eye(6), np.eye(6), W_V, np.eye(6), 3)
        entries = np.unique(np.round(output, 6))
        return {*entries} - {0.0} == {*wanted}

    return law


POOLS: Mapping[str, Callable[..., Any]] = {
    "heads-averaged": np.mean,
    "heads-max-pooled": np.max,
    "heads-summed": np.sum,
}


def additive(tested: Any, steps: Sequence[Any]) -> bool:
    """A law: the masks hold 0 and very negative numbers."""
    masks = [np.asarray(step.value) for step in steps if isinstance(step.value, np.ndarray)]
    low = any(bool((mask < 0).any()) for mask in masks)
    return low and all(
        mask.dtype.kind == "f" and bool(((mask == 0) | (mask <= -1e4)).all()) for mask in masks
    )


def none_is_an_error(tested: Any, steps: Sequence[Any]) -> bool:
    """A law: an error names NoneType. In a part that leaves an argument out, this argument is the None."""
    return any("NoneType" in str(getattr(step, "error", None) or "") for step in steps)
