"""The defaults that a class declares."""

import copy
from typing import Any

from easydict import EasyDict

from ding.utils.default_helper import deep_merge_dicts


def class_config(cls: type) -> EasyDict:
    """A copy of the attribute ``config`` of a class, merged over those of its base classes.

    A subclass needs to name only what it adds or changes. ``cfg_type`` is ``<class name>Dict``.
    """
    merged: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        merged = deep_merge_dicts(merged, copy.deepcopy(dict(vars(base).get("config", {}))))
    cfg = EasyDict(merged)
    cfg.cfg_type = f"{cls.__name__}Dict"
    return cfg


class Configurable:
    """Base of classes that declare defaults."""

    config: dict[str, Any] = {}

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)
