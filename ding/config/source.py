"""Python source of config values, and where their types come from."""

import math
import os
import pprint
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.config.check import at
from ding.config.parts import Parts
from ding.utils import MODEL_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.import_helper import CONFIG_MODULE

_WIDTH = 100


class Source:
    """Writes values as Python expressions, and collects what these need to run.

    Functions and classes that can be imported are written by name. Anything else that is not plain
    data is written as ``None``, and the file refuses to run until somebody has put it back.

    Args:
        folders: Where the file is to look for modules, too.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._modules: set[str] = set()
        self._folders = folders
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

    def lose(self, what: str) -> None:
        """Make the file refuse to run, since something is missing in it."""
        self._lost.append(what)

    def of(self, value: Any, path: str) -> str:
        """The ``repr`` of a value that is to stand at a path; a mapping has a line for each key."""
        readable = self._readable(plain(value), path)
        return pprint.pformat(readable, width=_WIDTH, compact=True, sort_dicts=False)

    def _readable(self, value: Any, path: str) -> Any:
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
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            name = _importable(value)
            if name is not None:
                self._modules.add(value.__module__)
                return _Name(name)
        self._lost.append(f"{path} was {_named(value)}")
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


def add_origins(create: EasyDict, user: EasyDict, parts: Parts) -> None:
    """Complete the ``import_names`` of types that were registered without them, in place.

    A config file may import a module of environments, or define one, and never name it.

    Args:
        create: Types by component.
        user: The main config.
        parts: The classes of the types.
    """
    for name in parts.components:
        if name in create:
            _complete(create[name], origin(getattr(parts, name)))
    env_id = at(user, "env.env_id")
    if at(create, "env.type") == "gymnasium" and isinstance(env_id, str):
        _complete(create.env, _registrant(env_id))
    model = at(user, "policy.model")
    if isinstance(model, Mapping) and model.get("type") in MODEL_REGISTRY:
        _complete(user.policy.model, origin(MODEL_REGISTRY[model["type"]]))


def _complete(section: EasyDict, module: str | None) -> None:
    if module is not None and not section.get("import_names"):
        section.import_names = [module]


def origin(part: Any) -> str | None:
    """What to import for a class or function: a module, or a config file.

    ``None`` if nothing has to be imported, or a script is running that cannot be.
    """
    module = getattr(part, "__module__", None)
    if module is None or module.split(".")[0] == "ding":
        return None
    if module == CONFIG_MODULE:
        return _file_of(part)
    return module if module in sys.modules and module != "__main__" else None


def is_of_a_script(part: Any) -> bool:
    """Whether no other process can import a class or function: it is of the script that runs."""
    return getattr(part, "__module__", None) == "__main__"


def _file_of(part: Any) -> str | None:
    """The file of a function, or of a class's first method."""
    members = [part, *vars(part).values()] if isinstance(part, type) else [part]
    for member in members:
        function = getattr(member, "__func__", member)
        if isinstance(function, types.FunctionType) and function.__module__ == CONFIG_MODULE:
            return os.path.abspath(function.__code__.co_filename)
    return None


def entry_point(env_id: Any) -> Any:
    """What makes environments of an id that gymnasium knows: text, or the class or function."""
    spec = getattr(sys.modules.get("gymnasium"), "registry", {}).get(env_id)
    return getattr(spec, "entry_point", None)


def _registrant(env_id: str) -> str | None:
    """The module whose import makes an id of gymnasium known; ``None`` if that is not needed."""
    entry = entry_point(env_id)
    if isinstance(entry, str):
        module = entry.partition(":")[0]
        is_known = module.split(".")[0] == "gymnasium" or module not in sys.modules
        return None if is_known else module
    return None if entry is None else origin(entry)


def search_path(create: Mapping[str, Any]) -> list[str]:
    """Folders of modules in ``import_names`` that are not installed and not beside the package."""
    folders: dict[str, None] = {}
    for section in create.values():
        for name in section.get("import_names") or () if isinstance(section, Mapping) else ():
            folders.update(dict.fromkeys(_folder(name)))
    return list(folders)


def _folder(name: Any) -> Iterable[str]:
    top = sys.modules.get(name.split(".")[0]) if isinstance(name, str) else None
    file = getattr(top, "__file__", None)
    if file is None or name.split(".")[0] == "ding":
        return
    folder = os.path.dirname(os.path.abspath(file))
    if hasattr(top, "__path__"):
        folder = os.path.dirname(folder)
    if "site-packages" not in folder and not folder.startswith(os.path.join(sys.prefix, "")):
        yield folder
