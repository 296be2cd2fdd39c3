"""Models from configs, and what their constructors take."""

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
    """Build the network that ``cfg['type']`` names, with the rest of ``cfg`` as its arguments.

    Modules in ``cfg['import_names']`` are imported first. ``cfg`` is left as it is.

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


# Parameters are binding: users write them in `policy.model`, and checks of configs read them from
# the signature. A class that takes what another takes therefore shows all of them, and has them in
# its source once.
def takes_as(
    base: type, without: Collection[str] = (), after: str = "self", **defaults: Any
) -> Callable[[_Init], _Init]:
    """For a constructor that takes what another class's takes, and gets it by name.

    Args:
        base: That class; its keyword-only parameters are for its subclasses.
        without: Parameters of it that are left out.
        after: The parameter that those which the constructor itself declares follow.
        defaults: Other defaults than there.
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
