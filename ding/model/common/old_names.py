"""Names that checkpoints have for parameters beside those that the models here have.

The layers here are named as in checkpoints of DI-engine, so that most of those load as they are.
What is left are parameters that stand in them twice, and entries that the models here do without. A
module that knows of such in its part of a state dict takes them out when it loads
(`take_other_names` helps), and has a method ``add_old_names(state, prefix)``.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


def with_old_names(model: nn.Module, state: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A model's state dict with every name that programs written for DI-engine look for.

    Args:
        state: The state dict; that of the model as it is now if ``None``.
    """
    named = dict(model.state_dict() if state is None else state)
    for name, module in model.named_modules():
        if hasattr(module, "add_old_names"):
            module.add_old_names(named, f"{name}." if name else "")
    return named


def add_other_names(other: Mapping[str, str], state: dict[str, Any], prefix: str) -> None:
    """Have the entries under each name of ``other``'s values stand under its keys as well."""
    for alias, own in other.items():
        start = f"{prefix}{own}."
        for name in [name for name in state if name.startswith(start)]:
            state[f"{prefix}{alias}.{name[len(start) :]}"] = state[name]


def take_other_names(
    other: Mapping[str, str], state: dict[str, Any], prefix: str, errors: list[str]
) -> None:
    """Move the entries under ``other``'s keys to the names that are its values.

    Where an entry stands under both names, its values have to be the same.

    Args:
        errors: Takes a line for each entry of which they are not.
    """
    for alias, own in other.items():
        start = f"{prefix}{alias}."
        for name in [name for name in state if name.startswith(start)]:
            value = state.pop(name)
            own_name = f"{prefix}{own}.{name[len(start) :]}"
            if not _same(state.setdefault(own_name, value), value):
                errors.append(f"{name} and {own_name} are one parameter, but hold other values")


def _same(a: Any, b: Any) -> bool:
    return a is b or (
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and torch.equal(a, b.to(a.device))
    )
