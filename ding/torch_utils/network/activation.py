"""Activations by name."""

import difflib
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn

from ding.utils.errors import UnknownTypeError

#: An activation argument: a module, its name, or ``None`` for no activation.
Activation: TypeAlias = nn.Module | str | None


class Square(nn.Module):
    """``x ** 2``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.square()


_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "leaky_relu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "celu": nn.CELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "hardtanh": nn.Hardtanh,
    "hardswish": nn.Hardswish,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "glu": nn.GLU,
    "square": Square,
    "identity": nn.Identity,
}
_BY_LETTERS = {name.replace("_", ""): cls for name, cls in _ACTIVATIONS.items()}


def build_activation(activation: Activation, inplace: bool | None = None) -> nn.Module:
    """Build an activation.

    Args:
        activation: A name such as ``relu``, ``tanh``, ``gelu``, ``silu``, ``elu``, ``leaky_relu``,
            ``sigmoid`` or ``identity``; case and underscores are ignored. A module is returned
            unchanged; ``None`` is the identity.
        inplace: Whether the activation overwrites its input.

    Raises:
        UnknownTypeError: The name is unknown (a ``KeyError``).
        ValueError: ``inplace`` is given for an activation that does not support it.
    """
    if isinstance(activation, nn.Module):
        return activation
    letters = str("identity" if activation is None else activation).lower().replace("_", "")
    if letters not in _BY_LETTERS:
        near = difflib.get_close_matches(str(activation).lower(), _ACTIVATIONS, n=1)
        raise UnknownTypeError(
            f"got activation {activation!r}: {f'did you mean {near[0]!r}? ' if near else ''}"
            f"expected a torch.nn.Module or one of {sorted(_ACTIVATIONS)}"
        )
    module = _BY_LETTERS[letters]()
    if inplace is not None:
        if not hasattr(module, "inplace"):
            raise ValueError(f"activation {activation!r} cannot work in place")
        module.inplace = inplace  # type: ignore[assignment]
    return module


def activation_layers(activation: Activation) -> list[nn.Module]:
    """The activation as a list of layers, empty for ``None``."""
    if activation is None:
        return []
    return [build_activation(activation) if isinstance(activation, str) else activation]


def activation_or_identity(activation: Activation) -> nn.Module:
    """The activation as a module, ``nn.Identity`` for ``None``."""
    return next(iter(activation_layers(activation)), nn.Identity())
