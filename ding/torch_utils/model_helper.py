"""Helpers to run models: parameter counts, modes, memory layout and threads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

#: With fewer parameters, an update of a fully connected network is too short for several threads.
_SMALL = 2_000_000
_CHOSEN_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def get_num_params(model: torch.nn.Module) -> int:
    """Number of elements of all parameters."""
    return sum(param.numel() for param in model.parameters())


def set_training(module: torch.nn.Module, training: bool) -> None:
    """``module.train(training)`` without torch's checks at each attribute assignment.

    A policy that acts between its updates switches the mode of all layers twice per round; torch
    takes 20 µs for ten layers, a tenth of a small network's update. For modules with a custom
    ``train`` or ``__setattr__``, such as compiled ones, their own method is called.
    """
    train, set_attribute = torch.nn.Module.train, torch.nn.Module.__setattr__
    modules: list[torch.nn.Module | None] = [module]
    for one in modules:  # the list grows in the loop: recursion takes twice as long
        if one is None:
            continue
        kind, state = type(one), vars(one)
        if kind.train is not train or kind.__setattr__ is not set_attribute or "train" in state:
            one.train(training)
        else:
            state["training"] = training
            modules += one._modules.values()


def quick_layout(images: torch.Tensor) -> torch.Tensor:
    """Images ``[B, C, H, W]`` in the memory layout in which convolutions train fastest.

    On CPUs this is channels last: forward and backward passes take 20 % (batches of 32 in the
    network of Mnih et al. 2015) to 40 % (IMPALA's network) less time. Without gradients, the copy
    costs more than it saves.
    """
    if torch.is_grad_enabled() and images.device.type == "cpu":
        return images.contiguous(memory_format=torch.channels_last)
    return images


class DataParallel(torch.nn.DataParallel[torch.nn.Module]):
    """``torch.nn.DataParallel`` that forwards missing attributes to the wrapped model."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


@contextmanager
def threads_that_fit(model: torch.nn.Module) -> Iterator[None]:
    """Run small networks in one thread of torch and numpy, unless the user has set the number.

    With batches of about 64 rows a second thread saves no time, and spins while it waits for a core
    that another process uses: updates were 5 to 10 times slower on two busy cores.
    """
    if not _wants_one_thread(model):
        yield
        return
    before = torch.get_num_threads()
    with threadpool_limits(1, "blas"):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def fit_threads(model: torch.nn.Module) -> None:
    """`threads_that_fit` for the rest of the process, if it only runs this model."""
    if _wants_one_thread(model):
        torch.set_num_threads(1)
        threadpool_limits(1, "blas")


def _wants_one_thread(model: torch.nn.Module) -> bool:
    chosen = any(name in os.environ for name in _CHOSEN_BY_USER)
    parameters = list(model.parameters())
    convolves = any(parameter.ndim > 2 for parameter in parameters)
    small = sum(parameter.numel() for parameter in parameters) < _SMALL
    return small and not chosen and not convolves
