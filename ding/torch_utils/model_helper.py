"""Facts about a model, and how it is run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

#: Below this many parameters a fully connected network's update is over before threads have met.
_SMALL = 2_000_000
_CHOSEN_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def get_num_params(model: torch.nn.Module) -> int:
    """Number of elements of all parameters."""
    return sum(param.numel() for param in model.parameters())


def set_training(module: torch.nn.Module, training: bool) -> None:
    """``module.train(training)`` without torch's checks of each attribute that is set.

    A policy that acts between its updates switches all layers twice a round; torch takes 20 µs for
    ten layers, which is a tenth of a small network's update. A module with a custom ``train`` or
    ``__setattr__``, as compiled ones have, is switched by its own method.
    """
    train, set_attribute = torch.nn.Module.train, torch.nn.Module.__setattr__
    modules: list[torch.nn.Module | None] = [module]
    for one in modules:  # which grows: calls for each layer take twice as long
        if one is None:
            continue
        kind, state = type(one), vars(one)
        if kind.train is not train or kind.__setattr__ is not set_attribute or "train" in state:
            one.train(training)
        else:
            state["training"] = training
            modules += one._modules.values()


def quick_layout(images: torch.Tensor) -> torch.Tensor:
    """Images ``[B, C, H, W]`` in the memory layout in which convolutions learn fastest.

    On CPUs that is channels last: forward and backward take a fifth less (batches of 32 in the
    network of Mnih et al. 2015) to two fifths (IMPALA's). Without gradients the copy costs more
    than it saves.
    """
    if torch.is_grad_enabled() and images.device.type == "cpu":
        return images.contiguous(memory_format=torch.channels_last)
    return images


class DataParallel(torch.nn.DataParallel[torch.nn.Module]):
    """``torch.nn.DataParallel`` through which the wrapped model's own attributes are reached."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


@contextmanager
def threads_that_fit(model: torch.nn.Module) -> Iterator[None]:
    """Run small networks on one thread, in torch and numpy; others, and where the user chose, as
    before.

    On batches of some 64 rows a second thread saves nothing, and waits in a spin for a core that
    another process holds: measured 5 to 10 times slower on a busy machine of two cores.
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
    """`threads_that_fit` from here on, for a process that does nothing else."""
    if _wants_one_thread(model):
        torch.set_num_threads(1)
        threadpool_limits(1, "blas")


def _wants_one_thread(model: torch.nn.Module) -> bool:
    chosen = any(name in os.environ for name in _CHOSEN_BY_USER)
    parameters = list(model.parameters())
    convolves = any(parameter.ndim > 2 for parameter in parameters)
    small = sum(parameter.numel() for parameter in parameters) < _SMALL
    return small and not chosen and not convolves
