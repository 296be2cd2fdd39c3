"""The default engine: HTTP between processes, and folders that they share."""

from typing import Any

from easydict import EasyDict

from ding.utils import ENGINE_REGISTRY
from ding.utils.class_config import class_config


@ENGINE_REGISTRY.register("flask_fs")
class FlaskFsEngine:
    """Processes of a supervisor, or started by hand, that join at the coordinator's HTTP server."""

    config: dict[str, Any] = {}

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)
