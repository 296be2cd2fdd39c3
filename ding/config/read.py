"""Configs from files."""

import os
import re
import traceback
import types
from typing import Any

import yaml
from easydict import EasyDict

from ding.utils.errors import ConfigError
from ding.utils.import_helper import run_config_file
from ding.utils.types import Config as ConfigDict


class Config:
    """What a config file defines: names and values.

    Scripts may pass the file's text and its name, too; they are not used.
    """

    def __init__(
        self,
        cfg_dict: ConfigDict | None = None,
        cfg_text: str | None = None,
        filename: str | None = None,
    ) -> None:
        if cfg_dict is not None and not isinstance(cfg_dict, dict):
            raise ConfigError(f"cfg_dict must be a dict, got {type(cfg_dict).__name__}")
        #: The config as a nested dict.
        self.cfg_dict = cfg_dict or {}

    @staticmethod
    def file_to_dict(filename: str) -> "Config":
        """Run a Python config file and take the values that it defines.

        Raises:
            ConfigError: No such file, or it fails; with the file's own error.
        """
        _read_text(filename)
        path = os.path.abspath(os.path.expanduser(filename))
        try:
            names = run_config_file(path)
        except SystemExit as error:
            raise ConfigError(
                f"{path} ends the process (exit status {error.code}): put what a "
                "script does under  if __name__ == '__main__':"
            ) from error
        except SyntaxError as error:
            line = f": {error.text.strip()}" if error.text else ""
            raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}{line}") from error
        except Exception as error:
            # The last line of the file itself that led to it.
            frames = traceback.extract_tb(error.__traceback__)
            lines = [f"{path}:{frame.lineno}" for frame in frames if frame.filename == path]
            raise ConfigError(f"{[path, *lines][-1]}: {type(error).__name__}: {error}") from error
        code = types.ModuleType | type | types.FunctionType
        return Config(
            {
                name: value
                for name, value in names.items()
                if not name.startswith("_") and not isinstance(value, code)
            }
        )


def _read_text(path: str) -> str:
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.isfile(path):
        raise ConfigError(
            f"config file {path!r} is {'a folder' if os.path.isdir(path) else 'missing'}"
        )
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {path!r}: {error}") from error


class _Loader(yaml.SafeLoader):
    """Reads ``1e-3`` as a number; YAML 1.1 has a string there."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; ``yaml.YAMLError`` if it is none."""
    return yaml.load(text, _Loader)


def read_config_yaml(path: str) -> EasyDict:
    """Read a YAML file.

    Raises:
        ConfigError: No such file, or not a YAML mapping.
    """
    try:
        loaded = parse_yaml(_read_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else path
        what = getattr(error, "problem", None) or error
        raise ConfigError(f"{where}: not YAML: {what}") from error
    if not isinstance(loaded, dict):
        held = "is empty" if loaded is None else f"holds a {type(loaded).__name__}"
        raise ConfigError(f"{path} {held}; expected a mapping with main_config and create_config")
    return EasyDict(loaded)


def read_config_directly(path: str) -> ConfigDict:
    """All values that a ``.py`` or ``.yaml`` config file defines, by name.

    Raises:
        ConfigError: No such file, another suffix, or the file fails.
    """
    suffix = os.path.splitext(path)[1]
    if suffix == ".py":
        return Config.file_to_dict(path).cfg_dict
    if suffix in (".yaml", ".yml"):
        return read_config_yaml(path)
    raise ConfigError(f"config file {path!r} must end in .py, .yaml or .yml")


def read_config(path: str) -> tuple[ConfigDict, ConfigDict]:
    """Read ``main_config`` and ``create_config`` from the config file ``path``, .py or .yaml.

    Raises:
        ConfigError: As `read_config_directly`, or one of the two is not defined.

    Example:

        >>> from pathlib import Path
        >>> from ding.config import read_config
        >>> text = "main_config = {}\\ncreate_config = dict(policy=dict(type='dqn'))"
        >>> _ = Path("my_config.py").write_text(text)
        >>> main_config, create_config = read_config("my_config.py")
        >>> create_config["policy"]["type"]
        'dqn'
    """
    return main_and_create(path, read_config_directly(path))


def read_config_with_system(path: str) -> tuple[ConfigDict, ConfigDict, ConfigDict]:
    """`read_config` and ``system_config``, which may be missing: all of it has defaults."""
    names = read_config_directly(path)
    return *main_and_create(path, names), names.get("system_config", {})


def main_and_create(path: str, names: ConfigDict) -> tuple[ConfigDict, ConfigDict]:
    """The two dicts among what a config file defines; a `ConfigError` if one is missing."""
    missing = [name for name in ("main_config", "create_config") if name not in names]
    if missing:
        raise ConfigError(
            f"{path} does not define {' and '.join(missing)} (it defines "
            f"{', '.join(sorted(names)) or 'nothing'}): a config file holds the dicts main_config "
            "and create_config, and for parallel mode system_config"
        )
    return names["main_config"], names["create_config"]


def read_compiled(path: str) -> EasyDict:
    """The compiled parallel config (``main`` and ``system``) that a file holds.

    Raises:
        ConfigError: As `read_config_directly`, or it holds something else.
    """
    names = read_config_directly(path)
    config = names.get("exp_config")
    if not isinstance(config, dict) or not {"main", "system"} <= set(config):
        raise ConfigError(
            f"{path} is no compiled parallel config: make one with `ding -m dist -M config -c "
            f"{path}`, and give that file to every part"
        )
    return EasyDict(config)
