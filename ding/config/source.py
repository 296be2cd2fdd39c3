"""Python source of config values."""

import math
import os
import sys
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.utils.errors import ConfigError

_WIDTH = 100


class Source:
    """Writes values as Python expressions, and collects what these need to run.

    Functions and classes that can be imported are written by name. Anything else that is not plain
    data is written as ``None``, and the file refuses to run until somebody has put it back.
    """

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._folders: list[str] = []
        self._lost: list[str] = []

    def header(self) -> str:
        """Imports, and the refusal if something was lost; to be asked for after `of`."""
        lines = []
        if self._folders:
            lines += ["import sys", "", *(f"sys.path.append({one!r})" for one in self._folders), ""]
        lines += [f"import {module}" for module in sorted(self._modules)]
        if self._lost:
            what = "; ".join(self._lost)
            message = (
                f"not everything in this config could be written: {what}. Put it back (where None "
                "stands now, if it was a value), and remove this line"
            )
            lines += ["", f"raise ValueError({message!r})"]
        return "\n".join(lines) + "\n" if lines else ""

    def find_modules_in(self, folders: list[str]) -> None:
        """Let the file look for modules in these folders, too."""
        self._folders = folders

    def lose(self, what: str) -> None:
        """Make the file refuse to run, since something is missing in it."""
        self._lost.append(what)

    @property
    def is_whole(self) -> bool:
        """Whether the file will run."""
        return not self._lost

    def of(self, value: Any, path: str, indent: int = 0) -> str:
        """Source of a value; mappings and long lists on lines of their own.

        Args:
            path: Where the value stands, for messages.
            indent: Of the line on which it starts.
        """
        return self._layout(plain(value), path, indent)

    def _layout(self, value: Any, path: str, indent: int) -> str:
        if not isinstance(value, dict | list | tuple):
            return self._atom(value, path)
        if isinstance(value, dict):
            items = [
                (f"{key!r}: ", self._layout(item, f"{path}.{key}", indent + 4))
                for key, item in value.items()
            ]
        else:
            items = [
                ("", self._layout(item, f"{path}[{index}]", indent + 4))
                for index, item in enumerate(value)
            ]
        left, right = {dict: ("{", "}"), list: ("[", "]"), tuple: ("(", ")")}[type(value)]
        parts = [key + text for key, text in items]
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        flat = f"{left}{', '.join(parts)}{comma}{right}"
        fits = len(flat) + indent <= _WIDTH and "\n" not in flat
        if fits and not (isinstance(value, dict) and len(value) > 1):
            return flat
        inner = " " * (indent + 4)
        return left + "\n" + "".join(f"{inner}{part},\n" for part in parts) + " " * indent + right

    def _atom(self, value: Any, path: str) -> str:
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        if value is None or type(value) in (bool, int, float, str, bytes, range):
            return repr(value)
        if type(value) in (set, frozenset):
            items = ", ".join(sorted(self.of(item, path) for item in value))
            return f"{type(value).__name__}([{items}])"
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            name = _importable(value)
            if name is not None:
                self._modules.add(value.__module__)
                return name
        self._lost.append(f"{path} was {_named(value)}")
        return "None"


def plain(value: Any) -> Any:
    """Containers as dict, list and tuple; numbers and strings as Python's own."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def without_objects(value: Any, path: str = "config") -> Any:
    """Only what YAML can hold; tuples as lists.

    Raises:
        ConfigError: Something else, with its path.
    """
    value = plain(value)
    if isinstance(value, dict):
        return {key: without_objects(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_objects(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ConfigError(
        f"{path} is {_named(value)}, which YAML cannot hold: save the config as Python (type_='py')"
    )


def _importable(value: Any) -> str | None:
    """The dotted name under which another process finds a class or function."""
    module, name = value.__module__, value.__qualname__
    if module is None or module in ("__main__", "ding_config") or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else None


def _named(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
