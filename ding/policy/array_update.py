"""DQN's update in numpy instead of autograd, for small plain networks.

With 64 rows and 25,000 parameters, autograd and the calls of torch's layers take several times as
long as the arithmetic. It applies only to classes that declare it, and only if the result is
certain to equal autograd's; a test compares both.
"""

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from ding.model.common.dense import Dense, leaves
from ding.model.common.encoder import FCEncoder
from ding.model.common.head import DiscreteHead, DuelingHead
from ding.model.template.q_learning import DQN
from ding.model.wrapper.target import TargetNetworkWrapper
from ding.policy._types import Log, Steps
from ding.policy.acting import priorities
from ding.policy.checks import check_loss

#: Maximum of rows times parameters; above it, the arithmetic outweighs the cost of calls.
MAX_WORK = 1 << 23
_KINDS = (DQN, FCEncoder, DiscreteHead, DuelingHead, Dense, nn.Linear, nn.ReLU)
#: The original ``forward`` methods; a class may be patched.
_FORWARDS = {kind: kind.forward for kind in (*_KINDS, TargetNetworkWrapper)}
#: Attributes that change the result of a module's call.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_MARKS = ("_compiled_call_impl", *_HOOKS)
_GLOBAL_HOOKS = [getattr(torch_module, f"_global{name}") for name in _HOOKS]
_ZERO = np.zeros((), np.float32)  # an array: avoids a conversion in each call
#: Policy methods that this update replaces.
_UPDATE = "_target_output", "_value_loss", "_branch_loss", "_update", "_descend"
_REPLACED = (*_UPDATE, "sync_gradients")
#: The classes that declare this update, with the original methods that it replaces.
_known: dict[type, dict[str, Any]] = {}
_Policy = TypeVar("_Policy", bound=type)


def updates_on_arrays(cls: _Policy) -> _Policy:
    """Class decorator that declares this update for a policy class, but not for its subclasses."""
    _known[cls] = {name: getattr(cls, name) for name in _REPLACED}
    return cls


def descend_on_arrays(policy: Any, batch: Steps) -> Log | None:
    """The update of a policy that declares it, for a small plain network on the CPU.

    Returns:
        ``total_loss``, ``q_value``, ``target_q_value`` and ``priority`` float32 ``[B]``; ``None``
        if autograd must make the update or reject the data.

    Raises:
        DataError: The loss is not finite.
    """
    written, cfg = _known.get(type(policy)), policy._cfg
    if written is None or cfg.get("multi_gpu", False):
        return None
    if cfg.learn.get("compile", False) or cfg.learn.get("mixed_precision", False):
        return None
    if not vars(policy).keys().isdisjoint(_REPLACED):
        return None
    if any(getattr(type(policy), name) is not method for name, method in written.items()):
        return None
    log: Log | None = policy._arrays.descend(policy, batch)
    if log is not None:
        policy._optimizer.step()
    return log


class _Layer(NamedTuple):
    """Views of a linear layer's parameters, ``[out, in]`` and ``[out]``; whether ReLU follows."""

    weight: np.ndarray
    bias: np.ndarray
    relu: bool
    module: nn.Linear


