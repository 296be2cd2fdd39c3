"""Models from configs."""

import copy
from collections.abc import Mapping
from typing import Any

from torch import nn

from ding.torch_utils.network import build_activation
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import MODEL_REGISTRY


def create_model(cfg: Mapping[str, Any]) -> nn.Module:
    """Builds the model that ``cfg['type']`` names, with the rest of ``cfg`` as its arguments.

    Modules in ``cfg['import_names']`` are imported first. ``cfg`` is left as it is. Networks of
    this package take activations by name.
    """
    kwargs = dict(copy.deepcopy(cfg))
    import_module(kwargs.pop("import_names", []))
    if "type" not in kwargs:
        raise ConfigError(
            f"model: no 'type' among the keys {sorted(kwargs)}; expected one of "
            f"{sorted(MODEL_REGISTRY)}"
        )
    cls = MODEL_REGISTRY.get(kwargs.pop("type"))
    if cls.__module__.split(".")[0] == "ding":
        for key, value in kwargs.items():
            if key.endswith("activation") and isinstance(value, str):
                kwargs[key] = _activation(key, value)
    return cls(**kwargs)


def _activation(key: str, name: str) -> nn.Module:
    """An activation by a name such as ``relu``, ``ReLU`` or ``leaky_relu``."""
    try:
        return build_activation(name.lower().replace("_", ""))
    except KeyError as error:
        raise ConfigError(f"policy.model.{key}: {error.args[0]}, or a torch.nn.Module") from error
