"""Accesses values of nested configs by paths such as ``policy.learn.batch_size``.

Values have the types that the schema (`ding.config.schema`) defines, or any type under keys of
custom classes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from easydict import EasyDict

from ding.utils.types import Config, Settings

#: Replaces the environment section of a config: a class or function that creates environments, the
#: configs of the collector's environments, and those of the evaluator's.
EnvSetting: TypeAlias = Sequence[Any]


def at(config: object, path: str) -> Any:
    """The value at a dotted path, ``None`` if it or one of its sections is missing."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def has(config: object, path: str) -> bool:
    """Whether there is a value at a dotted path; ``None`` counts as a value."""
    section, _, key = path.rpartition(".")
    parent = at(config, section) if section else config
    return isinstance(parent, Mapping) and key in parent


def put(config: Config, path: str, value: object) -> None:
    """Set the value at a dotted path; missing sections are created."""
    *way, last = path.split(".")
    for key in way:
        config = config.setdefault(key, EasyDict())
    config[last] = value


def leaves(config: Settings, path: str = "") -> Iterator[tuple[str, Any]]:
    """All values with their paths; an empty section counts as a value."""
    for key, value in config.items():
        place = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, place)
        else:
            yield place, value
