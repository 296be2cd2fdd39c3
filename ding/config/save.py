"""Configs to files: Python that can be read again, YAML, and a script that runs as it is."""

import os
from collections.abc import Mapping
from typing import Any

import yaml

from ding.config.adapt import without_copies
from ding.config.check import at
from ding.config.origins import entry_point, is_of_a_script, search_path
from ding.config.parts import PARALLEL_COMPONENTS
from ding.config.source import Source, plain, without_objects
from ding.config.system import user_part
from ding.utils import ENGINE_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.git_state import git_state
from ding.utils.log_file import write_atomically


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
    source = Source()
    create = at(config_, "main.create_config")
    if create is not None:
        source.find_modules_in(search_path(create))
    body = source.of(config_, "exp_config")
    _save_text(path, f"{source.header()}exp_config = {body}\n")


def save_config_formatted(config_: dict, path: str = "formatted_total_config.py") -> None:
    """Save a compiled config as a script with ``main_config`` and ``create_config``.

    The script trains when it is run, and is a config file like any other. It begins anew, also
    when it comes from a run that was resumed.
    """
    if "main" in config_ and "system" in config_:
        _save_formatted_parallel(config_, path)
        return
    source = _source_for(config_, config_.get("create_config", {}))
    main = _main_part(config_)
    main_text = source.of(main, "main_config")
    create_text = source.of(config_.get("create_config", {}), "create_config")
    on_policy = bool(config_.get("policy", {}).get("on_policy", False))
    pipeline = "serial_pipeline_onpolicy" if on_policy else "serial_pipeline"
    _save_text(
        path,
        f"""from easydict import EasyDict
{source.header()}
main_config = EasyDict({main_text})

create_config = EasyDict({create_text})

if __name__ == "__main__":
    from ding.entry import {pipeline}

    {pipeline}([main_config, create_config], seed={config_.get("seed", 0)!r})
""",
    )


def runs_as_it_is(path: str) -> bool:
    """Whether a formatted config holds all that a run of it needs."""
    try:
        with open(path, encoding="utf-8") as file:
            return not any(line.startswith("raise ValueError(") for line in file)
    except OSError:
        return False


def _source_for(main: Mapping[str, Any], create: Mapping[str, Any]) -> Source:
    """Source that finds the modules of the types, and says which types it cannot find."""
    source = Source()
    source.find_modules_in(search_path(create))
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


def _save_formatted_parallel(config: dict, path: str) -> None:
    source = _source_for(config["main"], config["main"].get("create_config", {}))
    engine = at(config, "system.engine.type")
    if engine in ENGINE_REGISTRY and is_of_a_script(ENGINE_REGISTRY[engine]):
        source.lose(f"the engine type {engine!r} is registered by a script")
    main = _main_part(config["main"])
    main_text = source.of(main, "main_config")
    create_text = source.of(config["main"].get("create_config", {}), "create_config")
    system_text = source.of(
        user_part(config["system"], config["main"]["exp_name"]), "system_config"
    )
    _save_text(
        path,
        f"""from easydict import EasyDict
{source.header()}
main_config = EasyDict({main_text})

create_config = EasyDict({create_text})

system_config = EasyDict({system_text})

if __name__ == "__main__":
    from ding.entry import parallel_pipeline

    parallel_pipeline(
        (main_config, create_config, system_config), seed={main.get("seed", 0)!r}
    )
""",
    )


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
