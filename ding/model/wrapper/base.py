"""What every model wrapper is: a model with something done before or after its forward."""

from abc import ABC
from typing import Any

from torch import nn


class IModelWrapper(ABC):  # noqa: B024 (usable as it is: it wraps and does nothing)
    """Wraps a model, or another wrapper; whatever it does not define is the wrapped model's.

    Attributes are read through (``parameters``, ``state_dict``, ``train`` ...); an attribute that
    is set on a wrapper stays on that wrapper.
    """

    def __init__(self, model: "nn.Module | IModelWrapper") -> None:
        self._model: Any = model

    def __getattr__(self, name: str) -> Any:
        # While an instance is being copied or unpickled it has no `_model` to ask.
        if name == "_model":
            raise AttributeError(name)
        return getattr(self._model, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    def info(self, attr_name: str) -> str:
        """Which layer of the wrapping, from the outside in, provides ``attr_name``."""
        name = type(self).__name__
        if attr_name in vars(self) or hasattr(type(self), attr_name):
            return f"{name}: {attr_name}"
        if isinstance(self._model, IModelWrapper):
            return f"{name} > {self._model.info(attr_name)}"
        found = attr_name if hasattr(self._model, attr_name) else f"no {attr_name}"
        return f"{name} > {type(self._model).__name__}: {found}"

    def reset(self, data_id: list[int] | None = None, **kwargs: Any) -> None:
        """Resets the states of the wrappers for ``data_id``, all of them when it is None."""
        if hasattr(self._model, "reset"):
            self._model.reset(data_id=data_id, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model's output; wrappers change what goes in or comes out."""
        return self._model(*args, **kwargs)


class BaseModelWrapper(IModelWrapper):
    """Does nothing but wrap."""


def innermost(model: Any) -> nn.Module:
    """The module under any number of wrappers."""
    while isinstance(model, IModelWrapper):
        model = model._model
    return model
