"""Parameters of DI-engine's checkpoints, where their form differs from ours.

Layers have the names of DI-engine, so that most of its checkpoints load unchanged. A module whose
part of a state dict differs is an `OldForm`: it translates its part exactly when it is loaded, or
rejects it with the cause.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


class OldForm(nn.Module):
    """Base of modules whose part of a state dict has another form in old checkpoints."""

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        """Translate the entries with the prefix ``prefix`` in place if they have the old form.

        Args:
            errors: Receives the reasons why the state cannot be loaded.
        """

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        self.from_old_form(state_dict, prefix, args[-1])
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class OtherNames(OldForm):
    """A module whose parameters may have other names in old checkpoints."""

    #: Old prefixes of names, and the present ones.
    _other_names: Mapping[str, str]

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        for alias, own in self._other_names.items():
            move(state, f"{prefix}{alias}.", f"{prefix}{own}.", errors)


class TwoForms(OldForm):
    """A module that computes in our form or in the old one; a saved buffer determines which.

    A state dict without the buffer has the old form.
    """

    #: Name of the buffer.
    _form: str

    def old_form(self) -> torch.Tensor:
        """The buffer's value for old checkpoints."""
        raise NotImplementedError

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        if any(name.startswith(prefix) for name in state):
            state.setdefault(prefix + self._form, self.old_form())


def below(state: Mapping[str, Any], start: str) -> list[str]:
    """The names that begin with ``start``, without this prefix."""
    return [name.removeprefix(start) for name in state if name.startswith(start)]


def move(state: dict[str, Any], start: str, to: str, errors: list[str]) -> None:
    """Rename the prefix of entries; if both old and new names exist, their values must be equal."""
    for name in below(state, start):
        value = state.pop(start + name)
        if not same(state.setdefault(to + name, value), value):
            errors.append(f"{start}{name} and {to}{name} are one parameter, but hold other values")


def same(a: Any, b: Any) -> bool:
    """Whether two entries contain the same numbers."""
    return a is b or (
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and torch.equal(a, b.to(a.device))
    )
