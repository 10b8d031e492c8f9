"""Plain values as hidden tests meet them: tensors beside arrays, and how to speak of a value without showing it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from mha_grader.sandbox.text import clean
from mha_grader.sandbox.wire import Opaque


def tensor(array: Any) -> Any:
    """The array as a tensor; floats become float32."""
    import torch

    made = torch.from_numpy(np.ascontiguousarray(array))
    return made.float() if made.is_floating_point() else made


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> Any:
    """A tensor as an array (bfloat16 widened), everything else as it is."""
    if not is_tensor(value):
        return value
    value = value.detach().cpu()
    return (value.double() if value.is_floating_point() else value).numpy()


def describe(value: Any) -> str:
    """The kind of a value in words, without the value."""
    if value is None:
        return "None (is a return missing?)"
    if isinstance(value, np.ndarray) or is_tensor(value):
        kind = "an array" if isinstance(value, np.ndarray) else "a tensor"
        return f"{kind} of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Opaque):
        return f"something of type {value.type_name}, which is not data"
    return f"something of type {type(value).__name__}"


def show(value: Any) -> str:
    """A value, short enough for a line; only for what students may see."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        return clean(np.array2string(value, precision=4, separator=", ").replace("\n", " "), 200)
    return describe(value) if isinstance(value, Opaque) else clean(repr(value), 200)
