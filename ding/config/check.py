"""Finding what is wrong with a user's config before anything is built from it."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ding.utils.errors import ConfigError

_NEAR = 0.75  # similarity from which an unknown key is taken for a misspelt one


@dataclass
class Problems:
    """What was found so far; each with the full path of its key."""

    found: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
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


def check_section(
    user: Any,
    known: Mapping[str, Any],
    path: str,
    problems: Problems,
    open_paths: Iterable[str] = (),
) -> None:
    """Compare a section with the defaults: key by key, and type by type.

    Whole numbers that stand as floats where an integer belongs (``1e5``) are made integers in
    ``user``.

    Args:
        user: What the user wrote; changed in place.
        known: Every key with its default.
        path: Where the section stands.
        problems: What was found is added here.
        open_paths: Sections that may hold further keys; there only near misses are errors.
    """
    for key in list(user):
        where = f"{path}.{key}" if path else str(key)
        if key not in known:
            _report_unknown(key, where, known, path in open_paths, problems)
            continue
        default, value = known[key], user[key]
        if isinstance(default, Mapping):
            if not isinstance(value, Mapping):
                problems.add(f"{where} must be a dict, got {_show(value)}")
            elif default:
                check_section(value, default, where, problems, open_paths)
        elif _is_whole_float(value) and _is_int(default):
            user[key] = int(value)
        elif not _fits(value, default):
            problems.add(
                f"{where} must be {_kind(default)}, got {_show(value)} (default: {default!r})"
            )


def _report_unknown(
    key: Any, where: str, known: Mapping[str, Any], is_open: bool, problems: Problems
) -> None:
    near = difflib.get_close_matches(str(key), [str(k) for k in known], 1, 0.0)
    similar = bool(near) and difflib.SequenceMatcher(None, str(key), near[0]).ratio() >= _NEAR
    if is_open and not similar:
        return
    prefix = where[: -len(str(key))]
    hint = f": did you mean {prefix}{near[0]}?" if similar else ""
    others = "" if similar else f"; known keys: {', '.join(sorted(map(str, known)))}"
    nearest = f" (nearest: {prefix}{near[0]})" if near and not similar else ""
    problems.add(f"unknown key {where}{hint}{nearest}{others}")


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_int(value) or isinstance(value, float | np.floating)


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


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
    return {"str": "a string", "list": "a list", "tuple": "a list"}[type(default).__name__]


def _show(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def require(config: Mapping[str, Any], path: str, what: str, problems: Problems) -> None:
    """Report a key that has no default and is missing."""
    node: Any = config
    for key in path.split("."):
        if not isinstance(node, Mapping) or node.get(key) is None:
            problems.add(f"missing key {path}: {what}")
            return
        node = node[key]
