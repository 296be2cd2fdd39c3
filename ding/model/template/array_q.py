"""Small Q networks on numpy arrays, for acting and learning.

Between the steps of environments the caches are cold, and what torch does around each of its calls
costs several times the arithmetic of a small layer. numpy needs a third of the time. Likewise when
learning: autograd spends more on its graph than the gradients of such a network cost.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from ding.model.common.dense import leaves
from ding.model.common.encoder import FCEncoder
from ding.model.common.head import DiscreteHead, DuelingHead
from ding.model.template.q_learning import DQN


class _Layer(NamedTuple):
    """A linear layer: views of its parameters, and whether ReLU follows."""

    weight: np.ndarray  # [out, in]
    bias: np.ndarray  # [out]
    relu: bool
    parameters: tuple[torch.Tensor, torch.Tensor]


#: What went into each layer of a stack, and what came out of the last.
_Trace = list[np.ndarray]

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
            torch_module._global_backward_hooks,
            torch_module._global_backward_pre_hooks,
            *(hooks for m in modules for hooks in (m._forward_hooks, m._forward_pre_hooks)),
            *(hooks for m in modules for hooks in (m._backward_hooks, m._backward_pre_hooks)),
        )
        self._own = [module.__dict__ for module in modules]
        self._encoder, *self._head = [_layers(list(leaves(stack))) for stack in _stacks(model)]
        self.obs_size = self._encoder[0].weight.shape[1]
        self.parameter_count = sum(p.numel() for p in chain.from_iterable(self._parameters))  # type: ignore
        layers = chain(self._encoder, *self._head)
        self._trained = [parameter for layer in layers for parameter in layer.parameters]
        self._distinct = len(set(self._trained)) == len(self._trained)
        self._gradients: dict[torch.Tensor, tuple[np.ndarray, torch.Tensor]] = {}

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
        return _joined([_run(layers, x) for layers in self._head])

    def traced(self, x: np.ndarray) -> tuple[np.ndarray, list[_Trace]]:
        """As a call, with what ``backward`` needs besides."""
        encoder = _trace(self._encoder, x)
        heads = [_trace(layers, encoder[-1]) for layers in self._head]
        return _joined([trace[-1] for trace in heads]), [encoder, *heads]

    def backward(self, traces: list[_Trace], gradient: np.ndarray) -> None:
        """Set the parameters' ``grad`` from that of Q-values ``[B, n]``; any they had is dropped.

        Each call writes into the same tensors.
        """
        encoder, *heads = traces
        ends = [gradient]
        if len(heads) == 2:  # Q = A + V - mean(A)
            total = np.add.reduce(gradient, 1, keepdims=True)
            ends = [gradient - total / np.float32(gradient.shape[1]), total]
        inner = [self._back(*parts) for parts in zip(self._head, heads, ends)]
        self._back(self._encoder, encoder, inner[0] if len(inner) == 1 else inner[0] + inner[1])

    def _back(self, layers: list[_Layer], trace: _Trace, gradient: np.ndarray) -> np.ndarray:
        """Gradients of a stack's parameters; returns that of its input, but for the encoder's."""
        for number in range(len(layers) - 1, -1, -1):
            layer = layers[number]
            if layer.relu:
                passed = np.empty_like(gradient)
                np.greater(trace[number + 1], _ZERO, out=passed, casting="unsafe")
                gradient = np.multiply(gradient, passed, out=passed)
            weight, bias = layer.parameters
            np.dot(gradient.T, trace[number], out=self._grad_of(weight))
            np.add.reduce(gradient, 0, out=self._grad_of(bias))
            if number or layers is not self._encoder:
                gradient = gradient.dot(layer.weight)
        return gradient

    def _grad_of(self, parameter: torch.Tensor) -> np.ndarray:
        kept = self._gradients.get(parameter)
        if kept is None:
            array = np.empty(parameter.shape, np.float32)
            kept = self._gradients[parameter] = array, torch.from_numpy(array)
        if parameter.grad is not kept[1]:
            parameter.grad = kept[1]
        return kept[0]

    @property
    def learns(self) -> bool:
        """Whether each parameter is to get the gradient that ``backward`` gives, and no more."""
        return self._distinct and not any(
            not p.requires_grad or p._backward_hooks or p._post_accumulate_grad_hooks
            for p in self._trained
        )

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
        _Layer(
            layer.weight.detach().numpy(),
            layer.bias.detach().numpy(),
            type(following) is nn.ReLU,
            (layer.weight, layer.bias),
        )
        for layer, following in zip(layers, [*layers[1:], None])
        if type(layer) is nn.Linear
    ]


def _run(layers: list[_Layer], x: np.ndarray) -> np.ndarray:
    for weight, bias, relu, _ in layers:
        x = x.dot(weight.T)
        x += bias
        if relu:
            np.maximum(x, _ZERO, out=x)
    return x


def _trace(layers: list[_Layer], x: np.ndarray) -> _Trace:
    trace = [x]
    for layer in layers:
        trace.append(_run([layer], trace[-1]))
    return trace


def _joined(heads: list[np.ndarray]) -> np.ndarray:
    """The Q-values of a plain head, or of the advantage and the value of a dueling one."""
    if len(heads) == 1:
        return heads[0]
    advantage, value = heads
    mean = np.add.reduce(advantage, 1, keepdims=True) / np.float32(advantage.shape[1])
    return advantage + (value - mean)
