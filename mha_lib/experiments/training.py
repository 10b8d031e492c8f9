"""What the experiments share: random numbers that do not change, and training by Adam."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Seed torch's random numbers and use one thread; afterwards both are as before.

    On products this small a second thread only waits for the first, for minutes if the machine is busy.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def minimise(
    loss: Callable[[], Tensor],
    parameters: Iterable[Tensor],
    steps: int,
    peak: float,
    before_step: Callable[[int], None] | None = None,
) -> None:
    """Train by Adam, with a learning rate that rises to its peak and falls again within the steps.

    Args:
        loss: draws a batch and returns its loss, a scalar.
        parameters: what is trained.
        steps: number of steps.
        peak: the largest learning rate.
        before_step: called before each step with the number of steps taken so far, and once more at the end.

    Sources: Kingma and Ba 2015, Adam; Smith and Topin 2018, Super-Convergence, for the schedule.
    """
    optimizer = torch.optim.Adam(parameters, lr=peak, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=steps)
    for step in range(steps):
        if before_step:
            before_step(step)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedule.step()
    if before_step:
        before_step(steps)
