"""Writes a new config file for an environment and a policy: ``ding init``."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping

from ding.config.schema import SCHEMA
from ding.entry.quick_config import pipeline_of, quick_config, source_of
from ding.utils.errors import ConfigError
from ding.utils.file_helper import replace_text
from ding.utils.types import Settings

_WIDTH = 100


def write_new_config(path: str, env_id: str | None, policy: str | None) -> str:
    """Write a config that trains a policy in an environment, with comments on all keys.

    Args:
        env_id: By default an environment that suits the policy.
        policy: By default a policy that suits the environment.

    Returns:
        The command that trains with the config.

    Raises:
        ConfigError: The file exists or is none of Python, no such environment, or a policy that
            does not suit it.
    """
    if not path.endswith(".py"):
        raise ConfigError(f"{path}: a config file is written in Python, its name must end in .py")
    if os.path.exists(path):
        raise ConfigError(f"{path} exists already: choose another name")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise ConfigError(f"there is no folder {folder!r} for {path}: make it, or choose another")
    main, create = quick_config(env_id, policy, any_source=True)
    type_, env = create["policy"]["type"], main["env"].get("env_id") or create["env"]["type"]
    mode = pipeline_of(type_)
    source = source_of(type_)
    where = "data_path" if source == "a data set" else "model_path"
    command = f"ding {f'-m {mode} ' if mode else ''}-c {shlex.quote(path)} -s 0"
    meanings = {path: key.meaning for key in SCHEMA for path in (key.path, *key.twins)}
    lines = [
        f'"""{type_} on {env}. Run it: {command}"""',
        *([f"# Learns from {source}: see policy.collect.{where}."] if source else []),
        "",
        "main_config = dict(",
        *_entries(main, "", 1, meanings),
        ")",
        "create_config = dict(",
        *_entries(create, "", 1, {}),
        ")",
    ]
    try:
        replace_text(path, "\n".join(lines) + "\n")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error
    return command


def _entries(
    section: Settings, path: str, depth: int, meanings: Mapping[str, str]
) -> Iterator[str]:
    indent = "    " * depth
    for name, value in section.items():
        key = f"{path}.{name}" if path else name
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}=dict("
            yield from _entries(value, key, depth + 1, meanings)
            yield f"{indent}),"
            continue
        literal = json.dumps(value) if isinstance(value, str) else repr(value)
        line, meaning = f"{indent}{name}={literal},", meanings.get(key, "")
        if not meaning:
            yield line
        elif len(line) + len(meaning) + 4 <= _WIDTH:
            yield f"{line}  # {meaning}"
        else:
            yield f"{indent}# {meaning}"
            yield line
