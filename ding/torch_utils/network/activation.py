"""Activations by name."""

from collections.abc import Callable

from torch import nn

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "leakyrelu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "swish": nn.SiLU,
    "softplus": nn.Softplus,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
}


def build_activation(activation: str, inplace: bool | None = None) -> nn.Module:
    """Build an activation.

    Args:
        activation: One of ``relu, leakyrelu, prelu, elu, gelu, swish, softplus, sigmoid, tanh``.
        inplace: For those that can overwrite their input.

    Raises:
        KeyError: An unknown name.
        ValueError: ``inplace`` for an activation that cannot.
    """
    if activation not in _ACTIVATIONS:
        raise KeyError(f"got activation {activation!r}: expected one of {sorted(_ACTIVATIONS)}")
    module = _ACTIVATIONS[activation]()
    if inplace is not None:
        if not hasattr(module, "inplace"):
            raise ValueError(f"activation {activation!r} cannot work in place")
        module.inplace = inplace  # type: ignore[assignment]
    return module
