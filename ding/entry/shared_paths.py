"""Which folders may not be shared by the parts of a run: those that hold what is to be kept."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from easydict import EasyDict

from ding.entry.run_files import RECORD_FILE
from ding.utils.errors import ConfigError

_KEYS = ("path_data", "path_policy")
#: Folders of a run in which only checkpoints and logs have a place.
_KEPT = ("ckpt", "log")
#: Folders below a shared one that are looked at.
_MOST = 2000


def check_shared_paths(config: EasyDict) -> None:
    """Refuse folders for data and weights in which files of users, or of other runs, would be.

    Links are followed to where they lead.

    Args:
        config: Compiled parallel config.

    Raises:
        ConfigError: One is, contains or is contained in what it may not; names key and value.
    """
    exp = config.main.exp_name
    for key, value in _paths(config.system):
        problem = _problem(os.path.realpath(value), exp)
        if problem is not None:
            default = os.path.join(exp, key.rpartition("path_")[2])
            raise ConfigError(
                f"system_config.{key} is {str(value)!r}, which {problem}: files of the run come "
                f"and go there, so give it a folder of its own, such as {default!r}"
            )


def _paths(system: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in _KEYS:
        yield key, system[key]
    for name, entry in system.items():
        for key in _KEYS if isinstance(entry, Mapping) else ():
            if entry.get(key) and entry[key] != system[key]:
                yield f"{name}.{key}", entry[key]


def _problem(path: str, exp_name: str) -> str | None:
    exp = os.path.realpath(exp_name)
    if path == exp:
        return "is the run's own folder"
    if _within(exp, path):
        return f"contains the run's own folder {exp_name!r}"
    for name in _KEPT:
        kept = os.path.realpath(os.path.join(exp, name))
        if _within(path, kept):
            return f"is in the run's folder {name!r}, where files are kept"
        if _within(kept, path):
            return f"contains the run's folder {name!r}"
    other = _run_around(path)
    if other is not None and other != exp:
        return f"is in {other!r}, where another run keeps its files"
    other = _run_in(path)
    return None if other is None else f"contains {other!r}, where a run keeps its files"


def _within(path: str, folder: str) -> bool:
    """Whether a path is a folder, or in it; both absolute."""
    return path == folder or path.startswith(os.path.join(folder, ""))


def _run_around(path: str) -> str | None:
    """The run in whose checkpoints or logs a path is."""
    inner = path
    while (outer := os.path.dirname(inner)) != inner:
        if os.path.basename(inner) in _KEPT and _is_run(outer):
            return outer
        inner = outer
    return None


def _run_in(path: str) -> str | None:
    """The first folder of a run, or of checkpoints, that a path is or contains."""
    for count, (folder, below, _) in enumerate(os.walk(path)):
        if _is_run(folder):
            return folder
        if "ckpt" in below:
            return os.path.join(folder, "ckpt")
        if count >= _MOST:
            break
    return None


def _is_run(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, RECORD_FILE))
