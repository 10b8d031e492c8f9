"""Modules and other objects that stay in the student's process: made, filled, called, asked for gradients."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_grader.sandbox.requests import load
from mha_grader.testing.errors import CallError, Mismatch
from mha_grader.testing.expectations import expect, expect_close, output_of
from mha_grader.testing.values import as_array, tensor

SEED = "torch.default_generator.manual_seed"
MAX_FILLED = 100_000  # numbers in the module of a public example, which is small


def load_parameters(module: Any, parameters: dict[str, Any]) -> None:
    """Copy arrays or tensors into the parameters of the student's module, by dotted path.

    A bias of zeros may be missing: that costs the parts in which biases are not 0, and no others.

    Raises:
        Mismatch: if it has no such parameter, or one of another shape.
        CallError: if it timed out or its process ended.
    """
    try:
        module.load_parameters(parameters)
        return
    except CallError as error:
        if error.kind != "error":
            raise
    for name, value in parameters.items():  # one by one, to see which
        try:
            module.load_parameters({name: value})
        except CallError as error:
            if error.kind != "error":
                raise
            if name.endswith("bias") and not value.any():
                continue
            shape = tuple(np.shape(as_array(value)))
            raise Mismatch(f"it has no parameter {name} of shape {shape}, which it should have") from None


def twins(tested: Any, reference: Any, parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A module of the student's and one of the reference's, made alike, with the same numbers, in eval mode.

    Args:
        tested: the student's class, or one that is `installed`.
        reference: the reference's class.
        parameters: tensors by dotted path.
        args: what both are made with.
        kwargs: what both are made with, by name.

    Raises:
        Mismatch: if the student's module lacks a parameter.
        CallError: if it cannot be made.
    """
    module = tested.make(parameters, *args, **kwargs)
    if not module.filled:  # step by step, to see where it fails
        load_parameters(module, parameters)
        module.eval()
    expected = reference(*args, **kwargs)
    load(expected, parameters)
    return module, expected.eval()


def reload(pair: tuple[Any, Any], parameters: dict[str, Any]) -> tuple[Any, Any]:
    """The twins with other numbers, which the student's module gets through its own `load_state_dict`.

    Raises:
        CallError: if that fails.
    """
    module, expected = pair
    module.load_state_dict(parameters, strict=False)  # it may have buffers of its own
    expected.load_state_dict(parameters)
    return pair


def gradients(callee: Any, args: Sequence[Any], wrt: Sequence[int | str], cotangent: Any) -> list[Any]:
    """Gradients of sum(cotangent · output), by autograd in the student's process; None where unused.

    Args:
        callee: a student's function, module or method; of several outputs the first is taken.
        args: its arguments, of which some may be objects that the student's process keeps.
        wrt: positions of arguments, and dotted paths of the module's parameters.
        cotangent: tensor of the output's shape.

    Raises:
        CallError: if the call or the backward pass failed.
    """
    return list(callee.gradients(args, wrt, cotangent))


def expect_gradients(
    rng: np.random.Generator,
    callee: Any,
    expected: Any,
    args: Sequence[Any],
    wrt: Sequence[int | str],
    tolerance: float = 1e-4,
) -> None:
    """Gradients of a random weighting of the output are those of the reference.

    Args:
        rng: draws the weighting.
        callee: a student's function or module; of several outputs the first is taken.
        expected: the reference's.
        args: arguments for both.
        wrt: positions of arguments, and dotted paths of the module's parameters.
        tolerance: as in `expect_close`.

    Raises:
        Mismatch: if a gradient does not arrive, or is not right.
        CallError: if the call or the backward pass failed.
    """
    import torch

    names = list(inspect.signature(getattr(expected, "forward", expected)).parameters)
    leaves = {key: args[key].clone().requires_grad_() for key in wrt if isinstance(key, int)}
    output = output_of(expected(*[leaves.get(index, value) for index, value in enumerate(args)]))
    cotangent = tensor(rng.normal(size=output.shape))
    sources = [leaves[key] if isinstance(key, int) else expected.get_parameter(key) for key in wrt]
    right = torch.autograd.grad((output * cotangent).sum(), sources)
    for key, got, wanted in zip(wrt, gradients(callee, args, wrt, cotangent), right, strict=True):
        name = names[key] if isinstance(key, int) else key
        expect(got is not None, f"no gradient reaches {name}: the chain of tensors is cut somewhere")
        expect_close(got, wanted, tolerance, what=f"the gradient of {name}")


