"""Saves and loads the learned parts of a policy in checkpoints."""

import logging
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ding.utils.types import State

logger = logging.getLogger(__name__)

#: Optimiser options that depend on the device and torch's version, not on the algorithm.
_OWN = ("fused", "foreach", "capturable", "differentiable")


def save_state(policy: Any, entries: Mapping[str, str]) -> State:
    """The state of a policy's parts; missing parts are left out.

    Args:
        entries: State entry to attribute of the policy: an optimiser, a network, a tensor, a
            number, or another object with ``state_dict``.
    """
    state: State = {}
    for entry, attribute in entries.items():
        part = getattr(policy, attribute, None)
        if isinstance(part, torch.Tensor):
            state[entry] = part.detach().clone()
        elif part is not None:
            state[entry] = part if isinstance(part, int) else part.state_dict()
    return state


def load_state(policy: Any, entries: Mapping[str, str], state: State) -> None:
    """Load a state of `save_state`. Missing entries change nothing; for optimisers they warn."""
    for entry, attribute in entries.items():
        part, saved = getattr(policy, attribute, None), state.get(entry)
        if isinstance(part, Optimizer):
            load_optimizer(part, _old_optimizer(policy, entry, state) if saved is None else saved)
        elif part is None or saved is None:
            continue
        elif isinstance(part, torch.Tensor):
            with torch.no_grad():
                part.copy_(saved)
        elif isinstance(part, int):
            setattr(policy, attribute, saved)
        else:
            part.load_state_dict(saved)


def _old_optimizer(policy: Any, entry: str, state: State) -> Any:
    """An optimiser's state from its old checkpoint entry, with parameters in the present order."""
    old_entry, parts = policy._old_optimizers.get(entry, (None, ()))
    saved = state.get(old_entry)
    if saved is None:
        return None
    optimizer = getattr(policy, policy._learned[entry])
    # Some versions order the parts differently; the shapes of the moments show which order fits.
    orders = (
        _in_own_order(policy._model, optimizer, saved, parts) for parts in permutations(parts)
    )
    return next((one for one in orders if one and _misfit(optimizer, one) is None), saved)


def _in_own_order(
    model: nn.Module, optimizer: Optimizer, saved: Any, parts: Sequence[str]
) -> State | None:
    """``saved`` lists the parameters of the model's ``parts`` in turn; ``None`` if it cannot."""
    own = [id(param) for group in optimizer.param_groups for param in group["params"]]
    old = [id(param) for part in parts for param in model.get_submodule(part).parameters()]
    try:
        moments, (group,) = saved["state"], saved["param_groups"]
        moved = {own.index(old[i]): moments[i] for i in moments}
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    return {"state": moved, "param_groups": [{**group, "params": list(range(len(own)))}]}


def load_optimizer(optimizer: Optimizer, state: State | None) -> None:
    """Load a state dict; if it is missing or does not fit these parameters, reset the optimiser
    and log a warning.

    An optimiser identifies its parameters only by their order, so their number and shapes must
    match the state.
    """
    misfit = "it holds no state of the optimizer" if state is None else _misfit(optimizer, state)
    if misfit is not None or state is None:
        logger.warning("the optimizer starts from scratch with what was loaded: %s", misfit)
        return
    own = [{name: group.get(name) for name in _OWN} for group in optimizer.param_groups]
    optimizer.load_state_dict(dict(state))
    for group, options in zip(optimizer.param_groups, own):
        group.update({name: value for name, value in options.items() if name in group})


def _misfit(optimizer: Optimizer, state: State) -> str | None:
    try:
        saved = [number for group in state["param_groups"] for number in group["params"]]
        sizes = [len(group["params"]) for group in state["param_groups"]]
        moments = [state["state"].get(number) or {} for number in saved]
    except (KeyError, TypeError, AttributeError) as error:
        return f"its optimizer state is none ({type(error).__name__}: {error})"
    params = [param for group in optimizer.param_groups for param in group["params"]]
    if sizes != [len(group["params"]) for group in optimizer.param_groups]:
        return f"its optimizer state is for {len(saved)} parameters, not {len(params)}"
    for number, (param, values) in enumerate(zip(params, moments)):
        for name, value in values.items():
            if isinstance(value, torch.Tensor) and value.dim() and value.shape != param.shape:
                return (
                    f"its optimizer state holds {name} of shape {list(value.shape)} for parameter "
                    f"{number}, which has {list(param.shape)}"
                )
    return None
