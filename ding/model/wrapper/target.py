"""The slowly moving copy of a network that gives the targets of temporal differences."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ding.model.wrapper.base import IModelWrapper, innermost
from ding.utils.errors import ConfigError, DataError, check_one_of

#: Tensors of a target network, and of its source, in the same order.
_Pair = tuple[list[torch.Tensor], list[torch.Tensor]]


class TargetNetworkWrapper(IModelWrapper):
    """Follows another network of the same structure.

    Args:
        update_type: ``'assign'``: every ``freq``-th `update` copies all; ``'momentum'``: every
            `update` moves the parameters by ``theta`` of the way (buffers are copied).
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
        """Takes ``target_update_count`` too; see `reset_state`."""
        if "target_update_count" in kwargs:
            self.reset_state(kwargs.pop("target_update_count"))
        super().reset(*args, **kwargs)

    def reset_state(self, target_update_count: int | None = None) -> None:
        """Sets how many updates have been, 0 for None; `'assign'` counts them."""
        self._update_count = target_update_count or 0

    @property
    def update_count(self) -> int:
        """Calls of `update` so far, `direct` ones left out."""
        return self._update_count

    def update(
        self, state_dict: dict[str, Any] | nn.Module | IModelWrapper, direct: bool = False
    ) -> None:
        """Follows the online network by one step.

        Args:
            state_dict: The online network's state dict, or, faster, the network itself.
            direct: Copy all of it now, whatever the update type; does not count as a step.
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
        """Parameters and buffers, with those of ``source``; kept while one module comes again."""
        if isinstance(source, Mapping):
            return _paired(innermost(self._model), source)
        module = innermost(source)
        if self._pairs is None or self._pairs[0] is not module:
            parameters, buffers = _paired(innermost(self._model), module.state_dict(keep_vars=True))
            # A module's parameters stay the same objects as it moves or loads; its buffers do not.
            self._pairs = None if buffers[0] else (module, parameters)
            return parameters, buffers
        return self._pairs[1], ([], [])

    def __getstate__(self) -> dict[str, Any]:
        # A copy or a pickle must not carry the online network along.
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
        # A layer with several names, as an encoder that actor and critic share, moves once.
        if id(tensor) not in paired:
            paired.add(id(tensor))
            targets.append(tensor)
            sources.append(source[name])
    return parameters, buffers


def _copy(pair: _Pair) -> None:
    if pair[0]:
        torch._foreach_copy_(*pair)