def keep(callee: Any, *args: Any, **kwargs: Any) -> Any:
    """Call something of the student's; the result stays in the student's process, as an object.

    Such an object can be called, its methods can, and it can be an argument of further calls.

    Raises:
        CallError: if the call gave no result.
    """
    return callee.keep(*args, **kwargs)


def construct(beside: Any, path: str, *args: Any, **kwargs: Any) -> Any:
    """Call something of an installed package in the student's process; the result stays there, as an object.

    Args:
        beside: any function, class or object of the student's.
        path: where to find what is called, for example `torch.nn.MultiheadAttention`.
        args: its arguments.
        kwargs: its arguments by name.

    Raises:
        CallError: if the call gave no result.
    """
    return beside.construct(path, *args, **kwargs)


def installed(beside: Any, path: str) -> Any:
    """A class of an installed package in the student's process, of which objects are made as of the student's own.

    Args:
        beside: any function or object of the student's.
        path: where to find it, for example `torch.nn.MultiheadAttention`.
    """
    return beside.installed(path)


def seed_torch(beside: Any, seed: int) -> None:
    """Start PyTorch's random numbers in the student's process anew.

    `torch.manual_seed` would tell the generators of all devices as well, which takes long where there are none.

    Args:
        beside: any function, class or object of the student's.
        seed: the start.

    Raises:
        CallError: if that failed.
    """
    construct(beside, SEED, seed)


def attribute_of(kept: Any, *names: str) -> Any:
    """An attribute, if it is plain data, of an object that stays in the student's process; of several, a tuple.

    Raises:
        CallError: if there is none.
    """
    return construct(kept, "operator.attrgetter", *names)(kept)


def parameters_of(module: Any, *names: str) -> list[tuple[Any, ...]]:
    """Attributes of each parameter of the student's module, as its `parameters()` gives them.

    Args:
        module: the student's module.
        names: attributes that are plain data, for example `requires_grad`, `is_leaf`, `shape`.

    Raises:
        Mismatch: if what comes back is something else.
        CallError: if that failed.
    """
    read = construct(module, "operator.attrgetter", *names)
    found = construct(module, "builtins.map", read, keep(module.parameters))
    rows = construct(module, "builtins.list", found).copy()
    rows = [row if len(names) > 1 else (row,) for row in rows] if isinstance(rows, list) else [()]
    alike = all(isinstance(row, tuple) and len(row) == len(names) for row in rows)
    expect(alike, "parameters() should give the layer's parameters")
    return rows


def expect_trained(module: Any, *shapes: tuple[int, ...]) -> None:
    """The module trains weights and biases of these shapes, and nothing else.

    One that is missing is no matter of this: the output shows it.

    Args:
        module: the student's module.
        shapes: of all its weights and biases.

    Raises:
        Mismatch: if too many numbers require gradients, or one of these weights or biases does not.
        CallError: if the parameters could not be read.
    """
    found = parameters_of(module, "requires_grad", "shape")
    trained = sum(math.prod(shape) for requires_grad, shape in found if requires_grad)
    right = sum(map(math.prod, shapes))
    expect(
        trained <= right,
        f"the linear layers together have {right} numbers, but {trained} numbers of the layer require gradients",
    )
    frozen = any(not requires_grad and tuple(shape) in shapes for requires_grad, shape in found)
    expect(not frozen, "a weight or bias of a linear layer does not require gradients, so it is not trained")


def filled(module: Any) -> Any:
    """The student's module, with numbers in its weights and biases that are the same for everyone.

    For public examples. Students have the same function in `checks`, beside their notebook.
    """
    shapes = {name: np.shape(as_array(value)) for name, value in module.state_dict().items()}
    numbers = sum(map(math.prod, shapes.values()))
    expect(numbers <= MAX_FILLED, "the module of the example has too many numbers")
    module.load_parameters(
        {
            name: 0.5 * np.sin(1.3 * np.arange(math.prod(shape)) + sum(map(ord, name))).reshape(shape)
            for name, shape in shapes.items()
            if name.endswith((".weight", ".bias"))
        }
    )
    return module
