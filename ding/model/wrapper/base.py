"""Base classes of model wrappers, which modify the input or output of a model's forward."""

from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn


class IModelWrapper(ABC):  # noqa: B024 (usable as it is: it wraps and does nothing)
    """Wraps a model or another wrapper, and forwards undefined attributes to it.

    Attributes of the model can be read (``parameters``, ``state_dict``, ``train`` ...); an
    attribute that is set on a wrapper stays on the wrapper.
    """

    def __init__(self, model: "nn.Module | IModelWrapper") -> None:
        self._model: Any = model

    def __getattr__(self, name: str) -> Any:
        # While an instance is copied or unpickled, `_model` does not exist yet.
        if name == "_model":
            raise AttributeError(name)
        return getattr(self._model, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    def info(self, attr_name: str) -> str:
        """The wrapper, counted from the outside, or model that provides ``attr_name``."""
        name = type(self).__name__
        if attr_name in vars(self) or hasattr(type(self), attr_name):
            return f"{name}: {attr_name}"
        if isinstance(self._model, IModelWrapper):
            return f"{name} > {self._model.info(attr_name)}"
        found = attr_name if hasattr(self._model, attr_name) else f"no {attr_name}"
        return f"{name} > {type(self._model).__name__}: {found}"

    def reset(self, data_id: list[int] | None = None, **kwargs: Any) -> None:
        """Reset the wrappers' states of ``data_id``; all states if it is None."""
        if hasattr(self._model, "reset"):
            self._model.reset(data_id=data_id, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model's output; subclasses modify input or output."""
        return self._model(*args, **kwargs)


class BaseModelWrapper(IModelWrapper):
    """A wrapper that changes nothing."""


def innermost(model: Any) -> nn.Module:
    """The module inside all wrappers."""
    while isinstance(model, IModelWrapper):
        model = model._model
    return model


class HiddenStateWrapper(IModelWrapper):
    """Passes each environment's last state to the model, and stores the returned one.

    ``forward(data, data_id=None, valid_id=None)`` puts ``prev_state`` (a list, one per id) into
    ``data`` and takes ``next_state`` out of the output. ``data_id`` are the environments in this
    batch, by default all; the states of ids outside ``valid_id`` are not changed.

    Args:
        state_num: Number of environments; None for any, each added when its id first occurs.
        save_prev_state: Add the input states to the output, as ``prev_state``.
        init_fn: Creates the initial state of an environment.
    """

    def __init__(
        self,
        model: Any,
        state_num: int | None,
        save_prev_state: bool = False,
        init_fn: Callable[..., Any] = lambda: None,
    ) -> None:
        super().__init__(model)
        self._state_num = state_num
        self._save_prev_state = save_prev_state
        self._init_fn = init_fn
        self._state: dict[int, Any] = {i: init_fn() for i in range(state_num or 0)}

    def forward(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        state_id = kwargs.pop("data_id", None)
        valid_id = kwargs.pop("valid_id", None)
        data, state_info = self.before_forward(data, state_id)
        output = self._model(data, **kwargs)
        next_state = output.pop("next_state", None)
        if next_state is not None:
            self.after_forward(next_state, state_info, valid_id)
        if self._save_prev_state:
            output["prev_state"] = [_detached(state) for state in state_info.values()]
        return output

    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Reset ``data_id`` to ``state``, the initial states (see `reset_state`)."""
        state = kwargs.pop("state", None)
        data_id = args[0] if args else kwargs.get("data_id")
        self.reset_state(state, data_id)
        super().reset(*args, **kwargs)

    def reset_state(
        self, state: list[Any] | None = None, state_id: list[Any] | None = None
    ) -> None:
        """Reset the environments ``state_id`` (default: all) to ``state`` or ``init_fn()``."""
        ids = self._known(state_id)
        if state is None:
            state = [self._init_fn() for _ in ids]
        if len(state) != len(ids):
            raise ValueError(f"reset_state: {len(state)} states came for {len(ids)} ids {ids}")
        self._state.update(zip(ids, state))

    def before_forward(
        self, data: dict[str, Any], state_id: list[Any] | None
    ) -> tuple[dict[str, Any], dict[int, Any]]:
        """A copy of ``data`` with ``prev_state``, and the states by id."""
        state_info = {i: self._state[i] for i in self._known(state_id)}
        return {**data, "prev_state": list(state_info.values())}, state_info

    def after_forward(
        self, h: Any, state_info: dict[int, Any], valid_id: list[Any] | None = None
    ) -> None:
        """Store the states ``h``, one for each id in ``state_info``."""
        if len(h) != len(state_info):
            raise ValueError(
                f"the model returned {len(h)} states in next_state for {len(state_info)} "
                "environments; expected one for each"
            )
        for i, state in zip(state_info, h):
            if valid_id is None or i in valid_id:
                self._state[i] = state

    def state_of(self, state_id: int) -> Any:
        """The current state of an environment; None for an initial one."""
        return self._state.get(state_id)

    def _known(self, state_id: Sequence[int] | None) -> list[int]:
        if state_id is None:
            return list(self._state)
        if self._state_num is None:
            for i in state_id:
                self._state.setdefault(i, self._init_fn())
            return list(state_id)
        unknown = [i for i in state_id if i not in self._state]
        if unknown:
            raise ValueError(
                f"ids {unknown} came; this wrapper was made with state_num={self._state_num}, "
                f"ids 0 to {self._state_num - 1}"
            )
        return list(state_id)


def _detached(state: Any) -> Any:
    if torch.is_tensor(state):
        return state.detach()
    if isinstance(state, dict):
        return {key: _detached(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_detached(value) for value in state)
    return state
