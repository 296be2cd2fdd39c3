"""How many threads torch should use for one network."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: Below this many parameters a fully connected network's update is over before threads have met.
_SMALL = 2_000_000
_CHOSEN_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def threads_that_fit(model: torch.nn.Module) -> Iterator[None]:
    """Run small networks on one thread; others, and wherever the user chose, as before.

    On batches of some 64 rows a second thread saves nothing, and waits in a spin for a core that
    another process holds: measured 10 times slower on a busy machine of two cores.
    """
    before = torch.get_num_threads()
    fit_threads(model)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def fit_threads(model: torch.nn.Module) -> None:
    """`threads_that_fit` from here on, for a process that does nothing else."""
    chosen = any(name in os.environ for name in _CHOSEN_BY_USER)
    parameters = list(model.parameters())
    convolves = any(parameter.ndim > 2 for parameter in parameters)
    small = sum(parameter.numel() for parameter in parameters) < _SMALL
    if small and not chosen and not convolves and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
