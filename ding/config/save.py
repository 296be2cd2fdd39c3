"""Configs to files: Python that can be read again, YAML, and a script that runs as it is."""

import os
from collections.abc import Mapping
from typing import Any

import yaml
from easydict import EasyDict

from ding.config.adapt import without_copies
from ding.config.check import at
from ding.config.parts import PARALLEL_COMPONENTS
from ding.config.source import (
    Source,
    entry_point,
    is_of_a_script,
    plain,
    search_path,
    without_objects,
)
from ding.config.system import user_part
from ding.utils import ENGINE_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.file_helper import replace_text
from ding.utils.run_log import git_state


def save_config(config_: dict, path: str, type_: str = "py", save_formatted: bool = False) -> None:
    """Save a config.

    Args:
        config_: The config.
        path: File to write, under a temporary name first.
        type_: ``py`` or ``yaml``.
        save_formatted: Also write ``formatted_<name>`` beside it (Python only), a script with
            ``main_config`` and ``create_config`` that runs as it is.

    Raises:
        ConfigError: Another type; something that YAML cannot hold.
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
    """Save as YAML; tuples become lists.

    Raises:
        ConfigError: Something that YAML cannot hold, with its path.
    """
    _save_text(path, yaml.safe_dump(without_objects(config_), sort_keys=False))


def save_config_py(config_: dict, path: str) -> None:
    """Save as a Python file that defines ``exp_config``."""
    source = Source(search_path(at(config_, "main.create_config") or {}))
    body = source.of(config_, "exp_config")
    _save_text(path, f"{source.header()}exp_config = {body}\n")


def save_config_formatted(config_: dict, path: str = "formatted_total_config.py") -> None:
    """Save a compiled config as a script with ``main_config`` and ``create_config``.

    The script trains when it is run, and is a config file like any other. It begins anew, also
    when it comes from a run that was resumed.
    """
    is_parallel = _is_parallel(config_)
    main: dict[str, Any] = config_["main"] if is_parallel else config_
    create = main.get("create_config", {})
    source = _source_for(main, create)
    parts = {"main_config": _main_part(main), "create_config": create}
    if is_parallel:
        pipeline = "parallel_pipeline"
        engine = at(config_, "system.engine.type")
        if engine in ENGINE_REGISTRY and is_of_a_script(ENGINE_REGISTRY[engine]):
            source.lose(f"the engine type {engine!r} is registered by a script")
        parts["system_config"] = user_part(config_["system"], main["exp_name"])
    else:
        on_policy = bool(main.get("policy", {}).get("on_policy", False))
        pipeline = "serial_pipeline_onpolicy" if on_policy else "serial_pipeline"
    sections = [f"{name} = EasyDict({source.of(part, name)})\n" for name, part in parts.items()]
    body = "\n".join(sections)
    _save_text(
        path,
        f"""from easydict import EasyDict
{source.header()}
{body}
if __name__ == "__main__":
    from ding.entry import {pipeline}

    {pipeline}([{", ".join(parts)}], seed={main.get("seed", 0)!r})
""",
    )


def save_run_config(config: EasyDict, name: str = "total_config.py") -> str:
    """Save a compiled config into the run's folder, which is made, with the script beside it.

    Returns:
        The file's path.

    Raises:
        ConfigError: The folder cannot be written.
    """
    folder = config.main.exp_name if _is_parallel(config) else config.exp_name
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, exist_ok=True)
        save_config(config, path, save_formatted=True)
    except OSError as error:
        raise ConfigError(
            f"cannot write into the run's folder {os.path.abspath(folder)!r}: "
            f"{error.strerror or error}; choose another exp_name"
        ) from error
    return path


def _is_parallel(config: Mapping[str, Any]) -> bool:
    return "main" in config and "system" in config


def runs_as_it_is(path: str) -> bool:
    """Whether a formatted config holds all that a run of it needs."""
    try:
        with open(path, encoding="utf-8") as file:
            return not any(line.startswith("raise ValueError(") for line in file)
    except OSError:
        return False


def _source_for(main: Mapping[str, Any], create: Mapping[str, Any]) -> Source:
    """Source that finds the modules of the types, and says which types it cannot find."""
    source = Source(search_path(create))
    for name, (registry, _) in PARALLEL_COMPONENTS.items():
        type_ = at(create, f"{name}.type")
        if type_ in registry and is_of_a_script(registry[type_]):
            source.lose(f"the {name} type {type_!r} is registered by a script")
    env_id = at(main, "env.env_id")
    if is_of_a_script(entry_point(env_id)):
        source.lose(f"the environment {env_id!r} is registered by a script")
    return source


def _main_part(config: dict) -> dict[str, Any]:
    """The ``main_config`` of a script that begins anew."""
    main = {key: value for key, value in plain(config).items() if key != "create_config"}
    if at(main, "policy.learn.resume_training"):
        main["policy"]["learn"]["resume_training"] = False
    return without_copies(main)


def _save_text(path: str, text: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    replace_text(path, text)


def save_project_state(exp_name: str) -> None:
    """Write the commit, and whether files differ from it, to ``<exp_name>/git.txt``."""
    state = git_state()
    text = "".join(f"{key}: {value}\n" for key, value in (state or {"git": "none"}).items())
    _save_text(os.path.join(exp_name, "git.txt"), text)
