"""Settings on the command line: ``--set policy.learn.batch_size=32``."""

import ast
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from ding.config.read import parse_yaml
from ding.utils.errors import ConfigError


def apply_overrides(configs: Sequence[dict], settings: Iterable[str]) -> None:
    """Write settings into the configs, in place.

    Args:
        configs: The main config, that of types, and in parallel mode that of the system.
        settings: Each ``path=value``; a path begins in the main config, or with
            ``create_config.`` or ``system_config.``. A value is Python (``[64, 64]``, ``1e-3``,
            ``'text'``) or YAML (``true``, ``null``), and text if it is neither.

    Raises:
        ConfigError: Not of this form, or a path through something that is not a section. Unknown
            keys are found when the config is compiled.
    """
    for setting in settings:
        path, equals, text = setting.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(
                f"--set {setting}: expected path=value, such as policy.learn.batch_size=32"
            )
        root = configs[0]
        named = dict(zip(("main_config", "create_config", "system_config"), configs))
        if keys[0] in named and len(keys) > 1:
            root, keys = named[keys[0]], keys[1:]
        _put(root, keys, parse_value(text.strip()), setting)


def _put(section: Any, keys: list[str], value: Any, setting: str) -> None:
    for depth, key in enumerate(keys):
        if not isinstance(section, dict):
            where = ".".join(keys[:depth])
            raise ConfigError(f"--set {setting}: {where} is {section!r}, it holds no keys")
        if depth == len(keys) - 1:
            section[key] = value
        else:
            section = section.setdefault(key, {})


def parse_value(text: str) -> Any:
    """The value that a text on the command line means."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if text.lstrip("+-") in ("inf", "nan"):
        return float(text)
    try:
        return parse_yaml(text)
    except yaml.YAMLError:
        return text
