"""Configs to files: Python that can be read again, YAML, and a script that runs as it is."""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml

from ding.utils.errors import ConfigError
from ding.utils.git_state import git_state
from ding.utils.log_file import write_atomically

_WIDTH = 100


def save_config(config_: dict, path: str, type_: str = "py", save_formatted: bool = False) -> None:
    """Save a config.

    Args:
        config_: The config.
        path: File to write, under a temporary name first.
        type_: ``py`` or ``yaml``.
        save_formatted: Also write ``formatted_<name>`` beside it (Python only), a script with
            ``main_config`` and ``create_config`` that runs as it is.

    Raises:
        ConfigError: Another type.
    """
    if type_ == "yaml":
        save_config_yaml(config_, path)
    elif type_ == "py":
        save_config_py(config_, path)
        if save_formatted:
            folder, name = os.path.split(path)
            save_config_formatted(config_, os.path.join(folder, f"formatted_{name}"))
    else:
        raise ConfigError(f"type_ must be 'py' or 'yaml', got {type_!r}")


def save_config_yaml(config_: dict, path: str) -> None:
    """Save as YAML."""
    _save_text(path, yaml.safe_dump(_without_tuples(_plain(config_)), sort_keys=False))


def save_config_py(config_: dict, path: str) -> None:
    """Save as a Python file that defines ``exp_config``."""
    _save_text(path, f"exp_config = {format_value(config_)}\n")


def save_config_formatted(config_: dict, path: str = "formatted_total_config.py") -> None:
    """Save a compiled config as a script with ``main_config`` and ``create_config``.

    The script trains when it is run, and is a config file like any other.
    """
    main = {key: value for key, value in config_.items() if key != "create_config"}
    create = config_.get("create_config") or _create_config_of(config_)
    on_policy = bool(config_.get("policy", {}).get("on_policy", False))
    pipeline = "serial_pipeline_onpolicy" if on_policy else "serial_pipeline"
    _save_text(
        path,
        f"""from easydict import EasyDict

main_config = EasyDict({format_value(main)})

create_config = EasyDict({format_value(create)})

if __name__ == "__main__":
    from ding.entry import {pipeline}

    {pipeline}([main_config, create_config], seed={config_.get("seed", 0)!r})
""",
    )


def _create_config_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The types that a compiled config names."""
    env, policy = config.get("env", {}), config.get("policy", {})
    sections = {
        "env": env,
        "env_manager": env.get("manager", {}),
        "policy": policy,
        "learner": policy.get("learn", {}).get("learner", {}),
        "collector": policy.get("collect", {}).get("collector", {}),
        "evaluator": policy.get("eval", {}).get("evaluator", {}),
        "replay_buffer": policy.get("other", {}).get("replay_buffer", {}),
    }
    return {
        name: {key: section[key] for key in ("type", "import_names") if section.get(key)}
        for name, section in sections.items()
        if section.get("type")
    }


def format_value(value: Any, indent: int = 0) -> str:
    """Python source of a value; mappings and long lists on lines of their own."""
    value = _plain(value)
    flat = _flat(value)
    if len(flat) + indent <= _WIDTH and not (isinstance(value, dict) and len(value) > 1):
        return flat
    inner, outer = " " * (indent + 4), " " * indent
    if isinstance(value, dict):
        lines = [
            f"{inner}{key!r}: {format_value(item, indent + 4)}," for key, item in value.items()
        ]
        return "{\n" + "\n".join(lines) + f"\n{outer}}}"
    if isinstance(value, list | tuple) and len(value) > 1:
        left, right = ("[", "]") if isinstance(value, list) else ("(", ")")
        lines = [f"{inner}{format_value(item, indent + 4)}," for item in value]
        return left + "\n" + "\n".join(lines) + f"\n{outer}{right}"
    return flat


def _flat(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_flat(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flat, value)) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_flat(item)}, " for item in value).rstrip() + ")"
    return repr(value)


def _plain(value: Any) -> Any:
    """Only what can be written as Python literals or YAML; other objects by their repr."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)


def _without_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    return [_without_tuples(item) for item in value] if isinstance(value, list | tuple) else value


def _save_text(path: str, text: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    write_atomically(path, text)


def save_project_state(exp_name: str) -> None:
    """Write the commit, and whether files differ from it, to ``<exp_name>/git.txt``."""
    state = git_state()
    text = "".join(f"{key}: {value}\n" for key, value in (state or {"git": "none"}).items())
    _save_text(os.path.join(exp_name, "git.txt"), text)
