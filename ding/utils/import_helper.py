"""Imports asked for by a config."""

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any


def import_module(modules: str | Iterable[str]) -> None:
    """Import modules, mostly so that they register their types.

    Raises:
        ImportError: Names the module that was asked for, and whether it is that module that is
            missing (`ModuleNotFoundError`) or something that it imports.
    """
    for name in [modules] if isinstance(modules, str) else modules:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"import_names holds module paths such as 'my_pkg.my_env', got {name!r}"
            )
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise _explained(name, error) from error


def _explained(name: str, error: ImportError) -> ImportError:
    missing = error.name
    is_absent = isinstance(error, ModuleNotFoundError) and missing is not None
    if is_absent and (name == missing or name.startswith(f"{missing}.")):
        return ModuleNotFoundError(
            f"cannot import {name!r}: there is no module {missing!r}; check the spelling in "
            f"import_names, and that its folder is installed or on PYTHONPATH",
            name=missing,
        )
    return type(error)(
        f"cannot import {name!r}: it exists, but what it imports failed: {error}",
        name=missing,
        path=error.path,
    )


def try_import_redis() -> ModuleType | None:
    """The ``redis`` module, None where it is not installed."""
    return _optional("redis")


def try_import_link() -> Any:
    """The ``linklink`` module, None where it is not installed."""
    return _optional("linklink")


def _optional(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
