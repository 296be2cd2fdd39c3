"""Configs to files: Python that can be read again, YAML, and a script that runs as it is."""

import math
import os
import pprint
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml
from easydict import EasyDict

from ding.config.adapt import without_copies
from ding.config.parts import (
    COMPONENTS,
    PARALLEL_COMPONENTS,
    entry_point,
    policy_mode,
    search_path,
)
from ding.config.system import user_part
from ding.utils import ENGINE_REGISTRY, MODEL_REGISTRY, POLICY_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.file_helper import replace_text
from ding.utils.run_log import git_state
from ding.utils.settings import at
from ding.utils.types import Config

#: Functions of modes whose name does not say it.
_PIPELINES = {
    "serial_reward_model": "serial_pipeline_reward_model_offpolicy",
    "serial_gail_onpolicy": "serial_pipeline_gail",
    "serial_trex_onpolicy": "serial_pipeline_trex",
    "serial_guided_cost_onpolicy": "serial_pipeline_guided_cost",
}


def save_config(
    config_: Config, path: str, type_: str = "py", save_formatted: bool = False
) -> None:
    """Save a config as Python, or as YAML (``type_='yaml'``).

    Args:
        save_formatted: Also write ``formatted_<name>`` (Python only), a script with
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


def save_config_yaml(config_: Config, path: str) -> None:
    """Save as YAML; tuples become lists.

    Raises:
        ConfigError: Something that YAML cannot hold.
    """
    try:
        text = yaml.safe_dump(plain(config_), sort_keys=False)
    except yaml.YAMLError as error:
        what = f"YAML cannot hold {_named(error.args[-1])}"
        raise ConfigError(f"{what}: save the config as Python (type_='py')") from error
    _save_text(path, text)


def save_config_py(config_: Config, path: str) -> None:
    """Save as a Python file that defines ``exp_config``."""
    source = Source(search_path(at(config_, "main.create_config") or {}))
    body = source.of(config_, "exp_config")
    _save_text(path, f"{source.header()}exp_config = {body}\n")


def save_config_formatted(
    config_: Config, path: str = "formatted_total_config.py", mode: str | None = None
) -> None:
    """Save a compiled config as a script with ``main_config`` and ``create_config``.

    The script is a config file like any other, and starts a new run when it is executed: in the
    ``mode`` of the command line, by default that of its policy.
    """
    is_parallel = {"main", "system"} <= set(config_)
    main: Config = config_["main"] if is_parallel else config_
    create = main.get("create_config", {})
    source = Source(search_path(create))
    components = PARALLEL_COMPONENTS if is_parallel else COMPONENTS
    types = [(name, one.registry, at(create, f"{name}.type")) for name, one in components.items()]
    types += [
        ("model", MODEL_REGISTRY, at(main, "policy.model.type")),
        ("engine", ENGINE_REGISTRY, at(config_, "system.engine.type")),
    ]
    for name, registry, type_ in types:
        if getattr(registry.origin(type_), "module", None) == "__main__":
            source.lost.append(f"the {name} type {type_!r} is registered by a script")
    env_id = at(main, "env.env_id")
    if getattr(entry_point(env_id), "__module__", None) == "__main__":
        source.lost.append(f"the environment {env_id!r} is registered by a script")
    own = {key: value for key, value in plain(main).items() if key != "create_config"}
    if at(own, "policy.learn.resume_training"):
        own["policy"]["learn"]["resume_training"] = False
    parts = {"main_config": without_copies(own), "create_config": create}
    if is_parallel:
        pipeline = "parallel_pipeline"
        parts["system_config"] = user_part(config_["system"], main["exp_name"])
    else:
        type_ = at(create, "policy.type")
        policy = POLICY_REGISTRY[type_] if not mode and type_ in POLICY_REGISTRY else None
        mode = mode or policy_mode(policy, bool(at(main, "policy.on_policy")))
        pipeline = _PIPELINES.get(mode, mode.replace("serial", "serial_pipeline"))
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


def save_run_config(
    config: EasyDict, name: str = "total_config.py", mode: str | None = None
) -> str:
    """Save a compiled config and its script (`save_config_formatted`) into the run's folder, which
    is made, and return the file's path.

    Raises:
        ConfigError: The folder cannot be written.
    """
    folder = config.main.exp_name if {"main", "system"} <= set(config) else config.exp_name
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, exist_ok=True)
        save_config_py(config, path)
        save_config_formatted(config, os.path.join(folder, f"formatted_{name}"), mode)
    except OSError as error:
        raise ConfigError(
            f"cannot write into the run's folder {os.path.abspath(folder)!r}: "
            f"{error.strerror or error}; choose another exp_name"
        ) from error
    return path


def runs_as_it_is(path: str) -> bool:
    """Whether a formatted config holds all that a run of it needs."""
    try:
        with open(path, encoding="utf-8") as file:
            return not any(line.startswith("raise ValueError(") for line in file)
    except OSError:
        return False


def _save_text(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    replace_text(path, text)


def save_project_state(exp_name: str) -> None:
    """Write the commit, and whether files differ from it, to ``<exp_name>/git.txt``."""
    state = git_state() or {"git": "none"}
    text = "".join(f"{key}: {value}\n" for key, value in state.items())
    _save_text(os.path.join(exp_name, "git.txt"), text)


class Source:
    """Writes values as Python expressions, and collects what these need to run.

    Functions and classes that can be imported are written by name. Anything else that is not plain
    data is written as ``None``, and the file refuses to run until the user has put it back.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self.folders = folders  # further places of modules
        self.lost: list[str] = []  # what is missing in the file
        self._modules: set[str] = set()

    def header(self) -> str:
        """Imports, and the refusal if something was lost; complete after `of`."""
        lines = []
        if self.folders:
            lines += ["import sys", "", *(f"sys.path.append({one!r})" for one in self.folders), ""]
        lines += [f"import {module}" for module in sorted(self._modules)]
        if self.lost:
            message = (
                f"not everything in this config could be written: {'; '.join(self.lost)}. Put it "
                "back (where None stands now, if it was a value), and remove this line"
            )
            lines += ["", f"raise ValueError({message!r})"]
        return "\n".join(lines) + "\n" if lines else ""

    def of(self, value: object, path: str) -> str:
        """The ``repr`` of the value at a path; a mapping has a line for each key."""
        readable = self._readable(plain(value), path)
        # In the order of the config, as its readers know it.
        return pprint.pformat(readable, width=100, compact=True, sort_dicts=False)

    def _readable(self, value: object, path: str) -> object:
        """A value with names in place of what has no ``repr`` that can be read again."""
        if isinstance(value, dict):
            return {key: self._readable(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            items = (self._readable(item, f"{path}[{index}]") for index, item in enumerate(value))
            return type(value)(items)  # of builtin types alone: see `plain`
        if isinstance(value, float) and not math.isfinite(value):
            return _Name(f"float({str(value)!r})")
        if value is None or type(value) in (bool, int, float, str, bytes, range):
            return value
        if name := _importable(value):
            self._modules.add(value.__module__)
            return _Name(name)
        self.lost.append(f"{path} was {_named(value)}")
        return None


class _Name(str):
    """An expression whose ``repr`` is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def plain(value: Any) -> Any:
    """Containers as dict, list and tuple; numbers and strings as Python's own."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _importable(value: object) -> str:
    """The dotted name under which another process finds a class or function; empty if none does."""
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return ""
    module, name = value.__module__, value.__qualname__
    if module is None or module in ("__main__", "ding_config"):
        return ""
    found: object = sys.modules.get(module)
    for part in name.split("."):  # "<lambda>" is no name of anything
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else ""


def _named(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