class ArrayUpdate:
    """Sets the gradients of an online network to those of DQN's loss."""

    def __init__(self) -> None:
        self._networks: tuple[_Network, _Network] | None = None

    def __reduce__(self) -> Any:
        return ArrayUpdate, ()  # a copy's views would not follow the copied parameters

    def descend(self, policy: Any, batch: Steps) -> Log | None:
        """Gradients of double DQN with squared errors; see `descend_on_arrays`."""
        networks = self._read(policy._model, policy._target_model)
        if networks is None or not networks[0].takes(batch, policy._nstep):
            return None
        network, target_network = networks
        next_obs, action = batch["next_obs"].numpy(), batch["action"].numpy()
        traces = network.traced(batch["obs"].numpy())
        q_values = _joined(traces)
        # Autograd raises an error for these; numpy would accept negative indices.
        if action.min() < 0 or action.max() >= q_values.shape[1]:
            return None
        next_q_values = _joined(target_network.traced(next_obs))
        next_action = _joined(network.traced(next_obs)).argmax(1)  # van Hasselt et al. 2016
        # Index in the flattened Q-values at which each row begins.
        begin = np.arange(0, q_values.size, q_values.shape[1])
        done = begin + action
        error = q_values.take(done)
        error -= _targets(batch, next_q_values.take(begin + next_action), policy._gamma)
        weighted = error if batch["weight"] is None else error * batch["weight"].numpy()
        loss = float(weighted.dot(error)) / len(done)
        check_loss(policy, loss, batch)
        policy._optimizer.zero_grad()
        gradient = np.zeros_like(q_values)
        gradient.put(done, weighted * np.float32(2 / len(done)))
        network.backward(traces, gradient)
        return {
            "total_loss": loss,
            "q_value": float(np.add.reduce(q_values, None)) / q_values.size,
            "target_q_value": float(np.add.reduce(next_q_values, None)) / q_values.size,
            "priority": priorities(torch.from_numpy(error * error), policy._priority_form),
        }

    def _read(self, online: Any, target: Any) -> "tuple[_Network, _Network] | None":
        if type(target) is not TargetNetworkWrapper or "forward" in vars(target):
            return None
        if any(_GLOBAL_HOOKS) or any(k.forward is not f for k, f in _FORWARDS.items()):
            return None
        if not torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return None
        models, networks = (online, target._model), self._networks
        if networks is None or not all(n.is_of(model) for n, model in zip(networks, models)):
            if not all(map(_is_plain, models)):
                return None
            networks = self._networks = _Network(models[0]), _Network(models[1])
        return networks if networks[0].learns else None


class _Network:
    """Views of a plain `DQN`'s parameters; they follow optimisers and ``load_state_dict``."""

    def __init__(self, model: Any) -> None:
        self._parts = _parts(model)
        self._trained = [part for part in self._parts if type(part) is nn.Parameter]
        self._addresses = [parameter.data_ptr() for parameter in self._trained]
        self._encoder, *self._ends = map(_layers, _stacks(model))
        self._obs_size = self._encoder[0].weight.shape[1]
        self._parameter_count = sum(p.numel() for p in self._trained)

    def is_of(self, model: Any) -> bool:
        """Whether this object still matches a network, and computes the same as it."""
        parts = _parts(model)
        return (
            len(parts) == len(self._parts)
            and all(map(operator.is_, parts, self._parts))
            and [p.data_ptr() for p in self._trained] == self._addresses
        )

    @property
    def learns(self) -> bool:
        """Whether no parameter is frozen or has gradient hooks, which ``backward`` ignores."""
        return not any(
            not p.requires_grad or p._backward_hooks or p._post_accumulate_grad_hooks
            for p in self._trained
        )

    def takes(self, batch: Steps, nstep: int) -> bool:
        """Whether a batch has float32 vectors and one action per row, on the CPU, and is small."""
        obs, action, reward = batch["obs"], batch.get("action"), batch["reward"]
        size = len(obs)
        rows = [batch["done"], batch.get("weight"), batch.get("value_gamma")]
        return (
            all(_is_float(one, (size, self._obs_size)) for one in (obs, batch.get("next_obs")))
            and isinstance(action, torch.Tensor)
            and action.dtype == torch.int64
            and action.shape == (size,)
            and _is_float(reward, (nstep, size))
            and all(one is None or _is_float(one, (size,)) for one in rows)
            and 0 < size * self._parameter_count <= MAX_WORK
        )

    def traced(self, x: np.ndarray) -> list[list[np.ndarray]]:
        """For the encoder and each stack of the head: each layer's input, and the last layer's
        output; for observations float32 ``[B, obs]``."""
        encoder = _trace(self._encoder, x)
        return [encoder, *(_trace(layers, encoder[-1]) for layers in self._ends)]

    def backward(self, traces: list[list[np.ndarray]], gradient: np.ndarray) -> None:
        """Set the parameters' ``grad`` from the gradient of the Q-values ``[B, n]``."""
        encoder, *heads = traces
        ends = [gradient]
        if len(heads) == 2:  # Q = A + V - mean(A)
            total = np.add.reduce(gradient, 1, keepdims=True)
            ends = [gradient - total / np.float32(gradient.shape[1]), total]
        inner = [_back(*parts) for parts in zip(self._ends, heads, ends)]
        _back(self._encoder, encoder, inner[0] if len(inner) == 1 else inner[0] + inner[1], True)


