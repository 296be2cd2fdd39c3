"""Imports the modules in configs, and explains names that this version does not have."""

import ast
import importlib
import os
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.errors import MissingModuleError, MissingNameError
from ding.utils.registry import Origin

#: ``__name__`` in config files: their ``if __name__ == "__main__"`` blocks must not run.
CONFIG_MODULE = "ding_config"
#: The config file that was run last. Its classes are registered, and may have replaced classes of
#: the same names from other config files.
_last_file = ""
#: Folders from which the config files that were run could import modules.
_config_folders: set[str] = set()
#: Ids of environments that config files have registered in gymnasium, and these files.
_files_of_env_ids: dict[str, str] = {}


def import_module(modules: str | Iterable[str]) -> None:
    """Import modules, usually so that they register their types.

    Args:
        modules: Module paths. A path with a folder that ends in ``.py`` is a config file, which is
            run unless it was the last one that was run.

    Raises:
        ImportError: The module is missing (`ModuleNotFoundError`), or one of its imports fails.
    """
    for name in [modules] if isinstance(modules, str) else modules:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"import_names holds module paths such as 'my_pkg.my_env', got {name!r}"
            )
        if name.endswith(".py") and os.path.dirname(name):
            if os.path.abspath(name) != _last_file:
                run_config_file(name)
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise _explained(name, error) from error


class _ModulesOfTypes(Loader, MetaPathFinder):
    """Makes a module importable by each type in it (``ding.policy.td3`` is in ``ddpg.py``)."""

    _packages: Mapping[str, Mapping[str, str]] = {
        "ding.policy": BUILTIN_TYPES["policy"],
        "ding.model.template": {**BUILTIN_TYPES["model"], "maqac": "ding.model.template.qac"},
        "ding.entry": {"serial_entry_onpolicy": "ding.entry.serial_entry"},
    }

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        found = self._packages.get(package, {}).get(last, name)
        return None if found == name else ModuleSpec(name, self, origin=found)

    def exec_module(self, module: ModuleType) -> None:
        found = vars(importlib.import_module(module.__spec__.origin))  # type: ignore[union-attr, arg-type]
        vars(module).update((k, value) for k, value in found.items() if not k.startswith("__"))


sys.meta_path.append(_ModulesOfTypes())  # after the finders of files


def run_config_file(path: str) -> dict[str, object]:
    """Run a Python file as a config; returns its names. It may import modules from its folder.

    These take precedence over modules of the same names that earlier config files imported.
    """
    global _last_file
    path = os.path.abspath(os.path.expanduser(path))
    folder, _last_file = os.path.dirname(path), ""
    folders = [folder, *_added_folders(path)]
    _forget_others(folders)
    known, before = set(_env_ids()), list(sys.path)
    sys.path[:0] = folders
    try:
        names = runpy.run_path(path, run_name=CONFIG_MODULE)
    finally:
        for one in folders:
            if one in sys.path:
                sys.path.remove(one)
        # What the file itself has added stays, since its modules may be imported later.
        own = [one for one in dict.fromkeys(sys.path) if one in folders[1:] or one not in before]
        sys.path[:] = own + [one for one in sys.path if one not in own]
        _config_folders.update(folders)
    _last_file = path
    _files_of_env_ids.update(dict.fromkeys(_env_ids() - known, path))
    return names


def _added_folders(path: str) -> list[str]:
    """The folders that a config file adds to ``sys.path`` by name, as saved configs do."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []  # reported when it is run
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    added = ("sys.path.append", "sys.path.insert")
    values = [call.args[-1] for call in calls if ast.unparse(call.func) in added]
    texts = [one.value for one in values if isinstance(one, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and text]


def _forget_others(folders: Sequence[str]) -> None:
    """Let modules be imported again that are from other config files' folders, if these folders
    have ones of the same names."""
    others = _config_folders.difference(folders)
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if "." in name or name in ("__main__", "ding") or spec is None or spec.origin is None:
            continue
        home = os.path.dirname(spec.origin)
        if spec.submodule_search_locations is not None:
            home = os.path.dirname(home)
        own = PathFinder.find_spec(name, folders) if home in others else None
        if own is not None and own.origin != spec.origin:
            for one in [one for one in sys.modules if f"{one}.".startswith(f"{name}.")]:
                del sys.modules[one]


def _env_ids() -> Set[str]:
    registry: Mapping[str, object] = getattr(sys.modules.get("gymnasium"), "registry", {})
    return registry.keys()


def registrant(origin: Origin | None) -> str | None:
    """The module or config file to import in order to register a type.

    ``None`` if no import is needed, or if the type is defined in a script that cannot be imported.
    """
    if origin is None:
        return None
    if origin.module == CONFIG_MODULE:
        return os.path.abspath(origin.file)
    is_importable = origin.module in sys.modules and origin.module != "__main__"
    return origin.module if is_importable and origin.module.split(".")[0] != "ding" else None


def registrant_of_env(env_id: str, entry_point: str | Callable[..., object] | None) -> str | None:
    """`registrant` of an id of gymnasium: the module of its entry point, whose package usually
    registers the id, or the config file that has registered it.
    """
    if isinstance(entry_point, str):
        module = entry_point.partition(":")[0]
    else:
        module = getattr(entry_point, "__module__", None) or ""
    while module and module not in sys.modules:
        module = module.rpartition(".")[0]
    if not module:
        return _files_of_env_ids.get(env_id)
    return None if module.split(".")[0] in ("__main__", "ding", "gymnasium") else module


def _explained(name: str, error: ImportError) -> ImportError:
    missing = error.name
    is_absent = isinstance(error, ModuleNotFoundError) and missing is not None
    if is_absent and (name == missing or name.startswith(f"{missing}.")):
        return MissingModuleError(
            f"cannot import {name!r}: there is no module {missing!r}; check the spelling in "
            f"import_names, and that its folder is installed or on PYTHONPATH",
            name=missing,
        )
    kind = MissingModuleError if isinstance(error, ModuleNotFoundError) else MissingNameError
    return kind(
        f"cannot import {name!r}: it exists, but what it imports failed: {error}",
        name=missing,
        path=error.path,
    )


def try_import_redis() -> ModuleType | None:
    """The ``redis`` module, None if it is not installed."""
    return _optional("redis")


def try_import_link() -> ModuleType | None:
    """The ``linklink`` module, None if it is not installed."""
    return _optional("linklink")


def _optional(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def with_planned(
    package: str, names: Iterable[str], getattr_: Callable[[str], object] | None = None
) -> Callable[[str], object]:
    """A ``__getattr__`` of a package that explains missing names.

    It raises an `AttributeError`, so that ``hasattr`` is False. For ``from package import name``,
    which would drop the message of an `AttributeError`, it raises a `MissingNameError` (an
    `ImportError`).

    Args:
        package: Name of the package.
        names: Names that this version does not have.
        getattr_: Finds the other names.
    """
    planned = frozenset(names)

    def find(name: str) -> object:
        try:
            if getattr_ is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return getattr_(name)
        except AttributeError:
            if name not in planned:
                raise
        message = (
            f"{package}.{name} is not there: this version of ding does not have it. "
            "`ding -q policy` lists the policies that it has, README.md the other parts"
        )
        if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
            raise MissingNameError(message)
        raise AttributeError(message)

    return find
