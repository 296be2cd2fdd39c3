"""Models from configs."""

import copy
from collections.abc import Mapping
from typing import Any

from torch import nn

from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import MODEL_REGISTRY


def create_model(cfg: Mapping[str, Any]) -> nn.Module:
    """Builds the model that ``cfg['type']`` names, with the rest of ``cfg`` as its arguments.

    Modules in ``cfg['import_names']`` are imported first. ``cfg`` is left as it is.
    """
    kwargs = dict(copy.deepcopy(cfg))
    import_module(kwargs.pop("import_names", []))
    if "type" not in kwargs:
        raise ConfigError(
            f"model: no 'type' among the keys {sorted(kwargs)}; expected one of "
            f"{sorted(MODEL_REGISTRY)}"
        )
    return MODEL_REGISTRY.get(kwargs.pop("type"))(**kwargs)
