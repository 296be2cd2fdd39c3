"""A stack of layers at the price of its arithmetic.

At the batch sizes of acting, half the time of a small network goes into calling modules.
"""

import torch
from torch import nn
from torch.nn.modules import module as torch_module

_linear = nn.functional.linear


class Dense(nn.Sequential):
    """``nn.Sequential`` that computes plain ``Linear`` and ``ReLU`` layers without calling them.

    Any other layer is called, and so is one that has hooks, parametrisations or a ``forward`` of
    its own.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hooked = _any_global_hook()
        fresh = False  # whether `x` is ours alone, to be changed in place
        for layer in self._modules.values():
            kind = type(layer)
            if (kind is not nn.Linear and kind is not nn.ReLU) or hooked or _is_special(layer):
                x, fresh = layer(x), False  # type: ignore[misc]
            elif kind is nn.Linear:
                parameters = layer._parameters  # type: ignore[union-attr]
                x, fresh = _linear(x, parameters["weight"], parameters["bias"]), True  # type: ignore[arg-type]
            else:
                x, fresh = (x.relu_() if fresh else x.relu()), True
        return x


def _is_special(layer: nn.Module) -> bool:
    state = layer.__dict__
    return bool(
        state["_forward_hooks"]
        or state["_forward_pre_hooks"]
        or state["_backward_hooks"]
        or state["_backward_pre_hooks"]
        or "forward" in state
    )


def _any_global_hook() -> bool:
    return bool(
        torch_module._global_forward_hooks
        or torch_module._global_forward_pre_hooks
        or torch_module._global_backward_hooks
        or torch_module._global_backward_pre_hooks
    )
