"""A new config file for an environment and a policy: ``ding init``."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ding.config.schema import SCHEMA
from ding.entry.quick_config import quick_config
from ding.utils.errors import ConfigError
from ding.utils.file_helper import replace_text

_WIDTH = 100


def write_new_config(path: str, env_id: str, policy: str) -> None:
    """Write a config that trains a policy in an environment, with the meaning of each key.

    Raises:
        ConfigError: The file exists, no such environment, or a policy that does not suit it.
    """
    if os.path.exists(path):
        raise ConfigError(f"{path} exists already: choose another name")
    main, create = quick_config(env_id, policy)
    meanings = {path: key.meaning for key in SCHEMA for path in (key.path, *key.twins)}
    lines = [
        f'"""{policy} on {env_id}. Run it: ding -c {path} -s 0"""',
        "",
        "main_config = dict(",
        *_entries(main, "", 1, meanings),
        ")",
        "create_config = dict(",
        *_entries(create, "", 1, {}),
        ")",
    ]
    replace_text(path, "\n".join(lines) + "\n")


def _entries(
    section: Mapping[str, Any], path: str, depth: int, meanings: Mapping[str, str]
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
