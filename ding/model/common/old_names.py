"""Names that checkpoints have for parameters beside those that the models here have.

The layers here are named as in checkpoints of DI-engine, so that most of those load as they are.
What is left are parameters that stand in them twice (`OtherNames`), and entries that the models
here do without. A module that knows of such in its part of a state dict takes them out when it
loads, and has a method ``add_old_names(state, prefix)``.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


class OtherNames(nn.Module):
    """A module whose parameters stand in old checkpoints under other names as well."""

    #: Beginnings of names, and those that they are here.
    _other_names: Mapping[str, str]

    def add_old_names(self, state: dict[str, Any], prefix: str) -> None:
        """Have the entries under each name stand under the other one as well."""
        for alias, own in self._other_names.items():
            start = f"{prefix}{own}."
            for name in [name for name in state if name.startswith(start)]:
                state[f"{prefix}{alias}.{name[len(start) :]}"] = state[name]

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        errors = args[-1]
        for alias, own in self._other_names.items():
            start = f"{prefix}{alias}."
            for name in [name for name in state_dict if name.startswith(start)]:
                value = state_dict.pop(name)
                own_name = f"{prefix}{own}.{name[len(start) :]}"
                if not _same(state_dict.setdefault(own_name, value), value):
                    errors.append(f"{name} and {own_name} are one parameter, but hold other values")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


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


def _same(a: Any, b: Any) -> bool:
    return a is b or (
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and torch.equal(a, b.to(a.device))
    )
