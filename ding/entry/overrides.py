"""Settings on the command line: ``--set policy.learn.batch_size=32``."""

import ast
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from ding.config.adapt import twins_of
from ding.config.check import at
from ding.config.read import parse_yaml
from ding.utils.errors import ConfigError


def apply_overrides(configs: Sequence[dict[str, Any]], settings: Iterable[str]) -> set[str]:
    """Write settings into the configs, in place, and remove other places of the same setting.

    Args:
        configs: The main config, that of types, and in parallel mode that of the system.
        settings: Each ``path=value``; a path begins in the main config, or with
            ``create_config.`` or ``system_config.``. A value is Python or YAML, and text if it is
            neither.

    Returns:
        The paths: an unknown key there is an error when the config is compiled.

    Raises:
        ConfigError: Another form, or a path through a value.
    """
    named = dict(zip(("main_config", "create_config", "system_config"), configs))
    whole = {**configs[0], **named}
    written = set()
    for setting in settings:
        path, equals, text = setting.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(
                f"--set {setting}: expected path=value, such as policy.learn.batch_size=32"
            )
        if keys[0] == "main_config" and len(keys) > 1:
            keys = keys[1:]
        in_other = keys[0] in named and len(keys) > 1
        root, inner = (named[keys[0]], keys[1:]) if in_other else (configs[0], keys)
        section: Any = root
        for depth, key in enumerate(inner):
            if not isinstance(section, dict):
                where = ".".join(inner[:depth])
                raise ConfigError(f"--set {setting}: {where} is {section!r}, it holds no keys")
            if depth < len(inner) - 1:
                section = section.setdefault(key, {})
            else:
                section[key] = parse_value(text.strip())
        written.add(".".join(keys))
    for twin in {twin for path in written for twin in twins_of(path)} - written:
        place, _, name = twin.rpartition(".")
        (at(whole, place) or {}).pop(name, None)
    return written


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