def _is_float(value: Any, shape: tuple[int, ...]) -> bool:
    is_plain = isinstance(value, torch.Tensor) and value.is_cpu and not value.requires_grad
    return is_plain and value.dtype == torch.float32 and value.shape == shape


def _parts(module: Any) -> list[Any]:
    """A network's modules and parameters; plus a unique object if anything changes its result."""
    state, found = vars(module), [module, type(module), *module._parameters.values()]
    if "forward" in state or "__call__" in state or module._buffers or any(map(state.get, _MARKS)):
        found.append(object())  # equal to nothing
    for child in module._modules.values():
        found += _parts(child) if child is not None else [None]
    return found


def _is_plain(model: Any) -> bool:
    """Whether the network is a `DQN` with an `FCEncoder` and a plain or dueling head whose layers
    are all float32 ``Linear`` and ``ReLU`` on the CPU."""
    if type(model) is not DQN or type(model.encoder) is not FCEncoder:
        return False
    if type(model.head) not in (DiscreteHead, DuelingHead):
        return False
    parameters = [part for part in _parts(model) if isinstance(part, torch.Tensor)]
    return (
        all(type(part) in (type, nn.Parameter, *_KINDS) for part in _parts(model))
        and all(_is_float(p.detach(), p.shape) and p.is_contiguous() for p in parameters)
        # No shared layers: only the last of their gradients would be kept here.
        and len(set(map(id, parameters))) == len(parameters)
        and all(layer.bias is not None for layer in model.modules() if type(layer) is nn.Linear)
        and all(type(next(leaves(stack))) is nn.Linear for stack in _stacks(model))
    )


def _targets(batch: Steps, next_value: np.ndarray, gamma: float) -> np.ndarray:
    """n-step returns ``[B]`` (see `nstep_return`)."""
    reward = batch["reward"].numpy()
    value_gamma = batch.get("value_gamma")
    factor = gamma ** len(reward) if value_gamma is None else value_gamma.numpy()
    total = (1 - batch["done"].numpy()) * next_value
    total *= factor
    for step, one in enumerate(reward):
        total += np.float32(gamma**step) * one
    return total


def _stacks(model: Any) -> list[Iterable[nn.Module]]:
    head = model.head
    ends = [head.A, head.V] if type(head) is DuelingHead else [head.Q]
    return [model.encoder.stages, *([end] for end in ends)]


def _layers(stack: Iterable[nn.Module]) -> list[_Layer]:
    layers: list[Any] = list(leaves(stack))
    followed = [type(layer) is nn.ReLU for layer in (*layers[1:], None)]
    return [
        _Layer(layer.weight.detach().numpy(), layer.bias.detach().numpy(), relu, layer)
        for layer, relu in zip(layers, followed)
        if type(layer) is nn.Linear
    ]


def _trace(layers: list[_Layer], x: np.ndarray) -> list[np.ndarray]:
    trace = [x]
    for weight, bias, relu, _ in layers:
        x = x.dot(weight.T)
        x += bias
        if relu:
            np.maximum(x, _ZERO, out=x)
        trace.append(x)
    return trace


def _back(
    layers: list[_Layer], trace: list[np.ndarray], gradient: np.ndarray, first: bool = False
) -> np.ndarray:
    """Set gradients of a stack's parameters; returns the input's gradient unless ``first``."""
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        if layer.relu:
            gradient = gradient * (trace[number + 1] > _ZERO)
        weight, bias = layer.module.weight, layer.module.bias
        weight.grad = torch.from_numpy(np.dot(gradient.T, trace[number]))
        bias.grad = torch.from_numpy(np.add.reduce(gradient, 0))
        if number or not first:
            gradient = gradient.dot(layer.weight)
    return gradient


def _joined(traces: list[list[np.ndarray]]) -> np.ndarray:
    """The Q-values: of a plain head, or from the advantage and the value of a dueling head."""
    values = [trace[-1] for trace in traces[1:]]
    if len(values) == 1:
        return values[0]
    advantage, value = values
    mean = np.add.reduce(advantage, 1, keepdims=True) / np.float32(advantage.shape[1])
    return advantage + (value - mean)
