"""What PyTorch does when a function runs: how many operations, how much work, how much memory. No clock is used."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

# Read when the first profile begins. Without it the profiler reports its own start and end on stderr.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

PRODUCTS = ("mm", "bmm", "addmm")
COPIES = ("clone", "cat", "stack", "_to_copy", "copy_")
NO_WORK = ("_unsafe_view", "empty", "promote_types")  # besides the views, which PyTorch itself tells apart


@dataclass(frozen=True)
class Operations:
    """The operations of one call, those that only give a tensor another shape left out.

    Args:
        names: the operations that compute or copy, in their order.
        flops: floating-point operations of the matrix products, a multiplication with its addition counted as
            2. What a fused kernel does is missing on a CPU: the counter does not know that kernel.
    """

    names: tuple[str, ...]
    flops: int

    @property
    def products(self) -> int:
        """Number of matrix products, plain and batched."""
        return sum(name in PRODUCTS for name in self.names)

    @property
    def copies(self) -> int:
        """Number of operations that only move numbers."""
        return sum(name in COPIES for name in self.names)

    @property
    def others(self) -> int:
        """Number of all others: softmax, division, fused kernels."""
        return len(self.names) - self.products - self.copies


class _Recorder(TorchDispatchMode):
    """Write down what is computed. Reshaping is left out: it makes a new description of the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if not func.is_view and name not in NO_WORK:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def count_operations(function: Callable[..., Any], *arguments: Any) -> Operations:
    """Call `function(*arguments)` and count the operations that PyTorch runs for it.

    On a GPU each of them starts at least one kernel.

    Args:
        function: what to call. It is called twice, without gradients.
        arguments: its arguments.

    Returns:
        The operations in their order, and the floating-point operations of all matrix products.

    Source: the documentation of torch.utils.flop_counter.

    >>> count_operations(lambda A, B: (A @ B.T).softmax(-1), torch.ones(5, 3), torch.ones(4, 3))
    Operations(names=('mm', '_softmax'), flops=120)
    """
    with torch.no_grad():
        with _Recorder() as recorder:
            function(*arguments)
        with FlopCounterMode(display=False) as counter:
            function(*arguments)
    return Operations(tuple(recorder.names), counter.get_total_flops())


def peak_memory(function: Callable[..., Any], *arguments: Any) -> int:
    """Call `function(*arguments)` and find the largest amount of memory that it held at one time.

    Args:
        function: what to call. It is called once, without gradients.
        arguments: its arguments, which are not counted.

    Returns:
        Bytes on the CPU, the result and what kernels allocate for themselves included.

    Source: the documentation of torch.profiler, `profile_memory`.

    >>> peak_memory(lambda x: x.exp().sum(), torch.zeros(1000))  # 1,000 numbers of 4 bytes, and the sum
    4004
    """
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        result = function(*arguments)
    del result
    events = profiled.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    held, peak = 0, 0
    for _, change in changes:
        held += change
        peak = max(peak, held)
    return peak
