"""Imports asked for by a config, and names that users may ask for and that are not there (yet)."""

import importlib
import os
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.errors import MissingModuleError, MissingNameError
from ding.utils.registry import Origin

#: Name that config files run under: their own ``if __name__ == "__main__"`` must not run.
CONFIG_MODULE = "ding_config"
#: The config file that was run last: its classes are registered, those of others may have been
#: replaced by theirs of the same names.
_last_file = ""
#: Config files by the ids of environments that gymnasium knows since they were run.
_files_of_env_ids: dict[str, str] = {}


def import_module(modules: str | Iterable[str]) -> None:
    """Import modules, mostly so that they register their types.

    Args:
        modules: Module paths. One that ends in ``.py`` with a folder before it is the path of a
            config file, which is run unless it was the last one.

    Raises:
        ImportError: Names the module that was asked for, and whether it is that module that is
            missing (`ModuleNotFoundError`) or something that it imports.
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
    """Finds modules by what is in them (``ding.policy.td3``), whichever files these share."""

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
    """Run a Python file as a config and return what it defines; it may import its neighbours."""
    global _last_file
    path = os.path.abspath(os.path.expanduser(path))
    folder, _last_file = os.path.dirname(path), ""
    known = set(_env_ids())
    sys.path.insert(0, folder)
    try:
        names = runpy.run_path(path, run_name=CONFIG_MODULE)
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    _last_file = path
    _files_of_env_ids.update(dict.fromkeys(_env_ids() - known, path))
    return names


def _env_ids() -> Set[str]:
    registry: Mapping[str, object] = getattr(sys.modules.get("gymnasium"), "registry", {})
    return registry.keys()


def registrant(origin: Origin | None) -> str | None:
    """What to import so that a type is registered: a module, or a config file.

    ``None`` if nothing has to be imported, or a script is running that cannot be.
    """
    if origin is None:
        return None
    if origin.module == CONFIG_MODULE:
        return os.path.abspath(origin.file)
    is_importable = origin.module in sys.modules and origin.module != "__main__"
    return origin.module if is_importable and origin.module.split(".")[0] != "ding" else None


def registrant_of_env(env_id: str, entry_point: str | Callable[..., object] | None) -> str | None:
    """`registrant` of an id of gymnasium: where its entry point is defined, whose packages mostly
    register it, or the config file that has made it known.
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
    """The ``redis`` module, None where it is not installed."""
    return _optional("redis")


def try_import_link() -> ModuleType | None:
    """The ``linklink`` module, None where it is not installed."""
    return _optional("linklink")


def _optional(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def with_planned(
    package: str, names: Iterable[str], getattr_: Callable[[str], object] | None = None
) -> Callable[[str], object]:
    """A ``__getattr__`` of a package that explains which names it does not have.

    It raises an `AttributeError`, so that ``hasattr`` is False, but a `MissingNameError` (an
    `ImportError`) for ``from package import name``, which would not show the other one's message.

    Args:
        package: Name of the package.
        names: What is not there.
        getattr_: What finds the other names.
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
