"""Averages gradients over processes, and combines gradients of several losses (PCGrad)."""

import random
from collections.abc import Sequence

import torch

from ding.utils.pytorch_ddp_dist_helper import allreduce


def average_gradients(parameters: Sequence[torch.Tensor]) -> None:
    """Average each parameter's gradient over all processes; a missing gradient counts as zero.

    A parameter without a gradient in all processes keeps None, so that optimisers skip it.
    """
    if parameters:
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        reached = grads[0].new_tensor([p.grad is not None for p in parameters])
        # One message for all tensors: the cost of small messages is their latency.
        message = torch.cat([*(grad.reshape(-1) for grad in grads), reached])
        allreduce(message)
        flat, reached = message.tensor_split([len(message) - len(parameters)])
        _hand_out(flat, parameters)
        for parameter, share in zip(parameters, reached.tolist()):
            if not share:
                parameter.grad = None


def _hand_out(flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> None:
    """Set the gradients of parameters to views of one flat vector."""
    for parameter, grad in zip(parameters, flat.split([p.numel() for p in parameters])):
        parameter.grad = grad.view_as(parameter)


class PCGrad:
    """Wraps an optimiser to remove conflicting components of the gradients of several losses.

    Yu et al. 2020, "Gradient Surgery for Multi-Task Learning".

    Args:
        optimizer: The wrapped optimiser.
        reduction: ``'mean'`` or ``'sum'`` of the projected gradients, for parameters that all
            losses reach; other gradients are summed.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, reduction: str = "mean") -> None:
        if reduction not in ("mean", "sum"):
            raise ValueError(f"got reduction={reduction!r}: expected 'mean' or 'sum'")
        self._optim = optimizer
        self._reduction = reduction

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The wrapped optimiser."""
        return self._optim

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None."""
        self._optim.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Step the optimiser."""
        self._optim.step()

    def pc_backward(self, objectives: Sequence[torch.Tensor]) -> None:
        """Set the gradients of all parameters from one scalar loss per task."""
        params = [p for group in self._optim.param_groups for p in group["params"]]
        grads, reached = [], []
        for index, objective in enumerate(objectives):
            keep = index + 1 < len(objectives)  # tasks usually share parts of the graph
            found = torch.autograd.grad(objective, params, retain_graph=keep, allow_unused=True)
            parts = [torch.zeros_like(p) if g is None else g for g, p in zip(found, params)]
            marks = [torch.full_like(p, g is not None) for g, p in zip(found, params)]
            grads.append(torch.cat([part.reshape(-1) for part in parts]))
            reached.append(torch.cat([mark.reshape(-1) for mark in marks]))
        merged = torch.stack(_project(grads)).sum(0)
        if self._reduction == "mean":
            shared = torch.stack(reached).bool().all(0)
            merged = torch.where(shared, merged / len(grads), merged)
        _hand_out(merged, params)


def _project(grads: list[torch.Tensor]) -> list[torch.Tensor]:
    """Remove from each gradient its component that conflicts with others, in random order."""
    projected = []
    for index, grad in enumerate(grads):
        result = grad.clone()
        others = [other for position, other in enumerate(grads) if position != index]
        random.shuffle(others)
        for other in others:
            along = torch.dot(result, other)
            if along < 0:
                result -= along / torch.dot(other, other) * other
        projected.append(result)
    return projected
