"""Linear layers of encoders and heads, and a stack that computes them without module calls.

At the batch sizes of acting, module calls take half the time of a small network.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from ding.torch_utils.network import fc_block, noise_block
from ding.torch_utils.network.activation import Activation

_linear = nn.functional.linear


class Dense(nn.Sequential):
    """``nn.Sequential`` that computes plain ``Linear`` and ``ReLU`` layers without calling them.

    Nested stacks are treated in the same way. Any other layer is called, and so is one with hooks,
    parametrisations or an overridden ``forward``.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return run_layers(self._modules.values(), x)  # type: ignore[arg-type]


def run_layers(layers: Iterable[nn.Module], x: torch.Tensor) -> torch.Tensor:
    """Apply layers one after the other to ``x``, as a `Dense` does."""
    hooked = bool(
        torch_module._global_forward_hooks
        or torch_module._global_forward_pre_hooks
        or torch_module._global_backward_hooks
        or torch_module._global_backward_pre_hooks
    )
    return _run(layers, x, False, hooked)[0]


def leaves(layers: Iterable[nn.Module]) -> Iterator[nn.Module]:
    """The layers that are computed; a `Dense` is replaced by its layers."""
    for layer in layers:
        if type(layer) is Dense:
            yield from leaves(layer)
        else:
            yield layer


def _run(
    layers: Iterable[nn.Module], x: torch.Tensor, fresh: bool, hooked: bool
) -> tuple[torch.Tensor, bool]:
    """The output, and whether it is a new tensor that may be modified in place."""
    for layer in layers:
        kind = type(layer)
        if kind not in _COMPUTED or hooked or _is_special(layer):
            x, fresh = layer(x), False
        elif kind is nn.Linear:
            parameters = layer._parameters
            x, fresh = _linear(x, parameters["weight"], parameters["bias"]), True  # type: ignore[arg-type]
        elif kind is Dense:
            x, fresh = _run(layer._modules.values(), x, fresh, hooked)  # type: ignore[arg-type]
        else:
            x, fresh = (x.relu_() if fresh else x.relu()), True
    return x, fresh


_COMPUTED = frozenset({nn.Linear, nn.ReLU, Dense})


def _is_special(layer: nn.Module) -> bool:
    state = layer.__dict__
    return bool(
        state["_forward_hooks"]
        or state["_forward_pre_hooks"]
        or state["_backward_hooks"]
        or state["_backward_pre_hooks"]
        or "forward" in state
    )


def linear_layers(
    sizes: Sequence[int],
    activation: Activation,
    norm_type: str | None = None,
    dropout: float | None = None,
    noise: bool = False,
) -> list[nn.Module]:
    """For each pair of adjacent ``sizes``, linear, and optionally norm, activation and dropout."""
    block = noise_block if noise else fc_block
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += block(n_in, n_out, activation, norm_type, dropout is not None, dropout or 0.0)
    return layers
