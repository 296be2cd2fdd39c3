"""Builds models from configs, and shares constructor signatures between models."""

import copy
import functools
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, cast

from torch import nn

from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import MODEL_REGISTRY

_Init = TypeVar("_Init", bound=Callable[..., None])
_BY_PLACE = Parameter.POSITIONAL_OR_KEYWORD
_REST = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def create_model(cfg: Mapping[str, Any]) -> nn.Module:
    """Build the network of the type ``cfg['type']``, with the rest of ``cfg`` as its arguments.

    Modules in ``cfg['import_names']`` are imported first. ``cfg`` is not modified.

    Args:
        cfg: ``type``, ``import_names`` and the network's arguments.

    Raises:
        UnknownTypeError: No network of this type is registered.

    Example:

        >>> from ding.model import create_model
        >>> type(create_model({"type": "dqn", "obs_shape": 4, "action_shape": 2})).__name__
        'DQN'
    """
    kwargs = dict(copy.deepcopy(cfg))
    import_module(kwargs.pop("import_names", []))
    if "type" not in kwargs:
        raise ConfigError(
            f"model: no 'type' among the keys {sorted(kwargs)}; expected one of "
            f"{sorted(MODEL_REGISTRY)}"
        )
    return MODEL_REGISTRY.get(kwargs.pop("type"))(**kwargs)


# Constructor parameters are public: users set them in `policy.model`, and config checks read them
# from the signature. A class that takes another's parameters must therefore list all of them in its
# signature, without repeating them in its source.
def takes_as(
    base: type, without: Collection[str] = (), after: str = "self", **defaults: Any
) -> Callable[[_Init], _Init]:
    """Decorator for a constructor that also takes another class's parameters, as keyword arguments.

    Args:
        base: The other class; its keyword-only parameters are for its subclasses.
        without: Parameters of it to leave out.
        after: The constructor's own parameters are inserted after this one.
        defaults: Defaults that differ from those of the other class.
    """
    theirs = [p for p in signature(base).parameters.values() if p.kind is _BY_PLACE]

    def decorate(init: _Init) -> _Init:
        this, *others = signature(init).parameters.values()
        own = [p.replace(kind=_BY_PLACE) for p in others if p.kind not in _REST]
        taken = [p for p in theirs if p.name not in without]
        taken = [p.replace(default=defaults.get(p.name, p.default)) for p in taken]
        place = [this.name, *(p.name for p in taken)].index(after)
        shown = Signature([this, *taken[:place], *own, *taken[place:]])

        @functools.wraps(init)
        def constructor(*args: Any, **kwargs: Any) -> None:
            bound = shown.bind(*args, **kwargs)
            bound.apply_defaults()
            init(**bound.arguments)

        constructor.__signature__ = shown  # type: ignore[attr-defined]
        return cast(_Init, constructor)

    return decorate
