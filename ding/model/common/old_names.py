"""The form that parameters have in checkpoints of DI-engine, where it differs from ours.

Layers are named as there, so that most of those checkpoints load as they are. A module whose part
of a state dict differs is an `OldForm`: it translates its part when it loads
(`OldForm.from_old_form`) and when a checkpoint is exported (`OldForm.to_old_form`). Each of the
differences below is translated exactly, or refused with the cause.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


class OldForm(nn.Module):
    """Base of modules whose part of a state dict has another form in old checkpoints."""

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        """Translate the entries below ``prefix`` in place, if they are in the old form.

        Args:
            errors: Receives the causes for which the state cannot be loaded.
        """

    def to_old_form(self, state: dict[str, Any], prefix: str) -> None:
        """Translate the entries below ``prefix`` in place from ours.

        Raises:
            CheckpointError: The old form cannot hold what they compute.
        """

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        self.from_old_form(state_dict, prefix, args[-1])
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class OtherNames(OldForm):
    """A module whose parameters may have other names in old checkpoints."""

    #: Beginnings of names, and those that they are here.
    _other_names: Mapping[str, str]

    def to_old_form(self, state: dict[str, Any], prefix: str) -> None:
        for alias, own in self._other_names.items():
            for name in below(state, f"{prefix}{own}."):
                state[f"{prefix}{alias}.{name}"] = state[f"{prefix}{own}.{name}"]

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        for alias, own in self._other_names.items():
            move(state, f"{prefix}{alias}.", f"{prefix}{own}.", errors)


class TwoForms(OldForm):
    """A module that computes in our form or in the old one; a buffer holds which, and is saved.

    A state dict without the buffer is in the old form, except in a policy's state that an earlier
    version wrote; see `with_forms`.
    """

    #: Name of the buffer.
    _form: str

    def own_form(self) -> torch.Tensor:
        """The buffer's value where a network begins to learn here."""
        raise NotImplementedError

    def old_form(self) -> torch.Tensor:
        """The buffer's value for old checkpoints."""
        raise NotImplementedError

    def parameters_to_old_form(self, state: dict[str, Any], prefix: str) -> None:
        """Translate parameters of `own_form` in place, to compute the same in `old_form`."""
        raise NotImplementedError

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        if any(name.startswith(prefix) for name in state):
            state.setdefault(prefix + self._form, self.old_form())

    def to_old_form(self, state: dict[str, Any], prefix: str) -> None:
        form = state.pop(prefix + self._form, None)
        if form is not None and not same(form, self.old_form()):
            self.parameters_to_old_form(state, prefix)


def with_old_names(model: nn.Module, state: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A model's state dict in the form that programs written for DI-engine read.

    Args:
        state: The state dict; that of the model as it is now if ``None``.

    Raises:
        CheckpointError: That form cannot hold what the model computes.
    """
    named = dict(model.state_dict() if state is None else state)
    for prefix, module in _modules(model):
        translate = getattr(module, "to_old_form", None)  # `OldForm`, and layers of `torch_utils`
        if translate is not None:
            translate(named, prefix)
    return named


def with_forms(model: nn.Module, state: Mapping[str, Any]) -> dict[str, Any]:
    """A state dict that an earlier version wrote, with the forms that it left out."""
    forms = {
        prefix + module._form: module.own_form()
        for prefix, module in _modules(model)
        if isinstance(module, TwoForms)
    }
    return {**forms, **state}


def _modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    return [(f"{name}." if name else "", module) for name, module in model.named_modules()]


def below(state: Mapping[str, Any], start: str) -> list[str]:
    """The rests of the names that begin with ``start``."""
    return [name.removeprefix(start) for name in state if name.startswith(start)]


def move(state: dict[str, Any], start: str, to: str, errors: list[str]) -> None:
    """Rename entries by how their names begin; where both exist they have to be equal."""
    for name in below(state, start):
        value = state.pop(start + name)
        if not same(state.setdefault(to + name, value), value):
            errors.append(f"{start}{name} and {to}{name} are one parameter, but hold other values")


def same(a: Any, b: Any) -> bool:
    """Whether two entries hold the same numbers."""
    return a is b or (
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and torch.equal(a, b.to(a.device))
    )
