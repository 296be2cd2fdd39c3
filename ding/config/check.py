"""Finding what is wrong with a user's config before anything is built from it."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ding.utils.errors import ConfigError

_NEAR = 0.75  # similarity from which an unknown key is taken for a misspelt one
_ANYWHERE = ("type", "import_names", "cfg_type")  # keys that say nothing about their place


@dataclass
class Problems:
    """What was found so far; each with the full path of its key."""

    found: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        if message not in self.found:
            self.found.append(message)

    def raise_if_any(self) -> None:
        """Raise one error that lists everything.

        Raises:
            ConfigError: Something was found.
        """
        if len(self.found) == 1:
            raise ConfigError(self.found[0])
        if self.found:
            raise ConfigError("the config has several errors:\n  " + "\n  ".join(self.found))


class KeyChecker:
    """Compares what a user wrote with the defaults: key by key, and type by type.

    Args:
        known: Every key with its default, nested. ``None`` and ``{}`` allow any value and any dict.
        open_paths: Sections that may hold further keys; only near misses are errors there.
        problems: What is found is added here.
    """

    def __init__(
        self, known: Mapping[str, Any], open_paths: Collection[str], problems: Problems
    ) -> None:
        self._known = known
        self._open_paths = open_paths
        self._problems = problems
        self._places: dict[str, list[str]] = {}
        self._index(known, "")

    def check(self, user: Any) -> None:
        """Check a whole config.

        Whole numbers that stand as floats where an integer belongs (``1e5``) are made integers in
        ``user``.
        """
        self._check(user, self._known, "")

    def _check(self, user: Any, known: Mapping[str, Any], path: str) -> None:
        for key in list(user):
            where = f"{path}.{key}" if path else str(key)
            if not isinstance(key, str):
                self._problems.add(f"{where}: keys must be strings, got {_show(key)}")
            elif key not in known:
                self._report_unknown(key, path, where, known, user)
            elif isinstance(known[key], Mapping):
                self._check_section(user[key], known[key], where)
            elif _is_whole_float(user[key]) and _is_int(known[key]):
                user[key] = int(user[key])
            else:
                self._check_value(user[key], known[key], where)

    def _check_section(self, value: Any, known: Mapping[str, Any], where: str) -> None:
        if not isinstance(value, Mapping):
            self._problems.add(f"{where} must be a dict, got {_show(value)}")
        elif known:
            self._check(value, known, where)

    def _check_value(self, value: Any, default: Any, where: str) -> None:
        if not _fits(value, default):
            self._problems.add(
                f"{where} must be {_kind(default)}, got {_show(value)} (default: {default!r})"
            )
        elif _is_int_list(default):
            for index, item in enumerate(value if value is not None else ()):
                if not _is_int(item):
                    self._problems.add(f"{where}[{index}] must be an integer, got {_show(item)}")

    def _report_unknown(
        self, key: str, path: str, where: str, known: Mapping[str, Any], user: Mapping[str, Any]
    ) -> None:
        prefix = f"{path}." if path else ""
        is_open = path in self._open_paths
        near = difflib.get_close_matches(key, list(known), 1, _NEAR)
        places = [] if key in _ANYWHERE else self._places.get(key, [])
        if is_open:
            # Beside the key that it resembles it is a key of its own.
            if near and near[0] not in user:
                self._problems.add(f"unknown key {where}: did you mean {prefix}{near[0]}?")
        elif places:
            self._problems.add(f"unknown key {where}: did you mean {' or '.join(places[:3])}?")
        elif near:
            self._problems.add(f"unknown key {where}: did you mean {prefix}{near[0]}?")
        else:
            nearest = difflib.get_close_matches(key, list(known), 1, 0.0)
            hint = f"; nearest is {prefix}{nearest[0]}" if nearest else ""
            self._problems.add(
                f"unknown key {where}{hint}; known keys there: {', '.join(sorted(known)) or 'none'}"
            )

    def _index(self, known: Mapping[str, Any], path: str) -> None:
        for key, value in known.items():
            where = f"{path}.{key}" if path else key
            self._places.setdefault(key, []).append(where)
            if isinstance(value, Mapping):
                self._index(value, where)


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_int(value) or isinstance(value, float | np.floating)


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _is_int_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_int, value))


def _fits(value: Any, default: Any) -> bool:
    """Whether a value may stand where ``default`` stood; ``None`` allows anything."""
    if default is None or value is None:
        return True
    if isinstance(default, bool):
        return isinstance(value, bool | np.bool_)
    if _is_int(default):
        return _is_int(value)
    if isinstance(default, float):
        return _is_number(value)
    if isinstance(default, str):
        return isinstance(value, str)
    if isinstance(default, list | tuple):
        return isinstance(value, list | tuple | np.ndarray)
    return True


def _kind(default: Any) -> str:
    if isinstance(default, bool):
        return "True or False"
    if _is_int(default):
        return "an integer"
    if isinstance(default, float):
        return "a number"
    return "a string" if isinstance(default, str) else "a list"


def _show(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def at(config: Any, path: str) -> Any:
    """The value at a dotted path, ``None`` if it or a section on the way is missing."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def require(config: Mapping[str, Any], path: str, what: str, problems: Problems) -> None:
    """Report a key that has no default and is missing."""
    if at(config, path) is None:
        problems.add(f"missing key {path}: {what}")
