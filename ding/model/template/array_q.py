"""Small Q networks on numpy arrays, for acting.

Between the steps of environments the caches are cold, and what torch does around each of its calls
costs several times the arithmetic of a small layer. numpy needs a third of the time.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from ding.model.common.dense import leaves
from ding.model.common.encoder import FCEncoder
from ding.model.common.head import DiscreteHead, DuelingHead
from ding.model.template.q_learning import DQN

_Layer = tuple[np.ndarray, np.ndarray, bool]  # weight [in, out], bias [out], whether ReLU follows

#: Rows beyond which the arithmetic costs more than the calls.
MAX_ROWS = 256

_ZERO = np.zeros((), np.float32)  # an array: a number would have to become one in each call


class ArrayQ:
    """What a `DQN` of plain layers computes, on views of its parameters.

    Optimisers and ``load_state_dict`` write into the parameters, so that the views follow. What
    they cannot follow - other parameters, hooks, a move to another device - makes ``valid`` false.

    Args:
        model: A network for which ``applies`` is true.
    """

    def __init__(self, model: nn.Module) -> None:
        modules = list(model.modules())
        # Live views: they show what parameters the layers have at the time of asking.
        self._parameters = [m._parameters.values() for m in modules if m._parameters]
        self._addresses = self._find_addresses()
        self._hooks = (
            torch_module._global_forward_hooks,
            torch_module._global_forward_pre_hooks,
            *(hooks for m in modules for hooks in (m._forward_hooks, m._forward_pre_hooks)),
        )
        self._own = [module.__dict__ for module in modules]
        self._encoder, *self._head = [_layers(list(leaves(stack))) for stack in _stacks(model)]
        self.obs_size = len(self._encoder[0][0])

    @staticmethod
    def applies(model: Any) -> bool:
        """Whether this is a `DQN` of an `FCEncoder` and a plain or dueling head, all of whose
        layers are float32 ``Linear`` and ``ReLU`` on the CPU."""
        return (
            type(model) is DQN
            and type(model.encoder) is FCEncoder
            and type(model.head) in (DiscreteHead, DuelingHead)
            and all(_is_plain(stack) for stack in _stacks(model))
            and all(p.dtype == torch.float32 and p.is_cpu for p in model.parameters())
            and ArrayQ(model).valid
        )

    @property
    def valid(self) -> bool:
        """Whether the network still computes what this does."""
        return (
            not any(self._hooks)
            and self._find_addresses() == self._addresses
            and not any(map(dict.__contains__, self._own, repeat("forward")))
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Q-values float32 ``[B, n]`` of observations float32 ``[B, obs]``."""
        x = _run(self._encoder, x)
        if len(self._head) == 1:
            return _run(self._head[0], x)
        advantage, value = (_run(layers, x) for layers in self._head)
        mean = np.add.reduce(advantage, 1, keepdims=True) / np.float32(advantage.shape[1])
        return advantage + (value - mean)

    def _find_addresses(self) -> list[int]:
        try:
            return [p.data_ptr() for p in chain.from_iterable(self._parameters)]  # type: ignore
        except AttributeError:  # one was taken away
            return []


def _stacks(model: Any) -> Iterator[Iterable[nn.Module]]:
    yield model.encoder.stages
    head = model.head
    yield from ([head.A], [head.V]) if isinstance(head, DuelingHead) else ([head.Q],)


def _is_plain(stack: Iterable[nn.Module]) -> bool:
    layers = list(leaves(stack))
    return (
        all(type(layer) in (nn.Linear, nn.ReLU) for layer in layers)
        and all(layer.bias is not None for layer in layers if type(layer) is nn.Linear)
        and type(layers[0]) is nn.Linear
    )


def _layers(layers: list[Any]) -> list[_Layer]:
    return [
        (
            layer.weight.detach().numpy().T,
            layer.bias.detach().numpy(),
            type(following) is nn.ReLU,
        )
        for layer, following in zip(layers, [*layers[1:], None])
        if type(layer) is nn.Linear
    ]


def _run(layers: list[_Layer], x: np.ndarray) -> np.ndarray:
    for weight, bias, relu in layers:
        x = x.dot(weight)
        x += bias
        if relu:
            np.maximum(x, _ZERO, out=x)
    return x
