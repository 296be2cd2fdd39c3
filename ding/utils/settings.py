"""Configs as nested mappings: their types, and values at paths such as ``policy.learn.batch_size``.

Values are what users write: of the types that the schema (`ding.config.schema`) has for their keys,
or of any type under keys of custom classes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from easydict import EasyDict

from ding.utils.types import Config, Settings

#: What makes environments instead of a config's section: a class or function, the configs of
#: collecting environments, and those of evaluating ones.
EnvSetting: TypeAlias = Sequence[Any]


def at(config: object, path: str) -> Any:
    """The value at a dotted path, ``None`` if it or a section on the way is missing."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def has(config: object, path: str) -> bool:
    """Whether there is a value at a dotted path; ``None`` is one."""
    section, _, key = path.rpartition(".")
    parent = at(config, section) if section else config
    return isinstance(parent, Mapping) and key in parent


def put(config: Config, path: str, value: object) -> None:
    """Set the value at a dotted path; sections that are missing are made."""
    *way, last = path.split(".")
    for key in way:
        config = config.setdefault(key, EasyDict())
    config[last] = value


def leaves(config: Settings, path: str = "") -> Iterator[tuple[str, Any]]:
    """All values with their paths; an empty section is a value."""
    for key, value in config.items():
        place = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, place)
        else:
            yield place, value
