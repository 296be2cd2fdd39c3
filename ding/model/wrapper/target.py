"""Target networks: slowly updated copies that provide the targets of temporal differences."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ding.model.wrapper.base import IModelWrapper, innermost
from ding.utils.errors import ConfigError, DataError, check_one_of

#: Tensors of a target network, and of its source, in the same order.
_Pair = tuple[list[torch.Tensor], list[torch.Tensor]]


class TargetNetworkWrapper(IModelWrapper):
    """A target network that follows another network of the same structure.

    Args:
        update_type: ``'assign'``: every ``freq``-th `update` copies all; ``'momentum'``: every
            `update` moves the parameters by the fraction ``theta`` (buffers are copied).
        update_kwargs: ``{'freq': int}`` or ``{'theta': float}``.
    """

    def __init__(self, model: Any, update_type: str, update_kwargs: dict[str, Any]) -> None:
        super().__init__(model)
        _check_settings(update_type, update_kwargs)
        self._update_type = update_type
        self._update_kwargs = dict(update_kwargs)
        self._update_count = 0
        self._pairs: tuple[nn.Module, _Pair] | None = None

    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Also accepts ``target_update_count``; see `reset_state`."""
        if "target_update_count" in kwargs:
            self.reset_state(kwargs.pop("target_update_count"))
        super().reset(*args, **kwargs)

    def reset_state(self, target_update_count: int | None = None) -> None:
        """Set the number of updates so far, 0 for None; `'assign'` depends on it."""
        self._update_count = target_update_count or 0

    @property
    def update_count(self) -> int:
        """Number of calls of `update` so far, without `direct` ones."""
        return self._update_count

    def update(
        self, state_dict: dict[str, Any] | nn.Module | IModelWrapper, direct: bool = False
    ) -> None:
        """Follow the online network by one step.

        Args:
            state_dict: The online network's state dict, or, faster, the network itself.
            direct: Copy everything now, whatever the update type; not counted as a step.
        """
        if not direct:
            self._update_count += 1
            if self._update_type == "assign" and self._update_count % self._update_kwargs["freq"]:
                return
        parameters, buffers = self._paired_with(state_dict)
        with torch.no_grad():
            if direct or self._update_type == "assign":
                _copy(parameters)
            else:
                torch._foreach_lerp_(*parameters, self._update_kwargs["theta"])
            _copy(buffers)

    def _paired_with(self, source: Any) -> "tuple[_Pair, _Pair]":
        """Parameters and buffers, paired with those of ``source``; cached for the same module."""
        if isinstance(source, Mapping):
            return _paired(innermost(self._model), source)
        module = innermost(source)
        if self._pairs is None or self._pairs[0] is not module:
            parameters, buffers = _paired(innermost(self._model), module.state_dict(keep_vars=True))
            # Parameters stay the same objects when a module is moved or loaded; buffers do not.
            self._pairs = None if buffers[0] else (module, parameters)
            return parameters, buffers
        return self._pairs[1], ([], [])

    def __getstate__(self) -> dict[str, Any]:
        # A copy or pickle must not include the online network.
        return {**self.__dict__, "_pairs": None}


def _check_settings(update_type: str, update_kwargs: Mapping[str, Any]) -> None:
    needs = {"assign": "freq", "momentum": "theta"}
    check_one_of("target: update_type", update_type, needs)
    key = needs[update_type]
    if key not in update_kwargs:
        raise ConfigError(
            f"target: update_kwargs is {update_kwargs}; update_type {update_type!r} needs {key!r}"
        )
    value = update_kwargs[key]
    if key == "freq" and (value != int(value) or value < 1):
        raise ConfigError(f"target: freq is {value!r}; expected a number of updates, at least 1")
    if key == "theta" and not 0 < value <= 1:
        raise ConfigError(f"target: theta is {value!r}; expected 0 < theta <= 1")


def _paired(target: nn.Module, source: Mapping[str, torch.Tensor]) -> tuple[_Pair, _Pair]:
    own = target.state_dict(keep_vars=True)
    if own.keys() != source.keys():
        missing, extra = sorted(own.keys() - source.keys()), sorted(source.keys() - own.keys())
        raise DataError(
            "target: the online network's state does not fit: "
            f"missing {missing}, unexpected {extra}"
        )
    parameters: _Pair = ([], [])
    buffers: _Pair = ([], [])
    paired: set[int] = set()
    for name, tensor in own.items():
        if tensor.shape != source[name].shape:
            raise DataError(
                f"target: the online network's {name} has shape {list(source[name].shape)}, "
                f"expected {list(tensor.shape)}"
            )
        targets, sources = parameters if isinstance(tensor, nn.Parameter) else buffers
        # A layer with several names, such as a shared encoder, is updated once.
        if id(tensor) not in paired:
            paired.add(id(tensor))
            targets.append(tensor)
            sources.append(source[name])
    return parameters, buffers


def _copy(pair: _Pair) -> None:
    if pair[0]:
        torch._foreach_copy_(*pair)
